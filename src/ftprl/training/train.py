"""`train`: from files to a model in one call, the same job as `ftprl train`."""

from __future__ import annotations

import os
import time
from typing import Any, final

from ftprl import data as readers
from ftprl.atomic import check_apart, check_target
from ftprl.data.files import STDIN
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear.model import Model
from ftprl.runlog.events import Event, Writer
from ftprl.training.options import CheckpointInterval, RunOptions
from ftprl.training.run import Run
from ftprl.training.setup import new_model, resumed_model, settled_options
from ftprl.training.trainer import Listener, Trainer
from ftprl.version import __version__

RECEIPT = False  # whether a receipt is kept by default: docs/adr/0008-receipts.md

# A finished run may put its model where its checkpoint was, and a model may be resumed into its own file.
_MAY_BE_ONE = tuple(
    frozenset(pair)
    for pair in (
        ("output", "checkpoint"),
        ("output", "the model to resume"),
        ("checkpoint", "the model to resume"),
    )
)


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
    settled = settled_options(bits, options)
    targets = {"output": output, "checkpoint": checkpoint, "events": events}
    for name, path in targets.items():
        check_target(name, path)
    old = None if resume is None else Model.load(resume)
    kept = old.run["on_bad_row"] if old is not None and old.run is not None else "raise"
    reading = {"on_bad_row": on_bad_row or kept, "max_row": max_row}
    if old is None:
        model, source = new_model(data, settled, reading, RECEIPT if receipt is None else receipt)
    else:
        model, source = resumed_model(old, data, settled, reading, receipt)
    files = {f"the data file {file}": file for file in source.files if file != STDIN}
    check_apart(targets, {**files, "the model to resume": resume}, _MAY_BE_ONE)
    run_options = _run_options(old, passes, holdout, retire, checkpoint, every, threads, source)
    model.check_size()
    log = _EventLog(events, listener, _settings(model, source, run_options))
    trainer = Trainer(model, source, run_options, log.add)
    _run(trainer, log, output)
    only_class = trainer.state.only_class if model.engine.spec.scalar_loss().binary else None
    return Run(
        model=model,
        events=tuple(log.events),
        progressive=trainer.progressive,
        holdout=trainer.holdout if run_options.holdout else None,
        rows=trainer.state.rows,
        bad_rows=trainer.bad_rows,
        first_bad=source.first_bad or trainer.state.first_refusal,
        only_class=only_class,
        seconds=time.monotonic() - clock,
        path=None if output is None else os.fspath(output),
    )


def _run(trainer: Trainer, log: _EventLog, output: str | os.PathLike[str] | None) -> None:
    """Train and save; what goes wrong is logged too."""
    log.open(append=trainer.state.rows > 0)
    try:
        trainer.run()
        if output is not None:
            trainer.model.save(output)
        trainer.end()
    except (FtprlError, OSError, KeyboardInterrupt) as wrong:
        log.add({"event": "error", "rows": trainer.state.rows, "message": str(wrong) or type(wrong).__name__})
        raise
    finally:
        log.close()


@final
class _EventLog:
    """The events of a run: collected, written to a file, and passed on to the listener."""

    def __init__(
        self, path: str | os.PathLike[str] | None, listener: Listener | None, settings: dict[str, Any]
    ) -> None:
        self.events: list[Event] = []
        self._path, self._listener, self._settings = path, listener, settings
        self._writer: Writer | None = None

    def open(self, *, append: bool) -> None:
        """Open the file, if one was asked for."""
        self._writer = None if self._path is None else Writer(self._path, append=append)

    def add(self, event: Event) -> None:
        """An event: the first also has the settings of the run, ticks are for the listener alone."""
        if event["event"] in ("start", "resume"):
            event = {**event, **self._settings}
        if event["event"] != "tick":
            self.events.append(event)
            if self._writer is not None:
                self._writer.write(event)
        if self._listener is not None:
            self._listener(event)

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def _run_options(
    old: Model | None,
    passes: int | None,
    holdout: int | None,
    retire: bool | None,
    checkpoint: str | os.PathLike[str] | None,
    every: str | int | None,
    threads: int | None,
    source: readers.Source,
) -> RunOptions:
    run = old.run if old is not None else None
    if every is not None and checkpoint is None:
        raise InvalidInput(
            f"every says how often a checkpoint is written, got {every!r} without one; name a checkpoint."
        )
    if run is not None:  # what was not passed again is as it was
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
    interval = {} if every is None else {"every": CheckpointInterval.parse(every)}
    return RunOptions(passes, holdout, path, threads=threads, retire=retire is not False, **interval)


def _settings(model: Model, source: readers.Source, options: RunOptions) -> dict[str, Any]:
    """What decides the result of the run, for its first event."""
    return {
        "version": __version__,
        "spec": model.engine.spec.to_dict(),
        "data": source.describe().to_dict(),
        "passes": options.passes,
        "holdout_every": options.holdout,
        "retire": options.retire,
        "receipt": model.engine.receipt,
    }
