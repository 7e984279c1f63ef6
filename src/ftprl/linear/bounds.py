"""Bounds of weights by the names of features: how they are written, and which cells get them as names are met."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import BoundTable
from ftprl.data import Batch
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
Bound = tuple[str, float, float]  # a pattern of names, the lower and the upper end
MOST = 4096
_LARGEST = 1e30
_LONGEST = 400
_FORM = re.compile(r"(?P<name>.+)=(?P<lower>[^:=]*):(?P<upper>[^:=]*)", re.DOTALL)


def parse_bounds(value: object) -> tuple[Bound, ...]:
    """Bounds as a mapping of patterns to pairs, or as texts such as "price*=0:"; None is no bound.

    >>> parse_bounds({"price*": (0, None), 3: (-1, 1)})
    (('price*', 0.0, inf), ('3', -1.0, 1.0))
    >>> parse_bounds(["price*=0:", "city=Oslo=:2.5"])
    (('price*', 0.0, inf), ('city=Oslo', -inf, 2.5))
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    entries: Iterable[Any]
    if isinstance(value, Mapping):
        entries = [(_pattern(name), *_pair(name, pair)) for name, pair in value.items()]
    elif isinstance(value, Iterable):
        entries = [_typed(one) if isinstance(one, str) else _triple(one) for one in value]
    else:
        raise _wrong(value)
    bounds = tuple(
        (_printable(name), _end(name, lower, -1.0), _end(name, upper, 1.0)) for name, lower, upper in entries
    )
    if len(bounds) > MOST:
        raise InvalidInput(f"bounds= needs at most {MOST} patterns, got {len(bounds)}; join some by * or ?.")
    for name, lower, upper in bounds:
        if not lower <= upper:
            raise InvalidInput(
                f"bounds= needs a lower end that is at most the upper, got {lower:g} and {upper:g} for {name!r:.60};"
                " swap them."
            )
    return bounds


def _wrong(value: object) -> InvalidInput:
    return InvalidInput(
        f"bounds= needs a name or pattern with a range, such as price*=0: (at least 0), x=:0 or x=-1:1, got"
        f" {value!r:.80}; put the range behind the name, with = between them."
    )


def _typed(text: str) -> tuple[str, object, object]:
    match = _FORM.fullmatch(text)
    if match is None:
        raise _wrong(text)
    try:
        ends = [float(match[end]) if match[end].strip() else None for end in ("lower", "upper")]
    except ValueError:
        raise _wrong(text) from None
    return match["name"], ends[0], ends[1]


def _triple(value: object) -> tuple[str, object, object]:
    if not isinstance(value, tuple | list) or len(value) != 3:
        raise _wrong(value)
    return _pattern(value[0]), value[1], value[2]


def _pattern(name: object) -> str:
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(int(name))
    if isinstance(name, str) and name:
        return name
    raise InvalidInput(f"bounds= needs names, patterns or column numbers as keys, got {name!r:.60}; pass those.")


def _printable(name: str) -> str:
    if len(name) > _LONGEST or not name.isprintable():
        raise InvalidInput(
            f"bounds= needs printable names of at most {_LONGEST} characters, got {name!r:.60}; use * or ? for others."
        )
    return name


def _pair(name: object, pair: object) -> tuple[object, object]:
    if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise InvalidInput(
            f"bounds= needs a pair (lower, upper) for each name, None for no end, got {pair!r:.60} for {name!r:.60};"
            " pass a pair."
        )
    return pair[0], pair[1]


def _end(name: str, value: object, side: float) -> float:
    if value is None:
        return side * math.inf
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    end = float(value) if good else math.nan  # type: ignore[arg-type]
    if math.isnan(end) or end == -side * math.inf or (math.isfinite(end) and abs(end) > _LARGEST):
        raise InvalidInput(f"bounds= needs numbers up to 1e30 as ends, got {value!r:.40} for {name!r:.60}; pass one.")
    return end


def fits(pattern: str, name: str, is_product: bool) -> bool:
    """Whether a pattern means a name: as a glob, or as the feature, column or namespace itself.

    >>> fits("price*", "price", False), fits("city", "city=Oslo", False), fits("city", "city=Oslo*ad=3", True)
    (True, True, False)
    """
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(name, pattern)
    return name == pattern or (not is_product and name.startswith((f"{pattern}=", f"{pattern}^")))


def too_many_ranges() -> InvalidInput:
    """The error of more ranges than cells can have."""
    return InvalidInput("bounds= needs at most 65535 different ranges of weights, got more; join some.")


@final
class BoundStep(NamedTuple):
    """Bounds that some cells have from a row of a batch on: a pair of ends for each cell."""

    row: int
    cells: NDArray[np.uint32]
    ends: Vector


@final
class CellBounds:
    """Which cells have bounds of their own: those of all names that were met, each by every pattern that fits it."""

    def __init__(self, bounds: tuple[Bound, ...], dim: int, lower: float, upper: float) -> None:
        self._bounds = bounds
        self.table = BoundTable(dim, lower, upper, list(bounds))
        self._dim = dim
        self._is_looked_up: NDArray[np.bool_] | None = None  # of cells that are looked up in a batch
        self.is_named = False  # whether features have names; otherwise they are called by the numbers of their cells

    def steps(self, batch: Batch) -> list[BoundStep]:
        """What changes with the names that are met in a batch for the first time; the first step is at row 0.

        Bounds of a cell that no earlier row of the batch has can be set before the batch. Others get tighter bounds at
        the row of the second name, so that it does not matter how rows are cut into batches.
        """
        names = batch.names
        if names is None or not names.new.is_complete:
            if self.is_named:
                raise InvalidInput(
                    'bounds= needs the names of all features, got rows without them; open the data with names="all".'
                )
            added = self.table.add_numbers(np.ascontiguousarray(batch.indices))
        else:
            added = self.table.add(names.new, names.first, names.last)
        if added is None:
            raise self.refusal()
        rows, cells, seen, ends = added
        pairs, starts = ends.reshape(-1, 2), np.where(self._are_in_use(batch, rows, cells, seen), rows, 0)
        return [
            BoundStep(int(row), cells[starts == row], pairs[starts == row]) for row in np.unique(np.append(starts, 0))
        ]

    def _are_in_use(
        self, batch: Batch, rows: NDArray[np.int64], cells: NDArray[np.uint32], seen: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Which cells occur in a row of the batch before theirs; only cells that were `seen` can."""
        used, which = np.zeros(len(rows), np.bool_), np.flatnonzero(seen)
        if not len(which):
            return used
        if self._is_looked_up is None:
            self._is_looked_up = np.zeros(self._dim, np.bool_)
        self._is_looked_up[cells[which]] = True
        entries = np.flatnonzero(self._is_looked_up[batch.indices])
        self._is_looked_up[cells[which]] = False
        used_cells, first = np.unique(batch.indices[entries], return_index=True)
        begins = dict(zip(used_cells.tolist(), entries[first].tolist(), strict=True))
        ends = batch.indptr[rows[which]].tolist()
        used[which] = [begins.get(cell, end) < end for cell, end in zip(cells[which].tolist(), ends, strict=True)]
        return used

    def refusal(self) -> InvalidInput:
        """The error of a name whose bounds leave no weight."""
        name, cell, *ends = self.table.refused
        lower, upper, own_lower, own_upper = ends
        shown = name.decode("utf-8", "backslashreplace")
        if own_lower > own_upper:
            return InvalidInput(
                f"bounds= leaves no weight for {shown!r:.80}, whose patterns ask for at least {own_lower:g} and at most"
                f" {own_upper:g}; widen one of them.",
                option=("bounds", "lower", "upper"),
            )
        return InvalidInput(
            f"bounds= leaves no weight for {shown!r:.80}, which shares cell {cell} with a name that has bounds"
            f" {lower:g} to {upper:g} and needs {own_lower:g} to {own_upper:g}; use more bits=, or widen one of them.",
            option=("bounds", "bits"),
        )

    @property
    def matches(self) -> dict[str, int]:
        """How many names each pattern was found to fit, repeats included."""
        return {name: count for (name, _, _), count in zip(self._bounds, self.table.matches, strict=True)}

    def cells(self) -> tuple[NDArray[np.uint32], Vector]:
        """The cells that have bounds of their own, rising, and a pair of ends for each."""
        cells, ends = self.table.bounded
        return cells, ends.reshape(-1, 2)

    def load(self, cells: NDArray[np.uint32], ends: Vector) -> None:
        """Take over what `cells` gave."""
        self.table.load(np.ascontiguousarray(cells, np.uint32), np.ascontiguousarray(ends, np.float64).reshape(-1))

    def copy(self) -> CellBounds:
        """A copy in the same state."""
        twin = object.__new__(CellBounds)
        twin._bounds, twin.table, twin.is_named = self._bounds, self.table.copy(), self.is_named
        twin._dim, twin._is_looked_up = self._dim, None
        return twin
