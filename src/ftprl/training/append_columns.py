"""Files of columns (Parquet, Arrow, ORC) written again with predictions behind their columns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ftprl.data import partitions
from ftprl.data.column_files import ColumnFile
from ftprl.data.files import shown, suffixes
from ftprl.errors import BadFormat, InvalidInput
from ftprl.training.records import refused_field

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMN = "prediction"
_UNQUOTED = re.compile("[\t\r\n]")  # what a field without quotes cannot have
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def record_batches(files: Sequence[str], format: str) -> Iterator[pa.RecordBatch]:
    """All rows of files of columns, with every column and the keys of their partitions; all with one schema."""
    import pyarrow as pa

    schema: pa.Schema | None = None
    types = {field.name: field.type for field in partitions.fields_of(files)}
    for file in files:
        with closing(ColumnFile(file, format)) as opened:
            keys = {key: value for key, value in partitions.keys_of(file).items() if key not in opened.schema.names}
            for group in range(opened.groups):
                for batch in opened.batches(group, opened.schema.names):
                    for key, value in keys.items():
                        own = int(value) if value is not None and pa.types.is_integer(types[key]) else value
                        batch = batch.append_column(key, pa.repeat(pa.scalar(own, types[key]), len(batch)))
                    schema = schema or batch.schema
                    yield _cast(batch, schema, f"{shown(file)}: {opened.part} {group}")


def _cast(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    import pyarrow as pa

    if batch.schema == schema:
        return batch
    try:
        return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)
    except (KeyError, pa.ArrowException) as error:
        raise BadFormat(
            f"{where}: expected the columns of the first file, got others ({str(error)[:80]}); write the files one by"
            " one."
        ) from None


def append_columns(numbers: Iterable[list[bytes]], files: Sequence[str], format: str, path: str, out: Any) -> None:
    """Write all rows with the text of their predictions, which is empty for a row that was left out."""
    import pyarrow as pa

    waiting: list[bytes] = []
    predictions = iter(numbers)
    writer: Any = None
    for batch in record_batches(files, format):
        while len(waiting) < len(batch):
            waiting += next(predictions)
        own, waiting = waiting[: len(batch)], waiting[len(batch) :]
        if _COLUMN in batch.schema.names:
            raise InvalidInput(f"--append needs data without a column {_COLUMN!r}, got one; rename it.")
        values = pa.array([float(text) if text else None for text in own], pa.float64())
        batch = batch.append_column(_COLUMN, values)
        writer = writer or _writer(batch.schema, path, out)
        writer(batch)
    writer = writer or _writer(_empty_schema(files, format), path, out)  # a file without rows has its columns
    writer(None)
    for _ in predictions:
        pass  # rows that could not be read at the end of the data are named by the reader


def _empty_schema(files: Sequence[str], format: str) -> pa.Schema:
    """The columns of files that have no rows, and the prediction."""
    import pyarrow as pa

    with closing(ColumnFile(files[0], format)) as opened:
        schema = opened.schema
    keys = [field for field in partitions.fields_of(files) if field.name not in schema.names]
    return pa.schema([*schema, *keys, pa.field(_COLUMN, pa.float64())])


def _writer(schema: pa.Schema, path: str, out: Any) -> Any:
    suffix = suffixes(path)[0]
    if suffix in _SEPARATORS:
        return _table_writer(schema, _SEPARATORS[suffix], out)
    return _parquet_writer(schema, out) if suffix == ".parquet" else lambda batch: _write_json(batch, out)


def _parquet_writer(schema: pa.Schema, out: Any) -> Any:
    from pyarrow import parquet

    writer = parquet.ParquetWriter(out, schema)

    def write(batch: pa.RecordBatch | None) -> None:
        if batch is None:
            writer.close()
        else:
            writer.write_batch(batch)

    return write


def _table_writer(schema: pa.Schema, sep: str, out: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    several = next((field for field in schema if pa.types.is_nested(field.type)), None)
    if several is not None:
        raise InvalidInput(
            f"--append needs .parquet or .jsonl for lists and structures, got column {shown(several.name)[:40]!r} of"
            f" type {several.type}; rename the file."
        )
    text_schema = pa.schema(
        [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
    )
    if sep == "\t":
        for name in text_schema.names:
            if _UNQUOTED.search(name):
                raise refused_field(name, name)
        out.write("\t".join(text_schema.names).encode() + b"\n")
        return lambda batch: None if batch is None else out.write(_tsv(_as_text(batch, text_schema)))
    writer = csv.CSVWriter(out, text_schema, write_options=csv.WriteOptions(delimiter=sep, quoting_style="needed"))

    def write(batch: pa.RecordBatch | None) -> None:
        if batch is None:
            writer.close()
        else:
            writer.write_batch(_as_text(batch, text_schema))

    return write


def _as_text(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with these types; bytes must be text, since a table of text has no others."""
    import pyarrow as pa

    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            try:
                column.cast(pa.large_string())
            except pa.ArrowInvalid:
                raise InvalidInput(
                    f"--append needs .parquet for bytes that are not UTF-8, got some in column"
                    f" {shown(field.name)[:40]!r}; rename the file."
                ) from None
    return _cast(batch, schema, "--append")


def _tsv(batch: pa.RecordBatch) -> bytes:
    """Lines of tab-separated text, which has no quotes."""
    import pyarrow as pa
    from pyarrow import compute

    texts = [compute.fill_null(column.cast(pa.string()), "") for column in batch.columns]
    for name, column in zip(batch.schema.names, texts, strict=True):
        bad = column.filter(compute.match_substring_regex(column, _UNQUOTED.pattern))
        if len(bad):
            raise refused_field(name, bad[0].as_py())
    return "".join(f"{line}\n" for line in compute.binary_join_element_wise(*texts, "\t").to_pylist()).encode()


def _write_json(batch: pa.RecordBatch | None, out: Any) -> None:
    for row in () if batch is None else batch.to_pylist():
        out.write((json.dumps(_as_json(row), ensure_ascii=False, default=_json) + "\n").encode())


def _as_json(value: Any) -> Any:
    """A value that ftprl reads back as it is: a pair of a map as an object with `key` and `value`, NaN as null."""
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return {"key": value[0], "value": _as_json(value[1])}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Any) -> str | float:
    """Dates as in ISO 8601, bytes as text, decimal numbers as numbers."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, Decimal):
        return float(value)
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
