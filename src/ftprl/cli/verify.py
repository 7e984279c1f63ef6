"""`ftprl verify`: recompute a receipt from the data."""

from __future__ import annotations

import sys
from pathlib import Path

from ftprl.cli import signals
from ftprl.cli.output import StatusLine
from ftprl.cli.parameters import argument, command, files, flag, option
from ftprl.terminal import fitted


@command
@argument("receipt", "Receipt that ftprl certify -o wrote", type=Path)
@files(text="Files the model was trained on, in the same order")
@option(
    "--rows",
    help="Number of rows to replay, from the first: a partial check without a verdict, exit code 3",
    type=int,
    metavar="N",
)
@option("--model", help="Model that the receipt is about, to compare with the replay", type=Path, metavar="MODEL")
@option("--against", help="Other model, if the receipt compares with one", type=Path, metavar="MODEL2")
@flag("--json", "as_json", help="Print one line of JSON instead of text")
@flag("--quiet", "-q", help="Print no progress")
def verify(
    receipt: Path,
    data: tuple[str, ...],
    rows: int | None,
    model: Path | None,
    against: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Recompute every number of a receipt from the data.

    An independent implementation, which shares no code with the learner, learns the data again.

    Exit code 0: confirmed; 1: refused; 2: cannot be checked; 3: a partial check (--rows), no verdict.

    ftprl verify clicks.receipt clicks.vw.gz --model clicks.ftprl
    """
    from ftprl.receipt import verify_receipt
    from ftprl.runlog.events import line

    signals.work_begins()
    status = StatusLine(sys.stderr)

    def show(rows: int) -> None:
        """Print the number of rows replayed."""
        status.show(f"{rows:>12} rows replayed")

    listener = None if quiet else show
    verdict = verify_receipt(receipt, data, rows=rows, other=against, model=model, listener=listener)
    status.clear()
    print(line(verdict.to_dict()) if as_json else fitted(str(verdict)))
    return {"confirmed": 0, "refused": 1}.get(verdict.status, 3)
