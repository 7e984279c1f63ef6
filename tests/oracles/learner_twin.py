"""A learner of one scale or of several for every loss but those of classes, row by row, out of twins of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ftprl.data import Batch
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals
from oracles.cells_twin import Cells, Vector
from oracles.dropping_twin import WINDOW
from oracles.experts_twin import Experts, Said, expert_names
from oracles.labels_twin import Labels
from oracles.losses_twin import KINKED, MARGIN, chance, cut, implicit, softplus
from oracles.mixture_twin import Mixture, mean, mixed


class LearnerTwin:
    """A model to read; `coin_input=False` hides the coin's score from the Newton experts."""

    def __init__(self, spec: Spec, *, coin_input: bool = True) -> None:
        self.spec, self.loss, self.is_log = spec, spec.loss, spec.loss == "logistic"
        self.labels = Labels(spec.loss, spec.tau if spec.loss == "quantile" else 0.5)
        self.cells = Cells(spec, labelled=spec.loss in KINKED)
        self.experts = Experts(spec, self.labels, coin_input)
        self.mixture = None
        if spec.several:
            self.mixture = Mixture(spec.loss, self.labels.tau, expert_names(spec), spec.scales)
        self.t, self.tallies = 0, np.zeros(3)  # loss, weight and rows
        self.said: Said | None = None  # of the row that was learned last

    # ---- a row ----

    def _read(self, slots: Vector, v: Vector, *, learns: bool) -> tuple[Said, tuple[Vector, Vector]]:
        if learns:
            self.cells.raise_units(slots, v)
        plays = self.cells.plays(slots)
        scores = self.cells.scores(v, *plays, offset=self.labels.m).tolist()
        e = self.experts
        return e.say(scores, e.coin_score(slots, v, learns=learns), e.columns_of(slots, v)), plays

    def say(self, slots: Any, v: Any) -> Said:
        """Return what the experts say of a row that is not learned now."""
        return self._read(np.asarray(slots), np.asarray(v, np.float64), learns=False)[0]

    def predict(self, said: Said) -> float:
        """Return the score of a row that is not learned, or learned again: without drift."""
        return self.predicted(said)[0]

    def predicted(self, said: Said, y: float = math.nan, w: list[float] | None = None) -> tuple[float, float]:
        """Return the score and its loss; `w` are the weights of the experts, without drift if none are given."""
        w = self.mixture.awake() if w is None and self.mixture is not None else w or [1.0]
        if self.mixture is None or not self.is_log:
            score = mean(w, said.experts) if self.mixture is not None else said.experts[0]
            return score, self.spec.scalar_loss().value(score, y) if y == y else y
        yes, no = (self._loss_of(w, said, side) for side in (1.0, -1.0))
        return no - yes, (yes if y > 0.0 else no) if y == y else y

    @staticmethod
    def _loss_of(w: list[float], said: Said, side: float) -> float:
        """Return the log loss of a label: from the mixed chance, unless one is hardly above 0."""
        chances = {1.0: 0.0, -1.0: 0.0}
        for part, s in zip(w, said.experts, strict=True):
            e = math.exp(-abs(s))
            chances[1.0] += part * ((1.0 if s >= 0.0 else e) / (1.0 + e))
            chances[-1.0] += part * ((e if s >= 0.0 else 1.0) / (1.0 + e))
        if min(chances.values()) >= 2.0**-900:
            return -math.log(chances[side])
        return mixed(w, [softplus(-side * s) for s in said.experts])

    def learn_row(
        self, slots: Any, v: Any, y: float, c: float = 1.0, *, late: Said | None = None, again: bool = False
    ) -> tuple[float, float]:
        """Return the score before the row and its loss; `late` is what was said when it came without its label.

        Rows that are learned `again`, in a later pass, teach the scales and the coin alone.
        """
        slots, v, L, e = np.asarray(slots), np.asarray(v, np.float64), self.labels, self.experts
        units = self.cells.unit[slots]
        now, plays = self._read(slots, v, learns=True)
        self.t, self.said = self.t + (not again), now
        if self.mixture is None or again:
            score, loss = self.predicted(now, y)
        else:
            judged = now if late is None else e.say(late.scores, late.coin, e.columns_of(slots, v))
            score, loss = self._mix(judged, late is not None, y, c)
        self.tallies += [c * loss, c, 1.0]
        unit, low, high, is_first = L.unit, L.lo, L.hi, L.rows == 0
        y = L.believed(y)
        L.learn(y, c)
        lo, hi = (L.lo, L.hi) if is_first else (min(low, L.lo), max(high, L.hi))
        teaches = L.U > 0.0 and (self.loss in (*MARGIN, "logistic") or not is_first)
        if teaches:
            if not again:
                e.learn_newtons(now, unit, lo, hi, y, c)
            self._learn_scales(slots, v, plays, now.scores, lo, hi, y, c)
        elif not self.spec.several:  # nothing of the row is kept but its label
            self.cells.unit[slots] = units
        e.learn_coin(self.coin_at(now.coin, lo, hi), y, c, teaches=teaches)
        if not again:
            e.learn_columns(slots, v, self.t)
            self._drop()
        return score, loss

    def coin_at(self, score: float, lo: float, hi: float) -> float:
        """Return where the coin's slope is taken."""
        return cut(score, lo, hi)

    def _mix(self, said: Said, is_late: bool, y: float, c: float) -> tuple[float, float]:
        """Return score and loss of the mixture, which then learns; drift sleeps where the label was late."""
        mixture, experts = self.mixture, list(said.experts)
        assert mixture is not None
        at = mixture.names.index("drift") if is_late and "drift" in mixture.names else -1
        if not self.is_log:
            p = mean(mixture.awake() if is_late else mixture.w, experts)
            if at >= 0:
                experts[at] = p
            return p, mixture.learn_scores(experts, p, y, self.labels.known_label(y), c, self.t)
        mixture.admit(c)
        w = mixture.awake() if is_late else mixture.w
        losses, chances = [softplus(-y * s) for s in experts], [chance(y * s) for s in experts]
        if at >= 0:
            chances[at] = mean(w, chances)
            losses[at] = -math.log(chances[at])
        other = mixed(w, [softplus(y * s) for s in experts])
        loss = mixture.learn_chances(losses, chances, c, self.t)
        return y * (other - loss), loss

    def _learn_scales(
        self, slots: Vector, v: Vector, plays: Any, scores: list[float], lo: float, hi: float, y: float, c: float
    ) -> None:
        A = np.zeros(len(scores)) if self.is_log else (c * self.labels.kappa) * self.cells.reach(slots, v)
        at = [cut(s, lo, hi) for s in scores]
        if self.loss in (*KINKED, "squared"):  # what is more than the width of the range beyond it counts
            wide = hi - lo
            at = [a + max(s - hi - wide, 0.0) + min(s - lo + wide, 0.0) for a, s in zip(at, scores, strict=True)]
        slopes = [c * implicit(self.labels, s, y, a) for s, a in zip(at, A.tolist(), strict=True)]
        self.step_scales(slots, v, plays, at, slopes, A, y, c)

    def step_scales(
        self, slots: Vector, v: Vector, plays: Any, at: list[float], slopes: list[float], A: Vector, y: float, c: float
    ) -> None:
        """Move the scales along weighted slopes, which are those of scores `at` after a step of reach A."""
        self.cells.learn(slots, v, *plays, np.array(slopes), self.labels.psi, self.labels.kappa)

    def _drop(self) -> None:
        """Drop the experts and scales that are not worth their time after this row."""
        if self.mixture is None:
            return
        for name in self.mixture.octaves.leaving(self.t):
            self.drop(name)
        first = self.mixture.octaves.window(self.t)
        if first is not None:
            self.keep_scales(first)

    def drop(self, name: str) -> None:
        """Drop an expert that is no scale."""
        scales, names = len(self.spec.scales), self.mixture.names
        self.mixture.keep([j for j, other in enumerate(names) if other != name], scales)
        self.experts.drop(name, scales)

    def keep_scales(self, first: int) -> None:
        """Keep four neighbouring scales."""
        before, stay = len(self.spec.scales), slice(first, first + WINDOW)
        self.mixture.keep([*range(before)[stay], *range(before, len(self.mixture.names))], WINDOW)
        self.experts.keep_scales(first, WINDOW, before)
        self.cells.keep(stay)
        self.spec = replace(self.spec, scale=self.spec.scales[stay])

    # ---- batches ----

    def learn(
        self,
        batch: Batch,
        scores: Vector | None = None,
        losses: Vector | None = None,
        late: dict[int, Said] | None = None,
        numbers: Sequence[int] = (),
    ) -> LossTotals:
        """Predict all rows and learn those with a label and a weight; `late` has what rows of these numbers said."""
        before = self.tallies.copy()
        for r in range(len(batch)):
            (slots, v), y, c = row_of(batch, r), float(batch.y[r]), float(batch.weight[r])
            if y == y and c > 0.0:
                score, loss = self.learn_row(slots, v, y, c, late=None if late is None else late.pop(numbers[r]))
            else:
                said = self.say(slots, v)
                score, loss = self.predicted(said, y)
                if late is not None:
                    late[numbers[r]] = said
            for to, number in ((scores, score), (losses, loss)):
                if to is not None:
                    to[r] = number
        loss, weight, rows = (self.tallies - before).tolist()
        return LossTotals(loss, weight, int(rows))

    def score(self, batch: Batch) -> Vector:
        """Return the score of each row, everything as it is."""
        return np.array([self.predict(self.say(*row_of(batch, r))) for r in range(len(batch))])


def row_of(batch: Batch, r: int) -> tuple[Vector, Vector]:
    """Return the cells and the values of a row."""
    row = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
    return batch.indices[row].astype(np.intp), batch.values[row].astype(np.float64)
