"""`ftprl predict`: one prediction per row."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ftprl.cli import signals
from ftprl.cli.output import warn_of_bad_rows
from ftprl.cli.parameters import argument, command, files, flag, from_table, option, passed


@command
@argument("model", "Model or checkpoint", type=Path)
@files()
@option(
    "--output",
    "-o",
    help="File to write the predictions to, compressed if it ends in .gz or .zst; with --engine ray also a folder, for"
    " one file of predictions per file of data [default: stdout]",
    type=Path,
    group="output",
)
@flag(
    "--append",
    help="Write the columns of the data and a last column with the prediction: CSV, TSV, Parquet or JSON lines,"
    " inferred from the extension of --output",
    group="output",
)
@flag(
    "--probabilities",
    help="Write the probability of each class, with commas between them in the order that inspect shows",
    group="output",
)
@flag(
    "--uncertainty",
    help="Write behind each prediction, after a comma, how far one more such row could move its score: large for"
    " features that were hardly seen",
    group="output",
)
@flag("--raw", help="Write scores, before the link function", group="output")
@from_table("format", "sep", "quote", "header", "on_bad_row", "max_row", "engine", "threads")
def predict(
    model: Path,
    data: tuple[str, ...],
    output: Path | None,
    append: bool,
    engine: str | None,
    threads: int | None,
    raw: bool,
    probabilities: bool,
    uncertainty: bool,
    **typed: Any,
) -> None:
    """Write one prediction per row.

    One per line: a probability with logistic loss, a score with the
    hinge losses, the class with several classes, otherwise a number in the unit of the label.

    The data is read as in training; it may lack the label. With --on-bad-row skip a row that is left out has an empty
    line. The tag of a row of VW text follows its prediction.
    """
    reading = passed(typed)
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.cluster import reading as read_by
    from ftprl.data.compression import check_packing
    from ftprl.errors import InvalidInput
    from ftprl.linear import Model
    from ftprl.options.checks import check_values
    from ftprl.training.predict import Lines
    from ftprl.training.predictions import stdout

    signals.work_begins()
    output = None if output == Path("-") else output
    check_values({"engine": engine, "threads": threads})
    if engine == "ray" and output is not None and output.is_dir():
        columns = {"raw": raw, "probabilities": probabilities, "uncertainty": uncertainty}
        _predict_files(model, data, output, threads, append=append, columns=columns, **reading)
        return
    check_target("--output", output)
    learned = Model.load(model)
    source = learned.open(data, **reading)
    read: dict[str, Any] = {f"the data file {file}": file for file in source.files if file != "-"}
    read |= {"standard input": 0} if "-" in source.files else {}
    check_apart({"--output": output}, {**read, "the model": model})
    path = "" if output is None else str(output)
    check_packing("--output", path)
    if append and learned.classes is not None:
        raise InvalidInput("--append writes numbers, got a model of several classes; drop it.")
    if append and uncertainty:
        raise InvalidInput("--append writes one column, got --uncertainty as well; drop one.")
    if append:
        from ftprl.training.append import append as write_appended
        from ftprl.training.append import check_append

        check_append(source, path)
    lines = Lines(learned, source, raw=raw, probabilities=probabilities, uncertainty=uncertainty, threads=threads)
    with read_by(engine, threads, source), nullcontext(stdout()) if output is None else replacing(output) as target:
        if append:
            write_appended(lines, source, learned, path, target)
        else:
            # A program may wait for this answer before it sends the next row.
            _write(lines, target, path, flush=not source.can_be_read_again)
        target.flush()
    warn_of_bad_rows(lines.bad_rows, lines.first_bad)


def _predict_files(
    model: Path,
    data: tuple[str, ...],
    folder: Path,
    workers: int | None,
    *,
    append: bool,
    columns: dict[str, bool],
    **reading: Any,
) -> None:
    """Write one file of predictions per file of data, each by a worker."""
    from ftprl.cluster.connection import connect
    from ftprl.errors import InvalidInput
    from ftprl.linear import Model
    from ftprl.training.predict_files import predict_files

    if append:
        raise InvalidInput("--append needs one file to write to, got the folder of --output; predict file by file.")
    learned = Model.load(model)
    source = learned.open(data, **reading)
    with connect(workers, source) as cluster:
        for result in predict_files(learned, source.files, folder, cluster, **columns, **reading):
            print(f"{result.output}: {result.rows} rows")
            warn_of_bad_rows(result.bad_rows, result.first_bad)


def _write(lines: Iterable[bytes], target: Any, path: str, *, flush: bool) -> None:
    from ftprl.data.compression import packed, suffixes

    with packed(target, path) as out:
        for text in lines:
            out.write(text)
            if flush and not suffixes(path)[1]:
                out.flush()
