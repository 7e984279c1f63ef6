"""Full-matrix schemes: the root of the sum of outer products, exact or sketched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl.posthoc import Family
from ftprl.psd import LowRank, Matrix
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, checked_c, constants, finite_diameter
from ftprl.schemes.spectrum import add_row, extend_basis
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]

_REFRESH = 64  # rounds after which a factor is decomposed again, to make its columns orthonormal up to rounding


@final
@dataclass(frozen=True, slots=True, eq=False)
class FullState(SchemeState):
    """The state of `Full`: sum g gᵀ = V diag(s²) Vᵀ with s rising.

    A factor keeps the digits that the sum itself would lose.
    """

    D: float
    s: Vector
    V: Vector  # n x rank, its columns orthonormal
    low: float  # the multiple of I in Q_{1:t}
    age: int  # rounds since the last dense decomposition


@final
@dataclass(frozen=True)
class Full(Scheme):
    """Q_{1:t} = (c/D)(delta I + sum g gᵀ)^{1/2}; a round costs O(n²) and one product of n x n matrices.

    A full matrix can lower the regret that is realised; its a-priori bound is never below CoordinateConstant's.

    >>> from ftprl.sets import L2Ball
    >>> scheme = Full()
    >>> Q, state = scheme.step(scheme.init(L2Ball(2)), np.array([3.0, 4.0]))
    >>> Q.dense().round(2)
    array([[1.8, 2.4],
           [2.4, 3.2]])
    """

    c: float = 2.0
    delta: float = 0.0
    center: bool = False

    @property
    def family(self) -> Family:
        """Return "full"."""
        return "full"

    def __post_init__(self) -> None:
        checked_c(self.c)
        check.positive("delta", self.delta, zero=True)

    def init(self, feasible: ConvexSet) -> FullState:
        """Return the state with Q_{1:0} = 0."""
        n = feasible.dim
        return FullState(
            feasible, _nothing(n), finite_diameter(feasible, "Full"), np.zeros(0), np.zeros((n, 0)), 0.0, 0
        )

    def step(self, state: SchemeState, g: Vector) -> tuple[LowRank, FullState]:
        """Return Q_t = Q_{1:t} - Q_{1:t-1}, which is PSD because the root is operator monotone, and the next state."""
        assert isinstance(state, FullState)
        g = self.effective(state.feasible, g)
        rate = _rate(self.c, state.D)
        basis, h = extend_basis(state.V, g)
        old = np.concatenate((np.zeros(len(h) - len(state.s)), state.s))
        s, W = add_row(old, h) if h.any() else (old, np.eye(len(old)))
        core = _gram(W, rate * _root(s, self.delta))
        np.einsum("ii->i", core)[...] -= rate * _root(old, self.delta)
        V, age = basis @ W, state.age + 1
        if age == _REFRESH:
            V, s, age = *_decomposed(V, s), 0
        low = rate * math.sqrt(self.delta)
        total = LowRank(low, V, rate * _root(s, self.delta))
        ends = (state.total, total) if isinstance(state.total, LowRank) else None
        Q = LowRank(low - state.low, basis, core, ends)
        return Q, FullState(state.feasible, total, state.D, s, V, low, age)

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """Return gᵀ(Q_{1:t} + l2 I)⁺g computed from the factor.

        g lies in the range of the factor by construction, however small it is beside the other gradients.
        """
        assert isinstance(state, FullState)
        rate, h = _rate(self.c, state.D), state.V.T @ g
        return _factor_quad(rate, np.hypot(state.s, math.sqrt(self.delta)), np.minimum(np.abs(h), state.s), l2)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """Return (c/2 + 2/c) D tr (delta I + GG)^{1/2} and, for the regret alone, the bound with c/2 + 1/c."""
        assert isinstance(state, FullState)
        return _trace_form(self.c, state.D, state.total)


def _nothing(n: int) -> LowRank:
    """Return the zero matrix Q_{1:0} in low-rank form."""
    return LowRank(0.0, np.zeros((n, 0)), np.zeros(0))


def _rate(c: float, D: float) -> float:
    """Return c/D, or 0 for a single point."""
    return c / D if D else 0.0


def _root(s: Vector, low: float) -> Vector:
    """Return sqrt(low + s²) - sqrt(low), without cancellation."""
    return s if low == 0.0 else s * (s / (np.sqrt(low + s * s) + math.sqrt(low)))


def _gram(W: Vector, weight: Vector) -> Vector:
    """Return W diag(weight) Wᵀ, symmetric to the last bit."""
    half = W * np.sqrt(weight)
    return np.asarray(half @ half.T)


def _decomposed(V: Vector, s: Vector) -> tuple[Vector, Vector]:
    """Return the factor V diag(s) recomputed by a dense decomposition, as (V, s) with s rising."""
    U, sigma, _ = np.linalg.svd(V * s, full_matrices=False)
    return np.ascontiguousarray(U[:, ::-1]), sigma[::-1].copy()


def _factor_quad(rate: float, s: Vector, h: Vector, l2: float) -> float:
    """Return sum h_i²/(rate s_i + l2), with h_i² clipped to s_i².

    g gᵀ is part of the sum, so h_i² can exceed s_i² only by rounding.
    """
    weight, h = rate * s + l2, np.minimum(np.abs(h), s)
    return float(np.divide(h * h, weight, out=np.zeros_like(h), where=weight > 0).sum())


def _trace_form(c: float, D: float, total: Matrix) -> ClosedForm:
    """Return both closed forms of the bound from the trace of Q_{1:t}."""
    paper, strong = constants(c)
    S = D * D * (total.trace if isinstance(total, LowRank) else float(np.trace(total))) / c
    return ClosedForm(paper * S, strong * S)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SketchState(SchemeState):
    """The state of `Sketch`: frequent directions B·C with singular values `s`, and the mass `escaped` from them.

    C is orthogonal: directions change by a product of small matrices, and B·C is written out only when B has twice as
    many columns as the sketch has directions. Some of the singular values are 0.
    """

    B: Vector
    C: Vector
    s: Vector
    escaped: float
    D: float

    @property
    def U(self) -> Vector:
        """Return the directions that are kept, one per column."""
        return np.asarray(self.B @ self.C[:, self.s > 0])

    @property
    def w(self) -> Vector:
        """Return the weights w of the kept directions: FD = U diag(w) Uᵀ."""
        return np.asarray(np.square(self.s[self.s > 0]))


@final
@dataclass(frozen=True)
class Sketch(Scheme):
    """The full-matrix scheme from a sketch of `rank` directions: Q_{1:t} = (c/D)(FD + rho I)^{1/2}.

    FD is the sketch and rho the mass that escaped from it. A round takes O(n rank) numbers and operations on an
    `L2Ball`; on other sets Q_{1:t} is written out as an n x n matrix, because their steps need it. With rank > n it
    equals `Full`.

    >>> from ftprl.sets import L2Ball
    >>> scheme = Sketch(rank=2)
    >>> Q, state = scheme.step(scheme.init(L2Ball(100)), np.eye(100)[0])
    >>> Q.B.shape
    (100, 1)
    """

    rank: int
    c: float = 2.0
    center: bool = False

    @property
    def family(self) -> Family:
        """Return "full"."""
        return "full"

    def __post_init__(self) -> None:
        check.dimension("rank", self.rank)
        checked_c(self.c)

    def init(self, feasible: ConvexSet) -> SketchState:
        """Return the state with an empty sketch."""
        n = feasible.dim
        D = finite_diameter(feasible, "Sketch")
        return SketchState(feasible, _nothing(n), np.zeros((n, 0)), np.zeros((0, 0)), np.zeros(0), 0.0, D)

    def step(self, state: SchemeState, g: Vector) -> tuple[LowRank, SketchState]:
        """Return Q_t and the next state.

        Adds g gᵀ to the sketch, subtracts the rank-th eigenvalue from all, and adds it back as a multiple of I.
        """
        assert isinstance(state, SketchState)
        g = self.effective(state.feasible, g)
        rate = _rate(self.c, state.D)
        B, h = extend_basis(state.B, g)
        new = len(h) - len(state.s)
        C, old = np.eye(len(h)), np.concatenate((np.zeros(new), state.s))
        C[new:, new:] = state.C
        s, W = add_row(old, C.T @ h) if h.any() else (old, np.eye(len(old)))
        s, cut = self._cut(s)
        turned, escaped = C @ W, state.escaped + cut
        core = _gram(turned, rate * _root(s, escaped))
        shift, before = rate * math.sqrt(escaped), rate * math.sqrt(state.escaped)
        Q = LowRank(max(shift - before, 0.0), B, core - _gram(C, rate * _root(old, state.escaped)))
        after = SketchState(state.feasible, LowRank(shift, B, core), B, turned, s, escaped, state.D)
        return Q, after if len(s) < 2 * self.rank else _compressed(after, rate)

    def _cut(self, s: Vector) -> tuple[Vector, float]:
        """Return the singular values after the rank-th square is subtracted from all squares, and that square."""
        if len(s) < self.rank:
            return s, 0.0
        cut = float(np.sort(s)[-self.rank])
        return np.sqrt(np.maximum(s - cut, 0.0)) * np.sqrt(s + cut), cut * cut

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """Return gᵀ(Q_{1:t} + l2 I)⁺g, the sum over the sketch's directions and over their complement.

        In the complement the escaped mass is the weight.
        """
        assert isinstance(state, SketchState)
        rate = _rate(self.c, state.D)
        along = state.B.T @ g
        h = state.C.T @ along
        rest = g - state.B @ along
        low, kept = math.sqrt(state.escaped), state.s > 0
        inside = _factor_quad(rate, np.hypot(state.s[kept], low), h[kept], l2)
        outside = math.hypot(float(np.linalg.norm(rest)), float(np.linalg.norm(h[~kept])))
        return inside + _factor_quad(rate, np.array([low]), np.array([outside]), l2)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """Return (c/2 + 2/c) D tr (FD + rho I)^{1/2} and, for the regret alone, the bound with c/2 + 1/c."""
        assert isinstance(state, SketchState)
        return _trace_form(self.c, state.D, state.total)


def _compressed(state: SketchState, rate: float) -> SketchState:
    """Return the sketch with only the columns of B that it needs, orthonormal up to rounding."""
    kept = state.s > 0
    V, s = state.B @ state.C[:, kept], state.s[kept]
    V = V @ np.linalg.inv(np.linalg.cholesky(V.T @ V)).T
    total = LowRank(rate * math.sqrt(state.escaped), V, rate * _root(s, state.escaped))
    return SketchState(state.feasible, total, V, np.eye(len(s)), s, state.escaped, state.D)
