"""`ftprl evaluate`: the usual metrics of a model, or of predictions of any system, on rows with labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ftprl.cli import signals
from ftprl.cli.output import form_of, repeat, warn_of_bad_rows
from ftprl.cli.parameters import command, files, flag, from_table, option, passed
from ftprl.terminal import fitted


@command
@files("arguments", "Model, then files, folders or patterns; with --predictions DATA alone", metavar="MODEL DATA...")
@option(
    "--predictions",
    help="File with one prediction per line, instead of a model",
    type=Path,
    metavar="FILE",
    group="evaluation",
)
@option(
    "--predictions-are",
    help="What the numbers of the prediction file are: probability, score or mean"
    " [default: as ftprl predict writes them]",
    group="evaluation",
)
@option(
    "--threshold",
    help="Probability from which a row counts as positive (with the hinge losses a score); may be repeated"
    " [default: 0.5; 0 with the hinge losses]",
    type=float,
    multiple=True,
    group="evaluation",
)
@option("--by", help="Also measure the rows of each value of this column", metavar="COL", group="evaluation")
@from_table("loss", "tau", "format", "label", "positive", "weight", "sep", "quote", "header", "on_bad_row", "max_row")
@from_table("engine")
@option("--output", "-o", help="Page or picture to write: .html, .png or .svg", type=Path, group="output")
@flag("--json", "as_json", help="Print one line of JSON instead of a table", group="output")
def evaluate(
    arguments: tuple[str, ...],
    predictions: Path | None,
    predictions_are: str | None,
    threshold: tuple[float, ...],
    by: str | None,
    engine: str | None,
    output: Path | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Measure a model or a prediction file on labelled data.

    Two classes: log loss, AUC, average precision, lift, calibration, and accuracy, precision, recall and F score at
    thresholds. Several classes: log loss, accuracy, F scores, precision and recall of each class, and the confusion
    matrix. Numbers: RMSE, MAE, R² and deviances. Each has a 95 % interval, and beside it what predicting without
    features would have.

    ftprl evaluate clicks.ftprl test.csv.gz --by country -o evaluation.html

    ftprl evaluate --predictions vw.txt --predictions-are score test.csv.gz --label click
    """
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.cluster import reading as read_by
    from ftprl.errors import InvalidInput
    from ftprl.evaluation import ClassEvaluation, Evaluation, evaluate_classes, evaluate_predictions
    from ftprl.linear.scoring import is_model_file, open_systems
    from ftprl.options.checks import check_values
    from ftprl.runlog.events import line

    signals.work_begins()
    check_values({"engine": engine})
    system, data = (str(predictions), arguments) if predictions is not None else (arguments[0], arguments[1:])
    if not data:
        raise InvalidInput("evaluate needs a model and the data with the labels, got one argument; pass both.")
    if predictions is None and Path(system).is_file() and not is_model_file(system):
        raise InvalidInput(f"{system}: expected a model, got another file; pass predictions with --predictions.")
    form = None if output is None else form_of(output)
    check_target("--output", output)
    check_apart({"--output": output}, {"the model or the predictions": system})
    opened = open_systems([system], data, predictions_are=predictions_are, by=by, **passed(reading))
    (predictor,) = opened.predictors
    if threshold and opened.classes is not None:
        raise InvalidInput("threshold= is for two classes, got several; drop it.", option="threshold")
    result: Evaluation | ClassEvaluation
    with read_by(engine, None, opened.source):
        blocks = opened.blocks()
        if opened.classes is None:
            result = evaluate_predictions(
                blocks, predictor.name, opened.loss, thresholds=list(threshold) or None, by=by
            )
        else:
            result = evaluate_classes(blocks, predictor.name, opened.classes, by=by)
    if output is not None and form is not None:
        from ftprl.report import evaluation as report

        with replacing(output) as out:
            out.write(report.written(result, form, ", ".join(data)))
    print(line(result.to_dict()) if as_json else fitted(str(result)))
    warn_of_bad_rows(opened.source.bad_rows, opened.source.first_bad)
    repeat(opened.cautions)
    for caution in opened.of_labels:
        print(f"ftprl: {caution.text}", file=sys.stderr)
