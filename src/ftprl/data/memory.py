"""Batches in memory as a source; features have numbers and are not hashed."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ftprl.data.batch import Batch, Vector
from ftprl.data.digests import BatchDigest
from ftprl.data.labels import LabelRule, of_array, signed
from ftprl.data.options import ARRAYS, OF_TABLES, ReadingOptions
from ftprl.data.parts import ORIGIN
from ftprl.data.protocol import Description, Position, Source
from ftprl.errors import InvalidInput

_OF_FILES = tuple(name for name in OF_TABLES if name != "weight")


@final
@dataclass(frozen=True, slots=True)
class RowPosition:
    """The position behind the first `rows` rows."""

    rows: int = 0

    def after(self, rows: int) -> RowPosition:
        """The position that many rows further on."""
        return RowPosition(self.rows + rows)

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values."""
        return {"rows": self.rows}


class RowSource(Source):
    """Rows that need no parsing, whose positions are the numbers of rows; `rows` is None for an iterator."""

    def __init__(self, rows: int | None) -> None:
        self._rows = rows
        self._rows_read = 0  # by the last reading

    @abstractmethod
    def _read(self, start: int) -> Generator[tuple[Batch, RowPosition]]:
        """Yield batches from a row on, each with the position behind it."""

    @property
    def files(self) -> tuple[str, ...]:
        """None: the data is in memory."""
        return ()

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory; an iterator can be read once."""
        return self._rows is not None

    @property
    def start(self) -> RowPosition:
        """The position of the first row."""
        return RowPosition()

    def position(self, saved: Mapping[str, Any]) -> RowPosition:
        """The position that `RowPosition.to_dict` saved."""
        rows = saved.get("rows")
        most = sys.maxsize if self._rows is None else self._rows
        if type(rows) is not int or not 0 <= rows <= most or set(saved) != {"rows"}:
            raise InvalidInput(f"a position needs a row from 0 to {most}, got {saved!r:.200}; start anew.")
        return RowPosition(rows)

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, RowPosition]]:
        """Batches from a position on, each with the position of its first row; no threads are needed."""
        if not isinstance(start, RowPosition | None):
            raise InvalidInput(
                f"start needs a row of this data, got {type(start).__name__}; pass one of its positions."
            )
        return self._read(0 if start is None else start.rows)

    def locate(self, position: Position) -> str:
        """The number of the row behind a position, counted from 0."""
        return f"{ORIGIN}: row {position.rows}"

    @property
    def bad_rows(self) -> int:
        """0: every row can be read."""
        return 0

    @property
    def first_bad(self) -> str | None:
        """None: every row can be read."""
        return None

    def check_before(self, position: Position) -> None:
        """Do nothing: `check_unchanged` compares all rows."""


@final
class MemorySource(RowSource):
    """Rows in memory; `ftprl.data.open` makes one of a CSR matrix or of `Batch` objects.

    `make_batches` makes the batches from a row on, numbered from that row, whenever they are read, so that a large
    matrix need not be copied as a whole.
    """

    def __init__(
        self,
        make_batches: Callable[[int], Iterable[Batch]],
        rows: int | None,
        dim: int,
        labels: LabelRule,
        options: ReadingOptions,
    ) -> None:
        super().__init__(rows)
        self._make_batches, self._dim, self._labels, self._options = make_batches, dim, labels, options

    def _read(self, start: int) -> Generator[tuple[Batch, RowPosition]]:
        for batch in self._make_batches(start):
            yield batch.replaced(y=signed(self._labels, batch.y)), RowPosition(batch.first_row)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows that cannot be learned are left out and counted."""
        return self._options.on_bad_row == "skip"

    def fingerprint(self) -> dict[str, Any] | None:
        """The number of rows and the SHA-256 of all of them; None for an iterator."""
        if not self.can_be_read_again:
            return None
        digest = BatchDigest()
        for batch, _ in self.read():
            digest.update(batch)
        return digest.result()

    def digest(self) -> None:
        """None: no digest is kept of rows as they are read."""
        return

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse rows that are not those of a fingerprint taken before."""
        if isinstance(fingerprint, Mapping) and fingerprint.get("rows") != self._rows:
            check_same_rows(fingerprint, {"rows": self._rows})  # no need to read them
        check_same_rows(fingerprint, self.fingerprint())

    def describe(self) -> Description:
        """What is read."""
        return Description(self._options.format or ARRAYS, (ORIGIN,), None, str(self._labels), self._dim, False)

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other data in memory in the same way."""
        options = self._options
        return {
            "format": options.format or ARRAYS,
            "dim": self._dim,
            "seed": options.seed,
            "intercept": False,
            "dtype": options.dtype,
            "loss": options.loss,
            "positive": options.positive_label,
            **({} if options.features is None else {"features": options.features}),
        }


def check_same_rows(saved: Any, now: Mapping[str, Any] | None) -> None:
    """Refuse rows whose fingerprint is not the one that was taken before."""
    if not isinstance(saved, Mapping) or now is None:
        raise InvalidInput(
            "resume= needs the data of the checkpoint, its files without a cache, got data in memory or a cache; pass"
            " the same files."
        )
    rows = saved.get("rows")
    if rows != now["rows"]:
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected {rows!r:.20} rows, got {now['rows']}; pass it."
        )
    if dict(saved) != dict(now):
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected the same {rows} rows, got others; pass them."
        )


def accepts(data: Any) -> bool:
    """Whether data is a `Batch` or a list of batches."""
    if isinstance(data, Batch):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and all(isinstance(batch, Batch) for batch in data)


def open_object(data: Batch | Sequence[Batch], options: ReadingOptions) -> MemorySource:
    """A `Batch`, or several, as a source; their own row numbers and origins are replaced."""
    batches = (data,) if isinstance(data, Batch) else tuple(data)
    options.refuse(("y", "weight"), " is for a matrix, got Batch objects, which have their own; drop it.")
    dim = max(2, 1 + max((int(batch.indices.max()) for batch in batches if len(batch.indices)), default=0))
    rule = label_rule([batch.y for batch in batches], options)

    def make(start: int) -> Iterator[Batch]:
        first = 0
        for batch in batches:
            skipped = min(max(0, start - first), len(batch))
            if skipped < len(batch):
                yield _as_read(batch, first, options.dtype)[skipped:]
            first += len(batch)

    return MemorySource(make, sum(len(batch) for batch in batches), checked_dim(dim, options), rule, options)


def _as_read(batch: Batch, first_row: int, dtype: str) -> Batch:
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and the learner refuses that
        values = batch.values.astype(dtype, copy=False)
    return batch.replaced(values=values, first_row=first_row, origin=batch.origin or ORIGIN)


def label_rule(labels: Sequence[Vector], options: ReadingOptions) -> LabelRule:
    """How labels in memory are read for a loss."""
    return of_array(options.loss, options.positive_label, labels)


def checked_dim(needed: int, options: ReadingOptions) -> int:
    """The number of cells: that of the options if it suffices, else as many as are needed."""
    options.refuse(_OF_FILES, " needs a table with named columns, got data in memory; drop it.")
    if options.intercept:
        raise InvalidInput("intercept= is for files, got data in memory; add a column of ones.")
    if options.dim is not None and options.dim < needed:
        raise InvalidInput(f"dim= needs to be at least {needed}, the number of columns, got {options.dim}; raise it.")
    return needed if options.dim is None else int(options.dim)
