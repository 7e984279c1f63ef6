"""Data frames as Arrow tables, columns of pandas that Arrow has no type for among them."""

from __future__ import annotations

import datetime
import decimal
import numbers
import sys
import uuid
from typing import TYPE_CHECKING, Any

from ftprl.data import nested
from ftprl.data.files import shown
from ftprl.data.parts import ORIGIN
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_OF = b"ftprl text of"  # metadata of a field: what its texts were made of, which only an option reads
NO_TEXT_OF = b"ftprl no text of"  # what the column has, which nothing reads
_ERRORS = (TypeError, ValueError, OverflowError)  # beside those of Arrow, which pyarrow has
_WITH_TEXT = (str, numbers.Number, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def table_of_pandas(data: Any) -> pa.Table:
    """A frame of pandas; a column that Arrow cannot take is dense where it was sparse, or text with a mark."""
    import pyarrow as pa

    try:
        return _with_texts(pa.Table.from_pandas(data, preserve_index=False), data)
    except (pa.ArrowException, *_ERRORS):
        for name in map(str, data.columns):
            if not is_unicode(name):
                raise InvalidInput(
                    f"data needs column names in Unicode, got {name!r:.60}; rename the column."
                ) from None
        columns = [_one_column(data.iloc[:, [at]]) for at in range(data.shape[1])]
        fields = [field for field, _ in columns]
        return _with_texts(pa.Table.from_arrays([cells for _, cells in columns], schema=pa.schema(fields)), data)


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: one half of a surrogate pair cannot.

    >>> is_unicode("ä"), is_unicode(chr(0xD800))
    (True, False)
    """
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _one_column(frame: Any) -> tuple[pa.Field, Any]:
    """The column of a frame that has one."""
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return table.schema.field(0), table.column(0)
    except (pa.ArrowException, *_ERRORS):
        name = str(frame.columns[0])
        values = frame.iloc[:, 0]
    if hasattr(values.dtype, "fill_value"):  # sparse
        try:
            cells = pa.array(values.array.to_dense(), from_pandas=True)
            return pa.field(name, cells.type), cells
        except (pa.ArrowException, *_ERRORS):
            pass
    present = [None if missing else value for value, missing in zip(values, values.isna(), strict=True)]
    cells, mark = _cells_of(present)
    return pa.field(name, cells.type, metadata=mark), cells


def _cells_of(values: list[Any]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """Numbers as such; else texts with a mark; else nothing that can be read."""
    import pyarrow as pa

    there = [value for value in values if value is not None]
    what = " and ".join(sorted({type(value).__name__ for value in there})[:3]).encode()
    if not all(isinstance(value, _WITH_TEXT) for value in there):
        return pa.nulls(len(values), pa.month_day_nano_interval()), {NO_TEXT_OF: what}
    if all(isinstance(value, numbers.Real) for value in there):
        try:
            return pa.array([None if value is None else float(value) for value in values], pa.float64()), None
        except OverflowError:
            pass
    texts = [None if value is None else _text(value).encode("utf-8", "surrogatepass") for value in values]
    return pa.array(texts, pa.binary()), {TEXT_OF: what}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _with_texts(table: pa.Table, data: Any) -> pa.Table:
    """Intervals and periods of pandas as their texts: categories of them are categories, others have a mark."""
    import pyarrow as pa
    from pyarrow import types

    for at, field in enumerate(table.schema):
        is_category = types.is_dictionary(field.type)
        own = field.type.value_type if is_category else field.type
        if not str(getattr(own, "extension_name", "")).startswith("pandas."):
            continue
        values = data.iloc[:, at].array
        if is_category:
            entries = pa.array([str(entry) for entry in values.categories], pa.string())
            cells = pa.DictionaryArray.from_arrays(pa.array(values.codes, mask=values.codes < 0), entries)
            field = pa.field(field.name, cells.type)
        else:
            texts = [None if missing else str(one) for one, missing in zip(values, values.isna(), strict=True)]
            cells = pa.array(texts, pa.string())
            field = pa.field(field.name, cells.type, metadata={TEXT_OF: str(values.dtype).encode()})
        table = table.set_column(at, field, cells)
    return table


def table_of_stream(data: Any) -> pa.Table:
    """Return the table of what has Arrow's interface, with its memory checked as that of files is."""
    import pyarrow as pa

    table = _table_of_stream(data)
    try:
        for batch in table.to_batches():
            nested.check_cells(batch)
    except pa.ArrowException as error:
        what = shown(" ".join(str(error).split()))[:160]
        raise BadFormat(
            f"{ORIGIN}: expected a valid {type(data).__name__}, got damaged memory ({what}); make it anew."
        ) from None
    return table


def _table_of_stream(data: Any) -> pa.Table:
    """Return the table; of Polars, whole numbers of 128 bits are read as floating-point numbers."""
    import pyarrow as pa

    objects = _polars_columns(data, "Object")
    if objects:  # the cells that it has for them are addresses
        table = _table_of_stream(data.drop(objects))
        for name in objects:
            mark = {NO_TEXT_OF: b"Python objects"}
            nothing = pa.nulls(data.height, pa.month_day_nano_interval())
            table = table.append_column(pa.field(name, nothing.type, metadata=mark), nothing)
        return table.select(data.columns)
    try:
        if _is_polars(data) and hasattr(data, "to_arrow"):  # without the views of text, which pyarrow would convert
            return data.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.Table):
            return pa.RecordBatchReader.from_stream(data).read_all()  # pa.table would import pandas first
        return data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, *_ERRORS) as error:
        wide = _polars_columns(data, "Int128") + _polars_columns(data, "UInt128")
        if wide:
            import polars as pl

            return _table_of_stream(data.with_columns(pl.col(wide).cast(pl.Float64)))
        raise _refusal(data, error) from None


def _polars_columns(data: Any, type_name: str) -> list[str]:
    """The columns of a frame of Polars that have a type."""
    return [name for name, type in data.schema.items() if str(type) == type_name] if _is_polars(data) else []


def _is_polars(data: Any) -> bool:
    """Return whether data is a frame of Polars."""
    return type(data).__module__.startswith("polars") and hasattr(data, "schema")


def _refusal(data: Any, error: Exception) -> InvalidInput:
    name = type(data).__name__
    if name in ("Series", "ChunkedArray") or name.endswith("Array"):
        remedy = "call .to_frame() on it" if name == "Series" else "put it into a table with a name"
        return InvalidInput(f"data needs a frame with columns, got {name}, which is one column; {remedy}.")
    what = shown(" ".join(str(error).split()))[:160]
    return InvalidInput(f"data needs a frame with one type per column, got {name}: {what}; convert it first.")
