"""The options of one run, checked against its data, its model and each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ftprl import data as readers
from ftprl.errors import InvalidInput
from ftprl.linear.spec import Spec

# All else is imported in the functions, once the parsers have begun to read ahead (`ftprl.training.api`).
if TYPE_CHECKING:
    from ftprl.training.options import RunOptions

_KEPT = ("passes", "holdout", "retire", "delay")  # options of a run that its checkpoint has


def options_of_run(
    arguments: Mapping[str, Any],
    checkpoint: Mapping[str, Any] | None,
    source: readers.Source,
    spec: Spec,
    *,
    receipt: bool,
) -> RunOptions:
    """The options of this run; those that were not passed again are as in the checkpoint it resumes."""
    from ftprl.training.delay import parse_memory
    from ftprl.training.options import RUN, CheckpointInterval, RunOptions
    from ftprl.training.passes import HOLDOUT

    passed = {name: arguments[name] for name in RUN if arguments[name] is not None}
    if "every" in passed:
        if "checkpoint" not in passed:
            raise InvalidInput(
                f"every= is the checkpoint interval, got every={passed['every']!r} without a checkpoint;"
                " pass checkpoint= as well.",
                option=("every", "checkpoint"),
            )
        passed["every"] = CheckpointInterval.parse(passed["every"])
    passed |= {name: os.fspath(passed[name]) for name in ("checkpoint", "predictions") if name in passed}
    kept = {} if checkpoint is None else {name: checkpoint.get(name) for name in _KEPT}
    if not (kept or receipt) and passed.get("passes") not in (None, 1):
        kept = {"holdout": HOLDOUT}  # to choose the best pass by
    if "delay_memory" in passed:
        passed["delay_memory"] = parse_memory(passed["delay_memory"])
    options = RunOptions(**{**kept, **passed})
    options.check()
    _check_delay(options, source, spec, receipt=receipt)
    if options.holdout == 0:
        options = options._replace(holdout=None)
    if not source.can_be_read_again and (options.passes != 1 or checkpoint is not None):
        what = f"passes={options.passes}" if checkpoint is None else "resume="
        raise InvalidInput(
            f"{what} needs data that can be read again, got {_what_is_read_once(source)} and train on that.",
            option=("passes", "resume"),
        )
    return options


def _check_delay(options: RunOptions, source: readers.Source, spec: Spec, *, receipt: bool) -> None:
    """Refuse late labels where rows are learned several times, or where a receipt counts each at its prediction."""
    from ftprl.training.delay import has_delay_column

    name = "delay_column" if has_delay_column(source) else "delay"
    if options.delay is None and name == "delay":
        return
    if receipt:
        raise InvalidInput(
            f"{name}= learns rows later than they are predicted, which no receipt covers, got it with a receipt;"
            " drop one.",
            option=(name, "receipt"),
        )
    bounds, round_rows = spec.bounds, spec.round_rows
    if bounds:  # they hold from the row of a name on, and rows would be learned in another order
        raise InvalidInput(
            f"{name}= learns rows in another order than bounds= expects, got both; drop one.", option=(name, "bounds")
        )
    if round_rows > 1:
        raise InvalidInput(
            f"{name}= does not support rounds of several rows, got round_rows={round_rows}; drop one.",
            option=(name, "round_rows"),
        )
    if options.passes > 1:
        raise InvalidInput(
            f"{name}= is for one pass over a stream, got passes={options.passes}; drop one.", option=(name, "passes")
        )


def check_compact(arguments: Mapping[str, Any], *, receipt: bool) -> None:
    """Refuse a compact model where what it leaves out is asked for, or where its cells are not in this process."""
    compact, output, checkpoint = (arguments[name] for name in ("compact", "output", "checkpoint"))
    if compact not in (None, False, True):
        raise InvalidInput(f"compact= needs True or False, got {compact!r}; pass one.", option="compact")
    if not compact:
        return
    if receipt:
        raise InvalidInput(
            "compact= leaves out what certify needs, got a receipt as well; drop one, or make a compact copy of the"
            " model with ftprl compact.",
            option=("compact", "receipt"),
        )
    if arguments["servers"] is not None:
        raise InvalidInput(
            f"compact= needs the table in one process, got servers={arguments['servers']}; train without it, and make"
            " a compact copy of the model with ftprl compact.",
            option=("compact", "servers"),
        )
    if None not in (output, checkpoint) and os.path.realpath(output) == os.path.realpath(checkpoint):
        raise InvalidInput(
            "compact= saves a model that cannot be resumed, got the same file for output= and checkpoint=; name two"
            " files.",
            option=("compact", "output", "checkpoint"),
        )


def check_calibrate(options: RunOptions, source: readers.Source, calibrate: str) -> None:
    """Refuse calibration where a prediction is of a row that was learned before, or where its label arrives later."""
    if calibrate == "none":
        return
    if options.passes > 1:
        raise InvalidInput(
            f"calibrate= learns from predictions of rows that are new, got passes={options.passes}; drop one.",
            option=("calibrate", "passes"),
        )
    from ftprl.training.delay import has_delay_column

    name = "delay_column" if has_delay_column(source) else "delay"
    if options.delay or name == "delay_column":
        raise InvalidInput(
            f"calibrate= does not support labels that arrive late yet, got {name}=; drop one.",
            option=("calibrate", name),
        )


def _what_is_read_once(source: readers.Source) -> str:
    return "standard input or a pipe; save it to a file" if source.files else "an iterator; put its data into a list"
