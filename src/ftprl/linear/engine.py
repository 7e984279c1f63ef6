"""The compiled learner behind a typed door: batches in, scores and progress out."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import Learner
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """What some rows cost before they were learned: the weighted loss, the weight, the number of rows."""

    loss: float
    weight: float
    rows: int

    @property
    def mean(self) -> float:
        """The loss a unit of weight; NaN before the first row."""
        return self.loss / self.weight if self.weight else float("nan")

    def to_dict(self) -> dict[str, float]:
        """The three numbers and the mean."""
        return {**asdict(self), "mean": self.mean}


@final
@dataclass(frozen=True, slots=True)
class Sums:
    """What a receipt adds up over all rows: g·x, sigma x² and g² / (Q + l2), each over every coordinate."""

    linear: float
    proximal: float
    stability: float


@final
class RowRefused(InvalidInput):
    """A row that cannot be learned; `row` is its number in the stream."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@final
class Engine:
    """A table of cells that learns row by row: predict, pay, learn.

    >>> engine = Engine(Spec(loss="squared", dim=4))
    >>> batch = Batch.from_rows([{0: 1.0}, {0: 1.0}], y=[1, 1])
    >>> engine.learn(batch).rows
    2
    """

    def __init__(self, spec: Spec, *, receipt: bool = False) -> None:
        check.instance("spec", spec, Spec)
        self._spec = spec
        self._receipt = receipt
        self._core = Learner(
            spec.dim,
            float64=spec.float64,
            receipt=receipt,
            loss=spec.loss,
            scale=spec.scale,
            beta=spec.beta,
            l1=spec.l1,
            l2=spec.l2,
            lower=spec.lower,
            upper=spec.upper,
            intercept=spec.intercept,
            tau=spec.tau,
        )

    @property
    def spec(self) -> Spec:
        """What was asked for."""
        return self._spec

    @property
    def receipt(self) -> bool:
        """Whether the sums of a receipt are kept."""
        return self._receipt

    @property
    def cells(self) -> NDArray[np.float32] | NDArray[np.float64]:
        """The state, a row a cell: z, sqrt(G), M, g_{1:t}. A view: writing to it changes the model."""
        return self._core.cells

    @property
    def intercept(self) -> Vector:
        """The same four numbers for the intercept, always float64. A view."""
        return self._core.intercept

    @property
    def tallies(self) -> Vector:
        """The numbers behind `progress` and `sums`, in their order. A view."""
        return self._core.tallies

    @property
    def progress(self) -> Progress:
        """Of all rows so far; the same bits however they were cut into batches."""
        loss, weight, rows = self._core.tallies[:3].tolist()
        return Progress(loss, weight, int(rows))

    @property
    def sums(self) -> Sums:
        """What a receipt needs besides the cells; zeros without one."""
        return Sums(*self._core.tallies[3:].tolist())

    def learn(self, batch: Batch, *, scores: Vector | None = None, losses: Vector | None = None) -> Progress:
        """Predict and then learn each row that has a label and a weight above 0; the others are only scored.

        `scores` and `losses` are filled with a number a row when they are given: the prediction before the row was
        learned, and its loss without the weight (NaN without a label). A row at fault is refused with its number, and
        then no row of the batch has been learned.
        """
        check.instance("batch", batch, Batch)
        arrays = (batch.indptr, batch.indices, batch.values, batch.y, batch.weight)
        try:
            return Progress(*self._core.learn(*arrays, scores, losses, batch.first_row))
        except ValueError as wrong:
            raise _named(batch, wrong) from None

    def score(self, batch: Batch) -> Vector:
        """x·v for each row, with the weights as they are: what `weights()` and the intercept say."""
        check.instance("batch", batch, Batch)
        scores = np.empty(len(batch))
        try:
            self._core.score(batch.indptr, batch.indices, batch.values, scores, batch.first_row)
        except ValueError as wrong:
            raise _named(batch, wrong) from None
        return scores

    def weights(self) -> Vector:
        """The point x played in each cell."""
        x = np.empty(self._spec.dim)
        self._core.weights(x)
        return x

    def bias(self) -> float:
        """The point played for the intercept; 0 without one."""
        return float(self.score(Batch.from_rows([()]))[0])

    def copy(self) -> Engine:
        """A second engine in the same state."""
        twin = object.__new__(Engine)
        twin._spec, twin._receipt, twin._core = self._spec, self._receipt, self._core.copy()
        return twin


def _named(batch: Batch, wrong: ValueError) -> InvalidInput:
    where = f"{batch.origin}: " if batch.origin else ""
    found = re.match(r"row (\d+): ", str(wrong))
    message = f"{where}{wrong}."
    return RowRefused(message, int(found[1])) if found else InvalidInput(message)
