"""Rows of frames and of dicts in blocks, as the core reads them; labels and weights may stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

from ftprl.data import frames
from ftprl.data.parts import ORIGIN, Parts, are_records, split
from ftprl.data.vectors import RowVectors
from ftprl.errors import BadFormat

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 16384  # of dicts


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows, the first of them number `first` of the data: columns of a batch, or dicts and columns beside them.

    In a file, `first` is counted from the begin of part number `group` of file number `file`.
    """

    first: int
    rows: int
    columns: list[tuple[int, bytes]]  # of the batch
    batch: pa.RecordBatch
    records: list[Any] | None = None
    file: int = 0
    group: int = 0
    origin: str = ORIGIN
    part: str = ""  # of the file, such as "row group 3: "

    def without_rows(self) -> Block:
        """The block without its rows: where it is in its file."""
        return replace(self, batch=None, columns=[])  # whoever needs the rows reads them again

    def where(self, row: int) -> str:
        """Where a row of the block is, for messages."""
        return f"{self.origin}: {self.part}row {self.first + row}"


@final
@dataclass(frozen=True, slots=True)
class BlockReader:
    """Goes through parts of data; what it needs to know of their columns is the same for all of them."""

    parts: Parts
    kinds: Mapping[str, str]
    is_open: bool  # whether there may be columns that `kinds` does not know
    optional: Sequence[str] = ()  # kinds of columns that may not be there
    vectors: Mapping[str, RowVectors] = field(default_factory=dict)  # label and weight, for all parts
    shapes: Mapping[str, str] = field(default_factory=dict)  # what a cell of each column has

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory; an iterator can be read once."""
        return not self.parts.is_one_shot

    @property
    def suits_threads(self) -> bool:
        """Whether other threads may read the blocks: not so for dicts, and not for what comes from an iterator."""
        return self.can_be_read_again and frames.is_frame(self.parts.sample)

    def blocks(self, file: int = 0, group: int = 0, *, threads: int = 0) -> Iterator[Block]:
        """All blocks, in order."""
        del file, group, threads  # there is one part, and nothing to wait for
        first = 0
        for block in self._blocks():
            yield block
            first = block.first + block.rows
        for vector in self.vectors.values():
            vector.check_length(first)

    def _blocks(self) -> Iterator[Block]:
        first = 0
        for number, part in enumerate(self._data()):
            data, *own = split(part)
            beside = {kind: _vector(kind, value) for kind, value in zip(("label", "weight"), own, strict=True)}
            vectors = {**self.vectors, **{kind: vector for kind, vector in beside.items() if vector is not None}}
            start, shift = first, {kind: first if beside.get(kind) else 0 for kind in vectors}
            for block in self._blocks_of(data, first, vectors, shift, number):
                yield block
                first += block.rows
            for vector in beside.values():
                if vector is not None:
                    vector.check_length(first - start)

    def _data(self) -> Iterator[Any]:
        """The parts; rows that come one by one are put together."""
        if not isinstance(self.parts.first, Mapping):
            yield from self.parts
            return
        rows: list[Any] = []
        for row in self.parts:
            rows.append(row)
            if len(rows) == BLOCK_ROWS:
                yield rows
                rows = []
        if rows:
            yield rows

    def _blocks_of(
        self, data: Any, first: int, vectors: Mapping[str, RowVectors], shift: Mapping[str, int], number: int
    ) -> Iterator[Block]:
        if frames.is_frame(data):
            for batch in frames.table_of(data).to_batches():
                origin = f"{ORIGIN}: element {number}" if number else ORIGIN
                columns = frames.arranged(
                    batch,
                    self.kinds,
                    is_open=self.is_open,
                    optional=self.optional,
                    origin=origin,
                    shapes=self.shapes if number else None,
                )
                yield from block_of(columns, first, batch.num_rows, vectors, shift)
                first += batch.num_rows
        elif are_records(data) or isinstance(self.parts.first, Mapping):
            for at in range(0, len(data), BLOCK_ROWS):
                rows = list(data[at : at + BLOCK_ROWS])
                yield from block_of([], first, len(rows), vectors, shift, rows)
                first += len(rows)
        elif len(data) if isinstance(data, list) else True:
            raise BadFormat(
                f"{ORIGIN}: element {number}: expected a frame or dicts as before, got {type(data).__name__};"
                " pass parts of one kind."
            )


def _vector(kind: str, value: Any) -> RowVectors | None:
    return None if value is None else RowVectors("y" if kind == "label" else kind, value)


def block_of(
    columns: list[tuple[str, str, Any]],
    first: int,
    rows: int,
    vectors: Mapping[str, RowVectors],
    shift: Mapping[str, int],
    records: list[Any] | None = None,
    **part_of: Any,
) -> Iterable[Block]:
    """The block of some columns and of the vectors beside them; no block of no rows."""
    import pyarrow as pa

    if rows == 0:
        return
    for kind, vector in vectors.items():
        cells = vector.part(first - shift[kind], rows)
        columns.append((kind, vector.name, frames.readable(vector.name, cells, kind)))
    if not columns:
        columns.append(("ignore", "", pa.nulls(rows)))  # a batch without columns has no rows
    batch = pa.RecordBatch.from_arrays([cells for *_, cells in columns], [str(i) for i in range(len(columns))])
    yield Block(first, rows, frames.codes(columns), batch, records, **part_of)
