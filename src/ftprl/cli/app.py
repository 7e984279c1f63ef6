"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ftprl.cli.demo import demo
from ftprl.errors import FtprlError

app = typer.Typer(
    name="ftprl",
    help="Online learning that shows its receipt.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)


def _version(value: bool) -> None:
    if value:
        from ftprl import __version__

        typer.echo(f"ftprl {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Online learning that shows its receipt."""


def run(args: list[str] | None = None) -> int:
    """The exit code of one call: 0, 2 for bad input, 130 when interrupted."""
    try:
        app(args=args, prog_name="ftprl", standalone_mode=True)
    except FtprlError as error:
        print(f"ftprl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ftprl: interrupted; nothing was written", file=sys.stderr)
        return 130
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
