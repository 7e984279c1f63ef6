"""The cells of one scale or of several, with one column or one for each class: docs/scales.md, "A row, to the bit".

All arithmetic is in float64, whatever a cell stores; a stored number is rounded once, when it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec

Vector = NDArray[Any]
CUT = {np.float32: 2.0**96, np.float64: 2.0**400}  # no gradient is larger, so that no cell overflows


def upwards(terms: Iterable[Any]) -> Any:
    """Add numbers, or arrays, one after the other (Python 3.12's `sum` corrects for rounding)."""
    whole: Any = 0.0
    for term in terms:
        whole = whole + term
    return whole


def in_fours(terms: Iterable[Any]) -> Any:
    """Add every fourth number from the first, the second, the third and the fourth on, then the four sums."""
    lanes: list[Any] = [0.0, 0.0, 0.0, 0.0]
    for k, term in enumerate(terms):
        lanes[k % 4] = lanes[k % 4] + term
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def over(a: Vector, b: Vector) -> Vector:
    """Divide a by b; return 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.asarray(b) > 0)


class Cells:
    """The coordinates of a model: z, R and S of each column and scale, a unit, a count and kappa of each feature."""

    def __init__(self, spec: Spec, columns: tuple[int, ...] = (), *, labelled: bool = False) -> None:
        self.spec, self.labelled = spec, labelled
        self.h, self.several = np.array(spec.scales), spec.several or spec.classes > 0
        self.kind: type[np.floating[Any]] = np.float64 if spec.float64 else np.float32
        shape, S = (*columns, len(self.h)), np.float64 if self.several else self.kind
        self.z, self.R = np.zeros((spec.dim, *shape), self.kind), np.zeros((spec.dim, *shape), self.kind)
        self.S = np.zeros((spec.dim, *shape), S)
        self.unit, self.count = np.zeros(spec.dim, self.kind), np.zeros(spec.dim, self.kind)
        self.own_z, self.own_R, self.own_S = (np.zeros(shape) for _ in range(3))  # the intercept: value and unit 1
        # kappa is 0 until a cell learns a label with a unit
        self.own_kappa, self.kappa = float(not labelled), np.full(spec.dim, not labelled, self.kind)
        self.sums = np.zeros((3, *shape))  # of a receipt: g x, sigma x^2, g^2/Q

    def raise_units(self, slots: Vector, v: Vector) -> None:
        """Raise the units of the features of a row: with several scales they follow the root of the mean square."""
        for i, a in zip(slots.tolist(), np.abs(v).tolist(), strict=True):
            s = float(self.unit[i])
            self.count[i] = self.kind(float(self.count[i]) + 1.0)
            if not self.several:
                self.unit[i] = max(s, float(self.kind(a)))
            elif a > s:
                rms = math.sqrt(s * s + (a * a - s * s) / float(self.count[i]))
                self.unit[i] = self.kind(max(s, rms, a / 16.0))

    def plays(self, slots: Vector) -> tuple[Vector, Vector]:
        """Return the weights of the features of a row, and of the intercept."""
        spec = self.spec
        z, R = self.z[slots].astype(np.float64), self.R[slots].astype(np.float64)
        s, kappa = self._aligned(self.unit[slots]), self._aligned(self.kappa[slots])
        pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * s, 0.0), -z) * self.h
        held = self._strength(R, s, 0.0) + kappa * (self.h * spec.l2 * (s * s))  # Q is in units of the labels
        x = np.clip(over(pull * kappa, held), spec.lower, spec.upper)
        own = over(-self.own_z * self.h * self.own_kappa, self._strength(self.own_R, 1.0, 0.0))
        return x, own if spec.intercept else np.zeros_like(own)

    def weights(self, k: int = 0) -> Vector:
        """Return the weight that a scale gives to each feature."""
        return self.plays(np.arange(len(self.unit)))[0][..., k]

    def scores(self, v: Vector, x: Vector, own: Vector, offset: float = 0.0, *, fours: bool = True) -> Vector:
        """Return the scores of the scales, the intercept last."""
        total = (in_fours if fours else upwards)(a * b for a, b in zip(x, v.tolist(), strict=True))
        return (total + np.zeros_like(own) + offset) + own

    def reach(self, slots: Vector, v: Vector) -> Vector:
        """Return by how much a slope of 1 moves the scores, before kappa."""
        R, s = self.R[slots].astype(np.float64), self._aligned(self.unit[slots])
        rates = over(self.h + np.zeros_like(R), self._strength(R, s, 0.0))
        own = over(self.h + np.zeros_like(self.own_R), self._strength(self.own_R, 1.0, 0.0))
        return in_fours(a * (b * b) for a, b in zip(rates, v.tolist(), strict=True)) + own * self.spec.intercept

    def learn(
        self, slots: Vector, v: Vector, x: Vector, own: Vector, slope: Vector, psi: float = 1.0, kappa: float = 1.0
    ) -> None:
        """Step along the weighted slopes of the scores; psi and kappa are the units of labels."""
        z, R, s = self.z[slots].astype(np.float64), self.R[slots].astype(np.float64), self._aligned(self.unit[slots])
        g = slope * self._aligned(v)
        old = self._aligned(self.kappa[slots])
        made = self._step(z, R, s, old, x, g, psi, float(self.kind(kappa)), self.kind, self.spec.l2)
        self.z[slots], self.R[slots], self.kappa[slots] = made[0], made[1], kappa
        self.S[slots] = (self.S[slots].astype(np.float64) + made[2]).astype(self.S.dtype)
        parts = [in_fours(terms) for terms in made[3]]
        if self.spec.intercept:
            one = self._step(self.own_z, self.own_R, 1.0, self.own_kappa, own, slope, psi, kappa, np.float64, 0.0)
            self.own_z, self.own_R, self.own_S, self.own_kappa = one[0], one[1], self.own_S + one[2], kappa
            parts = [a + b for a, b in zip(parts, one[3], strict=True)]
        for total, part in zip(self.sums, parts, strict=True):
            total += part

    def keep(self, stay: slice) -> None:
        """Go on with some of the scales."""
        self.h = self.h[stay]
        for name in ("z", "R", "S", "own_z", "own_R", "own_S", "sums"):
            setattr(self, name, getattr(self, name)[..., stay])

    def _step(
        self, z: Any, R: Any, s: Any, old: Any, x: Any, g: Any, psi: float, kappa: float, kind: Any, l2: float
    ) -> tuple[Vector, Vector, Vector, tuple[Vector, ...]]:
        """Return z, R, the gradient and the terms of the sums; sigma is from what is stored, as Q is then."""
        g = np.clip(g, -CUT[kind], CUT[kind])
        new = np.maximum(np.sqrt(R * R + (g / psi) ** 2).astype(kind).astype(np.float64), R)
        rise = new - R
        if self.labelled:  # a loss with a kink: Q is in units of the labels
            rise = (self.spec.beta * s + new) / kappa - (self.spec.beta * s + R) * over(np.ones_like(old), old)
        sigma = s * rise * (1.0 / self.h)
        most = np.finfo(kind).max  # a bound may hold x far from what z asks for, and sigma x is then not tied to z
        moved = np.clip(z + (g - sigma * x), -most, most).astype(kind)
        return moved, new, g, (g * x, sigma * x * x, g * over(g * self.h, self._strength(new, s, l2)))

    def _strength(self, R: Any, s: Any, l2: float) -> Vector:
        """Return h (Q + l2 s^2), with Q = s (beta s + R) / h and R = sqrt G."""
        return s * (self.spec.beta * s + R) + self.h * l2 * (s * s)

    def _aligned(self, one_per_feature: Vector) -> Vector:
        return one_per_feature.astype(np.float64).reshape(-1, *[1] * (self.z.ndim - 1))
