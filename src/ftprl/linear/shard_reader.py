"""What a reader does in a round over several servers, for a block of rows (the steps are in `ftprl.linear.shards`)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Learner, RoundNumbering, round_stride
from ftprl.data.remote_rows import Entries, RemoteSlice, entries_in, nbytes_of
from ftprl.linear.core_learner import core_learner
from ftprl.linear.rounds import Coordinates, Slots, Vector, score_rows, sum_rows
from ftprl.linear.shard_messages import Announced, Numbers, Scored, in_parts, received, short_floats
from ftprl.linear.shards import owner_of
from ftprl.linear.spec import Spec


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
    slices: Sequence[RemoteSlice],
    node: str,
    *results: Sequence[Entries],
) -> list[Any]:
    """The rows of a block, and what is announced to each server; `bits` says which rows are learned.

    `results` have the rows of the slices; `node` is where this runs.
    """
    indptr, indices, values = entries_in(slices, results)
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
        nbytes_of(result[one.number], one) for one, result in zip(slices, results, strict=True) if one.node != node
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
    kept = None if bool((values == 1.0).all()) else short_floats(values)
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
