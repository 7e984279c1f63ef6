"""`ftprl verify`: recompute a receipt from the data."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from ftprl.cli import startup


def verify(
    receipt: Annotated[Path, typer.Argument(help="Receipt that ftprl certify -o wrote")],
    data: Annotated[list[str], typer.Argument(help="Files the model was trained on, in the same order")],
    rows: Annotated[
        int | None,
        typer.Option(
            help="Number of rows to replay, from the first: a partial check without a verdict, exit code 3", metavar="N"
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model that the receipt is about, to compare with the replay", metavar="MODEL")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Other model, if the receipt compares with one", metavar="MODEL2")
    ] = None,
    numpy: Annotated[
        bool, typer.Option("--numpy", help="Replay with NumPy alone, without any compiled learner; much slower")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of text")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress")] = False,
) -> None:
    """Recompute every number of a receipt from the data.

    An independent implementation, which shares no code with the learner, learns the data again.

    Exit code 0: confirmed; 1: refused; 2: cannot be checked; 3: a partial check (--rows), no verdict.

    ftprl verify clicks.receipt clicks.vw.gz --model clicks.ftprl
    """
    from ftprl.receipt import verify_receipt
    from ftprl.runlog.events import line

    startup.loaded()
    listener = None if quiet else _Ticker()
    verdict = verify_receipt(receipt, data, rows=rows, other=against, model=model, listener=listener, numpy=numpy)
    if not quiet and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(line(verdict.to_dict()) if as_json else verdict)
    if verdict.status != "confirmed":
        raise typer.Exit(1 if verdict.status == "refused" else 3)


class _Ticker:
    """Shows how far a replay is, on a terminal, a few times a second."""

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def __call__(self, rows: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._shown > 0.2:
            self._shown = now
            print(f"\r{rows:>12} rows replayed\x1b[K", end="", file=sys.stderr, flush=True)
