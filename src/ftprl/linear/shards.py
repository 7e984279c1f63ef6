"""Rounds over a table in several places (docs/cluster.md): what servers with parts of it do, and what readers do.

A server has whole shards of the 64. A reader has rows, a block of a round at a time. For each round:

1. `prepare`, by readers: number the coordinates of each block and announce them to the servers that have them.
2. `TableShards.play`, by servers: raise the units by what all blocks have, and send what is played to the readers.
3. `score`, by readers: the products of rows with that, and the entries of hot coordinates.
4. The chain of rows, by the mixer (`ftprl.linear.sharded_engine`).
5. `add_up`, by readers: the sums of the gradients of each coordinate.
6. `TableShards.step`, by servers: one step for each coordinate, with the sums of all blocks in order.

Nothing here depends on who calls it, in which process, or how many servers and readers there are.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Learner, RoundNumbering, SlotNumbers, play_round, round_stride, step_round
from ftprl.cluster.versions import Version, VersionedFolder
from ftprl.data.far import Entries, FarPiece, entries_in, nbytes_of
from ftprl.data.files import shown
from ftprl.errors import BadModel
from ftprl.linear.core_learner import core_learner
from ftprl.linear.engine import Engine
from ftprl.linear.model_file import Loaded, Picked, parse, write_to
from ftprl.linear.rounds import SHARDS, Coordinates, Slots, Vector, is_hot_next, no_sums, score_rows, shard_of, sum_rows
from ftprl.linear.spec import Spec
from ftprl.linear.tensors import cell_tensors, put_cells

Numbers = NDArray[np.uint32]
_NO_NUMBERS = np.empty(0, np.uint32)


def owner_of(slots: Slots, servers: int) -> NDArray[np.int64]:
    """The number of the server that has each slot, of so many: neighbouring shards are with one server.

    >>> owner_of(np.array([0, 1, 2], np.uint32), 2).tolist()
    [0, 1, 0]
    """
    return shard_of(slots).astype(np.int64) * servers // SHARDS


def shards_of(server: int, servers: int) -> list[int]:
    """The shards of one of so many servers.

    >>> shards_of(63, 64), len(shards_of(0, 3))
    ([63], 22)
    """
    return [shard for shard in range(SHARDS) if shard * servers // SHARDS == server]


@final
class Cells(NamedTuple):
    """Some cells on their way from one table to another; `gradients` with a receipt."""

    slots: Slots
    cells: NDArray[Any]
    gradients: Vector | None

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return int(self.slots.nbytes + self.cells.nbytes + (0 if self.gradients is None else self.gradients.nbytes))

    def some(self, which: NDArray[np.bool_]) -> Cells:
        """Some of them."""
        gradients = None if self.gradients is None else self.gradients[which]
        return Cells(self.slots[which], self.cells[which], gradients)


def cells_at(engine: Engine, slots: Slots, places: Slots | None = None) -> Cells:
    """Copies of the cells of some slots, which the table of this process has at these places."""
    where = slots if places is None else places
    return Cells(slots, Engine.take(engine, where), Engine.take_gradients(engine, where) if engine.receipt else None)


def put_at(engine: Engine, cells: Cells, places: Slots | None = None) -> None:
    """Overwrite cells of the table of this process with these."""
    where = cells.slots if places is None else places
    engine.put(where, cells.cells)
    if cells.gradients is not None:
        engine.put_gradients(where, cells.gradients)


# ---- what goes with a message ----

_PART = 90_000  # bytes


def parts_for(size: int) -> int:
    """How many parts so many bytes take: Ray sends those of up to 100 KB with the message itself.

    Larger ones go through the object stores of both machines, which takes several times as long, and now and then a
    whole second (seen with Ray 2.60).
    """
    return -(-size // _PART)


def in_parts(body: bytes, count: int) -> list[bytes]:
    """The bytes in so many parts, of which the last has all the rest.

    >>> [len(part) for part in in_parts(bytes(200_000), 2)]
    [90000, 110000]
    """
    cuts = [*range(0, count * _PART, _PART), max(len(body), count * _PART)]
    return [body[first:last] for first, last in itertools.pairwise(cuts)]


# ---- what is played ----


def sendable(x: Vector, spec: Spec) -> NDArray[Any]:
    """What is played as it is sent: in the type of the cells, which has all of it but the bounds of weights.

    Where a bound is played, infinity is sent.
    """
    sent: NDArray[Any] = x.astype(np.float64 if spec.float64 else np.float32)
    for bound, mark in ((spec.lower, -np.inf), (spec.upper, np.inf)):
        if np.isfinite(bound):
            sent[x == bound] = mark
    return sent


def received(sent: NDArray[Any], spec: Spec) -> NDArray[Any]:
    """What is played of what was sent.

    >>> spec = Spec(lower=-0.1)
    >>> received(sendable(np.array([-0.1, 0.5]), spec), spec).tolist()
    [-0.1, 0.5]
    """
    if not (np.isfinite(spec.lower) or np.isfinite(spec.upper)):
        return sent
    return np.clip(sent.astype(np.float64), spec.lower, spec.upper)


# ---- what is announced ----


@final
class Announced(NamedTuple):
    """The coordinates of a block that one server has, in the order in which learned rows first have them.

    `rows` are counts of the first ones, which learned rows have; the others follow. Where some |value| is not 1, the
    largest value and the sum of the squares of a coordinate are listed under its number; `listed` is None if that is
    so for all of them. A sum of squares that is the square of the largest value, as in a single row, is left out:
    `squared` are the places in the list of those that are there, None if all are.
    """

    slots: Slots
    rows: NDArray[np.uint16]
    listed: Numbers | None
    largest: NDArray[Any]
    squared: Numbers | None
    squares: Vector

    @classmethod
    def of(cls, coordinates: Coordinates) -> Announced:
        """Coordinates, of which those come first that learned rows have."""
        learned = int(np.count_nonzero(coordinates.rows))
        rows = coordinates.rows[:learned]
        odd = (coordinates.largest[:learned] != 1.0) | (coordinates.squares[:learned] != rows)
        listed = np.flatnonzero(odd)
        largest, squares = coordinates.largest[listed], coordinates.squares[listed]
        with np.errstate(over="ignore", under="ignore"):
            squared = np.flatnonzero(largest * largest != squares)
        return cls(
            coordinates.slots,
            rows.astype(np.uint16),
            None if len(listed) == learned else listed.astype(np.uint32),
            _short(largest),
            None if len(squared) == len(listed) else squared.astype(np.uint32),
            squares[squared],
        )

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return sum(array.nbytes for array in self if array is not None)

    @property
    def learned(self) -> int:
        """How many of the coordinates learned rows have."""
        return len(self.rows)

    def coordinates(self) -> Coordinates:
        """The coordinates that were announced."""
        rows, largest, squares = (np.zeros(len(self.slots)) for _ in range(3))
        rows[: self.learned] = squares[: self.learned] = self.rows
        largest[: self.learned] = 1.0
        listed: Any = slice(0, self.learned) if self.listed is None else self.listed
        largest[listed] = self.largest
        with np.errstate(over="ignore", under="ignore"):
            sums = largest[listed] * largest[listed]
        if self.squared is None:
            sums = self.squares
        else:
            sums[self.squared] = self.squares
        squares[listed] = sums
        return Coordinates(self.slots, rows, largest, squares)


# ---- readers ----


@lru_cache(maxsize=4)
def _numbering(dim: int) -> RoundNumbering:
    return RoundNumbering(dim)


@lru_cache(maxsize=4)
def _kernels(spec: Spec) -> Learner:
    """A learner for its kernels alone: it has one cell."""
    return core_learner(spec, False, 0, dim=1)


@final
class BlockRows(NamedTuple):
    """The rows of a block by the numbers of its coordinates, and which of these each server has."""

    slots: Slots
    indptr: NDArray[np.int64]
    numbers: Numbers
    values: Vector
    learned: NDArray[np.bool_]
    of_server: tuple[NDArray[np.intp], ...]
    counts: tuple[int, ...]  # of the coordinates of each server those that learned rows have
    announced_bytes: int
    moved_bytes: int  # of rows that came from other machines


def prepare(
    spec: Spec,
    servers: int,
    bits: NDArray[np.uint8],
    pieces: Sequence[FarPiece],
    node: str,
    *results: Sequence[Entries],
) -> list[Any]:
    """The rows of a block, and what is announced to each server; `bits` says which rows are learned.

    `results` have the rows of the pieces; `node` is where this runs.
    """
    indptr, indices, values = entries_in(pieces, results)
    learned = np.unpackbits(bits, count=len(indptr) - 1).astype(np.bool_)
    numbering = _numbering(spec.dim)
    numbering.clear()
    numbering.add(indptr, indices, values, np.where(learned, 1.0, np.nan), np.ones(len(learned)))
    own = Coordinates(numbering.slots, numbering.rows, numbering.largest, numbering.squares)
    owner = owner_of(own.slots, servers)
    of_server = tuple(np.flatnonzero(owner == server) for server in range(servers))
    announced = [
        Announced.of(Coordinates(own.slots[which], own.rows[which], own.largest[which], own.squares[which]))
        for which in of_server
    ]
    moved = sum(
        nbytes_of(result[piece.number], piece)
        for piece, result in zip(pieces, results, strict=True)
        if piece.node != node
    )
    rows = BlockRows(
        own.slots,
        indptr,
        numbering.coordinates,
        numbering.values,
        learned,
        of_server,
        tuple(one.learned for one in announced),
        sum(one.nbytes for one in announced),
        moved,
    )
    return [rows, *announced]


@final
class Scored(NamedTuple):
    """What the mixer gets of a block: scores by scale, and for each row the entries of hot coordinates.

    Hot coordinates are given by their number among the hot ones; values that are all 1 are not sent. What the block
    has moved otherwise is counted: bytes that were announced and played, of rows that came from other machines, and
    coordinates.
    """

    scores: Vector
    hot_lengths: NDArray[Any]
    hot_numbers: NDArray[Any]
    hot_values: NDArray[Any] | None
    announced: int
    played: int
    moved: int
    coordinates: int

    @classmethod
    def of_parts(cls, parts: Sequence[bytes]) -> Scored:
        """What `score` returned."""
        scored = pickle.loads(b"".join(parts))
        assert isinstance(scored, cls)
        return scored

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        values = 0 if self.hot_values is None else self.hot_values.nbytes
        return int(self.scores.nbytes + self.hot_lengths.nbytes + self.hot_numbers.nbytes + values)

    def hot_entries(self, hot: Slots) -> tuple[NDArray[np.int64], Slots, Vector]:
        """The entries of hot coordinates as `chain_round` takes them."""
        indptr = np.concatenate(([0], np.cumsum(self.hot_lengths, dtype=np.int64))).astype(np.int64)
        slots = np.ascontiguousarray(hot[self.hot_numbers], np.uint32)
        values = np.ones(len(slots)) if self.hot_values is None else self.hot_values.astype(np.float64)
        return indptr, slots, values


def score(spec: Spec, hot: Slots, parts: int, rows: BlockRows, *plays: NDArray[Any]) -> list[bytes]:
    """The products of the rows of a block with what the servers play, and their hot entries, in so many parts."""
    return in_parts(pickle.dumps(_scored(spec, hot, rows, plays), protocol=5), parts)


def _scored(spec: Spec, hot: Slots, rows: BlockRows, plays: Sequence[NDArray[Any]]) -> Scored:
    learner, scales = _kernels(spec), len(spec.scales)
    x = np.zeros((len(rows.slots), round_stride(learner)))
    for which, own in zip(rows.of_server, plays, strict=True):
        x[which, :scales] = received(own, spec)
    x[np.isin(rows.slots, hot)] = 0.0  # which no bound has to be within
    scores = score_rows(learner, rows.indptr, rows.numbers, rows.values, x)[:, :scales]
    small = np.uint8 if len(hot) < 2**8 else np.uint32
    lengths, numbers, values = _hot_entries(hot, rows)
    kept = None if bool((values == 1.0).all()) else _short(values)
    return Scored(
        np.ascontiguousarray(scores),
        lengths.astype(small),
        numbers.astype(small),
        kept,
        rows.announced_bytes,
        sum(own.nbytes for own in plays),
        rows.moved_bytes,
        len(rows.slots),
    )


def _short(values: Vector) -> NDArray[Any]:
    """The values in float32 if that changes none."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if bool((narrow == values).all()) else values


def _hot_entries(hot: Slots, rows: BlockRows) -> tuple[NDArray[np.int64], NDArray[np.intp], Vector]:
    """How many hot entries each row has, their numbers among the hot coordinates, and their values."""
    count = len(rows.indptr) - 1
    if not len(hot):
        return np.zeros(count, np.int64), np.empty(0, np.intp), np.empty(0)
    at = np.minimum(np.searchsorted(hot, rows.slots), len(hot) - 1)
    is_hot = (hot[at] == rows.slots)[rows.numbers]
    entries = np.flatnonzero(is_hot)
    lengths = np.diff(np.searchsorted(entries, rows.indptr))
    return lengths, at[rows.numbers[entries]], rows.values[entries]


def add_up(spec: Spec, rows: BlockRows, *parts: bytes) -> list[Vector]:
    """The sums of the gradients of the coordinates of a block that learned rows have, for each server.

    `parts` are those of the slopes of its rows by scale.
    """
    learner, scales = _kernels(spec), len(spec.scales)
    slopes = np.frombuffer(b"".join(parts)).reshape(-1, scales)
    y, weight = np.where(rows.learned, 1.0, np.nan), np.ones(len(rows.learned))
    wide = padded(slopes, round_stride(learner))
    sums = sum_rows(learner, rows.indptr, rows.numbers, rows.values, y, weight, wide, len(rows.slots))
    of_servers = zip(rows.of_server, rows.counts, strict=True)
    return [np.ascontiguousarray(sums[which[:count], :scales]) for which, count in of_servers]


def padded(columns: NDArray[Any], stride: int) -> Vector:
    """Numbers by scale as numbers by lane: float64, with zeros behind them."""
    if columns.shape[1] == stride and columns.dtype == np.float64:
        return np.ascontiguousarray(columns)
    out = np.zeros((len(columns), stride))
    out[:, : columns.shape[1]] = columns
    return out


# ---- servers ----


@final
class Stepped(NamedTuple):
    """What a server reports after a step: sums of a receipt by shard, and the coordinates that are hot next.

    Their cells come with them unless they were hot before.
    """

    sums: Vector | None
    hot: Slots
    cells: Cells

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return int((0 if self.sums is None else self.sums.nbytes) + self.hot.nbytes + self.cells.nbytes)


@final
class _Round(NamedTuple):
    """What a server keeps of a round between its plays and its step."""

    number: int
    coordinates: Coordinates  # without rows for hot ones
    rows: Vector
    places: Slots
    x: Vector
    numbers: list[Numbers]  # of the coordinates of each block those that are learned
    hot: Slots


@final
class TableShards:
    """The cells of some whole shards of a table, numbered in the order in which they are met."""

    def __init__(self, spec: Spec, *, receipt: bool) -> None:
        self._engine = Engine(spec, receipt=receipt)
        self._places, self._of_round = SlotNumbers(spec.dim), SlotNumbers(spec.dim)
        self._round: _Round | None = None
        self._applied: tuple[int, Stepped] | None = None

    def __len__(self) -> int:
        return len(self._places)

    def _place(self, slots: Slots) -> Slots:
        out = np.empty(len(slots), np.uint32)
        self._places.number(np.ascontiguousarray(slots, np.uint32), out)
        return out

    # ---- a round ----

    def play(self, number: int, hot: Slots, *blocks: Announced) -> list[NDArray[Any]]:
        """Raise the units of the coordinates of all blocks; what they play, for each block in its order.

        `hot` are the hot coordinates, which the mixer has.
        """
        coordinates, numbers = self._merged([block.coordinates() for block in blocks], blocks)
        is_hot = np.isin(coordinates.slots, hot)
        cold = coordinates._replace(rows=np.where(is_hot, 0.0, coordinates.rows))
        places, core, scales = self._place(cold.slots), self._engine._core, len(self._engine.spec.scales)
        x = np.empty((len(cold.slots), round_stride(core)))
        play_round(core, *cold, x, places)
        x[is_hot] = 0.0
        learned = [own[: block.learned] for own, block in zip(numbers, blocks, strict=True)]
        self._round = _Round(number, cold, coordinates.rows, places, x, learned, hot)
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
            now.places,
        )
        next_hot = is_hot_next(own_coordinates._replace(rows=now.rows), learned)
        hot = np.sort(own_coordinates.slots[next_hot])
        new = hot[~np.isin(hot, now.hot)]
        kept = shards[:, :, :scales].copy() if self._engine.receipt else None
        done = Stepped(kept, hot, cells_at(self._engine, new, self._place(new)))
        self._round, self._applied = None, (number, done)
        return done

    # ---- cells ----

    def take(self, slots: Slots) -> Cells:
        """Copies of some cells."""
        return cells_at(self._engine, slots, self._place(slots))

    def put(self, cells: Cells) -> None:
        """Overwrite some cells."""
        put_at(self._engine, cells, self._place(cells.slots))

    def touched(self) -> Slots:
        """The slots that have been learned, in order."""
        return np.sort(self._places.slots[self._engine.touched()])

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
        tensors: dict[str, NDArray[Any] | Picked] = {"slots": slots, **cell_tensors(self._engine, self._place(slots))}
        return lambda out: write_to(out, content, tensors)

    def load(self, uri: str, version: Version, shards: Sequence[int]) -> None:
        """Read these shards from the files of a version."""
        for loaded in shard_files(uri, version, shards):
            self.restore(loaded)

    def restore(self, shard: Loaded) -> None:
        """Put the cells of a shard into the table."""
        slots = shard.tensors["slots"]
        put_cells(self._engine, self._place(slots), shard.tensors)


def file_of(shard: int) -> str:
    """The name of a shard's file in a version.

    >>> file_of(7)
    'shard-07'
    """
    return f"shard-{shard:02d}"


def shard_files(uri: str, version: Version, shards: Sequence[int]) -> Iterator[Loaded]:
    """The shards of a version, one after the other."""
    folder = VersionedFolder(uri, "resume")
    for shard in shards:
        name = file_of(shard)
        loaded = parse(folder.read(version, name), f"{uri}, {name}")
        slots = loaded.tensors.get("slots")
        if loaded.content != {"shard": shard, "of": SHARDS} or slots is None or (shard_of(slots) != shard).any():
            raise BadModel(f"{shown(uri)}: expected shard {shard} in {name}, got another; start anew.")
        yield loaded


def put_shards(engine: Engine, uri: str, version: Version) -> None:
    """Put the cells of all shards of a version into one table."""
    for loaded in shard_files(uri, version, range(SHARDS)):
        put_cells(engine, loaded.tensors["slots"], loaded.tensors)


def sums_by_shard(servers: Sequence[Vector]) -> Vector:
    """The sums of all servers, each of which has some of the shards, as one learner would have them."""
    out = no_sums()
    for number, own in enumerate(servers):
        for shard in shards_of(number, len(servers)):
            out[shard, :, : own.shape[2]] = own[shard]
    return out
