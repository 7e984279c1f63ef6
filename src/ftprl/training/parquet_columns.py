"""Columns of text rows as Parquet: numbers as doubles, all others as text, lists as lists of these.

Training on the file gives the model of the rows: a list keeps its elements, and the names that these may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

from ftprl.data.files import shown
from ftprl.errors import InvalidInput
from ftprl.training.records import field_text, number_of

if TYPE_CHECKING:
    import pyarrow as pa


@final
class ParquetColumns:
    """A Parquet file, a row group for each block of rows; the first block decides which columns have lists."""

    def __init__(self, out: Any, names: Sequence[str], numeric: frozenset[str]) -> None:
        self._out, self._names, self._numeric = out, names, numeric
        self._writer: Any = None
        self._schema: pa.Schema | None = None

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        """Write the values of some rows, column by column."""
        import pyarrow as pa

        schema = self._opened(columns)
        pairs = zip(columns, schema, strict=True)
        arrays = [pa.array([_cell(value, field) for value in column], field.type) for column, field in pairs]
        self._writer.write_table(pa.table(arrays, schema=schema))

    def _opened(self, columns: Sequence[Sequence[Any]]) -> pa.Schema:
        import pyarrow as pa
        from pyarrow import parquet

        if self._schema is None:
            types = [self._type(name, column) for name, column in zip(self._names, columns, strict=True)]
            self._schema = pa.schema(list(zip(self._names, types, strict=True)))
            self._writer = parquet.ParquetWriter(self._out, self._schema)
        return self._schema

    def _type(self, name: str, column: Sequence[Any]) -> pa.DataType:
        import pyarrow as pa

        value = pa.float64() if name in self._numeric else pa.string()
        lists = [cell for cell in column if isinstance(cell, list)]
        if not lists:
            return value
        is_named = any(isinstance(element, dict) for cell in lists for element in cell)
        return pa.list_(pa.struct([("name", pa.string()), ("value", value)]) if is_named else value)

    def close(self) -> None:
        """Write the footer."""
        if self._writer is None:
            self._opened([()] * len(self._names))
        self._writer.close()


def _cell(value: Any, field: pa.Field) -> Any:
    """A value as a column of this type has it."""
    from pyarrow import types

    if not types.is_list(field.type):
        if isinstance(value, list):
            raise _refusal(field.name, "no list as in the first rows", value)
        return value if value is None or types.is_floating(field.type) else field_text(value)
    if value is None or value == "":
        return None
    if not isinstance(value, list):
        if types.is_struct(field.type.value_type) or types.is_floating(field.type.value_type):
            raise _refusal(field.name, "lists as in the first rows", value)
        value = [value]  # the category that an element of a list is
    return list(_elements(value, field))


def _elements(values: list[Any], field: pa.Field) -> Iterator[Any]:
    """The elements of a list that are there, in their places."""
    from pyarrow import types

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
