"""Full matrices: the root of the sum of outer products, exact or sketched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl.posthoc import Family
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, checked_c, constants, finite_diameter
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FullState(SchemeState):
    """`R`, triangular with RᵀR = delta I + sum g gᵀ: a factor keeps the digits that the sum itself would lose.

    `s` and `V` are its singular values and right vectors: Q_{1:t} = (c/D) Vᵀ diag(s) V.
    """

    R: Vector
    D: float
    s: Vector
    V: Vector


@final
@dataclass(frozen=True)
class Full(Scheme):
    """Q_{1:t} = (c/D)(delta I + sum g gᵀ)^{1/2}; O(n³) a round.

    A full matrix can lower the regret that is realised; its a-priori bound is never below CoordinateConstant's.
    """

    c: float = 2.0
    delta: float = 0.0
    center: bool = False

    @property
    def family(self) -> Family:
        """full."""
        return "full"

    def __post_init__(self) -> None:
        checked_c(self.c)
        check.positive("delta", self.delta, zero=True)

    def init(self, feasible: ConvexSet) -> FullState:
        """Q_{1:0} = 0."""
        n = feasible.dim
        R = math.sqrt(self.delta) * np.eye(n)
        return FullState(feasible, np.zeros((n, n)), R, finite_diameter(feasible, "Full"), np.zeros(n), np.eye(n))

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, FullState]:
        """Q_t = Q_{1:t} - Q_{1:t-1}, PSD because the root is operator monotone."""
        assert isinstance(state, FullState)
        g = self.effective(state.feasible, g)
        R = np.asarray(np.linalg.qr(np.vstack((state.R, g)), mode="r"))
        _, s, V = np.linalg.svd(R)
        rate = self.c / state.D if state.D else 0.0
        total = rate * (V.T * s) @ V
        total = (total + total.T) / 2
        return total - state.total, FullState(state.feasible, total, R, state.D, s, V)

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """From the factor: g is in its range by construction, however small beside the other gradients."""
        assert isinstance(state, FullState)
        return _factor_quad(self.c / state.D if state.D else 0.0, state.s, state.V @ g, l2)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """(c/2 + 2/c) D tr (delta I + GG)^{1/2}."""
        assert isinstance(state, FullState)
        return _trace_form(self.c, state.D, state.total)


def _factor_quad(rate: float, s: Vector, h: Vector, l2: float) -> float:
    """sum h_i²/(rate s_i + l2), where h_i² <= s_i², as g gᵀ is part of the sum: what rounding adds to it is dropped."""
    weight, h = rate * s + l2, np.minimum(np.abs(h), s)
    return float(np.divide(h * h, weight, out=np.zeros_like(h), where=weight > 0).sum())


def _trace_form(c: float, D: float, total: PSD) -> ClosedForm:
    paper, strong = constants(c)
    S = D * D * float(np.trace(total)) / c
    return ClosedForm(paper * S, strong * S)


@final
@dataclass(frozen=True, slots=True, eq=False)
class SketchState(SchemeState):
    """Frequent directions: eigenvectors `U`, eigenvalues `w`, and the mass `escaped` from them."""

    U: Vector
    w: Vector
    escaped: float
    D: float


@final
@dataclass(frozen=True)
class Sketch(Scheme):
    """Full, from a sketch of `rank` directions: Q_{1:t} = (c/D)(FD + rho I)^{1/2}, rho the mass that escaped.

    The statistics take O(n rank) numbers and O(n rank²) a round, but Q_{1:t} itself is written out as an n x n matrix,
    as every step over a set needs it; with rank > n it is `Full`.
    """

    rank: int
    c: float = 2.0
    center: bool = False

    @property
    def family(self) -> Family:
        """full."""
        return "full"

    def __post_init__(self) -> None:
        check.dimension("rank", self.rank)
        checked_c(self.c)

    def init(self, feasible: ConvexSet) -> SketchState:
        """Nothing seen."""
        n = feasible.dim
        D = finite_diameter(feasible, "Sketch")
        return SketchState(feasible, np.zeros((n, n)), np.zeros((n, 0)), np.zeros(0), 0.0, D)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, SketchState]:
        """Add g gᵀ, subtract the rank-th eigenvalue from all, and give it back as a multiple of I."""
        assert isinstance(state, SketchState)
        g = self.effective(state.feasible, g)
        U, s, _ = np.linalg.svd(np.hstack((state.U * np.sqrt(state.w), g[:, None])), full_matrices=False)
        w = s * s
        cut = float(w[self.rank - 1]) if len(w) >= self.rank else 0.0
        w = np.maximum(w - cut, 0.0)
        keep = w > 0
        U, w, escaped = U[:, keep], w[keep], state.escaped + cut
        rate = self.c / state.D if state.D else 0.0
        low = math.sqrt(escaped)
        total = rate * ((U * (np.sqrt(w + escaped) - low)) @ U.T + low * np.eye(len(g)))
        total = (total + total.T) / 2
        return total - state.total, SketchState(state.feasible, total, U, w, escaped, state.D)

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """From the sketch: along its directions, and in the rest, where the escaped mass is the weight."""
        assert isinstance(state, SketchState)
        rate = self.c / state.D if state.D else 0.0
        h = state.U.T @ g
        rest = g - state.U @ h
        low = math.sqrt(state.escaped)
        inside = _factor_quad(rate, np.sqrt(state.w + state.escaped), h, l2)
        return inside + _factor_quad(rate, np.array([low]), np.array([float(np.linalg.norm(rest))]), l2)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """(c/2 + 2/c) D tr (FD + rho I)^{1/2}."""
        assert isinstance(state, SketchState)
        return _trace_form(self.c, state.D, state.total)
