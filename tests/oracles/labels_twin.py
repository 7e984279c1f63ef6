"""The state of labels in any unit, and the formulas of all losses except the log loss, as in docs/labels.md.

Everything that is learned follows the unit and the origin of the label: an offset m (mean, quantile, log mean) from
which scores are measured, a unit U of gradients, and a range [lo, hi] to which scores are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LOG_RANGE = 8.0  # Poisson: scores reach this far below the offset
LEAST_CURVE = 2.0**-13
KINKED = ("absolute", "quantile", "huber")
MARGIN = ("hinge", "squared_hinge")
LOG_LINK = ("poisson", "gamma")
SURE, FAR = 16, 4.0  # labels before one is cut; units beyond the range within which none is


def cut(a: float, low: float, high: float) -> float:
    return min(max(a, low), high)


@dataclass
class Labels:
    """The state of the labels so far: offset, unit and range of the scores, and the sums they follow from."""

    loss: str
    tau: float
    weight: float = 0.0
    rows: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = 0.0
    most: float = 0.0
    q: float = 0.0
    since: float = 0.0
    pinball: float = 0.0
    deviation: float = 0.0
    m: float = 0.0
    U: float = 0.0
    lo: float = 0.0
    hi: float = 0.0
    psi: float = 1.0
    kappa: float = 1.0
    outliers: int = 0

    def __post_init__(self) -> None:
        if self.loss in MARGIN:
            self.U, self.lo, self.hi = 1.0, -1.0, 1.0

    def believed(self, y: float) -> float:
        """Return the label to learn: clipped if it is far beyond the range, less so if several such labels follow."""
        if self.loss in MARGIN or self.loss in LOG_LINK or self.rows < SURE or self.U == 0.0:
            return y
        far = max(self.most - self.least, FAR * self.U) * 2.0 ** (2 ** min(self.outliers, 9) - 1)
        learned = cut(y, self.least - far, self.most + far)
        self.outliers = self.outliers + 1 if learned != y else 0
        return learned

    def learn(self, y: float, c: float) -> None:
        if self.loss in MARGIN:
            self.rows += 1
            self.weight += c
            self.mean += (c / self.weight) * (y - self.mean)
            return
        first = self.rows == 0
        self.rows += 1
        self.weight += c
        d = y - self.mean
        self.mean += (c / self.weight) * d
        self.squares += c * d * (y - self.mean)
        self.least, self.most = (y, y) if first else (min(self.least, y), max(self.most, y))
        if self.loss in KINKED:
            self._follow_quantile(y, c, first)
        others = {"squared": self._squared, "poisson": self._poisson, "gamma": self._gamma}
        others.get(self.loss, self._kinked)()

    def _follow_quantile(self, y: float, c: float, first: bool) -> None:
        if first:
            self.q = y
            return
        self.since += c
        d, part = y - self.q, c / self.since
        pin = (self.tau if d > 0 else self.tau - 1.0) * d
        self.pinball += part * (pin - self.pinball)
        self.deviation += part * (abs(d) - self.deviation)
        side = self.tau if d > 0 else self.tau - 1.0 if d < 0 else 0.0
        step = (2.0 * self.pinball / (self.tau * (1.0 - self.tau))) * (c / self.weight) * side
        self.q = cut(self.q + step, self.least, self.most)

    def _squared(self) -> None:
        self.m, self.lo, self.hi = self.mean, self.least, self.most
        self.U = self.psi = math.sqrt(max(self.squares / self.weight, 0.0))

    def _kinked(self) -> None:
        self.m, self.lo, self.hi, self.U = self.q, self.least, self.most, self.deviation
        huber = self.loss == "huber"
        self.psi, self.kappa = (min(1.0, self.U), max(1.0, self.U)) if huber else (1.0, self.U)

    def _poisson(self) -> None:
        self.m = math.log(self.mean) if self.mean > 0 else -math.log(self.rows + 1.0)
        self.U = self.mean
        self.lo = self.m - LOG_RANGE
        self.hi = max(self.m, math.log(self.most)) if self.most > 0 else self.m

    def _gamma(self) -> None:
        self.m, self.U = math.log(self.mean), 1.0
        self.lo, self.hi = math.log(self.least), math.log(self.most)


def value(loss: str, s: float, y: float, tau: float) -> float:
    d = s - y
    match loss:
        case "squared":
            return 0.5 * d * d
        case "absolute":
            return abs(d)
        case "quantile":
            return (tau if -d > 0 else tau - 1.0) * -d
        case "huber":
            return 0.5 * d * d if abs(d) <= 1.0 else abs(d) - 0.5
        case "poisson":
            return math.exp(s) - y * s
        case "gamma":
            return y * math.exp(-s) + s
        case "hinge":
            return max(1.0 - y * s, 0.0)
        case _:
            return 0.5 * max(1.0 - y * s, 0.0) ** 2


def slope(loss: str, s: float, y: float, tau: float) -> float:
    d = s - y
    match loss:
        case "squared":
            return d
        case "absolute":
            return float(np.sign(d))
        case "quantile":
            return -tau if d < 0 else 1.0 - tau if d > 0 else 0.0
        case "huber":
            return cut(d, -1.0, 1.0)
        case _:
            raise ValueError(loss)


def implicit(labels: Labels, s: float, y: float, A: float) -> float:
    """Return the slope of a row of weight 1 after a step that moves the score by A times the slope."""
    U, tau = labels.U, labels.tau
    match labels.loss:
        case "squared":
            return (s - y) / (1.0 + A)
        case "squared_hinge":
            return -y * max(1.0 - y * s, 0.0) / (1.0 + A)
        case "absolute":
            return cut((s - y) / A, -1.0, 1.0) if A > 0 else float(np.sign(s - y))
        case "quantile":
            return cut((s - y) / A, -tau, 1.0 - tau) if A > 0 else slope("quantile", s, y, tau)
        case "huber":
            return cut((s - y) / (1.0 + A), -1.0, 1.0)
        case "hinge":
            gap = max(1.0 - y * s, 0.0)
            return -y * min(2.0 * gap / A, 1.0) if A > 0 else -y * (gap > 0)
        case "poisson":
            return ((math.exp(s) - y) / U) / (1.0 + A * max(math.exp(s), y) / U)
        case _:
            t = y * math.exp(-s)
            return (1.0 - t) / (1.0 + A * max(1.0, t))


def stack_slope(labels: Labels, f: float, y: float, mean: float) -> tuple[float, float]:
    """Return slope and curvature of the stack's loss at f, in units of the labels; `mean` is its mean loss so far."""
    U, loss = labels.U, labels.loss
    match loss:
        case "squared":
            return (f - y) / U, 1.0
        case "absolute" | "quantile":
            shape = 1.0 if loss == "absolute" else labels.tau * (1.0 - labels.tau)
            return slope(loss, f, y, labels.tau), 0.125 * shape * U / max(mean, 2.0**-10 * U)
        case "huber":
            b = (U / labels.psi) * (1.0 if mean <= 1.0 else 0.125 / mean)
            return slope("huber", f, y, labels.tau) / labels.psi, b
        case "poisson":
            return (math.exp(f) - y) / U, max(math.exp(f), y) / U
        case "gamma":
            t = y * math.exp(-f)
            return 1.0 - t, max(1.0, t)
        case "hinge":
            e = math.exp(-abs(f))
            p = (1.0 if f >= 0 else e) / (1.0 + e)
            return -y * (1.0 - p if y > 0 else p), max(p * (1.0 - p), LEAST_CURVE)
        case _:
            gap = max(1.0 - y * f, 0.0)
            return -y * gap, 1.0 if gap > 0 else 0.0
