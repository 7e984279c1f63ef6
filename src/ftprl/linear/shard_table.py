"""`ShardTable`: what a server has of a table, and does in a round (the steps are in `ftprl.linear.shards`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import SlotNumbers, play_round, round_stride, step_round
from ftprl.cluster.versions import Version, VersionedFolder
from ftprl.linear.engine import Engine
from ftprl.linear.model_file import Loaded, Picked, write_to
from ftprl.linear.rounds import SHARDS, Coordinates, Slots, Vector, is_hot_next, no_sums, shard_of
from ftprl.linear.shard_messages import Announced, Cells, Numbers, Stepped, sendable
from ftprl.linear.shards import file_of, shard_files
from ftprl.linear.spec import Spec
from ftprl.linear.tensors import cell_tensors, put_cells


def cells_at(engine: Engine, slots: Slots, positions: Slots | None = None) -> Cells:
    """Copies of the cells of some slots, which the table of this process has at these positions."""
    where = slots if positions is None else positions
    return Cells(slots, Engine.take(engine, where), Engine.take_gradients(engine, where) if engine.receipt else None)


def put_at(engine: Engine, cells: Cells, positions: Slots | None = None) -> None:
    """Overwrite cells of the table of this process with these."""
    where = cells.slots if positions is None else positions
    engine.put(where, cells.cells)
    if cells.gradients is not None:
        engine.put_gradients(where, cells.gradients)


@final
class _Round(NamedTuple):
    """What a server keeps of a round between its plays and its step."""

    number: int
    coordinates: Coordinates  # without rows for hot ones
    rows: Vector
    positions: Slots
    x: Vector
    numbers: list[Numbers]  # of the coordinates of each block those that are learned
    hot: Slots


@final
class ShardTable:
    """The cells of some whole shards of a table, numbered in the order in which they are met."""

    def __init__(self, spec: Spec, *, receipt: bool) -> None:
        self._engine = Engine(spec, receipt=receipt)
        self._positions, self._of_round = SlotNumbers(spec.dim), SlotNumbers(spec.dim)
        self._round: _Round | None = None
        self._applied: tuple[int, Stepped] | None = None

    def __len__(self) -> int:
        return len(self._positions)

    def _position(self, slots: Slots) -> Slots:
        out = np.empty(len(slots), np.uint32)
        self._positions.number(np.ascontiguousarray(slots, np.uint32), out)
        return out

    # ---- a round ----

    def play(self, number: int, hot: Slots, *blocks: Announced) -> list[NDArray[Any]]:
        """Raise the units of the coordinates of all blocks; what they play, for each block in its order.

        `hot` are the hot coordinates, which the mixer has.
        """
        coordinates, numbers = self._merged([block.coordinates() for block in blocks], blocks)
        is_hot = np.isin(coordinates.slots, hot)
        cold = coordinates._replace(rows=np.where(is_hot, 0.0, coordinates.rows))
        positions, core, scales = self._position(cold.slots), self._engine._core, len(self._engine.spec.scales)
        x = np.empty((len(cold.slots), round_stride(core)))
        play_round(core, *cold, x, positions)
        x[is_hot] = 0.0
        learned = [own[: block.learned] for own, block in zip(numbers, blocks, strict=True)]
        self._round = _Round(number, cold, coordinates.rows, positions, x, learned, hot)
        sent = sendable(x[:, :scales], self._engine.spec)
        return [sent[own] for own in numbers]

    def _merged(self, blocks: list[Coordinates], announced: Sequence[Announced]) -> tuple[Coordinates, list[Numbers]]:
        """The coordinates of all blocks, those that are learned first, and where each of a block is in them."""
        numbering = self._of_round
        numbering.clear()
        numbers = [np.empty(len(block.slots), np.uint32) for block in blocks]
        for is_learned in (True, False):
            for block, own, some in zip(blocks, numbers, announced, strict=True):
                part = slice(0, some.learned) if is_learned else slice(some.learned, None)
                numbering.number(np.ascontiguousarray(block.slots[part]), own[part])
        rows, largest, squares = (np.zeros(len(numbering)) for _ in range(3))
        for block, own in zip(blocks, numbers, strict=True):
            rows[own] += block.rows
            largest[own] = np.maximum(largest[own], block.largest)
            squares[own] += block.squares
        return Coordinates(numbering.slots, rows, largest, squares), numbers

    def step(self, number: int, heaviest: float, learned: int, *sums: Vector) -> Stepped:
        """One step for each coordinate of the round that was played, with the sums of all blocks in their order.

        A step that was done already is not done again. `learned` is how many rows the round has learned, `heaviest`
        their largest weight.
        """
        if self._applied is not None and self._applied[0] == number:
            return self._applied[1]
        now = self._round
        if now is None or now.number != number:
            raise ValueError(f"round {number} was not played here")
        core, scales = self._engine._core, len(self._engine.spec.scales)
        g = np.zeros_like(now.x)
        for own, part in zip(now.numbers, sums, strict=True):
            g[own, :scales] += part
        shards, own_coordinates = no_sums(), now.coordinates
        step_round(
            core,
            own_coordinates.slots,
            own_coordinates.rows,
            own_coordinates.largest,
            heaviest,
            now.x,
            g,
            shards,
            now.positions,
        )
        next_hot = is_hot_next(own_coordinates._replace(rows=now.rows), learned)
        hot = np.sort(own_coordinates.slots[next_hot])
        new = hot[~np.isin(hot, now.hot)]
        kept = shards[:, :, :scales].copy() if self._engine.receipt else None
        done = Stepped(kept, hot, cells_at(self._engine, new, self._position(new)))
        self._round, self._applied = None, (number, done)
        return done

    # ---- cells ----

    def take(self, slots: Slots) -> Cells:
        """Copies of some cells."""
        return cells_at(self._engine, slots, self._position(slots))

    def put(self, cells: Cells) -> None:
        """Overwrite some cells."""
        put_at(self._engine, cells, self._position(cells.slots))

    def touched(self) -> Slots:
        """The slots that have been learned, in order."""
        return np.sort(self._positions.slots[self._engine.touched()])

    def keep_scales(self, first: int) -> None:
        """Drop all scales but four neighbours."""
        self._engine.keep_scales(first)

    def save(self, uri: str, stem: str, shards: Sequence[int]) -> dict[str, list[Any]]:
        """Write each of these shards to a file of a version; the sizes and digests of the files."""
        folder, touched = VersionedFolder(uri, "checkpoint"), self.touched()
        of_slot = shard_of(touched)
        return {
            file_of(shard): folder.put(stem, file_of(shard), self._writer(shard, touched[of_slot == shard]))
            for shard in shards
        }

    def _writer(self, shard: int, slots: Slots) -> Callable[[Any], str]:
        content = {"shard": shard, "of": SHARDS}
        tensors: dict[str, NDArray[Any] | Picked] = {
            "slots": slots,
            **cell_tensors(self._engine, self._position(slots)),
        }
        return lambda out: write_to(out, content, tensors)

    def load(self, uri: str, version: Version, shards: Sequence[int]) -> None:
        """Read these shards from the files of a version."""
        for loaded in shard_files(uri, version, shards):
            self.restore(loaded)

    def restore(self, shard: Loaded) -> None:
        """Put the cells of a shard into the table."""
        slots = shard.tensors["slots"]
        put_cells(self._engine, self._position(slots), shard.tensors)
