"""Frames, dicts and Ray datasets, whole or in parts: what each column is for is settled by the first rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, final

from ftprl.data import arrow_cells, frames, records
from ftprl.data.columns import (
    SAMPLE_ROWS,
    ColumnPlan,
    NamedColumns,
    for_structures,
    known_columns,
    label_of,
    named_columns,
    settle,
)
from ftprl.data.files import shown
from ftprl.data.kinds import FEATURES, KINDS
from ftprl.data.labels import plain_label
from ftprl.data.options import FRAME, LONGEST_USUAL_ROW, RECORDS, ReadingOptions
from ftprl.data.parts import ORIGIN, Parts, are_records, split
from ftprl.data.plan import BATCH_ROWS, Plan, check_interactions, plan_of
from ftprl.data.tables import TableReader, TableRows, TableSource, block_of, optional_kinds
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


_MANY_LABELS = 20  # that are the same as the values of a column by no accident


@final
class MemoryTables(TableReader):
    """Goes through parts of data in memory; what it needs to know of their columns is the same for all of them.

    `vectors` are the label and the weight of all rows, where they are no columns; `shapes` what a cell of each column
    has in the first part.
    """

    suits_workers = False

    def __init__(
        self, parts: Parts, plan: Plan, vectors: Mapping[str, RowVectors], shapes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(plan)
        self._parts, self._vectors, self._shapes = parts, vectors, shapes
        self.can_be_read_again = not parts.is_one_shot
        # The caller's own thread reads dicts, and what comes from an iterator.
        self.suits_threads = self.can_be_read_again and frames.is_frame(parts.sample)

    def blocks(self, file: int = 0, part: int = 0, *, threads: bool = False) -> Iterator[TableRows]:
        """Yield all blocks, in order."""
        first = 0
        for number, one in enumerate(self._data()):
            data, *own = split(one)
            beside = {
                kind: RowVectors(name, value)
                for kind, name, value in zip(("label", "weight"), ("y", "weight"), own, strict=True)
                if value is not None
            }
            vectors, start = {**self._vectors, **beside}, first
            shift = {kind: start if kind in beside else 0 for kind in vectors}
            for block in self._blocks_of(data, first, vectors, shift, number):
                yield block
                first += block.stop
            for vector in beside.values():
                vector.check_length(first - start)
        for vector in self._vectors.values():
            vector.check_length(first)

    def _data(self) -> Iterator[Any]:
        """Yield the parts; rows that come one by one are put together."""
        if not isinstance(self._parts.first, Mapping):
            yield from self._parts
            return
        rows = iter(self._parts)
        while some := list(islice(rows, BATCH_ROWS)):
            yield some

    def _blocks_of(
        self, data: Any, first: int, vectors: Mapping[str, RowVectors], shift: Mapping[str, int], number: int
    ) -> Iterator[TableRows]:
        if frames.is_frame(data):
            origin = f"{ORIGIN}: element {number}" if number else ORIGIN
            is_open = self.plan.is_open
            optional = KINDS if is_open else optional_kinds(self.plan)
            shapes = self._shapes if number else None
            for batch in frames.table_of(data).to_batches():
                columns = frames.arranged(batch, self.plan, optional, origin=origin, shapes=shapes)
                yield from block_of(columns, first, batch.num_rows, vectors, shift)
                first += batch.num_rows
        elif are_records(data) or isinstance(self._parts.first, Mapping):
            for at in range(0, len(data), BATCH_ROWS):
                rows = list(data[at : at + BATCH_ROWS])
                yield from block_of([], first, len(rows), vectors, shift, records=rows)
                first += len(rows)
        elif len(data) if isinstance(data, list) else True:
            raise BadFormat(
                f"{ORIGIN}: element {number}: expected a frame or dicts as before, got {type(data).__name__};"
                " pass parts of one kind."
            )


# ---- labels and weights beside the data: one entry per row ----
def vector_of(name: str, value: Any) -> pa.Array:
    """A list, array or series as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    try:
        if isinstance(value, pa.Array):
            return value
        if len(getattr(value, "shape", ())) > 1:
            raise TypeError(f"{type(value).__name__} of shape {tuple(value.shape)}")
        if hasattr(value, "__arrow_c_stream__") or isinstance(value, pa.ChunkedArray):
            chunked = value if isinstance(value, pa.ChunkedArray) else pa.chunked_array(value)
            return chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
        if isinstance(value, str | bytes) or not np.ndim(value) == 1:
            raise TypeError(f"{type(value).__name__} of shape {np.shape(value)}")
        return pa.array(value, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        what = shown(" ".join(str(error).split()))[:120]
        raise InvalidInput(f"{name}= needs one number or text per row, got {what}; pass a list or an array.") from None


@final
class RowVectors:
    """A vector for all rows of the data, dealt out part by part; its length has to be that of the data."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.cells = vector_of(name, value)

    def part(self, start: int, count: int) -> pa.Array:
        """The entries of rows [start, start + count)."""
        if start + count > len(self.cells):
            raise self.mismatch(f"at least {start + count}")
        return self.cells.slice(start, count)

    def check_length(self, rows: int) -> None:
        """Refuse a vector of another length, once the number of rows is known."""
        if rows != len(self.cells):
            raise self.mismatch(str(rows))

    def mismatch(self, rows: str) -> InvalidInput:
        """The error of a vector with another length."""
        return InvalidInput(
            f"{self.name}= needs one entry per row, got {len(self.cells)} for {rows} rows; match the lengths."
        )


# ---- what `ftprl.data.open` asks for ----
def are_frames(data: Any) -> bool:
    """Return whether data is a frame, or parts of which the first is one."""
    return frames.is_frame(data.sample if isinstance(data, Parts) else data)


def open_frames(data: Any, options: ReadingOptions) -> TableSource:
    """Open a frame, or frames in parts, as a source."""
    named, vectors = _named(options)
    if not isinstance(data, Parts):
        data = Parts((frames.table_of(data),), is_one_shot=False)
        for vector in vectors.values():  # of parts it is known at the end
            vector.check_length(len(data.first))
    first, own_y, _ = split(data.first)
    table = frames.table_of(first)
    columns, shapes = known_columns(options, named), dict[str, str]()
    if columns is None:
        others = () if data.is_one_shot else map(_head_of_part, islice(data, 1, None))
        fields = arrow_cells.flat_fields(table.schema)
        heads = frames.heads_of(*frames.with_types(fields, _first_cells(table), others))
        columns = settle(*frames.decide(heads, named), named.counts, options.missing)
        if "label" in vectors:
            free = _free_features(columns, named)
            some = {name: cells for name, cells in _first_cells(table).items() if name in free}
            check_no_label(some, vectors["label"].cells.slice(0, SAMPLE_ROWS).to_pylist())
        shapes = frames.shapes_of(heads)
    else:
        plan = plan_of(options, options.format or FRAME)._replace(columns=columns)
        frames.check_unknown(table.schema, plan)
    label = label_of(columns.kinds)

    def texts() -> list[str]:
        column = arrow_cells.column_of(table, label)
        return [] if column is None else frames.label_texts(label, column)

    return _source(data, options, FRAME, columns, vectors, _own_texts(vectors, own_y) or texts, shapes)


def _first_cells(table: Any) -> dict[str, Any]:
    return dict(arrow_cells.flat_columns(table.slice(0, SAMPLE_ROWS)))


def _head_of_part(part: Any) -> tuple[list[Any], frames.FirstCells]:
    """Return the columns of a part that is not the first, and what gives their first cells."""
    data, _, _ = split(part)
    if not frames.is_frame(data):
        return [], lambda _: {}
    table = frames.table_of(data)

    def cells(fields: list[Any]) -> dict[str, Any]:
        names = {field.name for field in fields}
        return {name: column for name, column in _first_cells(table).items() if name in names}

    return arrow_cells.flat_fields(table.schema), cells


def open_dicts(data: Parts, options: ReadingOptions) -> TableSource:
    """Open dicts as a source."""
    named, vectors = _named(options)
    first, own_y, _ = (data.peek(SAMPLE_ROWS), None, None) if isinstance(data.first, Mapping) else split(data.first)
    sample, columns = first[:SAMPLE_ROWS], known_columns(options, named)
    if columns is None:
        kinds, samples, is_sparse = records.decide(sample, named)
        if samples and not is_sparse:  # of word counts and the like, any key may come later
            for_structures(named.kinds(), list(samples), "")
            check_interactions(plan_of(options, RECORDS).interactions, kinds)
        columns = settle(kinds, samples, named.counts, options.missing or ("ignore" if is_sparse else None))
        if "label" in vectors:
            free = {name: name for name in _free_features(columns, named)}
            labels = vectors["label"].cells.slice(0, SAMPLE_ROWS).to_pylist()
            check_no_label(free, labels, lambda name: [row.get(name) for row in sample])
    elif columns.kinds and (options.format != RECORDS or options.missing != "ignore"):
        records.check_keys(sample, columns.kinds, is_open=options.format == RECORDS)
    label = label_of(columns.kinds)
    texts = _own_texts(vectors, own_y) or (lambda: records.label_texts(sample, label))
    return _source(data, options, RECORDS, columns, vectors, texts)


def _free_features(columns: ColumnPlan, named: NamedColumns) -> set[str]:
    """The columns of features whose kind nobody named."""
    return {name for name, kind in columns.kinds.items() if kind in FEATURES} - set(named.kinds())


def check_no_label(
    cells: Mapping[str, Any], labels: Sequence[Any], values_of: Callable[[Any], list[Any]] | None = None
) -> None:
    """Refuse data that has the labels in a column, too: a model would learn the label from itself.

    In more than a few rows that is no accident. `cells` has those of the columns of features whose kind nobody named.
    """
    values_of = values_of or (lambda own: list(own.to_pylist()))
    wanted = [_plain_label(value) for value in labels[:SAMPLE_ROWS]]
    if len(wanted) < _MANY_LABELS or len(set(wanted)) < 2:
        return
    for name, own in cells.items():
        head = values_of(own[:_MANY_LABELS] if hasattr(own, "slice") else own)[:_MANY_LABELS]
        if [_plain_label(value) for value in head] != wanted[:_MANY_LABELS]:
            continue
        if [_plain_label(value) for value in values_of(own)[:SAMPLE_ROWS]] == wanted:
            raise InvalidInput(
                f"y= needs labels that are no column of the data, got those of column {shown(name)[:40]!r}; drop it, or"
                " name its kind, such as categorical=, if it is a feature.",
                option="categorical",
            )


def _plain_label(value: Any) -> Any:
    """A label in one spelling, whatever its type."""
    is_plain = isinstance(value, str | bytes | bool | int | float)
    label = plain_label(value) if is_plain else value
    return {"true": 1.0, "false": 0.0}.get(label, label) if isinstance(label, str) else label


def _own_texts(vectors: Mapping[str, RowVectors], own_y: Any) -> Callable[[], list[str]] | None:
    """Return what gives the first labels, where they stand beside the data."""
    if "label" not in vectors and own_y is None:
        return None
    return lambda: frames.label_texts("y", (vectors.get("label") or RowVectors("y", own_y)).cells)


def _source(
    data: Parts,
    options: ReadingOptions,
    format: str,
    columns: ColumnPlan,
    vectors: Mapping[str, RowVectors],
    texts: Callable[[], list[str]],
    shapes: Mapping[str, str] | None = None,
) -> TableSource:
    options.refuse(("sep", "quote"), " is for files, got data in memory; drop it.")
    for name, default in (("header", True), ("max_row", LONGEST_USUAL_ROW)):
        if getattr(options, name) != default:
            raise InvalidInput(f"{name}= is for files, got data in memory; drop it.", option=name)
    kinds = columns.kinds
    for kind in vectors:  # what stands beside the data replaces a column
        kinds = {name: "ignore" if own == kind else own for name, own in kinds.items()}
    plan = plan_of(options, options.format or format)
    plan = plan.with_columns(columns._replace(kinds=kinds), texts, "y" if "label" in vectors else None)
    return TableSource(MemoryTables(data, plan, vectors, shapes))


def _named(options: ReadingOptions) -> tuple[NamedColumns, dict[str, RowVectors]]:
    """Return the columns that are named, and the labels and weights of all rows where they are no columns."""
    vectors: dict[str, RowVectors] = {}
    if options.y is not None:
        if options.label is not None:
            raise InvalidInput(
                f"y= and label= are two ways to pass the labels, got y and label={options.label!r}; keep one.",
                option=("label",),
            )
        vectors["label"] = RowVectors("y", options.y)
    if options.weight is not None and not isinstance(options.weight, str | int | float):
        vectors["weight"] = RowVectors("weight", options.weight)
        options = options._replace(weight=None)
    return named_columns(options), vectors


_DATASET = "<dataset>"


@final
class DatasetTables(TableReader):
    """The rows of a dataset, block by block; whoever reads one gets it from the object store."""

    files = (_DATASET,)  # as if it were a file of parts

    def __init__(self, references: tuple[Any, ...], plan: Plan) -> None:
        super().__init__(plan)
        self._references = references

    def parts(self, file: int) -> int:
        """Return how many blocks the dataset has."""
        return len(self._references)

    def blocks(self, file: int = 0, part: int = 0, *, threads: bool = False) -> Iterator[TableRows]:
        """Yield all rows from a block on."""
        for number in range(part, len(self._references)):
            yield from self.blocks_of_part(file, number)

    def blocks_of_part(self, file: int, part: int) -> Iterator[TableRows]:
        """Yield the rows of one block."""
        part_of: dict[str, Any] = {"file": file, "part": part, "origin": _DATASET, "part_name": f"block {part}: "}
        start = 0
        for batch in _table_of_block(self._references[part]).to_batches() if part < len(self._references) else ():
            origin = f"{_DATASET}: block {part}"
            cells = frames.arranged(batch, self.plan, optional_kinds(self.plan), origin=origin)
            yield from block_of(cells, start, batch.num_rows, **part_of)
            start += batch.num_rows


def _table_of_block(reference: Any) -> Any:
    import ray

    return frames.table_of(ray.get(reference))


# ---- what `ftprl.data.open` asks for ----
def are_datasets(data: Any) -> bool:
    """Whether data is a dataset of Ray; one exists only once that package is imported."""
    module = sys.modules.get("ray.data")
    return module is not None and isinstance(data, module.Dataset)


def open_datasets(data: Any, options: ReadingOptions) -> TableSource:
    """A dataset as a source: it is computed now, once, and its rows keep the order in which Ray has them."""
    options.refuse(("y",), " is for data in memory, got a Ray dataset; name the column with label=.", option="label")
    references = _materialised(data)
    first = next((table for table in map(_table_of_block, references) if table.num_rows), None)
    if first is None:
        raise InvalidInput("data needs at least one row, got an empty Ray dataset; pass some.")
    named = named_columns(options)
    columns = known_columns(options, named)
    if columns is None:
        sample = dict(arrow_cells.flat_columns(first.slice(0, SAMPLE_ROWS)))
        heads = frames.heads_of(arrow_cells.flat_fields(first.schema), sample)
        columns = settle(*frames.decide(heads, named), named.counts, options.missing)
    label = label_of(columns.kinds)

    def texts() -> list[str]:
        column = arrow_cells.column_of(first, label)
        return [] if column is None else frames.label_texts(label, column)

    plan = plan_of(options, FRAME).with_columns(columns, texts)
    return TableSource(DatasetTables(references, plan))


def _materialised(data: Any) -> tuple[Any, ...]:
    """References to the blocks of a dataset, in order; without it Ray returns them as they become ready."""
    execution = data.context.execution_options
    before, execution.preserve_order = execution.preserve_order, True
    try:
        return tuple(data.materialize().to_arrow_refs())
    finally:
        execution.preserve_order = before


def are_dicts(data: Any) -> bool:
    """Whether data is a list or an iterator of dicts, or has parts of which the first is a list of dicts."""
    return isinstance(data, Parts) and (isinstance(data.first, Mapping) or are_records(data.sample))
