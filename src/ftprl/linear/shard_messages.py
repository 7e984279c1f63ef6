"""What the servers and readers of a round send to each other (the steps are in `ftprl.linear.shards`)."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.rounds import Coordinates, Slots, Vector
from ftprl.linear.spec import Spec

Numbers = NDArray[np.uint32]

# ---- parts of a message ----

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


def short_floats(values: Vector) -> NDArray[Any]:
    """The values in float32 if that changes none."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if bool((narrow == values).all()) else values


# ---- from readers to servers: the coordinates of a block ----


@final
class Announced(NamedTuple):
    """The coordinates of a block that one server has, in the order in which learned rows first have them.

    `rows` are counts of the first ones, which learned rows have; the others follow. Where some |value| is not 1, the
    largest value and the sum of the squares of a coordinate are listed under its number; `listed` is None if that is
    so for all of them. A sum of squares that is the square of the largest value, as in a single row, is left out:
    `squared` are the positions in the list of those that are there, None if all are.
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
            short_floats(largest),
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


# ---- from servers to readers: weights ----


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


# ---- from readers to the engine: scores ----


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


# ---- from servers to the engine: the end of a round, and cells ----


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
        """The cells that `which` selects."""
        gradients = None if self.gradients is None else self.gradients[which]
        return Cells(self.slots[which], self.cells[which], gradients)


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
