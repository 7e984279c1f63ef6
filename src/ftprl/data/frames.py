"""Data frames through Arrow: pandas, Polars, pyarrow, and whatever has the Arrow PyCapsule interface."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import sample_cells
from ftprl.data import nested
from ftprl.data.arrow_tables import NO_TEXT_OF, TEXT_OF, table_of_pandas, table_of_stream
from ftprl.data.columns import FEATURES, ColumnHead, ColumnSample, kind_of_text
from ftprl.data.files import shown
from ftprl.data.parts import ORIGIN, Parts
from ftprl.data.protocol import BESIDE, KINDS
from ftprl.data.tables import SAMPLE_ROWS, NamedColumns, check_columns, listed, nearest, warn_of_unknown
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from ftprl.data.plan import Plan

FirstCells = Callable[[list[Any]], dict[str, Any]]  # reads the first cells of some columns
_LABELS = 32  # distinct labels that are looked at
_DIRECT = frozenset(
    ("int32", "int64", "uint64", "float", "double", "bool", "null", "string", "large_string", "binary", "large_binary")
)
_SAMPLE_CELLS = 2_000_000  # of columns whose type decides, in a frame with many columns


def is_frame(data: Any) -> bool:
    """Whether data is a data frame."""
    if isinstance(data, type):
        return False
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or _is_pandas(data)


def _is_pandas(data: Any) -> bool:
    module = sys.modules.get("pandas")
    return module is not None and isinstance(data, module.DataFrame)


def arrow_table(data: Any) -> pa.Table:
    """Return a frame as an Arrow table; columns are shared, not copied, where the frame has Arrow's memory."""
    return table_of_pandas(data) if _is_pandas(data) else table_of_stream(data)


def table_of(data: Any) -> pa.Table:
    """Return a frame as an Arrow table that has each column once."""
    table = arrow_table(data)
    check_names([field.name for field in nested.flat_fields(table.schema)], "data")
    return table


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns that occur twice, also as the fields of structures."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{where} needs each column once, got {shown(name)[:40]!r} twice; rename one.")
        seen.add(name)


# ---- kinds ----


def kind_of(type: pa.DataType) -> str | None:
    """What a column of a type is by default; None for a type that is no feature by itself."""
    from pyarrow import types

    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return "numeric"
    if types.is_dictionary(type):
        return "categorical" if kind_of(type.value_type) is not None else None
    if nested.is_list(type):
        inner = nested.value_type(type)
        kind = None if inner is None else kind_of(inner)
        return kind if kind in (None, "numeric") else "categorical"
    if types.is_boolean(type):
        return "boolean"
    if _is_date(type):
        return "date"
    return "categorical" if _is_text(type) or types.is_null(type) else None


def plain(type: pa.DataType) -> pa.DataType:
    """The type of the values of a column that is encoded in runs; any other as it is."""
    from pyarrow import types

    return type.value_type if types.is_run_end_encoded(type) else type


def _is_date(type: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_date(type) or types.is_timestamp(type))


def _is_text(type: pa.DataType) -> bool:
    return str(type) in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def _has_text(type: pa.DataType) -> bool:
    """Whether values can be written as text though they are no feature by default."""
    from pyarrow import types

    return bool((types.is_temporal(type) and not types.is_interval(type)) or types.is_fixed_size_binary(type))


def heads_of(fields: Sequence[pa.Field], first: Mapping[str, pa.ChunkedArray]) -> list[ColumnHead]:
    """What the types of columns and their `first` cells say."""
    return [_head(field, first.get(field.name)) for field in fields]


def with_types(
    fields: list[pa.Field],
    first: dict[str, pa.ChunkedArray],
    others: Iterable[tuple[list[pa.Field], FirstCells]],
) -> tuple[list[pa.Field], dict[str, pa.ChunkedArray]]:
    """The columns of the first part of the data and their first cells, with the types of those that are null there.

    Whoever writes rows that have no value does not know its type either: the first of the `others` that has one
    decides, and its cells are the sample.
    """
    from pyarrow import types

    unknown = {field.name for field in fields if types.is_null(field.type)}
    found: dict[str, pa.Field] = {}
    for there, cells in others if unknown else ():
        new = [field for field in there if field.name in unknown and not types.is_null(field.type)]
        found |= {field.name: field for field in new}
        first = {**first, **cells(new)} if new else first
        unknown -= set(found)
        if not unknown:
            break
    return [found.get(field.name, field) for field in fields], first


def _head(field: pa.Field, cells: pa.ChunkedArray | None) -> ColumnHead:
    name, type, marks = field.name, plain(field.type), field.metadata or {}
    refusal = _no_feature(name, type, marks)

    def sample(kind: str, most: int | None) -> ColumnSample:
        assert cells is not None
        if NO_TEXT_OF in marks:
            raise refusal
        return sample_of(name, cells if most is None else cells.slice(0, most), kind)

    own, is_marked = None if cells is None else sample, TEXT_OF in marks
    kind = None if is_marked else kind_of(type)
    is_text, shape = _is_text(type) and not is_marked, nested.shape_of(type)
    return ColumnHead(name, kind, is_text, own, nested.is_list(type), refusal, shape)


def decide(heads: Sequence[ColumnHead], named: NamedColumns) -> tuple[dict[str, str], dict[str, ColumnSample]]:
    """The kind of every column, as named, else by its type and, of text, by its first cells; and their samples.

    A structure that is named gives its kind to all its fields.
    """
    names = [head.name for head in heads]
    kinds = for_structures(named.kinds(), names, "")
    samples: dict[str, ColumnSample] = {}
    most = min(SAMPLE_ROWS, _SAMPLE_CELLS // max(1, len(heads)) + 1)
    for head in heads:
        name, chosen = head.name, kinds.get(head.name) or head.kind
        if chosen is None or (head.is_list and chosen in ("boolean", "date", "bucket")):
            assert head.refusal is not None
            raise head.refusal
        if chosen != "ignore" and head.sample is not None:
            decides = head.is_text or chosen in ("date", "bucket")
            samples[name] = head.sample(chosen, None if decides else most)
            if name not in kinds and head.is_text:
                chosen = kind_of_text(samples[name], may_be_number=False)
        kinds[name] = chosen
    return {name: kinds[name] for name in dict.fromkeys((*names, *kinds))}, samples


def sample_of(name: str, column: pa.ChunkedArray, kind: str) -> ColumnSample:
    """A sample of the cells of a column."""
    if nested.is_list(column.type):
        return ColumnSample(len(column), column.null_count, column.null_count, example=b"[...]")
    cells = column.combine_chunks()
    cells = cells.chunk(0) if hasattr(cells, "num_chunks") else cells
    read = readable(name, cells, kind)
    schema, array = read.__arrow_c_array__()
    return ColumnSample(*sample_cells(schema, array, kind == "bucket"))


def for_structures(kinds: Mapping[str, str], names: Sequence[str], where: str) -> dict[str, str]:
    """The kinds that were named, with those of structures passed on to their fields."""
    known, passed = set(names), dict[str, str]()
    for name, kind in kinds.items():
        inside = [other for other in names if other.startswith(f"{name}.")]
        if name not in known and (not inside or kind in BESIDE):
            raise InvalidInput(
                f"{where}{kind}= needs one of the columns {listed(names)}, got {name[:40]!r}; {nearest(name, names)}",
                option=kind,
            )
        passed |= dict.fromkeys(inside, kind) if name not in known else {name: kind}
    return {**passed, **{name: kind for name, kind in kinds.items() if name in known}}


def _no_feature(name: str, type: pa.DataType, marks: Mapping[bytes, bytes] | None = None) -> InvalidInput:
    marks = marks or {}
    what = (marks.get(TEXT_OF) or marks.get(NO_TEXT_OF) or str(type).encode()).decode("utf-8", "replace")
    storage = getattr(type, "storage_type", None)
    has_text = (
        TEXT_OF in marks or _has_text(type) or (storage is not None and (_is_text(storage) or _has_text(storage)))
    )
    remedy = "pass it with ignore=" + (", or with categorical= to use its text" if has_text else "")
    wanted = "numbers, text, dates, booleans or categories"
    return InvalidInput(
        f"column {shown(name)[:40]!r} needs {wanted}, got {shown(what)[:60]}; {remedy}.",
        option=("ignore", "categorical"),
    )


def label_of(kinds: Mapping[str, str]) -> str:
    """Return the name of the column with the label; empty if there is none."""
    return next((name for name, kind in kinds.items() if kind == "label"), "")


def label_texts(name: str, column: pa.ChunkedArray | pa.Array) -> list[str]:
    """The distinct labels of the first rows, as text."""
    cells = column.slice(0, SAMPLE_ROWS)
    cells = cells.combine_chunks() if hasattr(cells, "combine_chunks") else cells
    # Not with unique(): the first use of pyarrow's functions takes longer than to sample all columns.
    return distinct_texts(list(dict.fromkeys(readable(name, cells, "label").to_pylist())))


def distinct_texts(values: Sequence[Any]) -> list[str]:
    """Distinct values as text, some of the first ones; None and NaN are left out."""
    return [text_of(value) for value in values if value is not None and value == value][:_LABELS]


def text_of(value: Any) -> str:
    """A label as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


# ---- columns as the core reads them ----


def arranged(
    batch: pa.RecordBatch,
    plan: Plan,
    optional: Sequence[str],
    *,
    origin: str = ORIGIN,
    shapes: Mapping[str, str] | None = None,
) -> list[tuple[str, str, pa.Array]]:
    """Return kind, name and cells of the columns that are read, in the order of the frame.

    A column that the plan does not know is left out or, of rows that may have any names, read by its type. `shapes` are
    those of the first part of the data.
    """
    kinds, is_open = plan.kinds or {}, plan.is_open
    flat = nested.fitted_columns(batch, kinds, is_open=is_open)
    if plan.namespaces is not None:
        flat = nested.in_namespaces(flat, batch.schema, kinds, plan.namespaces, origin)
    check_columns([name for name, _ in flat], kinds, optional, origin)
    for name, cells in flat if shapes else ():
        check_shape(name, nested.shape_of(cells.type), str(cells.type), kinds, shapes or {}, origin)
    columns: list[tuple[str, str, pa.Array]] = []
    there = dict(flat)
    for name in _in_order(there, kinds) if is_open else there:
        cells = there[name] if name in there else _nulls(batch.num_rows)
        kind = kinds.get(name, _open_kind(cells.type) if is_open else "ignore")
        if kind != "ignore" and (name in there or kind in FEATURES):
            columns.append((kind, name, readable(name, cells, kind)))
    return columns


@final
class Layout(NamedTuple):
    """Which columns of a table are read: their kinds and names, where they stand, and which pyarrow converts first."""

    codes: list[tuple[int, bytes]]
    columns: list[int]
    converted: list[tuple[int, str, str]]  # number among `columns`, name and kind

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a batch as the core reads them."""
        chosen = batch.select(self.columns)
        if not self.converted:
            return chosen
        cells = chosen.columns
        for at, name, kind in self.converted:
            cells[at] = readable(name, cells[at], kind)
        return type(batch).from_arrays(cells, [str(at) for at in range(len(cells))])


def layout_of(schema: pa.Schema, kinds: Mapping[str, str]) -> Layout | None:
    """Return which columns of a table are read; None where columns are nested, missing or not known."""
    from pyarrow import types

    check_names([field.name for field in nested.flat_fields(schema)], "data")
    chosen = [(at, field, kinds.get(field.name, "ignore")) for at, field in enumerate(schema)]
    read = [(at, field, kind) for at, field, kind in chosen if kind != "ignore"]
    features = {name for name, kind in kinds.items() if kind != "ignore"}
    nesting = any(types.is_struct(field.type) or nested.is_list(field.type) for field in schema)
    if not read or nesting or {field.name for _, field, _ in read} != features:
        return None
    converted = [(i, f.name, kind) for i, (_, f, kind) in enumerate(read) if not _is_readable(f.type, kind)]
    return Layout(codes([(kind, field.name, None) for _, field, kind in read]), [at for at, *_ in read], converted)


def _is_readable(type: pa.DataType, kind: str) -> bool:
    """Whether the core reads cells of a type in a column of a kind without a conversion."""
    from pyarrow import types

    if types.is_dictionary(type):
        has_numbers = str(type.index_type) in ("int32", "int64")
        return kind == "categorical" and has_numbers and _is_direct(type.value_type)
    return _is_direct(type) or (kind in ("date", "timestamp") and _is_date(type))


def check_unknown(schema: pa.Schema, plan: Plan, listed: Collection[str] = ()) -> list[str]:
    """Warn of columns that a model does not know, but for those that were listed; returns them."""
    kinds = plan.kinds or {}
    if not kinds or plan.columns is None or (plan.is_open and plan.columns.missing == "ignore"):
        return []
    names = [name for name, _ in nested.fitted_names(schema, kinds)]
    unknown = [name for name in names if name not in kinds and name not in listed]
    warn_of_unknown(unknown, is_open=plan.is_open)
    return unknown


def shapes_of(heads: Sequence[ColumnHead]) -> dict[str, str]:
    """What a cell of each column has in the first part of the data."""
    return {head.name: head.shape for head in heads if head.shape}


def check_shape(
    name: str, shape: str, type: str, kinds: Mapping[str, str], shapes: Mapping[str, str], origin: str
) -> None:
    """Refuse lists where the first part of the data has single values, and the like: they have other features.

    A text and a list of texts have the same ones.
    """
    before, kind = shapes.get(name, shape), kinds.get(name, "ignore")
    is_same = not shape or shape == before or kind == "ignore"
    if not is_same and (kind == "numeric" or nested.NAMED_VALUES in (shape, before)):
        raise BadFormat(
            f"{origin}: expected {before} in each cell of column {shown(name)[:40]!r} as in the first rows, got"
            f" {type[:60]}; write it with one type.",
        )


def _in_order(names: Iterable[str], kinds: Mapping[str, str]) -> list[str]:
    """As dicts are read: the known names, then the others."""
    return [*kinds, *(name for name in names if name not in kinds)]


def _open_kind(type: pa.DataType) -> str:
    """The kind of a column that is not known: as a value of a dict that comes under a new name."""
    kind = kind_of(plain(type))
    return "refused" if kind is None else "categorical" if kind == "date" else kind


def _nulls(rows: int) -> pa.Array:
    import pyarrow as pa

    return pa.nulls(rows)


def readable(name: str, cells: pa.Array, kind: str) -> pa.Array:
    """The cells of a column in a type that the core reads; others are written as text."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(cells, pa.ExtensionArray):
        cells = cells.storage
    if types.is_run_end_encoded(cells.type):
        from pyarrow import compute

        cells = compute.run_end_decode(cells)
    type = cells.type
    if nested.is_list(type):
        return _readable_list(name, cells, kind)
    if types.is_dictionary(type):
        entries = nested.without_views(cells.dictionary)
        if kind == "categorical" and _is_direct(entries.type):
            return _coded(cells, entries)
        cells = nested.decoded(cells)
    cells = nested.without_views(cells)
    type = cells.type
    if types.is_integer(type) and not _is_direct(type):
        return cells.cast(pa.int64())
    if _is_direct(type) or (kind in ("date", "timestamp") and _is_date(type)):
        return cells
    if types.is_float16(type):
        return cells.cast(pa.float32())
    is_text = types.is_decimal(type) or types.is_date(type) or kind in ("categorical", "text")
    if kind == "refused" or not (is_text and (_has_text(type) or types.is_decimal(type))):
        raise _no_feature(name, type)
    try:
        return cells.cast(pa.binary() if types.is_fixed_size_binary(type) else pa.string())
    except pa.ArrowException:
        raise _no_feature(name, type) from None


def _coded(cells: pa.Array, entries: pa.Array) -> pa.Array:
    """Return a dictionary column whose numbers and entries the core reads; one that is so is not copied."""
    import pyarrow as pa

    has_numbers = cells.indices.type in (pa.int32(), pa.int64())
    if has_numbers and entries.type == cells.type.value_type:
        return cells
    # A number beyond the entries is refused with its row, by the core.
    numbers = cells.indices if has_numbers else cells.indices.cast(pa.int64(), safe=False)
    return pa.DictionaryArray.from_arrays(numbers, entries, safe=False)


def _readable_list(name: str, cells: pa.Array, kind: str) -> pa.Array:
    """The same for lists and maps, by the type of their values."""
    import pyarrow as pa

    value = nested.value_type(cells.type)
    value = value.value_type if value is not None and pa.types.is_dictionary(value) else value
    if value is None or kind not in nested.KINDS_OF_LISTS:
        raise _no_feature(name, cells.type)
    probe = readable(name, pa.nulls(0, value), kind)
    try:
        return nested.as_list(cells, probe.type)
    except pa.ArrowException:
        raise _no_feature(name, cells.type) from None


def _is_direct(type: pa.DataType) -> bool:
    """Return whether the core reads cells of a type where they are; others are converted by pyarrow."""
    return str(type) in _DIRECT


def codes(columns: Sequence[tuple[str, str, Any]]) -> list[tuple[int, bytes]]:
    """Kind and name of columns as the core takes them."""
    return [(KINDS.index(kind), name.encode("utf-8", "backslashreplace")) for kind, name, _ in columns]


# ---- what `ftprl.data.open` asks for ----


def accepts(data: Any) -> bool:
    """Whether data is a frame, or parts of which the first is one."""
    return is_frame(data.sample if isinstance(data, Parts) else data)


def open_object(data: Any, options: Any) -> Any:
    """A frame, or frames in parts, as a source."""
    from ftprl.data.memory_tables import open_frames

    return open_frames(data, options)
