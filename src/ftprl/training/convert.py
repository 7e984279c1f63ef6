"""`ftprl convert`: data of any format as VW text, libsvm, Parquet, or a file of hashed batches.

VW text and libsvm have a line for each good row. Of a table VW text has the features by name, so that a model of it is
that of the table; libsvm has the cells of the weight table as ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ftprl import data as readers
from ftprl._core import feature_lines
from ftprl.atomic import check_apart, check_target, replacing
from ftprl.data import Batch, Source
from ftprl.data.batches import write_batches
from ftprl.data.files import STDIN, suffixes
from ftprl.data.packing import check_packing, packed
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.losses import LOSSES
from ftprl.training.append import ParquetWriter, is_columnar
from ftprl.training.records import JSON_FORMATS, check_readable, named_features, table_of, text_of
from ftprl.training.vw_lines import number_text, vw_writer

_LIBSVM = (".libsvm", ".svm", ".svmlight")


def convert(data: Any, output: str | os.PathLike[str], **options: Any) -> Source:
    """Write data to a file whose suffix decides the format: .vw, .libsvm, .parquet or .batches; returns its source.

    `options` are those of `ftprl.data.open`. Text may have .gz or .zst behind its suffix.

    >>> convert("clicks.csv.gz", "clicks.batches", label="click", dim=2**18)  # doctest: +SKIP
    """
    path = os.fspath(output)
    check_target("output=", path)
    kind, packing = suffixes(path)
    if kind not in (".vw", *_LIBSVM, ".parquet", ".batches") or (packing and kind in (".parquet", ".batches")):
        raise InvalidInput(
            f"output= needs a name that ends in .vw, .libsvm, .parquet or .batches, got {path!r}; rename it.",
            option="output",
        )
    check_packing("output=", path)
    source = readers.open(data, **{"names": "all" if kind == ".batches" else False, **options})
    check_apart({"output=": path}, {f"the data file {file}": file for file in source.files if file != STDIN})
    if kind == ".batches":
        write_batches(path, source)
        return source
    if kind == ".parquet":
        _write_parquet(source, path)
        return source
    if LOSSES[source.to_dict()["loss"]].has_classes:
        raise InvalidInput(
            f"output= needs .batches or .parquet for several classes, got {path!r}; rename it, or drop loss=.",
            option=("output", "loss"),
        )
    line = _libsvm if kind in _LIBSVM else vw_writer(source)
    with replacing(path) as target, packed(target, path) as out:
        for batch, records in _with_records(source):
            out.write(line(batch, records))
    return source


def _with_records(source: Source) -> Iterator[tuple[Batch, list[Any]]]:
    """Batches with the text or the values of their rows, where these are kept."""
    if is_columnar(source):
        yield from _with_values(source)
        return
    records, left_out, good, rows = list[bytes](), dict[int, int](), list[bytes](), 0
    with closing(source.read(digest=False)) as reading:
        for batch, _ in reading:
            if isinstance(source, TextSource):
                records, left_out = source.take_records(), source.take_left_out()
            for record in records:  # each is bad as long as there are bad ones before the next good row
                if left_out.get(rows, 0):
                    left_out[rows] -= 1
                else:
                    good.append(record)
                    rows += 1
            records = []
            some, good = good[: len(batch)], good[len(batch) :]
            yield batch, some


def _with_values(source: Source) -> Iterator[tuple[Batch, list[Any]]]:
    """Batches of files of columns with the values of their rows, as dicts."""
    from ftprl.training.append_columns import record_batches

    files, format = source.files, source.describe().format
    values = (row for batch in record_batches(files, format) for row in batch.to_pylist())
    rows = 0
    with closing(source.read(digest=False)) as reading:
        for batch, _ in reading:
            left_out, good = source.take_left_out(), list[Any]()
            while len(good) < len(batch):
                row = next(values)
                if left_out.get(rows, 0):
                    left_out[rows] -= 1
                else:
                    good.append(row)
                    rows += 1
            yield batch, good


def _libsvm(batch: Batch, _: list[Any]) -> bytes:
    if (batch.weight != 1.0).any():
        raise InvalidInput("output= needs a format with weights, got libsvm for data that has them; write .vw instead.")
    begin = [number_text(y) if y == y else "" for y in batch.y.tolist()]
    return feature_lines(begin, batch.indptr, batch.indices, batch.values)


def _write_parquet(source: Source, path: str) -> None:
    """The columns of a table: numbers as doubles, all others as text; files of columns keep their types."""
    if is_columnar(source):
        from ftprl.training.append_columns import write_parquet

        with replacing(path) as out:
            ignored = [name for name, kind in (source.describe().columns or {}).items() if kind == "ignore"]
            _check_rows(write_parquet(source.files, source.describe().format, out, ignored), source)
        return
    text = check_readable(source, "output=")
    if text.describe().format == JSON_FORMATS[1]:
        raise InvalidInput("output= needs .libsvm or .batches for VW's JSON, got .parquet; rename it.")
    text.keep_records()
    if text.describe().format in ("vw", "libsvm"):
        _write_features(text, path)
        return
    binary = LOSSES[source.to_dict()["loss"]].is_classification
    numeric = ("numeric", "weight", "delay_column", *(() if binary else ("label",)))
    rows = 0
    with replacing(path) as out:
        writer: ParquetWriter | None = None
        for batch, records in _with_records(source):
            writer = writer or ParquetWriter(
                table_of(text, source.describe().columns or {}, numeric, with_others=False), out, path, more=False
            )
            writer.write(records, [b"0"] * len(batch))
            rows += len(batch)
        _check_rows(rows, source)
        assert writer is not None
        writer.close()


def _write_features(source: TextSource, path: str) -> None:
    """VW text or libsvm as Parquet: label, weight, tag, and features as a list of names and values."""
    import pyarrow as pa
    from pyarrow import parquet

    feature = pa.struct([("name", pa.string()), ("value", pa.float64())])
    columns = [("label", pa.float64()), ("weight", pa.float64()), ("tag", pa.string()), ("features", pa.list_(feature))]
    schema, format, rows = pa.schema(columns), source.describe().format, 0
    with replacing(path) as out, parquet.ParquetWriter(out, schema) as writer:
        for batch, records in _with_records(source):
            features = [
                [{"name": name, "value": value} for name, value in named_features(text_of(record), format)]
                for record in records
            ]
            labels = [None if y != y else y for y in batch.y.tolist()]
            tags = [None] * len(batch) if batch.tags is None else [tag or None for tag in batch.tags]
            values = [labels, batch.weight.tolist(), tags, features]
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))
            rows += len(batch)
        _check_rows(rows, source)


def _check_rows(rows: int, source: Source) -> None:
    if not rows:
        raise InvalidInput(f"output= needs rows, got none in {', '.join(source.files)}; check the file.")
