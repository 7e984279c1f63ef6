"""`Plan`: all that decides what a row becomes, whether it is text, a row of a table, a dict or a row of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import Parser, RecordParser, parser
from ftprl.data.files import shown
from ftprl.data.kinds import BESIDE, CODES
from ftprl.data.labels import LabelRule, of_values
from ftprl.data.options import (
    ANY,
    DIM,
    GRAMS,
    JSON_LINES,
    NO_GRAMS,
    RECORDS,
    TEXT_FORMATS,
    Grams,
    Interactions,
    ReadingOptions,
    interactions_as_bytes,
    interactions_as_lists,
    parse_grams,
    parse_interactions,
)
from ftprl.data.source import Description
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl.data.columns import ColumnPlan
    from ftprl.data.csv_files import Dialect


BATCH_ROWS = 16384
NUMBERS = LabelRule("number")
BATCH_VALUES = 1 << 21


@final
class Plan(NamedTuple):
    """All that decides what a row becomes."""

    format: str
    dim: int
    seed: int
    intercept: bool
    dtype: str
    loss: str
    positive: str | None
    labels: LabelRule
    skip_bad_rows: bool
    max_row: int = 1  # bytes of a row of text
    block_size: int = 1
    columns: ColumnPlan | None = None  # of tables and dicts
    dialect: Dialect | None = None  # of CSV and TSV files
    has_known_columns: bool = False  # those of another source
    needs_label: bool = False
    recognises_separator: bool = False  # of each CSV file, by the columns
    reads_other_columns: bool = True  # of JSON lines
    batch_rows: int = BATCH_ROWS
    names: bool | str = False  # "all": none may be missed
    interactions: Interactions = ()
    grams: Grams = NO_GRAMS
    features: int | None = None  # columns of an array or a matrix
    namespaces: Sequence[str] | None = None  # of keys as in VW text; only these, if there are any

    def parser(self) -> Parser:
        """Return a parser of the core for this plan."""
        sep, quote = (0, -1) if self.dialect is None else self.dialect.codes
        is_text = self.format in TEXT_FORMATS
        made = parser(
            "table" if self.dialect else self.format if is_text else "records",
            dim=self.dim,
            seed=self.seed,
            intercept=self.intercept,
            wide=self.dtype == "float64",
            skip=self.skip_bad_rows,
            max_row=self.max_row,
            batch_rows=self.batch_rows,
            batch_values=BATCH_VALUES,
            labels=self.labels.kind,
            positive=self.labels.positive.encode(),
            words=[(word.encode(), y) for word, y in self.labels.words],
            separator=sep,
            quote=quote,
            names=bool(self.names),
            all_names=self.names == "all",
            interactions=interactions_as_bytes(self.interactions),
            grams=self.grams.rules(self.kinds),
            namespaces=None if self.namespaces is None else [name.encode() for name in self.namespaces],
        )
        if self.columns is not None:
            made.set_rules(*self.columns.core_rules)
        kinds = (self.kinds or {}).items()
        if self.format == JSON_LINES:
            made.set_columns([(CODES[kind], name.encode("utf-8", "surrogatepass")) for name, kind in kinds])
            made.reads_others = self.reads_other_columns
        if isinstance(made, RecordParser):
            names = [(CODES[kind], name.encode("utf-8", "backslashreplace")) for name, kind in kinds]
            made.set_names(names, self.is_open)
        return made

    @property
    def is_open(self) -> bool:
        """Whether rows of tables and dicts may have columns that are not known, which are read by their values."""
        return self.format == RECORDS or (self.namespaces is not None and self.format != JSON_LINES)

    @property
    def kinds(self) -> dict[str, str] | None:
        """The kind of each column of a table."""
        return None if self.columns is None else self.columns.kinds

    @property
    def optional_kinds(self) -> tuple[str, ...]:
        """Kinds of columns that a file may lack."""
        if not self.has_known_columns:
            return ()
        return ("ignore",) if self.needs_label else (*BESIDE, "ignore")

    def describe(self, files: tuple[str, ...]) -> Description:
        """Return what is read: the files, what each column is for, what the labels become."""
        description = Description(self.format, files, None, str(self.labels), self.dim, self.intercept)
        return description.with_plan(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the options of `ftprl.data.open` that read other data in the same way."""
        options: dict[str, Any] = {
            "format": self.format,
            "dim": self.dim,
            "seed": self.seed,
            "intercept": self.intercept,
            "dtype": self.dtype,
            "loss": self.loss,
            "positive": self.positive,
            **interactions_as_lists(self.interactions),
            **self.grams.to_dict(),
            **({} if self.features is None else {"features": self.features}),
            **({} if self.columns is None else self.columns.to_dict()),
        }
        if self.dialect is not None:
            options |= {"sep": self.dialect.sep, "quote": self.dialect.quote or "", "header": self.dialect.header}
        if self.format == JSON_LINES:
            options["other_columns"] = self.reads_other_columns
        return options

    def with_columns(self, columns: ColumnPlan, labels: Callable[[], list[str]], label: str | None = None) -> Plan:
        """Return the plan for columns whose kinds are decided; `labels` returns the labels of the first rows."""
        if label is None:
            label = next((name for name, kind in columns.kinds.items() if kind == "label"), "")
        rule = of_values(self.loss, self.positive, label, labels())
        is_open = self.is_open or self.format == JSON_LINES
        check_interactions(self.interactions, None if is_open else columns.kinds)
        check_grams(self.grams, columns.kinds)
        return self._replace(columns=columns, labels=rule)


def plan_of(options: ReadingOptions, format: str, labels: LabelRule = NUMBERS) -> Plan:
    """Return the plan of a format, before it is known what columns it has."""
    positive = str(options.positive).lower() if isinstance(options.positive, bool) else options.positive_label
    return Plan(
        format=format,
        dim=DIM if options.dim is None else int(options.dim),
        seed=options.seed,
        intercept=bool(options.intercept),
        dtype=options.dtype,
        loss=options.loss,
        positive=options.positive_label if format in TEXT_FORMATS else positive,
        labels=labels,
        skip_bad_rows=options.on_bad_row == "skip",
        max_row=int(options.max_row),
        block_size=int(options.block_size),
        has_known_columns=options.columns is not None,
        needs_label=bool(options.labelled),
        recognises_separator=format == "csv" and options.sep is None and bool(options.header),
        reads_other_columns=bool(options.other_columns),
        names=options.names,
        interactions=parse_interactions(options.interactions),
        grams=parse_grams(options.ngrams, options.skips, options.char_ngrams),
        namespaces=options.namespaces,
    )


def check_interactions(interactions: Interactions, kinds: Any) -> Interactions:
    """The same, if they name columns that have features; `kinds` is None where any name may come."""
    if kinds is None:
        return interactions
    from ftprl.data.columns import nearest

    columns = [name for name, kind in kinds.items() if kind not in (*BESIDE, "ignore")]
    for term in (term for terms in interactions for term in terms):
        if term != ANY and term not in columns:
            raise InvalidInput(
                f"interactions= needs columns with features, got {shown(term)!r}; {nearest(term, columns)}"
            )
    return interactions


def check_grams(grams: Grams, kinds: Mapping[str, str] | None) -> Grams:
    """The same, if they are for columns of text; `kinds` is None where there are no columns."""
    if kinds is None or not grams:
        return grams
    texts = [name for name, kind in kinds.items() if kind == "text"]
    first = next(name for name in GRAMS if getattr(grams, name))
    wrong = next((name for name in sorted(grams.names) if name not in texts), None)
    if wrong is not None:
        raise InvalidInput(
            f"{first}= needs columns of text, got {shown(wrong)[:40]!r}; pass it with text= as well.",
            option=(*GRAMS, "text"),
        )
    if not texts:
        raise InvalidInput(f"{first}= needs columns of text, got none; name them with text=.", option=(*GRAMS, "text"))
    return grams
