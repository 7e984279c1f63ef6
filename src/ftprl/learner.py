"""x_t: follow the proximally regularised leader, and the black-box change of coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import Scheme, SchemeState
from ftprl.sets import ConvexSet, FeasibleSet, Preimage, Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_LARGE, _SMALL = 1e150, 1e-150  # squares of gradients beyond these leave the range of a float


@dataclass(frozen=True, slots=True, eq=False)
class LearnerState:
    """What every learner's state has: the point to play and the number of rounds behind it."""

    x: Vector
    t: int


S = TypeVar("S", bound=LearnerState)


class Learner(ABC, Generic[S]):
    """Plays points of `feasible`: `init()` gives a state, play `state.x`, `update(state, g)` gives the next."""

    feasible: FeasibleSet

    @abstractmethod
    def init(self, hint: ArrayLike | None = None) -> S:
        """The state before the first round; `hint` is a guess of the first gradient."""

    @abstractmethod
    def advance(self, state: S, g: Vector, hint: Vector | None) -> S:
        """`update` behind the door: the arguments have been checked."""

    def update(self, state: S, g: ArrayLike, hint: ArrayLike | None = None) -> S:
        """The state after seeing the gradient `g` at `state.x`; `state` itself is unchanged.

        `hint` is a guess of the next gradient, used for the next point alone.
        """
        n = self.feasible.dim
        guess = None if hint is None else gradient("hint", hint, n)
        return self.advance(state, gradient("g", g, n), guess)

    def core(self) -> Learner[Any]:
        """The learner whose regret and bounds are meant: itself, unless it plays in other coordinates."""
        return self

    def core_state(self, state: S) -> LearnerState:
        """The core learner's state."""
        return state

    def to_core(self, x: Vector) -> Vector:
        """A point in the core learner's coordinates."""
        return x

    def from_core(self, x: Vector) -> Vector:
        """A point of the core learner's in one's own coordinates."""
        return x

    def gradient_to_core(self, g: Vector) -> Vector:
        """A gradient in the core learner's coordinates."""
        return g


def gradient(name: str, value: ArrayLike, dim: int) -> Vector:
    """A gradient at the door: finite, of the right length, and not so small that its square is lost."""
    # A copy: the state keeps what it was given, whatever the caller does with the array afterwards.
    g = check.array(name, value)
    if g.shape != (dim,):
        check.vector(name, g, dim)
    size = np.abs(g)
    i = size.argmax()  # of a NaN if there is one; with argmin far quicker than max() and min()
    if not size[i] < _LARGE:
        check.finite(name, g)
        raise InvalidInput(f"{name} needs entries below 1e150, got {name}[{i}]={g[i]:g}; rescale the losses.")
    return g if size[size.argmin()] >= _SMALL else np.where(size < _SMALL, 0.0, g)


def starting_point(feasible: FeasibleSet, start: ArrayLike | None) -> Vector:
    """x_1: the given point, which must lie in F, or the set's own start."""
    if start is None:
        return feasible.start()
    x = check.vector("start", start, feasible.dim)
    if not feasible.contains(x):
        shown = np.array2string(x, precision=4, threshold=6).replace("\n", "")
        raise InvalidInput(f"start needs a point of {feasible!r}, got {shown} outside; pass a point inside or None.")
    return x


@final
@dataclass(frozen=True, slots=True)
class Composite:
    """Psi(x) = l1 |x|₁ + ½ l2 |x|₂²: added once, as in FTRL-Proximal, or to every round's loss (`per_round`)."""

    l1: float = 0.0
    l2: float = 0.0
    per_round: bool = False

    def __post_init__(self) -> None:
        check.positive("l1", self.l1, zero=True)
        check.positive("l2", self.l2, zero=True)
        check.instance("per_round", self.per_round, bool)

    def times(self, t: int) -> float:
        """How often Psi stands in the objective after t rounds."""
        return float(t) if self.per_round else 1.0

    def value(self, x: Vector) -> float:
        """Psi(x)."""
        return self.l1 * float(np.abs(x).sum()) + 0.5 * self.l2 * float(x @ x)

    def minimise(self, feasible: FeasibleSet, H: PSD, z: Vector, near: Vector, t: int) -> Solution:
        """Minimise ½ xᵀHx + z·x + Psi (t times when per round) over F."""
        k = self.times(t)
        if self.l2 * k:
            H = psd.add(H, np.array(self.l2 * k))
        if not self.l1 * k:
            return feasible.minimise(H, z, near)
        return feasible.minimise_l1(H, z, self.l1 * k, near)


@final
@dataclass(frozen=True, slots=True, eq=False)
class State(LearnerState):
    """After t rounds: `z` = g_{1:t} - sum Q_s x_s, the scheme's state, and what the last round did."""

    z: Vector
    scheme: SchemeState
    Q: PSD  # Q_t, the increment of the last round
    seen: Vector  # what the bounds count of the last gradient (minus its hint)
    hint: Vector | None  # m_{t+1}, the guess with which x was chosen
    leader: Vector  # the minimiser of H_t without the hint; x itself when there is none
    gap: float  # how far x may be from the minimum it stands for
    leader_gap: float

    @property
    def total(self) -> PSD:
        """Q_{1:t}."""
        return self.scheme.total


@final
@dataclass(frozen=True, slots=True, eq=False)
class FTPRL(Learner[State]):
    """x_{t+1} = argmin over F of g_{1:t}·x + sum_s ½ (x-x_s)ᵀQ_s(x-x_s).

    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import Diagonal
    >>> learner = FTPRL(Box(-1, 1, dim=1), Diagonal())
    >>> learner.update(learner.init(), [0.5]).x
    array([-1.])
    """

    feasible: FeasibleSet
    scheme: Scheme
    start: ArrayLike | None = None
    composite: Composite | None = None

    def __post_init__(self) -> None:
        check.instance("feasible", self.feasible, ConvexSet)
        check.instance("scheme", self.scheme, Scheme)
        if self.composite is not None:
            check.instance("composite", self.composite, Composite)
        if self.start is not None:
            object.__setattr__(self, "start", check.frozen(starting_point(self.feasible, self.start)))

    def init(self, hint: ArrayLike | None = None) -> State:
        """x_1 is `start`; with a hint, the best point against it."""
        x = starting_point(self.feasible, self.start)
        zero = np.zeros(self.feasible.dim)
        m = None if hint is None else gradient("hint", hint, self.feasible.dim)
        scheme = self.scheme.init(self.feasible)
        gap, leader = 0.0, x
        if m is not None:
            found = self._minimise(psd.zero(), m, x, 0)
            x, gap = found.x, found.gap
        return State(x, 0, zero, scheme, psd.zero(), zero, m, leader, gap, 0.0)

    def advance(self, state: State, g: Vector, hint: Vector | None) -> State:
        """One round: the scheme weighs the gradient, z collects it, the set finds the leader."""
        feasible = self.feasible
        error = g if state.hint is None else g - state.hint
        Q, scheme = self.scheme.step(state.scheme, error)
        seen = self.scheme.effective(feasible, error)
        moved = seen if state.hint is None else self.scheme.effective(feasible, g)
        z = state.z + moved
        z -= psd.apply(Q, state.x)
        t = state.t + 1
        best = play = self._minimise(scheme.total, z, state.x, t)
        best.x.setflags(write=False)  # a state is a value
        if hint is not None:
            play = self._minimise(scheme.total, z + hint, state.x, t)
            play.x.setflags(write=False)
        return State(play.x, t, z, scheme, Q, seen, hint, best.x, play.gap, best.gap)

    def _minimise(self, H: PSD, z: Vector, near: Vector, t: int) -> Solution:
        if self.composite is None:
            return self.feasible.minimise(H, z, near)
        return self.composite.minimise(self.feasible, H, z, near, t)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PreconditionedState(LearnerState, Generic[S]):
    """The inner learner's state; `x` is its point in the outer coordinates."""

    inner: S


@final
@dataclass(frozen=True, slots=True, eq=False)
class Preconditioned(Learner[PreconditionedState[S]]):
    """Any learner in the coordinates x_hat = A x: it sees A^{-T} g, and A^{-1} x_hat is played.

    Losses, regret and bounds are those of the inner learner on its own set. With `FTPRL(L2Ball(n),
    CoordinateConstant())` inside it is FTPRL-Scale on the ellipsoid |Ax|₂ <= 1.
    """

    A: ArrayLike
    learner: Learner[S]
    feasible: FeasibleSet = field(init=False)
    _inverse: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        A, inverse = check.invertible("A", self.A)
        inner = self.learner
        check.instance("the learner inside Preconditioned", inner, Learner)
        if isinstance(inner, FTPRL) and inner.composite is not None and inner.composite.per_round:
            raise Unsupported(
                "Preconditioned needs losses that do not change with the coordinates, got a per-round Composite;"
                " use per_round=False."
            )
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "_inverse", inverse)
        object.__setattr__(self, "feasible", Preimage(A, inner.feasible))

    def init(self, hint: ArrayLike | None = None) -> PreconditionedState[S]:
        """The inner learner's start."""
        guess = None if hint is None else self._inverse.T @ gradient("hint", hint, self.feasible.dim)
        return self._wrap(self.learner.init(guess))

    def advance(self, state: PreconditionedState[S], g: Vector, hint: Vector | None) -> PreconditionedState[S]:
        """One round of the inner learner with A^{-T} g."""
        guess = None if hint is None else self._inverse.T @ hint
        return self._wrap(self.learner.advance(state.inner, self._inverse.T @ g, guess))

    def _wrap(self, inner: S) -> PreconditionedState[S]:
        return PreconditionedState(self._inverse @ inner.x, inner.t, inner)

    def core(self) -> Learner[Any]:
        """The inner learner's core."""
        return self.learner.core()

    def core_state(self, state: PreconditionedState[S]) -> LearnerState:
        """The inner learner's state."""
        return self.learner.core_state(state.inner)

    def to_core(self, x: Vector) -> Vector:
        """A x, and on."""
        return self.learner.to_core(np.asarray(self.A) @ x)

    def from_core(self, x: Vector) -> Vector:
        """A^{-1} of what the inner learner makes of it."""
        return self._inverse @ self.learner.from_core(x)

    def gradient_to_core(self, g: Vector) -> Vector:
        """A^{-T} g, and on."""
        return self.learner.gradient_to_core(self._inverse.T @ g)
