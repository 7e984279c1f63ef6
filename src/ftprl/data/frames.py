"""Data frames through Arrow: pandas, Polars, pyarrow, and whatever has the Arrow PyCapsule interface."""

from __future__ import annotations

import datetime
import decimal
import numbers
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import sample_cells
from ftprl.data import arrow_cells
from ftprl.data.arrow_cells import (
    NO_TEXT_OF,
    TEXT_OF,
    check_names,
    codes,
    is_date_type,
    is_direct,
    is_text_type,
    no_feature,
    plain,
    readable,
)
from ftprl.data.columns import SAMPLE_ROWS, ColumnHead, NamedColumns, check_columns, for_structures, warn_of_unknown
from ftprl.data.files import shown
from ftprl.data.kinds import FEATURES, KEEPING_VALUES, OF_LISTS, OF_TIMES, SAMPLED, ColumnSample, kind_of_text
from ftprl.data.parts import ORIGIN
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from ftprl.data.plan import Plan


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
    texts = [None if value is None else _as_text(value).encode("utf-8", "surrogatepass") for value in values]
    return pa.array(texts, pa.binary()), {TEXT_OF: what}


def _as_text(value: Any) -> str:
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
    """Return the table of what has Arrow's interface, with its memory checked as that of files is.

    Of Polars, whole numbers of 128 bits are read as floating-point numbers.
    """
    import pyarrow as pa

    is_polars = type(data).__module__.startswith("polars") and hasattr(data, "schema")
    if is_polars and "Object" in map(str, data.schema.values()):  # the cells that it has for them are addresses
        return _without_objects(data)
    try:
        if is_polars and hasattr(data, "to_arrow"):  # without the views of text, which pyarrow would convert
            table = data.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
        elif hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.Table):
            table = pa.RecordBatchReader.from_stream(data).read_all()  # pa.table would import pandas first
        else:
            table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, *_ERRORS) as error:
        wide = [name for name, type in data.schema.items() if str(type) in ("Int128", "UInt128")] if is_polars else []
        if not wide:
            raise _refusal(data, error) from None
        import polars as pl

        return table_of_stream(data.with_columns(pl.col(wide).cast(pl.Float64)))
    try:
        for batch in table.to_batches():
            arrow_cells.check_cells(batch)
    except pa.ArrowException as error:
        what = shown(" ".join(str(error).split()))[:160]
        raise BadFormat(
            f"{ORIGIN}: expected a valid {type(data).__name__}, got damaged memory ({what}); make it anew."
        ) from None
    return table


def _without_objects(data: Any) -> pa.Table:
    """Return the table of a frame of Polars, with nothing in place of its columns of Python objects."""
    import pyarrow as pa

    objects = [name for name, type in data.schema.items() if str(type) == "Object"]
    table = table_of_stream(data.drop(objects))
    for name in objects:
        mark = {NO_TEXT_OF: b"Python objects"}
        nothing = pa.nulls(data.height, pa.month_day_nano_interval())
        table = table.append_column(pa.field(name, nothing.type, metadata=mark), nothing)
    return table.select(data.columns)


def _refusal(data: Any, error: Exception) -> InvalidInput:
    name = type(data).__name__
    if name in ("Series", "ChunkedArray") or name.endswith("Array"):
        remedy = "call .to_frame() on it" if name == "Series" else "put it into a table with a name"
        return InvalidInput(f"data needs a frame with columns, got {name}, which is one column; {remedy}.")
    what = shown(" ".join(str(error).split()))[:160]
    return InvalidInput(f"data needs a frame with one type per column, got {name}: {what}; convert it first.")


FirstCells = Callable[[list[Any]], dict[str, Any]]  # reads the first cells of some columns
_LABELS = 32  # distinct labels that are looked at
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
    pandas = sys.modules.get("pandas")
    return table_of_pandas(data) if pandas and isinstance(data, pandas.DataFrame) else table_of_stream(data)


def table_of(data: Any) -> pa.Table:
    """Return a frame as an Arrow table that has each column once."""
    table = arrow_table(data)
    check_names([field.name for field in arrow_cells.flat_fields(table.schema)], "data")
    return table


# ---- kinds ----
def kind_of(type: pa.DataType) -> str | None:
    """What a column of a type is by default; None for a type that is no feature by itself."""
    from pyarrow import types

    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return "numeric"
    if types.is_dictionary(type):
        return "categorical" if kind_of(type.value_type) is not None else None
    if arrow_cells.is_list(type):
        inner = arrow_cells.value_type(type)
        kind = None if inner is None else kind_of(inner)
        return kind if kind in (None, "numeric") else "categorical"
    if types.is_boolean(type):
        return "boolean"
    if is_date_type(type):
        return "date"
    return "categorical" if is_text_type(type) or types.is_null(type) else None


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
    refusal = no_feature(name, type, marks)

    def sample(kind: str, most: int | None) -> ColumnSample:
        assert cells is not None
        if NO_TEXT_OF in marks:
            raise refusal
        return sample_of(name, cells if most is None else cells.slice(0, most), kind)

    own, is_marked = None if cells is None else sample, TEXT_OF in marks
    kind = None if is_marked else kind_of(type)
    is_text, shape = is_text_type(type) and not is_marked, arrow_cells.shape_of(type)
    return ColumnHead(name, kind, is_text, own, arrow_cells.is_list(type), refusal, shape)


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
        if chosen is None or (head.is_list and chosen in FEATURES and chosen not in OF_LISTS):
            assert head.refusal is not None
            raise head.refusal
        if chosen != "ignore" and head.sample is not None:
            decides = head.is_text or chosen in SAMPLED
            samples[name] = head.sample(chosen, None if decides else most)
            if name not in kinds and head.is_text:
                chosen = kind_of_text(samples[name], may_be_number=False)
        kinds[name] = chosen
    return {name: kinds[name] for name in dict.fromkeys((*names, *kinds))}, samples


def sample_of(name: str, column: pa.ChunkedArray, kind: str) -> ColumnSample:
    """A sample of the cells of a column."""
    if arrow_cells.is_list(column.type):
        return ColumnSample(len(column), column.null_count, column.null_count, example=b"[...]")
    cells = column.combine_chunks()
    cells = cells.chunk(0) if hasattr(cells, "num_chunks") else cells
    read = readable(name, cells, kind)
    schema, array = read.__arrow_c_array__()
    return ColumnSample(*sample_cells(schema, array, kind in KEEPING_VALUES))


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
    flat = arrow_cells.fitted_columns(batch, kinds, is_open=is_open)
    if plan.namespaces is not None:
        flat = arrow_cells.in_namespaces(flat, batch.schema, kinds, plan.namespaces, origin)
    check_columns([name for name, _ in flat], kinds, optional, origin)
    for name, cells in flat if shapes else ():
        check_shape(name, arrow_cells.shape_of(cells.type), str(cells.type), kinds, shapes or {}, origin)
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
        return type(batch).from_arrays(cells, list(map(str, range(len(cells)))))


def layout_of(schema: pa.Schema, kinds: Mapping[str, str]) -> Layout | None:
    """Return which columns of a table are read; None where columns are nested, missing or not known."""
    from pyarrow import types

    check_names([field.name for field in arrow_cells.flat_fields(schema)], "data")
    chosen = [(at, field, kinds.get(field.name, "ignore")) for at, field in enumerate(schema)]
    read = [(at, field, kind) for at, field, kind in chosen if kind != "ignore"]
    features = {name for name, kind in kinds.items() if kind != "ignore"}
    nesting = any(types.is_struct(field.type) or arrow_cells.is_list(field.type) for field in schema)
    if not read or nesting or {field.name for _, field, _ in read} != features:
        return None
    converted = [(i, f.name, kind) for i, (_, f, kind) in enumerate(read) if not _is_readable(f.type, kind)]
    return Layout(codes([(kind, field.name, None) for _, field, kind in read]), [at for at, *_ in read], converted)


def _is_readable(type: pa.DataType, kind: str) -> bool:
    """Whether the core reads cells of a type in a column of a kind without a conversion."""
    from pyarrow import types

    if types.is_dictionary(type):
        has_numbers = str(type.index_type) in ("int32", "int64")
        return kind == "categorical" and has_numbers and is_direct(type.value_type)
    return is_direct(type) or (kind in OF_TIMES and is_date_type(type))


def check_unknown(schema: pa.Schema, plan: Plan, listed: Collection[str] = ()) -> list[str]:
    """Warn of columns that a model does not know, but for those that were listed; returns them."""
    kinds = plan.kinds or {}
    if not kinds or plan.columns is None or (plan.is_open and plan.columns.missing == "ignore"):
        return []
    names = [name for name, _ in arrow_cells.fitted_names(schema, kinds)]
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
    if not is_same and (kind == "numeric" or arrow_cells.NAMED_VALUES in (shape, before)):
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
