"""Two-point bandit feedback: losses at two points near the play instead of a gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.bounds import Certificate
from ftprl.errors import InvalidInput
from ftprl.game import Game
from ftprl.learner import Learner
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]


@final
class TwoPointGame:
    """A game without gradients: measure the losses at the two `points`, then call `observe(first, second)`.

    The points are y + step v and y - step v, with v a fresh random direction of length 1 in every round. The learner
    receives d/(2 step) (first - second) v, in expectation the gradient of a smoothed loss; d is the dimension of the
    set. So that both points lie in F, y is the learner's play moved towards `center`, around which F contains
    everything within `inner` (default: from the set's inner box).

    `lipschitz` is the largest slope of a loss: |f(x) - f(y)| <= lipschitz |x - y|. The bounds of the certificate then
    hold for the regret in expectation over the directions (`Certificate.in_expectation`): the learner's own plus T
    lipschitz step (2 + R/inner), R = max |u - center| over F. Losses must not depend on the direction of their round.

    >>> from ftprl import FTPRL
    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import CoordinateConstant
    >>> game = TwoPointGame(FTPRL(Box(-1, 1, dim=2), CoordinateConstant()), step=0.01, lipschitz=1.0)
    >>> a, b = game.points
    >>> game.observe(0.3 * a[0], 0.3 * b[0])
    >>> game.rounds
    1
    """

    def __init__(
        self,
        learner: Learner[Any],
        *,
        step: float,
        lipschitz: float,
        inner: float | None = None,
        center: ArrayLike | None = None,
        seed: int = 0,
        history: bool | int = False,
    ) -> None:
        check.instance("TwoPointGame", learner, Learner)
        feasible = learner.feasible
        if not np.isfinite(feasible.widths()).all():
            raise InvalidInput(f"TwoPointGame needs a bounded set, got {feasible!r}; bound it, for example by a Box.")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InvalidInput(f"seed needs a whole number of at least 0, got {seed!r}; pass one.")
        self.learner, self.seed = learner, seed
        self.step, self.lipschitz = check.positive("step", step), check.positive("lipschitz", lipschitz)
        self._basis = _directions(feasible)
        self.center, self.inner = _inside(feasible, self._basis, center, inner)
        if self.step >= self.inner:
            raise InvalidInput(
                f"step needs to be below the inner radius {self.inner:g} of the set, got {self.step:g}; lower it."
            )
        self._game = Game(learner, history=history)
        self._total_loss = 0.0

    def __repr__(self) -> str:
        return f"TwoPointGame({type(self.learner).__name__} on {self.learner.feasible!r}, rounds={self.rounds})"

    @property
    def rounds(self) -> int:
        """Return the number of observed rounds."""
        return self._game.rounds

    @property
    def total_loss(self) -> float:
        """Return the total loss over all rounds; the loss of a round is the mean at its two points."""
        return self._total_loss

    @property
    def x(self) -> Vector:
        """Return y, the point between the two."""
        return self.center + self._shrink * (self._game.x - self.center)

    @property
    def _shrink(self) -> float:
        """Return the factor by which plays are moved towards the centre."""
        return 1.0 - self.step / self.inner

    @property
    def direction(self) -> Vector:
        """Return v, a direction of length 1 that depends only on the seed and the round."""
        draw = np.random.default_rng((self.seed, self.rounds)).normal(size=self._basis.shape[1])
        v = self._basis @ draw
        size = float(np.linalg.norm(v))
        return v / size if size else v

    @property
    def points(self) -> tuple[Vector, Vector]:
        """Return the two points at which to measure the loss of this round."""
        x, v = self.x, self.step * self.direction
        return x + v, x - v

    def observe(self, first: float, second: float) -> None:
        """Record the losses at the two `points`; bad input raises InvalidInput and changes nothing."""
        a, b = check.number("first", first), check.number("second", second)
        if abs(a - b) > 2 * self.step * self.lipschitz * (1 + 1e-9) + 1e-12 * (abs(a) + abs(b)):
            slope = abs(a - b) / (2 * self.step)
            raise InvalidInput(
                f"the losses need a slope of at most lipschitz={self.lipschitz:g}, got {slope:g}; raise lipschitz."
            )
        estimate = self._basis.shape[1] * (a - b) / (2 * self.step) * self.direction
        self._game.observe(self._shrink * estimate)
        self._total_loss += (a + b) / 2

    def certificate(self, *, best_loss: float | None = None) -> Certificate:
        """Return the learner's certificate for the estimated gradients, with bounds raised by the cost of two
        points.

        `regret` is the regret of the estimates. `true_regret`, which needs the total loss of the best fixed point as
        `best_loss`, is the regret of the points; the bounds exceed it in expectation, not in every draw.
        """
        made = self._game.certificate()
        bias = self._bias()
        note = (
            "two-point feedback: the regret is that of estimated gradients; the bounds are for the true regret in"
            f" expectation over the directions, {bias:.6g} for the distance of the points included"
        )

        def plus(value: float | None) -> float | None:
            """Return the bound plus the bias, or None if the bound is unknown."""
            return None if value is None else value + bias

        true = None if best_loss is None else self._total_loss - check.number("best_loss", best_loss)
        return replace(
            made,
            true_regret=true,
            tight=plus(made.tight),
            bound=plus(made.bound),
            theorem=plus(made.theorem),
            worst_case=plus(made.worst_case),
            closed_form=plus(made.closed_form),
            closed_form_strong=plus(made.closed_form_strong),
            ratio=None,
            proven_ratio=None,
            proven_regret_ratio=None,
            in_expectation=True,
            caveats=(*made.caveats, note),
        )

    def _bias(self) -> float:
        """Return T lipschitz step (2 + R/inner), for the smoothing, the two points and the shift towards the centre."""
        low, high = self.learner.feasible.bounds()
        box = float(np.linalg.norm(np.maximum(high - self.center, self.center - low)))
        reach = min(box, self.learner.feasible.diameter())
        return self.rounds * self.lipschitz * self.step * (2.0 + reach / self.inner)


def _directions(feasible: ConvexSet) -> Vector:
    """Return an orthonormal basis of the directions in which F extends, one per column."""
    moves = feasible.widths() > 0
    seen = np.array([np.where(moves, feasible.tangent(e), 0.0) for e in np.diag(moves.astype(np.float64))])
    # y is a difference of points of F only if y·g = y·tangent(g) for every g.
    _, s, Vt = np.linalg.svd(np.eye(feasible.dim) - seen)
    return np.asarray(Vt[s <= 1e-9].T)


def _inside(feasible: ConvexSet, basis: Vector, center: ArrayLike | None, inner: float | None) -> tuple[Vector, float]:
    """Return a point and a radius within which F contains everything around it, as given or from its inner box."""
    if center is not None or inner is not None:
        point = feasible.start() if center is None else check.vector("center", center, feasible.dim)
        if inner is None:
            raise InvalidInput("TwoPointGame needs inner= with center=, got center= alone; pass the radius too.")
        if not feasible.contains(point):
            raise InvalidInput(f"center needs a point of {feasible!r}, got one outside; pass one inside.")
        return point, _checked_radius(feasible, basis, point, check.positive("inner", inner))
    box = feasible.inner_box()
    if box is None:
        raise InvalidInput(
            f"TwoPointGame needs inner=, a radius around the start that {feasible!r} contains, got none; pass it."
        )
    wide = box.widths()
    moves = wide > 0
    if not moves.any():
        raise InvalidInput(f"TwoPointGame needs a set with room to move, got {feasible!r}; use another set.")
    return (box.lower + box.upper) / 2, float(wide[moves].min()) / 2


def _checked_radius(feasible: ConvexSet, basis: Vector, point: Vector, inner: float) -> float:
    """Return the user's radius; raise InvalidInput if a vertex shows that F ends earlier along an axis."""
    for axis in np.eye(feasible.dim):
        for g in (basis @ (basis.T @ axis), -(basis @ (basis.T @ axis))):
            size, distance = float(np.linalg.norm(g)), float(g @ (point - feasible.vertex(g)))
            if size > 1e-9 and distance < inner * size * (1 - 1e-9):
                raise InvalidInput(
                    f"inner needs a radius that {feasible!r} contains, got {inner:g} above {distance / size:g};"
                    " lower it."
                )
    return inner
