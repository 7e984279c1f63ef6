"""The options that say how a file is read, shared by the commands that read one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

_PANEL = "Reading"


def _option(*names: str, help: str, metavar: str | None = None) -> typer.models.OptionInfo:
    info: typer.models.OptionInfo = typer.Option(
        *names, help=help, metavar=metavar, show_default=False, rich_help_panel=_PANEL
    )
    return info


Format = Annotated[str | None, _option("--format", help="vw, libsvm, csv or tsv; otherwise the suffix says it.")]
Label = Annotated[str | None, _option("--label", help="The column with the label.", metavar="COL")]
Positive = Annotated[str | None, _option("--positive", help="The label that counts as 1; all others are -1.")]
Weight = Annotated[str | None, _option("--weight", help="The column with the row's weight.", metavar="COL")]
Ignore = Annotated[list[str] | None, _option("--ignore", help="Columns to leave out: A,B or repeated.", metavar="COL")]
Categorical = Annotated[list[str] | None, _option("--categorical", help="Columns of categories.", metavar="COL")]
Numeric = Annotated[list[str] | None, _option("--numeric", help="Columns of numbers.", metavar="COL")]
Text = Annotated[list[str] | None, _option("--text", help="Columns of text, cut into words.", metavar="COL")]
Sep = Annotated[str | None, _option("--sep", help="What separates columns; \\t is a tab.", metavar="CHAR")]
Quote = Annotated[str | None, _option("--quote", help="What quotes a field; '' for nothing.", metavar="CHAR")]
NoHeader = Annotated[bool, _option("--no-header", help="The first row is data; columns are named 1, 2, ...")]
OnBadRow = Annotated[
    str | None, _option("--on-bad-row", help="raise (default) or skip: leave bad rows out and count them.")
]
MaxRow = Annotated[int, _option("--max-row", help="The longest row in bytes (default 16000000).", metavar="BYTES")]


def several(names: Sequence[str] | None) -> tuple[str, ...]:
    """Columns given one by one or with commas between them; quotes keep a comma inside a name.

    >>> several(["a,b", '"c,d"'])
    ('a', 'b', 'c,d')
    """
    import csv

    return tuple(part for row in csv.reader(names or ()) for part in row if part)


def tell_bad_rows(count: int, first: str | None) -> None:
    """One line about rows that were left out."""
    if count:
        print(f"ftprl: left out {count} bad row{'s'[: count > 1]}; the first: {first}", file=sys.stderr)


def character(text: str | None) -> str | None:
    """A separator as it is typed in a shell: `\\\\t` and `tab` are a tab."""
    return "\t" if text in ("\\t", "tab") else text
