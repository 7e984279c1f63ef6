"""The options of `ftprl.data.open`: what is read and how, n-grams and interactions of columns or namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl.check import dimension
from ftprl.data.files import shown
from ftprl.errors import InvalidInput
from ftprl.options import BY_NAME
from ftprl.options.checks import check_values
from ftprl.options.option import Columns
from ftprl.options.table import DataOptions

DIM = 2**22  # cells of the table for names, which are hashed
ARRAYS = "arrays"  # the format of data in memory whose features are numbered
FRAME = "frame"  # that of frames, whose columns are known
NUMBERED = (ARRAYS, "libsvm")  # formats whose features have numbers and no names
RECORDS = "records"  # that of dicts, which may have any names
JSON_LINES = "jsonl"  # that of files whose lines are such dicts
SEPARATORS = (",", ";", "\t", "|")  # of CSV files, where they are recognised
TEXT_FORMATS = ("csv", "tsv", JSON_LINES, "vw", "libsvm")
TABLES = (FRAME, RECORDS, "csv", "tsv", JSON_LINES, "parquet", "arrow", "orc")  # formats with columns, all read alike
LONGEST_USUAL_ROW = 16_000_000  # in bytes
KIND_OPTIONS = tuple(name for name, entry in BY_NAME.items() if entry.type == Columns | None)  # name columns
OF_TABLES = (
    "label",
    "weight",
    *KIND_OPTIONS,
    "missing",
    "columns",
    "order",
    "sampled",
    "sep",
    "quote",
)  # options for columns alone


class OpenOptions(DataOptions, total=False):
    """The keywords of `ftprl.data.open`: the data options of the table, and what a model knows of its data."""

    y: Any
    dim: int | None
    seed: int
    intercept: bool
    columns: Mapping[str, str] | None
    order: Sequence[str] | None
    sampled: Mapping[str, Sequence[float]] | None
    other_columns: bool
    labelled: bool
    loss: str
    dtype: str
    block_size: int
    names: bool | str
    namespaces: Sequence[str] | None
    features: int | None


@final
class ReadingOptions(NamedTuple):
    """How data is read; each field but `kinds` is an option of `ftprl.data.open`, where it is explained."""

    format: str | None = None
    y: Any = None
    dim: int | None = None
    seed: int = 0
    intercept: bool = False
    label: str | int | None = None
    weight: Any = None
    kinds: Mapping[str, Columns] = {}  # by the options that name columns of a kind
    missing: str | None = None
    positive: str | float | None = None
    sep: str | None = None
    quote: str | None = None
    header: bool = True
    on_bad_row: str = "raise"
    max_row: int = LONGEST_USUAL_ROW
    columns: Mapping[str, str] | None = None
    order: Sequence[str] | None = None
    sampled: Mapping[str, Sequence[float]] | None = None
    other_columns: bool = True
    labelled: bool = False
    loss: str = "logistic"
    dtype: str = "float32"
    block_size: int = 1 << 22
    names: bool | str = False
    interactions: Any = ()
    ngrams: Any = None
    skips: Any = None
    char_ngrams: Any = None
    namespaces: Sequence[str] | None = None
    features: int | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> ReadingOptions:
        """Return the options that are passed to `ftprl.data.open`, in which each kind of columns has a keyword."""
        kinds = {name: value for name, value in keywords.items() if name in KIND_OPTIONS}
        return cls(**{name: value for name, value in keywords.items() if name not in kinds}, kinds=kinds)

    def check(self) -> None:
        """Raise InvalidInput for an option that no data can be read with."""
        if self.dim is not None and not 2 <= dimension("dim=", self.dim) <= 2**32:
            raise InvalidInput(
                f"dim= needs a number from 2 to 2**32, got {self.dim}; pass the number of cells of the table."
            )
        check_values({name: getattr(self, name) for name in ("seed", "on_bad_row", "missing", "max_row")})
        if self.dtype not in ("float32", "float64"):
            raise InvalidInput(f"dtype= needs float32 or float64, got {self.dtype!r}; pass one of them.")
        dimension("block_size=", self.block_size)

    @property
    def positive_label(self) -> str | None:
        """The label that counts as 1, as text."""
        return None if self.positive is None else column_name(self.positive)

    def refuse(self, names: Sequence[str], why: str, *, option: str = "") -> None:
        """Raise InvalidInput if one of these options is set; `option` is another one that the reason names."""
        for name in names:
            if _is_set(self.kinds.get(name) if name in KIND_OPTIONS else getattr(self, name)):
                raise InvalidInput(f"{name}={why}", option=(name, option))


KEYWORDS = {  # of `ftprl.data.open`, with their defaults
    keyword: default
    for name, value in ReadingOptions._field_defaults.items()
    for keyword, default in (dict.fromkeys(KIND_OPTIONS, ()) if name == "kinds" else {name: value}).items()
}


def _is_set(value: Any) -> bool:
    return not (value is None or value is False or (isinstance(value, tuple | list | str) and len(value) == 0))


def column_name(value: str | float) -> str:
    """A column, or a label, as text: it may be given as a number."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def column_names(values: Columns) -> tuple[str, ...]:
    """One column or several, as text."""
    return (column_name(values),) if isinstance(values, str | int) else tuple(column_name(value) for value in values)


Interactions = tuple[tuple[str, ...], ...]
ANY = "*"
MOST_TERMS = 4  # of one interaction
MOST = 64  # interactions, and so at most as many distinct terms as the core takes


def parse_interactions(requested: Any) -> Interactions:
    """Interactions as typed, `user:ad`, or as lists of columns, whose names may have a colon.

    >>> parse_interactions(["user:ad", ["a", "b:c"]])
    (('user', 'ad'), ('a', 'b:c'))
    """
    every = [requested] if isinstance(requested, str) else list(requested or ())
    parsed: list[tuple[str, ...]] = []
    for one in every:
        terms = tuple(one.split(":")) if isinstance(one, str) else tuple(str(term) for term in one)
        if not 2 <= len(terms) <= MOST_TERMS or not all(terms):
            raise InvalidInput(
                f"interactions= needs 2 to {MOST_TERMS} columns or namespaces with colons between them, such as"
                f" user:ad, got {shown(':'.join(terms))!r}; pass those."
            )
        if not any(sorted(terms) == sorted(other) for other in parsed):  # the order of factors does not matter
            parsed.append(terms)
    if len({term for terms in parsed for term in terms}) > MOST:
        raise InvalidInput(f"interactions= needs at most {MOST} distinct names, got more; use * for all.")
    return tuple(parsed)


def interactions_as_bytes(interactions: Interactions) -> list[list[bytes]]:
    """As the core takes them."""
    return [[term.encode("utf-8", "backslashreplace") for term in terms] for terms in interactions]


def interactions_as_lists(interactions: Iterable[Sequence[str]]) -> dict[str, Any]:
    """As a setting that is kept with a model; nothing where there are none."""
    kept = [list(terms) for terms in interactions]
    return {"interactions": kept} if kept else {}


ALL = "*"
GRAMS = ("ngrams", "skips", "char_ngrams")


MOST_WORDS, MOST_SKIPS, LONGEST_CHAR_NGRAM = 8, 8, 16


_RANGES = {"ngrams": (2, MOST_WORDS), "skips": (1, MOST_SKIPS), "char_ngrams": (1, LONGEST_CHAR_NGRAM)}
_WANTED = {
    "ngrams": f"the longest n-gram, 2 to {MOST_WORDS} words, such as 2 or body=2",
    "skips": f"how many words an n-gram may skip, 1 to {MOST_SKIPS}, such as 1 or body=1",
    "char_ngrams": f"a number of characters from 1 to {LONGEST_CHAR_NGRAM}, or the least and the most, such as"
    " 3, 3-5 or body=3-5",
}


Rule = tuple[bytes, int, int, int, int]  # as the core takes it: name, words, skips, shortest and longest piece


@final
class Grams(NamedTuple):
    """What is asked for, by column or namespace; * stands for those that are not named."""

    ngrams: Mapping[str, int] = {}
    skips: Mapping[str, int] = {}
    char_ngrams: Mapping[str, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.ngrams or self.char_ngrams)

    @property
    def names(self) -> set[str]:
        """The columns or namespaces that are named."""
        return {*self.ngrams, *self.skips, *self.char_ngrams} - {ALL}

    def rules(self, kinds: Mapping[str, str] | None) -> list[Rule]:
        """As the core takes them; without `kinds`, of a format without columns, * is left to it."""
        names = self.names | ({ALL} if kinds is None else {name for name, kind in kinds.items() if kind == "text"})
        rules: list[Rule] = []
        for name in sorted(names) if self else ():
            words, skips, characters = (_size_for(part, name) for part in self)
            if words or characters:
                rules.append(
                    (name.encode("utf-8", "backslashreplace"), words or 0, skips or 0, *(characters or (0, 0)))
                )
        return rules

    def to_dict(self) -> dict[str, Any]:
        """As settings that are kept with a model; nothing where there are none."""
        characters = {name: list(sizes) for name, sizes in self.char_ngrams.items()}
        kept = {"ngrams": dict(self.ngrams), "skips": dict(self.skips), "char_ngrams": characters}
        return {name: value for name, value in kept.items() if value}


NO_GRAMS = Grams()


def as_passed(sizes: Mapping[str, Any]) -> str:
    """Sizes by name as they are typed.

    >>> as_passed({"*": 2}), as_passed({"body": (3, 5), "title": [3, 3]})
    ('2', 'body=3-5,title=3')
    """
    shown_sizes = {
        name: "-".join(map(str, dict.fromkeys(size))) if isinstance(size, list | tuple) else str(size)
        for name, size in sizes.items()
    }
    return ",".join(size if name == ALL else f"{shown(name)}={size}" for name, size in shown_sizes.items())


def _size_for(part: Mapping[str, Any], name: str) -> Any:
    return part.get(name, part.get(ALL))


def parse_grams(ngrams: Any = None, skips: Any = None, char_ngrams: Any = None) -> Grams:
    """The options as typed: a number for all, `body=2` for one column or namespace, several of these, or a dict.

    >>> parse_grams(2, char_ngrams=["body=3-5"])
    Grams(ngrams={'*': 2}, skips={}, char_ngrams={'body': (3, 5)})
    """
    grams = Grams(
        {name: most for name, (_, most) in _entries("ngrams", ngrams).items()},
        {name: most for name, (_, most) in _entries("skips", skips).items()},
        _entries("char_ngrams", char_ngrams),
    )
    for name in grams.skips:
        if _size_for(grams.ngrams, name) is None:
            where = "" if name == ALL else f" for {shown(name)!r}"
            raise InvalidInput(
                f"skips= is for n-grams, got none{where}; pass ngrams= as well.", option=("skips", "ngrams")
            )
    return grams


def _entries(option: str, requested: Any) -> dict[str, tuple[int, int]]:
    sizes_of: dict[str, tuple[int, int]] = {}
    for name, value in _gram_pairs(option, requested):
        low, high = _range(value)
        least, most = _RANGES[option]
        if not least <= low <= high <= most or (option != "char_ngrams" and low != high):
            shown_value = value if name == ALL else f"{shown(name)}={value}"
            raise InvalidInput(
                f"{option}= needs {_WANTED[option]}, got {shown_value!r:.60}; choose one of those.", option=option
            )
        if sizes_of.setdefault(name, (low, high)) != (low, high):
            raise InvalidInput(
                f"{option}= needs one number for each column, got two for {shown(name)!r}; keep one.", option=option
            )
    return sizes_of


def _gram_pairs(option: str, requested: Any) -> Iterable[tuple[str, Any]]:
    """Names and what was asked for, not yet checked."""
    if requested is None or (
        isinstance(requested, Sequence) and not isinstance(requested, str) and len(requested) == 0
    ):
        return
    if isinstance(requested, Mapping):
        yield from ((str(name), value) for name, value in requested.items())
        return
    if isinstance(requested, tuple) and len(requested) == 2 and all(isinstance(one, int) for one in requested):
        yield ALL, requested
        return
    for entry in requested if isinstance(requested, list | tuple) else [requested]:
        match = re.fullmatch(r"(.+)=([^=]*)", entry, re.DOTALL) if isinstance(entry, str) else None
        yield (ALL, entry) if match is None else (match[1], match[2])


def _range(value: Any) -> tuple[int, int]:
    """The least and the most; (0, 0), which nothing allows, for what is no number."""
    if isinstance(value, bool):
        return 0, 0
    if isinstance(value, int):
        return value, value
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", value)):
        return int(match[1]), int(match[2] or match[1])
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(one) is int for one in value):
        return value[0], value[1]
    return 0, 0
