"""How a run goes over its data: passes, held-out rows, checkpoints, threads."""

from __future__ import annotations

from typing import NamedTuple, final

from ftprl import check
from ftprl.errors import InvalidInput


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


MOST_ROWS = 2**53  # a float counts up to here
MOST_THREADS = 1024
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@final
class CheckpointInterval(NamedTuple):
    """How often a checkpoint is written: after so many rows, or after so many seconds.

    >>> CheckpointInterval.parse("100000"), CheckpointInterval.parse("30s")
    (CheckpointInterval(rows=100000, seconds=None), CheckpointInterval(rows=None, seconds=30.0))
    """

    rows: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str | int) -> CheckpointInterval:
        """`100000` rows, or a time such as `30s`, `5m`, `1h`."""
        stripped = str(text).strip()
        number, unit = (stripped[:-1], stripped[-1]) if stripped[-1:] in _SECONDS else (stripped, "")
        try:
            if unit:
                seconds = float(number) * _SECONDS[unit]
                if 0 < seconds < float("inf"):
                    return cls(seconds=seconds)
            elif int(number) > 0:
                return cls(rows=int(number))
        except ValueError:
            pass
        raise InvalidInput(f"every= needs a number of rows or a time such as 30s, 5m or 1h, got {text!r}; pass one.")


@final
class RunOptions(NamedTuple):
    """The options of one run that are not settings of the model: they say how its data is read and kept safe."""

    passes: int = 1
    holdout: int | None = None
    checkpoint: str | None = None
    every: CheckpointInterval = CheckpointInterval(seconds=30.0)
    threads: int | None = None
    retire: bool = True
    predictions: str | None = None
    delay: int | None = None
    delay_memory: int | None = None

    def check(self) -> None:
        """Raise InvalidInput for an option that no run can have."""
        check.dimension("passes=", self.passes)
        if self.holdout not in (None, 0) and (not is_whole(self.holdout) or not 2 <= self.holdout <= MOST_ROWS):
            raise InvalidInput(
                f"holdout= needs a whole number from 2 to 2**53, or 0 for none, got {self.holdout};"
                " hold out every N-th row."
            )
        if self.threads is not None and (not isinstance(self.threads, int) or not 0 <= self.threads <= MOST_THREADS):
            raise InvalidInput(f"threads= needs a whole number from 0 to {MOST_THREADS}, got {self.threads!r}; pass 1.")
        if self.delay is not None and (not is_whole(self.delay) or not 0 <= self.delay <= MOST_ROWS):
            raise InvalidInput(
                f"delay= needs a number of rows from 0 to 2**53, got {self.delay!r}; pass after how many rows a label"
                " arrives."
            )

    @property
    def needs_digest(self) -> bool:
        """Whether the data is compared with a digest of it later: in another pass, or when a checkpoint is resumed."""
        return self.passes > 1 or self.checkpoint is not None

    @property
    def checkpoint_rows(self) -> int | None:
        """After how many rows a checkpoint is due; None where there is none or where the clock decides."""
        return None if self.checkpoint is None else self.every.rows


RUN = RunOptions._fields
