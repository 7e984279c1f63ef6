"""Rows for a sparse learner: readers of VW text, libsvm, CSV and TSV, and a generator of click logs."""

from __future__ import annotations

from ftprl.data import clicks
from ftprl.data.batch import Batch
from ftprl.data.chunks import Position
from ftprl.data.source import Description, Source, as_named, open

__all__ = ["Batch", "Description", "Position", "Source", "as_named", "clicks", "open"]
