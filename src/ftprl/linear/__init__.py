"""Sparse linear models: the scale-free diagonal scheme on streams larger than memory."""

from __future__ import annotations

from ftprl.linear.engine import Engine, Progress
from ftprl.linear.model import Model
from ftprl.linear.spec import Spec
from ftprl.linear.train import Run, train

__all__ = ["Engine", "Model", "Progress", "Run", "Spec", "train"]
