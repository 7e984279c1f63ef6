"""What to expect of future rows: intervals that hold at every row at once, and an alarm for a rising loss."""

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
    """Import a public name on first use: predicting needs none of them, most runs need no residuals."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
