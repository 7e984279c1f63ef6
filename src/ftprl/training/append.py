"""`predict --append`: the columns of the input with one more, the prediction, as CSV, TSV, Parquet or JSON lines.

Rows of CSV and TSV that become CSV or TSV, and JSON lines that become JSON lines, keep their text; all others are
written by pyarrow. A row that was left out keeps its place: as text with an empty prediction, elsewhere without any
value.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ftprl.data import Source
from ftprl.data.compression import check_packing, packed, suffixes
from ftprl.data.csv_files import Dialect
from ftprl.data.kinds import TABLE as KIND_TABLE
from ftprl.data.options import JSON_LINES
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model
from ftprl.training.records import COLUMN, Block, Table, fields_of, object_of, refused_field, table_of

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON = (".jsonl", ".ndjson")
_PARQUET = ".parquet"
_COLUMN_FORMATS = ("parquet", "arrow", "orc")


def check_append(source: Source, path: str) -> None:
    """Refuse data whose rows are not known and an output file of no known format."""
    suffix, packing = suffixes(path)
    if suffix not in (*SEPARATORS, *_JSON, _PARQUET):
        got = repr(path) if path else "none"
        raise InvalidInput(
            f"--append needs a file to write to that ends in .csv, .tsv, .parquet or .jsonl, got {got}; pass it with"
            " --output."
        )
    if not (isinstance(source, TextSource) or source.describe().format in _COLUMN_FORMATS):
        raise InvalidInput("--append needs data with its columns, got others; pass files of text or of columns.")
    check_packing("--output", path)
    if suffix == _PARQUET and packing:
        raise InvalidInput(
            f"--output needs a Parquet file that ends in .parquet, got {path!r}; it is compressed anyway."
        )
    if isinstance(source, TextSource):
        source.keep_records()


def append(lines: Iterable[bytes], source: Source, model: Model, path: str, target: Any) -> None:
    """Write all rows of a source with their predictions, which are `lines`, to an open file."""
    numbers = ([line.partition(b" ")[0] for line in text.split(b"\n")[:-1]] for text in lines)  # without tags
    suffix = suffixes(path)[0]
    with packed(target, path) as out:
        if isinstance(source, TextSource):
            _append_text(_blocks(source, numbers), source, model, suffix, out)
            return
        from ftprl.training import append_columns

        format = source.describe().format
        batches = append_columns.of_files(source.files, format, numbers)
        append_columns.write(batches, lambda: append_columns.schema_of_files(source.files, format), suffix, out)


def _blocks(source: TextSource, numbers: Iterable[list[bytes]]) -> Iterator[Block]:
    """Yield the text of some rows with that of their predictions, until all rows are read."""
    records: list[bytes] = []
    for predictions in numbers:
        records += source.take_records()
        if predictions:
            yield records[: len(predictions)], predictions
            records = records[len(predictions) :]


def _append_text(blocks: Iterator[Block], source: TextSource, model: Model, suffix: str, out: Any) -> None:
    first = next(blocks, None)  # once it is read, the columns are known
    blocks = blocks if first is None else chain([first], blocks)
    if source.describe().format == JSON_LINES and suffix in _JSON:
        for records, predictions in blocks:
            out.write(b"".join(map(_with_prediction, records, predictions)))
        return
    kinds = model.reading.get("columns") or {}
    order = model.reading.get("order") or list(kinds)
    binary = model.spec.scalar_loss().is_classification
    is_json = source.dialect is None
    numeric = [kind.name for kind in KIND_TABLE if (kind.is_number if is_json else kind.is_number_in_text)]
    numeric += [] if binary else ["label"]
    table = table_of(source, {name: kinds[name] for name in order}, numeric)
    if COLUMN in table.names:
        raise InvalidInput(f"--append needs data without a column {COLUMN!r}, got one; rename it.")
    if table.dialect is not None and suffix in SEPARATORS:
        _write_fields(blocks, table, table.dialect, SEPARATORS[suffix], out)
        return
    from ftprl.training import append_columns, text_columns

    has_lists = suffix not in SEPARATORS  # elsewhere they are JSON
    batches = text_columns.batches(blocks, table, has_lists=has_lists)
    append_columns.write(batches, lambda: text_columns.schema_of(table, (), has_lists=has_lists), suffix, out)


def _with_prediction(record: bytes, prediction: bytes) -> bytes:
    """Return a line of JSON with one key more."""
    if not prediction:
        return b'{"prediction": null}\n'
    if b'"prediction"' in record and COLUMN in (object_of(record) or {}):
        raise InvalidInput(f"--append needs data without a key {COLUMN!r}, got one; rename it.")
    inner = record.strip()[:-1].rstrip()
    comma = b"" if inner.endswith(b"{") else b", "
    return inner + comma + b'"prediction": ' + prediction + b"}\n"


def _write_fields(blocks: Iterator[Block], table: Table, own: Dialect, sep: str, out: Any) -> None:
    """Write CSV or TSV from rows of CSV or TSV; those of the same dialect are copied as they are."""
    # `--sep ';'` makes another CSV: what is read as CSV is written as it was.
    is_copied = (sep == ",") == (own.sep != "\t")
    dialect = own if is_copied else Dialect(sep, '"' if sep == "," else None, True)
    if own.header:
        out.write(_joined([[*table.names, COLUMN]], table.names, dialect))
    for records, predictions in blocks:
        if is_copied:
            rows = zip(records, predictions, strict=True)
            out.write(b"".join(record + dialect.sep.encode() + prediction + b"\n" for record, prediction in rows))
        else:
            fields = zip(fields_of(own, records), predictions, strict=True)
            out.write(_joined([[*row, prediction.decode()] for row, prediction in fields], table.names, dialect))


def _joined(rows: Sequence[Sequence[str]], names: Sequence[str], dialect: Dialect) -> bytes:
    """Return rows as text; a field that would need quotes is refused in a dialect without any."""
    if dialect.quote is None:
        special = (dialect.sep, "\r", "\n")
        for row in rows:
            for at, field in enumerate(row):
                if any(mark in field for mark in special):
                    raise refused_field(names[at] if at < len(names) else str(at + 1), field)
        return "".join(f"{dialect.sep.join(row)}\n" for row in rows).encode()
    text = io.StringIO()
    csv.writer(text, delimiter=dialect.sep, quotechar=dialect.quote, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
