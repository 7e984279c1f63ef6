"""The kinds of columns: one entry each, with what its option, its sampling and its words are.

How cells of a kind are parsed is an entry of the same name in src/core/readers/kinds.hpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple, final

from ftprl._core import column_kinds
from ftprl.data.files import shown
from ftprl.errors import InvalidInput


@final
class ColumnSample(NamedTuple):
    """What the first rows say of a column: how many of its cells are of a kind, and some of them."""

    cells: int = 0
    empty: int = 0
    absent: int = 0  # empty, or a spelling of "not available"
    numbers: int = 0
    whole: int = 0
    booleans: int = 0
    dates: int = 0
    times: int = 0  # dates with another time than midnight
    commas: int = 0  # numbers with a decimal comma
    spaced: int = 0
    signs: int = 0  # numbers with a sign such as $ or %
    slashes: int = 0  # dates such as 31/12/2024
    points: int = 0  # whole numbers such as 1.0
    distinct: int = 0
    low: float = 0.0
    high: float = 0.0
    first: int = 0  # the earliest date, in seconds since 1970
    last: int = 0
    example: bytes = b""
    values: Sequence[float] = ()
    is_of_folders: bool = False  # one cell for each file, of the folder it is in

    @property
    def present(self) -> int:
        """Cells that are not missing."""
        return self.cells - self.absent

    def missing(self, kind: str) -> int:
        """Return the number of cells that are missing in a column of a kind."""
        return self.empty if kind in LITERAL else self.absent


Numbers = Sequence[float]  # that the sample gives for a column, kept with the model


def _example(sample: ColumnSample) -> str:
    return shown(sample.example)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kind of columns is called, when a column is of it, and how it is shown."""

    name: str
    features: Callable[[str, Numbers], str] = lambda name, numbers: "-"  # of a column, as they are shown
    option: str = ""  # that names columns of the kind; "" is the name of the kind
    has_features: bool = True  # else it says something of the row, or nothing
    fits: Callable[[ColumnSample], bool] | None = None  # whether text with some values is of the kind; None: if named
    refined: Callable[[ColumnSample], str] | None = None  # the kind that a column is by its sample
    example: Callable[[ColumnSample], str] = _example
    # Of kinds for which the sample gives numbers: these, given the name of a column and the count beside it, whether
    # numbers of a model are such, from which of them on the core reads them, and what `ftprl inspect` prints.
    sampled: Callable[[str, ColumnSample, int], list[float]] | None = None
    are_numbers: Callable[[Numbers], bool] = bool
    for_core: int = 0
    about: Callable[[str, Numbers], str] = lambda name, numbers: ""
    keeps_values: bool = False  # whether the sample has to have all numbers of the column
    counts: tuple[int, int] | None = None  # default and largest N of `COLUMN=N` in the option
    is_literal: bool = False  # whether NA and null are words like any other
    takes_lists: bool = False  # whether a cell may have several values
    reads_times: bool = False  # whether the core reads Arrow's own dates and times
    is_number: bool = False  # whether JSON has numbers in such a column,
    is_number_in_text: bool = False  # and CSV

    @property
    def named_by(self) -> str:
        """The option that names columns of the kind."""
        return self.option or self.name


# ---- numbers ----


def _range(sample: ColumnSample) -> str:
    return f"{sample.low:g} .. {sample.high:g}" if sample.low <= sample.high else shown(sample.example)


# ---- dates ----


def _moment(seconds: float, kind: str) -> str:
    """Return a moment in UTC, to the day or to the minute."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))
    return instant.strftime("%Y-%m-%d" if kind == "date" else "%Y-%m-%dT%H:%M")


def _date(name: str, features: str) -> Kind:
    """Return the kind of dates or of times."""

    def example(sample: ColumnSample) -> str:
        return f"{_moment(sample.first, name)} .. {_moment(sample.last, name)}" if sample.dates else _example(sample)

    return Kind(
        name=name,
        option="date",
        features=lambda column, numbers: features,
        fits=lambda sample: name == "date" and sample.dates == sample.present,
        refined=lambda sample: "timestamp" if sample.times else name,
        example=example,
        sampled=lambda column, sample, count: [sample.first if sample.dates else 0],
        are_numbers=lambda numbers: len(numbers) == 1,
        about=lambda column, numbers: f"{'trend of':<14} {shown(column)}: years since {_moment(numbers[0], name)}",
        reads_times=True,
    )


# ---- buckets ----


def edges(values: Sequence[float], buckets: int) -> list[float]:
    """Return where buckets begin so that each has about as many values: quantiles that are values, each once.

    >>> edges([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3)
    [3.0, 5.0]
    >>> edges([0.0, 0.0, 0.0, 0.0, 7.0], 4)
    [7.0]
    """
    ordered = sorted(values)
    quantiles = {ordered[len(ordered) * k // buckets] for k in range(1, buckets)} if ordered else set()
    above = [value for value in quantiles if value > ordered[0]]
    if ordered and not above and ordered[-1] > ordered[0]:  # almost all values are the smallest
        above = [next(value for value in ordered if value > ordered[0])]
    return sorted(above)


def _buckets(column: str, sample: ColumnSample, count: int) -> list[float]:
    """Return the number of buckets that was asked for, and where all but the first begin."""
    if not sample.values:
        raise InvalidInput(
            f"bucket= needs a column of numbers, got {shown(column)[:40]!r} without one in the first rows;"
            " read it with categorical= instead.",
            option=("bucket", "categorical"),
        )
    return [count, *edges(sample.values, count)]


def _begins(column: str, numbers: Numbers) -> str:
    some = ", ".join(f"{edge:g}" for edge in numbers[1:11]) + (", ..." if len(numbers) > 11 else "")
    return f"{'buckets of':<14} {shown(column)}: {len(numbers)}, from {some} on"


# ---- the table ----

TABLE = (
    Kind(name="ignore", has_features=False),
    Kind(name="label", has_features=False),
    Kind(name="weight", has_features=False, is_number=True, is_number_in_text=True),
    Kind(
        name="categorical",
        features=lambda column, numbers: f"{column}=VALUE",
        is_literal=True,
        takes_lists=True,
    ),
    Kind(
        name="numeric",
        features=lambda column, numbers: column,
        fits=lambda sample: sample.numbers == sample.present,
        example=_range,
        takes_lists=True,
        is_number=True,
        is_number_in_text=True,
    ),
    Kind(
        name="text",
        features=lambda column, numbers: f"{column}=WORD",
        is_literal=True,
        takes_lists=True,
    ),
    Kind(
        name="boolean",
        features=lambda column, numbers: f"{column}=true, {column}=false",
        fits=lambda sample: sample.booleans == sample.present > sample.numbers,
    ),
    _date("date", "trend, weekday"),
    _date("timestamp", "trend, weekday, hour"),
    Kind(
        name="bucket",
        features=lambda column, numbers: f"{len(numbers)} buckets",
        example=_range,
        sampled=_buckets,
        are_numbers=lambda numbers: len(numbers) > 0 and all(a < b for a, b in pairwise(numbers[1:])),
        for_core=1,
        about=_begins,
        keeps_values=True,
        counts=(32, 1000),
        is_number=True,
    ),
)
KIND = {kind.name: kind for kind in TABLE}
KINDS = tuple(KIND)
CODES = {name: code for code, name in enumerate(column_kinds())}  # by which the core knows them
BESIDE = ("label", "weight")  # kinds that say something of the row and are no features
FEATURES = tuple(kind.name for kind in TABLE if kind.has_features)
NAMED = ("ignore", *BESIDE, *dict.fromkeys(kind.named_by for kind in TABLE if kind.has_features))  # options
LITERAL = frozenset(kind.name for kind in TABLE if kind.is_literal)
OF_LISTS = frozenset(kind.name for kind in TABLE if kind.takes_lists)
OF_TIMES = frozenset(kind.name for kind in TABLE if kind.reads_times)
SAMPLED = frozenset(kind.name for kind in TABLE if kind.sampled is not None)
KEEPING_VALUES = frozenset(kind.name for kind in TABLE if kind.keeps_values)


def kind_of_text(sample: ColumnSample, *, may_be_number: bool = True) -> str:
    """Return the kind of a column of text: the first that all its values fit, such as numbers; else categories."""
    for kind in TABLE if sample.present else ():
        if kind.fits is not None and (may_be_number or not kind.is_number) and kind.fits(sample):
            return kind.name
    return "categorical"


def option_entry(option: str, entry: str) -> tuple[str, int | None]:
    """Return the column that an entry of an option names, and the count beside it: `age`, or `age=8` for buckets.

    >>> option_entry("bucket", "age"), option_entry("bucket", "age=8"), option_entry("text", "age=8")
    (('age', 32), ('age', 8), ('age=8', None))
    """
    counts = KIND[option].counts if option in KIND else None
    if counts is None:
        return entry, None
    default, most = counts
    match = re.fullmatch(r"(.+)=([0-9]{1,9})", entry, re.DOTALL)
    if match is None:
        return entry, default
    count = int(match[2])
    if not 2 <= count <= most:
        raise InvalidInput(f"{option}= needs 2 to {most} {option}s, got {entry!r}; pass another number.")
    return match[1], count
