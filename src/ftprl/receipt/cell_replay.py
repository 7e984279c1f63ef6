"""What a replay does to cells, with NumPy: plays, rates, steps and the terms that a receipt adds up.

Entries of a row are rows of the arrays, scales are columns; docs/scales-reference.md and docs/labels.md have the
formulas in the same order. All of it follows from the settings: nothing here changes.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]
LARGEST = float(np.finfo(np.float64).max)
LEAST_NORMAL = float(np.finfo(np.float32).tiny)


def raised_unit(unit: Vector, count: NDArray[Any], a: Vector) -> Vector:
    """The units of features after a row with the sizes `a`, with several scales: rounded to the type of the counts.

    >>> raised_unit(np.array([1.0, 1.0]), np.array([2.0, 2.0]), np.array([0.5, 3.0])).round(3).tolist()
    [1.0, 2.236]
    """
    mean = np.sqrt(np.maximum(unit * unit + (a * a - unit * unit) / count.astype(np.float64), 0.0))
    higher = np.maximum(np.maximum(unit, mean), a / 16.0).astype(count.dtype)
    return np.where(a > unit, higher, unit).astype(np.float64)


@final
class CellArithmetic:
    """The formulas of the cells of one model."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.loss = spec, spec.scalar_loss()
        self.labelled = self.loss.has_units
        self.unconstrained = not (spec.l1 or spec.l2 or spec.bounded)
        self._h = np.array(spec.scales)
        self._h_l2 = self._h * spec.l2
        self.inverse = np.array([1.0 / h for h in spec.scales])

    def free(self, R: Vector) -> Vector:
        """h Q of the intercept, whose unit is 1."""
        return np.asarray(1.0 * (self.spec.beta * 1.0 + R))

    def played_base(self, z: Vector, R: Vector, kappa: Vector) -> Vector:
        """The weight of the intercept, which has neither penalties nor bounds."""
        if self.labelled:
            return np.asarray(-(z * self.rate(R, np.ones(1))) * kappa)
        held = self.free(R)
        return np.asarray(np.divide(z * -self._h, held, out=np.zeros_like(held), where=held > 0))

    def rate(self, R: Vector, unit: Vector) -> Vector:
        """1 / Q without kappa; 0 where nothing was met."""
        held = unit * (self.spec.beta * unit + R)
        with np.errstate(over="ignore"):
            rate = np.divide(self._h, held, out=np.zeros_like(held), where=held > 0)
        return np.asarray(np.minimum(rate, LARGEST))

    def rate_with(self, rate: Vector, kappa: Vector | float, unit: Vector, *, free: bool = False) -> Vector:
        """1 / (Q + l2 unit²)"""
        with np.errstate(over="ignore"):
            own = rate * kappa
            if free or self.unconstrained:
                return own
            finite = np.minimum(own, LARGEST)
            return np.asarray(finite / (1.0 + finite * (self._h_l2 / self._h * (unit * unit))))

    def hold(self, R: Vector, unit: Vector) -> Vector:
        """h (Q + l2 unit²)"""
        held: Vector = unit * (self.spec.beta * unit + R)
        return held if self.unconstrained else held + self._h_l2 * (unit * unit)

    def played(self, z: Vector, R: Vector, unit: Vector, kappa: Vector, lower: Vector, upper: Vector) -> Vector:
        """The weights of some cells, which have to be between these."""
        spec = self.spec
        if self.labelled:
            rate = self.rate(R, unit)
            if self.unconstrained:
                return np.asarray(-(z * rate) * kappa)
            pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * unit, 0.0), -z)
            return np.asarray(np.clip(pull * self.rate_with(rate, kappa, unit), lower, upper))
        held = self.hold(R, unit)
        pull = (
            z * -self._h
            if self.unconstrained
            else np.copysign(np.maximum(np.abs(z) - spec.l1 * unit, 0.0), -z) * self._h
        )
        x = np.divide(pull, held, out=np.zeros_like(pull), where=held > 0)
        return x if self.unconstrained else np.asarray(np.clip(x, lower, upper))

    def rise(self, R: Vector, new: Vector, unit: Vector, kappa: Vector, new_kappa: float) -> Vector:
        """What h Q / unit grows by; with a kink it may fall, as kappa does."""
        if not self.loss.has_kink:
            return new - R
        own = np.divide(1.0, kappa, out=np.zeros_like(kappa), where=kappa > 0)
        beta = self.spec.beta
        return np.asarray((beta * unit + new) * (1.0 / new_kappa) - (beta * unit + R) * own)

    def label_sum_terms(
        self,
        g: Vector,
        x: Vector,
        sigma: Vector,
        rate: Vector,
        moved: Vector,
        kept: NDArray[Any],
        met: NDArray[np.bool_] | bool = True,
    ) -> tuple[Vector, ...]:
        """As `sum_terms` for labels in any unit; `rate` is 1 / (Q + l2)."""
        rate, z = np.minimum(rate, LARGEST), kept.astype(np.float64)
        lost, pulled, proximal = z - moved, np.abs(g) + np.abs(sigma * x), sigma * x * x
        lost_at_most = np.abs(lost) if kept.dtype == np.float32 else 2.0**-52 * (np.abs(z) + pulled) * met
        drift = lost * ((g + 0.5 * lost) * rate - x) if kept.dtype == np.float32 else np.zeros_like(g)
        linear_size = np.abs(g) * np.abs(x) + np.abs(proximal)
        step_size = (pulled + np.abs(z) + lost_at_most) * (np.abs(x) + (np.abs(g) + lost_at_most) * rate)
        return g * x, proximal, g * g * rate, drift, linear_size, step_size

    def sum_terms(
        self,
        g: Vector,
        x: Vector,
        sigma: Vector,
        held: Vector,
        z: Vector,
        moved: Vector,
        kept: NDArray[Any],
        met: NDArray[np.bool_] | bool,
        *,
        free: bool,
    ) -> tuple[Vector, ...]:
        """What a step adds to the sums.

        `z` is that of the cell before the step, `kept` as it holds it after, `moved` the latter before it was rounded;
        a value of 0 is not `met`. Where x is `free`, -z / Q, the second order of the drift and most sizes of the step
        are bounded by other sums, unless `kept` is below the normal numbers of a float32.
        """
        pull = np.divide(g * self._h, held, out=np.zeros_like(g), where=held > 0)
        with np.errstate(over="ignore"):
            inverse = np.divide(self._h, held, out=np.zeros_like(g), where=held > 0)
        inverse = np.minimum(inverse, np.finfo(np.float64).max)
        after = kept.astype(np.float64)
        lost, narrow = after - moved, kept.dtype == np.float32
        lost_at_most = np.abs(lost) if narrow else 2.0**-52 * np.abs(after) * met
        step_size = (np.abs(g) + np.abs(after) + lost_at_most) * (np.abs(x) + (np.abs(g) + lost_at_most) * inverse)
        if not free:
            drift = lost * ((g + 0.5 * lost) * inverse - x)
        else:
            tiny = (np.abs(after) < LEAST_NORMAL) & narrow
            small = np.where(tiny, lost, 0.0)
            drift = lost * (pull - x) + 0.5 * small * small * inverse
            step_size = np.abs(z * x) + np.where(tiny, step_size, 0.0)
        return g * x, sigma * x * x, g * pull, drift, np.abs(g) * np.abs(x), step_size
