"""`ftprl generate`: synthetic data, which depends only on the seed."""

from __future__ import annotations

from pathlib import Path

from ftprl.cli import signals
from ftprl.cli.groups import CommandGroup
from ftprl.cli.parameters import command, option

generate = CommandGroup("generate", help="Write synthetic data for trying things out.")


@generate.add_command
@command
@option(
    "--output",
    "-o",
    help="File to write: .vw, .csv, .tsv or .libsvm, optionally with .gz or .zst",
    type=Path,
    required=True,
)
@option("--rows", help="Number of rows", type=int, default=100_000, show_default=True)
@option("--seed", help="Seed of the random numbers", type=int, default=0, show_default=True)
def clicks(output: Path, rows: int, seed: int) -> None:
    """Write a synthetic click log.

    It has 13 counts and 26 categories with a heavy tail, and labels from a hidden model.
    """
    from ftprl.atomic import check_target
    from ftprl.data import clicks

    signals.work_begins()
    check_target("--output", output)
    clicks.generate(rows, seed, output)
