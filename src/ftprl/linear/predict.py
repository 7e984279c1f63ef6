"""Predictions for files: data read as the model's was, numbers as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ftprl import data as readers
from ftprl._core import number_lines
from ftprl.linear.model import Model

_SURE = 1e-15  # a probability is printed no nearer to 0 and 1 than this


def opened(model: Model, paths: Any, **more: Any) -> readers.Source:
    """Files read as in training, except that labels and weights do not matter."""
    said = {**model.reading, **more}
    columns = said.get("columns")
    if columns is not None:
        unread = ("label", "weight")
        said["columns"] = {name: "ignore" if kind in unread else kind for name, kind in columns.items()}
    return readers.open(paths, **{**said, "loss": "squared", "positive": None})


def lines(model: Model, source: readers.Source, *, raw: bool = False, threads: int = 2) -> Iterator[bytes]:
    """Blocks of lines, a number for each row."""
    is_probability = not raw and model.engine.spec.loss == "logistic"
    for batch, _ in source.read(threads=threads):
        values = model.predict(batch, raw=raw)
        yield number_lines(np.clip(values, _SURE, 1.0 - _SURE) if is_probability else values)
