"""`train`: from files to a model in one call, the same job as `ftprl train`."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ftprl import data as readers
from ftprl.atomic import check_apart, check_target
from ftprl.data.files import STDIN
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear.engine import LossTotals
from ftprl.linear.model import Model
from ftprl.runlog.events import Event, Writer
from ftprl.training.run_state import Course, Every
from ftprl.training.setup import fresh, given_options, resumed
from ftprl.training.trainer import Listener, Trainer
from ftprl.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ftprl.receipt.certificate import SparseCertificate

RECEIPT = False  # whether a receipt is kept unless it is said: docs/adr/0008-receipts.md

# A finished run may put its model where its checkpoint was, and a model may go on in its own file.
_MAY_BE_ONE = tuple(
    frozenset(pair)
    for pair in (
        ("output", "checkpoint"),
        ("output", "the model to resume"),
        ("checkpoint", "the model to resume"),
    )
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run: its model, what it told, and what its rows cost before they were learned.

    `only_class` is 1 or -1 when a loss with two classes never met the other one.
    """

    model: Model
    events: tuple[Event, ...]
    progressive: LossTotals
    holdout: LossTotals | None
    rows: int
    bad_rows: int
    first_bad: str | None
    only_class: int | None
    seconds: float
    path: str | None

    @property
    def certificate(self) -> SparseCertificate:
        """The receipt of all rows the model ever learned, against its own weights; needs `receipt=True`."""
        from ftprl.receipt.certificate import against_own
        from ftprl.receipt.provenance import provenance_of

        record = provenance_of(self.model)
        return against_own(self.model.engine, facts=None if record is None else record.facts)

    @property
    def progressive_loss(self) -> float:
        """The mean loss of the first pass, each row before it was learned."""
        return self.progressive.mean

    def plot(self) -> Figure:
        """The progressive loss and, where a receipt was kept, the regret under its bounds, as a Matplotlib figure."""
        from ftprl import draw
        from ftprl.runlog import plots
        from ftprl.runlog.reader import tell

        told = tell(self.events)
        panels = [panel for panel in (plots.loss(told), plots.regret(told)) if panel is not None]
        if not panels:
            raise InvalidInput("plot needs rows with a loss, got none; train on some.")
        return draw.figure(panels)

    def __str__(self) -> str:
        said = f"{self.rows} rows, progressive loss {self.progressive_loss:.6f}"
        if self.holdout is not None:
            said += f", holdout loss {self.holdout.mean:.6f}"
        return said + (f", {self.bad_rows} bad row{'s'[: self.bad_rows > 1]} left out" if self.bad_rows else "")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progressive_loss": self.progressive_loss,
            "weight": self.progressive.weight,
            "holdout_loss": None if self.holdout is None else self.holdout.mean,
            "seconds": self.seconds,
            "model": self.path,
        }


def train(
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    passes: int | None = None,
    holdout: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: str | int | None = None,
    events: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
    on_bad_row: str | None = None,
    max_row: int = 16_000_000,
    threads: int | None = None,
    retire: bool | None = None,
    receipt: bool | None = None,
    bits: int | None = None,
    **options: Any,
) -> Run:
    """Learn from files (or a `Source`) and return the `Run`; with `output` the model is saved there.

    Options are the fields of `Spec` and the arguments of `ftprl.data.open` that say how a file is read; `bits` is
    another way to say `dim=2**bits`. `scale` is "auto" unless it is given: several scales are learned at once, and
    those that a long run can do without are retired unless `retire` is off. With `receipt` the run keeps what
    `Run.certificate`, `ftprl certify` and `ftprl verify` need. `resume` goes on from a checkpoint in the
    same data, or from a finished model with more data, bit for bit as if it had never stopped.

    >>> train("clicks.csv.gz", label="click", output="clicks.ftprl").progressive_loss  # doctest: +SKIP
    """
    clock = time.monotonic()
    given = given_options(bits, options)
    targets = {"output": output, "checkpoint": checkpoint, "events": events}
    for name, path in targets.items():
        check_target(name, path)
    old = None if resume is None else Model.load(resume)
    kept = old.run["on_bad_row"] if old is not None and old.run is not None else "raise"
    more = {"on_bad_row": on_bad_row or kept, "max_row": max_row}
    if old is None:
        model, source = fresh(data, given, more, RECEIPT if receipt is None else receipt)
    else:
        model, source = resumed(old, data, given, more, receipt)
    read = {f"the data file {file}": file for file in source.files if file != STDIN}
    check_apart(targets, {**read, "the model to resume": resume}, _MAY_BE_ONE)
    course = _course(old, passes, holdout, retire, checkpoint, every, threads, source)
    model.check_size()
    heard: list[Event] = []
    trainer = Trainer(model, source, course)
    writer = None if events is None else Writer(events, append=trainer.standing.rows > 0)

    def tell(event: Event) -> None:
        if event["event"] in ("start", "resume"):
            event = {**event, **_settings(model, source, course)}
        if event["event"] != "tick":
            heard.append(event)
            if writer is not None:
                writer.write(event)
        if listener is not None:
            listener(event)

    trainer.tell = tell
    try:
        try:
            trainer.run()
            if output is not None:
                model.save(output)
            trainer.end()
        except (FtprlError, OSError, KeyboardInterrupt) as wrong:
            message = str(wrong) or type(wrong).__name__
            tell({"event": "error", "rows": trainer.standing.rows, "message": message})
            raise
    finally:
        if writer is not None:
            writer.close()
    return Run(
        model,
        tuple(heard),
        trainer.progressive,
        trainer.holdout if course.holdout else None,
        trainer.standing.rows,
        trainer.bad_rows,
        source.first_bad or trainer.standing.refusal,
        trainer.only_class,
        time.monotonic() - clock,
        None if output is None else os.fspath(output),
    )


def _course(
    old: Model | None,
    passes: int | None,
    holdout: int | None,
    retire: bool | None,
    checkpoint: str | os.PathLike[str] | None,
    every: str | int | None,
    threads: int | None,
    source: readers.Source,
) -> Course:
    run = old.run if old is not None else None
    if every is not None and checkpoint is None:
        raise InvalidInput(
            f"every says how often a checkpoint is written, got {every!r} without one; name a checkpoint."
        )
    if run is not None:  # what was not said again is as it was
        passes = run["passes"] if passes is None else passes
        holdout = run["holdout"] if holdout is None else holdout
        retire = run["retire"] if retire is None else retire
    elif passes is None:
        passes = 1
    if not source.can_be_read_again and (passes != 1 or run is not None):
        what = f"passes={passes} needs" if run is None else "resume needs"
        raise InvalidInput(
            f"{what} data that can be read again, got standard input or a pipe; save it to a file and train on that."
        )
    path = None if checkpoint is None else os.fspath(checkpoint)
    more = {} if every is None else {"every": Every.parse(every)}
    return Course(passes, holdout, path, threads=threads, retire=retire is not False, **more)


def _settings(model: Model, source: readers.Source, course: Course) -> dict[str, Any]:
    """What decides the run, as the first event tells it."""
    return {
        "version": __version__,
        "spec": model.engine.spec.to_dict(),
        "data": source.describe().to_dict(),
        "passes": course.passes,
        "holdout_every": course.holdout,
        "retire": course.retire,
        "receipt": model.engine.receipt,
    }
