"""What training and predicting need of data: a source of batches, whatever the rows come from."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final, runtime_checkable

from ftprl.data.batch import Batch
from ftprl.data.files import shown
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl.data.columns import ColumnPlan, ColumnProfile

# The kinds of columns, in the order of the core's codes.
KINDS = ("ignore", "label", "weight", "categorical", "numeric", "text", "boolean", "date", "timestamp", "bucket")
BESIDE = ("label", "weight")  # kinds that say something of the row and are no features


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
