"""`predict --append`: the columns of the input with one more, the prediction, as CSV, TSV, Parquet or JSON lines.

A row that was left out keeps its place: in text as it is, with an empty prediction, elsewhere without any value.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, final

from ftprl.data.files import suffixes
from ftprl.data.packing import check_packing, packed
from ftprl.data.tables import Dialect
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model

COLUMN = "prediction"
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_PARQUET = (".parquet",)


class Table(NamedTuple):
    """What is known of the columns of the input: names, those of numbers, and how the text of a row is read."""

    names: tuple[str, ...]
    numeric: frozenset[str]
    dialect: Dialect


class _Writer(Protocol):
    """Writes rows, each the text of its fields and that of its prediction, which is empty for a row left out."""

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


def check_append(source: Any, path: str) -> TextSource:
    """Refuse data without columns and an output file of no known format; returns the source, which keeps its rows."""
    if suffixes(path)[0] not in (*_SEPARATORS, *_JSON_LINES, *_PARQUET):
        got = repr(path) if path else "none"
        raise InvalidInput(
            f"--append needs a file to write to that ends in .csv, .tsv, .parquet or .jsonl, got {got}; pass it with"
            " --output."
        )
    if not isinstance(source, TextSource) or source.dialect is None:
        raise InvalidInput(
            f"--append needs csv or tsv files, got format {source.describe().format}; drop it, and join by row number."
        )
    check_packing("--output", path)
    if suffixes(path)[0] in _PARQUET and suffixes(path)[1]:
        raise InvalidInput(
            f"--output needs a Parquet file that ends in .parquet, got {path!r}; it is compressed anyway."
        )
    source.keep_records()
    return source


def append(lines: Iterable[bytes], source: TextSource, model: Model, path: str, target: Any) -> None:
    """Write all rows of a source with their predictions, which are `lines`, to an open file."""
    writer: _Writer | None = None
    records: list[bytes] = []
    csv.field_size_limit(sys.maxsize)  # how long a row may be was decided when it was read
    with packed(target, path) as out:
        for text in lines:
            predictions = text.split(b"\n")[:-1]
            records += source.take_records()
            if writer is None and source.record_columns is not None:
                writer = _WRITERS[suffixes(path)[0]](_table(source, model), out, path)
            some, records = records[: len(predictions)], records[len(predictions) :]
            if writer is not None and some:
                writer.write(some, predictions)
        if writer is not None:
            writer.close()


def _table(source: TextSource, model: Model) -> Table:
    names, dialect = source.record_columns, source.dialect
    assert names is not None
    assert dialect is not None
    if COLUMN in names:
        raise InvalidInput(f"--append needs data without a column {COLUMN!r}, got one; rename it.")
    kinds = model.reading.get("columns") or {}
    numeric = ("numeric", "weight", "delay_column", *(() if model.engine.spec.scalar_loss().binary else ("label",)))
    return Table(names, frozenset(name for name in names if kinds.get(name) in numeric), dialect)


def fields_of(table: Table, records: Sequence[bytes]) -> Iterator[list[str]]:
    """The fields of some rows."""
    texts = (record.decode("utf-8", "backslashreplace") for record in records)
    sep, quote, _ = table.dialect
    quoting: Any = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    return csv.reader(texts, delimiter=sep, quotechar=quote, quoting=quoting)


@final
class _Text:
    """CSV or TSV; rows of the same dialect are copied as they are."""

    def __init__(self, table: Table, out: Any, path: str) -> None:
        sep = _SEPARATORS[suffixes(path)[0]]
        is_csv = sep == ","
        self._table, self._out = table, out
        # `--sep ';'` makes another CSV: what is read as CSV is written as it was.
        self._is_copied = is_csv == (table.dialect.sep != "\t")
        dialect = table.dialect if self._is_copied else Dialect(sep, '"' if is_csv else None, True)
        self._sep, self._quote = dialect.sep, dialect.quote
        if table.dialect.header:
            out.write(self._joined([*table.names, COLUMN]))

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        if self._is_copied:
            sep = self._sep.encode()
            rows = zip(records, predictions, strict=True)
            self._out.write(b"".join(record + sep + prediction + b"\n" for record, prediction in rows))
            return
        fields = zip(fields_of(self._table, records), predictions, strict=True)
        self._out.write(b"".join(self._joined([*row, prediction.decode()]) for row, prediction in fields))

    def _joined(self, fields: Sequence[str]) -> bytes:
        if self._quote is None and any(character in field for field in fields for character in "\t\r\n"):
            fields = [field.translate({9: " ", 10: " ", 13: " "}) for field in fields]  # there are no quotes
        out = io.StringIO()
        quoting: Any = csv.QUOTE_NONE if self._quote is None else csv.QUOTE_MINIMAL
        writer = csv.writer(out, delimiter=self._sep, quotechar=self._quote, quoting=quoting, lineterminator="\n")
        writer.writerow(fields)
        return out.getvalue().encode()

    def close(self) -> None:
        """Nothing is left to write."""


def _number(text: str) -> float | None:
    """A field of a column of numbers; None where it has none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _values(table: Table, records: Sequence[bytes], predictions: Sequence[bytes]) -> Iterator[list[Any]]:
    """The values of some rows with the prediction behind them; all None for a row that was left out."""
    for fields, prediction in zip(fields_of(table, records), predictions, strict=True):
        if not prediction:
            yield [None] * (len(table.names) + 1)
            continue
        if len(fields) != len(table.names):
            raise InvalidInput(
                f"--append needs rows of {len(table.names)} fields, got {len(fields)} in {fields!r:.100}; check the"
                " quotes, or write CSV."
            )
        pairs = zip(fields, table.names, strict=True)
        row: list[Any] = [_number(field) if name in table.numeric else field for field, name in pairs]
        yield [*row, float(prediction)]


@final
class _JsonLines:
    """One object per line."""

    def __init__(self, table: Table, out: Any, path: str) -> None:
        self._table, self._out, self._names = table, out, (*table.names, COLUMN)

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        rows = _values(self._table, records, predictions)
        texts = (json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False) for row in rows)
        self._out.write(("\n".join(texts) + "\n").encode())

    def close(self) -> None:
        """Nothing is left to write."""


@final
class ParquetWriter:
    """Parquet, a row group for each block of rows."""

    def __init__(self, table: Table, out: Any, path: str, *, more: bool = True) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        types = [pa.float64() if name in table.numeric else pa.string() for name in table.names]
        self._table = table
        self._schema = pa.schema([*zip(table.names, types, strict=True), *([(COLUMN, pa.float64())] if more else [])])
        self._writer = parquet.ParquetWriter(out, self._schema)

    def write(self, records: Sequence[bytes], predictions: Sequence[bytes]) -> None:
        """Write some rows."""
        import pyarrow as pa

        columns = list(zip(*_values(self._table, records, predictions), strict=True))[: len(self._schema)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.table(arrays, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


_WRITERS: dict[str, Callable[[Table, Any, str], _Writer]] = {
    **dict.fromkeys(_SEPARATORS, _Text),
    **dict.fromkeys(_JSON_LINES, _JsonLines),
    **dict.fromkeys(_PARQUET, ParquetWriter),
}
