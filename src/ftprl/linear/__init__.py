"""Sparse linear models with per-coordinate learning rates: their settings, the learner, and the model file."""

from __future__ import annotations

from ftprl.linear.engine import Engine
from ftprl.linear.model import Model, load
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals

__all__ = ["Engine", "Model", "LossTotals", "Spec", "load"]
