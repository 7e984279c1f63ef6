"""`ftprl compare`: which of several models or prediction files is better, on the same rows."""

# Without "from __future__ import annotations": Typer would evaluate each annotation four times.
from pathlib import Path
from typing import Annotated, Any

import typer

from ftprl.cli import startup
from ftprl.cli.options import form_of, keywords, option, warn_of_bad_rows

_PANEL = {"rich_help_panel": "comparison"}


def compare(
    systems: Annotated[list[Path], typer.Argument(help="Models, or files with one prediction per line")],
    *,
    data: Annotated[list[str], typer.Option("--data", help="Files, folders or patterns with the labels", **_PANEL)],
    loss: Annotated[str | None, option("loss")] = None,
    tau: Annotated[float | None, option("tau")] = None,
    predictions_are: Annotated[
        str | None,
        typer.Option(
            help="What the numbers of prediction files are: probability, score or mean"
            " [default: as ftprl predict writes them]",
            **_PANEL,
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Also compare the rows of each value of this column", metavar="COL", **_PANEL)
    ] = None,
    format: Annotated[str | None, option("format")] = None,
    label: Annotated[str | None, option("label")] = None,
    positive: Annotated[str | None, option("positive")] = None,
    weight: Annotated[str | None, option("weight")] = None,
    sep: Annotated[str | None, option("sep")] = None,
    quote: Annotated[str | None, option("quote")] = None,
    no_header: Annotated[bool, option("header")] = False,
    on_bad_row: Annotated[str | None, option("on_bad_row")] = None,
    max_row: Annotated[int | None, option("max_row")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page or picture to write: .html, .png or .svg", rich_help_panel="output"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON instead of a table", rich_help_panel="output")
    ] = False,
) -> None:
    """Compare models or prediction files on the same rows.

    Prints which one is better, by how much, and whether that is certain.

    Intervals are 95 % confidence sequences: they hold at every row at once and for all systems together, so you may
    look at a comparison, and stop it, at any time.

    ftprl compare new.ftprl old.ftprl --data test.csv.gz

    ftprl compare vw.txt sklearn.txt --data test.csv.gz --label click --by country -o compare.html
    """
    typed: dict[str, Any] = {"format": format, "label": label, "positive": positive, "weight": weight, "sep": sep}
    typed |= {"quote": quote, "no_header": no_header, "on_bad_row": on_bad_row, "max_row": max_row}
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.evaluation.compare import compare_predictions
    from ftprl.linear.scoring import open_systems
    from ftprl.runlog.events import line

    startup.loaded()
    form = None if output is None else form_of(output)
    check_target("--output", output)
    check_apart({"--output": output}, {f"the system {path}": path for path in systems})
    reading = {name: value for name, value in keywords(typed).items() if value is not None}
    opened = open_systems(
        [str(path) for path in systems], data, loss=loss, tau=tau, predictions_are=predictions_are, by=by, **reading
    )
    names = [predictor.name for predictor in opened.predictors]
    comparison = compare_predictions(opened.blocks(), names, opened.loss, by=by, classes=len(opened.classes or ()))
    if output is not None and form is not None:
        from ftprl.report import comparison as report

        with replacing(output) as out:
            out.write(report.written(comparison, form, ", ".join(data)))
    print(line(comparison.to_dict()) if as_json else comparison)
    warn_of_bad_rows(opened.source.bad_rows, opened.source.first_bad)
