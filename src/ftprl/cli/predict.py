"""`ftprl predict`: one number a row."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from ftprl.cli import early, reading


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
    on_bad_row: reading.OnBadRow = None,
    max_row: reading.MaxRow = 16_000_000,
) -> None:
    """Write a mean or probability a line, one for each row of the data, which is read as in training."""
    early.expect_saved(data, model)
    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.linear import Model
    from ftprl.training.predict import Lines

    check_target("--output", output)
    learned = Model.load(model)
    asked = {"format": format, "sep": reading.character(sep), "quote": quote, "header": False if no_header else None}
    source = learned.open(
        data,
        on_bad_row=on_bad_row or "raise",
        max_row=max_row,
        **{name: value for name, value in asked.items() if value is not None},
    )
    read = {f"the data file {file}": file for file in source.files if file != "-"}
    check_apart({"--output": output}, {**read, "the model": model})
    lines = Lines(learned, source, raw=raw)
    with nullcontext(_stdout()) if output is None else replacing(output) as out:
        for text in lines:
            out.write(text)
            if not source.can_be_read_again:
                out.flush()  # somebody may wait for the answer before asking on
        out.flush()
    reading.tell_bad_rows(lines.bad_rows, lines.first_bad)


def _stdout() -> BinaryIO:
    """Standard output with a buffer: without one, a write to a full disk may stop half way and say nothing."""
    raw: Any = sys.stdout.buffer
    return open(raw.fileno(), "wb", closefd=False) if isinstance(raw, io.RawIOBase) else raw
