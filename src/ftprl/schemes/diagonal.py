"""The paper's per-coordinate scheme, with one adaptive number for each coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.posthoc import Family
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, checked_c, constants
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DiagonalState(SchemeState):
    """The state of `Diagonal`: `G` = sum g_i², its root, and `rate` = c/D_i (0 for a coordinate that cannot move)."""

    G: Vector
    root: Vector
    rate: Vector


@final
@dataclass(frozen=True, eq=False)
class Diagonal(Scheme):
    """Q_{1:t} = diag(c sqrt(G_i) / D_i): FTPRL-Diag, with per-coordinate learning rates.

    `widths` replaces the set's own D_i: a guess for coordinates without bounds, for which no a-priori bound holds.

    >>> from ftprl.sets import Box
    >>> scheme = Diagonal()
    >>> Q, state = scheme.step(scheme.init(Box(-1, 1, dim=2)), np.array([3.0, 4.0]))
    >>> Q
    array([3., 4.])
    """

    c: float = 2.0
    widths: ArrayLike | None = None
    center: bool = False

    @property
    def family(self) -> Family:
        """Return "diagonal"."""
        return "diagonal"

    def __post_init__(self) -> None:
        checked_c(self.c)
        if self.widths is not None:
            guess = check.frozen(check.finite("widths", check.array("widths", self.widths)))
            if guess.ndim > 1 or np.any(guess <= 0):
                raise InvalidInput(f"widths needs numbers above 0, got {self.widths!r}; pass a guess for each range.")
            object.__setattr__(self, "widths", guess)

    def init(self, feasible: ConvexSet) -> DiagonalState:
        """Return the state with Q_{1:0} = 0.

        Raises InvalidInput if a width is infinite, or so small that c/D_i overflows.
        """
        n = feasible.dim
        if self.widths is None:
            D = feasible.widths()
            if not np.isfinite(D).all():
                i = int(np.flatnonzero(~np.isfinite(D))[0])
                raise InvalidInput(
                    f"Diagonal needs finite widths, got D[{i}]={D[i]} for {feasible!r};"
                    " bound that coordinate or pass widths= as a guess."
                )
        else:
            guess = np.asarray(self.widths)
            D = np.full(n, guess) if guess.ndim == 0 else check.vector("widths", guess, n)
        rate = np.divide(self.c, D, out=np.zeros(n), where=D > 0)
        if not np.isfinite(rate).all():
            i = int(np.flatnonzero(~np.isfinite(rate))[0])
            raise InvalidInput(f"Diagonal needs widths above c/1e308, got D[{i}]={D[i]:g}; fix that coordinate.")
        return DiagonalState(feasible, np.zeros(n), np.zeros(n), np.zeros(n), rate)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, DiagonalState]:
        """Return Q_t = (c/D_i) g_i² / (sqrt(G_i) + sqrt(G_i + g_i²)) and the next state."""
        assert isinstance(state, DiagonalState)
        if self.center:
            g = state.feasible.tangent(g)
        Q = g * g
        G = state.G + Q
        root = np.sqrt(G)
        both = state.root + root
        if psd.positive(both):
            Q /= both
        else:
            np.divide(Q, both, out=Q, where=both > 0)
        Q *= state.rate  # multiplied last: the square of a gradient times a rate may overflow
        return Q, DiagonalState(state.feasible, state.rate * root, G, root, state.rate)

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return g with 0 at the coordinates that cannot move."""
        g = feasible.tangent(g) if self.center else g
        D = feasible.widths()
        return g if psd.positive(D) else np.where(D == 0, 0.0, g)

    def closed_form(self, state: SchemeState) -> ClosedForm | None:
        """Return (c/2 + 2/c) sum D_i sqrt(G_i) and, for the regret alone, (c/2 + 1/c) sum D_i sqrt(G_i)."""
        assert isinstance(state, DiagonalState)
        if self.widths is not None:
            return None
        paper, strong = constants(self.c)
        S = float(state.feasible.widths() @ state.root)
        return ClosedForm(paper * S, strong * S)

    def _competes(self, feasible: ConvexSet) -> bool:
        """Return True if the competitive ratio is proved: the set's own widths are used, and its geometry is exact."""
        return self.widths is None and feasible.is_exact("widths") and feasible.is_exact("diagonal")

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 2/c) sqrt(gamma/2), proved against the diagonal family, or None."""
        return constants(self.c)[0] * math.sqrt(feasible.gamma() / 2) if self._competes(feasible) else None

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 1/c) sqrt(gamma/2), proved for the regret against the diagonal family, or None."""
        return constants(self.c)[1] * math.sqrt(feasible.gamma() / 2) if self._competes(feasible) else None
