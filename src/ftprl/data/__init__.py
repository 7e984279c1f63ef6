"""Data for training and predicting: files, frames, dicts, arrays, batches; and a generator of synthetic click logs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ftprl.data.batch import Batch
from ftprl.data.formats import are_paths, check_format, open, settings_for
from ftprl.data.options import NUMBERED, ReadingOptions
from ftprl.data.parts import as_data
from ftprl.data.source import Description, Position, Source

if TYPE_CHECKING:
    from ftprl.data import clicks

__all__ = [
    "NUMBERED",
    "Batch",
    "Description",
    "Position",
    "ReadingOptions",
    "Source",
    "are_paths",
    "check_format",
    "as_data",
    "clicks",
    "open",
    "settings_for",
]


def __getattr__(name: str) -> Any:
    """The generator of click logs is imported when it is first used: training does without it."""
    if name == "clicks":
        return import_module("ftprl.data.clicks")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
