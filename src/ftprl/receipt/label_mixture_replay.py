"""The twin of the mixture of several scales for every loss but the log loss: docs/labels.md, in the same order."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.mixture import experts_of
from ftprl.linear.spec import Spec
from ftprl.receipt.expert_replay import RIDGE, Additions
from ftprl.receipt.label_replay import LabelFacts, LabelledRow, cut, formulas_of, learn_row_label
from ftprl.receipt.mixture_replay import CUT, HEAVY, Blocks, added, drop_last, newton, share_after

Vector = NDArray[np.float64]
Floats = list[float]

RATES = (0.5, 0.125)  # of the two levels
LEAST_WEIGHT = 2.0**-1000  # without a share an expert whose weight is 0 could never come back
FIRST_REVIEW, LAST_REVIEW = 16, 256  # rows, and their doublings between
STRETCH_PART = 2.0**-4  # of D that the offset loses in a stretch of rows
LEAST_STRETCH, TOO_LONG = 4.0, 4.0  # rows; and how many times the longest stretch is too long
CAUTION = 24.0  # two classes: the odds of the majority while the mixture has no lead
SURE_GAP = 4.0  # the gap from which on a lead counts less
LARGEST_POWER = 32.0
LEAST_GAP = 2.0**-30  # part of the loss so far below which a gap is rounding
# The numbers in hedge; RECENT_LOSS is the loss since the last power of two of the rows.
GAP, LARGEST_GAP, RECENT_LOSS, STACK_LOSS, STACK_WEIGHT, LEVEL, SLOW_LEVEL = range(7)
STRETCH_LOSS, STRETCH_ROWS, LONGEST, LEAD, LEAD_GAP = range(7, 12)


def is_review(t: int) -> bool:
    """Whether the past is reviewed after row t: multiples of 16, from 2048 on of a 64th of the last power of two."""
    return t >= FIRST_REVIEW and t % max(FIRST_REVIEW, (1 << t.bit_length() - 1) // 64) == 0


@final
class LabelMixing:
    """The state of the mixture, and what a row does to it."""

    def __init__(self, spec: Spec, additions: Additions) -> None:
        self.spec, self.loss, self.additions = spec, spec.scalar_loss(), additions
        self.K, self.n = len(spec.scales), len(experts_of(spec))
        self.facts, self.formulas = LabelFacts(self.loss), formulas_of(self.loss)
        self.least_kappa = float(np.finfo(np.float64 if spec.float64 else np.float32).tiny)
        self.blocks = Blocks(self.K)
        self._bet = 0.0  # of the coin, in labels
        self._at = self.K + spec.stacked  # the expert that predicts from the labels alone
        columns = self.K + 2 * spec.level
        self.state: dict[str, Vector] = {
            "P": np.eye(columns) / RIDGE * spec.stacked,
            "u": np.concatenate([np.full(self.K, spec.stacked / self.K), np.zeros(2 * spec.level)]),
            "w": self._first_weights(),
            "totals": np.zeros(self.n),
            "hedge": np.zeros(LEAD_GAP + 1),
            "block": self.blocks.block,
            "windows": self.blocks.windows,
        }

    def _first_weights(self) -> Vector:
        if self.loss.has_offset:
            return np.full(self.n, 1.0 / self.n)
        part = 1.0 / (1.0 + CAUTION)
        w = np.full(self.n, part * (1.0 / self.n))
        w[self._at] += 1.0 - part
        return w

    def fewer(self, spec: Spec) -> LabelMixing:
        """An empty mixture of other scales with the same labels."""
        new = LabelMixing(spec, self.additions)
        new.facts = self.facts
        return new

    def without_coin(self, spec: Spec) -> LabelMixing:
        """The same mixture, whose last expert has been dropped."""
        self.spec, self.n = spec, self.n - 1
        drop_last(self.state)
        return self

    def _opinions(self, scores: Floats) -> tuple[float, Floats, Floats, float, float]:
        """The prediction, the experts, the scores as the stack sees them, and the stack without and with levels."""
        facts, columns, inputs, bet = self.facts, self.additions.columns, self.additions.inputs, self.additions.bet
        u = (self.state["u"] if columns is None or inputs is None else columns.u).tolist()
        experts = [facts.cut(s) for s in scores]
        seen = experts if self.loss.has_offset else [cut(s, -CUT, CUT) for s in scores]
        base = facts.offset + added([u[k] * (seen[k] - facts.offset) for k in range(self.K)])
        if columns is not None and inputs is not None:
            base = base + self._unit(facts.unit) * columns.score(inputs)
        f = base
        if self.spec.level:
            hedge = self.state["hedge"].tolist()
            f = base + self._unit(facts.unit) * (u[self.K] * hedge[LEVEL] + u[self.K + 1] * hedge[SLOW_LEVEL])
        if self.spec.stacked:
            experts = [*experts, facts.cut(self.loss.stack_gain * f)]
        experts = [*experts, facts.offset if self.loss.has_offset else float((facts.mean > 0) - (facts.mean < 0))]
        if bet is not None:
            self._bet = facts.offset + self._unit(facts.unit) * bet
            experts = [*experts, facts.cut(self._bet)]
        mean = added([a * b for a, b in zip(self.state["w"].tolist(), experts, strict=True)])
        return mean, experts, seen, base, f

    def _unit(self, unit: float) -> float:
        return unit if self.loss.predicts_labels else 1.0

    def learn(self, scores: Floats, y: float, weight: float, t: int) -> tuple[float, float, LabelledRow]:
        """The prediction for row t, counted from 1, its loss, and the row as the scales learn it."""
        mean, experts, seen, base, f = self._opinions(scores)
        loss = self.loss.value(mean, y)
        losses = [self.loss.value(s, y) for s in experts]
        self.state["totals"] += [weight * a for a in losses]
        if t > 1:
            if self.loss.has_offset:
                self.state["w"][:] = self.charge(mean, self.state["w"].tolist(), experts, y, weight, t)
            else:
                self._charge_classes(experts, y, weight, t)
        least = self.formulas.least(y)
        self.blocks.add([weight * (a - least) for a in losses[: self.K]], t)
        row = learn_row_label(self.facts, y, weight, self.least_kappa)
        if self.loss.predicts_labels and t > 1:
            self._review_past(row.learned, weight, t)
        if row.teaches and self.spec.stacked:
            self._stack(seen, base, f, row, t)
        if self.additions.bet is not None:
            self.additions.slope = weight * self._coin_slope(row) if row.teaches else 0.0
        return mean, loss, row

    def _coin_slope(self, row: LabelledRow) -> float:
        """The slope at the coin's score, in units of the labels."""
        s = row.cut(self._bet)
        if not self.loss.has_offset:
            return self.loss.slope(s, row.y)
        return self.formulas.stack(s, s, row.learned, 1.0, self.facts)[0]

    def _review_past(self, y: float, weight: float, t: int) -> None:
        """Begin anew where D comes from labels long past."""
        hedge = self.state["hedge"]
        D, rows, longest = float(hedge[LARGEST_GAP]), float(hedge[STRETCH_ROWS]) + 1.0, float(hedge[LONGEST])
        full = D > 0.0 and hedge[STRETCH_LOSS] >= STRETCH_PART * D
        stale = D > 0.0 and not full and rows >= TOO_LONG * max(longest, LEAST_STRETCH) and is_review(t)
        if full or stale:
            hedge[LONGEST] = max(longest, rows)
        if stale:
            self._forget_past(y, weight)
        hedge[STRETCH_ROWS] = rows
        if full or stale or D == 0.0:
            hedge[STRETCH_LOSS] = hedge[STRETCH_ROWS] = 0.0
        if t >= FIRST_REVIEW and t & (t - 1) == 0:
            if t <= LAST_REVIEW and hedge[LARGEST_GAP] > hedge[RECENT_LOSS]:
                self._forget_past(y, weight)
            hedge[RECENT_LOSS] = 0.0

    def _forget_past(self, y: float, weight: float) -> None:
        hedge = self.state["hedge"]
        hedge[GAP] = hedge[LARGEST_GAP] = hedge[RECENT_LOSS] = 0.0
        self.facts.begin_anew(y, weight)

    def known_label(self, y: float) -> float:
        """A label within the range that was known before it."""
        facts = self.facts
        if not self.loss.has_offset:
            return y
        if self.loss.rule == "log_mean":
            return min(y, math.exp(facts.high))
        low, high = (math.exp(facts.low), math.exp(facts.high)) if self.loss.link == "log" else (facts.low, facts.high)
        return min(max(y, low), high)

    def _charge_classes(self, experts: Floats, y: float, weight: float, t: int) -> None:
        """Two classes: the majority is predicted as well as the mixture, which counts by its lead."""
        hedge, part = self.state["hedge"], self._trusted_part()
        own = self.state["w"].tolist()
        own[self._at] -= 1.0 - part
        own = [max(a, LEAST_WEIGHT) for a in own]
        whole = added(own)
        own = [a / whole for a in own]
        mean = added([a * b for a, b in zip(own, experts, strict=True)])
        own = self.charge(mean, own, experts, y, weight, t)
        advantage = weight * (self.loss.value(experts[self._at], y) - self.loss.value(mean, y))
        rate = self._lead_rate()
        power = cut(rate * advantage, -LARGEST_POWER, LARGEST_POWER)
        gap = (math.log((1.0 - part) + part * math.exp(power)) - part * power) / rate
        hedge[LEAD_GAP] += max(gap, 0.0)
        hedge[LEAD] = max(float(hedge[LEAD]) + advantage, 0.0)
        part = self._trusted_part()
        self.state["w"][:] = [part * a for a in own]
        self.state["w"][self._at] += 1.0 - part

    def _lead_rate(self) -> float:
        """By how much a lead counts: less as the gaps add up."""
        return 1.0 / max(1.0, float(self.state["hedge"][LEAD_GAP]) / SURE_GAP)

    def _trusted_part(self) -> float:
        """The part of the mixture in a prediction; the rest is the majority's."""
        return 1.0 / (1.0 + CAUTION * math.exp(-self._lead_rate() * float(self.state["hedge"][LEAD])))

    def charge(self, mean: float, before: Floats, experts: Floats, y: float, weight: float, t: int) -> Floats:
        """The weights after row t, of those before it."""
        hedge, label, ln = self.state["hedge"], self.known_label(y), math.log(self.n)
        losses = [weight * self.loss.value(s, label) for s in experts]
        mixture_loss, low, D = weight * self.loss.value(mean, label), min(losses), float(hedge[LARGEST_GAP])
        hedge[RECENT_LOSS] += weight * abs(self.loss.value(mean, y))
        if self.loss.predicts_labels:
            hedge[STRETCH_LOSS] += losses[self._at]
        if D == 0.0:
            if mixture_loss - low > LEAST_GAP * hedge[RECENT_LOSS]:
                hedge[GAP] = hedge[LARGEST_GAP] = mixture_loss - low
            return before
        powers = [((low - b) / D) * ln for b in losses]
        w = [a * math.exp(b) for a, b in zip(before, powers, strict=True)]
        whole = added(w)
        gap = max(float(hedge[GAP]) + (mixture_loss - (low - math.log(whole) * D / ln)), 0.0)
        hedge[GAP] = gap
        if gap > D:  # from the weights before the row: at the rate that turned out too large, those after may be 0
            ratio = D / gap
            w = [a**ratio * math.exp(ratio * b) for a, b in zip(before, powers, strict=True)]
            whole = added(w)
            hedge[LARGEST_GAP] = gap
        a = share_after(self.spec, t)
        return [(1.0 - a) * max(b / whole, LEAST_WEIGHT) + a / self.n for b in w]

    def _stack(self, seen: Floats, base: float, f: float, row: LabelledRow, t: int) -> None:
        hedge, weight = self.state["hedge"], min(row.weight, HEAVY)
        unit = self._unit(row.new_unit)
        v = [(s - row.offset) / unit for s in seen]
        if self.spec.level:
            ratio = self._unit(row.unit) / unit
            v += [ratio * float(hedge[LEVEL]), ratio * float(hedge[SLOW_LEVEL])]
        if self.loss.link == "log":
            f, base = row.cut(f), row.cut(base)
        if self.loss.has_kink:
            hedge[STACK_WEIGHT] += weight
            value = self.loss.value(row.cut(f), row.learned)
            hedge[STACK_LOSS] += (weight / hedge[STACK_WEIGHT]) * (value - hedge[STACK_LOSS])
        slope, curvature, level = self.formulas.stack(f, base, row.learned, float(hedge[STACK_LOSS]), self.facts)
        columns, inputs = self.additions.columns, self.additions.inputs
        if columns is None or inputs is None:
            newton(self.state["P"], self.state["u"], v, slope, weight * curvature, weight)
        else:
            ratio = self._unit(row.unit) / unit
            columns.newton([*v, *(ratio * inputs).tolist()], slope, weight * curvature, weight)
        for j, rate in enumerate(RATES) if self.spec.level else ():
            hedge[LEVEL + j] += max(rate, 1.0 / t) * (level - hedge[LEVEL + j])
