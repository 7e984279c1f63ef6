"""`ftprl predict`: one number a row."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ftprl.cli import reading


def predict(
    model: Annotated[Path, typer.Argument(help="A model or a checkpoint.")],
    data: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the numbers go instead of stdout.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Scores instead of means or probabilities.")] = False,
    format: reading.Format = None,
    sep: reading.Sep = None,
    quote: reading.Quote = None,
    no_header: reading.NoHeader = False,
    on_bad_row: reading.OnBadRow = "raise",
    max_row: reading.MaxRow = 16_000_000,
) -> None:
    """Write a mean or probability a line, one for each row of the data, which is read as in training."""
    from ftprl.atomic import replacing
    from ftprl.linear import Model
    from ftprl.linear.predict import lines

    learned = Model.load(model)
    asked = {"format": format, "sep": reading.character(sep), "quote": quote, "header": False if no_header else None}
    source = learned.open(
        data,
        on_bad_row=on_bad_row,
        max_row=max_row,
        **{name: value for name, value in asked.items() if value is not None},
    )
    with nullcontext(sys.stdout.buffer) if output is None else replacing(output) as out:
        for text in lines(learned, source, raw=raw):
            out.write(text)
    if source.bad_rows:
        print(f"ftprl: left out {source.bad_rows} bad rows; the first: {source.first_bad}", file=sys.stderr)
