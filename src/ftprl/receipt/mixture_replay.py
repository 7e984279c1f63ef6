"""The twin of the mixture of several scales with the log loss: from K scores to one prediction, and to new weights."""

from __future__ import annotations

import math
import sys
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.mixture import WINDOW
from ftprl.linear.spec import Spec
from ftprl.receipt.expert_replay import RIDGE, Additions

Vector = NDArray[np.float64]
Floats = list[float]

CUT = 8.0  # the stack sees scores cut to this
CURVE = 2.0**-13  # and takes no row for flatter
HEAVY = 2.0**10  # nor for heavier
SHARE = 2.0**-10  # the largest share when it is capped
USUAL_SCALE, USUAL_WIDTH = 0.2, 1.5  # scales near it begin with more weight; the width is in the logarithm of a scale
LEAST_CHANCE = 2.0**-900  # a mixture that gave the label less works with logarithms
BLOCK = 1024
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
class Blocks:
    """The losses of the scales in blocks of rows, by which it is decided which of them stay."""

    def __init__(self, K: int) -> None:
        self.K = K
        self.block, self.windows = np.zeros(K), np.zeros((3, K - WINDOW + 2 if K > WINDOW else 0))

    def add(self, losses: Floats, t: int) -> None:
        """The losses of the scales in row t."""
        if self.K <= WINDOW:
            return
        block, windows = self.block, self.windows
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


def newton(P: Vector, u: Vector, v: Floats, slope: float, b: float, weight: float) -> None:
    """A step of the stack, in place: its inputs v, the slope and the curvature (times the weight) of its loss."""
    Pv = [added([c * d for c, d in zip(row, v, strict=True)]) for row in P.tolist()]
    d = 1.0 + b * max(added([c * e for c, e in zip(v, Pv, strict=True)]), 0.0)
    u -= (weight * slope) / d * np.array(Pv)
    P -= (b / d) * np.outer(Pv, Pv)
    if not (np.diag(P) > 0).all():
        P[...] = np.eye(len(P)) / RIDGE


def first_weights(spec: Spec) -> Vector:
    """The weights of the experts before the first row, with the log loss: more for scales near 0.2 beside a coin."""
    n = len(spec.scales) + spec.stacked + spec.coin
    if not spec.coin or spec.share == 0.0:
        return np.full(n, 1.0 / n)
    away = [math.log(h / USUAL_SCALE) / USUAL_WIDTH for h in spec.scales]
    own = [2.0 / (1.0 + a * a) for a in away] + [1.0] * (n - len(away))
    return np.array(own) / added(own)


def share_after(spec: Spec, t: int) -> float:
    """The part of the weights that is shared out after row t."""
    falling = 1.0 / (t + 1.0)
    named = {"auto": falling, "capped": min(SHARE, falling)}
    return named[spec.share] if isinstance(spec.share, str) else spec.share


def drop_last(state: dict[str, Vector]) -> None:
    """The experts without the last one; the others share its weight."""
    for name in state.keys() & {"w", "totals", "seen"}:
        state[name] = state[name][:-1].copy()
    total, n = added(state["w"].tolist()), len(state["w"])
    state["w"][:] = state["w"] / total if total > 0 else 1.0 / n


@final
class Mixing:
    """The state of the mixture, and what a row does to it."""

    def __init__(self, spec: Spec, additions: Additions) -> None:
        self.spec, self.loss, self.additions = spec, spec.scalar_loss(), additions
        K = len(spec.scales)
        self.K, self.n = K, K + spec.stacked + spec.coin
        self.blocks = Blocks(K)
        self.state: dict[str, Vector] = {
            "P": np.eye(K) / RIDGE * spec.stacked,
            "u": np.full(K, spec.stacked / K),
            "w": first_weights(spec),
            "totals": np.zeros(self.n),
            "seen": np.zeros(self.n),
            "facts": np.array([1.0, 0.0, 0.0]),
            "block": self.blocks.block,
            "windows": self.blocks.windows,
        }

    def fewer(self, spec: Spec) -> Mixing:
        """An empty mixture of other scales."""
        return Mixing(spec, self.additions)

    def without_coin(self, spec: Spec) -> Mixing:
        """The same mixture, whose last expert has been dropped."""
        self.spec, self.n = spec, self.n - 1
        drop_last(self.state)
        return self

    @property
    def _w(self) -> Floats:
        return [float(a) for a in self.state["w"]]

    def _weigh(self, w: Floats) -> None:
        whole = added(w)
        self.state["w"][:] = [a / whole for a in w]

    def _experts(self, scores: Floats) -> Floats:
        """The scores of the experts: those of the scales, the stack's and the coin's."""
        bet = [] if self.additions.bet is None else [self.additions.bet]
        if not self.spec.stacked:
            return [*scores, *bet]
        seen = [_within(s, CUT) for s in scores]
        columns, inputs = self.additions.columns, self.additions.inputs
        if columns is None or inputs is None:
            return [*scores, added([a * b for a, b in zip(self.state["u"].tolist(), seen, strict=True)]), *bet]
        own = added([a * b for a, b in zip(columns.u[: self.K].tolist(), seen, strict=True)])
        return [*scores, own + columns.score(inputs), *bet]

    def mixed(self, losses: Floats) -> float:
        """-ln sum w e^-l; the weights of the Bayes mixture are taken from the totals, where none is 0."""
        if self.spec.share != 0.0:
            low = min(losses)
            return low - math.log(added([a * math.exp(low - b) for a, b in zip(self._w, losses, strict=True)]))
        seen, largest = [float(a) for a in self.state["seen"]], self._largest_weight()
        behind = [(a - min(seen)) / largest for a in seen]
        sums = [a + b for a, b in zip(losses, behind, strict=True)]
        weights = added([math.exp(-a) for a in behind])
        return min(sums) - math.log(added([math.exp(min(sums) - a) for a in sums]) / weights)

    def predict(self, scores: Floats, y: float) -> tuple[float, float]:
        """The mixture's score, and its loss (NaN without a label)."""
        experts = self._experts(scores)
        yes, no = (self.mixed([softplus(-side * s) for s in experts]) for side in (1.0, -1.0))
        return no - yes, (yes if y > 0 else no) if y == y else y

    def learn(self, scores: Floats, y: float, weight: float, t: int) -> tuple[float, float]:
        """The same for row t, counted from 1, and then what the row teaches the mixture."""
        state, facts = self.state, self.state["facts"]
        experts = self._experts(scores)
        losses = [softplus(-y * s) for s in experts]
        if weight > facts[0]:
            self.admit(weight)
        prediction = self.predict(scores, y)
        chances = [_chance(y * s) for s in experts]
        total = added([a * b for a, b in zip(self._w, chances, strict=True)])
        directly = self.spec.share != 0.0 and total >= LEAST_CHANCE
        if directly:
            loss = -math.log(total)
            prediction = y * (self.mixed([softplus(y * s) for s in experts]) - loss), loss
        state["seen"] += [weight * a for a in losses]
        self.share(losses, weight, t, chances if directly else None)
        if self.spec.stacked:
            self._newton(scores, experts[self.K], y, weight)
        if self.additions.bet is not None:
            self.additions.slope = weight * self.loss.slope(self.additions.bet, y)
            if self.additions.coin is not None:
                self.additions.coin.count(y, weight)
        state["totals"] += [weight * a for a in losses]
        self.blocks.add([weight * a for a in losses[: self.K]], t)
        return prediction

    def _largest_weight(self) -> float:
        """The largest weight so far."""
        return float(self.state["facts"][0])

    def _bayes(self) -> None:
        seen, largest = self.state["seen"].tolist(), self._largest_weight()
        self._weigh([math.exp((min(seen) - a) / largest) if largest > 0 else 1.0 for a in seen])

    def admit(self, weight: float) -> None:
        """Rescale the mixture for a new largest weight."""
        ratio = float(self.state["facts"][0]) / weight
        self.state["facts"][0] = weight
        if self.spec.share == 0.0:
            self._bayes()
        else:
            self._weigh([a**ratio for a in self._w])

    def share(self, losses: Floats, weight: float, t: int, chances: Floats | None = None) -> None:
        """The weights after row t, in which the experts had these losses; `chances` are e^-loss, if known."""
        if self.spec.share == 0.0:
            return self._bayes()
        largest, low = self._largest_weight(), min(losses)
        rate = min(weight / largest, sys.float_info.max) if largest > 0 else 0.0
        powers = [math.exp(rate * (low - b)) for b in losses] if chances is None or rate != 1.0 else chances
        w = [a * b for a, b in zip(self._w, powers, strict=True)]
        whole, a = added(w), share_after(self.spec, t)
        self.state["w"][:] = [(1.0 - a) * (b / whole) + a / self.n for b in w]
        return None

    def _newton(self, scores: Floats, f: float, y: float, weight: float) -> None:
        weight = min(weight, HEAVY)
        v = [_within(s, CUT) for s in scores]
        e = math.exp(-abs(f))
        p = (1.0 if f >= 0 else e) / (1.0 + e)
        curvature = weight * max(p * (1.0 - p), CURVE)
        columns, inputs = self.additions.columns, self.additions.inputs
        if columns is None or inputs is None:
            return newton(self.state["P"], self.state["u"], v, self.loss.slope(f, y), curvature, weight)
        return columns.newton([*v, *inputs.tolist()], self.loss.slope(f, y), curvature, weight)
