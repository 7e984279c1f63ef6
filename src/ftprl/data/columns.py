"""Columns of tables: how they are named and settled by a sample, how they are shown, and what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl.data.files import shown
from ftprl.data.kinds import (
    BESIDE,
    KEEPING_VALUES,
    KIND,
    KINDS,
    NAMED,
    SAMPLED,
    ColumnSample,
    option_entry,
)
from ftprl.data.options import ReadingOptions, column_name, column_names
from ftprl.errors import BadFormat, InvalidInput, warn

if TYPE_CHECKING:
    pass


# The kinds of columns, in the order of the core's codes.
_IDENTIFIER_ROWS = 100  # fewer values that all differ say nothing


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
            name.encode("utf-8", "backslashreplace"): values[KIND[kind].for_core :] if kind else values
            for name, values in self.sampled.items()
            for kind in [self.kinds.get(name)]
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
def settle(
    kinds: Mapping[str, str], samples: Mapping[str, ColumnSample], counts: Mapping[str, int], missing: str | None
) -> ColumnPlan:
    """Return the plan for columns whose kinds are decided, with the numbers that the sample gives for some.

    `counts` are the numbers beside the names of columns in options, such as 8 for `age=8`.
    """
    final, sampled = dict(kinds), dict[str, list[float]]()
    for name, kind in kinds.items():
        sample, entry = samples.get(name, ColumnSample()), KIND[kind]
        if entry.refined is not None:
            final[name] = entry.refined(sample)
        if entry.sampled is not None:
            sampled[name] = entry.sampled(name, sample, counts.get(name) or (entry.counts or (0,))[0])
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
        if kind in SAMPLED and not KIND[kind].are_numbers(values):
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
        KIND[kind].example(sample),
        sample.distinct,
        missing,
        KIND[kind].features(shown(name)[:30], numbers),
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


def order(kinds: Mapping[str, str]) -> list[str]:
    """The kinds that occur, in the order in which they are listed."""
    return [kind for kind in (*KINDS[1:], "ignore") if kind in kinds.values()]


SAMPLE_ROWS = 10_000
SAMPLE_BYTES = 16_000_000


@final
class NamedColumns(NamedTuple):
    """The columns whose kind the user named, by option, and the counts beside them, such as 8 for `age=8`."""

    by_option: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]

    @property
    def label(self) -> str | None:
        """The column with the label."""
        return next(iter(self.by_option["label"]), None)

    @property
    def kept(self) -> list[str]:
        """The columns of which all numbers of the sample are needed."""
        return [name for kind in KEEPING_VALUES for name in self.by_option[kind]]

    def kinds(self) -> dict[str, str]:
        """Return the kind of each of these columns; a column has one kind at most."""
        kinds: dict[str, str] = {}
        for kind, names in self.by_option.items():
            for name in names:
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
    """Return the columns whose kind the options name."""
    by_option: dict[str, Sequence[str]] = {}
    counts: dict[str, int] = {}
    names: tuple[str, ...]
    for option in NAMED:
        if option == "label":
            names = () if options.label is None else (column_name(options.label),)
        elif option == "weight":
            names = () if options.weight is None else (_weight_column(options.weight),)
        else:
            entries = [option_entry(option, entry) for entry in column_names(options.kinds.get(option, ()))]
            names = tuple(dict.fromkeys(name for name, _ in entries))
            counts |= {name: count for name, count in entries if count is not None}
        by_option[option] = names
    return NamedColumns(by_option, counts)


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
