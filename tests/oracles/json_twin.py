"""JSON lines in pure Python: json.loads, dictionaries, one row at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from oracles.readers_twin import Bad, Row, Twin

Pairs = list[tuple[str, float]]
_SPECIAL = str.maketrans(" \t|:", "____")


def _loads(line: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line, object_pairs_hook=_Pairs)
    except ValueError:
        raise Bad from None
    if not isinstance(parsed, _Pairs):
        raise Bad
    return parsed


class _Pairs(dict[str, Any]):
    """An object that remembers repeated keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Bad from None
    if isinstance(value, int | float) and math.isinf(float(value)):
        raise Bad
    return value


def features(value: Any, name: str, ignore: set[str]) -> Iterator[tuple[str, float]]:
    """Return the features of a column whose kind depends on each value."""
    if name in ignore or value is None or _checked(value) != value:
        return
    if isinstance(value, _Pairs):
        for key, inner in value.pairs:
            yield from features(inner, f"{name}.{_checked(key)}", ignore)
    elif isinstance(value, list):
        yield from _elements(value, name)
    elif _is_number(value):
        yield name, float(value)
    elif value != "":
        yield f"{name}={_text(value)}", 1.0


def _elements(values: list[Any], name: str) -> Iterator[tuple[str, float]]:
    for position, value in enumerate(values):
        value = _checked(value)
        if isinstance(value, list):
            raise Bad
        if value is None or value != value:
            continue
        if isinstance(value, _Pairs):
            yield from _entry(value, name)
        elif _is_number(value):
            yield f"{name}.{position}", float(value)
        elif value != "":
            yield f"{name}={_text(value)}", 1.0


def _entry(entry: _Pairs, name: str) -> Iterator[tuple[str, float]]:
    for key, value in entry.pairs:
        if isinstance(_checked(value), _Pairs | list) or (
            _checked(key) not in ("name", "key", "value") and value is not None and value == value
        ):
            raise Bad
    known = {key: value for key, value in entry.pairs if value is not None and value == value}
    own = [value for key, value in entry.pairs if key in ("name", "key") and value is not None and value == value]
    if not own or "value" not in known:
        return
    value = known["value"]
    if _is_number(value):
        yield f"{name}.{_text(own[-1])}", float(value)
    elif value != "":
        yield f"{name}.{_text(own[-1])}={_text(value)}", 1.0


def read_json_line(line: str, twin: Twin, label: str, ignore: set[str]) -> Row:
    """Read a line; the kinds of all columns but the label depend on their values."""
    parsed = _loads(line)
    pairs, y = [], math.nan
    for key, value in parsed.pairs:
        if _checked(key) == label:
            if isinstance(value, dict | list):
                raise Bad
            if value is not None:
                y = twin.label(_text(_checked(value)).encode())
            continue
        pairs += list(features(value, key, ignore))
    return twin.row([(twin.slot(name.encode()), value) for name, value in pairs], y, 1.0)
