"""Rows as dicts: a list of them, an iterator, or lists in parts. A key that a dict lacks is a missing value.

Dicts within a dict and lists are read as the objects and arrays of JSON lines.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

from ftprl.data.columns import FEATURES, ColumnSample, kind_of_text
from ftprl.data.frames import sample_of, text_of
from ftprl.data.nested import DEEPEST, has_inside
from ftprl.data.options import ReadingOptions, column_name
from ftprl.data.parts import ORIGIN, Parts, are_records
from ftprl.data.protocol import Source
from ftprl.data.tables import NamedColumns, listed, warn_of_unknown
from ftprl.errors import BadFormat

MOST_NAMES = 5000  # whose kinds are kept in the model
_FIRST = 100  # rows whose keys are compared with the columns of a model


def accepts(data: Any) -> bool:
    """Whether data is a list or an iterator of dicts, or has parts of which the first is a list of dicts."""
    return isinstance(data, Parts) and (isinstance(data.first, Mapping) or are_records(data.sample))


def open_object(data: Any, options: ReadingOptions) -> Source:
    """Dicts as a source."""
    from ftprl.data.memory_tables import open_records

    return open_records(data, options)


def decide(sample: Sequence[Any], named: NamedColumns) -> tuple[dict[str, str], dict[str, ColumnSample], bool]:
    """The kinds of the keys in the first rows, the samples, and whether most dicts lack most of the keys.

    A key is what it is named, else numeric when all its values are numbers, else as text with these values, or
    categorical if it has lists. Rows with more names than a model keeps, such as counts of words, are read by the type
    of each value alone.
    """
    values: dict[str, list[Any]] = {}
    has_lists = set[str]()
    for row in sample:
        for name, value in flat_items(row) if isinstance(row, Mapping) else ():
            if is_list(value):
                has_lists.add(name)
                for element in _elements(value):
                    values.setdefault(name, []).append(element)
            else:
                own = values.setdefault(name, [])
                if not is_missing(value):
                    own.append(value)
    present = {name: count for name, own in values.items() if (count := sum(value != "" for value in own))}
    inside = {name[:at] for name in values for at, letter in enumerate(name) if letter == "."}
    values = {name: own for name, own in values.items() if name in present or name not in inside}  # no empty dict
    kinds = _with_fields(named.kinds(), list(values))
    if len(values) > MOST_NAMES:
        values = {name: own for name, own in values.items() if name in kinds}
    samples = {
        name: _sample(name, own, len(own) if name in has_lists else len(sample), kinds.get(name))
        for name, own in values.items()
    }
    for name, own in values.items():
        if name not in kinds:
            is_numeric = name in present and all(_is_number(value) for value in own if value != "")
            by_text = "categorical" if name in has_lists else kind_of_text(samples[name], may_be_number=False)
            kinds[name] = "numeric" if is_numeric else by_text
    ordered = {name: kinds[name] for name in dict.fromkeys((*values, *kinds)) if name in kinds}
    is_sparse = 2 * sum(present.get(name, 0) for name in values) < len(values) * len(sample)
    return ordered, samples, is_sparse


def flat_items(row: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The keys and values of a dict, with those of dicts within it under the name `outer.inner`."""
    for key, value in row.items():
        name = before + (key if isinstance(key, str) else column_name(key))
        if isinstance(value, dict):
            yield from flat_items(value, f"{name}.")
        else:
            yield name, value


def unknown_keys(row: Mapping[Any, Any], columns: Mapping[str, str], before: str = "", depth: int = 1) -> Iterator[str]:
    """The keys that are neither columns nor within one: a map, or a dict that is left out."""
    for key, value in row.items() if depth <= DEEPEST else ():
        name = before + (key if isinstance(key, str) else column_name(key))
        is_column, has_columns = name in columns, has_inside(columns, name)
        if isinstance(value, dict):
            if has_columns or not is_column:
                yield from unknown_keys(value, columns, f"{name}.", depth + 1)
        elif not is_column and not (has_columns and is_list(value)):
            yield name
        elif not is_column:
            pairs = [element for element in value if isinstance(element, dict)]
            named = {f"{name}.{pair.get('name', pair.get('key'))}": pair for pair in pairs}
            yield from (one for one in named if one not in columns)
            if len(pairs) < len(value):
                yield name


def missing_keys(rows: Iterable[Any], columns: Mapping[str, str]) -> list[str]:
    """The columns of features that none of these rows has, not even as a missing value or within a dict or a list."""
    missing = [name for name, kind in columns.items() if kind in FEATURES]
    for row in rows if missing else ():
        if isinstance(row, Mapping):
            keys = {str(key) for key in row}
            missing = [name for name in missing if name not in keys and not _is_near(name, keys)]
        if not missing:
            break
    return missing


def _is_near(name: str, keys: Set[str]) -> bool:
    """Whether one of some keys is an object that a column may be in, or is within the column."""
    outer = (name[:at] for at, letter in enumerate(name) if letter == ".")
    return any(one in keys for one in outer) or any(key.startswith(f"{name}.") for key in keys)


def check_keys(
    rows: Iterable[Any], columns: Mapping[str, str], *, is_open: bool, where: str = ORIGIN, null: str = "None"
) -> None:
    """Refuse dicts that lack a column of the model in every row, and warn of other keys in the first ones.

    Rows of a model of dicts and JSON lines may have any keys, and need at least one that it knows. `null` is how a
    missing value is written.
    """
    rest = iter(rows)
    first = list(islice(rest, _FIRST))
    missing = missing_keys(chain(first, rest), columns)
    features = [name for name, kind in columns.items() if kind in FEATURES]
    first = [row for row in first if isinstance(row, Mapping)]
    unknown = list(dict.fromkeys(key for row in first for key in unknown_keys(row, columns)))
    keys = list(dict.fromkeys(name for row in first for name, _ in flat_items(row)))
    if missing and (not is_open or (unknown and len(missing) == len(features))):
        raise BadFormat(
            f"{where}: expected a key {missing[0][:40]!r}, got the keys {listed(keys)}; add it, with {null} where it is"
            " missing."
        )
    warn_of_unknown(unknown, "keys", is_open=is_open)


def is_list(value: Any) -> bool:
    """Whether a value of a dict is several ones."""
    return isinstance(value, list | tuple) or (type(value).__name__ == "ndarray" and value.ndim > 0)


def _elements(values: Any) -> Iterator[Any]:
    """The elements of a list that are there; of those with a name, the values."""
    for element in values:
        value = element.get("value") if isinstance(element, dict) else element
        if not (isinstance(value, dict) or is_list(value) or is_missing(value)):  # the parser refuses the former
            yield value


def _with_fields(kinds: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The kinds that were named; those of a dict hold for all that it has."""
    passed = dict[str, str]()
    for name, kind in kinds.items():
        fields = [] if name in names else [other for other in names if other.startswith(f"{name}.")]
        passed |= dict.fromkeys(fields, kind)
        if not fields or kind == "ignore":  # a dict that is left out may have other keys in later rows
            passed[name] = kind
    return {**passed, **{name: kind for name, kind in kinds.items() if name in names}}


def _sample(name: str, values: Sequence[Any], rows: int, kind: str | None) -> ColumnSample:
    import pyarrow as pa

    cells = [text_of(value).encode("utf-8", "backslashreplace") for value in values]
    texts = pa.chunked_array([pa.array(cells, pa.binary())])
    sample = sample_of(name, texts, "bucket" if kind == "bucket" else "text")
    missing = rows - len(values)
    return sample._replace(cells=rows, empty=sample.empty + missing, absent=sample.absent + missing)


def is_missing(value: Any) -> bool:
    """Whether a value of a dict is none: None, NaN, NaT, and NA of pandas."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool) and type(value).__name__ != "bool"


def label_texts(sample: Sequence[Any], label: str) -> list[str]:
    """The distinct labels of the first rows."""
    values = (value for row in sample if isinstance(row, Mapping) for value in _values_of(row, label))
    return list(dict.fromkeys(text_of(value) for value in values if not is_missing(value)))[:32]


def _values_of(row: Mapping[Any, Any], name: str) -> Iterator[Any]:
    value = row.get(name)
    if value is None and "." in name:
        value = next((own for path, own in flat_items(row) if path == name), None)
    return _elements(value if is_list(value) else [value])
