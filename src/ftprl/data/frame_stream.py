"""Polars frames whose columns the core reads as they are, through Arrow's stream: without pyarrow.

Importing pyarrow takes longer than to read a million cells. Everything else (lists, structures, decimals, labels beside
the frame) goes through it: `stream_of` returns None, or `suits` is false, then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from ftprl._core import FrameBatch, frame_batches, sample_cells
from ftprl.data import frames
from ftprl.data.blocks import Block
from ftprl.data.columns import ColumnHead, ColumnSample
from ftprl.data.tables import SAMPLE_ROWS

_NUMBERS = frozenset("cCsSiIlLfg")  # types as Arrow writes them
_TEXTS = frozenset(("u", "U", "vu", "z", "Z", "vz"))
_OTHERS = {"b": "boolean", "n": "categorical"}


@final
class StreamColumn(NamedTuple):
    """A column: its name, its type and that of the entries of its dictionary, if it has one."""

    name: str
    type: str
    entries: str | None

    @property
    def kind(self) -> str | None:
        """What it is by default; None for a type that the core does not read."""
        if self.entries is not None:
            is_read = self.entries in _NUMBERS or self.entries in _TEXTS or self.entries in _OTHERS
            return "categorical" if is_read else None
        if self.type in _NUMBERS:
            return "numeric"
        if self.type in _TEXTS:
            return "categorical"
        return "date" if self.is_date else _OTHERS.get(self.type)

    @property
    def is_date(self) -> bool:
        """Whether it holds dates or times."""
        return self.type in ("tdD", "tdm") or self.type[:3] in ("tss", "tsm", "tsu", "tsn")

    @property
    def is_text(self) -> bool:
        """Whether it holds texts, and no dictionary of them."""
        return self.entries is None and self.type in _TEXTS

    def can_be(self, kind: str) -> bool:
        """Whether the core reads it as a column of that kind; anything else is written as text by pyarrow."""
        if kind == "ignore":
            return True
        if self.entries is not None:
            return kind == "categorical"
        return not self.is_date or kind in ("date", "timestamp")


@final
@dataclass(frozen=True, slots=True)
class FrameStream:
    """The columns of a frame, and its rows."""

    columns: tuple[StreamColumn, ...]
    batches: tuple[FrameBatch, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def suits(self, kinds: Mapping[str, str], optional: Sequence[str]) -> bool:
        """Whether the core reads all columns as these kinds; only those of `optional` kinds may be missing."""
        there = set(self.names)
        if any(name not in there and kind not in optional for name, kind in kinds.items()):
            return False
        return all(column.can_be(kinds.get(column.name, "ignore")) for column in self.columns)

    def heads(self) -> list[ColumnHead]:
        """What is known of the columns by their types and first rows."""
        first = [batch.__arrow_c_array__() for batch in self.batches]

        def head(place: int, column: StreamColumn) -> ColumnHead:
            def sample(kind: str, cells: int | None) -> ColumnSample:
                rows = SAMPLE_ROWS if cells is None else min(SAMPLE_ROWS, cells)
                return ColumnSample(*sample_cells(first, place, rows, kind == "bucket"))

            return ColumnHead(column.name, column.kind, column.is_text, sample)

        return [head(place, column) for place, column in enumerate(self.columns)]

    def label_texts(self, label: str) -> list[str]:
        """The distinct labels of the first rows, as text."""
        if label not in self.names:
            return []
        place, values = self.names.index(label), list[Any]()
        for batch in self.batches:
            values += batch.values(place, SAMPLE_ROWS - len(values))
            if len(values) == SAMPLE_ROWS:
                break
        return frames.distinct_texts(list(dict.fromkeys(values)))


@final
@dataclass(frozen=True, slots=True)
class StreamBlocks:
    """The rows of a frame in blocks, one for each of its parts in memory."""

    stream: FrameStream
    kinds: Mapping[str, str]

    @property
    def can_be_read_again(self) -> bool:
        """True: the frame stays in memory."""
        return True

    @property
    def suits_threads(self) -> bool:
        """True: a block belongs to whoever reads it."""
        return True

    def blocks(self, file: int = 0, group: int = 0, *, threads: int = 0) -> Iterator[Block]:
        """All blocks, in order."""
        del file, group, threads  # there is one part, and nothing to wait for
        columns = frames.codes([(self.kinds.get(name, "ignore"), name, None) for name in self.stream.names])
        first = 0
        for batch in self.stream.batches:
            if batch.num_rows:
                yield Block(first, batch.num_rows, columns, batch)
                first += batch.num_rows


def stream_of(data: Any) -> FrameStream | None:
    """A frame with columns that the core reads; None for any other data, which pyarrow reads or refuses.

    Only Polars: the stream of other objects may be read once, and pyarrow would find it empty.
    """
    module = sys.modules.get("polars")
    if sys.byteorder != "little" or module is None or not isinstance(data, module.DataFrame):
        return None
    try:
        read = frame_batches(data.__arrow_c_stream__())
    except ValueError:
        return None
    if read is None:
        return None
    columns = tuple(StreamColumn(name or "", type, entries) for name, type, entries, _ in read[0])
    has_others = any(column.kind is None for column in columns) or any(is_extension for *_, is_extension in read[0])
    is_empty = not any(batch.num_rows for batch in read[1])
    return None if has_others or is_empty or not columns else FrameStream(columns, tuple(read[1]))
