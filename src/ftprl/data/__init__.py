"""Data as batches: the one currency between readers and learners."""

from __future__ import annotations

from ftprl.data.batch import Batch

__all__ = ["Batch"]
