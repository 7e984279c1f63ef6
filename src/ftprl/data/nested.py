"""Columns within columns: structures are flattened, lists and maps have several values in a cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ftprl.data.files import shown
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

DEEPEST = 64  # structures within structures
_NAMES = ({"name", "value"}, {"key", "value"})  # the fields of a structure that is a value with a name


def flat_fields(schema: Any) -> list[pa.Field]:
    """The fields of a schema, those of structures in their place: the field `b` of `a` is `a.b`."""
    return [field for top in schema for field in _flat(top, 1)]


def _flat(field: pa.Field, depth: int) -> Iterator[pa.Field]:
    from pyarrow import types

    if not types.is_struct(field.type):
        yield field
        return
    if depth > DEEPEST:
        raise InvalidInput(
            f"column {shown(field.name)[:40]!r} needs structures at most {DEEPEST} deep, got deeper ones; flatten it."
        )
    for inner in field.type:
        yield from _flat(inner.with_name(f"{field.name}.{inner.name}"), depth + 1)


def flat_columns(batch: pa.RecordBatch | pa.Table) -> list[tuple[str, pa.Array]]:
    """Names and cells of the columns, those of structures in their place."""
    pairs = zip(batch.schema.names, batch.columns, strict=True)
    return [column for name, cells in pairs for column in _flat_cells(name, cells)]


def _flat_cells(name: str, cells: Any) -> Iterator[tuple[str, pa.Array]]:
    from pyarrow import types

    if not types.is_struct(cells.type):
        yield name, cells
        return
    for field, inner in zip(cells.type, cells.flatten(), strict=True):  # what a missing structure has is missing
        yield from _flat_cells(f"{name}.{field.name}", inner)


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """The column with that name, which may be within a structure."""
    return dict(flat_columns(table)).get(name)


# ---- several values in a cell ----


def is_list(type: pa.DataType) -> bool:
    """Whether a cell has several values."""
    from pyarrow import types

    has_views = hasattr(types, "is_list_view") and (types.is_list_view(type) or types.is_large_list_view(type))
    has_lists = types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)
    return bool(has_lists or types.is_map(type) or has_views)


def value_type(type: pa.DataType) -> pa.DataType | None:
    """The type of the values in a list or a map; None if they are structures or lists themselves."""
    from pyarrow import types

    inner = type.item_type if types.is_map(type) else type.value_type
    if types.is_struct(inner) and {field.name for field in inner} in _NAMES:
        inner = inner.field("value").type
    return None if types.is_struct(inner) or is_list(inner) else inner


def with_values(type: pa.DataType, value: pa.DataType) -> pa.DataType:
    """The list that the core reads in place of a list or a map: with values of another type, and names as text."""
    import pyarrow as pa
    from pyarrow import types

    named = pa.struct([("name", pa.string()), ("value", value)])
    is_named = types.is_map(type) or types.is_struct(type.value_type)
    inner = named if is_named else value
    return pa.large_list(inner) if types.is_large_list(type) else pa.list_(inner)


def as_list(cells: pa.Array, value: pa.DataType) -> pa.Array:
    """Lists or maps with values of a type that the core reads."""
    from pyarrow import types

    if not (_is_plain(cells.type) or types.is_map(cells.type)):
        cells = _as_plain(cells)
    type = cells.type
    if value_type(type) == value and _has_text_names(type):
        return cells
    if types.is_map(type) or types.is_struct(type.value_type):
        return _renamed(cells, with_values(type, value))
    return cells.cast(with_values(type, value))


def _has_text_names(type: pa.DataType) -> bool:
    """Whether the names of values are text; true where they have none."""
    from pyarrow import types

    inner = None if types.is_map(type) else type.value_type
    if inner is not None and not types.is_struct(inner):
        return True
    return str(type.key_type if inner is None else inner.field(_name_field(inner)).type) in ("string", "large_string")


def _as_plain(cells: pa.Array) -> pa.Array:
    """Lists of a fixed size, and views of lists, as lists; a cast of views makes arrays that are not valid."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    lengths = compute.fill_null(compute.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    missing = cells.is_null() if cells.null_count else None
    return pa.LargeListArray.from_arrays(offsets, cells.flatten(), mask=missing)


def _is_plain(type: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_list(type) or types.is_large_list(type))


def _renamed(cells: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Lists of names and values, whatever the two fields are called and in which order they stand."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_map(cells.type):
        names, values, missing = cells.keys, cells.items, None
    else:
        entries = cells.values
        names, values, missing = entries.field(_name_field(entries.type)), entries.field("value"), entries.is_null()
    fields = list(wanted.value_type)
    arrays = [names.cast(fields[0].type), values.cast(fields[1].type)]
    entries = pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)
    make = pa.LargeListArray if types.is_large_list(wanted) else pa.ListArray
    offsets = pa.array(cells.offsets.to_numpy(zero_copy_only=False))  # a slice of them takes no mask
    return make.from_arrays(offsets, entries, mask=cells.is_null() if cells.null_count else None)


def _name_field(type: pa.DataType) -> str:
    return "name" if "name" in {field.name for field in type} else "key"
