"""`ftprl convert`: data of any format as VW text, libsvm, Parquet, or a file of hashed batches.

VW text and libsvm have a line for each good row. Of a table VW text has the features by name, so that a model of it is
that of the table; libsvm has the cells of the weight table as ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from ftprl import data as readers
from ftprl._core import feature_lines, words
from ftprl.atomic import check_apart, check_target, replacing
from ftprl.data import Batch, Source
from ftprl.data.batches import write_batches
from ftprl.data.files import STDIN, suffixes
from ftprl.data.packing import check_packing, packed
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.losses import LOSSES
from ftprl.training.append import ParquetWriter, Table, fields_of

_LIBSVM = (".libsvm", ".svm", ".svmlight")
_ABSENT = ("na", "n/a", "#n/a", "nan", "null", "none")  # in a column of numbers or booleans
_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_SEVERAL = ("date", "timestamp", "bucket")  # kinds whose features are no text of the file
_NOT_IN_NAMES = re.compile(r"[\s:|]")  # what separates names in VW text


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
    source = readers.open(data, **{"names": kind == ".batches", **options})
    check_apart({"output=": path}, {f"the data file {file}": file for file in source.files if file != STDIN})
    if kind == ".batches":
        write_batches(path, source)
        return source
    if kind == ".parquet":
        _write_parquet(source, path)
        return source
    line = _libsvm if kind in _LIBSVM else _vw_writer(source)
    with replacing(path) as target, packed(target, path) as out:
        for batch, records in _with_records(source):
            out.write(line(batch, records))
    return source


def _with_records(source: Source) -> Iterator[tuple[Batch, list[bytes]]]:
    """Batches with the text of their rows, where it is kept."""
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


def _number(value: float) -> str:
    return f"{value:.17g}" if value != int(value) or abs(value) > 1e15 else str(int(value))


def _label(batch: Batch, y: float) -> str:
    """A label as text; that of a class may be text already, in which blanks and bars would end it."""
    if y != y:
        return ""
    return _safe(batch.label_texts[y]) if y in batch.label_texts else _number(y)


def _libsvm(batch: Batch, _: list[bytes]) -> bytes:
    if (batch.weight != 1.0).any():
        raise InvalidInput("output= needs a format with weights, got libsvm for data that has them; write .vw instead.")
    begin = [_label(batch, y) for y in batch.y.tolist()]
    return feature_lines(begin, batch.indptr, batch.indices, batch.values)


def _begin_of_vw(batch: Batch) -> list[str]:
    """Label, weight and tag of each row, up to the bar."""
    tags = [""] * len(batch) if batch.tags is None else [f"'{tag}" if tag else "" for tag in batch.tags]
    begin = []
    for y, weight, tag in zip(batch.y.tolist(), batch.weight.tolist(), tags, strict=True):
        label = _label(batch, y)
        label = label if weight == 1.0 or not label else f"{label} {_number(weight)}"
        begin.append(f"{label} {tag}|")
    return begin


def _vw_writer(source: Source) -> Callable[[Batch, list[bytes]], bytes]:
    """What makes lines of VW text of some rows: from the columns of a table, or from numbered features."""
    format = source.describe().format
    if isinstance(source, TextSource) and (source.dialect is not None or format == "vw"):
        source.keep_records()
        if format == "vw":
            return lambda _, records: b"".join(record + b"\n" for record in records)
        for name, kind in (source.describe().columns or {}).items():
            if kind in _SEVERAL:
                raise InvalidInput(
                    f"output= needs columns of numbers, categories or text for .vw, got the {kind} column"
                    f" {name[:40]!r}; write .batches or .libsvm instead, or leave it out with ignore=.",
                    option=("output", "ignore"),
                )
        return lambda batch, records: _table_as_vw(source, batch, records)
    if format not in ("libsvm", "arrays"):
        raise InvalidInput(
            f"output= needs a format that holds cells for data whose names are not known, got .vw for {format}; write"
            " .libsvm or .batches instead.",
            option="output",
        )
    return lambda batch, _: feature_lines(_begin_of_vw(batch), batch.indptr, batch.indices, batch.values)


def _table_as_vw(source: TextSource, batch: Batch, records: list[bytes]) -> bytes:
    described = source.describe()
    kinds, marks = described.columns or {}, described.missing == "indicator"
    table = _table(source)
    names = [(name, kinds.get(name, "ignore")) for name in table.names]
    lines = []
    for begin, fields in zip(_begin_of_vw(batch), fields_of(table, records), strict=True):
        features = (
            _features(name, kind, field.strip(), marks) for (name, kind), field in zip(names, fields, strict=True)
        )
        lines.append(begin + "".join(features) + "\n")
    return "".join(lines).encode()


def _features(name: str, kind: str, field: str, marks: bool) -> str:
    """The features of a field, each behind a space."""
    if kind in ("ignore", "label", "weight"):
        return ""
    if not field or (kind in ("numeric", "boolean") and field.lower() in _ABSENT):
        return f" {_safe(f'{name} is missing')}" if marks else ""
    if kind == "numeric":
        return f" {_safe(name)}:{field}"
    if kind == "categorical":
        return f" {_safe(f'{name}={field}')}"
    if kind == "boolean":
        return f" {_safe(name)}={'true' if field.lower() in _TRUE else 'false'}"
    if kind == "text":
        return "".join(f" {_safe(f'{name}={word.decode()}')}" for word in words(field.encode()))
    return ""


def _safe(name: str) -> str:
    """A name in VW text, which cannot have blanks, colons and bars."""
    return _NOT_IN_NAMES.sub("_", name)


def _table(source: TextSource) -> Table:
    names, dialect = source.record_columns, source.dialect
    assert names is not None
    assert dialect is not None
    kinds = source.describe().columns or {}
    numeric = (
        ("numeric", "weight") if LOSSES[source.to_dict()["loss"]].is_classification else ("numeric", "weight", "label")
    )
    return Table(names, frozenset(name for name in names if kinds.get(name) in numeric), dialect)


def _write_parquet(source: Source, path: str) -> None:
    """The columns of a table: numbers as doubles, all others as text."""
    if not isinstance(source, TextSource) or source.dialect is None:
        raise InvalidInput(
            f"output= needs csv or tsv files for Parquet, got format {source.describe().format}; write .batches.",
            option="output",
        )
    source.keep_records()
    with replacing(path) as out:
        writer: ParquetWriter | None = None
        for batch, records in _with_records(source):
            writer = writer or ParquetWriter(_table(source), out, path, more=False)
            writer.write(records, [b"0"] * len(batch))
        if writer is None:
            raise InvalidInput(f"output= needs rows, got none in {', '.join(source.files)}; check the file.")
        writer.close()
