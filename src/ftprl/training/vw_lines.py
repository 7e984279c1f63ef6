"""Rows as lines of VW text: from the columns of a table, files of columns or JSON lines, or from numbered features."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ftprl._core import feature_lines, words
from ftprl.data import Batch, Source
from ftprl.data.options import JSON_LINES, NUMBERED
from ftprl.data.protocol import BESIDE
from ftprl.data.text import TextSource
from ftprl.errors import InvalidInput
from ftprl.training.append import is_columnar
from ftprl.training.records import flattened, object_of, table_of, text_of

_ABSENT = ("na", "n/a", "#n/a", "nan", "null", "none")  # in a column of numbers or booleans
_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_SEVERAL = ("date", "timestamp", "bucket")  # kinds whose features are no text of the file
_NOT_IN_NAMES = re.compile(r"[\s:|]")  # what separates names in VW text

Writer = Callable[[Batch, list[Any]], bytes]


def vw_writer(source: Source) -> Writer:
    """What makes lines of VW text of some rows and their text or values."""
    format, described = source.describe().format, source.describe()
    kinds, indicators = described.columns or {}, described.missing == "indicator"
    if isinstance(source, TextSource) and format == "vw":
        source.keep_records()
        return lambda _, records: b"".join(record + b"\n" for record in records)
    if format in NUMBERED:
        return lambda batch, _: feature_lines(_begins(batch), batch.indptr, batch.indices, batch.values)
    is_table = isinstance(source, TextSource) and (source.dialect is not None or format == JSON_LINES)
    if not (is_table or is_columnar(source)):
        raise InvalidInput(
            "output= needs .libsvm or .batches for data that is hashed and has no feature names, got .vw; write one of"
            " these, or convert the original data.",
            option="output",
        )
    for name, kind in kinds.items():
        if kind in _SEVERAL:
            raise InvalidInput(
                f"output= needs columns of numbers, categories or text for .vw, got the {kind} column"
                f" {name[:40]!r}; write .batches or .libsvm instead, or leave it out with ignore=.",
                option=("output", "ignore"),
            )
    if isinstance(source, TextSource):
        source.keep_records()
    if isinstance(source, TextSource) and source.dialect is not None:
        return lambda batch, records: _lines(batch, _of_text(source, kinds, records, indicators))
    others = format == JSON_LINES and bool(source.to_dict().get("other_columns", True))
    return lambda batch, rows: _lines(batch, (_of_values(row, kinds, indicators, others) for row in rows))


def number_text(value: float) -> str:
    """A number as short as is exact."""
    return f"{value:.17g}" if value != int(value) or abs(value) > 1e15 else str(int(value))


def _begins(batch: Batch) -> list[str]:
    """Label, weight and tag of each row, up to the bar."""
    tags = [""] * len(batch) if batch.tags is None else [f"'{tag}" if tag else "" for tag in batch.tags]
    begin = []
    for y, weight, tag in zip(batch.y.tolist(), batch.weight.tolist(), tags, strict=True):
        label = "" if y != y else number_text(y) if weight == 1.0 else f"{number_text(y)} {number_text(weight)}"
        begin.append(f"{label} {tag}|")
    return begin


def _lines(batch: Batch, features: Iterator[str]) -> bytes:
    return "".join(f"{begin}{row}\n" for begin, row in zip(_begins(batch), features, strict=True)).encode()


def _of_text(source: TextSource, kinds: Mapping[str, str], records: Sequence[bytes], indicators: bool) -> Iterator[str]:
    """The features of rows of CSV or TSV."""
    table = table_of(source, kinds, ())
    for fields in table.values(records):
        pairs = zip(table.names, fields, strict=True)
        yield "".join(_feature(name, kinds.get(name, "ignore"), field.strip(), indicators) for name, field in pairs)


def _of_values(row: Any, kinds: Mapping[str, str], indicators: bool, others: bool) -> str:
    """The features of a dict, or of the text of an object: known columns in their order, then others by their value."""
    read = object_of(row) if isinstance(row, bytes) else row
    if read is None:
        raise InvalidInput(
            "output= needs JSON that Python reads, got a row with a number such as 01; write .batches.", option="output"
        )
    flat = dict(flattened(read))
    known = "".join(_cell(name, kind, flat.get(name), indicators) for name, kind in kinds.items())
    if not others:
        return known
    return known + "".join(_cell(name, "", value, False) for name, value in flat.items() if name not in kinds)


def _kind(value: Any) -> str:
    """The kind of a value, or of an element of an array, under a name that is no known column."""
    return "numeric" if isinstance(value, int | float) and not isinstance(value, bool) else "categorical"


def _cell(name: str, kind: str, value: Any, indicators: bool) -> str:
    """The features of a value of any type; without a kind, by the value."""
    if isinstance(value, list) and kind not in (*BESIDE, "ignore"):
        return "".join(_element(name, kind, position, one) for position, one in enumerate(value) if one is not None)
    kind = kind or _kind(value)
    return _feature(name, kind, _text(value, kind), indicators)


def _element(name: str, kind: str, position: int, value: Any) -> str:
    """A feature of an array: a number by its position, a text as it is, an object by its name."""
    if isinstance(value, Mapping):
        key, inner = (next((value[k] for k in ks if k in value), None) for ks in (("name", "key"), ("value",)))
        own = kind if kind == "numeric" else "categorical" if kind else _kind(inner)
        return _feature(f"{name}.{key}", own, _text(inner, own), False)
    if isinstance(value, tuple):  # an entry of a map
        return _element(name, kind, position, {"name": value[0], "value": value[1]})
    kind = kind or _kind(value)
    if kind == "numeric":
        return _feature(f"{name}.{position}", kind, _text(value, kind), False)
    return _feature(name, kind, _text(value, kind), False)


def _text(value: Any, kind: str) -> str:
    """A value as a CSV file has it."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return ("1" if value else "0") if kind == "numeric" else "true" if value else "false"
    if isinstance(value, bytes):
        return text_of(value)
    return repr(value) if isinstance(value, float) else str(value)


def _feature(name: str, kind: str, field: str, indicators: bool) -> str:
    """The features of a field, each behind a space."""
    if kind in ("ignore", *BESIDE):
        return ""
    if not field or (kind in ("numeric", "boolean") and field.lower() in _ABSENT):
        return f" {_safe(f'{name} is missing')}" if indicators else ""
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
