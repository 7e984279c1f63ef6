"""Metrics that depend on the order of the scores: AUC, average precision, lift and curves; exact, in bounded memory.

Rows with equal scores are added up. If there are more scores than fit, sorted runs are written to a temporary folder
and merged in pieces (an external merge sort), so that results equal those of a sort of all rows. The slices of a column
share the memory of one ranking.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Table = NDArray[np.float64]  # columns: score, weight of positives and of negatives, squared weights of both
MOST_ROWS = 1 << 21  # kept in memory; about 84 MB
CURVE_POINTS = 400
TOP_PARTS = (0.01, 0.05, 0.10)
ONE_ROW = 1.0 + 1e-9  # the weight of one row, with rounding


@final
@dataclass(frozen=True, slots=True)
class Ranked:
    """The metrics that depend on the order of the scores.

    `auc_error` is the standard error of the AUC (DeLong). `precision_at` has, for each part of the weight with the
    highest scores, the share of positives in it and the equivalent number of rows. `curve` has the true positive rate,
    the false positive rate and the precision at falling thresholds.
    """

    auc: float
    auc_error: float
    average_precision: float
    positive_rows: float  # equivalent number of positive rows of weight 1
    negative_rows: float
    precision_at: dict[float, tuple[float, float]]
    curve: list[tuple[float, float, float]]
    runs: int  # that were merged


@final
class Ranking:
    """Scores with their class and weight, collected for a ranking.

    >>> ranking = Ranking()
    >>> ranking.add(np.array([0.9, 0.4, 0.1]), np.array([True, False, False]), np.ones(3))
    >>> ranking.ranked().auc
    1.0
    """

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most, self._parts, self._count = most_rows, list[Table](), 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._runs: list[Path] = []  # opened only to be merged: a process may have few files open

    @property
    def held(self) -> int:
        """Return the number of rows in memory."""
        return self._count

    def add(self, scores: Vector, is_positive: NDArray[np.bool_], weight: Vector) -> None:
        """Add rows."""
        p, n = np.where(is_positive, weight, 0.0), np.where(is_positive, 0.0, weight)
        self._parts.append(np.column_stack([scores, p, n, p * p, n * n]))
        self._count += len(scores)
        if self._count > self._most:
            self.compress()

    def compress(self) -> None:
        """Halve the memory at least, by adding up rows with equal scores or by writing them to disk."""
        before, whole = self._count, _grouped(np.concatenate(self._parts))
        self._parts, self._count = [whole], len(whole)
        if len(whole) > before // 2:
            self._spill(whole)

    def _spill(self, whole: Table) -> None:
        """Write a sorted table to the temporary folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="ftprl-ranking-")
        path = Path(self._folder.name) / f"{len(self._runs)}.npy"
        np.save(path, whole)
        self._runs.append(path)
        self._parts, self._count = [], 0

    def ranked(self) -> Ranked | None:
        """Return the metrics, or None unless there are both classes; the collected rows are dropped."""
        runs: list[Any] = [np.load(path, mmap_mode="r") for path in self._runs]
        if self._parts and self._count:
            runs.append(_grouped(np.concatenate(self._parts)))
        self._runs, self._parts, self._count = [], [], 0
        try:
            return _summary(runs, self._most)
        finally:
            del runs
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None


@final
class SliceRankings:
    """One ranking for each value of a column; together they keep as many rows in memory as a single one."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most, self._held, self._slices = most_rows, 0, dict[str, Ranking]()

    def add(self, value: str, scores: Vector, is_positive: NDArray[np.bool_], weight: Vector) -> None:
        """Add rows with this value."""
        if value not in self._slices:
            self._slices[value] = Ranking(self._most)
        self._changed(self._slices[value], lambda one: one.add(scores, is_positive, weight))
        while self._held > self._most:
            self._changed(max(self._slices.values(), key=lambda one: one.held), Ranking.compress)

    def _changed(self, one: Ranking, change: Callable[[Ranking], None]) -> None:
        """Change one ranking and update the number of rows in memory."""
        before = one.held
        change(one)
        self._held += one.held - before

    @property
    def held(self) -> int:
        """Return the number of rows in memory."""
        return self._held

    def ranked(self, value: str) -> Ranked | None:
        """Return the metrics of a value, or None as `Ranking.ranked` does."""
        one = self._slices.pop(value, None)
        return None if one is None else one.ranked()


def _grouped(table: Table) -> Table:
    """Return the table sorted by falling score, with rows of equal score added up.

    >>> table = np.array([[1.0, 1, 0, 1, 0], [3.0, 0, 1, 0, 1], [1.0, 1, 0, 1, 0]])
    >>> _grouped(table)[:, :2]
    array([[3., 0.],
           [1., 2.]])
    """
    order = np.argsort(-table[:, 0], kind="stable")
    table = table[order]
    starts = np.flatnonzero(np.concatenate(([True], table[1:, 0] != table[:-1, 0])))
    if len(starts) == len(table):
        return table
    return np.column_stack([table[starts, 0], np.add.reduceat(table[:, 1:], starts, axis=0)])


def _merged(runs: list[Any], most_rows: int) -> Iterator[Table]:
    """Yield all runs as one sorted table, in pieces; no score is in two pieces."""
    if len(runs) == 1:
        yield np.asarray(runs[0])
        return
    step = max(1, most_rows // (2 * len(runs)))
    cuts = np.unique(np.concatenate([np.asarray(run[::step, 0]) for run in runs]))[::-1][:: max(1, len(runs) // 2)]
    before = [0] * len(runs)
    for cut in [*cuts, -math.inf]:
        ends = [_first_below(run, start, cut) for run, start in zip(runs, before, strict=True)]
        blocks = [np.asarray(run[a:b]) for run, a, b in zip(runs, before, ends, strict=True) if b > a]
        before = ends
        if blocks:
            yield _grouped(np.concatenate(blocks))


def _first_below(run: Any, start: int, cut: float) -> int:
    """Return the first row from `start` on whose score is below a cut."""
    low, high = start, len(run)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if run[middle, 0] >= cut else (low, middle)
    return low


def _summary(runs: list[Any], most_rows: int) -> Ranked | None:
    """Return the metrics of sorted runs, or None unless there are both classes."""
    totals = np.zeros(4)
    for table in _merged(runs, most_rows) if runs else ():
        totals += table[:, 1:].sum(axis=0)
    positives, negatives = float(totals[0]), float(totals[1])
    if not (positives > 0.0 and negatives > 0.0):
        return None
    auc = _area(runs, most_rows, positives, negatives)
    positive_rows, negative_rows = positives**2 / float(totals[2]), negatives**2 / float(totals[3])
    spread = _Spread(auc, positives, negatives)
    walk = _Walk(positives, negatives)
    for table in _merged(runs, most_rows):
        spread.add(table)
        walk.add(table)
    return Ranked(
        auc=auc,
        auc_error=math.sqrt(
            _unbiased(spread.of_positives, positive_rows) + _unbiased(spread.of_negatives, negative_rows)
        ),
        average_precision=walk.average_precision,
        positive_rows=positive_rows,
        negative_rows=negative_rows,
        precision_at=walk.precision_at,
        curve=walk.curve(),
        runs=len(runs),
    )


def _unbiased(variance: float, rows: float) -> float:
    """Return the unbiased variance around a mean of the same rows, infinite for a single row."""
    return variance * rows / (rows - 1.0) if rows > ONE_ROW else math.inf


def _area(runs: list[Any], most_rows: int, positives: float, negatives: float) -> float:
    """Return the probability that a positive has a higher score than a negative; a tie counts one half."""
    area = above = 0.0
    for table in _merged(runs, most_rows):
        p, n = table[:, 1], table[:, 2]
        before = above + np.cumsum(p) - p
        area += float((n * (before + 0.5 * p)).sum())
        above += float(p.sum())
    return area / (positives * negatives)


@final
class _Spread:
    """DeLong's variance of the AUC.

    It is the variance, over rows, of the share of the other class that a row is ranked correctly against.
    """

    def __init__(self, auc: float, positives: float, negatives: float) -> None:
        self._auc, self._p, self._n = auc, positives, negatives
        self._above_p = self._above_n = self.of_positives = self.of_negatives = 0.0

    def add(self, table: Table) -> None:
        """Add the next piece of a sorted table."""
        p, n, p2, n2 = table[:, 1], table[:, 2], table[:, 3], table[:, 4]
        higher_p, higher_n = self._above_p + np.cumsum(p) - p, self._above_n + np.cumsum(n) - n
        of_positive = 1.0 - (higher_n + 0.5 * n) / self._n - self._auc
        of_negative = (higher_p + 0.5 * p) / self._p - self._auc
        self.of_positives += float((p2 * of_positive**2).sum()) / self._p**2
        self.of_negatives += float((n2 * of_negative**2).sum()) / self._n**2
        self._above_p += float(p.sum())
        self._above_n += float(n.sum())


@final
class _Walk:
    """A pass over falling scores: average precision, the share of positives at the top, and points of the curves."""

    def __init__(self, positives: float, negatives: float) -> None:
        self._p, self._n = positives, negatives
        self._above = np.zeros(4)  # sums over earlier groups
        self.average_precision = 0.0
        self.precision_at: dict[float, tuple[float, float]] = {}
        self._points: list[tuple[float, float, float]] = [(0.0, 0.0, 1.0)]

    def add(self, table: Table) -> None:
        """Add the next piece of a sorted table."""
        sums = self._above + np.cumsum(table[:, 1:], axis=0)
        p, n = sums[:, 0], sums[:, 1]
        precision = p / (p + n)
        self.average_precision += float((table[:, 1] * precision).sum()) / self._p
        self._top(table, sums)
        recall, fall_out = p / self._p, n / self._n
        keep = np.unique(np.searchsorted(np.maximum(recall, fall_out), np.linspace(0, 1, CURVE_POINTS)))
        keep = np.unique(np.append(keep[keep < len(p)], len(p) - 1))
        rows = zip(recall[keep].tolist(), fall_out[keep].tolist(), precision[keep].tolist(), strict=True)
        self._points += list(rows)
        self._above = sums[-1]

    def _top(self, table: Table, sums: Table) -> None:
        """Record the precision of each top part that ends in this piece."""
        weight = sums[:, 0] + sums[:, 1]
        for part in TOP_PARTS:
            wanted = part * (self._p + self._n)
            if part in self.precision_at or weight[-1] < wanted:
                continue
            at = int(np.searchsorted(weight, wanted))
            before = self._above if at == 0 else sums[at - 1]
            share = (wanted - before[0] - before[1]) / (weight[at] - before[0] - before[1])  # within equal scores
            inside = before + share * table[at, 1:]
            rows = wanted**2 / max(float(inside[2] + inside[3]), 1e-300)
            self.precision_at[part] = (float(inside[0]) / wanted, rows)

    def curve(self) -> list[tuple[float, float, float]]:
        """Return at most a few hundred points of the curve."""
        step = max(1, len(self._points) // (2 * CURVE_POINTS))
        return [*self._points[::step], self._points[-1]]
