"""Arrow cells as the core reads them: structures are flattened, lists have several values, other types become text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ftprl.data.files import shown
from ftprl.data.kinds import CODES, OF_LISTS, OF_TIMES
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


TEXT_OF = b"ftprl text of"  # metadata of a field: what its texts were made of, which only an option reads
NO_TEXT_OF = b"ftprl no text of"  # what the column has, which nothing reads
DEEPEST = 64  # structures within structures


ONE_VALUE, LIST, NAMED_VALUES = "one value", "a list", "names and values"  # what a cell has


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


# ---- columns as a model knows them ----
def has_inside(kinds: Mapping[str, str], name: str) -> bool:
    """Whether some columns that are known are within this one."""
    return any(other.startswith(f"{name}.") for other in kinds)


def in_namespaces(
    columns: Sequence[tuple[str, pa.Array]],
    schema: pa.Schema,
    kinds: Mapping[str, str],
    known: Sequence[str],
    origin: str,
) -> list[tuple[str, pa.Array]]:
    """Return columns with the names of features of VW text: the field `age` of a structure `user` is `user^age`."""
    from pyarrow import types

    outer = [field.name for field in schema if types.is_struct(field.type) and "^" not in field.name]
    named = []
    for name, cells in columns:
        owner = next((one for one in outer if name.startswith(f"{one}.")), None)
        named.append((name if owner is None else f"{owner}^{name[len(owner) + 1 :]}", cells))
    for name, _ in named:
        if known and name not in kinds and name.rpartition("^")[0].partition("^")[0] not in known:
            some = ", ".join(repr(one) if one else "one without a name" for one in known[:6])
            raise InvalidInput(
                f"{origin}: expected names in a namespace of the model ({some}), got column {shown(name)[:40]!r}; write"
                " it as 'namespace^name', or drop it."
            )
    return named


def _is_known_as_map(name: str, kinds: Mapping[str, str]) -> bool:
    """Whether a structure stands where a model has one column: a map, whose names are the fields."""
    return kinds.get(name) in OF_LISTS and not has_inside(kinds, name)


def _is_known_by_names(name: str, type: pa.DataType, kinds: Mapping[str, str]) -> bool:
    """Whether a map stands where a model has columns: a structure or an object, whose fields are the names."""
    return has_names(type) and name not in kinds and has_inside(kinds, name)


def fitted_names(schema: Any, kinds: Mapping[str, str]) -> list[tuple[str, str]]:
    """The columns of a schema as `fitted_columns` names them, each with the column that has to be read for it."""
    return [pair for field in schema for pair in _fitted_names(field, kinds, field.name)]


def _fitted_names(field: pa.Field, kinds: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
    from pyarrow import types

    if _is_known_by_names(name, field.type, kinds):
        yield from ((other, name) for other in kinds if other.startswith(f"{name}."))
    elif types.is_struct(field.type) and not _is_known_as_map(name, kinds):
        for inner in field.type:
            yield from _fitted_names(inner, kinds, f"{name}.{inner.name}")
    else:
        yield name, name


def fitted_columns(batch: pa.RecordBatch, kinds: Mapping[str, str], *, is_open: bool) -> list[tuple[str, pa.Array]]:
    """Names and cells of the columns, those of structures in their place, in the form in which a model knows them.

    A structure is a map where the model has one column, and a map is a structure where it has columns within it. The
    other elements of such a map stay in it if the set of columns `is_open`.
    """
    pairs = zip(batch.schema.names, batch.columns, strict=True)
    return [column for name, cells in pairs for column in _fitted_cells(name, cells, kinds, is_open)]


def _fitted_cells(
    name: str, cells: pa.Array, kinds: Mapping[str, str], is_open: bool
) -> Iterator[tuple[str, pa.Array]]:
    from pyarrow import types

    if _is_known_by_names(name, cells.type, kinds):
        yield from _split_map(name, cells, [other for other in kinds if other.startswith(f"{name}.")], is_open)
    elif not types.is_struct(cells.type):
        yield name, cells
    elif _is_known_as_map(name, kinds):
        yield name, _as_map(name, cells, kinds[name])
    else:
        for field, inner in zip(cells.type, cells.flatten(), strict=True):
            yield from _fitted_cells(f"{name}.{field.name}", inner, kinds, is_open)


def _as_map(name: str, cells: pa.Array, kind: str) -> pa.Array:
    """A structure as a list of names and values: numbers if the column is numeric, otherwise as text."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import types

    fields = [(inner.removeprefix(f"{name}."), values) for inner, values in _flat_cells(name, cells)]
    if not fields:
        return pa.nulls(len(cells), pa.large_list(pa.struct([("name", pa.string()), ("value", pa.float64())])))
    columns = [decoded(values) for _, values in fields]
    lists = [inner for inner, values in fields if is_list(values.type)]
    if lists:
        raise InvalidInput(
            f"column {shown(name)[:40]!r} needs fields with one value each, got a list in {shown(lists[0])[:40]!r},"
            " where the model has a map; write its values as fields.",
        )
    kinds_of_types = {str(values.type) for values in columns}
    numbers = [types.is_integer(v.type) or types.is_floating(v.type) or types.is_boolean(v.type) for v in columns]
    if kind == "numeric" and all(numbers):
        columns = [values.cast(pa.float64()) for values in columns]
    elif len(kinds_of_types) > 1:
        if kind != "numeric" and any(types.is_floating(values.type) for values in columns):
            raise InvalidInput(
                f"column {shown(name)[:40]!r} needs fields of one type, got {str(cells.type)[:60]}, where the model has"
                " a map; write the numbers as text.",
            )
        columns = [values.cast(pa.string()) for values in columns]
    order = np.arange(len(fields) * len(cells)).reshape(len(fields), len(cells)).T.ravel()
    values = pa.concat_arrays(columns).take(pa.array(order))
    names = pa.array([inner for inner, _ in fields] * len(cells), pa.string())
    entries = pa.StructArray.from_arrays([names, values], ["name", "value"])
    offsets = pa.array(np.arange(len(cells) + 1) * len(fields), pa.int64())
    return pa.LargeListArray.from_arrays(offsets, entries, mask=cells.is_null() if cells.null_count else None)


def _split_map(name: str, cells: pa.Array, columns: Sequence[str], is_open: bool) -> Iterator[tuple[str, pa.Array]]:
    """A column for each of these names, of the last element with that name, and one of all other elements."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import types

    if not (_is_plain(cells.type) or types.is_map(cells.type)):
        cells = _as_plain(cells)
    is_named = ~cells.is_null().to_numpy(zero_copy_only=False)
    names, values, is_gap = _entries(cells)
    names, values = without_views(names), without_views(values)
    offsets = cells.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.repeat(np.arange(len(cells)), np.diff(offsets))
    entries = np.arange(offsets[0], offsets[-1])
    is_there = is_named[rows] & ~is_gap.to_numpy(zero_copy_only=False)[entries]
    rows, entries = rows[is_there], entries[is_there]
    texts = np.array(names.take(pa.array(entries)).cast(pa.string()).to_pylist(), dtype=object)
    rest = np.ones(len(entries), bool)
    for column in columns:
        is_own = texts == column.removeprefix(f"{name}.")
        rest &= ~is_own
        entry_of = np.full(len(cells), -1)
        entry_of[rows[is_own]] = entries[is_own]
        yield column, values.take(pa.array(entry_of, mask=entry_of < 0))
    if is_open and rest.any():
        counts = np.bincount(rows[rest], minlength=len(cells))
        some = pa.StructArray.from_arrays(
            [pa.array(texts[rest], pa.string()), values.take(pa.array(entries[rest]))], ["name", "value"]
        )
        yield name, pa.LargeListArray.from_arrays(np.concatenate(([0], np.cumsum(counts))), some)


def check_cells(batch: pa.RecordBatch) -> None:
    """Raise pyarrow's error if offsets, lengths or entries point outside the memory of a batch.

    Whether text is UTF-8 is not looked at here: the core refuses it by its row.
    """
    from pyarrow import types

    batch.validate()  # the lengths of buffers, without which nothing else may be looked at
    for cells in batch.columns:
        if not types.is_primitive(cells.type):
            cells.view(_with_bytes(cells.type)).validate(full=True)


@lru_cache(1024)  # tables of one row come with the same types again and again
def _with_bytes(type: pa.DataType) -> pa.DataType:
    """Return a type with bytes in place of text."""
    import pyarrow as pa
    from pyarrow import types

    inner = [_with_bytes(type.field(at).type) for at in range(type.num_fields)]
    if types.is_dictionary(type):
        return pa.dictionary(type.index_type, _with_bytes(type.value_type))
    if types.is_struct(type):
        return pa.struct([field.with_type(own) for field, own in zip(type, inner, strict=True)])
    if types.is_map(type):
        return pa.map_(_with_bytes(type.key_type), _with_bytes(type.item_type))
    if types.is_list(type) or types.is_large_list(type):
        return (pa.list_ if types.is_list(type) else pa.large_list)(*inner)
    return {"string": pa.binary(), "large_string": pa.large_binary(), "string_view": pa.binary_view()}.get(
        str(type), type
    )


def column_of(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """The column with that name, which may be within a structure."""
    return dict(flat_columns(table)).get(name)


def decoded(cells: Any) -> Any:
    """The values of a dictionary column, of any type (pyarrow has no views of text); other cells as they are."""
    import pyarrow as pa
    from pyarrow import types

    if not types.is_dictionary(cells.type):
        return cells
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([decoded(chunk) for chunk in cells.chunks], decoded(pa.nulls(0, cells.type)).type)
    return without_views(cells.dictionary).take(cells.indices)


def without_views(cells: pa.Array) -> pa.Array:
    """Views of text as text: pyarrow cannot take cells of them."""
    import pyarrow as pa

    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(cells.type))
    return cells if plain is None else cells.cast(plain)


# ---- several values in a cell ----
def is_list(type: pa.DataType) -> bool:
    """Whether a cell has several values."""
    from pyarrow import types

    has_views = hasattr(types, "is_list_view") and (types.is_list_view(type) or types.is_large_list_view(type))
    has_lists = types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)
    return bool(has_lists or types.is_map(type) or has_views)


def shape_of(type: pa.DataType) -> str:
    """What a cell of a type has; nothing where all of them are null."""
    from pyarrow import types

    if types.is_null(type):
        return ""
    return NAMED_VALUES if has_names(type) else LIST if is_list(type) else ONE_VALUE


def value_type(type: pa.DataType) -> pa.DataType | None:
    """The type of the values in a list or a map; None if they are structures or lists themselves."""
    from pyarrow import types

    inner = type.item_type if types.is_map(type) else type.value_type
    if types.is_struct(inner) and {field.name for field in inner} in _NAMES:
        inner = inner.field("value").type
    return None if types.is_struct(inner) or is_list(inner) else inner


def has_names(type: pa.DataType) -> bool:
    """Whether a cell has several values with names: a map, or a list of names and values."""
    from pyarrow import types

    if types.is_map(type) or not is_list(type):
        return bool(types.is_map(type))
    inner = type.value_type
    return bool(types.is_struct(inner) and {field.name for field in inner} in _NAMES)


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
    if types.is_dictionary(type.value_type):  # there is no cast from all of their values
        return _with_elements(cells, decoded(cells.values).cast(value))
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

    names, values, missing = _entries(cells)
    fields = list(wanted.value_type)
    arrays = [decoded(names).cast(fields[0].type), decoded(values).cast(fields[1].type)]
    entries = pa.StructArray.from_arrays(arrays, fields=fields, mask=missing if missing.true_count else None)
    return _with_elements(cells, entries)


def _with_elements(cells: pa.Array, elements: pa.Array) -> pa.Array:
    """Lists like these, or like maps, with other elements in the place of all of theirs."""
    import pyarrow as pa
    from pyarrow import types

    make = pa.LargeListArray if types.is_large_list(cells.type) else pa.ListArray
    offsets = pa.array(cells.offsets.to_numpy(zero_copy_only=False))  # a slice of them takes no mask
    return make.from_arrays(offsets, elements, mask=cells.is_null() if cells.null_count else None)


def _entries(cells: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The names and values of all elements of lists of them or of maps, and which of them are missing."""
    from pyarrow import types

    if types.is_map(cells.type):
        return cells.keys, cells.items, cells.keys.is_null()
    entries = cells.values
    return entries.field(_name_field(entries.type)), entries.field("value"), entries.is_null()


def _name_field(type: pa.DataType) -> str:
    return "name" if "name" in {field.name for field in type} else "key"


_DIRECT = frozenset(
    ("int32", "int64", "uint64", "float", "double", "bool", "null", "string", "large_string", "binary", "large_binary")
)


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns that occur twice, also as the fields of structures."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{where} needs each column once, got {shown(name)[:40]!r} twice; rename one.")
        seen.add(name)


def plain(type: pa.DataType) -> pa.DataType:
    """The type of the values of a column that is encoded in runs; any other as it is."""
    from pyarrow import types

    return type.value_type if types.is_run_end_encoded(type) else type


def is_date_type(type: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_date(type) or types.is_timestamp(type))


def is_text_type(type: pa.DataType) -> bool:
    return str(type) in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def can_be_text(type: pa.DataType) -> bool:
    """Whether values can be written as text though they are no feature by default."""
    from pyarrow import types

    return bool((types.is_temporal(type) and not types.is_interval(type)) or types.is_fixed_size_binary(type))


def no_feature(name: str, type: pa.DataType, marks: Mapping[bytes, bytes] | None = None) -> InvalidInput:
    marks = marks or {}
    what = (marks.get(TEXT_OF) or marks.get(NO_TEXT_OF) or str(type).encode()).decode("utf-8", "replace")
    storage = getattr(type, "storage_type", None)
    has_text = (
        TEXT_OF in marks
        or can_be_text(type)
        or (storage is not None and (is_text_type(storage) or can_be_text(storage)))
    )
    remedy = "pass it with ignore=" + (", or with categorical= to use its text" if has_text else "")
    wanted = "numbers, text, dates, booleans or categories"
    return InvalidInput(
        f"column {shown(name)[:40]!r} needs {wanted}, got {shown(what)[:60]}; {remedy}.",
        option=("ignore", "categorical"),
    )


def readable(name: str, cells: pa.Array, kind: str) -> pa.Array:
    """Return the cells of a column in a type that the core reads; others are written as text."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(cells, pa.ExtensionArray):
        cells = cells.storage
    if types.is_dictionary(cells.type) and kind == "categorical":
        entries, numbers = cells.dictionary, cells.indices
        if str(entries.type) not in _DIRECT:
            entries = without_views(entries)
        if str(entries.type) in _DIRECT:
            if str(numbers.type) in ("int32", "int64") and entries.type == cells.type.value_type:
                return cells
            # A number beyond the entries is refused with its row, by the core.
            numbers = numbers if str(numbers.type) in ("int32", "int64") else numbers.cast(pa.int64(), safe=False)
            return pa.DictionaryArray.from_arrays(numbers, entries, safe=False)
    if types.is_run_end_encoded(cells.type):
        from pyarrow import compute

        cells = compute.run_end_decode(cells)
    if is_list(cells.type):
        return _readable_list(name, cells, kind)
    cells = decoded(cells)
    cells = without_views(cells)
    type = cells.type
    if types.is_integer(type) and not is_direct(type):
        return cells.cast(pa.int64())
    if is_direct(type) or (kind in OF_TIMES and is_date_type(type)):
        return cells
    if types.is_float16(type):
        return cells.cast(pa.float32())
    is_text = types.is_decimal(type) or types.is_date(type) or kind in ("categorical", "text")
    if kind == "refused" or not (is_text and (can_be_text(type) or types.is_decimal(type))):
        raise no_feature(name, type)
    try:
        return cells.cast(pa.binary() if types.is_fixed_size_binary(type) else pa.string())
    except pa.ArrowException:
        raise no_feature(name, type) from None


def _readable_list(name: str, cells: pa.Array, kind: str) -> pa.Array:
    """The same for lists and maps, by the type of their values."""
    import pyarrow as pa

    value = value_type(cells.type)
    value = value.value_type if value is not None and pa.types.is_dictionary(value) else value
    if value is None or kind not in OF_LISTS:
        raise no_feature(name, cells.type)
    probe = readable(name, pa.nulls(0, value), kind)
    try:
        return as_list(cells, probe.type)
    except pa.ArrowException:
        raise no_feature(name, cells.type) from None


def is_direct(type: pa.DataType) -> bool:
    """Return whether the core reads cells of a type where they are; others are converted by pyarrow."""
    return str(type) in _DIRECT


def codes(columns: Sequence[tuple[str, str, Any]]) -> list[tuple[int, bytes]]:
    """Kind and name of columns as the core takes them."""
    return [(CODES[kind], name.encode("utf-8", "backslashreplace")) for kind, name, _ in columns]
