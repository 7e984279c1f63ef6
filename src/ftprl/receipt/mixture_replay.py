"""The twin of the mixture of several scales: from K scores to one prediction, and from a label to new weights."""

from __future__ import annotations

import math
import sys
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.mixture import WINDOW
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]
Floats = list[float]

CUT = 8.0  # the stack sees scores cut to this
RIDGE = 4.0  # its Hessian begins at this times the identity
CURVE = 2.0**-13  # and takes no row for flatter
HEAVY = 2.0**10  # nor for heavier
SHARE = 2.0**-10  # the largest share when it is capped
LEAST_CHANCE = 2.0**-900  # a mixture that gave the label less works with logarithms
BLOCK = 1024
W, B, GAP = 0, 1, 2  # the places of facts
BEFORE, CURRENT, LATEST = 0, 1, 2  # the rows of windows
_HEX = """
    0x1.5555555555555p-1 0x1.9999999999944p-2 0x1.2492492499d46p-2 0x1.c71c71bedea97p-3
    0x1.745d19937b1fcp-3 0x1.3b13515f6f9efp-3 0x1.111abdc8abe16p-3 0x1.e0a2d581ab68fp-4
    0x1.bc37f0140c19ep-4 0x1.32e0d25c9c761p-4 0x1.401d3e65cdc48p-3
"""
_ATANH = [float.fromhex(a) for a in _HEX.split()]  # as in src/core/learners/mix.inl


def added(terms: Floats) -> float:
    """The sum upwards from 0 (the built-in corrects for rounding from Python 3.12 on)."""
    whole = 0.0
    for term in terms:
        whole += term
    return whole


def _within(v: float, bound: float) -> float:
    return min(max(v, -bound), bound)


def _chance(v: float) -> float:
    """The probability of the label at a score that speaks for it by v."""
    e = math.exp(-abs(v))
    return (e if v < 0.0 else 1.0) / (1.0 + e)


def _exp(v: float) -> float:
    return math.exp(v) if v > -math.inf else 0.0


def log1p(e: float) -> float:
    """log(1 + e) for e from 0 to 1, as the kernel takes it: 2 atanh(s) with s = e / (2 + e).

    >>> abs(log1p(0.5) - math.log1p(0.5)) < 1e-15
    True
    """
    s = e / (2.0 + e)
    w, q = s * s, _ATANH[-1]
    for a in _ATANH[-2::-1]:
        q = q * w + a
    return s * (2.0 + w * q)


def softplus(v: float) -> float:
    """The log loss of the score -v."""
    return max(v, 0.0) + log1p(math.exp(-abs(v)))


@final
class Mixing:
    """The state of the mixture, and what a row does to it."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.loss = spec, spec.scalar_loss()
        self.kind = self.loss.mixing
        K = len(spec.scales)
        self.K, self.n = K, K + spec.stacked
        windows = K - WINDOW + 2 if K > WINDOW else 0
        w = np.zeros(K + 1)
        w[: self.n] = 1.0 / self.n
        self.state: dict[str, Vector] = {
            "P": np.eye(K) / RIDGE * spec.stacked,
            "u": np.full(K, spec.stacked / K),
            "w": w,
            "totals": np.zeros(K + 1),
            "seen": np.zeros(K + 1),
            "facts": np.array([1.0, 0.0, 0.0]),
            "block": np.zeros(K),
            "windows": np.zeros((3, windows)),
            "sums": np.zeros((3, K)),
        }

    @property
    def _w(self) -> Floats:
        return [float(a) for a in self.state["w"][: self.n]]

    def _weigh(self, w: Floats) -> None:
        whole = added(w)
        self.state["w"][: self.n] = [a / whole for a in w]

    def _experts(self, scores: Floats) -> Floats:
        """The scores of the experts: those of the scales, and the stack's."""
        if not self.spec.stacked:
            return scores
        return [*scores, added([a * _within(b, CUT) for a, b in zip(self.state["u"].tolist(), scores, strict=True)])]

    def _mixed(self, losses: Floats) -> float:
        """-ln sum w e^-l; the weights of the Bayes mixture are taken from the totals, where none is 0."""
        if self.spec.share != 0.0:
            low = min(losses)
            return low - math.log(added([a * math.exp(low - b) for a, b in zip(self._w, losses, strict=True)]))
        seen, heat = [float(a) for a in self.state["seen"][: self.n]], self._heat()
        behind = [(a - min(seen)) / heat for a in seen]
        sums = [a + b for a, b in zip(losses, behind, strict=True)]
        weights = added([math.exp(-a) for a in behind])
        return min(sums) - math.log(added([math.exp(min(sums) - a) for a in sums]) / weights)

    def tell(self, scores: Floats, y: float) -> tuple[float, float]:
        """The mixture's score, and its loss (NaN without a label)."""
        if self.kind == "log_loss":
            experts = self._experts(scores)
            yes, no = (self._mixed([softplus(-side * s) for s in experts]) for side in (1.0, -1.0))
            return no - yes, (yes if y > 0 else no) if y == y else y
        bound = float(self.state["facts"][B]) if self.kind == "squared" else self.loss.clip
        mean = added([a * _within(b, bound) for a, b in zip(self._w, scores, strict=True)])
        return mean, self.loss.value(mean, y) if y == y else y

    def learn(self, scores: Floats, y: float, weight: float, t: int) -> tuple[float, float]:
        """The same for row t, counted from 1, and then what the row teaches the mixture."""
        state, facts = self.state, self.state["facts"]
        value = self.loss.value if self.kind != "log_loss" else lambda s, y: softplus(-y * s)
        losses = [value(s, y) for s in self._experts(scores)]
        if weight > facts[W]:
            self._cool(float(facts[W]) / weight, weight)
        told = self.tell(scores, y)
        if self.kind == "log_loss":
            experts = self._experts(scores)
            slope_at, chances = experts[-1], [_chance(y * s) for s in experts]
            total = added([a * b for a, b in zip(self._w, chances, strict=True)])
            plain = self.spec.share != 0.0 and total >= LEAST_CHANCE
            if plain:
                loss = -math.log(total)
                told = y * (self._mixed([softplus(y * s) for s in experts]) - loss), loss
            state["seen"][: self.n] += [weight * a for a in losses]
            self._share(losses, weight, t, chances if plain else None)
            if self.spec.stacked:
                self._newton(scores, slope_at, y, weight)
        elif self.kind == "squared":
            self._squared(scores, y, weight, t)
        else:
            self._hedge(told[1], losses, weight)
        state["totals"][: self.n] += [weight * a for a in losses]
        self._blocks([weight * a for a in losses[: self.K]], t)
        return told

    def _heat(self) -> float:
        top, label = (float(a) for a in self.state["facts"][:2])
        return top * (4.0 * (label * label)) if self.kind == "squared" else top

    def _bayes(self) -> None:
        seen, heat = self.state["seen"].tolist()[: self.n], self._heat()
        self._weigh([math.exp((min(seen) - a) / heat) if heat > 0 else 1.0 for a in seen])

    def _cool(self, ratio: float, weight: float) -> None:
        self.state["facts"][W] = weight
        if self.kind == "hedge":
            return
        if self.spec.share == 0.0:
            self._bayes()
        else:
            self._weigh([a**ratio for a in self._w])

    def _share(self, losses: Floats, weight: float, t: int, chances: Floats | None = None) -> None:
        if self.spec.share == 0.0:
            return self._bayes()
        heat, low = self._heat(), min(losses)
        rate = min(weight / heat, sys.float_info.max) if heat > 0 else 0.0
        powers = [math.exp(rate * (low - b)) for b in losses] if chances is None or rate != 1.0 else chances
        w = [a * b for a, b in zip(self._w, powers, strict=True)]
        whole, falling = added(w), 1.0 / (t + 1.0)
        named = {"auto": falling, "capped": min(SHARE, falling)}
        a = named[self.spec.share] if isinstance(self.spec.share, str) else self.spec.share
        self.state["w"][: self.n] = [(1.0 - a) * (b / whole) + a / self.n for b in w]
        return None

    def _newton(self, scores: Floats, f: float, y: float, weight: float) -> None:
        P, u, weight = self.state["P"], self.state["u"], min(weight, HEAVY)
        v = [_within(s, CUT) for s in scores]
        e = math.exp(-abs(f))
        p = (1.0 if f >= 0 else e) / (1.0 + e)
        b = weight * max(p * (1.0 - p), CURVE)
        Pv = [added([c * d for c, d in zip(row, v, strict=True)]) for row in P.tolist()]
        d = 1.0 + b * max(added([c * e for c, e in zip(v, Pv, strict=True)]), 0.0)
        u -= (weight * self.loss.slope(f, y)) / d * np.array(Pv)
        P -= (b / d) * np.outer(Pv, Pv)
        if not (np.diag(P) > 0).all():
            P[...] = np.eye(self.K) / RIDGE

    def _squared(self, scores: Floats, y: float, weight: float, t: int) -> None:
        facts = self.state["facts"]
        old = float(facts[B])
        if abs(y) > old:
            facts[B] = abs(y)
            if self.spec.share != 0.0:
                ratio = old / abs(y)
                self._weigh([a ** (ratio * ratio) for a in self._w])
        cut = [self.loss.value(_within(s, old), y) for s in scores]
        self.state["seen"][: self.K] += [weight * a for a in cut]
        self._share(cut, weight, t)

    def _soft_minimum(self, gap: float) -> float:
        seen = [float(a) for a in self.state["seen"][: self.K]]
        low, ln = min(seen), math.log(self.K)
        if not gap > 0:
            return low
        return low - gap / ln * math.log(added([_exp((low - a) / gap * ln) for a in seen]) / self.K)

    def _hedge(self, paid: float, losses: Floats, weight: float) -> None:
        facts, seen = self.state["facts"], self.state["seen"]
        old = float(facts[GAP])
        before = self._soft_minimum(old)
        seen[: self.K] += [weight * a for a in losses]
        gap = old + max(weight * paid - (self._soft_minimum(old) - before), 0.0)
        facts[GAP] = gap
        behind = [min(seen[: self.K].tolist()) - a for a in seen[: self.K].tolist()]
        ln = math.log(self.K)
        self._weigh([1.0 if a == 0.0 else _exp(a / gap * ln) if gap > 0 else 0.0 for a in behind])

    def _blocks(self, losses: Floats, t: int) -> None:
        if self.K <= WINDOW:
            return
        block, windows = self.state["block"], self.state["windows"]
        block += losses
        if t % BLOCK:
            return
        first = t - BLOCK
        if first > 0 and first & (first - 1) == 0:
            windows[BEFORE] = windows[CURRENT]
            windows[CURRENT] = 0.0
        windows[CURRENT] += [*(min(block[i : i + WINDOW]) for i in range(self.K - WINDOW + 1)), min(block)]
        if t & (t - 1) == 0:
            windows[LATEST] = windows[BEFORE] + windows[CURRENT]
        block[:] = 0.0
