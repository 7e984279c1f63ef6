"""`ftprl convert`: data of one format as another."""

# Without "from __future__ import annotations": Typer would evaluate each annotation four times.
from pathlib import Path
from typing import Annotated, Any

import typer

from ftprl.cli import startup
from ftprl.cli.options import keywords, option, warn_of_bad_rows


def convert(
    data: Annotated[list[str], typer.Argument(help="Files, folders, patterns, or - for standard input")],
    *,
    format: Annotated[str | None, option("format")] = None,
    label: Annotated[str | None, option("label")] = None,
    positive: Annotated[str | None, option("positive")] = None,
    weight: Annotated[str | None, option("weight")] = None,
    ignore: Annotated[list[str] | None, option("ignore")] = None,
    categorical: Annotated[list[str] | None, option("categorical")] = None,
    numeric: Annotated[list[str] | None, option("numeric")] = None,
    text: Annotated[list[str] | None, option("text")] = None,
    boolean: Annotated[list[str] | None, option("boolean")] = None,
    date: Annotated[list[str] | None, option("date")] = None,
    bucket: Annotated[list[str] | None, option("bucket")] = None,
    missing: Annotated[str | None, option("missing")] = None,
    sep: Annotated[str | None, option("sep")] = None,
    quote: Annotated[str | None, option("quote")] = None,
    no_header: Annotated[bool, option("header")] = False,
    on_bad_row: Annotated[str | None, option("on_bad_row")] = None,
    max_row: Annotated[int | None, option("max_row")] = None,
    loss: Annotated[str | None, option("loss")] = None,
    bits: Annotated[int | None, option("bits")] = None,
    dim: Annotated[int | None, option("dim")] = None,
    seed: Annotated[int | None, option("seed")] = None,
    float64: Annotated[bool, option("float64")] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .vw or .libsvm, optionally with .gz or .zst, .parquet, or .batches for hashed batches"
            " that train reads without parsing",
            rich_help_panel="output",
        ),
    ],
) -> None:
    """Convert data to VW text, libsvm, Parquet or hashed batches.

    ftprl convert clicks.csv.gz --label click --bits 18 -o clicks.batches

    Training on the batches gives the same model as training on the data; pass train the same --bits, --loss and --seed.
    """
    typed: dict[str, Any] = keywords(locals())
    del typed["data"], typed["output"]
    from ftprl.data.files import suffixes
    from ftprl.errors import InvalidInput
    from ftprl.training.convert import convert as write
    from ftprl.training.setup import reading_options

    startup.loaded()
    if suffixes(str(output))[0] in (".vw", ".parquet"):  # which have no cells of a table
        for name in ("bits", "dim", "seed", "float64"):
            if typed[name]:
                raise InvalidInput(f"{name}= is for .libsvm and .batches, got {str(output)!r}; drop it.", option=name)
    source = write(data, output, **reading_options(typed))
    warn_of_bad_rows(source.bad_rows, source.first_bad)
