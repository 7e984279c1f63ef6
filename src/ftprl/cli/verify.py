"""`ftprl verify`: whether a receipt is true."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer


def verify(
    receipt: Annotated[Path, typer.Argument(help="What ftprl certify -o wrote.")],
    data: Annotated[list[str], typer.Argument(help="The files that were learned, in their order.")],
    rows: Annotated[
        int | None, typer.Option(help="Replay only the first N rows; the digests are of all.", metavar="N")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="The other model, where the receipt compares with one.", metavar="MODEL2")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON instead of words.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Replay the data with slow, plain arithmetic and confirm (exit 0) or refuse (exit 1) each number of a receipt."""
    from ftprl.receipt import verify_receipt
    from ftprl.runlog.events import line

    verdict = verify_receipt(receipt, data, rows=rows, other=against, listener=None if quiet else _Ticker())
    if not quiet and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(line(verdict.to_dict()) if as_json else verdict)
    if not verdict.confirmed:
        raise typer.Exit(1)


class _Ticker:
    """How far a replay is, on a terminal, a few times a second."""

    def __init__(self) -> None:
        self._shown = time.monotonic()

    def __call__(self, rows: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._shown > 0.2:
            self._shown = now
            print(f"\r{rows:>12} rows replayed\x1b[K", end="", file=sys.stderr, flush=True)
