"""`train`: from files to a model in one call, the same job as `ftprl train`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, nullcontext
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import ArrayLike

from ftprl import data as readers
from ftprl.atomic import check_apart, check_target, reserved
from ftprl.cluster import reading
from ftprl.data.files import STDIN, STDOUT
from ftprl.data.labels import check_no_missing
from ftprl.errors import FtprlError, Interrupted, InvalidInput, warn
from ftprl.options import BY_NAME, TrainOptions
from ftprl.options.checks import check_together
from ftprl.options.keywords import complete, has_keywords
from ftprl.options.keywords import lines as option_lines
from ftprl.options.option import Path
from ftprl.training.setup import model_options, new_model, resumed_model, set_admission

# All else is imported in the function: most of what imports this does not train.
if TYPE_CHECKING:
    from ftprl.linear.model import Model
    from ftprl.training.event_log import EventLog
    from ftprl.training.run import Run
    from ftprl.training.trainer import Trainer

_NAMED_HERE = (
    *("resume", "receipt", "classes", "names", "admit", "cache", "events"),
    *("output", "checkpoint", "predictions"),
)
RECEIPT = False  # whether a receipt is kept by default: docs/adr/0008-receipts.md

_RESUMED = "the model to resume"
# A finished run may put its model where its checkpoint was, and a model may be resumed into its own file.
_MAY_BE_ONE = tuple(map(frozenset, (("output=", "checkpoint="), ("output=", _RESUMED), ("checkpoint=", _RESUMED))))
_KEYWORDS = dict.fromkeys(BY_NAME)


@has_keywords(_KEYWORDS)
def train(data: Any, y: ArrayLike | None = None, **options: Unpack[TrainOptions]) -> Run:
    """Learn a linear model from files or data in memory; each row is predicted before it is learned.

    `data` is a path, a folder, a pattern, several of these, "-" for standard input; a data frame (pandas, Polars,
    pyarrow), dicts, a NumPy array, a SciPy matrix, or an iterator of these; a Ray dataset; or a `Source` of
    `ftprl.data.open`.
    `y` has the labels of data in memory, one per row; those of a frame or of dicts may also be a column, `label`. An
    option that is None has its default or, with `resume`, the value of the resumed model. docs/options.md lists all
    options, and so does `help(ftprl.train)`.

    >>> train("clicks.csv.gz", label="click", output="clicks.ftprl").progressive_loss  # doctest: +SKIP

    Ctrl-C, and SIGTERM where the program handles it, stop a run after a batch: what was learned is saved to
    `checkpoint`, and `ftprl.errors.Interrupted`, a `KeyboardInterrupt`, is raised. When a checkpoint cannot be written,
    for example because the disk is full, the last one stays, the run continues, and the listener gets the event
    `checkpoint_failed`; without a listener there is a warning. `Run.failed_checkpoints` counts them.

    What the command line prints as warnings, such as of columns that look like identifiers, is an
    `ftprl.errors.FtprlWarning` each, and in `Run.warnings`.
    """
    run = trained(data, y, **options)
    for text in run.warnings:
        warn(text)
    return run


train.__doc__ = f"{train.__doc__}\n{option_lines()}"


def trained(data: Any, y: ArrayLike | None = None, **options: Unpack[TrainOptions]) -> Run:
    """Train as `train` does, and leave the warnings of the run to the caller."""
    clock = time.monotonic()
    arguments = {"data": data, "y": y, **complete("train", _KEYWORDS, options)}
    resume, receipt, classes, names, admit, cache, events, output, checkpoint, predictions = (
        arguments[name] for name in _NAMED_HERE
    )
    if y is not None:
        check_no_missing(y)
    lines = None if predictions in (None, STDOUT) else predictions
    targets = {"output=": output, "checkpoint=": checkpoint, "predictions=": lines, "cache=": cache, "events=": events}
    for name, path in targets.items():
        check_target(name, path)
    # Before the model is read: it may be one of them.
    with reserved({name: path for name, path in targets.items() if name != "events="}), ExitStack() as connections:
        if resume is None:
            old = None
            data = readers.as_data(data)
            model, source = new_model(
                data,
                model_options(arguments),
                RECEIPT if receipt is None else receipt,
                names,
                classes,
            )
        else:
            from ftprl.linear.model import Model

            old = Model.load(resume)
            data = readers.as_data(data)
            model, source = resumed_model(old, data, model_options(arguments), receipt, names, classes)
        from ftprl.training.cautions import few_classes, of_known_data
        from ftprl.training.event_log import EventLog, settings
        from ftprl.training.passes import best_pass
        from ftprl.training.run import Run
        from ftprl.training.run_settings import RunSettings
        from ftprl.training.trainer import Trainer

        spec, saved = model.spec, None if old is None else old.checkpoint
        latest = None if old is None else old.history.get("order")
        run_settings = RunSettings.of(arguments, saved, receipt=model.receipt, latest=latest)
        check_together(
            {
                **{name: getattr(spec, name, value) for name, value in arguments.items()},
                **{"passes": run_settings.passes, "delay": run_settings.delay, "receipt": model.receipt},
            }
        )
        _check_compact(arguments)
        set_admission(model, admit, is_new=old is None)
        files: dict[str, Any] = {f"the data file {file}": file for file in source.files if file != STDIN}
        files |= {"standard input": 0} if STDIN in source.files else {}
        check_apart(targets, {**files, _RESUMED: resume}, _MAY_BE_ONE)
        cluster = connections.enter_context(reading(run_settings.engine, run_settings.threads, source))
        if cache is not None:
            from ftprl.data.cache import cached  # most runs do without

            kept = "all" if model.spec.bounds else model.names is not None
            source = cached(source, os.fspath(cache), run_settings.threads, names=kept)
        run_settings.check_source(source, is_resumed=saved is not None)
        model.check_size()
        log = EventLog(events, arguments["listener"], settings(model, source, run_settings))
        trainer = Trainer(model, source, run_settings, log.add)
        run = trainer.run
        log.progressive = lambda: run.progressive
        log.reading = None if cluster is None else cluster.summary
        saved_model = _run(trainer, log, output, compact=bool(arguments["compact"]))
    state = run.state
    is_binary = model.spec.scalar_loss().binary
    only_class = state.only_class if is_binary else None
    return Run(
        model=saved_model,
        events=tuple(log.events),
        progressive=run.progressive,
        holdout=run.holdout if run_settings.holdout else None,
        reviews=tuple(state.reviews),
        best_pass=best_pass(state.reviews),
        rows=state.rows,
        bad_rows=run.bad_rows,
        first_bad=source.first_bad or state.first_refusal,
        only_class=only_class,
        failed_checkpoints=trainer.checkpoints.failed,
        checkpoint_error=trainer.checkpoints.first_error,
        seconds=time.monotonic() - clock,
        path=None if output is None else os.fspath(output),
        confidence=state.monitor.confidence(is_random=run.is_random),
        residuals=state.monitor.residuals(),
        order=run_settings.order_of_rows,
        check=state.check,
        drawn=run.last_drawn,
        cautions=(
            *run.cautions(),
            *(few_classes(model) if classes is None and resume is None else ()),
            *of_known_data(model.provenance, source.files),
        ),
    )


def _check_compact(arguments: Mapping[str, Any]) -> None:
    """Refuse a compact model in the file of the checkpoint, which could not be resumed from it."""
    compact, output, checkpoint = (arguments[name] for name in ("compact", "output", "checkpoint"))
    if compact and None not in (output, checkpoint) and os.path.realpath(output) == os.path.realpath(checkpoint):
        raise InvalidInput(
            "compact= saves a model that cannot be resumed, got the same file for output= and checkpoint=; name two"
            " files.",
            option=("compact", "output", "checkpoint"),
        )


def _run(trainer: Trainer, log: EventLog, output: Path | None, *, compact: bool) -> Model:
    """Train and save; what goes wrong is logged too. A signal that arrives after the last row waits for the end."""
    with trainer.signals, closing(trainer.predictions) if trainer.predictions else nullcontext():
        trainer.signals.hold()  # once the log exists, an interrupt is that of a run, which says what it keeps
        log.open(append=trainer.run.state.rows > 0)
        try:
            return _train_and_save(trainer, output, compact=compact)
        except (FtprlError, OSError) as wrong:
            log.add({"event": "error", "rows": trainer.run.state.rows, "message": str(wrong) or type(wrong).__name__})
            raise
        finally:
            log.close()


def _train_and_save(trainer: Trainer, output: Path | None, *, compact: bool) -> Model:
    """Train; returns the model that was saved, which is that of the run or what predictions need of it."""
    try:
        trainer.learn()
        model = trainer.run.model.compact() if compact else trainer.run.model
        if output is not None:
            model.save(output)
        if trainer.predictions is not None:
            trainer.predictions.complete()
        trainer.end()
        trainer.signals.deliver()
        return model
    except KeyboardInterrupt as interrupt:
        raise (_complete(trainer, output, interrupt) if trainer.has_ended else trainer.interrupted(interrupt)) from None


def _complete(trainer: Trainer, output: Path | None, interrupt: KeyboardInterrupt) -> Interrupted:
    """The error of a signal that came when nothing was left to do but to write the model."""
    path = "" if output is None else f"; the model is complete: {os.fspath(output)}"
    number = getattr(interrupt, "signal", None) or trainer.signals.received or 2
    return Interrupted(f"interrupted after the last row{path}", signal=number, rows=trainer.run.state.rows)
