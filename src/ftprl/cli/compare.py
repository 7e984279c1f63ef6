"""`ftprl compare`: which of several models or prediction files is better, on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ftprl.cli import signals
from ftprl.cli.output import form_of, warn_of_bad_rows
from ftprl.cli.parameters import command, files, flag, from_table, option, passed
from ftprl.terminal import fitted


@command
@files("systems", "Models, or files with one prediction per line")
@option("--data", help="Files, folders or patterns with the labels", multiple=True, required=True, group="comparison")
@from_table("loss", "tau")
@option(
    "--predictions-are",
    help="What the numbers of prediction files are: probability, score or mean [default: as ftprl predict writes them]",
    group="comparison",
)
@option("--by", help="Also compare the rows of each value of this column", metavar="COL", group="comparison")
@from_table("format", "label", "positive", "weight", "sep", "quote", "header", "on_bad_row", "max_row")
@option("--output", "-o", help="Page or picture to write: .html, .png or .svg", type=Path, group="output")
@flag("--json", "as_json", help="Print one line of JSON instead of a table", group="output")
def compare(
    systems: tuple[str, ...],
    data: tuple[str, ...],
    loss: str | None,
    tau: float | None,
    predictions_are: str | None,
    by: str | None,
    output: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compare models or prediction files on the same rows.

    Prints which one is better, by how much, and whether that is certain.

    Intervals are 95 % confidence sequences: they hold at every row at once and for all systems together, so you may
    look at a comparison, and stop it, at any time.

    ftprl compare new.ftprl old.ftprl --data test.csv.gz

    ftprl compare vw.txt sklearn.txt --data test.csv.gz --label click --by country -o compare.html
    """
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.evaluation.compare import compare_predictions
    from ftprl.linear.scoring import open_systems
    from ftprl.runlog.events import line

    signals.work_begins()
    form = None if output is None else form_of(output)
    check_target("--output", output)
    check_apart({"--output": output}, {f"the system {path}": path for path in systems})
    reading = passed({"loss": loss, "tau": tau, **reading})
    opened = open_systems(systems, data, predictions_are=predictions_are, by=by, **reading)
    names = [predictor.name for predictor in opened.predictors]
    comparison = compare_predictions(opened.blocks(), names, opened.loss, by=by, classes=len(opened.classes or ()))
    if output is not None and form is not None:
        from ftprl.report import comparison as report

        with replacing(output) as out:
            out.write(report.written(comparison, form, ", ".join(data)))
    print(line(comparison.to_dict()) if as_json else fitted(str(comparison)))
    warn_of_bad_rows(opened.source.bad_rows, opened.source.first_bad)
