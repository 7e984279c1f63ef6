"""Half-spaces and polytopes: sets defined by linear constraints."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.extras import extra_imports
from ftprl.sets.base import ConvexSet, Frozen, scaled_tolerance, worst_excess
from ftprl.sets.box import Box
from ftprl.solver import Conic, Solution, axis_bounds, linear_program, minimise_conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_MAX_VERTEX_DIM = 10
_MAX_GAMMA_PAIRS = 4000


@final
class Halfspace(Frozen, ConvexSet):
    """The half-space {x : a·x <= b}.

    It is unbounded, so use it with `Fixed` matrices or inside an `Intersection`.

    >>> Halfspace([1.0, 0.0], 2.0).argmin(np.array(1.0), np.array([-5.0, -1.0]), np.zeros(2))
    array([2., 1.])
    """

    def __init__(self, a: ArrayLike, b: float) -> None:
        normal = check.vector("a", a)
        size = float(np.linalg.norm(normal))
        if not size:
            raise InvalidInput("Halfspace needs a normal a that is not 0, got all zeros; drop the constraint.")
        self.a, self.b = check.frozen(normal / size), check.number("b", b) / size

    def __repr__(self) -> str:
        return f"Halfspace(dim={self.dim})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.a)

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser of ½ xᵀHx + z·x: the unconstrained one, moved along H⁺a to a·x = b if it lies outside.

        Where H has directions without weight, the move goes along them at no cost.
        """
        null = near - psd.solve(H, psd.apply(H, near)) if H.ndim == 2 else np.where(H == 0, near, 0.0)
        x = null - psd.solve(H, z)
        if np.linalg.norm(psd.apply(H, x) + z) > 1e-7 * np.linalg.norm(z):
            raise InvalidInput(
                "the minimum over a Halfspace needs z in the range of H, got a part outside; bound the set."
            )
        excess = float(self.a @ x) - self.b
        if excess <= 0:
            return x
        push = psd.solve(H, self.a)
        unseen = self.a - psd.apply(H, push)
        if np.linalg.norm(unseen) > 1e-9 * np.linalg.norm(self.a):
            return x - unseen * (excess / float(unseen @ self.a))
        return x - push * (excess / float(self.a @ push))

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x in closed form; no gap can be proved on an unbounded set, so 0 is reported."""
        return Solution(self.argmin(H, z, near), 0.0)

    def violation(self, x: Vector) -> float:
        """Return by how much a·x exceeds b, relative to both."""
        size = abs(self.b) + float(np.abs(self.a) @ np.abs(x))
        return max(float(self.a @ x) - self.b, 0.0) / size if size else 0.0

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser of g·x, which exists only if g is 0 or opposite to a; raises InvalidInput otherwise."""
        share = float(g @ self.a) / float(self.a @ self.a)
        if share > 0 or np.linalg.norm(g - share * self.a) > 1e-12 * np.linalg.norm(g):
            raise InvalidInput(
                "the best point of a Halfspace needs a gradient opposite to a, got another: it is unbounded there;"
                " use Intersection(Halfspace(a, b), box)."
            )
        return self.a * (self.b / float(self.a @ self.a)) if share < 0 else self.start()

    def widths(self) -> Vector:
        """Return infinity for every coordinate."""
        return np.full(self.dim, np.inf)

    def sq_diameter(self, Q: PSD) -> float:
        """Return infinity, or 0 if Q is 0."""
        return math.inf if np.any(Q) else 0.0

    def bounds(self) -> tuple[Vector, Vector]:
        """Return infinite ranges, except for the coordinate of an axis-parallel side."""
        low, high = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
        if np.count_nonzero(self.a) == 1:
            i = int(np.flatnonzero(self.a)[0])
            (high if self.a[i] > 0 else low)[i] = self.b / self.a[i]
        return low, high

    def start(self) -> Vector:
        """Return the point nearest to 0."""
        return self.a * (min(self.b, 0.0) / float(self.a @ self.a))

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if a·x <= b up to the tolerance."""
        return float(self.a @ x) <= self.b + scaled_tolerance(atol, abs(self.b) + float(np.abs(self.a).sum()))

    def conic(self) -> Conic:
        """Return the half-space as one linear row."""
        return Conic.polyhedron(self.dim, (self.a[None, :], np.array([self.b])))


def _corners(C: Vector, d: Vector, center: Vector) -> Vector:
    """Return the corners of {Cx <= d}, one a row, computed in coordinates in which the set is well scaled.

    With slacks s at the centre and C/s = QR the set is {Qy <= 1}, y = R(x - center), and contains the unit ball.
    """
    with extra_imports:
        from scipy.spatial import HalfspaceIntersection, QhullError

    slack = d - C @ center
    try:
        if not slack.min() > 0.0:
            raise QhullError
        Q, R = np.linalg.qr(C / slack[:, None])
        halfspaces = HalfspaceIntersection(np.hstack((Q, -np.ones((len(Q), 1)))), np.zeros(len(center)))
    except QhullError:
        raise Unsupported("the vertices need a Polytope with interior; write its flat rows as A_eq, b_eq.") from None
    y = halfspaces.intersections[np.isfinite(halfspaces.intersections).all(axis=1)]
    _, first = np.unique(np.round(y / np.abs(y).max(axis=0), 10), axis=0, return_index=True)
    return np.asarray(center + np.linalg.solve(R, y[first].T).T)


def _unit_rows(C: Vector, d: Vector) -> tuple[Vector, Vector]:
    """Return the rows scaled to normals of length 1, so that tolerances are distances; rows of zeros stay."""
    size = np.linalg.norm(C, axis=1)
    size = np.where(size > 0, size, 1.0)
    return check.frozen(C / size[:, None]), check.frozen(d / size)


@final
class Polytope(Frozen, ConvexSet):
    """The polytope {x : Cx <= d, A_eq x = b_eq} of any linear constraints.

    >>> Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]).widths()
    array([1., 1.])
    """

    def __init__(
        self, C: ArrayLike, d: ArrayLike, A_eq: ArrayLike | None = None, b_eq: ArrayLike | None = None
    ) -> None:
        rows = check.matrix("C", C)
        n = rows.shape[1]
        self.C, self.d = _unit_rows(rows, check.vector("d", d, len(rows)))
        if (A_eq is None) != (b_eq is None):
            raise InvalidInput("Polytope needs A_eq and b_eq together, got only one of them; pass both or neither.")
        flat = np.zeros((0, n)) if A_eq is None else check.matrix("A_eq", A_eq, n)
        self.A_eq, self.b_eq = _unit_rows(flat, np.zeros(0) if b_eq is None else check.vector("b_eq", b_eq, len(flat)))
        check.dimension("the number of columns of C", n)
        self._center, self.inner_radius = self._chebyshev()

    def __repr__(self) -> str:
        return f"Polytope(dim={self.dim}, faces={len(self.d)}, equalities={len(self.b_eq)})"

    def _chebyshev(self) -> tuple[Vector, float]:
        """Return the centre and the radius of the largest ball inside; the radius is capped in case F is unbounded."""
        n = self.C.shape[1]
        norms = np.linalg.norm(self.C, axis=1)
        C = np.vstack((np.hstack((self.C, norms[:, None])), np.eye(n + 1)[-1:], -np.eye(n + 1)[-1:]))
        cap = 2.0 * float(np.abs(self.d).max(initial=0.0)) or 1.0
        d = np.concatenate((self.d, [cap, 0.0]))
        A = np.hstack((self.A_eq, np.zeros((len(self.b_eq), 1))))
        g = np.zeros(n + 1)
        g[-1] = -1.0
        status, x = linear_program(g, C, d, A, self.b_eq)
        if status != "optimal":
            raise InvalidInput(
                f"Polytope needs a point that meets every row, got none among {len(self.d)} inequalities and"
                f" {len(self.b_eq)} equalities; relax or drop a row."
            )
        return check.frozen(x[:-1].copy()), float(x[-1])

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return int(self.C.shape[1])

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """Return False: every step needs a solver."""
        return False

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x by a quadratic program, started from the faces active at `near`."""
        return minimise_conic(self, H, z, near)

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser of g·x by a linear program; raises InvalidInput if F is unbounded along g."""
        if np.isfinite(self.widths()).all():
            return minimise_conic(self, psd.zero(), g, self._center).x
        status, x = linear_program(g, self.C, self.d, self.A_eq, self.b_eq)
        if status == "unbounded":
            raise InvalidInput("the best point of a Polytope needs a bounded one, got no bound along g; add faces.")
        return x

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return the gap by a linear program, with the gap of that program added."""
        slope = psd.apply(H, x) + z
        best = minimise_conic(self, psd.zero(), slope, x)
        return max(float(slope @ (x - best.x)), 0.0) + best.gap

    @cached_property
    def _bounds(self) -> tuple[Vector, Vector]:
        return axis_bounds(self._conic)

    def widths(self) -> Vector:
        """Return the widths, computed once by 2n linear programs."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        low, high = self._bounds
        D = high - low
        # A difference of bounds that is only rounding counts as width 0: the coordinate cannot move.
        size = np.where(np.isfinite(D), np.maximum(np.abs(low), np.abs(high)), 0.0)
        return check.frozen(np.where(4e-16 * size >= D, 0.0, D))

    def start(self) -> Vector:
        """Return the centre of the largest inscribed ball.

        >>> Polytope([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 1, 1, 1]).start() + 0.0
        array([0., 0.])
        """
        return self._center.copy()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if every row holds up to atol·(1 + its size)."""
        G, h = self._conic.rows
        e, tol = len(self.b_eq), atol * self._conic.row_scale(x)
        miss = G @ x - h
        return bool(np.all(miss <= tol) and np.all(miss[:e] >= -tol[:e]))

    def violation(self, x: Vector) -> float:
        """Return the largest violation of a row, relative to the numbers it is computed from."""
        G, h = self._conic.rows
        miss, e = G @ x - h, len(self.b_eq)
        miss[:e] = np.abs(miss[:e])
        return worst_excess(miss, self._row_sizes + np.abs(G) @ np.abs(x))

    @cached_property
    def _row_sizes(self) -> Vector:
        """Return the size that rounding is measured against in each row: |h| + |G| times the largest |x| in F."""
        G, h = self._conic.rows
        low, high = self._bounds
        reach = np.maximum(np.abs(low), np.abs(high))
        return np.asarray(np.abs(h) + np.abs(G) @ np.where(np.isfinite(reach), reach, 0.0))

    def tangent(self, g: Vector) -> Vector:
        """Return the projection of g on the directions that the equality rows leave free."""
        return g - self._row_space @ g if len(self.b_eq) else g

    @cached_property
    def _row_space(self) -> Vector:
        return np.asarray(np.linalg.pinv(self.A_eq) @ self.A_eq)

    def conic(self) -> Conic:
        """Return the rows of the polytope."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return Conic.polyhedron(self.dim, (self.C, self.d), (self.A_eq, self.b_eq))

    @cached_property
    def _inner(self) -> tuple[Vector, float] | None:
        """Return (centre, s) of the largest box inside with s times the widths, by one linear program; None if there is
        none.
        """
        D = self.widths()
        if not np.isfinite(D).all() or np.any(np.abs(self.A_eq) @ D > 0):
            return None
        n, unit = self.dim, float(D.max(initial=0.0)) or 1.0  # the centre is found in units of the widest side
        C = np.vstack((np.hstack((self.C, (np.abs(self.C) @ (D / unit) / 2)[:, None])), -np.eye(n + 1)[-1:]))
        A = np.hstack((self.A_eq, np.zeros((len(self.b_eq), 1))))
        g = np.zeros(n + 1)
        g[-1] = -1.0
        status, x = linear_program(g, C, np.concatenate((self.d / unit, [0.0])), A, self.b_eq / unit)
        return (x[:-1] * unit, float(x[-1])) if status == "optimal" and x[-1] > 1e-12 else None

    def beta(self) -> float | None:
        """Return 1 divided by the largest share of the outer box that fits inside; None if none fits."""
        return None if self._inner is None else max(1.0 / self._inner[1], 1.0)

    def inner_box(self) -> Box | None:
        """Return the largest scaled copy of the outer box that fits inside, or None if none fits."""
        if self._inner is None:
            return None
        c, s = self._inner
        return Box(c - s * self.widths() / 2, c + s * self.widths() / 2)

    def gamma(self) -> float:
        """Return gamma by a linear program over the vertices of Fsym if these are few, min(n, beta²) otherwise."""
        return self._gamma

    @cached_property
    def _gamma(self) -> float:
        beta = self.beta()
        simple = float(self.dim) if beta is None else min(float(self.dim), beta**2)
        D = self.widths()
        if self.dim > 6 or not np.isfinite(D).all():
            return simple
        try:
            squares = self.difference_vertices() ** 2
        except Unsupported:
            return simple
        if len(squares) > _MAX_GAMMA_PAIRS:
            return simple
        ones = np.ones(len(squares))
        none = np.zeros((0, len(squares))), np.zeros(0)
        live = D > 0
        share = squares[:, live] / D[live] ** 2
        status, w = linear_program(ones, -share.T, -np.ones(int(live.sum())), *none, bounds=(0, None))
        return max(min(simple, float(w.sum())), 1.0) if status == "optimal" else simple

    @cached_property
    def _vertices(self) -> Vector:
        """Return the corners of F within the affine space of its equality rows."""
        with extra_imports:
            from scipy.linalg import null_space

        basis = null_space(self.A_eq) if len(self.b_eq) else np.eye(self.dim)
        k = basis.shape[1]
        if not np.isfinite(self.widths()).all():
            raise Unsupported("the vertices need a bounded Polytope; add faces.")
        if k == 0:
            return self._center[None, :].copy()
        if k == 1:
            ends = [self.vertex(basis[:, 0]), self.vertex(-basis[:, 0])]
            return np.array(ends)
        if k > _MAX_VERTEX_DIM:
            raise Unsupported(f"the vertices are listed up to {_MAX_VERTEX_DIM} free dimensions, got {k}; use beta().")
        C, center = self.C @ basis, np.zeros(k)
        keep = np.linalg.norm(C, axis=1) > 1e-12
        C, d = C[keep], (self.d - self.C @ self._center)[keep]
        for _ in range(2):  # the second time around the mean of the corners, well inside a long set too
            center = _corners(C, d, center).mean(axis=0)
        corners = _corners(C, d, center)
        return np.asarray(self._center + corners @ basis.T)

    def vertices(self) -> Vector:
        """Return the corners of F, one a row; raises an error above 10 free dimensions.

        >>> len(Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0]).vertices())
        3
        """
        return self._vertices.copy()

    def difference_vertices(self) -> Vector:
        """Return points that include, up to sign, all vertices of Fsym."""
        V = self._vertices
        i, j = np.triu_indices(len(V), 1)
        return V[i] - V[j]
