"""`ftprl train`: from text files to a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ftprl.cli import signals
from ftprl.cli.parameters import command, files, flag, from_table
from ftprl.errors import InvalidInput
from ftprl.options import COMMAND

if TYPE_CHECKING:
    from ftprl.linear.model import Model
    from ftprl.runlog.events import Event, Listener


@command
@files()
@from_table(*(entry.name for entry in COMMAND))
@flag("--json", "as_json", help="Print the result as one line of JSON on stdout", group="output")
@flag("--quiet", "-q", help="Print errors and warnings only", group="output")
def train(data: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Train a linear model in one pass over files of any size.

    Rows are learned in random order, each predicted before it is learned, so the printed loss is an honest estimate
    without a test set.

    ftprl train clicks.vw.gz -o clicks.ftprl

    ftprl train bank.csv --label y -o bank.ftprl

    ftprl train diamonds.csv --label price --loss squared -o diamonds.ftprl

    Ctrl-C and SIGTERM save what was learned to --checkpoint.

    Exit code 0: done; 2: bad input; 4: done, but a checkpoint could not be written; 130: Ctrl-C; 143: SIGTERM.
    """
    if options["predictions"] == "-" and as_json:
        raise InvalidInput("--predictions - and --json both write to stdout, got both; name a file for one of them.")
    signals.work_begins()
    from ftprl.training.api import trained

    run = trained(list(data), **options, listener=_Shown(quiet=quiet))
    from ftprl.cli.spelling import as_typed
    from ftprl.runlog.events import line
    from ftprl.runlog.rows import checked

    if not quiet:
        print(f"{run.summary}; wrote {options['output']}", file=sys.stderr)
        if run.check is not None:
            print(checked(run.model.spec.loss, run.check.to_dict()), file=sys.stderr)
        _report_sparsity(run.model)
    for caution in run.cautions:
        # Warnings about the data were printed before the first row; the warning about classes is only a hint.
        if not (caution.is_of_data or (quiet and caution.kind == "few classes")):
            print(f"ftprl: {as_typed(caution.text, caution.options)}", file=sys.stderr)
    if as_json:
        print(line({**run.to_dict(), "above_baseline": run.progressive.above_baseline}))
    return 4 if run.failed_checkpoints else 0


class _Shown:
    """A listener that prints the events of a run; its imports wait for the first event, when text is already being
    parsed.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._hear: Listener | None = None

    def __call__(self, event: Event) -> None:
        if self._hear is None:
            from ftprl.cli.live import show

            self._hear = show(sys.stderr, quiet=self._quiet)
        self._hear(event)


def _report_sparsity(model: Model) -> None:
    """Print how many weights an L1 penalty has left, and how large the file is with and without the others."""
    if not model.spec.l1 > 0.0:
        return
    from ftprl.linear.derived import count_nonzero

    nonzero, size = count_nonzero(model.engine), model.size_in_bytes()
    if model.is_compact:
        text = f"{nonzero} weights are not 0; the compact model has {size} bytes"
    else:
        small = model.compact().size_in_bytes()
        text = f"{nonzero} of {model.occupied} weights are not 0; {size} bytes, or {small} with --compact"
    print(text, file=sys.stderr)
