"""Predictions as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ftprl._core import number_lines
from ftprl.data import Source
from ftprl.linear.model import Model

_SURE = 1e-15  # a probability is printed no nearer to 0 and 1 than this


def lines(model: Model, source: Source, *, raw: bool = False, threads: int = 2) -> Iterator[bytes]:
    """Blocks of lines, a number for each row."""
    is_probability = not raw and model.engine.spec.loss == "logistic"
    for batch, _ in source.read(threads=threads):
        values = model.predict(batch, raw=raw)
        yield number_lines(np.clip(values, _SURE, 1.0 - _SURE) if is_probability else values)
