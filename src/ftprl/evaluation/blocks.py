"""Labels, weights, groups and predictions of rows, joined block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.evaluation.predictions import Predictor, Vector


@final
class Block(NamedTuple):
    """A block of rows.

    It has the number of the first row (from 1), labels, weights, one column of scores per predictor, and groups.
    """

    first: int
    y: Vector
    weight: Vector
    scores: Vector
    groups: NDArray[Any] | None

    def usable(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that have a label, a positive weight, and a prediction of every system."""
        return np.asarray((self.y == self.y) & (self.weight > 0.0) & (self.scores == self.scores).all(axis=1))


@final
@dataclass(slots=True)
class Measurable:
    """Counts of rows that cannot be measured: `left_out` have no prediction, `unlabelled` no label or no weight."""

    left_out: int = 0
    unlabelled: int = 0

    def rows(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        """Yield the usable rows of each block, and the numbers of these rows in the data."""
        for block in blocks:
            labelled, usable = int(((block.y == block.y) & (block.weight > 0.0)).sum()), block.usable()
            self.unlabelled += len(block.y) - labelled
            self.left_out += labelled - int(usable.sum())
            groups = None if block.groups is None else block.groups[usable]
            some = Block(block.first, block.y[usable], block.weight[usable], block.scores[usable], groups)
            yield some, block.first + np.flatnonzero(usable)


def left_out(counts: dict[str, int]) -> str:
    """Describe how many rows were left out, by reason; empty where every row was measured.

    >>> left_out({"without a prediction": 1200, "without a label": 0})
    '; left out: 1,200 without a prediction'
    """
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"; left out: {', '.join(parts)}" if parts else ""


def largest_first(slices: dict[str, Any]) -> list[tuple[str, int, Any]]:
    """Return (value, rows, sums) for each value of a column, the most frequent value first."""
    return sorted(((value, one.rows, one) for value, one in slices.items()), key=lambda entry: (-entry[1], entry[0]))


@final
@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Labels and weights of rows, with NaN and 0 for rows that could not be read."""

    y: Vector
    weight: Vector

    def __len__(self) -> int:
        return len(self.y)


@final
class _Queue:
    """A queue of blocks of any length, from which a requested number of rows is taken."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts, self._left, self.taken = parts, [], 0  # type: ignore[var-annotated]

    def take(self, rows: int) -> list[Any]:
        """Return the parts that make up the next rows; fewer rows at the end."""
        parts, missing = [], rows
        while missing and (self._left or self._more()):
            part = self._left.pop()
            parts.append(part[:missing])
            if len(part) > missing:
                self._left.append(part[missing:])
            missing -= len(parts[-1])
        self.taken += rows - missing
        return parts

    def _more(self) -> bool:
        """Load the next part that has rows; return False at the end."""
        for part in self._parts:
            if len(part):
                self._left.append(part)
                return True
        return False

    def rest(self) -> int:
        """Return the total number of rows, including those that were not requested."""
        self.taken += sum(map(len, self._left)) + sum(len(part) for part in self._parts)
        self._left = []
        return self.taken


def joined(
    batches: Iterable[Batch | LabelledRows],
    predictors: Sequence[Predictor],
    groups: Iterator[NDArray[Any]] | None = None,
    group_name: str = "",
) -> Iterator[Block]:
    """Yield the rows of batches with the predictions of every system.

    Raises InvalidInput if a system has more or fewer predictions than the data has rows.
    """
    queues = [_Queue(predictor.scores()) for predictor in predictors]
    names = [predictor.name for predictor in predictors]
    if groups is not None:
        queues, names = [*queues, _Queue(groups)], [*names, f"column {group_name!r}"]
    coming, rows = iter(batches), 0
    for batch in coming:
        columns = [_column(queue.take(len(batch))) for queue in queues]
        for name, column in zip(names, columns, strict=True):
            if len(column) < len(batch):
                _refuse_length(name, rows + len(column), rows + len(batch) + sum(len(more) for more in coming))
        scores = np.column_stack(columns[: len(predictors)])
        yield Block(rows + 1, batch.y, batch.weight, scores, None if groups is None else columns[-1])
        rows += len(batch)
    for name, queue in zip(names, queues, strict=True):
        if queue.rest() != rows:
            _refuse_length(name, queue.taken, rows)


def _column(parts: list[Any]) -> NDArray[Any]:
    """Return the parts as one array."""
    return np.concatenate(parts) if parts else np.empty(0)


def _refuse_length(name: str, got: int, rows: int) -> NoReturn:
    """Raise the error for predictions of a wrong length."""
    raise InvalidInput(
        f"{name}: expected a value for each of the {rows} rows of the data, got {got}; predict the same rows in the"
        " same order, with an empty line for a row without a prediction."
    )
