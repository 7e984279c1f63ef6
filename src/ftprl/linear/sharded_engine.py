"""An engine whose table is shared by servers: it mixes, the servers have the cells, readers have the rows.

While rounds are small one process learns alone, faster than any exchange could be; then the cells are sent to the
servers. Rounds are done in the steps of `ftprl.linear.shards`. What is rare (a round of a single row, held-out rows
that are weighed) is done here, with the rows and the cells it needs brought over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import (
    Learner,
    RowError,
    add_round_sums,
    chain_round,
    count_round,
    has_units,
    hot_slots,
    round_size,
    round_stride,
    set_hot_slots,
)
from ftprl.data import Batch
from ftprl.data.remote_rows import NO_SLOTS, NO_VALUES, Fault, RemoteRows, RemoteSlice, entries_in, entries_of
from ftprl.linear import shard_reader
from ftprl.linear.actors import Actors
from ftprl.linear.core_learner import core_learner
from ftprl.linear.engine import Engine, ShardWriter
from ftprl.linear.exchange import ExchangeTotals
from ftprl.linear.refusal import RowRefused
from ftprl.linear.rounds import BLOCK, GROWTH, Slots, Vector, learns
from ftprl.linear.shard_messages import Cells, Scored, Stepped, in_parts, parts_for
from ftprl.linear.shard_reader import padded
from ftprl.linear.shard_table import cells_at, put_at
from ftprl.linear.shards import owner_of, shards_of, sums_by_shard
from ftprl.linear.totals import LossTotals

_AT_ONCE = 1 << 16  # cells that are moved at a time
_OTHER_BYTES = 4  # of a row that come with its scores, about: its hot entries


@final
class ShardedEngine(Engine):
    """An engine that takes over the state of another one, and gives its cells to servers once rounds are large."""

    def __init__(
        self,
        engine: Engine,
        actors: Actors,
        load: Callable[[], None] | None = None,
        *,
        alone: int | None = None,
        block: int = BLOCK,
    ) -> None:
        """`load` fills the servers, if the cells are in files and not in the engine.

        The first `alone` rows are learned by this process alone: by default until rounds have 4096 rows, or all that
        they may have. `block` is for tests: another one than BLOCK gives other bits.
        """
        self._shared = tuple(vars(engine))  # the attributes of every engine
        for name in self._shared:
            setattr(self, name, getattr(engine, name))
        self._actors, self._load, self._block = actors, load, block
        self._alone = GROWTH * min(BLOCK, engine.spec.round_rows) if alone is None else alone
        self._is_spread = False
        self._is_hot_known = False  # whether the servers have the hot cells as they are
        self._round = 0  # the number of the last one
        self.exchange = ExchangeTotals()

    @property
    def learns_here(self) -> bool:
        """Whether rows are learned by this process alone, which then needs their entries."""
        return not self._is_spread and self._rows_here() > 0

    def _rows_here(self) -> int:
        """How many more rows are learned by this process alone."""
        if self._load is not None:
            return 0
        return max(0, self._alone - self.progress.rows)

    # ---- where the cells are ----

    def spread(self) -> None:
        """Give the cells to the servers, unless they have them."""
        if self._is_spread:
            return
        self._actors.open(self._spec, receipt=self._receipt)
        hot, before = self.hot_slots, self.exchange.cells
        if self._load is not None:
            self._load()
            self._load = None
        else:
            slots = super().touched()
            for start in range(0, len(slots), _AT_ONCE):
                self._send(cells_at(self, slots[start : start + _AT_ONCE]))
            self._forget()
        self._is_spread = True
        self._bring(hot)
        self.exchange.spread, self.exchange.cells = self.exchange.cells - before, before

    def _forget(self) -> None:
        """Have a table without cells, with all else as it is: the memory is free for others."""
        old = self._core
        self._core = core_learner(self._spec, self._receipt, 0)
        for name, array in self._core.saved_arrays.items():
            array[...] = old.saved_arrays[name]
        set_hot_slots(self._core, hot_slots(old))

    def gather(self) -> None:
        """Take all cells back; from here on this is an engine like others, until more rows are learned."""
        if self._is_spread:
            self._copy_cells()
            self._is_spread = False

    def gathered(self) -> Engine:
        """An engine of its own, with all cells."""
        self.gather()
        twin = object.__new__(Engine)
        for name in self._shared:
            setattr(twin, name, getattr(self, name))
        return twin

    def renewed(self, engine: Engine) -> Engine:
        """Another engine in its place, over the same servers, which get its cells in time."""
        again = ShardedEngine(engine, self._actors, alone=self._alone, block=self._block)
        again.exchange = self.exchange
        return again

    @property
    def shard_writer(self) -> ShardWriter | None:
        """Has the servers write their shards; None where the cells are here."""
        return self._save_shards if self._is_spread else None

    def _copy_cells(self) -> None:
        """Fill the table here with the cells of all servers."""
        slots = self.touched()
        for start in range(0, len(slots), _AT_ONCE):
            put_at(self, self._received(slots[start : start + _AT_ONCE]))

    def _send(self, cells: Cells) -> None:
        """Overwrite cells of the servers."""
        owner = owner_of(cells.slots, self._actors.servers)
        handles = [
            self._actors.on_server(number, "put", cells.some(owner == number)) for number in np.unique(owner).tolist()
        ]
        self._actors.get(handles)
        self.exchange.cells += cells.nbytes

    def _received(self, slots: Slots) -> Cells:
        """The cells of some slots as the servers have them."""
        owner = owner_of(slots, self._actors.servers)
        numbers = np.unique(owner).tolist()
        handles = [self._actors.on_server(number, "take", slots[owner == number]) for number in numbers]
        no_cells = cells_at(self, slots[:0])
        cells = np.empty((len(slots), *no_cells.cells.shape[1:]), no_cells.cells.dtype)
        gradients = None if no_cells.gradients is None else np.empty((len(slots), *no_cells.gradients.shape[1:]))
        for number, part in zip(numbers, self._actors.get(handles), strict=True):
            cells[owner == number] = part.cells
            if gradients is not None:
                gradients[owner == number] = part.gradients
        return Cells(slots, cells, gradients)

    def _bring(self, slots: Slots) -> None:
        """Put cells of the servers into the table here."""
        cells = self._received(slots)
        put_at(self, cells)
        self.exchange.cells += cells.nbytes

    def _return_hot(self) -> None:
        """Have the servers know the hot cells as they are now."""
        hot = self.hot_slots
        if self._is_hot_known or not len(hot):
            return
        self._send(cells_at(self, hot))
        self._is_hot_known = True

    def _save_shards(self, uri: str, stem: str) -> dict[str, list[Any]]:
        """Have the servers write their shards to files of a version; the sizes and digests of all files."""
        self._return_hot()
        servers = self._actors.servers
        handles = [
            self._actors.on_server(number, "save", uri, stem, shards_of(number, servers)) for number in range(servers)
        ]
        return {name: entry for entries in self._actors.get(handles) for name, entry in entries.items()}

    # ---- reading the state ----

    def take(self, slots: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """A copy of some cells, a row each."""
        if not self._is_spread:
            return super().take(slots)
        self._return_hot()
        return self._received(self._checked(slots)).cells

    def take_gradients(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """S = g_{1:t} of some cells."""
        if not self._is_spread:
            return super().take_gradients(slots)
        self._return_hot()
        gradients = self._received(self._checked(slots)).gradients
        assert gradients is not None
        return gradients

    def touched(self) -> NDArray[np.uint32]:
        """Which cells have been touched."""
        if not self._is_spread:
            return super().touched()
        self._return_hot()
        handles = [self._actors.on_server(number, "touched") for number in range(self._actors.servers)]
        return np.sort(np.concatenate(self._actors.get(handles)))

    def own_sums(self, slots: NDArray[np.integer[Any]] | None = None) -> Vector:
        """The sums of a receipt over cells: they are brought here, since their order is that of one table."""
        if self._is_spread:
            self._copy_cells()
        return super().own_sums(slots)

    def own_groups(self, scale: int) -> Vector:
        """Sums over cells by how often they were seen."""
        if self._is_spread:
            self._copy_cells()
        return super().own_groups(scale)

    def keep_scales(self, first: int) -> None:
        """Drop all scales but four neighbours, everywhere."""
        super().keep_scales(first)
        if self._is_spread:
            handles = [self._actors.on_server(number, "keep_scales", first) for number in range(self._actors.servers)]
            self._actors.get(handles)

    # ---- rows ----

    def entries_here(self, batch: Batch) -> Batch:
        """The batch with the entries of its rows, brought here if they are elsewhere."""
        if batch.remote is None:
            return batch
        slices = batch.remote.slices
        entries = entries_in(slices, self._actors.get([one.handle for one in slices]))
        size = sum(array.nbytes for array in entries)
        if self._is_spread:
            self.exchange.entries += size
        else:
            self.exchange.alone += size
        return batch.replaced(indptr=entries[0], indices=entries[1], values=entries[2], is_private=True, remote=None)

    def received(self, batch: Batch) -> Batch:
        """A batch whose entries the readers have; those that are here are sent."""
        if batch.remote is not None:
            return batch
        rows = batch.private()
        handle, faults = self._actors.put([entries_of(rows)]), tuple(faults_of(self._core, rows))
        one = RemoteSlice(handle, 0, 0, len(rows), self._actors.node, bool(has_units(rows.values)), faults)
        self.exchange.entries += sum(array.nbytes for array in entries_of(rows))
        return rows.replaced(remote=RemoteRows([one]), indices=NO_SLOTS, values=NO_VALUES)

    def _check(self, batch: Batch) -> None:
        if batch.remote is None:
            super()._check(batch)
            return
        for row, reason in batch.remote.faults():
            where = f"{batch.origin}: " if batch.origin else ""
            number = batch.first_row + row
            raise RowRefused(f"{where}row {number}", reason, number)

    # ---- learning ----

    def weigh(self, batch: Batch, *, losses: Vector, baselines: Vector) -> None:
        """Predict held-out rows and let the weights of the mixture learn from each."""
        if self._is_spread:
            batch = self.entries_here(batch)
            self._bring_cold(batch)
        super().weigh(batch, losses=losses, baselines=baselines)

    def _bring_cold(self, batch: Batch) -> Slots:
        """Bring the cells of rows here that are not hot; their slots."""
        slots = np.unique(batch.indices)
        cold = slots[~np.isin(slots, self.hot_slots)]
        self._bring(cold)
        return cold

    def _learn(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None, rows: slice
    ) -> LossTotals:
        """Learn some rows, whose numbers in `scores`, `losses` and `baselines` are `rows`."""
        self._check(batch)
        alone = 0
        if not self._is_spread:
            learned = np.flatnonzero(learns(batch))
            missing = self._rows_here()
            alone = len(batch) if len(learned) < missing else int(learned[missing - 1]) + 1 if missing else 0
        totals = LossTotals(0.0, 0.0, 0)
        if alone:
            here = self.entries_here(batch[:alone])
            totals = super()._learn(here, scores, losses, baselines, slice(rows.start, rows.start + alone))
        if alone == len(batch):
            return totals
        self.spread()
        rest = slice(rows.start + alone, rows.stop)
        outputs = (None if array is None else array[rest] for array in (scores, losses, baselines))
        return totals + self._learn_apart(batch[alone:], *outputs)

    def _learn_apart(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None
    ) -> LossTotals:
        """Learn rows in rounds over all servers: as `learn_in_rounds` of the core cuts them."""
        self._is_hot_known = False
        self._baseline.learn(batch.y, batch.weight, baselines)
        losses = np.empty(len(batch)) if losses is None else losses
        batch = self.received(batch)
        learned = np.flatnonzero(learns(batch))
        totals = LossTotals(0.0, 0.0, 0)
        at = done = 0
        while at < len(batch):
            t = self.progress.rows
            size = round_size(t, self._spec.round_rows)
            count = min(size - t % size, len(learned) - done)
            is_whole = count == size - t % size
            whole = int(learned[done + count - 1]) + 1 if count else at
            end = whole if is_whole else len(batch)
            learn = self._learn_round if count > 1 else self._learn_here
            for work, some in ((learn, slice(at, whole)), (self._learn_here, slice(whole, end))):
                if some.start < some.stop:
                    totals = totals + work(batch[some], None if scores is None else scores[some], losses[some])
            at, done = end, done + count
        return totals

    def _learn_here(self, batch: Batch, scores: Vector | None, losses: Vector) -> LossTotals:
        """Learn a single row, or only score rows, with their cells brought here."""
        rows = self.entries_here(batch)
        cold = self._bring_cold(rows)
        column = None if scores is None else scores[:, np.newaxis]
        arrays = rows.indptr, rows.indices, rows.values, rows.y, rows.weight
        before = self.hot_slots
        totals = LossTotals(*self._core.learn(*arrays, column, losses, rows.first_row, True, not self._seen))
        if totals.rows:
            self._move_hot(before, here=cold)
        return totals

    def _move_hot(self, before: Slots, here: Slots, after: Slots | None = None) -> None:
        """Send cells that are here back to their servers unless they are hot now; `after` are hot from now on."""
        hot = self.hot_slots if after is None else after
        back = np.union1d(before, here).astype(np.uint32)
        back = back[~np.isin(back, hot)]
        if len(back):
            self._send(cells_at(self, back))
        if after is not None:
            set_hot_slots(self._core, np.ascontiguousarray(after))

    def _learn_round(self, batch: Batch, scores: Vector | None, losses: Vector) -> LossTotals:
        """Learn rows as one round."""
        spec, actors, hot = self._spec, self._actors, self.hot_slots
        self._round += 1
        learned = learns(batch)
        heaviest = float(batch.weight[learned].max(initial=0.0))
        cuts = _blocks(learned, self._block)
        assert batch.remote is not None
        readers, prepared = [], []
        for first, last in cuts:
            slices = batch.remote[first:last].slices
            reader = actors.reader_near([one.node for one in slices])
            sent = [one._replace(handle=None, faults=()) for one in slices]
            handles = [one.handle for one in slices]
            facts = (spec, actors.servers, np.packbits(learned[first:last]), sent, actors.node_of(reader))
            more = 1 + actors.servers
            prepared.append(actors.on_reader(reader, shard_reader.prepare, *facts, *handles, returns=more))
            readers.append(reader)
        plays = [
            actors.on_server(
                number, "play", self._round, hot, *(block[1 + number] for block in prepared), returns=len(cuts)
            )
            for number in range(actors.servers)
        ]
        scored = []
        for b, ((first, last), reader, block) in enumerate(zip(cuts, readers, prepared, strict=True)):
            count = parts_for((last - first) * (8 * len(spec.scales) + _OTHER_BYTES))
            played = (own[b] for own in plays)
            scored.append(
                actors.on_reader(reader, shard_reader.score, spec, hot, count, block[0], *played, returns=count)
            )
        totals, sums = LossTotals(0.0, 0.0, 0), []
        for (first, last), reader, block, handles in zip(cuts, readers, prepared, scored, strict=True):
            some, known = slice(first, last), Scored.of_parts(actors.get(handles))
            slopes, part = self._chain(batch[some], hot, known, None if scores is None else scores[some], losses[some])
            totals = totals + part
            parts = in_parts(slopes.tobytes(), parts_for(slopes.nbytes))
            sums.append(actors.on_reader(reader, shard_reader.add_up, spec, block[0], *parts, returns=actors.servers))
        stepped = actors.get(
            [
                actors.on_server(
                    number, "step", self._round, heaviest, int(learned.sum()), *(block[number] for block in sums)
                )
                for number in range(actors.servers)
            ]
        )
        self._end_round(batch, losses, hot, stepped)
        return totals

    def _chain(
        self, batch: Batch, hot: Slots, scored: Scored, scores: Vector | None, losses: Vector
    ) -> tuple[Vector, LossTotals]:
        """What goes row by row in a block: the slopes of its rows by scale."""
        stride, scales = round_stride(self._core), len(self._spec.scales)
        slopes = np.empty((len(batch), stride))
        totals = chain_round(
            self._core,
            batch.y,
            batch.weight,
            *scored.hot_entries(hot),
            padded(scored.scores, stride),
            slopes,
            scores,
            losses,
            not self._seen,
        )
        sent = np.ascontiguousarray(slopes[:, :scales])
        self._count(batch, scored, sent)
        return sent, LossTotals(*totals)

    def _count(self, batch: Batch, scored: Scored, slopes: Vector) -> None:
        """Count the bytes of a block; the sums of gradients are as many numbers as were played."""
        totals, scales, rows = self.exchange, len(self._spec.scales), len(batch)
        totals.rows += rows
        totals.announced += scored.announced
        totals.plays += scored.played
        known = 0 if batch.remote is None else round(batch.remote.sent_bytes)  # of lengths, labels and weights
        totals.scores += scored.nbytes + known
        totals.slopes += slopes.nbytes
        totals.sums += 8 * scales * scored.coordinates
        totals.entries += scored.moved
        totals.expected += scored.coordinates * (6 + 12 * scales) + rows * (16 * scales + 12)

    def _end_round(self, batch: Batch, losses: Vector, hot: Slots, stepped: Sequence[Stepped]) -> None:
        """Add up what the servers report, and have the cells here that are hot from now on."""
        self.exchange.rounds += 1
        self.exchange.cells += sum(one.nbytes for one in stepped)
        by_server = [one.sums for one in stepped if one.sums is not None]
        if by_server:
            add_round_sums(self._core, sums_by_shard(by_server))
        count_round(self._core, batch.y, batch.weight, losses)
        after = np.sort(np.concatenate([one.hot for one in stepped]))
        self._move_hot(hot, hot, after)
        for one in stepped:
            put_at(self, one.cells)


def faults_of(learner: Learner, batch: Batch) -> Iterator[Fault]:
    """The rows of a batch that a learner does not take, counted from 0, and why."""
    start = 0
    while start < len(batch):
        rows = batch[start:]
        try:
            learner.check(rows.indptr, rows.indices, rows.values, rows.y, rows.weight, first_row=start)
            return
        except RowError as error:
            # Entries are checked before labels: a row before it may have another fault.
            yield from ((start + row, reason) for row, reason in faults_of(learner, batch[start : error.row]))
            yield error.row, str(error)
            start = error.row + 1


def _blocks(learned: NDArray[np.bool_], block: int) -> list[tuple[int, int]]:
    """The rows of each block of a round: those behind the learned row number `block` begin another one.

    >>> _blocks(np.array([True, False, True, True]), 2)
    [(0, 3), (3, 4)]
    """
    positions = np.flatnonzero(learned)
    ends = [int(positions[at]) + 1 for at in range(block - 1, len(positions), block)]
    ends = sorted({*ends, len(learned)})
    return list(zip([0, *ends[:-1]], ends, strict=True))
