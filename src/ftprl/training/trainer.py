"""One run over the data: predict, pay and learn row by row, with progress, held-out rows, passes and checkpoints.

Everything that a run tells or keeps happens at row numbers, so that neither the cutting into batches nor the number of
threads can be seen in it; only checkpoints may go by the clock, and they leave no trace in the model.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ftprl._core import trim
from ftprl.data import Batch, Position, Source
from ftprl.data.files import shown
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear.engine import LossTotals, RowRefused
from ftprl.linear.model import Model, Vector
from ftprl.runlog.events import Event
from ftprl.training.run_state import Course, History, Standing, Sums, added, between

if TYPE_CHECKING:
    from ftprl.receipt.recorder import Keeper

Listener = Callable[[Event], None]


def next_stop(rows: int) -> int:
    """The next row number after which progress is told: the whole parts of 2^(k/4)."""
    k = max(0, 4 * (rows.bit_length() - 1) - 1) if rows else 0
    while (stop := int(2.0 ** (k / 4))) <= rows:
        k += 1
    return stop


Mark = tuple[int, str]  # the size of a file, and a digest of its first and last bytes

_ENDS = 65_536


def marks(source: Source) -> list[Mark] | None:
    """How a run knows its files again; None for what cannot be read again."""
    return [_mark(file) for file in source.files] if source.can_be_read_again else None


def _mark(file: str) -> Mark:
    with open(file, "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        ends = raw.read(_ENDS)
        raw.seek(max(0, size - _ENDS))
        return size, hashlib.sha256(ends + raw.read(_ENDS)).hexdigest()


def same_data(files: Sequence[str], now: Sequence[Mark] | None, kept: Sequence[Sequence[Any]] | None) -> None:
    """Refuse files that are not those a checkpoint was made with."""
    if now is None or kept is None:
        raise InvalidInput(
            "resume needs data that can be read again, got standard input or a pipe; save it to a file and use that."
        )
    then = [tuple(mark) for mark in kept]
    if list(now) == then:
        return
    told = f"{len(then)} files, got {len(now)}"
    if len(now) == len(then):
        which = next(i for i in range(len(now)) if now[i] != then[i])
        told = f"{then[which][0]} bytes in {shown(files[which])}, got {now[which][0]}"
        if then[which][0] == now[which][0]:
            told = f"{shown(files[which])} as it was, got other bytes"
    raise InvalidInput(f"a checkpoint needs the data it was made with, expected {told}; pass the same files.")


def _keeper(model: Model, source: Source) -> Keeper | None:
    if not model.engine.receipt:
        return None
    from ftprl.receipt.recorder import Keeper  # what only receipts need

    return Keeper(model, source)


@final
class Trainer:
    """A model on its way through a source; `run` takes it to the end."""

    def __init__(self, model: Model, source: Source, course: Course) -> None:
        self.model, self.source, self.course = model, source, course
        model.engine.retire = course.retire
        self.tell: Listener = lambda event: None
        self.before = History.from_dict(model.history)
        self._marks = marks(source)
        now = self._tallies()
        if model.run is None:
            self.standing = Standing(began=now, pass_began=now, held=self.before.holdout)
        else:
            self.standing = self._resumed(model.run)
            model.run = None
        self._last = now
        self._score = np.full(1, np.nan)  # of the row that is shown
        self._losses = np.empty(0)
        self._keeper = _keeper(model, source)
        self._clock = self._saved = time.monotonic()
        self._current: Batch | None = None

    def _tallies(self) -> Sums:
        loss, weight, rows = self.model.engine.tallies[:3].tolist()
        return loss, weight, int(rows)

    # ---- where it stands ----

    def _resumed(self, run: Mapping[str, Any]) -> Standing:
        """The standing of a checkpoint, if it fits the course and the files."""
        for name in ("passes", "holdout", "retire"):
            now, then = getattr(self.course, name), run[name]
            if now != then:
                raise InvalidInput(
                    f"{name} needs to be what the checkpoint was made with, got {now} instead of {then}; keep it."
                )
        same_data(self.source.files, self._marks, run["marks"])
        try:
            return Standing.from_dict(run["standing"])
        except (KeyError, TypeError, ValueError) as wrong:
            raise BadModel(f"a checkpoint needs a place in the data, got {wrong}; start anew.") from None

    def save_checkpoint(self) -> None:
        """Keep the model and where the run stands."""
        assert self.course.checkpoint is not None
        self.model.run = {
            "holdout": self.course.holdout,
            "passes": self.course.passes,
            "retire": self.course.retire,
            "marks": self._marks,
            "on_bad_row": "skip" if self.source.skips_bad_rows else "raise",
            "standing": self.standing.to_dict(),
        }
        if self._keeper is not None:
            self.model.provenance = self._keeper.record.to_dict()
        try:
            self.model.save(self.course.checkpoint)
        finally:
            self.model.run = None
        self._saved = time.monotonic()
        self._say("checkpoint", path=self.course.checkpoint)

    # ---- the run ----

    def run(self) -> History:
        """Learn all that is left; returns what the model has read, which is stored in it too."""
        self._say("resume" if self.standing.rows else "start")
        if self._keeper is not None:
            self._keeper.start()
        try:
            while self.standing.passed < self.course.passes:
                self._pass()
            trim()  # what comes now needs memory of its own
            history = self._finish()
        except BaseException:
            if self._keeper is not None:
                self._keeper.close()
            raise
        self.model.history = history.to_dict()
        if self._keeper is not None:
            course = self.course
            self._keeper.finish(
                passes=course.passes,
                holdout=course.holdout,
                retire=course.retire,
                rows=self.standing.rows,
                bad_rows=self.bad_rows,
            )
        return history

    def _finish(self) -> History:
        """What the model has read; refuses a run that learned nothing."""
        s, progressive = self.standing, self.progressive
        if progressive.rows == 0 and s.held == self.before.holdout:
            raise InvalidInput(
                f"train needs rows with a label and a weight above 0, got none in {s.rows} rows; check the label."
            )
        if s.classes == 1 and self.model.reading.get("positive") is not None:
            raise InvalidInput(
                f"positive needs a label of the data, got {self.model.reading['positive']!r}, which no row has; fix it."
            )
        same = self.before.progressive == s.began
        first = s.progressive if same and s.progressive is not None else added(self.before.progressive, progressive)
        return History(
            self.before.rows + s.rows // self.course.passes,
            self.before.bad_rows + self.bad_rows,
            first,
            s.held,
        )

    def end(self) -> None:
        """Say that all is done."""
        self._say("end", bad_rows=self.bad_rows, **({} if self._keeper is None else self._keeper.tell_all()))

    @property
    def only_class(self) -> int | None:
        """The label of every row, 1 or -1, when a loss with two classes met one of them only."""
        binary = self.model.engine.spec.scalar_loss().binary
        return {1: -1, 2: 1}.get(self.standing.classes) if binary else None

    @property
    def bad_rows(self) -> int:
        """How many rows were left out in the present pass: by the reader, or because they cannot be learned."""
        return self.source.bad_rows + self.standing.refused

    @property
    def progressive(self) -> LossTotals:
        """Of the first pass of this run: each row before it was learned."""
        return between(self.standing.progressive or self._tallies(), self.standing.began)

    def _pass(self) -> None:
        for batch, place in self.source.read(self.standing.place, threads=self.course.threads):
            at = 0
            if self._keeper is not None:
                self._keeper.see(batch, self.standing.rows)
            while at < len(batch):
                ahead = self._until_stop()
                stop = min(len(batch), at + ahead)
                if stop - at == ahead:  # the last row before something is told is shown with its prediction
                    self._learn(batch[at : stop - 1])
                    self._learn(batch[stop - 1 : stop], self._score)
                else:
                    self._learn(batch[at:stop])
                self._advance(stop - at, place.after(stop))
                at = stop
            self._say("tick", **self._losses_now())
            if self._is_due_by_time():
                self.save_checkpoint()
        now, s = self._tallies(), self.standing
        self._say("pass", loss=between(now, s.pass_began).mean, holdout=self.holdout.mean)
        last = s.passed + 1 == self.course.passes
        self.standing = replace(
            s,
            passed=s.passed + 1,
            place=Position(),
            pass_began=now,
            held=s.held if last else self.before.holdout,
            refused=s.refused if last else 0,
            progressive=s.progressive or now,
        )

    def _until_stop(self) -> int:
        rows = self.standing.rows
        stop = next_stop(rows)
        every = self.course.every.rows
        if self.course.checkpoint is not None and every is not None:
            stop = min(stop, (rows // every + 1) * every)
        return stop - rows

    def _advance(self, count: int, place: Position) -> None:
        self.standing = replace(self.standing, rows=self.standing.rows + count, place=place)
        rows, every = self.standing.rows, self.course.every.rows
        if rows == next_stop(rows - 1):
            self._progress()
        if self.course.checkpoint is not None and every is not None and rows % every == 0:
            self.save_checkpoint()

    def _is_due_by_time(self) -> bool:
        seconds = self.course.every.seconds
        due = self.course.checkpoint is not None and seconds is not None
        return due and time.monotonic() - self._saved >= (seconds or 0.0)

    # ---- rows ----

    def _learn(self, batch: Batch, score: Vector | None = None) -> None:
        """Learn the rows that are not held out; a row that cannot be learned is left out if bad rows are."""
        while len(batch):
            try:
                self._learn_all(batch, score)
                return
            except RowRefused as wrong:
                if not self.source.skips_bad_rows:
                    raise
                s = self.standing
                self.standing = replace(s, refused=s.refused + 1, refusal=s.refusal or str(wrong))
                at = wrong.row - batch.first_row
            if at:
                self._learn_all(batch[:at])
            batch = batch[at + 1 :]

    def _learn_all(self, batch: Batch, score: Vector | None = None) -> None:
        if self.course.holdout is None:
            self._learn_rows(batch, score, None)
        else:
            if len(self._losses) < len(batch):
                self._losses = np.empty(len(batch))
            every, losses = self.course.holdout, self._losses[: len(batch)]
            row = self.before.rows + batch.first_row
            held = np.arange(-(row + 1) % every, len(batch), every)
            weight = batch.weight.copy()
            weight[held] = 0.0
            self._learn_rows(replace(batch, weight=weight), score, losses)
            self._hold(losses[held], batch.weight[held])
        self._current = batch
        if self.standing.classes != 3:
            self._see_classes(batch)

    def _learn_rows(self, batch: Batch, score: Vector | None, losses: Vector | None) -> None:
        engine = self.model.engine
        before = engine.spec.retired
        engine.learn(batch, scores=score, losses=losses)
        if engine.spec.retired != before:
            self._say("retire", kept=list(engine.spec.scales), retired=list(engine.spec.retired))

    def _see_classes(self, batch: Batch) -> None:
        seen = self.standing.classes | int((batch.y < 0.0).any()) | 2 * int((batch.y > 0.0).any())
        if seen != self.standing.classes:
            self.standing = replace(self.standing, classes=seen)

    def _hold(self, losses: Vector, weights: Vector) -> None:
        loss, weight, rows = self.standing.held
        for value, importance in zip(losses.tolist(), weights.tolist(), strict=True):
            if importance > 0.0 and value == value:  # a row without a label has no loss
                loss, weight, rows = loss + importance * value, weight + importance, rows + 1
        self.standing = replace(self.standing, held=(loss, weight, rows))

    @property
    def holdout(self) -> LossTotals:
        """Of the rows held out in the present pass."""
        return between(self.standing.held, self.before.holdout)

    # ---- what it tells ----

    def _progress(self) -> None:
        """The mean loss so far, since the last time, and the row just met."""
        now, losses = self._tallies(), self._losses_now()
        self._last = now
        self._say(
            "progress",
            **losses,
            weight=now[1] - self.standing.began[1],
            pass_weight=now[1] - self.standing.pass_began[1],
            holdout=self.holdout.mean if self.course.holdout else None,
            **({} if self._keeper is None else self._keeper.tell(self.standing.rows)),
            **self._row(),
            **({} if self.model.engine.mixture is None else {"mixture": self.model.engine.mixture.to_dict()}),
        )

    def _losses_now(self) -> dict[str, float]:
        now = self._tallies()
        return {"loss": between(now, self.standing.pass_began).mean, "since": between(now, self._last).mean}

    def _row(self) -> dict[str, Any]:
        if self._current is None:
            return {}
        mean = float(self.model.mean(self._score)[0])
        row = self._current[-1:]
        return {"label": float(row.y[0]), "prediction": mean, "features": len(row.indices)}

    def _say(self, kind: str, **more: Any) -> None:
        s = self.standing
        number = min(s.passed + 1, self.course.passes)
        event: Event = {"event": kind, "rows": s.rows, "pass": number, "seconds": time.monotonic() - self._clock}
        self.tell({**event, **more})
