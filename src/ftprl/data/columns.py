"""Columns of tables: their kinds, named or inferred, what a sample gives for them, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl.data.files import shown
from ftprl.data.options import ReadingOptions, column_name, column_names
from ftprl.errors import BadFormat, InvalidInput, warn

if TYPE_CHECKING:
    pass


# The kinds of columns, in the order of the core's codes.
KINDS = ("ignore", "label", "weight", "categorical", "numeric", "text", "boolean", "date", "timestamp", "bucket")
BESIDE = ("label", "weight")  # kinds that say something of the row and are no features
NAMED = (  # by options
    *("ignore", "label", "weight", "categorical", "numeric", "text", "boolean", "date", "bucket"),
)
FEATURES = ("categorical", "numeric", "text", "boolean", "date", "timestamp", "bucket")
WITH_NUMBERS = ("date", "timestamp", "bucket")  # kinds for which the sample gives numbers
BUCKETS = 32
_LITERAL = ("categorical", "text")  # kinds in which NA and null are words like any other
_IDENTIFIER_ROWS = 100  # fewer values that all differ say nothing
_MOST_BUCKETS = 1000


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
        """Cells that are missing in a column of a kind."""
        return self.empty if kind in _LITERAL else self.absent


@final
class ColumnHead(NamedTuple):
    """What is known of a column before its kind is decided.

    `kind` is that of its type, None for a type that is no feature; `sample` gives what its first cells say, for a kind
    and a number of cells, and is None where there are none. `refusal` is the error for a kind that it cannot have.
    `shape` is what a cell has: one value, a list, or names and values; empty where all cells are null.
    """

    name: str
    kind: str | None
    is_text: bool
    sample: Callable[[str, int | None], ColumnSample] | None = None
    is_list: bool = False
    refusal: InvalidInput | None = None
    shape: str = "one value"


@final
class ColumnProfile(NamedTuple):
    """A column as it is shown before training; counts are of the sample."""

    name: str
    kind: str
    example: str
    distinct: int
    missing: int
    features: str
    looks_like_identifier: bool = False
    looks_like_text: bool = False
    hint: str = ""  # what values read as categories look like, and what to do

    def to_dict(self) -> dict[str, Any]:
        """The column as JSON values."""
        names = ("name", "kind", "example", "distinct", "missing", "features", "advice")
        return {name: getattr(self, name) for name in names}

    @property
    def advice(self) -> str | None:
        """What may be better for the column."""
        name = shown(self.name)[:40]
        if self.hint:
            return f"column {name!r} {self.hint}"
        if self.looks_like_text and not self.looks_like_identifier:
            return (
                f"column {name!r} looks like text: {self.distinct} different values in the sample, most of several"
                f" words; pass text={name} to split it into words"
            )
        if not self.looks_like_identifier:
            return None
        text = f", or pass text={name} if it is text" if self.looks_like_text else ""
        return (
            f"column {name!r} looks like an identifier: all {self.distinct} values in the sample differ; pass"
            f" ignore={name} to leave it out{text}"
        )


@final
class ColumnPlan(NamedTuple):
    """How columns are read: the kind of each, what the sample gave for some, and what missing values become."""

    kinds: dict[str, str]
    sampled: dict[str, list[float]]
    missing: str = "indicator"
    profile: tuple[ColumnProfile, ...] = ()
    is_known: bool = False  # by another source: no option can change a kind

    @property
    def core_rules(self) -> tuple[bool, bool, dict[bytes, list[float]]]:
        """As the core takes them: whether missing values are features, whether to advise, and edges and origins."""
        numbers = {
            name.encode("utf-8", "backslashreplace"): values[1:] if self.kinds.get(name) == "bucket" else values
            for name, values in self.sampled.items()
        }
        return self.missing == "indicator", not self.is_known, numbers

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read columns in the same way."""
        return {
            "columns": dict(self.kinds),
            "order": list(self.kinds),  # a model file sorts names
            "sampled": dict(self.sampled),
            "missing": self.missing,
        }


# ---- kinds ----
def kind_of_text(sample: ColumnSample, *, may_be_number: bool = True) -> str:
    """The kind of a column of text: all its values are numbers, true or false, or dates; else they are categories."""
    present = sample.present
    if present and may_be_number and sample.numbers == present:
        return "numeric"
    if present and sample.booleans == present and sample.numbers < present:
        return "boolean"
    if present and sample.dates == present:
        return "date"
    return "categorical"


def with_hours(kind: str, sample: ColumnSample) -> str:
    """A date is a timestamp if some date of the sample has another time than midnight."""
    return "timestamp" if kind == "date" and sample.times else kind


def bucket_entry(entry: str) -> tuple[str, int]:
    """A column and its number of buckets: `age`, or `age=8`.

    >>> bucket_entry("age"), bucket_entry("age=8")
    (('age', 32), ('age', 8))
    """
    match = re.fullmatch(r"(.+)=([0-9]{1,9})", entry, re.DOTALL)
    if match is None:
        return entry, BUCKETS
    count = int(match[2])
    if not 2 <= count <= _MOST_BUCKETS:
        raise InvalidInput(f"bucket= needs 2 to {_MOST_BUCKETS} buckets, got {entry!r}; pass another number.")
    return match[1], count


def edges(values: Sequence[float], buckets: int) -> list[float]:
    """Where buckets begin so that each has about as many values: quantiles that are values themselves, each once.

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


def settle(
    kinds: Mapping[str, str], samples: Mapping[str, ColumnSample], buckets: Mapping[str, int], missing: str | None
) -> ColumnPlan:
    """The plan for columns whose kinds are decided, with what the sample gives for dates and buckets."""
    final = {name: with_hours(kind, samples.get(name, ColumnSample())) for name, kind in kinds.items()}
    sampled: dict[str, list[float]] = {}
    for name, kind in final.items():
        sample = samples.get(name, ColumnSample())
        if kind == "bucket":
            if not sample.values:
                raise InvalidInput(
                    f"bucket= needs a column of numbers, got {shown(name)[:40]!r} without one in the first rows;"
                    " read it with categorical= instead.",
                    option=("bucket", "categorical"),
                )
            count = buckets.get(name, BUCKETS)
            sampled[name] = [count, *edges(sample.values, count)]
        elif kind in ("date", "timestamp"):
            sampled[name] = [sample.first if sample.dates else 0]
    return ColumnPlan(final, sampled, missing or "indicator", profiles(final, samples, sampled))


def known_plan(
    kinds: dict[str, str],
    order: Sequence[str] | None,
    sampled: Mapping[str, Sequence[float]] | None,
    missing: str | None,
) -> ColumnPlan:
    """The plan of another source."""
    if order is not None and sorted(order) != sorted(kinds):
        raise InvalidInput("order= needs the names of columns=, each once, got others; pass both of another source.")
    kinds = {name: kinds[name] for name in order or kinds}
    kept = {name: list(values) for name, values in (sampled or {}).items()}
    for name, kind in kinds.items():
        values = kept.get(name, [])
        is_rising = all(a < b for a, b in pairwise(values[1:]))
        if kind in WITH_NUMBERS and (not values or (len(values) > 1 and (kind != "bucket" or not is_rising))):
            raise InvalidInput(
                f"sampled= needs the numbers of the {kind} column {shown(name)[:40]!r}, got {values!r:.60};"
                " pass what the other source's to_dict() has."
            )
    return ColumnPlan(kinds, kept, missing or "indicator", is_known=True)


# ---- how they are shown ----
def profiles(
    kinds: Mapping[str, str], samples: Mapping[str, ColumnSample], sampled: Mapping[str, Sequence[float]]
) -> tuple[ColumnProfile, ...]:
    """What is shown of each column that was sampled."""
    return tuple(
        profile(name, kind, samples[name], sampled.get(name, ())) for name, kind in kinds.items() if name in samples
    )


def profile(name: str, kind: str, sample: ColumnSample, numbers: Sequence[float] = ()) -> ColumnProfile:
    """What is shown of a column."""
    missing = sample.missing(kind)
    is_code = kind == "categorical" or (kind == "numeric" and sample.whole == sample.present)
    is_identifier = is_code and sample.distinct == sample.present >= _IDENTIFIER_ROWS and not sample.is_of_folders
    is_varied = kind == "categorical" and 2 * sample.distinct > sample.present >= _IDENTIFIER_ROWS
    return ColumnProfile(
        name,
        kind,
        _example(kind, sample),
        sample.distinct,
        missing,
        _features(name, kind, numbers),
        is_identifier,
        (is_identifier or is_varied) and 2 * sample.spaced > sample.present,
        _hint(sample) if kind == "categorical" else "",
    )


def _hint(sample: ColumnSample) -> str:
    """What the values of a column of categories look like: the first, or all of them, are of another kind."""
    example, rest = shown(sample.example), "which are read as categories"
    for count, what, remedy in (
        (sample.commas, "numbers with commas", "remove the commas, or write decimal points"),
        (sample.signs, "numbers with signs", "remove the signs"),
        (sample.slashes, "dates", "write year-month-day, as in 2024-12-31"),
    ):
        if count > 0 and count + sample.numbers + (sample.dates if what == "dates" else 0) == sample.present:
            return f"looks like {what}, such as {example!r}, {rest}; {remedy}"
    if 0 < sample.points < sample.whole:
        return "has whole numbers in two spellings, such as 1 and 1.0, which are two categories; write one of them"
    return ""


def _example(kind: str, sample: ColumnSample) -> str:
    if kind in ("numeric", "bucket") and sample.low <= sample.high:
        return f"{sample.low:g} .. {sample.high:g}"
    if kind in ("date", "timestamp") and sample.dates:
        return f"{date_text(sample.first, kind)} .. {date_text(sample.last, kind)}"
    return shown(sample.example)


def date_text(seconds: int, kind: str) -> str:
    """A moment in UTC, to the day or to the minute."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return instant.strftime("%Y-%m-%d") if kind == "date" else instant.strftime("%Y-%m-%dT%H:%M")


def _features(name: str, kind: str, numbers: Sequence[float]) -> str:
    name = shown(name)[:30]
    made = {
        "categorical": f"{name}=VALUE",
        "numeric": name,
        "text": f"{name}=WORD",
        "boolean": f"{name}=true, {name}=false",
        "date": "trend, weekday",
        "timestamp": "trend, weekday, hour",
        "bucket": f"{len(numbers)} buckets",
    }
    return made.get(kind, "-")


def order(kinds: Mapping[str, str]) -> list[str]:
    """The kinds that occur, in the order in which they are listed."""
    return [kind for kind in (*KINDS[1:], "ignore") if kind in kinds.values()]


SAMPLE_ROWS = 10_000
SAMPLE_BYTES = 16_000_000


@final
class NamedColumns(NamedTuple):
    """The columns whose kind the user named."""

    label: str | None
    weight: str | None
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    text: tuple[str, ...]
    boolean: tuple[str, ...]
    date: tuple[str, ...]
    bucket: Mapping[str, int]  # and how many buckets

    def kinds(self) -> dict[str, str]:
        """Column to kind; a column has one kind at most."""
        kinds: dict[str, str] = {}
        for kind in NAMED:
            value = getattr(self, kind)
            for name in (value,) if isinstance(value, str) else value or ():
                if kinds.setdefault(name, kind) != kind:
                    raise InvalidInput(
                        f"column {name!r} needs one kind, got {kinds[name]}= and {kind}=; keep one.",
                        option=(kinds[name], kind),
                    )
        return kinds


def check_columns(
    names: Sequence[str], kinds: Mapping[str, str], optional: Collection[str], where: str, hint: str = ""
) -> None:
    """Refuse a part of the data that lacks columns; `hint` is added to the message if it has none that are expected."""
    there = set(names)
    missing = [name for name, kind in kinds.items() if name not in there and kind not in optional]
    if not missing:
        return
    others = [name for name in names if name not in kinds]
    wanted = f"{len(missing)} more columns, {listed(missing)}" if missing[1:] else f"a column {listed(missing)}"
    found = f"the column{'s' * (len(others) != 1)} {listed(others)}" if others or not names else "the others only"
    near = nearest(missing[0], others) if len(missing) == 1 else ""
    remedy = f"rename {near[13:-1]}" if near.startswith("did you mean ") else f"add {'them' if missing[1:] else 'it'}"
    hint = "" if there & kinds.keys() else hint
    raise BadFormat(f"{where}: expected {wanted}, got {found}; {remedy}{hint}.", option="sep")


def warn_of_unknown(names: Sequence[str], what: str = "columns", *, is_open: bool = False) -> None:
    """Warn of columns or keys of the data that a model does not know, given their names."""
    if names:
        done = "read by their values, as new features" if is_open else "left out"
        warn(f"{what} that the model does not know are {done}: {listed(names)}; check their names.")


def check_kinds(columns: Mapping[str, str]) -> dict[str, str]:
    """`columns` as a model keeps them, checked."""
    for name, kind in columns.items():
        if not isinstance(name, str) or kind not in KINDS:
            raise InvalidInput(
                f"columns= needs a name and one of {', '.join(KINDS)}, got {name!r}: {kind!r}; correct it."
            )
    for kind in BESIDE:
        if list(columns.values()).count(kind) > 1:
            raise InvalidInput(f"columns= needs at most one {kind}, got several; keep one.")
    return dict(columns)


def known_columns(options: ReadingOptions, named: NamedColumns) -> ColumnPlan | None:
    """Return the columns of another source, which the options pass; None if they have to be inferred."""
    if options.columns is None:
        return None
    kinds = named.kinds()
    if kinds and not options.columns:  # all others are what they are by themselves
        return known_plan(kinds, options.order, options.sampled, options.missing)
    if kinds:
        other = next(iter(kinds.values()))
        raise InvalidInput(f"columns= has the kind of each column, got {other}= as well; keep one.", option=other)
    return known_plan(check_kinds(options.columns), options.order, options.sampled, options.missing)


def nearest(name: str, names: Sequence[str]) -> str:
    """What to do about a column that does not exist.

    >>> nearest("prise", ["carat", "price"]), nearest("x", ["carat", "price"])
    ("did you mean 'price'?", 'check the name.')
    >>> nearest("Y", ["carat", "y"])
    "did you mean 'y'?"
    """
    import difflib

    known = [one[:100] for one in names[:1000]]
    near = [one for one in known if one.lower() == name[:100].lower()] or difflib.get_close_matches(
        name[:100], known, 1
    )
    return f"did you mean {near[0][:40]!r}?" if near else "check the name."


def listed(names: Sequence[str]) -> str:
    """Some names, for a message: the first ones and, since it is often the label, the last."""
    first = ", ".join(repr(name[:40]) for name in names[: 8 if len(names) <= 8 else 7]) or "(none)"
    return first if len(names) <= 8 else f"{first}, ..., {names[-1][:40]!r}"


def without_label(names: Sequence[str], format: str) -> InvalidInput:
    """The error of a table for which no label is named."""
    header = ", or header=False if the first row is data" if format in ("csv", "tsv") else ""
    return InvalidInput(
        f"label= needs the name of a column, got none; pass one of {listed(names)}{header}.",
        option=("label", "header"),
    )


def named_columns(options: ReadingOptions) -> NamedColumns:
    """The columns whose kind the options name."""
    return NamedColumns(
        label=None if options.label is None else column_name(options.label),
        weight=None if options.weight is None else _weight_column(options.weight),
        ignore=column_names(options.ignore),
        categorical=column_names(options.categorical),
        numeric=column_names(options.numeric),
        text=column_names(options.text),
        boolean=column_names(options.boolean),
        date=column_names(options.date),
        bucket=dict(bucket_entry(entry) for entry in column_names(options.bucket)),
    )


def _weight_column(weight: object) -> str:
    if not isinstance(weight, str | int | float):
        raise InvalidInput(f"weight= needs the name of a column, got {type(weight).__name__}; name one of the table.")
    return column_name(weight)


def for_structures(kinds: Mapping[str, str], names: Sequence[str], where: str) -> dict[str, str]:
    """The kinds that were named, with those of structures passed on to their fields."""
    known, passed = set(names), dict[str, str]()
    for name, kind in kinds.items():
        inside = [other for other in names if other.startswith(f"{name}.")]
        if name not in known and (not inside or kind in BESIDE):
            raise InvalidInput(
                f"{where}{kind}= needs one of the columns {listed(names)}, got {name[:40]!r}; {nearest(name, names)}",
                option=kind,
            )
        passed |= dict.fromkeys(inside, kind) if name not in known else {name: kind}
    return {**passed, **{name: kind for name, kind in kinds.items() if name in known}}


def label_of(kinds: Mapping[str, str]) -> str:
    """Return the name of the column with the label; empty if there is none."""
    return next((name for name, kind in kinds.items() if kind == "label"), "")
