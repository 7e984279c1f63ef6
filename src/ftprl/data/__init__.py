"""Data for training and predicting: text files, SciPy matrices, batches; and a generator of synthetic click logs."""

from __future__ import annotations

from ftprl.data import clicks
from ftprl.data.batch import Batch
from ftprl.data.formats import are_paths, open, settings_for
from ftprl.data.options import ReadingOptions
from ftprl.data.protocol import Description, Position, Source

__all__ = [
    "Batch",
    "Description",
    "Position",
    "ReadingOptions",
    "Source",
    "are_paths",
    "clicks",
    "open",
    "settings_for",
]
