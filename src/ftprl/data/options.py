"""The options of `ftprl.data.open`: what is read, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl.check import dimension
from ftprl.errors import InvalidInput

Columns = str | int | Sequence[str | int]
LONGEST_ROW = 2**40  # bytes that max_row may allow
DIM = 2**22  # cells of the table for names, which are hashed
ARRAYS = "arrays"  # the format of data in memory whose features are numbered
FRAME = "frame"  # that of frames, whose columns are known
NUMBERED = (ARRAYS, "libsvm")  # formats whose features have numbers and no names
RECORDS = "records"  # that of dicts, which may have any names
JSON_LINES = "jsonl"  # that of files whose lines are such dicts
SEPARATORS = (",", ";", "\t", "|")  # of CSV files, where they are recognised
TABLES = (FRAME, RECORDS, "csv", "tsv", JSON_LINES, "parquet", "arrow", "orc")  # formats with columns, all read alike
LONGEST_USUAL_ROW = 16_000_000  # in bytes
_KINDS = ("ignore", "categorical", "numeric", "text", "boolean", "date", "bucket")
OF_TABLES = (
    "label",
    "weight",
    "delay_column",
    *_KINDS,
    "missing",
    "columns",
    "order",
    "sampled",
    "sep",
    "quote",
)  # options for columns alone


@final
class ReadingOptions(NamedTuple):
    """How data is read; each field is an option of `ftprl.data.open`, where it is explained."""

    format: str | None = None
    y: Any = None
    dim: int | None = None
    seed: int = 0
    intercept: bool = False
    label: str | int | None = None
    weight: Any = None
    delay_column: str | int | None = None
    ignore: Columns = ()
    categorical: Columns = ()
    numeric: Columns = ()
    text: Columns = ()
    boolean: Columns = ()
    date: Columns = ()
    bucket: Columns = ()
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

    def check(self) -> None:
        """Raise InvalidInput for an option that no data can be read with."""
        if self.dim is not None and not 2 <= dimension("dim=", self.dim) <= 2**32:
            raise InvalidInput(
                f"dim= needs a number from 2 to 2**32, got {self.dim}; pass the number of cells of the table."
            )
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise InvalidInput(f"seed= needs a whole number from 0 to 2**64 - 1, got {self.seed!r}; pass one.")
        for name, values in (("on_bad_row", ("raise", "skip")), ("dtype", ("float32", "float64"))):
            if getattr(self, name) not in values:
                raise InvalidInput(
                    f"{name}= needs {' or '.join(values)}, got {getattr(self, name)!r}; pass one of them."
                )
        if self.missing not in (None, "indicator", "ignore"):
            raise InvalidInput(f"missing= needs indicator or ignore, got {self.missing!r}; pass one of them.")
        if dimension("max_row=", self.max_row) > LONGEST_ROW:
            raise InvalidInput(f"max_row= needs at most 2**40 bytes, got {self.max_row}; pass a smaller one.")
        dimension("block_size=", self.block_size)

    @property
    def positive_label(self) -> str | None:
        """The label that counts as 1, as text."""
        return None if self.positive is None else column_name(self.positive)

    def refuse(self, names: Sequence[str], why: str, *, option: str = "") -> None:
        """Raise InvalidInput if one of these options is set; `option` is another one that the reason names."""
        for name in names:
            if _is_set(getattr(self, name)):
                raise InvalidInput(f"{name}={why}", option=(name, option))


def _is_set(value: Any) -> bool:
    return not (value is None or value is False or (isinstance(value, tuple | list | str) and len(value) == 0))


def column_name(value: str | float) -> str:
    """A column, or a label, as text: it may be given as a number."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def column_names(values: Columns) -> tuple[str, ...]:
    """One column or several, as text."""
    return (column_name(values),) if isinstance(values, str | int) else tuple(column_name(value) for value in values)
