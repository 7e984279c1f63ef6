"""`ftprl train`: from text to a model, in one pass unless more are asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ftprl.cli import early, reading


def train(
    data: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")],
    loss: Annotated[
        str | None,
        typer.Option(
            help="logistic (default), hinge, squared_hinge, squared, absolute, quantile, huber or poisson.",
        ),
    ] = None,
    bits: Annotated[int | None, typer.Option(help="The table has 2^BITS cells (default 22).")] = None,
    dim: Annotated[int | None, typer.Option(help="The table has DIM cells, instead of --bits.")] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="auto (default): eight scales at once, nothing to tune; one: 0.1; or several: 0.01,0.1,1."),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="What several scales hand round: capped (default), auto = 1/(t+1), or a number; 0 is Bayes."),
    ] = None,
    no_stack: Annotated[bool, typer.Option("--no-stack", help="Mix the scales only, without a stack of them.")] = False,
    no_retire: Annotated[bool, typer.Option("--no-retire", help="Keep scales that a long run can do without.")] = False,
    receipt: Annotated[
        bool | None,
        typer.Option(
            "--receipt/--no-receipt", help="Keep what certify and verify need (default: no).", show_default=False
        ),
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Of the scheme (default 0.3; 1 with one scale).")] = None,
    l1: Annotated[float | None, typer.Option(help="L1 penalty: sparse weights (default 0).")] = None,
    l2: Annotated[float | None, typer.Option(help="L2 penalty (default 0).")] = None,
    lower: Annotated[float | None, typer.Option(help="No weight below this.")] = None,
    upper: Annotated[float | None, typer.Option(help="No weight above this.")] = None,
    tau: Annotated[float | None, typer.Option(help="Which quantile, for that loss (default 0.5).")] = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Learn no intercept.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of the feature hash (default 0).")] = None,
    float64: Annotated[bool, typer.Option("--float64", help="Cells of twice the size and precision.")] = False,
    passes: Annotated[int | None, typer.Option(help="Read the data so many times (default 1).")] = None,
    holdout: Annotated[
        int | None,
        typer.Option(help="Do not learn every N-th row; report its loss apart.", metavar="N"),
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Keep the run here, so that it can be resumed.")] = None,
    every: Annotated[
        str | None,
        typer.Option(help="How often: rows such as 100000, or a time such as 30s (default), 5m, 1h."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on from a checkpoint in the same data, or from a model with more data."),
    ] = None,
    events: Annotated[Path | None, typer.Option(help="Write what happens as JSON lines.")] = None,
    format: reading.Format = None,
    label: reading.Label = None,
    positive: reading.Positive = None,
    weight: reading.Weight = None,
    ignore: reading.Ignore = None,
    categorical: reading.Categorical = None,
    numeric: reading.Numeric = None,
    text: reading.Text = None,
    sep: reading.Sep = None,
    quote: reading.Quote = None,
    no_header: reading.NoHeader = False,
    on_bad_row: reading.OnBadRow = None,
    max_row: reading.MaxRow = 16_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="End with one line of JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Learn a linear model from VW text, libsvm, CSV or TSV, predicting each row before it is learned.

    ftprl train clicks.vw.gz -o clicks.ftprl

    ftprl train bank.csv --label y --sep ';' -o bank.ftprl --checkpoint bank.part --every 30s
    """
    if resume is None:
        early.expect_new(data, bits, dim, scale, float64, bool(receipt))
    else:
        early.expect_saved(data, resume)
    from ftprl.cli.live import show
    from ftprl.runlog.events import line
    from ftprl.training import train as learn

    listener = None if quiet else show(sys.stderr)
    run = learn(
        data,
        output=output,
        resume=resume,
        passes=passes,
        holdout=holdout,
        checkpoint=checkpoint,
        every=every,
        events=events,
        listener=listener,
        on_bad_row=on_bad_row,
        max_row=max_row,
        bits=bits,
        loss=loss,
        dim=dim,
        scale=_scale(scale),
        share=_number_or_word("--share", share),
        stack=False if no_stack else None,
        retire=False if no_retire else None,
        receipt=receipt,
        beta=beta,
        l1=l1,
        l2=l2,
        lower=lower,
        upper=upper,
        tau=tau,
        intercept=False if no_intercept else None,
        seed=seed,
        float64=float64 or None,
        format=format,
        label=label,
        positive=positive,
        weight=weight,
        ignore=reading.several(ignore),
        categorical=reading.several(categorical),
        numeric=reading.several(numeric),
        text=reading.several(text),
        sep=reading.character(sep),
        quote=quote,
        header=False if no_header else None,
    )
    reading.tell_bad_rows(run.bad_rows, run.first_bad)
    if run.only_class is not None:
        print(f"ftprl: every label was {run.only_class}; check the labels, and --positive", file=sys.stderr)
    if not quiet:
        print(f"{run}; wrote {output}", file=sys.stderr)
    if as_json:
        print(line(run.to_dict()))


def _scale(text: str | None) -> str | float | tuple[float, ...] | None:
    """`auto`, a number, or several with commas between them."""
    if text is None or "," not in text:
        return _number_or_word("--scale", text)
    return tuple(_number("--scale", part) for part in text.split(","))


def _number_or_word(name: str, text: str | None) -> str | float | None:
    return text if text is None or text.isalpha() else _number(name, text)


def _number(name: str, text: str) -> float:
    from ftprl.errors import InvalidInput

    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name} needs a number, got {text!r}; see ftprl train --help.") from None
