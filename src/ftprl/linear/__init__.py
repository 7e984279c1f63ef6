"""Sparse linear models: the scale-free diagonal scheme on streams larger than memory."""

from __future__ import annotations

from ftprl.linear.engine import Engine, Progress
from ftprl.linear.model import Model, load
from ftprl.linear.run import Run, train
from ftprl.linear.spec import Spec

__all__ = ["Engine", "Model", "Progress", "Run", "Spec", "load", "train"]
