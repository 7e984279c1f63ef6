"""Sparse linear models with per-coordinate learning rates: their settings, the learner, and the model file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model, load
    from ftprl.linear.spec import Spec
    from ftprl.linear.totals import LossTotals

__all__ = ["Engine", "Model", "LossTotals", "Spec", "load"]

_HOMES = {"Engine": "engine", "Model": "model", "LossTotals": "totals", "Spec": "spec", "load": "model"}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: data is opened and parsed ahead before a model is made."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
