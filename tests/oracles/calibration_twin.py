"""Calibration and uncertainty in plain Python, written from docs/calibration.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

CUT, WIDTH, PRIOR = 8.0, 0.5, 4.0
CENTRES = [-CUT + WIDTH * i for i in range(33)]


def chance(v: float) -> float:
    """Return 1 / (1 + e^-v)."""
    e = math.exp(-abs(v))
    return (e if v < 0 else 1.0) / (1.0 + e)


class Platt:
    """b + a s + c |s|, by Newton steps from a = 1, b = c = 0."""

    def __init__(self) -> None:
        self.u = np.array([1.0, 0.0, 0.0])
        self.P = np.diag([1 / 64, 1 / 16, 1 / 64])

    def at(self, s: float) -> float:
        a, b, c = self.u
        return float(b + s * max(a + c if s >= 0 else a - c, 0.0))

    def learn(self, s: float, y: float, weight: float) -> None:
        s = min(max(s, -CUT), CUT)
        v, weight = np.array([s, 1.0, abs(s)]), min(weight, 1024.0)
        f = float(self.u @ v)
        p = chance(f)
        b = weight * max(p * (1 - p), 2.0**-13)
        Pv = self.P @ v
        d = 1 + b * max(float(v @ Pv), 0.0)
        self.u = self.u + weight * y * chance(-y * f) / d * Pv
        self.P = self.P - b / d * np.outer(Pv, Pv)


class Isotonic:
    """Bins of scores with nondecreasing rates of positives, by the definition: max over min over means."""

    def __init__(self) -> None:
        self.weight = [PRIOR / (chance(c) * chance(-c)) for c in CENTRES]
        self.positive = [w * chance(c) for w, c in zip(self.weight, CENTRES, strict=True)]
        self.scores = [w * c for w, c in zip(self.weight, CENTRES, strict=True)]

    def knots(self) -> tuple[list[float], list[float]]:
        """Return mean log-odds of the bins before and after calibration."""
        n = len(CENTRES)
        total_w, total_p = np.cumsum([0.0, *self.weight]), np.cumsum([0.0, *self.positive])
        mean = np.full((n, n), np.inf)  # of bins i to j
        for i in range(n):
            mean[i, i:] = (total_p[i + 1 :] - total_p[i]) / (total_w[i + 1 :] - total_w[i])
        rates = [max(mean[i, j:].min() for i in range(j + 1)) for j in range(n)]
        x = [s / w for s, w in zip(self.scores, self.weight, strict=True)]
        return x, [math.log(r / (1 - r)) for r in rates]

    def at(self, s: float) -> float:
        x, odds = self.knots()
        if s < x[0]:
            return s + odds[0] - x[0]
        return s + odds[-1] - x[-1] if s >= x[-1] else float(np.interp(s, x, odds))

    def learn(self, s: float, y: float, weight: float) -> None:
        s = min(max(s, -CUT), CUT)
        b = math.floor((s + CUT) / WIDTH + 0.5)
        self.weight[b] += weight
        self.positive[b] += weight * (y > 0)
        self.scores[b] += weight * s


TWINS = {"platt": Platt, "isotonic": Isotonic}


def calibrated(
    kind: str, scores: Sequence[float], y: Sequence[float], weight: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the calibrated score of each row before it was learned, and its loss (NaN without a label)."""
    twin, made, losses = TWINS[kind](), [], []
    for s, label, w in zip(scores, y, weight, strict=True):
        made.append(twin.at(s))
        losses.append(float(np.logaddexp(0.0, -label * made[-1])) if label == label else math.nan)
        if label == label and w > 0:
            twin.learn(s, label, w)
    return made, losses
