"""Rounds of several rows (docs/rounds.md): where they end, and the steps of one over several tables.

A round over one table is what `Engine.learn` does. Over several tables, each with some of the shards of the
coordinates, it is done in these steps, and gives the same bits for any number of tables and of readers:

1. `Block.of` numbers the coordinates of a block of rows, with what their units need to know. It depends on rows alone.
2. `merged` puts the blocks of a round together, in their order.
3. `play` raises the units of some coordinates, where their cells are, and returns what they play.
4. `Block.scores` are the products of its rows with that, without hot coordinates.
5. `chain` learns what goes row by row, where the mixture and the hot cells are, and returns the slopes.
6. `Block.sums` are the gradients of its coordinates; those of all blocks are added up in order.
7. `step` moves the cells of some coordinates; `add_sums` adds what that left for a receipt.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import (
    Learner,
    RoundNumbering,
    add_round_sums,
    chain_round,
    play_round,
    round_size,
    round_stride,
    score_round,
    step_round,
    sum_round,
)
from ftprl.data import Batch

Vector = NDArray[np.float64]
Slots = NDArray[np.uint32]
BLOCK = 4096  # learned rows whose gradients are added up together
GROWTH = 64  # no round is longer than this part of the rows learned so far
SHARDS = 64
_SHARD_SHAPE = (SHARDS, 6, 16)


# ---- where rounds end ----


def round_end(learned: int, round_rows: int) -> int:
    """At how many learned rows a round ends that begins after `learned` rows.

    >>> [round_end(t, 64) for t in (0, 127, 128, 130, 8192, 8200)]
    [1, 128, 130, 132, 8256, 8256]
    """
    size = round_size(learned, round_rows)
    return learned + size - learned % size


def learns(batch: Batch) -> NDArray[np.bool_]:
    """Which rows of a batch are learned, and count for rounds: those with a label and a weight above 0."""
    rows: NDArray[np.bool_] = (batch.y == batch.y) & (batch.weight > 0.0)
    return rows


def round_ends(rows: NDArray[np.bool_], learned: int, round_rows: int) -> list[int]:
    """Behind which of some rows a round ends; `rows` says which are learned, after `learned` before them.

    >>> round_ends(np.array([True, False, True, True]), learned=128, round_rows=64)
    [3]
    """
    learned_rows = np.flatnonzero(rows)
    ends, end = [], round_end(learned, round_rows)
    while end - learned <= len(learned_rows):
        ends.append(int(learned_rows[end - learned - 1]) + 1)
        end = round_end(end, round_rows)
    return ends


# ---- the steps of a round ----


@final
class Coordinates(NamedTuple):
    """Some coordinates of a round: their slots, how many entries have each, the largest size and the squares of these.

    `rows` is 0 for a coordinate that only rows have that are not learned.
    """

    slots: Slots
    rows: Vector
    largest: Vector
    squares: Vector

    def some(self, which: NDArray[np.bool_]) -> Coordinates:
        """The coordinates that `which` selects."""
        return Coordinates(self.slots[which], self.rows[which], self.largest[which], self.squares[which])

    @property
    def shards(self) -> NDArray[np.uint32]:
        """The shard of each, from 0 to 63: whoever has a shard has the cells of all its coordinates."""
        return shard_of(self.slots)


def shard_of(slots: Slots) -> NDArray[np.uint32]:
    """The shards of slots.

    >>> shard_of(np.array([0, 1, 2], np.uint32)).tolist()
    [0, 39, 15]
    """
    hashed: NDArray[np.uint32] = (slots.astype(np.uint64) * np.uint64(0x9E3779B1)).astype(np.uint32) >> np.uint32(26)
    return hashed


@final
class Block(NamedTuple):
    """Rows of a round, of which at most BLOCK are learned: their entries by the number of a coordinate of the block."""

    coordinates: Coordinates
    indptr: NDArray[np.int64]
    numbers: NDArray[np.uint32]
    values: Vector
    y: Vector
    weight: Vector

    @classmethod
    def of(cls, rows: Batch, numbering: RoundNumbering) -> Block:
        """The block of these rows; `numbering` is scratch memory for slots of the table."""
        numbering.clear()
        numbering.add(rows.indptr, rows.indices, rows.values, rows.y, rows.weight)
        own = Coordinates(numbering.slots, numbering.rows, numbering.largest, numbering.squares)
        return cls(own, rows.indptr, numbering.coordinates, numbering.values, rows.y, rows.weight)

    def hot_entries(self, hot: Slots) -> tuple[NDArray[np.int64], Slots, Vector]:
        """The entries of hot slots, which `chain` takes: the first of each row, their slots and values."""
        is_hot = np.isin(self.coordinates.slots, hot)[self.numbers]
        before = np.concatenate(([0], np.cumsum(is_hot)))
        return before[self.indptr].astype(np.int64), self.coordinates.slots[self.numbers[is_hot]], self.values[is_hot]

    def scores(self, learner: Learner, x: Vector) -> Vector:
        """The products of the rows with what their coordinates play, 0 for hot ones; one column per lane."""
        return score_rows(learner, self.indptr, self.numbers, self.values, x)

    def sums(self, learner: Learner, slopes: Vector) -> Vector:
        """The sums of the gradients of each coordinate."""
        rows = self.indptr, self.numbers, self.values, self.y, self.weight
        return sum_rows(learner, *rows, slopes, len(self.coordinates.slots))


def score_rows(
    learner: Learner, indptr: NDArray[np.int64], numbers: NDArray[np.uint32], values: Vector, x: Vector
) -> Vector:
    """The products of rows, by the numbers of their coordinates, with what these play; one column per lane."""
    out = np.empty((len(indptr) - 1, round_stride(learner)))
    score_round(learner, indptr, numbers, values, x, out)
    return out


def sum_rows(
    learner: Learner,
    indptr: NDArray[np.int64],
    numbers: NDArray[np.uint32],
    values: Vector,
    y: Vector,
    weight: Vector,
    slopes: Vector,
    coordinates: int,
) -> Vector:
    """The sums of the gradients of so many coordinates over the rows of a block that are learned."""
    out = np.zeros((coordinates, round_stride(learner)))
    sum_round(learner, indptr, numbers, values, y, weight, slopes, out)
    return out


def merged(blocks: list[Coordinates]) -> tuple[Coordinates, list[NDArray[np.intp]]]:
    """The coordinates of all blocks of a round, those that are learned first, and where each of a block is in them."""
    learned = np.concatenate([block.slots[block.rows > 0] for block in blocks])
    others = np.concatenate([block.slots[block.rows == 0] for block in blocks])
    slots = np.concatenate([learned, others])
    unique, first = np.unique(slots, return_index=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(unique), np.intp)
    number[order] = np.arange(len(unique))
    every = [number[np.searchsorted(unique, block.slots)] for block in blocks]
    rows, largest, squares = (np.zeros(len(unique)) for _ in range(3))
    for block, where in zip(blocks, every, strict=True):
        rows[where] += block.rows
        largest[where] = np.maximum(largest[where], block.largest)
        squares[where] += block.squares
    return Coordinates(slots[first[order]].astype(np.uint32), rows, largest, squares), every


def is_hot_next(coordinates: Coordinates, learned_rows: int) -> NDArray[np.bool_]:
    """Which coordinates of a round are hot in the next: those that at least half of its learned rows have."""
    hot: NDArray[np.bool_] = (coordinates.rows > 0) & (2.0 * coordinates.rows >= learned_rows)
    return hot


def play(learner: Learner, coordinates: Coordinates) -> Vector:
    """Raise the units of coordinates by what the rows of a round have of them; what they play, one column per lane."""
    x = np.empty((len(coordinates.slots), round_stride(learner)))
    play_round(learner, *coordinates, x)
    return x


@final
class Chained(NamedTuple):
    """What `chain` found: the slopes of the rows by lane, their predictions and losses."""

    slopes: Vector
    predictions: Vector
    losses: Vector


def chain(learner: Learner, block: Block, hot: Slots, scores: Vector, *, mixture: bool = True) -> Chained:
    """Take the rows of a block in order: hot cells and the intercept step, losses are added up, the mixture learns.

    `mixture` is off for rows that were learned in an earlier pass.
    """
    count = len(block.y)
    out = Chained(np.empty_like(scores), np.empty(count), np.empty(count))
    entries = block.hot_entries(hot)
    chain_round(learner, block.y, block.weight, *entries, scores, *out, mixture=mixture)
    return out


def no_sums() -> Vector:
    """Where `step` adds up what a receipt needs, by shard."""
    return np.zeros(_SHARD_SHAPE)


def step(learner: Learner, coordinates: Coordinates, heaviest: float, x: Vector, g: Vector, sums: Vector) -> None:
    """One step for each coordinate that was learned, with `x` as `play` gave it and the sum `g` of its gradients.

    `heaviest` is the largest weight of the learned rows of the round, which only a receipt needs to know.
    """
    step_round(learner, coordinates.slots, coordinates.rows, coordinates.largest, heaviest, x, g, sums)


def add_sums(learner: Learner, sums: Vector) -> None:
    """Add what `step` left in all tables, one shard after another, to the sums of the learner's receipt."""
    add_round_sums(learner, sums)
