"""Learning with labels in any unit, row by row in NumPy: the oracle of the kernels for every loss but the log loss.

Everything that is learned follows the unit and the origin of the label: an offset m (mean, quantile, log mean) from
which scores are counted, a unit U in which gradients are counted, and a range [lo, hi] to which scores are cut. The
formulas are those of docs/labels.md, in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
RIDGE, HEAVY, LEAST_CURVE, SHARE = 4.0, 2.0**10, 2.0**-13, 2.0**-10
STACK_CUT, SHARPENED = 8.0, 4.0  # hinge: of the scores the stack sees; of its log odds
LOG_RANGE = 8.0  # Poisson: scores reach this far below the offset
LEAST_RATES = (0.5, 0.125)  # of the two levels
KINKED = ("absolute", "quantile", "huber")
MARGIN = ("hinge", "squared_hinge")
LOG_LINK = ("poisson", "gamma")
FIRST_REVIEW, LAST_REVIEW = 16, 256  # rows, and their doublings between
SURE, FAR = 16, 4.0  # labels before one is cut; units beyond the range within which none is
CAUTION, SURE_GAP = 24.0, 4.0  # two classes: the odds of the majority without a lead; when a lead begins to count less


def cut(a: float, low: float, high: float) -> float:
    return min(max(a, low), high)


@dataclass
class Labels:
    """What is known of the labels so far: offset, unit and range of the scores, and what they follow from."""

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
        """The label that is learned: cut if it is far beyond the range, less so the more of them come in a row."""
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
        {
            "squared": self._squared,
            "absolute": self._kinked,
            "quantile": self._kinked,
            "huber": self._kinked,
            "poisson": self._poisson,
            "gamma": self._gamma,
        }[self.loss]()

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
        self.psi = 1.0
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


@dataclass
class AnyLabel:
    """A learner of several scales (K = 1: a single one) for one loss; `learn` returns the prediction before the row."""

    loss: str
    scales: tuple[float, ...]
    beta: float = 0.3
    tau: float = 0.5
    levels: bool = False
    kind: type[np.floating[Any]] = np.float64
    cells: dict[int, list[Any]] = field(default_factory=dict)  # z[K], R[K], s, N, kappa

    def __post_init__(self) -> None:
        K = self.K = len(self.scales)
        if self.loss != "quantile":
            self.tau = 0.5
        self.h = np.array(self.scales)
        self.labels = Labels(self.loss, self.tau)
        self.z0, self.R0, self.kappa0 = np.zeros(K), np.zeros(K), 1.0
        self.columns = K + (2 if self.levels else 0)
        self.u = np.array([1.0 / K] * K + [0.0] * (self.columns - K))
        self.P = np.eye(self.columns) / RIDGE
        self.e = [0.0, 0.0]
        self.mean_loss = self.stack_weight = 0.0
        self.n = 1 if K == 1 else K + 2
        self.w = np.full(self.n, 1.0 / self.n)  # within the mixture
        self.C = self.D = self.recent_loss = 0.0
        self.stretch, self.stretch_loss, self.longest = 0, 0.0, 0
        self.lead = self.lead_gap = self.taught = 0.0
        self.expert_scores = np.zeros(self.n)  # by the experts of the latest row
        self.rows = 0

    # ---- one row ----

    def learn(self, slots: list[int], values: Vector, y: float, c: float = 1.0) -> float:
        L = self.labels
        units = [self.cells[i][2] if i in self.cells else 0.0 for i in slots]
        self._raise(slots, np.abs(values))
        x, x0 = self._plays(slots)
        scores = L.m + (values @ x if len(slots) else 0.0) + x0
        prediction, experts, base, f = self._predict(scores)
        self.rows += 1
        if self.K > 1 and self.rows > 1:
            self._mix(prediction, experts, y, c)
        clipped = np.clip(scores, L.lo, L.hi)
        seen = np.clip(scores, -STACK_CUT, STACK_CUT) if self.loss in MARGIN else clipped
        old = (L.m, L.U, L.lo, L.hi)
        first = L.rows == 0
        y = self.taught = L.believed(y)
        L.learn(y, c)
        if self.K > 1 and self.rows > 1:
            self._review(y, c)
        if (first and self.loss not in MARGIN) or L.U == 0.0:
            if self.K == 1:  # nothing of the row is kept but its label
                for i, s in zip(slots, units, strict=True):
                    self.cells[i][2] = s
            return prediction
        hull = (min(old[2], L.lo), max(old[3], L.hi)) if not first else (L.lo, L.hi)
        if self.K > 1:
            self._newton(seen, (old[0], old[1], *hull), base, f, y, c)
        cut_scores = np.clip(scores, *hull)
        if self.loss in KINKED or self.loss == "squared":
            excess = scores - cut_scores  # what is more than the width of the range beyond it counts
            cut_scores += np.sign(excess) * np.maximum(np.abs(excess) - (hull[1] - hull[0]), 0.0)
        self.step_scales(slots, values, x, x0, cut_scores, y, c)
        return prediction

    def _review(self, y: float, c: float) -> None:
        """Begin anew where D comes from labels long past: see docs/labels.md."""
        if self.loss not in KINKED and self.loss != "squared":
            return
        self.stretch += 1
        if self.D == 0.0 or self.stretch_loss >= self.D / 16.0:
            self.longest = max(self.longest, self.stretch) if self.D > 0 else self.longest
            self.stretch, self.stretch_loss = 0, 0.0
        elif (
            self.stretch >= 4 * max(self.longest, 4) and self.rows % max(16, 2 ** int(math.log2(self.rows)) // 64) == 0
        ):
            self.longest, self.stretch, self.stretch_loss = self.stretch, 0, 0.0
            self._begin_anew(y, c)
        if self.rows >= FIRST_REVIEW and self.rows & (self.rows - 1) == 0:
            if self.rows <= LAST_REVIEW and self.recent_loss < self.D:
                self._begin_anew(y, c)
            self.recent_loss = 0.0

    def _begin_anew(self, y: float, c: float) -> None:
        self.C = self.D = self.recent_loss = 0.0
        L = self.labels
        L.squares *= c / L.weight
        L.weight, L.since = c, min(L.since, c)
        L.mean = L.least = L.most = L.q = L.m = L.lo = L.hi = y

    def _raise(self, slots: list[int], sizes: Vector) -> None:
        for i, a in zip(slots, sizes.tolist(), strict=True):
            cell = self.cells.setdefault(i, [np.zeros(self.K), np.zeros(self.K), 0.0, 0.0, 1.0])
            cell[3] += 1.0
            s = cell[2]
            if self.K == 1:
                cell[2] = max(s, a)
            elif a > s:
                rms = math.sqrt(s * s + (a * a - s * s) / cell[3])
                cell[2] = float(self.kind(max(s, rms, a / 16.0)))

    def _plays(self, slots: list[int]) -> tuple[Vector, Vector]:
        x = np.zeros((len(slots), self.K))
        for row, i in enumerate(slots):
            z, R, s, _, kappa = self.cells[i]
            held = s * (self.beta * s + R)
            x[row] = np.divide(-z * self.h, held, out=np.zeros(self.K), where=held > 0) * kappa
        held = self.beta + self.R0
        return x, np.divide(-self.z0 * self.h, held, out=np.zeros(self.K), where=held > 0) * self.kappa0

    def _predict(self, scores: Vector) -> tuple[float, Vector, float, float]:
        L = self.labels
        clipped = np.clip(scores, L.lo, L.hi)
        if self.K == 1:
            return float(clipped[0]), clipped, 0.0, 0.0
        margin = self.loss in MARGIN
        seen = np.clip(scores, -STACK_CUT, STACK_CUT) if margin else clipped
        base = L.m + float(self.u[: self.K] @ (seen - L.m))
        unit = 1.0 if margin or self.loss in LOG_LINK else L.U
        f = base + (unit * float(self.u[self.K :] @ np.array(self.e)) if self.levels else 0.0)
        stack = cut(SHARPENED * f, -1.0, 1.0) if self.loss == "hinge" else cut(f, L.lo, L.hi)
        experts = np.append(clipped, [stack, float(np.sign(L.mean)) if margin else L.m])
        self.expert_scores = experts
        return self._mixed(experts), experts, base, f

    @property
    def _offset_at(self) -> int:
        return self.K + 1

    def _mixed(self, experts: Vector) -> float:
        """The prediction: two classes, the majority's part is above the mixture."""
        mean = float(self.w @ experts)
        if self.loss not in MARGIN:
            return mean
        v = self._trust()
        return v * mean + (1.0 - v) * float(experts[self._offset_at])

    @property
    def weights(self) -> Vector:
        """The weights with which the experts predict."""
        if self.loss not in MARGIN or self.K == 1:
            return self.w
        v = self._trust()
        rest = np.zeros(self.n)
        rest[self._offset_at] = 1.0 - v
        return v * self.w + rest

    def _trust(self) -> float:
        rate = 1.0 / max(1.0, self.lead_gap / SURE_GAP)
        return 1.0 / (1.0 + CAUTION * math.exp(-rate * self.lead))

    def _follow_lead(self, advantage: float) -> None:
        v, rate = self._trust(), 1.0 / max(1.0, self.lead_gap / SURE_GAP)
        x = cut(rate * advantage, -32.0, 32.0)
        self.lead_gap += max(math.log1p(v * math.expm1(x)) - v * x, 0.0) / rate
        self.lead = max(self.lead + advantage, 0.0)

    def _mix(self, p: float, experts: Vector, y: float, c: float) -> None:
        if self.loss in MARGIN:
            p = float(self.w @ experts)
            majority = float(experts[self._offset_at])
            self._follow_lead(c * (value(self.loss, majority, y, self.tau) - value(self.loss, p, y, self.tau)))
        loss, ln, label = self.loss, math.log(self.n), self.known_label(y)
        losses = np.array([c * value(loss, s, label, self.tau) for s in experts.tolist()])
        mixture_loss, low = c * value(loss, p, label, self.tau), float(losses.min())
        self.recent_loss += c * abs(value(loss, p, y, self.tau))
        self.stretch_loss += float(losses[self._offset_at])
        if self.D == 0.0:
            if mixture_loss - low > 2.0**-30 * self.recent_loss:
                self.C = self.D = mixture_loss - low
            return
        logs = np.log(self.w) + ((low - losses) / self.D) * ln
        S = float(np.exp(logs).sum())
        self.C = max(self.C + (mixture_loss - (low - math.log(S) * self.D / ln)), 0.0)
        if self.C > self.D:
            logs *= self.D / self.C
            self.D = self.C
        w = np.exp(logs - logs.max())
        w /= w.sum()
        a = min(SHARE, 1.0 / (self.rows + 1.0))
        self.w = (1.0 - a) * w + a / self.n

    def known_label(self, y: float) -> float:
        """The label within the range that was known before it."""
        L = self.labels
        if self.loss == "poisson":
            return min(y, math.exp(L.hi))
        if self.loss == "gamma":
            return cut(y, math.exp(L.lo), math.exp(L.hi))
        return y if self.loss in MARGIN else cut(y, L.lo, L.hi)

    def _newton(self, seen: Vector, old: tuple[float, ...], base: float, f: float, y: float, c: float) -> None:
        L, loss = self.labels, self.loss
        m, U0, lo, hi = old
        c = min(c, HEAVY)
        unit = 1.0 if loss in MARGIN or loss in LOG_LINK else L.U
        v = (seen - m) / unit
        if self.levels:
            ratio = 1.0 if loss in MARGIN or loss in LOG_LINK else U0 / L.U
            v = np.append(v, [ratio * e for e in self.e])
        if loss in LOG_LINK:
            f, base = cut(f, lo, hi), cut(base, lo, hi)
        if loss in KINKED:
            self.stack_weight += c
            at = value(loss, cut(f, lo, hi), y, self.tau)
            self.mean_loss += (c / self.stack_weight) * (at - self.mean_loss)
        g, b, r = self._slope_of_stack(f, base, y)
        Pv = self.P @ v
        d = 1.0 + c * b * max(float(v @ Pv), 0.0)
        self.u = self.u - (c * g / d) * Pv
        self.P = self.P - (c * b / d) * np.outer(Pv, Pv)
        if not (np.diag(self.P) > 0).all():
            self.P = np.eye(self.columns) / RIDGE
        self.e = [e + max(rate, 1.0 / self.rows) * (r - e) for e, rate in zip(self.e, LEAST_RATES, strict=True)]

    def _slope_of_stack(self, f: float, base: float, y: float) -> tuple[float, float, float]:
        L, U = self.labels, self.labels.U
        match self.loss:
            case "squared":
                return (f - y) / U, 1.0, (y - base) / U
            case "absolute" | "quantile":
                shape = 1.0 if self.loss == "absolute" else self.tau * (1.0 - self.tau)
                b = 0.125 * shape * U / max(self.mean_loss, 2.0**-10 * U)
                return slope(self.loss, f, y, self.tau), b, cut((y - base) / U, -2.0, 2.0)
            case "huber":
                b = (U / L.psi) * (1.0 if self.mean_loss <= 1.0 else 0.125 / self.mean_loss)
                return slope("huber", f, y, self.tau) / L.psi, b, cut((y - base) / U, -2.0, 2.0)
            case "poisson":
                return (math.exp(f) - y) / U, max(math.exp(f), y) / U, (y - math.exp(base)) / U
            case "gamma":
                t = y * math.exp(-f)
                return 1.0 - t, max(1.0, t), y * math.exp(-base) - 1.0
            case "hinge":
                e = math.exp(-abs(f))
                p = (1.0 if f >= 0 else e) / (1.0 + e)
                wrong = 1.0 - p if y > 0 else p
                at = y * base
                far = 1.0 / (1.0 + math.exp(at)) if at < 700 else 0.0
                return -y * wrong, max(p * (1.0 - p), LEAST_CURVE), y * far
            case _:
                gap = max(1.0 - y * f, 0.0)
                return -y * gap, 1.0 if gap > 0 else 0.0, y * max(1.0 - y * base, 0.0)

    def _implicit(self, s: float, y: float, A: float) -> float:
        """The slope of a row of weight 1 after a step that moves the score by A times it."""
        U = self.labels.U
        match self.loss:
            case "squared":
                return (s - y) / (1.0 + A)
            case "squared_hinge":
                return -y * max(1.0 - y * s, 0.0) / (1.0 + A)
            case "absolute":
                return cut((s - y) / A, -1.0, 1.0) if A > 0 else float(np.sign(s - y))
            case "quantile":
                return cut((s - y) / A, -self.tau, 1.0 - self.tau) if A > 0 else slope("quantile", s, y, self.tau)
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

    def step_scales(self, slots: list[int], v: Vector, x: Vector, x0: Vector, s: Vector, y: float, c: float) -> None:
        L = self.labels
        psi, kappa = L.psi, L.kappa
        A = np.zeros(self.K)
        for j, i in enumerate(slots):
            _, R, unit, _, _ = self.cells[i]
            held = unit * (self.beta * unit + R)
            A += v[j] * v[j] * np.divide(self.h, held, out=np.zeros(self.K), where=held > 0)
        A = c * kappa * (A + self.h / (self.beta + self.R0))
        a = np.array([c * self._implicit(s[k], y, A[k]) for k in range(self.K)])
        for j, i in enumerate(slots):
            cell = self.cells[i]
            cell[0], cell[1] = self._stepped(cell[0], cell[1], cell[2], cell[4], x[j], a * v[j], psi, kappa)
            cell[4] = float(self.kind(kappa))
        self.z0, self.R0 = self._stepped(self.z0, self.R0, 1.0, self.kappa0, x0, a, psi, kappa, np.float64)
        self.kappa0 = kappa

    def _stepped(
        self,
        z: Vector,
        R: Vector,
        s: float,
        own: float,
        x: Vector,
        g: Vector,
        psi: float,
        kappa: float,
        kind: type[np.floating[Any]] | None = None,
    ) -> tuple[Vector, Vector]:
        kind = self.kind if kind is None else kind
        new = np.maximum(np.sqrt(R * R + (g / psi) ** 2).astype(kind).astype(np.float64), R)
        if self.loss in KINKED:
            sigma = s * ((self.beta * s + new) / kappa - (self.beta * s + R) / own) / self.h
        else:
            sigma = s * (new - R) / self.h
        return (z + (g - sigma * x)).astype(kind).astype(np.float64), new
