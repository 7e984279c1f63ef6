"""The best bound in hindsight, OPT = inf over Q in a family of N(Q) + sum_t g_tᵀ Q⁻¹ g_t, and its matrix Q*.

Closed forms where they exist; convex programs on request; otherwise an upper bound, marked as one. The formulas belong
to the sets: see `ConvexSet.post_hoc`.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets import ConvexSet, Family, PostHoc

__all__ = ["Family", "PostHoc", "best_bound"]

Vector = NDArray[np.float64]


def best_bound(
    feasible: ConvexSet,
    family: Family,
    G: Vector,
    GG: Vector | None = None,
    *,
    program: bool = False,
) -> PostHoc | None:
    """Return the smallest bound that one fixed matrix of a family could have had, known only after the last
    gradient.

    `G` holds sum g_i² for each coordinate and `GG`, which "full" needs, sum g gᵀ. With `program` a convex program is
    solved if there is no closed form. Returns None if the optimum cannot be computed.

    >>> from ftprl.sets import Box
    >>> round(best_bound(Box(0, 1, dim=2), "diagonal", np.array([1.0, 4.0])).value, 6)
    4.242641
    """
    if family not in get_args(Family):
        raise InvalidInput(f"family needs const, diagonal, full or block, got {family!r}; pass one of these.")
    G = check.vector("G", G, feasible.dim)
    if np.any(G < 0):
        raise InvalidInput(f"G needs sums of squares, all at least 0, got {G.min():g}; pass sum(g**2) a coordinate.")
    if GG is not None:
        GG = psd.dense(psd.as_psd(GG, feasible.dim, "GG"), feasible.dim)
    return feasible.post_hoc(family, G, GG, program=program)
