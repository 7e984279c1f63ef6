"""Training and prediction on streams larger than memory: `train` is what `ftprl train` runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftprl.training.api import train
    from ftprl.training.live import ProgressBar
    from ftprl.training.run import Run

__all__ = ["ProgressBar", "Run", "train"]

_HOMES = {"ProgressBar": "live", "Run": "run", "train": "api"}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: predicting does without what training needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
