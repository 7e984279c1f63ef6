"""How a run goes over its data: passes, held-out rows, checkpoints, threads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from ftprl.data import Source
from ftprl.data.order import WAITING
from ftprl.errors import InvalidInput
from ftprl.options.checks import check_values
from ftprl.training.passes import HOLDOUT

_KEPT = ("passes", "holdout", "delay", "order", "waiting", "order_seed")  # settings of a run that its checkpoint has
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
class RunSettings(NamedTuple):
    """The settings of one run that are none of its model: how its data is read and kept safe."""

    passes: int = 1
    holdout: int | None = None
    checkpoint: str | None = None
    every: CheckpointInterval = CheckpointInterval(seconds=30.0)
    threads: int | None = None
    predictions: str | None = None
    delay: int | None = None
    order: str = "random"
    waiting: int = WAITING
    order_seed: int = 0
    engine: str = "local"
    compact: bool = False

    @property
    def needs_digest(self) -> bool:
        """Whether the data is compared with a digest of it later: in another pass, or when a checkpoint is resumed."""
        return self.passes > 1 or self.checkpoint is not None

    @property
    def order_of_rows(self) -> dict[str, Any]:
        """The order of the rows, as a model and its receipt keep it."""
        if self.order == "given":
            return {"order": "given", "order_seed": self.order_seed}
        return {"order": self.order, "waiting": self.waiting, "order_seed": self.order_seed}

    @property
    def checkpoint_rows(self) -> int | None:
        """After how many rows a checkpoint is due; None where there is none or where the clock decides."""
        return None if self.checkpoint is None else self.every.rows

    @classmethod
    def of(
        cls,
        arguments: Mapping[str, Any],
        checkpoint: Mapping[str, Any] | None,
        *,
        receipt: bool,
        latest: Mapping[str, Any] | None = None,
    ) -> RunSettings:
        """Return the settings of a run; those that were not passed again are as in the checkpoint it resumes.

        `latest` has the order of the rows in the last run of the model. Predictions are written in the order of the
        data, and labels that arrive late have an order of their own, so the rows of such a run keep theirs.
        """
        passed = {name: arguments[name] for name in cls._fields if arguments[name] is not None}
        check_values(passed)
        if "every" in passed:
            passed["every"] = CheckpointInterval.parse(passed["every"])
        passed |= {name: os.fspath(passed[name]) for name in ("checkpoint", "predictions") if name in passed}
        kept = {} if checkpoint is None else {name: checkpoint[name] for name in _KEPT if name in checkpoint}
        if checkpoint is not None:
            kept.setdefault("order", "given")  # the only one of earlier versions
        elif latest is not None:
            kept = dict(latest)
        if not {"delay", "predictions"}.isdisjoint(name for name in passed if passed[name]):
            kept["order"] = "given"
        if checkpoint is None and not receipt and passed.get("passes") not in (None, 1):
            kept["holdout"] = HOLDOUT  # to choose the best pass by
        settings = cls(**{**kept, **passed})
        return settings._replace(holdout=settings.holdout or None)

    def check_source(self, source: Source, *, is_resumed: bool) -> None:
        """Refuse data that can be read only once, where it is read again."""
        if source.can_be_read_again or (self.passes == 1 and not is_resumed):
            return
        what = "resume=" if is_resumed else f"passes={self.passes}"
        once = (
            "standard input or a pipe; save it to a file" if source.files else "an iterator; put its data into a list"
        )
        raise InvalidInput(
            f"{what} needs data that can be read again, got {once} and train on that.", option=("passes", "resume")
        )
