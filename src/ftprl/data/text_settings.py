"""All that decides what a row of a text file becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import Parser, parser
from ftprl.data.interactions import Interactions, as_bytes, as_lists, parse
from ftprl.data.labels import LabelRule
from ftprl.data.ngrams import NO_GRAMS, Grams
from ftprl.data.ngrams import parse as parse_grams
from ftprl.data.options import DIM, ReadingOptions
from ftprl.data.protocol import BESIDE, KINDS

if TYPE_CHECKING:
    from ftprl.data.columns import ColumnPlan
    from ftprl.data.tables import Dialect

BATCH_ROWS = 16384
BATCH_VALUES = 1 << 21


@final
class TextSettings(NamedTuple):
    """All that decides what a row of a text file becomes."""

    format: str
    dim: int
    seed: int
    intercept: bool
    dtype: str
    loss: str
    positive: str | None
    labels: LabelRule
    dialect: Dialect | None  # of tables
    plan: ColumnPlan | None  # of tables
    skip_bad_rows: bool
    max_row: int
    block_size: int
    has_known_columns: bool  # those of another source
    needs_label: bool
    recognises_separator: bool = False  # of each CSV file, by the columns
    reads_other_columns: bool = True  # of JSON lines
    batch_rows: int = BATCH_ROWS
    names: bool | str = False  # "all": none may be missed
    interactions: Interactions = ()
    grams: Grams = NO_GRAMS

    def parser(self) -> Parser:
        """A parser of the core with these settings."""
        sep, quote = (0, -1) if self.dialect is None else self.dialect.codes
        made = parser(
            "table" if self.dialect else self.format,
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
            interactions=as_bytes(self.interactions),
            grams=self.grams.rules(self.columns),
        )
        if self.plan is not None:
            made.set_rules(*self.plan.core_rules)
        if self.format == "jsonl":
            kinds = (self.columns or {}).items()
            made.set_columns([(KINDS.index(kind), name.encode("utf-8", "surrogatepass")) for name, kind in kinds])
            made.reads_others = self.reads_other_columns
        return made

    @property
    def columns(self) -> dict[str, str] | None:
        """The kind of each column of a table."""
        return None if self.plan is None else self.plan.kinds

    @property
    def optional_kinds(self) -> tuple[str, ...]:
        """Kinds of columns that a file may lack."""
        if not self.has_known_columns:
            return ()
        return ("ignore",) if self.needs_label else (*BESIDE, "ignore")

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other files in the same way."""
        options: dict[str, Any] = {
            "format": self.format,
            "dim": self.dim,
            "seed": self.seed,
            "intercept": self.intercept,
            "dtype": self.dtype,
            "loss": self.loss,
            "positive": self.positive,
            **as_lists(self.interactions),
            **self.grams.to_dict(),
        }
        if self.dialect is not None and self.plan is not None:
            options |= {
                **self.plan.to_dict(),
                "sep": self.dialect.sep,
                "quote": self.dialect.quote or "",
                "header": self.dialect.header,
            }
        elif self.plan is not None:
            options |= {**self.plan.to_dict(), "other_columns": self.reads_other_columns}
        return options


def settings_of(options: ReadingOptions, labels: LabelRule) -> TextSettings:
    """The settings of a format without columns."""
    assert options.format is not None
    return TextSettings(
        format=options.format,
        dim=DIM if options.dim is None else int(options.dim),
        seed=options.seed,
        intercept=bool(options.intercept),
        dtype=options.dtype,
        loss=options.loss,
        positive=options.positive_label,
        labels=labels,
        dialect=None,
        plan=None,
        skip_bad_rows=options.on_bad_row == "skip",
        max_row=int(options.max_row),
        block_size=int(options.block_size),
        has_known_columns=options.columns is not None,
        needs_label=bool(options.labelled),
        recognises_separator=options.format == "csv" and options.sep is None and bool(options.header),
        reads_other_columns=bool(options.other_columns),
        names=options.names,
        interactions=parse(options.interactions),
        grams=parse_grams(options.ngrams, options.skips, options.char_ngrams),
    )
