"""Rows of text as batches of columns: numbers as doubles, all others as text, lists as lists of these.

Training on a Parquet file of them gives the model of the rows: a list keeps its elements, and the names that these may
have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from ftprl.data.files import shown
from ftprl.errors import InvalidInput
from ftprl.training.records import COLUMN, Block, Table, field_text, number_of, values_of


def batches(blocks: Iterable[Block], table: Table, *, has_lists: bool) -> Iterator[pa.RecordBatch]:
    """Yield a batch for each block; the first block decides which columns have lists, none without `has_lists`."""
    schema: pa.Schema | None = None
    for block in blocks:
        columns = list(zip(*values_of(table, block, keeps_left_out=not has_lists), strict=True))
        schema = schema or schema_of(table, columns, has_lists=has_lists)
        pairs = zip(columns, schema, strict=True)
        arrays = [pa.array([_cell(value, field) for value in column], field.type) for column, field in pairs]
        yield pa.record_batch(arrays, schema=schema)


def schema_of(table: Table, columns: Sequence[Sequence[Any]], *, has_lists: bool) -> pa.Schema:
    """Return the columns with their types, which follow from some of their values, and the prediction."""
    names = (*table.names, COLUMN)
    some: Sequence[Sequence[Any]] = columns or [()] * len(names)
    numeric = {*table.numeric, COLUMN}
    pairs = zip(names, some, strict=True)
    return pa.schema([(name, _type(name in numeric, column, has_lists)) for name, column in pairs])


def _type(is_number: bool, column: Sequence[Any], has_lists: bool) -> pa.DataType:
    value = pa.float64() if is_number else pa.string()
    lists = [cell for cell in column if isinstance(cell, list)]
    if not lists:
        return value
    if not has_lists:
        return pa.string()
    is_named = any(isinstance(element, dict) for cell in lists for element in cell)
    return pa.list_(pa.struct([("name", pa.string()), ("value", value)]) if is_named else value)


def _cell(value: Any, field: pa.Field) -> Any:
    """Return a value as a column of this type has it; in a column of text a list is JSON."""
    if types.is_string(field.type):
        return None if value is None else field_text(value)
    if types.is_floating(field.type):
        if isinstance(value, list):
            raise _refusal(field.name, "no list as in the first rows", value)
        return value
    if value is None or value == "":
        return None
    if not isinstance(value, list):
        if types.is_struct(field.type.value_type) or types.is_floating(field.type.value_type):
            raise _refusal(field.name, "lists as in the first rows", value)
        value = [value]  # the category that an element of a list is
    return list(_elements(value, field))


def _elements(values: list[Any], field: pa.Field) -> Iterator[Any]:
    """Yield the elements of a list that are there, in their places."""
    inner = field.type.value_type
    is_named = types.is_struct(inner)
    is_number = types.is_floating(inner.field("value").type if is_named else inner)
    for element in values:
        if element is None:
            yield None
        elif isinstance(element, dict) != is_named:
            raise _refusal(field.name, f"{'only' if is_named else 'no'} names and values as in the first rows", values)
        elif is_named:
            name = next((element[key] for key in ("name", "key") if element.get(key) is not None), None)
            yield None if name is None else {"name": field_text(name), "value": _value(element.get("value"), is_number)}
        else:
            yield _value(element, is_number)


def _value(value: Any, is_number: bool) -> Any:
    return number_of(value) if is_number else None if value is None else field_text(value)


def _refusal(name: str, expected: str, got: Any) -> InvalidInput:
    return InvalidInput(
        f"--output needs {expected} in column {shown(name)[:40]!r} for .parquet, got {shown(field_text(got))[:40]};"
        " write .jsonl."
    )
