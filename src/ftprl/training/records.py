"""The rows of text files as named values, for files that are written: of a table, of JSON lines, of VW text, of libsvm.

A row of VW text or libsvm has a label, a weight, a tag and features; one of JSON lines the columns that were read.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl.data.csv_files import Dialect
from ftprl.data.files import shown
from ftprl.data.options import JSON_LINES
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput

COLUMN = "prediction"
OF_LINES = ("label", "weight", "tag", "features")  # the columns of VW text and libsvm

Values = list[Any]
Block = tuple[Sequence[bytes], Sequence[bytes]]  # the text of some rows, and that of their predictions


@final
class Table(NamedTuple):
    """What is known of the columns of the input: names, those of numbers, and how a row is read from its text.

    `values` gives the values of some rows in the order of the names, or more or fewer for a row that cannot be read.
    `dialect` is that of CSV and TSV.
    """

    names: tuple[str, ...]
    numeric: frozenset[str]
    values: Callable[[Sequence[bytes]], Iterator[Values]]
    dialect: Dialect | None = None


def table_of(source: TextSource, kinds: Mapping[str, str], numeric: Sequence[str]) -> Table:
    """The columns of a source, of which those of the kinds `numeric` are numbers.

    JSON lines may have other columns, which are left out.
    """
    format = source.describe().format
    if source.dialect is not None:
        names, dialect = source.record_columns, source.dialect
        assert names is not None
        csv.field_size_limit(sys.maxsize)  # how long a row may be was decided when it was read
        numbers = frozenset(name for name in names if kinds.get(name) in numeric)
        return Table(names, numbers, lambda records: fields_of(dialect, records), dialect)
    if format == JSON_LINES:
        names = tuple(kinds)
        numbers = frozenset(name for name in names if kinds[name] in numeric)
        maps = frozenset(name for name in names if not any(other.startswith(f"{name}.") for other in names))
        return Table(names, numbers, lambda records: (_of_json(record, names, maps) for record in records))
    read = _of_libsvm if format == "libsvm" else _of_vw
    return Table(OF_LINES, frozenset(("label", "weight")), lambda records: (read(text_of(one)) for one in records))


def fields_of(dialect: Dialect, records: Sequence[bytes]) -> Iterator[list[str]]:
    """The fields of some rows of a table."""
    sep, quote, _ = dialect
    quoting: Any = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    return csv.reader(map(text_of, records), delimiter=sep, quotechar=quote, quoting=quoting)


def values_of(table: Table, block: Block, *, keeps_left_out: bool) -> Iterator[Values]:
    """Yield the values of some rows with the prediction behind them.

    A row that was left out has no prediction, and its values only with `keeps_left_out`, where they can be read.
    """
    records, predictions = block
    for fields, prediction in zip(table.values(records), predictions, strict=True):
        if not prediction and not (keeps_left_out and len(fields) == len(table.names)):
            yield [None] * (len(table.names) + 1)
            continue
        if len(fields) != len(table.names):
            raise _refused_row(table, fields)
        pairs = zip(fields, table.names, strict=True)
        row: list[Any] = [
            number_of(field) if name in table.numeric and not isinstance(field, list) else field
            for field, name in pairs
        ]
        yield [*row, float(prediction) if prediction else None]


def _refused_row(table: Table, fields: Sequence[Any]) -> InvalidInput:
    """Return the error of a row that was predicted and cannot be written."""
    if table.dialect is None:
        return InvalidInput("--append needs JSON that Python reads, got a row with a number such as 01; write .jsonl.")
    return InvalidInput(
        f"--append needs rows of {len(table.names)} fields, got {len(fields)} in {fields!r:.100}; check the quotes, or"
        " write CSV."
    )


def text_of(record: bytes) -> str:
    """The text of a row; bytes that are no text are shown as such."""
    return record.decode("utf-8", "backslashreplace")


def field_text(value: Any) -> str:
    """A value as a field of CSV has it, and as it is spelled in a category; a list as JSON."""
    if isinstance(value, str):  # JSON may have half a character, which no file can have
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | int):
        return repr(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def refused_field(name: str, text: str) -> InvalidInput:
    """A value that a file without quotes cannot have."""
    return InvalidInput(
        f"--append needs values without tabs and line ends for .tsv, which has no quotes, got '{shown(text)[:40]}' in"
        f" column {shown(name)[:40]!r}; write .csv."
    )


def number_of(value: Any) -> float | None:
    """A value of a column of numbers; None where it has none."""
    try:
        number = float(value)
    except (ValueError, TypeError):
        return None
    return number if math.isfinite(number) else None


# ---- JSON ----


def flattened(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of an object, those of objects within as `a.b`.

    >>> dict(flattened({"a": {"b": 1}, "c": [2]}))
    {'a.b': 1, 'c': [2]}
    """
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flattened(inner, f"{prefix}{key}.")
        else:
            yield prefix + key, inner


def object_of(record: bytes) -> dict[str, Any] | None:
    """The object of a line; None for a line that was left out, or that Python does not read, as with a number 01."""
    try:
        value = json.loads(record, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _of_json(record: bytes, names: Sequence[str], maps: frozenset[str]) -> Values:
    read = object_of(record)
    if read is None:
        return []
    flat = dict(flattened(read))
    for name in [name for name, value in flat.items() if isinstance(value, list) and name not in names]:
        if any(other.startswith(f"{name}.") for other in names):  # pairs of a name and a value are these columns
            flat |= _columns_of(name, flat.pop(name))
    return [flat[name] if name in flat else _pairs(flat, f"{name}.") if name in maps else None for name in names]


def _columns_of(name: str, pairs: Sequence[Any]) -> dict[str, Any]:
    found = [(pair.get("name", pair.get("key")), pair.get("value")) for pair in pairs if isinstance(pair, dict)]
    return {f"{name}.{field_text(own)}": value for own, value in found if own is not None}


def _pairs(flat: Mapping[str, Any], prefix: str) -> list[dict[str, Any]] | None:
    """The names and values of an object that stands where a model has a column; None if there is none."""
    inside = {name.removeprefix(prefix): value for name, value in flat.items() if name.startswith(prefix)}
    return [{"name": name, "value": value} for name, value in inside.items()] or None


# ---- VW text and libsvm ----


def _of_vw(line: str) -> Values:
    """Label, weight, tag and features, as VW reads them: a tag begins with a quote, or touches the bar."""
    head, _, features = line.partition("|")
    words = head.split()
    has_tag = bool(words) and (words[-1].startswith("'") or not head[-1:].isspace())
    tag = words.pop().removeprefix("'") if has_tag else None
    return [*(number_of(word) for word in (*words, None, None)[:2]), tag, "|" + features]


def _of_libsvm(line: str) -> Values:
    first, _, features = line.strip().partition(" ")
    if ":" in first:  # without a label
        return [None, None, None, line.strip()]
    return [number_of(first), None, None, features]
