"""`ftprl evaluate`: the usual metrics of a model, or of predictions of any system, on rows with labels."""

# Without "from __future__ import annotations": Typer would evaluate each annotation four times.
from pathlib import Path
from typing import Annotated, Any

import typer

from ftprl.cli import startup
from ftprl.cli.options import form_of, keywords, option, warn_of_bad_rows

_PANEL = {"rich_help_panel": "evaluation"}


def evaluate(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL DATA...", help="Model, then files, folders or patterns; with --predictions DATA alone"
        ),
    ],
    *,
    predictions: Annotated[
        Path | None,
        typer.Option(help="File with one prediction per line, instead of a model", metavar="FILE", **_PANEL),
    ] = None,
    predictions_are: Annotated[
        str | None,
        typer.Option(
            help="What the numbers of the prediction file are: probability, score or mean"
            " [default: as ftprl predict writes them]",
            **_PANEL,
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            help="Probability from which a row counts as positive (with the hinge losses a score); may be repeated"
            " [default: 0.5; 0 with the hinge losses]",
            **_PANEL,
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Also measure the rows of each value of this column", metavar="COL", **_PANEL)
    ] = None,
    loss: Annotated[str | None, option("loss")] = None,
    tau: Annotated[float | None, option("tau")] = None,
    format: Annotated[str | None, option("format")] = None,
    label: Annotated[str | None, option("label")] = None,
    positive: Annotated[str | None, option("positive")] = None,
    weight: Annotated[str | None, option("weight")] = None,
    sep: Annotated[str | None, option("sep")] = None,
    quote: Annotated[str | None, option("quote")] = None,
    no_header: Annotated[bool, option("header")] = False,
    on_bad_row: Annotated[str | None, option("on_bad_row")] = None,
    max_row: Annotated[int | None, option("max_row")] = None,
    engine: Annotated[str | None, option("engine")] = None,
    address: Annotated[str | None, option("address")] = None,
    workers: Annotated[int | None, option("workers")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page or picture to write: .html, .png or .svg", rich_help_panel="output"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON instead of a table", rich_help_panel="output")
    ] = False,
) -> None:
    """Measure a model or a prediction file on labelled data.

    Two classes: log loss, AUC, average precision, lift, calibration, and accuracy, precision, recall and F score at
    thresholds. Several classes: log loss, accuracy, F scores, precision and recall of each class, and the confusion
    matrix. Numbers: RMSE, MAE, R² and deviances. Each has a 95 % interval, and beside it what predicting without
    features would have.

    ftprl evaluate clicks.ftprl test.csv.gz --by country -o evaluation.html

    ftprl evaluate --predictions vw.txt --predictions-are score test.csv.gz --label click
    """
    typed: dict[str, Any] = {"format": format, "label": label, "positive": positive, "weight": weight, "sep": sep}
    typed |= {"quote": quote, "no_header": no_header, "on_bad_row": on_bad_row, "max_row": max_row}
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.cluster import reading as read_by
    from ftprl.cluster.options import ClusterOptions
    from ftprl.errors import InvalidInput
    from ftprl.evaluation import ClassEvaluation, Evaluation, evaluate_classes, evaluate_predictions
    from ftprl.linear.scoring import is_model_file, open_systems
    from ftprl.runlog.events import line

    startup.loaded()
    system, data = (str(predictions), arguments) if predictions is not None else (arguments[0], arguments[1:])
    if not data:
        raise InvalidInput("evaluate needs a model and the data with the labels, got one argument; pass both.")
    if predictions is None and Path(system).is_file() and not is_model_file(system):
        raise InvalidInput(f"{system}: expected a model, got another file; pass predictions with --predictions.")
    form = None if output is None else form_of(output)
    check_target("--output", output)
    check_apart({"--output": output}, {"the model or the predictions": system})
    reading = {name: value for name, value in keywords(typed).items() if value is not None}
    opened = open_systems([system], data, loss=loss, tau=tau, predictions_are=predictions_are, by=by, **reading)
    (predictor,) = opened.predictors
    if threshold and opened.classes is not None:
        raise InvalidInput("threshold= is for two classes, got several; drop it.", option="threshold")
    result: Evaluation | ClassEvaluation
    with read_by(ClusterOptions(engine or "local", address, workers), opened.source):
        blocks = opened.blocks()
        if opened.classes is None:
            result = evaluate_predictions(blocks, predictor.name, opened.loss, thresholds=threshold or None, by=by)
        else:
            result = evaluate_classes(blocks, predictor.name, opened.classes, by=by)
    if output is not None and form is not None:
        from ftprl.report import evaluation as report

        with replacing(output) as out:
            out.write(report.written(result, form, ", ".join(data)))
    print(line(result.to_dict()) if as_json else result)
    warn_of_bad_rows(opened.source.bad_rows, opened.source.first_bad)
