"""Predictions as lines of text, one per row of the data in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np

from ftprl._core import number_lines
from ftprl.data import Batch, Source
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model, Vector
from ftprl.linear.refusal import RowRefused
from ftprl.training.refused import around_refused, located

_SURE = 1e-15  # a probability is printed no nearer to 0 and 1 than this


@final
class AlignedLines:
    """Numbers as lines of text: one line per row of the data, empty for a row that was left out.

    Good rows are numbered in their order. A number that is never passed to `lines` is that of a row that was refused
    later, and gets an empty line too. The tag of a row stands behind its number, as in files of Vowpal Wabbit.

    >>> lines = AlignedLines()
    >>> lines.leave_out({1: 2})  # two rows behind the first good one
    >>> lines.lines(0, np.array([0.5, 0.25]), None) + lines.up_to(3) + lines.end()
    b'0.5\\n\\n\\n0.25\\n\\n'
    """

    def __init__(self, row: int = 0) -> None:
        self._row = row  # the number of the next row
        self._left_out: dict[int, int] = {}

    def leave_out(self, counts: Mapping[int, int]) -> None:
        """Some more rows were left out: how many, by the number of good rows before them."""
        for row, count in counts.items():
            if row >= self._row:  # a reading that was resumed may begin with earlier rows
                self._left_out[row] = self._left_out.get(row, 0) + count

    def lines(self, first: int, numbers: Vector | Sequence[bytes], tags: Sequence[str] | None) -> bytes:
        """The text of rows `first`, `first + 1`, ..., with that of the rows left out before and between them."""
        stop = first + len(numbers)
        parts = [self.up_to(first), b"\n" * self._left_out.pop(first, 0)]
        for gap in [*sorted(row for row in self._left_out if row < stop), stop]:
            some = slice(self._row - first, gap - first)
            parts.append(_text(numbers[some], None if tags is None else tags[some]))
            self._row = gap
            if gap < stop:
                parts.append(b"\n" * self._left_out.pop(gap))
        return b"".join(parts)

    def up_to(self, row: int) -> bytes:
        """The empty lines of all rows before row number `row` that have none yet."""
        passed = [other for other in self._left_out if other < row]
        count = sum(self._left_out.pop(other) for other in passed) + row - self._row
        self._row = row
        return b"\n" * count

    def end(self) -> bytes:
        """The empty lines behind the last row."""
        return b"\n" * sum(self._left_out.values())


def _text(numbers: Vector | Sequence[bytes], tags: Sequence[str] | None) -> bytes:
    is_array = isinstance(numbers, np.ndarray)
    text = number_lines(np.ascontiguousarray(numbers)) if is_array else b"".join(line + b"\n" for line in numbers)
    if tags is None or not any(tags):
        return text
    pairs = zip(text.split(b"\n"), tags, strict=False)
    return b"".join(number + (b" " + tag.encode() if tag else b"") + b"\n" for number, tag in pairs)


def _beside(first: Vector | Sequence[bytes], second: Vector) -> list[bytes]:
    """Two columns with a comma between them."""
    own = number_lines(np.ascontiguousarray(first)).split(b"\n") if isinstance(first, np.ndarray) else first
    return [b",".join(pair) for pair in zip(own, number_lines(second).split(b"\n")[:-1], strict=False)]


def shown_predictions(model: Model, scores: Vector) -> Vector | list[bytes]:
    """What scores predict, as it is printed: a probability is never 0 or 1, and the number of a class is its label."""
    if model.class_table is not None:
        names = [name.encode() for name in model.class_table.names]
        return [b"" if number != number else names[int(number)] for number in scores.tolist()]
    values = model.mean(scores)
    return np.clip(values, _SURE, 1.0 - _SURE) if model.spec.scalar_loss().is_probabilistic else values


@final
class Lines:
    """Predictions as blocks of text, one line per row; an empty line for a bad row where the source skips them.

    With several classes a line has the most probable class, with `probabilities` the probability of each, or with `raw`
    its logarithm, with commas between them in the order of `Model.classes`. With `uncertainty` that of the row follows,
    behind another comma.
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        *,
        raw: bool = False,
        probabilities: bool = False,
        uncertainty: bool = False,
        threads: int | None = None,
    ) -> None:
        self._model, self._source, self._raw, self._threads = model, source, raw, threads
        self._probabilities, self._uncertainty = probabilities, uncertainty
        if probabilities and model.classes is None and not model.spec.scalar_loss().is_probabilistic:
            raise InvalidInput(
                f"probabilities= needs a loss that has them, got a model with {model.spec.loss} loss; drop it.",
                option="probabilities",
            )
        self._refused, self._refusal = 0, ""
        self._aligned = AlignedLines()

    @property
    def bad_rows(self) -> int:
        """How many rows were left out."""
        return self._source.bad_rows + self._refused

    @property
    def first_bad(self) -> str | None:
        """Where the first of them is, and why it was left out."""
        return self._source.first_bad or self._refusal or None

    def __iter__(self) -> Iterator[bytes]:
        rows = 0
        for batch, position in self._source.read(threads=self._threads, digest=False):
            self._aligned.leave_out(self._source.take_left_out())
            try:
                yield from around_refused(batch, self._text, self._refuse if self._source.skips_bad_rows else None)
            except RowRefused as refusal:
                raise located(refusal, self._source, position) from None
            rows = batch.first_row + len(batch)
        self._aligned.leave_out(self._source.take_left_out())
        yield self._aligned.up_to(rows) + self._aligned.end()

    def _refuse(self, refusal: RowRefused) -> None:
        self._refused, self._refusal = self._refused + 1, self._refusal or str(refusal)

    def _text(self, batch: Batch) -> bytes:
        scores = self._model.score(batch)
        numbers: Vector | Sequence[bytes]
        if self._model.classes is not None:
            numbers = self._of_classes(scores)
        else:
            numbers = scores if self._raw else shown_predictions(self._model, scores)
        if self._uncertainty:
            numbers = _beside(numbers, self._model.uncertainty(batch))
        return self._aligned.lines(batch.first_row, numbers, batch.tags)

    def _of_classes(self, logs: Vector) -> list[bytes]:
        """The lines of some rows from the logarithms of the probabilities of their classes."""
        if not (self._raw or self._probabilities):
            return list(shown_predictions(self._model, logs.argmax(axis=1).astype(float)))
        values = logs if self._raw else np.clip(self._model.mean(logs), _SURE, 1.0)
        fields = number_lines(np.ascontiguousarray(values.reshape(-1))).split(b"\n")
        count = values.shape[1]
        return [b",".join(fields[at : at + count]) for at in range(0, len(values) * count, count)]
