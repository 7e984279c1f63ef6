"""The mixture of several scales with the log loss, row by row: from scores to a prediction, and to new weights.

The formulas are those of docs/scales.md in that order, so that the numbers equal the learner's to the bit. Scalars are
Python floats, and functions are those of the C library.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Floats = list[float]

RIDGE = 4.0  # the Hessian of the stack begins at this times the identity
CUT = 8.0  # the stack sees scores cut to this
CURVE, HEAVY = 2.0**-13, 2.0**10  # and takes no row for flatter or heavier
SHARE = 2.0**-10  # the largest part of the weights that is shared out
LEAST_CHANCE = 2.0**-900  # a mixture that gave the label less works with logarithms
BLOCK, WINDOW = 1024, 4
BEFORE, CURRENT, LATEST = 0, 1, 2  # the rows of windows
_HEX = """
    0x1.5555555555555p-1 0x1.9999999999944p-2 0x1.2492492499d46p-2 0x1.c71c71bedea97p-3
    0x1.745d19937b1fcp-3 0x1.3b13515f6f9efp-3 0x1.111abdc8abe16p-3 0x1.e0a2d581ab68fp-4
    0x1.bc37f0140c19ep-4 0x1.32e0d25c9c761p-4 0x1.401d3e65cdc48p-3
"""
_ATANH = [float.fromhex(a) for a in _HEX.split()]


def added(terms: Floats) -> float:
    """Return the sum upwards from 0; Python's built-in corrects for rounding from version 3.12 on."""
    whole = 0.0
    for term in terms:
        whole += term
    return whole


def softplus(v: float) -> float:
    """Return the log loss of the score -v; log(1 + e) is 2 atanh(s) with s = e / (2 + e)."""
    e = math.exp(-abs(v))
    s = e / (2.0 + e)
    w, q = s * s, _ATANH[-1]
    for a in _ATANH[-2::-1]:
        q = q * w + a
    return max(v, 0.0) + s * (2.0 + w * q)


def chance(v: float) -> float:
    """Return the probability of the label at a score of v in its favour."""
    e = math.exp(-abs(v))
    return (e if v < 0.0 else 1.0) / (1.0 + e)


def slope(s: float, y: float) -> float:
    """Return the slope of the log loss."""
    v = -y * s
    return -y * (1.0 / (1.0 + math.exp(-v)) if v >= 0.0 else math.exp(v) / (1.0 + math.exp(v)))


class Mixing:
    """The state of the mixture of K scales, with a stack or without, and its update by a row."""

    def __init__(self, K: int, stacked: bool) -> None:
        self.K, self.n, self.stacked = K, K + stacked, stacked
        self.state: dict[str, Vector] = {
            "P": np.eye(K) / RIDGE * stacked,
            "u": np.full(K, stacked / K),
            "w": np.full(self.n, 1.0 / self.n),
            "totals": np.zeros(self.n),
            "facts": np.ones(1),  # the largest weight of a row
            "block": np.zeros(K),
            "windows": np.zeros((3, K - WINDOW + 2 if K > WINDOW else 0)),
        }

    def experts(self, scores: Floats) -> Floats:
        """Return the scores of the scales and of the stack."""
        seen = zip(self.state["u"].tolist(), self.seen(scores), strict=True)
        return [*scores, added([a * b for a, b in seen])] if self.stacked else scores

    def seen(self, scores: Floats) -> Floats:
        """Return the scores as inputs of the stack."""
        return [min(max(s, -CUT), CUT) for s in scores]

    def mixed(self, losses: Floats) -> float:
        """Return -ln sum w e^-l."""
        low, w = min(losses), self.state["w"].tolist()
        return low - math.log(added([a * math.exp(low - b) for a, b in zip(w, losses, strict=True)]))

    def predict(self, scores: Floats, y: float) -> tuple[float, float]:
        """Return the mixture's score, and its loss (NaN without a label)."""
        experts = self.experts(scores)
        yes, no = (self.mixed([softplus(-side * s) for s in experts]) for side in (1.0, -1.0))
        return no - yes, (yes if y > 0 else no) if y == y else y

    def learn(self, scores: Floats, y: float, weight: float, t: int) -> tuple[float, float]:
        """Return score and loss of row t, counted from 1, and update the mixture by the row."""
        state = self.state
        experts = self.experts(scores)
        losses = [softplus(-y * s) for s in experts]
        if weight > state["facts"][0]:  # no row may count more than 1
            ratio = float(state["facts"][0]) / weight
            state["facts"][0] = weight
            self._weigh([a**ratio for a in state["w"].tolist()])
        prediction = self.predict(scores, y)
        chances: Floats | None = [chance(y * s) for s in experts]
        total = added([a * b for a, b in zip(state["w"].tolist(), chances, strict=True)])
        if total >= LEAST_CHANCE:
            prediction = y * (self.mixed([softplus(y * s) for s in experts]) + math.log(total)), -math.log(total)
        else:
            chances = None
        self._share(losses, weight, t, chances)
        if self.stacked:
            self.learn_stack(scores, experts[self.K], y, weight)
        state["totals"] += [weight * a for a in losses]
        self._add_block([weight * a for a in losses[: self.K]], t)
        return prediction

    def _weigh(self, w: Floats) -> None:
        whole = added(w)
        self.state["w"][:] = [a / whole for a in w]

    def _share(self, losses: Floats, weight: float, t: int, chances: Floats | None) -> None:
        largest, low = float(self.state["facts"][0]), min(losses)
        rate = min(weight / largest, sys.float_info.max) if largest > 0 else 0.0
        powers = [math.exp(rate * (low - b)) for b in losses] if chances is None or rate != 1.0 else chances
        w = [a * b for a, b in zip(self.state["w"].tolist(), powers, strict=True)]
        whole, a = added(w), min(SHARE, 1.0 / (t + 1.0))
        self.state["w"][:] = [(1.0 - a) * (b / whole) + a / self.n for b in w]

    def learn_stack(self, scores: Floats, f: float, y: float, row_weight: float) -> None:
        """Take a Newton step of the stack, whose score was f."""
        v, weight, p, P = self.seen(scores), min(row_weight, HEAVY), chance(f), self.state["P"]
        b = weight * max(p * (1.0 - p), CURVE)
        Pv = [added([c * d for c, d in zip(row, v, strict=True)]) for row in P.tolist()]
        d = 1.0 + b * max(added([c * e for c, e in zip(v, Pv, strict=True)]), 0.0)
        self.state["u"] -= (weight * slope(f, y)) / d * np.array(Pv)
        P -= (b / d) * np.outer(Pv, Pv)
        if not (np.diag(P) > 0).all():
            P[...] = np.eye(len(P)) / RIDGE

    def _add_block(self, losses: Floats, t: int) -> None:
        """Add the losses of the scales in blocks of rows, which decide which scales stay."""
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
