"""Predictions as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from ftprl._core import number_lines
from ftprl.data import Batch, Source
from ftprl.linear.engine import RowRefused
from ftprl.linear.model import Model
from ftprl.training.refused import around_refused, located

_SURE = 1e-15  # a probability is printed no nearer to 0 and 1 than this


@final
class Lines:
    """Predictions as blocks of text, one number per line and row; none for bad rows where the source skips them."""

    def __init__(self, model: Model, source: Source, *, raw: bool = False, threads: int | None = None) -> None:
        self._model, self._source, self._raw, self._threads = model, source, raw, threads
        self._refused, self._refusal = 0, ""

    @property
    def bad_rows(self) -> int:
        """How many rows were left out."""
        return self._source.bad_rows + self._refused

    @property
    def first_bad(self) -> str | None:
        """Where the first of them is, and why it was left out."""
        return self._source.first_bad or self._refusal or None

    def __iter__(self) -> Iterator[bytes]:
        for batch, position in self._source.read(threads=self._threads, digest=False):
            try:
                yield from around_refused(batch, self._text, self._refuse if self._source.skips_bad_rows else None)
            except RowRefused as refusal:
                raise located(refusal, self._source, position) from None

    def _refuse(self, refusal: RowRefused) -> None:
        self._refused, self._refusal = self._refused + 1, self._refusal or str(refusal)

    def _text(self, batch: Batch) -> bytes:
        values = self._model.predict(batch, raw=self._raw)
        is_probability = not self._raw and self._model.engine.spec.scalar_loss().is_probabilistic
        return number_lines(np.clip(values, _SURE, 1.0 - _SURE) if is_probability else values)
