"""Rows for a sparse learner: readers of VW text, libsvm, CSV and TSV, and a generator of synthetic click logs."""

from __future__ import annotations

from ftprl.data import clicks
from ftprl.data.batch import Batch
from ftprl.data.protocol import Description, Position, Source
from ftprl.data.source import TextSource, as_named, open

__all__ = ["Batch", "Description", "Position", "Source", "TextSource", "as_named", "clicks", "open"]
