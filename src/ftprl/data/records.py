"""Rows as dicts: a list of them, an iterator, or lists in parts. A key that a dict lacks is a missing value."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from ftprl.data.columns import ColumnSample, kind_of_text
from ftprl.data.frames import sample_of, text_of
from ftprl.data.options import ReadingOptions, column_name
from ftprl.data.parts import Parts, are_records
from ftprl.data.protocol import Source
from ftprl.data.tables import NamedColumns

MOST_NAMES = 5000  # whose kinds are kept in the model


def accepts(data: Any) -> bool:
    """Whether data is a list or an iterator of dicts, or has parts of which the first is a list of dicts."""
    return isinstance(data, Parts) and (isinstance(data.first, Mapping) or are_records(data.sample))


def open_object(data: Any, options: ReadingOptions) -> Source:
    """Dicts as a source."""
    from ftprl.data.frame_opening import open_records

    return open_records(data, options)


def decide(sample: Sequence[Any], named: NamedColumns) -> tuple[dict[str, str], dict[str, ColumnSample], bool]:
    """The kinds of the keys in the first rows, the samples, and whether most dicts lack most of the keys.

    A key is what it is named, else numeric when all its values are numbers, else as text with these values. Rows
    with more names than a model keeps, such as counts of words, are read by the type of each value alone.
    """
    kinds = named.kinds()
    values: dict[str, list[Any]] = {}
    for row in sample:
        for key, value in row.items() if isinstance(row, Mapping) else ():
            own = values.setdefault(key if isinstance(key, str) else column_name(key), [])
            if not is_missing(value):
                own.append(value)
    if len(values) > MOST_NAMES:
        values = {name: own for name, own in values.items() if name in kinds}
    samples = {name: _sample(name, own, len(sample), kinds.get(name)) for name, own in values.items()}
    for name, own in values.items():
        if name not in kinds:
            is_numeric = bool(own) and all(_is_number(value) for value in own)
            kinds[name] = "numeric" if is_numeric else kind_of_text(samples[name], may_be_number=False)
    ordered = {name: kinds[name] for name in dict.fromkeys((*values, *kinds)) if name in kinds}
    is_sparse = 2 * sum(map(len, values.values())) < len(values) * len(sample)
    return ordered, samples, is_sparse


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
    values = (row.get(label) for row in sample if isinstance(row, Mapping))
    return list(dict.fromkeys(text_of(value) for value in values if not is_missing(value)))[:32]
