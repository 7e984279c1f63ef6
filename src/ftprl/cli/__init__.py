"""The command line: one command per file, each a thin call into the library."""

from __future__ import annotations

import os
import sys


def main(args: list[str] | None = None) -> None:
    """Run `ftprl`; an error is one line on stderr and exit code 2."""
    from ftprl.cli.app import run

    sys.exit(run(args))


def command() -> None:
    """Run `ftprl` as a process of its own.

    Two things make a short command faster, and only this function does them: parsing and learning have threads of their
    own, so NumPy's linear algebra starts none; and once everything is written, the process ends without freeing the
    interpreter and the tables of the model, which takes a tenth of a run on 50,000 rows.
    """
    from ftprl.cli import signals

    signals.listen()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")
    from ftprl.cli.app import run

    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader has closed the pipe
            code = code or 1
    os._exit(code)
