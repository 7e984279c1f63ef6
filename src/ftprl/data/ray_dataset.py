"""A `ray.data.Dataset` as a source: its blocks, kept in the object store of the cluster, are the parts to read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, final

from ftprl.data import frames, nested
from ftprl.data.columns import settle
from ftprl.data.options import FRAME, ReadingOptions
from ftprl.data.plan import Plan, plan_of
from ftprl.data.table_source import TableReader, TableRows, TableSource, block_of, optional_kinds
from ftprl.data.tables import SAMPLE_ROWS, known_columns, named_columns
from ftprl.errors import InvalidInput

_ORIGIN = "<dataset>"


@final
class DatasetTables(TableReader):
    """The rows of a dataset, block by block; whoever reads one gets it from the object store."""

    files = (_ORIGIN,)  # as if it were a file of parts

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
        part_of: dict[str, Any] = {"file": file, "part": part, "origin": _ORIGIN, "part_name": f"block {part}: "}
        start = 0
        for batch in _table(self._references[part]).to_batches() if part < len(self._references) else ():
            origin = f"{_ORIGIN}: block {part}"
            cells = frames.arranged(batch, self.plan, optional_kinds(self.plan), origin=origin)
            yield from block_of(cells, start, batch.num_rows, **part_of)
            start += batch.num_rows


def _table(reference: Any) -> Any:
    import ray

    return frames.table_of(ray.get(reference))


# ---- what `ftprl.data.open` asks for ----


def accepts(data: Any) -> bool:
    """Whether data is a dataset of Ray; one exists only once that package is imported."""
    module = sys.modules.get("ray.data")
    return module is not None and isinstance(data, module.Dataset)


def open_object(data: Any, options: ReadingOptions) -> TableSource:
    """A dataset as a source: it is computed now, once, and its rows keep the order in which Ray has them."""
    options.refuse(("y",), " is for data in memory, got a Ray dataset; name the column with label=.", option="label")
    references = _materialised(data)
    first = next((table for table in map(_table, references) if table.num_rows), None)
    if first is None:
        raise InvalidInput("data needs at least one row, got an empty Ray dataset; pass some.")
    named = named_columns(options)
    columns = known_columns(options, named)
    if columns is None:
        sample = dict(nested.flat_columns(first.slice(0, SAMPLE_ROWS)))
        heads = frames.heads_of(nested.flat_fields(first.schema), sample)
        columns = settle(*frames.decide(heads, named), named.bucket, options.missing)
    label = frames.label_of(columns.kinds)

    def texts() -> list[str]:
        column = nested.column_of(first, label)
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
