"""`ftprl generate`: synthetic data, the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftprl.cli import startup
from ftprl.cli.help import GroupedCommand

app = typer.Typer(help="Write synthetic data for trying things out.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Write synthetic data for trying things out."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(cls=GroupedCommand)
def clicks(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .vw, .csv, .tsv or .libsvm, optionally with .gz or .zst"),
    ],
    rows: Annotated[int, typer.Option(help="Number of rows")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers")] = 0,
) -> None:
    """Write a synthetic click log.

    It has 13 counts and 26 categories with a heavy tail, and labels from a hidden model.
    """
    from ftprl.atomic import check_target
    from ftprl.data.clicks import generate

    startup.loaded()
    check_target("--output", output)
    generate(rows, seed, output)
