"""Which column or namespace a cell belongs to: the parts of a certificate by name, beside those by how often seen.

A cell belongs to the first name that landed in it. A product of features belongs to the columns of its factors,
`user*ad`; a cell without a name to `(no name)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.name_budget import LARGEST_BUDGET
from ftprl.linear.names import Names

if TYPE_CHECKING:
    from ftprl.data import Source
    from ftprl.linear.model import Model

INTERCEPT, DEFAULT, UNNAMED, OTHERS = "(intercept)", "(default)", "(no name)", "(others)"
MOST = 200  # groups of a certificate
_BEHIND = "=. ~<>"  # what may stand behind the name of a column

Shares = NDArray[np.float64]


@final
class CellGroups:
    """The group of each cell of a table, by the names of its features and how its data is read."""

    def __init__(self, names: Names, reading: Mapping[str, Any], dim: int) -> None:
        self._names, self._dim = names, dim
        columns = reading.get("columns")
        self._columns = None if columns is None else frozenset(columns)
        self._has_products = bool(reading.get("interactions"))

    @classmethod
    def of_model(cls, model: Model) -> CellGroups | None:
        """Those of a model that has the names of all its features."""
        names = model.names
        if names is None or not names.has_all or not len(names):
            return None
        return cls(names, model.reading, model.spec.dim)

    @classmethod
    def of_data(cls, sources: Iterable[Source], reading: Mapping[str, Any], dim: int) -> CellGroups:
        """Those of data that is read with its names, from the first row on."""
        names, rows = Names(dim, LARGEST_BUDGET), 0
        for source in sources:
            for batch, _ in source.read(threads=0, digest=False):
                names.add(batch, rows)
                rows += len(batch)
        return cls(names, reading, dim)

    def __call__(self, slots: NDArray[Any]) -> list[str]:
        """The groups of some cells."""
        known: dict[str | None, str] = {None: UNNAMED}
        names = self._names.of_cells(slots.astype(np.uint32))
        for name in names:
            if name not in known and name is not None:
                known[name] = group_of(name, self._columns, products=self._has_products)
        return [known[name] for name in names]


def group_of(name: str, columns: Collection[str] | None, *, products: bool = False) -> str:
    """The column or the namespace of a feature; `columns` are those of a table, None for VW text.

    >>> group_of("user=ann", ["user", "ad"]), group_of("news^sport", None), group_of("sport", None)
    ('user', 'news', '(default)')
    >>> group_of("user=ann*ad=7", ["user", "ad"], products=True)
    'user*ad'
    """
    if products and "*" in name:
        parts = [_part(part, columns) for part in name.split("*")]
        if None not in parts:  # or else the star is one of a value
            return "*".join(part or DEFAULT for part in parts)
    return _part(name, columns) or (DEFAULT if columns is None else _front(name))


def _part(name: str, columns: Collection[str] | None) -> str | None:
    """The column or namespace of a feature that is no product; None for none that is known."""
    if columns is None:
        at = name.find("^")
        return name[:at] if at > 0 and name[at - 1] != " " else ""
    ends = [i for i, c in enumerate(name) if c in _BEHIND]
    return next((name[:end] for end in (len(name), *reversed(ends)) if name[:end] in columns), None)


def _front(name: str) -> str:
    """What stands before the value, of a key that is no known column."""
    ends = [name.index(c) for c in "=." if c in name]
    return name[: min(ends, default=len(name))]


def add_shares(groups: dict[str, Shares], labels: Sequence[str], shares: Shares) -> None:
    """Add one row of shares for each label."""
    names, which = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    for j, name in enumerate(names.tolist()):
        own = shares[which == j]
        add = np.concatenate(([len(own)], own.sum(axis=0)))
        groups[name] = add if name not in groups else groups[name] + add


def listed(groups: Mapping[str, Shares], *, has_units: bool) -> list[dict[str, Any]]:
    """The groups as a certificate lists them, by name; of more than 200 those with the fewest cells are one."""
    ordered = sorted(groups, key=lambda name: (-groups[name][0], name))
    kept, rest = ordered[: MOST - 1], ordered[MOST - 1 :]
    shares = {name: groups[name] for name in kept}
    if rest:
        shares[OTHERS] = np.sum([groups[name] for name in rest], axis=0)
    entries = []
    for name in sorted(shares):
        count, regret, bound, post_hoc = shares[name].tolist()
        best = None if has_units else post_hoc  # R counts gradients in the unit of the labels, which moves
        entries.append({"name": name[:200], "count": int(count), "regret": regret, "bound": bound, "post_hoc": best})
    return entries
