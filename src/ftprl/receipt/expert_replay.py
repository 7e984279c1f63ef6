"""The twin of the coin-betting expert and of the dense columns of the stack: docs/experts.md, in the same order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]
Floats = list[float]

RIDGE = 4.0  # the Hessian of the stack begins at this times the identity
WEALTH = 0.3  # of each coordinate of the coin before its first bet
MOST, DEVIATIONS, PART, FIRST = 64, 8.0, 0.625, 8  # columns; their cut; the rows that have one; the first row to watch
LEAST_DEVIATION = 2.0**-20  # of the mean: values that differ less are a constant
INPUTS = 88  # space for those of the stack
FACTS = 8
# Of a column: where its cell is stored; the mean and deviation its values are counted in; the rows that had it since
# the last power of two. While it is watched: the mean and the squares of its values, one of them, and whether there
# were others.
CELL, CENTRE, DEVIATION, MET, MEAN, SQUARES, ONE_VALUE, DIFFERS = range(FACTS)
ACTIVE, WATCHED, OWN, ROWS = range(4)  # of counts; OWN: inputs before the columns, 0 before there were any
# Of a coordinate of the coin; the last three of the intercept alone, and labels are only counted with the log loss.
THETA, SIZES, WON, LARGEST, BOUND, NEGATIVE, POSITIVE = range(7)
_CUT = {np.float32: 2.0**96, np.float64: 2.0**400}


def in_fours(terms: Vector) -> float:
    """A sum over every fourth number from the first, the second, ... on, and of these four."""
    whole = np.zeros(-(-len(terms) // 4) * 4)
    whole[: len(terms)] = terms
    a, b, c, d = np.add.reduce(whole.reshape(-1, 4), axis=0).tolist()
    return float((a + b) + (c + d))


@final
class CoinReplay:
    """Bets of every coordinate; `base` is the intercept, the largest weighted slope so far, and the labels so far."""

    def __init__(self, kind: type[np.floating[Any]], cells: int, intercept: bool) -> None:
        self.kind, self.intercept = kind, intercept
        self.cells = np.zeros((cells, 4), kind)
        self.base = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])

    def score(self, at: NDArray[np.int32], v: Vector) -> float:
        """The score of a row, with the intercept; the row counts for the largest values."""
        self.cells[at, LARGEST] = np.maximum(self.cells[at, LARGEST], np.abs(v).astype(self.kind))
        theta, sizes, won, largest = self.cells[at].astype(np.float64).T
        with np.errstate(over="ignore"):
            most_lost = largest * self.base[BOUND]
            held = most_lost * (most_lost + sizes)
        self._x = np.divide((WEALTH + won) * theta, held, out=np.zeros(len(v)), where=held > 0)
        total = in_fours(self._x * v)
        return total + (self._own_bet() + self._label_odds()) if self.intercept else total

    def count(self, y: float, weight: float) -> None:
        """The label of a row, for the base rate that scores are counted from."""
        if self.intercept:
            self.base[POSITIVE if y > 0 else NEGATIVE] += weight

    def _label_odds(self) -> float:
        """The log odds of the labels so far, with half a row of each class before them; 0 where none are counted."""
        half = 0.5 * float(self.base[BOUND])
        return math.log((float(self.base[POSITIVE]) + half) / (float(self.base[NEGATIVE]) + half))

    def _own_bet(self) -> float:
        theta, sizes, won, _, bound = self.base[: BOUND + 1].tolist()
        return float((WEALTH + won) * theta / (bound * (bound + sizes)))

    def learn(self, at: NDArray[np.int32], v: Vector, row_slope: float) -> None:
        """The step of the row that was scored last, by its weighted slope."""
        top, base = _CUT[self.kind], self.base
        slope = min(max(row_slope, -float(base[BOUND])), float(base[BOUND]))
        g = np.clip(slope * v, -top, top)
        theta, sizes, won, _ = self.cells[at].astype(np.float64).T
        self.cells[at, THETA] = theta - g
        self.cells[at, SIZES] = sizes + np.abs(g)
        self.cells[at, WON] = np.clip(won - g * self._x, -top, top)
        if self.intercept:
            bet = self._own_bet()
            base[WON] = np.clip(base[WON] - slope * bet, -_CUT[np.float64], _CUT[np.float64])
            base[THETA] -= slope
            base[SIZES] += abs(slope)
        base[BOUND] = max(float(base[BOUND]), abs(row_slope))


@final
class ColumnsReplay:
    """The dense columns, and the stack from the first one on; of several classes u and P have them as a last axis."""

    def __init__(self, classes: int | None = None) -> None:
        self.columns, self.counts = np.zeros((MOST, FACTS)), np.zeros(4)
        own = () if classes is None else (classes,)
        self.u, self.P = np.zeros((INPUTS, *own)), np.zeros((INPUTS, INPUTS, *own))

    @property
    def started(self) -> bool:
        """Whether the stack has columns, or had."""
        return bool(self.counts[OWN] > 0)

    def _sizes(self) -> tuple[int, int, int]:
        active, watched, own = self.counts[:ROWS].astype(int).tolist()
        return active, watched, own

    def read(self, at: NDArray[np.int32], v: Vector) -> Vector:
        """A 1 and the values of the active columns, in deviations from their means; the row is counted."""
        self.counts[ROWS] += 1.0
        active, watched, _ = self._sizes()
        own = self.columns[: active + watched]
        is_column = own[:, CELL][:, None] == at[None, :]
        met = is_column.any(axis=1)
        values = np.where(met, v[is_column.argmax(axis=1)] if len(v) else 0.0, 0.0)
        own[:, MET] += met
        deviations = (values[:active] - own[:active, CENTRE]) / own[:active, DEVIATION]
        inputs = np.concatenate([[1.0], np.clip(deviations, -DEVIATIONS, DEVIATIONS)])
        rest, values, met = own[active:], values[active:], met[active:]
        first = met & (rest[:, MET] == 1.0)
        rest[first, ONE_VALUE] = values[first]
        rest[met & (values != rest[:, ONE_VALUE]), DIFFERS] = 1.0
        d = values - rest[:, MEAN]
        rest[:, MEAN] += d / self.counts[ROWS]
        rest[:, SQUARES] += d * (values - rest[:, MEAN])
        return inputs

    def score(self, inputs: Vector) -> float:
        """What the constant and the columns add to the score of the stack."""
        own = self._sizes()[2]
        return in_fours(self.u[own - 1 : own - 1 + len(inputs)] * inputs)

    def newton(self, v: Floats, slope: float, b: float, weight: float) -> None:
        """A step of the stack, whose inputs are v."""
        n = len(v)
        P, values = self.P[:n, :n], np.array(v)
        Pv = np.add.reduce(P * values[:, None], axis=0)
        d = 1.0 + b * max(in_fours(Pv * values), 0.0)
        self.u[:n] -= (weight * slope / d) * Pv
        P -= (b / d) * np.outer(Pv, Pv)
        if not (np.diag(P) > 0).all():
            P[...] = np.eye(n) / RIDGE

    def review(self, at: NDArray[np.int32], v: Vector, t: int, units: Vector, seen: Vector, stack: Any) -> None:
        """Decide anew after row t, if t is a power of two, which columns are dense.

        `stack` has u and P until there are columns.
        """
        if t < FIRST or t & (t - 1):
            return
        rows = float(self.counts[ROWS])
        self._drop_rare(rows)
        self._adopt(rows, stack)
        active = self._sizes()[0]
        self.columns[:active, MET] = 0.0
        self.counts[ROWS] = 0.0
        known = self.columns[:active, CELL].tolist()
        dense = (seen >= PART * t) & (np.abs(v) != units)
        new = [number for number in at[dense].tolist() if number not in known][: MOST - active]
        self.columns[active : active + len(new)] = 0.0
        self.columns[active : active + len(new), CELL] = new
        self.counts[WATCHED] = len(new)

    def _drop_rare(self, rows: float) -> None:
        for j in reversed(range(self._sizes()[0])):
            if self.columns[j, MET] >= 0.5 * PART * rows:
                continue
            self._drop_input(self._sizes()[2] + j)
            self.columns[j:-1] = self.columns[j + 1 :].copy()
            self.counts[ACTIVE] -= 1

    def _drop_input(self, at: int) -> None:
        kept = [*range(at), *range(at + 1, INPUTS)]
        self.u[:-1], self.u[-1] = self.u[kept], 0.0
        P = self.P[np.ix_(kept, kept)]
        self.P[...] = 0.0
        self.P[:-1, :-1] = P

    def _adopt(self, rows: float, stack: Any) -> None:
        """Watched columns of numbers that most rows had become active."""
        active, watched, _ = self._sizes()
        for j in range(active, active + watched):
            column = self.columns[j]
            deviation = float(np.sqrt(column[SQUARES] / rows))
            enough = column[MET] >= PART * rows and column[DIFFERS] == 1.0
            if not (enough and deviation > LEAST_DEVIATION * abs(column[MEAN])):
                continue
            if not self.started:
                self._begin(stack)
            column[CENTRE], column[DEVIATION] = column[MEAN], deviation
            to, at = self._sizes()[0], sum(self._sizes()[::2])
            self.P[at, at] = 1.0 / RIDGE
            self.columns[to] = column
            self.counts[ACTIVE] += 1
        self.counts[WATCHED] = 0

    def _begin(self, stack: Any) -> None:
        """The stack goes on from where it is, with a constant of weight 0."""
        n = len(stack["u"])
        self.u[:n], self.P[:n, :n] = stack["u"], stack["P"]
        self.P[n, n] = 1.0 / RIDGE
        self.counts[OWN] = n + 1

    def keep(self, before: int, first: int, count: int) -> None:
        """Of the first `before` inputs keep `count` from number `first` on, and all behind them."""
        if not self.started:
            return
        for k in reversed(range(before)):
            if not first <= k < first + count:
                self._drop_input(k)
                self.counts[OWN] -= 1


@final
@dataclass
class Additions:
    """Both, as a row sees them: read before its label is known, learned after the mixture has set the coin's slope."""

    coin: CoinReplay | None
    columns: ColumnsReplay | None
    bet: float | None = None  # the coin's score
    inputs: Vector | None = None  # of the stack, from its columns; None before there are any
    slope: float = 0.0  # of the coin, weighted

    @classmethod
    def of(cls, spec: Spec, kind: type[np.floating[Any]], cells: int) -> Additions:
        """The coin and the dense columns, where the model has them."""
        coin = CoinReplay(kind, cells, spec.intercept) if spec.coin else None
        return cls(coin, ColumnsReplay() if spec.dense else None)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state, by name."""
        own: dict[str, NDArray[Any]] = {}
        if self.coin is not None:
            own |= {"coin": self.coin.cells, "coin_base": self.coin.base}
        if self.columns is not None:
            c = self.columns
            own |= {"columns": c.columns, "column_counts": c.counts, "dense_u": c.u, "dense_P": c.P}
        return own

    def read(self, at: NDArray[np.int32], v: Vector) -> None:
        """A row before its label is known."""
        self.bet = None if self.coin is None else self.coin.score(at, v)
        inputs = None if self.columns is None else self.columns.read(at, v)
        self.inputs = inputs if self.columns is not None and self.columns.started else None

    def learn(self, at: NDArray[np.int32], v: Vector, t: int, units: Vector, seen: Vector, stack: Any) -> None:
        """The same row, which is number t, after it."""
        if self.coin is not None:
            self.coin.learn(at, v, self.slope)
        if self.columns is not None:
            self.columns.review(at, v, t, units, seen, stack)
