"""The command line: one command a file, each a thin call into the library."""

from __future__ import annotations

import gc
import os
import sys


def main(args: list[str] | None = None) -> None:
    """Run `ftprl`; what goes wrong is one line on stderr and exit code 2."""
    from ftprl.cli.app import run

    sys.exit(run(args))


def command() -> None:
    """`main` as a process of its own: quick to start, and gone as soon as all is written."""
    # A command makes little garbage that goes in circles; looking for it while importing takes a tenth of the start.
    gc.disable()
    # It has its own threads; those of NumPy's linear algebra would only spin beside them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")
    from ftprl.cli.app import run

    code = run()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever read it has gone
            code = code or 1
    os._exit(code)  # taking down the interpreter and a large table piece by piece would take longer than leaving it
