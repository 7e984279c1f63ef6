"""Labels, weights, groups and predictions of the same rows, brought together block by block."""

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
    """Some rows: number of the first (from 1), labels, weights, one column of scores per predictor, and groups."""

    first: int
    y: Vector
    weight: Vector
    scores: Vector
    groups: NDArray[Any] | None

    def usable(self) -> NDArray[np.bool_]:
        """Which rows have a label, a weight above 0, and a prediction of every system."""
        return np.asarray((self.y == self.y) & (self.weight > 0.0) & (self.scores == self.scores).all(axis=1))


@final
@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Labels and weights of some rows of the data, those included that could not be read: NaN and 0."""

    y: Vector
    weight: Vector

    def __len__(self) -> int:
        return len(self.y)


@final
class _Queue:
    """Blocks of any length, taken in parts of the length that is asked for."""

    def __init__(self, parts: Iterator[Any]) -> None:
        self._parts, self._left, self.taken = parts, [], 0  # type: ignore[var-annotated]

    def take(self, rows: int) -> list[Any]:
        """The next rows, or fewer at the end."""
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
        for part in self._parts:
            if len(part):
                self._left.append(part)
                return True
        return False

    def rest(self) -> int:
        """How many rows there are in all, those included that nobody asked for."""
        self.taken += sum(map(len, self._left)) + sum(len(part) for part in self._parts)
        self._left = []
        return self.taken


def joined(
    batches: Iterable[Batch | LabelledRows],
    predictors: Sequence[Predictor],
    groups: Iterator[NDArray[Any]] | None = None,
    group_name: str = "",
) -> Iterator[Block]:
    """The rows of batches with the predictions of every system; each must have as many as the data has rows."""
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
    return np.concatenate(parts) if parts else np.empty(0)


def _refuse_length(name: str, got: int, rows: int) -> NoReturn:
    raise InvalidInput(
        f"{name}: expected a value for each of the {rows} rows of the data, got {got}; predict the same rows in the"
        " same order, with an empty line for a row without a prediction."
    )
