"""Convex sets as linear rows and cones, in Clarabel's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports

Vector = NDArray[np.float64]
Rows = tuple[Vector, Vector]


def _rows(size: int) -> Rows:
    """Return no rows for this number of variables."""
    return np.zeros((0, size)), np.zeros(0)


@final
@dataclass(frozen=True, eq=False)
class Conic:
    """The set {x : (x, y) for some y with C(x,y) <= d, A(x,y) = b, h - G(x,y) in a cone}.

    y are auxiliary variables with |y| <= `reach`; `soc` and `power` hold the second-order and the power cones.
    """

    dim: int
    C: Vector
    d: Vector
    A: Vector
    b: Vector
    soc: tuple[Rows, ...] = ()
    power: tuple[tuple[Vector, Vector, float], ...] = ()
    reach: Vector = field(default_factory=lambda: np.zeros(0))

    @property
    def size(self) -> int:
        """Return the number of variables, including auxiliary ones."""
        return self.dim + len(self.reach)

    @property
    def polyhedral(self) -> bool:
        """Return True if there are only linear rows, on x itself."""
        return not self.soc and not self.power and not len(self.reach)

    @staticmethod
    def polyhedron(dim: int, inequalities: Rows | None = None, equalities: Rows | None = None) -> Conic:
        """Return the polyhedron {x : Cx <= d, Ax = b}.

        >>> Conic.polyhedron(1, (np.array([[1.0]]), np.array([2.0]))).polyhedral
        True
        """
        C, d = inequalities or _rows(dim)
        A, b = equalities or _rows(dim)
        return Conic(dim, C, d, A, b)

    def substitute(self, B: Vector, shift: Vector) -> Conic:
        """Return the set {x : Bx - shift in this set}."""

        def turn(G: Vector, h: Vector) -> Rows:
            """Return rows in the new variables."""
            return np.hstack((G[:, : self.dim] @ B, G[:, self.dim :])), h + G[:, : self.dim] @ shift

        C, d = turn(self.C, self.d)
        A, b = turn(self.A, self.b)
        power = tuple((*turn(G, h), alpha) for G, h, alpha in self.power)
        return Conic(B.shape[1], C, d, A, b, tuple(turn(*r) for r in self.soc), power, self.reach)

    @staticmethod
    def join(parts: Sequence[Conic], offsets: Sequence[int], dim: int) -> Conic:
        """Combine parts, part k on the coordinates from offsets[k]: a product, or an intersection if offsets are 0."""
        size = dim + sum(len(p.reach) for p in parts)
        at = dim
        C: list[Vector] = []
        A: list[Vector] = []
        soc: list[Rows] = []
        power: list[tuple[Vector, Vector, float]] = []
        for part, offset in zip(parts, offsets, strict=True):
            columns = np.r_[offset : offset + part.dim, at : at + len(part.reach)]
            at += len(part.reach)

            def widen(G: Vector, columns: NDArray[np.int_] = columns) -> Vector:
                """Return rows with zeros for the variables of other parts."""
                out = np.zeros((len(G), size))
                out[:, columns] = G
                return out

            C.append(widen(part.C))
            A.append(widen(part.A))
            soc.extend((widen(G), h) for G, h in part.soc)
            power.extend((widen(G), h, alpha) for G, h, alpha in part.power)
        return Conic(
            dim,
            np.vstack(C),
            np.concatenate([p.d for p in parts]),
            np.vstack(A),
            np.concatenate([p.b for p in parts]),
            tuple(soc),
            tuple(power),
            np.concatenate([p.reach for p in parts]),
        )

    def rescale(self, middle: Vector, unit: Vector) -> Conic:
        """Return {y : middle + unit·y in this set}, with rows of length 1 and auxiliary variables in units of their
        reach.
        """
        columns = np.concatenate((unit, self.reach))

        def turn(G: Vector, h: Vector, together: bool) -> Rows:
            """Return rows in the scaled variables, each of length 1, or all `together` divided by one length."""
            G, h = G * columns, h - G[:, : self.dim] @ middle
            size = np.linalg.norm(G, axis=1)
            # A cone may be multiplied only by one number, each row of inequalities by its own.
            size = np.full(len(h), size.max(initial=0.0)) if together else size
            size = np.where(size > 0, size, 1.0)
            return G / size[:, None], h / size

        C, d = turn(self.C, self.d, False)
        A, b = turn(self.A, self.b, False)
        return replace(
            self,
            C=C,
            d=d,
            A=A,
            b=b,
            soc=tuple(turn(G, h, True) for G, h in self.soc),
            power=tuple((*turn(G, h, True), alpha) for G, h, alpha in self.power),
            reach=np.ones(len(self.reach)),
        )

    def with_l1(self, magnitude: Vector) -> Conic:
        """Return this set with n further variables t >= |x| at the end; `magnitude` bounds |x|."""
        n, eye = self.dim, np.eye(self.dim)

        def widen(G: Vector) -> Vector:
            """Return rows with zeros for the further variables."""
            return np.hstack((G, np.zeros((len(G), n))))

        middle = np.zeros((n, len(self.reach)))
        absolute = np.vstack((np.hstack((eye, middle, -eye)), np.hstack((-eye, middle, -eye))))
        return replace(
            self,
            C=np.vstack((widen(self.C), absolute)),
            d=np.concatenate((self.d, np.zeros(2 * n))),
            A=widen(self.A),
            soc=tuple((widen(G), h) for G, h in self.soc),
            power=tuple((widen(G), h, alpha) for G, h, alpha in self.power),
            reach=np.concatenate((self.reach, magnitude)),
        )

    @cached_property
    def rows(self) -> Rows:
        """Return all linear rows, equalities first."""
        return np.vstack((self.A, self.C)), np.concatenate((self.b, self.d))

    @cached_property
    def _sizes(self) -> tuple[Vector, Vector]:
        return np.abs(self.rows[0]), 1.0 + np.abs(self.rows[1])

    def row_scale(self, w: Vector) -> Vector:
        """Return 1 + |h| + |G

        w| for each linear row, the size that its rounding is measured against.
        """
        G, h = self._sizes
        return h + G @ np.abs(w)

    @cached_property
    def stacked(self) -> tuple[Any, Vector, list[Any]]:
        """Return (matrix, right side, cones) in Clarabel's form: h - Gx in the cone."""
        with extra_imports:
            import clarabel
            from scipy.sparse import csc_matrix

        G = np.vstack([self.A, self.C, *(g for g, _ in self.soc), *(g for g, _, _ in self.power)])
        h = np.concatenate([self.b, self.d, *(h for _, h in self.soc), *(h for _, h, _ in self.power)])
        cones: list[Any] = []
        if len(self.b):
            cones.append(clarabel.ZeroConeT(len(self.b)))
        if len(self.d):
            cones.append(clarabel.NonnegativeConeT(len(self.d)))
        cones.extend(clarabel.SecondOrderConeT(len(h)) for _, h in self.soc)
        cones.extend(clarabel.PowerConeT(alpha) for _, _, alpha in self.power)
        return csc_matrix(G), h, cones

    @cached_property
    def equality_inverse(self) -> Vector:
        """Return the pseudo-inverse of A, which moves a point back onto Ax = b."""
        return np.asarray(np.linalg.pinv(self.A))
