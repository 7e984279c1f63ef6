"""Batches of columns with predictions, of files of columns (Parquet, Arrow, ORC) or of text, written by pyarrow."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet, types
from pyarrow import csv as arrow_csv

from ftprl.data import column_files
from ftprl.data.column_files import ColumnFile
from ftprl.data.files import shown
from ftprl.errors import BadFormat, InvalidInput
from ftprl.training.records import COLUMN, refused_field

_UNQUOTED = re.compile("[\t\r\n]")  # what a field without quotes cannot have


# ---- reading ----


def of_files(files: Sequence[str], format: str, numbers: Iterable[list[bytes]]) -> Iterator[pa.RecordBatch]:
    """Yield all rows of files of columns with the numbers behind them; a row that was left out has an empty text."""
    waiting: list[bytes] = []
    predictions = iter(numbers)
    for batch in _record_batches(files, format):
        while len(waiting) < len(batch):
            waiting += next(predictions)
        own, waiting = waiting[: len(batch)], waiting[len(batch) :]
        if COLUMN in batch.schema.names:
            raise InvalidInput(f"--append needs data without a column {COLUMN!r}, got one; rename it.")
        yield batch.append_column(COLUMN, pa.array([float(text) if text else None for text in own], pa.float64()))
    for _ in predictions:
        pass  # rows that could not be read at the end of the data are named by the reader


def _record_batches(files: Sequence[str], format: str) -> Iterator[pa.RecordBatch]:
    """Yield all rows of files, with every column and the keys of their partitions; all with one schema."""
    schema: pa.Schema | None = None
    key_types = {field.name: field.type for field in column_files.fields_of(files)}
    for file in files:
        with closing(ColumnFile(file, format)) as opened:
            keys = {key: value for key, value in column_files.keys_of(file).items() if key not in opened.schema.names}
            for group in range(opened.groups):
                for batch in opened.batches(group, opened.schema.names):
                    for key, value in keys.items():
                        own = int(value) if value is not None and types.is_integer(key_types[key]) else value
                        batch = batch.append_column(key, pa.repeat(pa.scalar(own, key_types[key]), len(batch)))
                    schema = schema or batch.schema
                    yield _cast(batch, schema, f"{shown(file)}: {opened.part} {group}")


def _cast(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    if batch.schema == schema:
        return batch
    try:
        return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)
    except (KeyError, pa.ArrowException) as error:
        raise BadFormat(
            f"{where}: expected the columns of the first file, got others ({str(error)[:80]}); write the files one by"
            " one."
        ) from None


def schema_of_files(files: Sequence[str], format: str) -> pa.Schema:
    """Return the columns of files that have no rows, and the prediction."""
    with closing(ColumnFile(files[0], format)) as opened:
        schema = opened.schema
    keys = [field for field in column_files.fields_of(files) if field.name not in schema.names]
    return pa.schema([*schema, *keys, pa.field(COLUMN, pa.float64())])


# ---- writing ----


def write(batches: Iterator[pa.RecordBatch], empty: Callable[[], pa.Schema], suffix: str, out: Any) -> None:
    """Write batches in the format of a file extension; without any, a file with the columns `empty`."""
    first = next(batches, None)
    schema = empty() if first is None else first.schema
    rows = batches if first is None else chain([first], batches)
    if suffix == ".parquet":
        with parquet.ParquetWriter(out, schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
    elif suffix in (".jsonl", ".ndjson"):
        for row in (row for batch in rows for row in batch.to_pylist()):
            out.write((json.dumps(_as_json(row), ensure_ascii=False, default=_json) + "\n").encode())
    else:
        _write_table(rows, schema, out, is_csv=suffix == ".csv")


def _write_table(batches: Iterator[pa.RecordBatch], schema: pa.Schema, out: Any, *, is_csv: bool) -> None:
    several = next((field for field in schema if types.is_nested(field.type)), None)
    if several is not None:
        raise InvalidInput(
            f"--append needs .parquet or .jsonl for lists and structures, got column {shown(several.name)[:40]!r} of"
            f" type {several.type}; rename the file."
        )
    schema = pa.schema([f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema])
    if is_csv:
        head = io.StringIO()
        csv.writer(head, lineterminator="\n").writerow(schema.names)
        out.write(head.getvalue().encode())
        options = arrow_csv.WriteOptions(include_header=False, quoting_style="needed")
        with arrow_csv.CSVWriter(out, schema, write_options=options) as writer:
            for batch in batches:
                writer.write_batch(_as_text(batch, schema))
        return
    for name in schema.names:
        if _UNQUOTED.search(name):
            raise refused_field(name, name)
    out.write("\t".join(schema.names).encode() + b"\n")
    for batch in batches:
        out.write(_tsv(_as_text(batch, schema)))


def _as_text(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with these types; bytes must be text, since a table of text has no others."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if types.is_binary(field.type) or types.is_large_binary(field.type):
            try:
                column.cast(pa.large_string())
            except pa.ArrowInvalid:
                raise InvalidInput(
                    f"--append needs .parquet for bytes that are not UTF-8, got some in column"
                    f" {shown(field.name)[:40]!r}; rename the file."
                ) from None
    return _cast(batch, schema, "--append")


def _tsv(batch: pa.RecordBatch) -> bytes:
    """Return lines of tab-separated text, which has no quotes."""
    texts = [compute.fill_null(column.cast(pa.string()), "") for column in batch.columns]
    for name, column in zip(batch.schema.names, texts, strict=True):
        bad = column.filter(compute.match_substring_regex(column, _UNQUOTED.pattern))
        if len(bad):
            raise refused_field(name, bad[0].as_py())
    return "".join(f"{line}\n" for line in compute.binary_join_element_wise(*texts, "\t").to_pylist()).encode()


def _as_json(value: Any) -> Any:
    """Return a value that ftprl reads back as it is: pairs of a map as objects with `key` and `value`, NaN as null."""
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return {"key": value[0], "value": _as_json(value[1])}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Any) -> str | float:
    """Return dates as in ISO 8601, bytes as text, decimal numbers as numbers."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, Decimal):
        return float(value)
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
