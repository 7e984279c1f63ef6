"""`ftprl generate`: made-up data that is the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Write made-up data, the same for the same seed.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Write made-up data, the same for the same seed."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def clicks(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Ends in .vw, .csv, .tsv or .libsvm, then perhaps .gz or .zst.")
    ],
    rows: Annotated[int, typer.Option(help="How many rows.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
) -> None:
    """A heavy-tailed click log: 13 counts and 26 categories of very different sizes, labels from a hidden model."""
    from ftprl.atomic import check_target
    from ftprl.data.clicks import generate

    check_target("--output", output)
    generate(rows, seed, output)
