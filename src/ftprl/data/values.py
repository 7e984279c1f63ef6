"""The values of one column as text, row by row, beside the batches of a source: for slices by a column."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.data import frames
from ftprl.data.column_files import ColumnFile
from ftprl.data.columns import listed, nearest
from ftprl.data.files import Stream, shown
from ftprl.data.parts import Parts, are_records, as_data, split
from ftprl.data.source import Source
from ftprl.data.text import TextSource
from ftprl.errors import BadFormat, InvalidInput

Texts = NDArray[Any]
_ROWS = 16384
_BYTES = 1 << 20


def column_values(source: Source, data: Any, column: str, option: str = "by") -> Iterator[Texts]:
    """The values of a column of the data that a source reads, as arrays of text; missing ones are empty.

    `data` is what the source was opened with; data that can be read once cannot be read beside it.
    """
    if not source.can_be_read_again:
        raise InvalidInput(
            f"{option}= needs data that can be read twice, got standard input or an iterator; save it to a file.",
            option=option,
        )
    if source.skips_bad_rows:
        raise InvalidInput(
            f"{option}= needs every row, got on_bad_row=skip as well; drop one.", option=(option, "on_bad_row")
        )
    if not source.files:
        return _of_objects(as_data(data), column, option)
    reading = source.to_dict()
    if reading["format"] not in _OF_FORMAT:
        raise InvalidInput(
            f"{option}= needs files with named columns, got {reading['format']} files; pass {', '.join(_OF_FORMAT)}.",
            option=option,
        )
    of_file = _OF_FORMAT[reading["format"]]
    return (part for file in source.files for part in of_file(file, _reading_of(source, file), column, option))


def _reading_of(source: Source, file: str) -> dict[str, Any]:
    """How a file is read; a table may have a separator of its own."""
    reading = source.to_dict()
    dialect = source.dialect_of(file) if isinstance(source, TextSource) else None
    return reading if dialect is None else {**reading, "sep": dialect.sep}


def _of_table(file: str, reading: Mapping[str, Any], column: str, option: str) -> Iterator[Texts]:
    stream = Stream(file)
    try:
        quote = reading["quote"]
        quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
        rows = (row for row in csv.reader(_lines(stream), delimiter=reading["sep"], **quoting) if row)
        first = next(rows, None)
        if first is None:
            return
        names = [name.strip() for name in first] if reading["header"] else [str(i + 1) for i in range(len(first))]
        at = _column_number(names, column, option, stream.name)
        texts = [] if reading["header"] else [first[at]]
        for row in rows:
            if len(row) <= at:
                raise BadFormat(f"{stream.name}: expected {len(names)} columns, got a row of {len(row)}; fix it.")
            texts.append(row[at])
            if len(texts) == _ROWS:
                yield np.array(texts, dtype=object)
                texts = []
        yield np.array(texts, dtype=object)
    except csv.Error as error:
        raise BadFormat(f"{stream.name}: expected a table for {option}=, got {error}; fix the file.") from None
    finally:
        stream.close()


def _of_columns(file: str, reading: Mapping[str, Any], column: str, option: str) -> Iterator[Texts]:
    format = reading["format"]
    opened = ColumnFile(file, format)
    try:
        _column_number(list(opened.schema.names), column, option, shown(file))
        for group in range(opened.groups):
            for batch in opened.batches(group, [column]):
                where = f"{shown(file)}: {opened.part} {group}"
                yield _texts_of_cells(batch.column(batch.schema.get_field_index(column)), column, where)
    finally:
        opened.close()


def _of_json_lines(file: str, reading: Mapping[str, Any], column: str, option: str) -> Iterator[Texts]:
    del reading, option  # a row may lack any column
    stream, values = Stream(file), list[Any]()
    try:
        for number, text in enumerate(_lines(stream), 1):
            if not text.strip():
                continue
            try:
                values.append(json.loads(text).get(column))
            except (ValueError, AttributeError):
                raise BadFormat(f"{stream.name}:{number}: expected a JSON object, got {text[:40]!r}; fix it.") from None
            if len(values) == _ROWS:
                yield _texts(values)
                values = []
        yield _texts(values)
    finally:
        stream.close()


def _texts_of_cells(cells: Any, column: str, where: str) -> Texts:
    """Return Arrow's cells as text; one that Python cannot hold, such as a date in the year 20000, is one line."""
    try:
        return _texts(cells.to_pylist())
    except (ValueError, OverflowError, TypeError) as error:
        what = shown(" ".join(str(error).split()))[:120]
        raise BadFormat(
            f"{where}: expected values with a text in column {shown(column)[:40]!r}, got one without ({what}); correct"
            " it."
        ) from None


def _texts(values: list[Any]) -> Texts:
    return np.array(["" if value is None else str(value) for value in values], dtype=object)


_OF_FORMAT: Mapping[str, Callable[[str, Mapping[str, Any], str, str], Iterator[Texts]]] = {
    "csv": _of_table,
    "tsv": _of_table,
    "parquet": _of_columns,
    "arrow": _of_columns,
    "orc": _of_columns,
    "jsonl": _of_json_lines,
}


def _lines(stream: Stream) -> Iterator[str]:
    rest = b""
    while block := stream.read(_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "backslashreplace") + "\n"
    if rest:
        yield rest.decode("utf-8", "backslashreplace")


def _column_number(names: list[str], column: str, option: str, where: str) -> int:
    if column not in names:
        remedy = nearest(column, names)
        raise InvalidInput(
            f"{where}: {option}= needs one of the columns {listed(names)}, got {column[:40]!r}; {remedy}",
            option=option,
        )
    return names.index(column)


def _of_objects(data: Any, column: str, option: str) -> Iterator[Texts]:
    parts = data if isinstance(data, Parts) else [data]
    for part in parts:
        inside = split(part)[0] if isinstance(data, Parts) else part
        if frames.is_frame(inside):
            table = frames.table_of(inside)
            _column_number(list(table.column_names), column, option, "data")
            yield _texts_of_cells(table.column(column), column, "data")
        elif are_records(inside) or isinstance(inside, Mapping):
            records = [inside] if isinstance(inside, Mapping) else inside
            yield _texts([record.get(column) for record in records])
        else:
            raise InvalidInput(
                f"{option}= needs data with named columns, got {type(inside).__name__}; pass a data frame or dicts.",
                option=option,
            )
