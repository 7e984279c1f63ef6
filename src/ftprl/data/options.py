"""The options of `ftprl.data.open`: what is read, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl.check import dimension
from ftprl.errors import InvalidInput
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
_KINDS = ("ignore", "categorical", "numeric", "text", "boolean", "date", "bucket")
OF_TABLES = (
    "label",
    "weight",
    *_KINDS,
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
    """How data is read; each field is an option of `ftprl.data.open`, where it is explained."""

    format: str | None = None
    y: Any = None
    dim: int | None = None
    seed: int = 0
    intercept: bool = False
    label: str | int | None = None
    weight: Any = None
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
    namespaces: Sequence[str] | None = None
    features: int | None = None

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
