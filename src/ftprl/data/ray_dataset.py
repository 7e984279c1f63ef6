"""A `ray.data.Dataset` as a source: its blocks, kept in the object store of the cluster, are the parts to read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from ftprl.data import frames, nested
from ftprl.data.blocks import Block, block_of
from ftprl.data.columns import settle
from ftprl.data.frame_opening import known_plan_of, settings_for_plan
from ftprl.data.options import FRAME, ReadingOptions
from ftprl.data.protocol import BESIDE
from ftprl.data.remote_columns import PartSource
from ftprl.data.tables import SAMPLE_ROWS, named_columns
from ftprl.errors import InvalidInput

_ORIGIN = "<dataset>"


@final
@dataclass(frozen=True, slots=True)
class DatasetBlocks:
    """The rows of a dataset, block by block; whoever reads one gets it from the object store."""

    references: tuple[Any, ...]
    kinds: Mapping[str, str]
    optional: Sequence[str] = ()  # kinds of columns that a block may lack

    @property
    def files(self) -> tuple[str, ...]:
        """The dataset, as if it were a file of parts."""
        return (_ORIGIN,)

    @property
    def can_be_read_again(self) -> bool:
        """True: the blocks stay in the object store."""
        return True

    @property
    def suits_threads(self) -> bool:
        """True: a block belongs to whoever reads it."""
        return True

    def groups(self, number: int) -> int:
        """How many blocks there are."""
        del number
        return len(self.references)

    def check_here(self, number: int) -> None:
        """Do nothing: every process of the cluster has the object store."""

    def blocks(self, file: int = 0, group: int = 0, *, threads: int = 0) -> Iterator[Block]:
        """All rows from a block on."""
        del threads
        for number in range(group, len(self.references)):
            yield from self.blocks_of_group(file, number)

    def blocks_of_group(self, file: int, group: int) -> Iterator[Block]:
        """The rows of one block."""
        part_of: dict[str, Any] = {"file": file, "group": group, "origin": _ORIGIN, "part": f"block {group}: "}
        start = 0
        for batch in _table(self.references[group]).to_batches() if group < len(self.references) else ():
            where = f"{_ORIGIN}: block {group}"
            cells = frames.arranged(batch, self.kinds, is_open=False, optional=self.optional, origin=where)
            yield from block_of(cells, start, batch.num_rows, {}, {}, **part_of)
            start += batch.num_rows


def _table(reference: Any) -> Any:
    import ray

    return frames.table_of(ray.get(reference))


# ---- what `ftprl.data.open` asks for ----


def accepts(data: Any) -> bool:
    """Whether data is a dataset of Ray; one exists only once that package is imported."""
    module = sys.modules.get("ray.data")
    return module is not None and isinstance(data, module.Dataset)


def open_object(data: Any, options: ReadingOptions) -> PartSource:
    """A dataset as a source: it is computed now, once, and its rows keep the order in which Ray has them."""
    options.refuse(("y",), " is for data in memory, got a Ray dataset; name the column with label=.", option="label")
    references = _materialised(data)
    first = next((table for table in map(_table, references) if table.num_rows), None)
    if first is None:
        raise InvalidInput("data needs at least one row, got an empty Ray dataset; pass some.")
    named, plan = named_columns(options), known_plan_of(options)
    if plan is None:
        sample = dict(nested.flat_columns(first.slice(0, SAMPLE_ROWS)))
        heads = frames.heads_of(nested.flat_fields(first.schema), sample)
        plan = settle(*frames.decide(heads, named), named.bucket, options.missing)
    label = next((name for name, kind in plan.kinds.items() if kind == "label"), "")

    def texts() -> list[str]:
        column = nested.column_of(first, label)
        return [] if column is None else frames.label_texts(label, column)

    settings = settings_for_plan(options, plan, texts, FRAME)
    optional = ("ignore",) if options.columns is None or options.labelled else (*BESIDE, "ignore")
    return PartSource(DatasetBlocks(references, plan.kinds, optional), settings)


def _materialised(data: Any) -> tuple[Any, ...]:
    """References to the blocks of a dataset, in order; without it Ray returns them as they become ready."""
    execution = data.context.execution_options
    before, execution.preserve_order = execution.preserve_order, True
    try:
        return tuple(data.materialize().to_arrow_refs())
    finally:
        execution.preserve_order = before
