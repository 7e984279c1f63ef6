"""What to expect of rows to come: intervals that hold at every row at once, and an alarm for a loss that rises."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftprl.confidence.interval import MeanInterval
    from ftprl.confidence.residuals import ResidualGroup, ResidualSummary
    from ftprl.confidence.run import Drift, RunConfidence, RunMonitor

__all__ = ["Drift", "MeanInterval", "ResidualGroup", "ResidualSummary", "RunConfidence", "RunMonitor"]

_HOMES = {
    "Drift": "run",
    "MeanInterval": "interval",
    "ResidualGroup": "residuals",
    "ResidualSummary": "residuals",
    "RunConfidence": "run",
    "RunMonitor": "run",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: predicting does without any, most runs without residuals."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
