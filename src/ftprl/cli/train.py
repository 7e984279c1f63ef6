"""`ftprl train`: from text files to a model."""

# Without "from __future__ import annotations": Typer would evaluate each annotation four times.
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ftprl.cli import signals, startup
from ftprl.cli.declared import argument
from ftprl.cli.options import budget, keywords, option, warn_of_bad_rows
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl.linear.model import Model
    from ftprl.runlog.events import Event, Listener

_OF_CLASSES = ("softmax", "ovr")  # losses whose tables are not pre-faulted: they grow with the classes


def train(
    data: Annotated[list[str], argument("Files, folders, patterns, or - for standard input")],
    *,
    format: Annotated[str | None, option("format")] = None,
    label: Annotated[str | None, option("label")] = None,
    positive: Annotated[str | None, option("positive")] = None,
    weight: Annotated[str | None, option("weight")] = None,
    delay_column: Annotated[str | None, option("delay_column")] = None,
    ignore: Annotated[list[str] | None, option("ignore")] = None,
    categorical: Annotated[list[str] | None, option("categorical")] = None,
    numeric: Annotated[list[str] | None, option("numeric")] = None,
    text: Annotated[list[str] | None, option("text")] = None,
    boolean: Annotated[list[str] | None, option("boolean")] = None,
    date: Annotated[list[str] | None, option("date")] = None,
    bucket: Annotated[list[str] | None, option("bucket")] = None,
    missing: Annotated[str | None, option("missing")] = None,
    interactions: Annotated[list[str] | None, option("interactions")] = None,
    ngrams: Annotated[list[str] | None, option("ngrams")] = None,
    skips: Annotated[list[str] | None, option("skips")] = None,
    char_ngrams: Annotated[list[str] | None, option("char_ngrams")] = None,
    sep: Annotated[str | None, option("sep")] = None,
    quote: Annotated[str | None, option("quote")] = None,
    no_header: Annotated[bool, option("header")] = False,
    on_bad_row: Annotated[str | None, option("on_bad_row")] = None,
    max_row: Annotated[int | None, option("max_row")] = None,
    loss: Annotated[str | None, option("loss")] = None,
    classes: Annotated[str | None, option("classes")] = None,
    tau: Annotated[float | None, option("tau")] = None,
    bits: Annotated[int | None, option("bits")] = None,
    dim: Annotated[int | None, option("dim")] = None,
    seed: Annotated[int | None, option("seed")] = None,
    no_intercept: Annotated[bool, option("intercept")] = False,
    float64: Annotated[bool, option("float64")] = False,
    lower: Annotated[float | None, option("lower")] = None,
    upper: Annotated[float | None, option("upper")] = None,
    bounds: Annotated[list[str] | None, option("bounds")] = None,
    scale: Annotated[str | None, option("scale")] = None,
    beta: Annotated[float | None, option("beta")] = None,
    l1: Annotated[float | None, option("l1")] = None,
    l2: Annotated[float | None, option("l2")] = None,
    share: Annotated[str | None, option("share")] = None,
    no_stack: Annotated[bool, option("stack")] = False,
    level: Annotated[bool, option("level")] = False,
    no_coin: Annotated[bool, option("coin")] = False,
    no_dense: Annotated[bool, option("dense")] = False,
    calibrate: Annotated[str | None, option("calibrate")] = None,
    round_rows: Annotated[int | None, option("round_rows")] = None,
    no_retire: Annotated[bool, option("retire")] = False,
    admit: Annotated[str | None, option("admit")] = None,
    passes: Annotated[int | None, option("passes")] = None,
    holdout: Annotated[int | None, option("holdout")] = None,
    delay: Annotated[int | None, option("delay")] = None,
    delay_memory: Annotated[str | None, option("delay_memory")] = None,
    receipt: Annotated[bool | None, option("receipt")] = None,
    checkpoint: Annotated[str | None, option("checkpoint")] = None,
    every: Annotated[str | None, option("every")] = None,
    cache: Annotated[Path | None, option("cache")] = None,
    resume: Annotated[str | None, option("resume")] = None,
    threads: Annotated[int | None, option("threads")] = None,
    engine: Annotated[str | None, option("engine")] = None,
    address: Annotated[str | None, option("address")] = None,
    workers: Annotated[int | None, option("workers")] = None,
    servers: Annotated[int | None, option("servers")] = None,
    names: Annotated[str | None, option("names")] = None,
    no_names: Annotated[bool, option("no_names")] = False,
    output: Annotated[Path, option("output")],
    compact: Annotated[bool, option("compact")] = False,
    predictions: Annotated[str | None, option("predictions")] = None,
    events: Annotated[Path | None, option("events")] = None,
    as_json: Annotated[bool, option("as_json")] = False,
    quiet: Annotated[bool, option("quiet")] = False,
) -> int:
    """Train a linear model in one pass over files of any size.

    Each row is predicted before it is learned, so the printed loss is an honest estimate without a test set.

    ftprl train clicks.vw.gz -o clicks.ftprl

    ftprl train bank.csv --label y -o bank.ftprl

    ftprl train diamonds.csv --label price --loss squared -o diamonds.ftprl

    Ctrl-C and SIGTERM save what was learned to --checkpoint.

    Exit code 0: done; 2: bad input; 4: done, but a checkpoint could not be written; 130: Ctrl-C; 143: SIGTERM.
    """
    arguments = keywords(locals())
    if predictions == "-" and as_json:
        raise InvalidInput("--predictions - and --json both write to stdout, got both; name a file for one of them.")
    del arguments["as_json"], arguments["quiet"], arguments["no_names"]
    arguments["names"] = budget(names, off=no_names)
    if engine == "ray" and checkpoint is not None:
        pass  # another process learns
    elif resume is None and classes is None and loss not in _OF_CLASSES:
        startup.expect_new(data, bits, dim, scale, float64, bool(receipt))
    elif resume is not None:
        startup.expect_saved(data, resume)
    signals.work_begins()
    from ftprl.training import train as learn

    run = learn(**arguments, listener=_Shown(quiet=quiet))
    from ftprl.runlog.events import line
    from ftprl.runlog.yardstick import worse_than_baseline

    warn_of_bad_rows(run.bad_rows, run.first_bad)
    _warn_of_bounds(run.model)
    if not quiet and classes is None and resume is None:
        _suggest_classes(run.model)
    if run.only_class is not None:
        print(f"ftprl: every label was {run.only_class}; check the labels, and --positive", file=sys.stderr)
    if run.sorted_by_class:
        print(
            "ftprl: the rows are sorted by class, and after many of one class the model predicts that class for all;"
            " shuffle the rows, such as with shuf or DataFrame.sample(frac=1), and train again",
            file=sys.stderr,
        )
    if not quiet:
        print(f"{run}; wrote {output}", file=sys.stderr)
        _report_sparsity(run.model)
    if run.progressive.above_baseline:  # the last line: a warning that the model is of no use
        print(f"ftprl: {worse_than_baseline(run.progressive_loss, run.baseline)}", file=sys.stderr)
    if as_json:
        print(line({**run.to_dict(), "above_baseline": run.progressive.above_baseline}))
    return 4 if run.failed_checkpoints else 0


class _Shown:
    """Shows the events of a run; what that needs is imported with the first of them, when text is already parsed."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._hear: Listener | None = None

    def __call__(self, event: "Event") -> None:
        if self._hear is None:
            from ftprl.cli.live import show

            self._hear = show(sys.stderr, quiet=self._quiet)
            startup.loaded()
        self._hear(event)


def _report_sparsity(model: "Model") -> None:
    """Print how many weights an L1 penalty has left, and how large the file is with and without the others."""
    if not model.engine.spec.l1 > 0.0:
        return
    from ftprl.linear.compact import count_nonzero

    nonzero, size = count_nonzero(model.engine), model.size_in_bytes()
    if model.is_compact:
        text = f"{nonzero} weights are not 0; the compact model has {size} bytes"
    else:
        small = model.compact().size_in_bytes()
        text = f"{nonzero} of {model.occupied} weights are not 0; {size} bytes, or {small} with --compact"
    print(text, file=sys.stderr)


def _suggest_classes(model: "Model") -> None:
    """Print a line about classes that were expected and never came: each was given a probability in every row."""
    most, known = model.engine.spec.classes, len(model.classes or ())
    if 1 < known < most:
        print(
            f"ftprl: {known} classes were met, and up to {most} were expected; if these are all, --classes {known}"
            " predicts better",
            file=sys.stderr,
        )


def _warn_of_bounds(model: "Model") -> None:
    """Print a line about bounds that no feature has, and about those that a shared cell has of another name."""
    if model.engine.bounds is None:
        return
    unused = [name for name, count in model.engine.bounds.matches.items() if not count]
    if unused:
        some = ", ".join(repr(name[:60]) for name in unused[:5]) + (", ..." if len(unused) > 5 else "")
        print(f"ftprl: --bound {some} fits no feature of the data; ftprl inspect shows their names", file=sys.stderr)
    cells, shared = model.shared_bounds
    if shared:
        print(
            f"ftprl: {shared} of {cells} weights with bounds are shared by several names, which all have the bounds; "
            "use more --bits for fewer",
            file=sys.stderr,
        )
