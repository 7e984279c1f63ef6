"""The command line: one command a file, each a thin call into the library."""

from __future__ import annotations

import os
import sys


def main(args: list[str] | None = None) -> None:
    """Run `ftprl`; what goes wrong is one line on stderr and exit code 2."""
    # A command has its own threads; those of NumPy's linear algebra would only spin beside them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from ftprl.cli.app import run

    sys.exit(run(args))
