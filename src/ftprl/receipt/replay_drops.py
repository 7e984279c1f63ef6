"""Which experts a replay drops, at powers of two of its rows: docs/scales.md, once more for `verify`.

Nothing here calls the decisions of `linear.mixture`, but for the row from which on something may be dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ftprl.linear import mixture

Vector = NDArray[np.float64]


def dropped_experts(state: Mapping[str, Vector], names: Sequence[str], rows: int) -> Sequence[str]:
    """Return the names of the experts that are no scales and leave after this row.

    >>> state = {"octave": np.array([[0, 0, 0], [9.0, 8.0, 8.1]]), "without": np.array([[0, 0, 0], [0, 8.5, 8.0]])}
    >>> state["octave_loss"] = np.array([0.0, 8.0])
    >>> dropped_experts(state, ("0.1", "drift", "coin"), 2**14)
    ['coin']
    """
    if rows < mixture.FIRST_DROP_ROW or rows & (rows - 1):
        return []
    losses = dict(zip(names, state["octave"][1].tolist(), strict=True))
    alone = dict(zip(names, state["without"][1].tolist(), strict=True))
    whole = float(state["octave_loss"][1])
    candidates = [name for name in ("columns", "coin", "drift") if name in losses]
    behind = []
    for name in candidates:
        best = min(state["octave"][1, np.arange(len(names)) != names.index(name)].tolist())
        if losses[name] - best > 0.01 * abs(best):
            behind.append(name)
    limit = 1.001 * whole if whole >= 0.0 else whole + 0.001 * abs(whole)
    spare = [name for name in candidates if alone[name] < limit]
    return behind or spare[:1]


def kept_scales(state: Mapping[str, Vector], scales: int, rows: int) -> int | None:
    """Return the number of the first of the four neighbouring scales that are kept; None if all are."""
    if scales <= 4 or rows < mixture.FIRST_ROW or rows & (rows - 1):
        return None
    sums = state["windows"][2].tolist()
    first = min(range(scales - 3), key=lambda i: sums[i])
    return first if sums[first] <= 1.001 * sums[-1] else None
