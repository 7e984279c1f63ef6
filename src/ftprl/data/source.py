"""`Source`: rows as batches; positions between the rows, and digests by which data is recognised."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ftprl._core import text_fingerprint
from ftprl.data.batch import Batch
from ftprl.data.files import is_uri, shown
from ftprl.data.kinds import KINDS
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl.data.columns import ColumnPlan, ColumnProfile
    from ftprl.data.jobs import Parsed


@runtime_checkable
class Position(Protocol):
    """A place between two rows of a source, from which it can be read on; only the source knows what is in it."""

    @property
    def rows(self) -> int:
        """How many rows of the source come before it."""

    def after(self, rows: int) -> Position:
        """The position that many rows further on, within the batch that came with this position."""

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values, for a checkpoint; `Source.position` reads them."""


@runtime_checkable
class Source(Protocol):
    """Rows as batches, in a fixed order: text files, arrays in memory, or any class with these members.

    A class that derives from `Source` inherits `batches` and `take_left_out`.
    """

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that are read, in their order, "-" for standard input; none for data in memory."""

    @property
    def can_be_read_again(self) -> bool:
        """Whether `read` may be called more than once; not so for standard input and pipes."""

    @property
    def start(self) -> Position:
        """The position of the first row."""

    def position(self, saved: Mapping[str, Any]) -> Position:
        """The position that `Position.to_dict` saved; raises InvalidInput for values that no position has."""

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, Position]]:
        """Batches from a position on (by default from the first row), each with the position of its first row.

        `threads` threads parse ahead of the caller: 0 for none, None for as many as the processors are good for. The
        rows do not depend on it. Without `digest` the caller needs neither `digest()` nor `Position.to_dict()`, and
        what only they need may be left out.
        """

    def batches(self, start_row: int = 0) -> Iterator[Batch]:
        """All batches from row `start_row` on, read by the caller's own thread."""
        if start_row < 0:
            raise InvalidInput(f"start_row needs a number of at least 0, got {start_row}; count rows from 0.")
        return (
            batch[max(0, start_row - batch.first_row) :]
            for batch, _ in self.read(threads=0)
            if batch.first_row + len(batch) > start_row
        )

    def locate(self, position: Position) -> str:
        """Where the row behind a position is, for a message: its file and line."""

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows that cannot be read are left out and counted; otherwise the first of them raises BadFormat."""

    @property
    def bad_rows(self) -> int:
        """How many rows were left out, up to where the last call of `read` has come."""

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""

    def take_left_out(self) -> dict[int, int]:
        """How many rows were left out since the last call, by the number of good rows that come before them.

        It is called after each batch and at the end, and may be ahead of the batch. A reading that starts at a
        position may also give rows before it.
        """
        return {}

    def fingerprint(self) -> Any:
        """JSON values by which a resumed run recognises its data; None for data that cannot be read again."""

    def check_unchanged(self, fingerprint: Any) -> None:
        """Raise InvalidInput unless the data is that of a fingerprint taken before."""

    def check_before(self, position: Position) -> None:
        """Raise InvalidInput unless everything before a position is as it was when the position was made."""

    def digest(self) -> Any:
        """JSON values that identify all that was read, from the first row to where the last call of `read` has come.

        Two passes over the same data have the same digest. None where data cannot change unnoticed.
        """

    def describe(self) -> Description:
        """What is read, for people and for the run log."""

    def to_dict(self) -> dict[str, Any]:
        """The settings of `ftprl.data.open`, as JSON values, with which other data is read in the same way."""


@final
class Description(NamedTuple):
    """What is read: the files, their format, what each column is for, what the labels become."""

    format: str
    files: tuple[str, ...]
    columns: Mapping[str, str] | None
    labels: str
    dim: int
    intercept: bool
    missing: str | None = None  # what a missing value of a column becomes
    profile: Sequence[ColumnProfile] = ()  # what the first rows say of each column

    def with_plan(self, plan: ColumnPlan | None) -> Description:
        """The description of data with columns that are read by a plan."""
        if plan is None:
            return self
        return self._replace(columns=plan.kinds, missing=plan.missing, profile=plan.profile)

    def __str__(self) -> str:
        some = ", ".join(self.files[:3]) + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")
        lines = [f"{'format':<12} {self.format}", f"{'files':<12} {some}", f"{'labels':<12} {self.labels}"]
        lines.append(f"{'table':<12} {self.dim} cells{', the last one for the intercept' if self.intercept else ''}")
        for kind in KINDS if self.columns else ():
            names = [shown(name) for name, k in (self.columns or {}).items() if k == kind]
            if names:
                lines.append(f"{kind:<12} {', '.join(names)}")
        if self.missing is not None:
            lines.append(f"{'missing':<12} {self.missing}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON values."""
        return {
            "format": self.format,
            "files": list(self.files),
            "columns": None if self.columns is None else dict(self.columns),
            "labels": self.labels,
            "dim": self.dim,
            "intercept": self.intercept,
            "missing": self.missing,
            "profile": [column.to_dict() for column in self.profile],
        }


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place between two rows: `skip` good rows behind the begin of a job.

    The job begins at `offset`: a byte of the decompressed text of a file, at `line`, or a row of part number `part` of
    a file or of data in memory. `rows` rows come before the place; `bad` rows were left out before the job, the first
    as `first_bad` says; `negative` is the label that counts as -1 in the rows before, 1 when there was none. `digest`
    is that of the rows before the job, None where a reading made none, and `end` that of all rows up to the job's end.
    """

    file: int = 0
    part: int = 0
    offset: int = 0
    line: int = 1
    skip: int = 0
    rows: int = 0
    bad: int = 0
    negative: float = 1.0
    first_bad: str | None = None
    digest: RowDigest | None = None
    end: RowDigest | None = None

    def after(self, rows: int) -> Place:
        """Return the place that many rows further on, in the same job."""
        return replace(self, skip=self.skip + rows, rows=self.rows + rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the place as JSON values."""
        values = {name: getattr(self, name) for name in (*_COUNTS, "negative", "first_bad")}
        digests = {name: getattr(self, name) for name in ("digest", "end")}
        return {**values, **{name: None if value is None else value.to_list() for name, value in digests.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Place:
        """Return the place that `to_dict` saved."""
        counts = {name: saved.get(name) for name in _COUNTS}
        good = all(type(count) is int and count >= 0 for count in counts.values())
        first = saved.get("first_bad")
        if not good or saved.get("negative") not in (-1.0, 0.0, 1.0) or not isinstance(first, str | None):
            raise InvalidInput(f"a position needs counts of at least 0, got {saved!r:.200}; start anew.")
        kept = {name: saved.get(name) for name in ("digest", "end")}
        digests = {name: None if one is None else RowDigest(*whole_numbers(one, 3)) for name, one in kept.items()}
        return cls(**counts, **digests, negative=float(saved["negative"]), first_bad=first)  # type: ignore[arg-type]


_COUNTS = ("file", "part", "offset", "line", "skip", "rows", "bad")


# ---- sources ----
@final
class State:
    """How far a reading has come."""

    def __init__(self, start: Place) -> None:
        self.start, self.skip, self.rows, self.line = start, start.skip, start.rows - start.skip, start.line
        self.bad, self.first_bad, self.negative, self.digest = start.bad, start.first_bad, start.negative, start.digest
        self._left_out: dict[int, int] = {}  # how many rows, by how many good rows come before them

    def batches_of(self, parsed: Parsed) -> Iterator[tuple[Batch, Place]]:
        """Yield the rows of a job behind those that are skipped, numbered and with their places."""
        job = parsed.job
        self.line = self.line if job.line is None else job.line
        before = self.digest
        for batch in parsed.batches if before is not None else ():
            self.digest = None if self.digest is None else self.digest.plus(batch)
        here = Place(
            file=job.file,
            part=job.part,
            offset=job.offset,
            line=self.line,
            rows=self.rows,
            bad=self.bad,
            negative=self.negative,
            first_bad=self.first_bad,
            digest=before,
            end=self.digest,
        )
        self.bad += parsed.bad
        # What nobody took of rows before this job is dropped.
        self._left_out = {row: count for row, count in self._left_out.items() if row >= here.rows}
        for row, count in parsed.left_out.items():
            self._left_out[here.rows + row] = self._left_out.get(here.rows + row, 0) + count
        if self.first_bad is None and parsed.first_bad is not None:
            at, why = parsed.first_bad
            self.first_bad = f"{job.where(self.line + at)}: {why}"
        if parsed.negative != 1.0:
            self.negative = parsed.negative
        for batch in parsed.batches:
            skipped = min(self.skip, len(batch))
            if skipped < len(batch):
                yield batch.numbered(here.rows, skipped), here.after(skipped)
            here, self.skip = here.after(len(batch)), self.skip - skipped
        self.rows = here.rows

    def take_left_out(self) -> dict[int, int]:
        """Return the rows left out since the last call."""
        counts, self._left_out = self._left_out, {}
        return counts


_END_BYTES = 65_536
_MODULUS = 2**64  # of the fingerprints that the core makes of text
_FACTOR = 0x9E3779B97F4A7C15
_FACTORS = tuple(pow(_FACTOR, i, _MODULUS) for i in range(5))  # of the columns of a batch


@final
class BatchDigest:
    """The SHA-256 of rows, the same however they are cut into batches: of the five columns, each by itself.

    Lengths as int64, indices as uint32, values as they are, labels and weights as float64, all little-endian.
    """

    def __init__(self) -> None:
        import hashlib  # loads OpenSSL: most readings make no such digest

        self._new = hashlib.sha256
        self._columns = [hashlib.sha256() for _ in range(5)]
        self.rows = 0

    def update(self, batch: Batch) -> None:
        """Add some rows."""
        lengths = np.diff(batch.indptr)
        for digest, column in zip(
            self._columns, (lengths, batch.indices, batch.values, batch.y, batch.weight), strict=True
        ):
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            digest.update(little.data if little.size else b"")
        self.rows += len(batch)

    def result(self) -> dict[str, Any]:
        """One digest of the five, and the number of rows."""
        whole = self._new("".join(digest.hexdigest() for digest in self._columns).encode())
        return {"rows": self.rows, "sha256": whole.hexdigest()}


@final
class RowDigest(NamedTuple):
    """A quick digest of rows, the same however they are cut into batches.

    It notices data that has changed, but is no proof against someone who makes up two streams with the same digest.
    """

    rows: int = 0
    entries: int = 0
    fingerprint: int = 0

    def plus(self, batch: Batch) -> RowDigest:
        """With some more rows."""
        total, entries = self.fingerprint, len(batch.indices)
        columns: tuple[tuple[NDArray[Any], int], ...] = (
            (np.diff(batch.indptr), self.rows),
            (batch.indices, self.entries),
            (batch.values, self.entries),
            (batch.y, self.rows),
            (batch.weight, self.rows),
        )
        for factor, (column, before) in zip(_FACTORS, columns, strict=True):
            size = column.nbytes
            view = np.ascontiguousarray(column).data.cast("B") if size else memoryview(b"")
            total += factor * text_fingerprint(view, 0, size, before * column.itemsize)
        return RowDigest(self.rows + len(batch), self.entries + entries, total % _MODULUS)

    def to_list(self) -> list[int]:
        """As JSON values."""
        return list(self)


def whole_numbers(saved: Any, count: int) -> list[int]:
    """The numbers of a digest as they were saved, checked."""
    if not isinstance(saved, list) or len(saved) != count or not all(_is_64_bit(number) for number in saved):
        raise InvalidInput(f"a digest needs {count} numbers from 0 to 2**64 - 1, got {saved!r:.100}; start anew.")
    return saved


def _is_64_bit(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MODULUS


# ---- files ----
def ends_of(file: str) -> tuple[int, str]:
    """The size of a file, and the SHA-256 of its first and last 64 KiB."""
    import hashlib  # loads OpenSSL: a run without checkpoints reads before it needs it

    if is_uri(file):
        from ftprl.data import files

        opened: Any = files.open_file(file)
    else:
        opened = open(file, "rb")  # noqa: SIM115
    with opened as raw:
        size = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        ends = raw.read(_END_BYTES)
        raw.seek(max(0, size - _END_BYTES))
        return size, hashlib.sha256(ends + raw.read(_END_BYTES)).hexdigest()


def check_same_files(files: Sequence[str], now: Sequence[tuple[int, str]] | None, saved: Any) -> None:
    """Refuse files that are not those a checkpoint was made with."""
    if now is None or saved is None:
        raise InvalidInput(
            "resume= needs data that can be read again, got standard input or a pipe; save it to a file and use that."
        )
    if isinstance(saved, Mapping):
        raise InvalidInput(
            "resume= needs the data of the checkpoint, data in memory or a cache, got files; pass cache= too if it was"
            " used.",
            option="cache",
        )
    then = [tuple(entry) for entry in saved]
    if list(now) == then:
        return
    difference = f"{len(then)} files, got {len(now)}"
    if len(now) == len(then):
        which = next(i for i in range(len(now)) if now[i] != then[i])
        difference = f"{then[which][0]} bytes in {shown(files[which])}, got {now[which][0]}"
        if then[which][0] == now[which][0]:
            difference = f"{shown(files[which])} as it was, got other bytes"
    raise InvalidInput(f"resume= needs the data of the checkpoint, expected {difference}; pass the same files.")


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
