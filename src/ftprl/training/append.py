"""`predict --append`: the columns of the input with one more, the prediction, as CSV, TSV, Parquet or JSON lines.

A row that was left out keeps its place: in text as it is, with an empty prediction, elsewhere without any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, final

from ftprl.data import Source
from ftprl.data.files import suffixes
from ftprl.data.packing import check_packing, packed
from ftprl.data.tables import Dialect
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model
from ftprl.training.parquet_columns import ParquetColumns
from ftprl.training.records import Table, field_text, number_of, object_of, refused_field, table_of

COLUMN = "prediction"
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)
COLUMN_FORMATS = ("parquet", "arrow", "orc")


class _Writer(Protocol):
    """Writes rows, each the text of its fields and that of its prediction, which is empty for a row left out."""

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


def check_append(source: Source, path: str) -> None:
    """Refuse data whose rows are not known and an output file of no known format."""
    if suffixes(path)[0] not in (*SEPARATORS, *JSON_LINES, *PARQUET):
        got = repr(path) if path else "none"
        raise InvalidInput(
            f"--append needs a file to write to that ends in .csv, .tsv, .parquet or .jsonl, got {got}; pass it with"
            " --output."
        )
    if not (isinstance(source, TextSource) or is_columnar(source)):
        raise InvalidInput("--append needs data with its columns, got others; pass files of text or of columns.")
    check_packing("--output", path)
    if suffixes(path)[0] in PARQUET and suffixes(path)[1]:
        raise InvalidInput(
            f"--output needs a Parquet file that ends in .parquet, got {path!r}; it is compressed anyway."
        )
    if isinstance(source, TextSource):
        source.keep_records()


def is_columnar(source: Source) -> bool:
    """Whether the data is in files of columns: Parquet, Arrow or ORC."""
    if source.describe().format not in COLUMN_FORMATS:
        return False
    from ftprl.data.table_source import TableSource

    return isinstance(source, TableSource)


def append(lines: Iterable[bytes], source: Source, model: Model, path: str, target: Any) -> None:
    """Write all rows of a source with their predictions, which are `lines`, to an open file."""
    numbers = (_numbers(text) for text in lines)
    with packed(target, path) as out:
        if isinstance(source, TextSource):
            _append_text(numbers, source, model, path, out)
        else:
            from ftprl.training.append_columns import append_columns

            append_columns(numbers, source.files, source.describe().format, path, out)


def _numbers(lines: bytes) -> list[bytes]:
    """The predictions of some lines, without tags."""
    return [line.partition(b" ")[0] for line in lines.split(b"\n")[:-1]]


def _append_text(numbers: Iterable[list[bytes]], source: TextSource, model: Model, path: str, out: Any) -> None:
    writer: _Writer | None = None
    records: list[bytes] = []
    for predictions in numbers:
        records += source.take_records()
        if writer is None and (source.record_columns is not None or predictions):
            writer = _writer(source, model, path, out)
        some, records = records[: len(predictions)], records[len(predictions) :]
        if writer is not None and some:
            writer.write(some, predictions)
    if writer is None:
        writer = _writer(source, model, path, out)  # of data without rows: a file with its columns
    writer.close()


def _writer(source: TextSource, model: Model, path: str, out: Any) -> _Writer:
    if source.describe().format == "jsonl" and suffixes(path)[0] in JSON_LINES:
        return _Objects(out)
    kinds = model.reading.get("columns") or {}
    order = model.reading.get("order") or list(kinds)
    binary = model.engine.spec.scalar_loss().is_classification
    numeric = ("numeric", "bucket", "weight", *(() if binary else ("label",)))
    numeric = numeric if source.dialect is None else tuple(kind for kind in numeric if kind != "bucket")
    table = table_of(source, {name: kinds[name] for name in order}, numeric)
    if COLUMN in table.names:
        raise InvalidInput(f"--append needs data without a column {COLUMN!r}, got one; rename it.")
    return _WRITERS[suffixes(path)[0]](table, out, path)


@final
class _Objects:
    """Lines of JSON as they are, with one key more."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        self._out.write(b"".join(map(_with_prediction, records, predictions)))

    def close(self) -> None:
        """Nothing is left to write."""


def _with_prediction(record: bytes, prediction: bytes) -> bytes:
    if not prediction:
        return b'{"prediction": null}\n'
    if b'"prediction"' in record and COLUMN in (object_of(record) or {}):
        raise InvalidInput(f"--append needs data without a key {COLUMN!r}, got one; rename it.")
    inner = record.strip()[:-1].rstrip()
    comma = b"" if inner.endswith(b"{") else b", "
    return inner + comma + b'"prediction": ' + prediction + b"}\n"


@final
class _Text:
    """CSV or TSV; rows of the same dialect are copied as they are."""

    def __init__(self, table: Table, out: Any, path: str) -> None:
        sep = SEPARATORS[suffixes(path)[0]]
        is_csv = sep == ","
        self._table, self._out = table, out
        own = table.dialect
        # `--sep ';'` makes another CSV: what is read as CSV is written as it was.
        self._is_copied = own is not None and is_csv == (own.sep != "\t")
        dialect = own if own is not None and self._is_copied else Dialect(sep, '"' if is_csv else None, True)
        self._sep, self._quote = dialect.sep, dialect.quote
        self._special = re.compile("[" + re.escape(f"{self._sep}{self._quote or ''}\r\n") + "]")
        if own is None or own.header:
            out.write(self._joined([*table.names, COLUMN]))

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        if self._is_copied:
            sep = self._sep.encode()
            rows = zip(records, predictions, strict=True)
            self._out.write(b"".join(record + sep + prediction + b"\n" for record, prediction in rows))
            return
        fields = zip(self._table.values(records), predictions, strict=True)
        self._out.write(b"".join(self._joined([*self._texts(self._whole(row, p)), p.decode()]) for row, p in fields))

    def _whole(self, row: list[Any], prediction: bytes) -> list[Any]:
        """A row of JSON that was left out without any value; others have to be read."""
        if row or self._table.dialect is not None:
            return row
        if prediction:
            raise refused_row(self._table, row)
        return [None] * len(self._table.names)

    def _texts(self, row: Sequence[Any]) -> Iterator[str]:
        """The fields of a row; a whole number without a point in a column of numbers."""
        for at, value in enumerate(row):
            is_whole = isinstance(value, float) and value.is_integer() and self._table.names[at] in self._table.numeric
            yield f"{value:.17g}" if is_whole else field_text(value)

    def _joined(self, fields: Sequence[str]) -> bytes:
        quoted = [self._quoted(at, field) if self._special.search(field) else field for at, field in enumerate(fields)]
        return (self._sep.join(quoted) + "\n").encode()

    def _quoted(self, at: int, field: str) -> str:
        """A field with characters that need quotes."""
        if self._quote is None:
            name = self._table.names[at] if at < len(self._table.names) else str(at + 1)
            raise refused_field(name, field)
        return self._quote + field.replace(self._quote, 2 * self._quote) + self._quote

    def close(self) -> None:
        """Nothing is left to write."""


def refused_row(table: Table, fields: Sequence[Any]) -> InvalidInput:
    """A row that was predicted and cannot be written."""
    if table.dialect is None:
        return InvalidInput("--append needs JSON that Python reads, got a row with a number such as 01; write .jsonl.")
    return InvalidInput(
        f"--append needs rows of {len(table.names)} fields, got {len(fields)} in {fields!r:.100}; check the quotes, or"
        " write CSV."
    )


def values_of(table: Table, records: Sequence[bytes], predictions: Sequence[bytes]) -> Iterator[list[Any]]:
    """The values of some rows with the prediction behind them; all None for a row that was left out."""
    for fields, prediction in zip(table.values(records), predictions, strict=True):
        if not prediction:
            yield [None] * (len(table.names) + 1)
            continue
        if len(fields) != len(table.names):
            raise refused_row(table, fields)
        pairs = zip(fields, table.names, strict=True)
        row: list[Any] = [
            number_of(field) if name in table.numeric and not isinstance(field, list) else field
            for field, name in pairs
        ]
        yield [*row, float(prediction)]


@final
class _JsonLines:
    """One object per line."""

    def __init__(self, table: Table, out: Any, path: str) -> None:
        self._table, self._out, self._names = table, out, (*table.names, COLUMN)

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        rows = values_of(self._table, records, predictions)
        texts = (json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False) for row in rows)
        self._out.write(("\n".join(texts) + "\n").encode())

    def close(self) -> None:
        """Nothing is left to write."""


@final
class _ParquetWriter:
    """Parquet, a row group for each block of rows."""

    def __init__(self, table: Table, out: Any, path: str) -> None:
        self._table = table
        self._columns = ParquetColumns(out, (*table.names, COLUMN), table.numeric | {COLUMN})

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        try:
            self._columns.write(list(zip(*values_of(self._table, records, predictions), strict=True)))
        except InvalidInput:
            self.close()  # pyarrow would do so later, when the file is closed already
            raise

    def close(self) -> None:
        """Write the footer."""
        self._columns.close()


_WRITERS: dict[str, Callable[[Table, Any, str], _Writer]] = {
    **dict.fromkeys(SEPARATORS, _Text),
    **dict.fromkeys(JSON_LINES, _JsonLines),
    **dict.fromkeys(PARQUET, _ParquetWriter),
}
