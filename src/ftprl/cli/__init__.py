"""The command line: one command per file, each a thin call into the library."""

from __future__ import annotations

import os
import sys


def main(args: list[str] | None = None) -> None:
    """Run `ftprl`; what goes wrong is one line on stderr and exit code 2."""
    from ftprl.cli.app import run

    sys.exit(run(args))


def command() -> None:
    """`main` as a process of its own, with what makes that quick: `ftprl.cli.startup`."""
    from ftprl.cli import signals

    signals.listen()
    from ftprl.cli import startup

    startup.with_large_stack(_command)()


def _command() -> None:
    from ftprl.cli import startup

    args = sys.argv[1:]
    startup.begin(args)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")
    from ftprl.cli.app import run

    code = run(args)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever read it has gone
            code = code or 1
    startup.end(args, code)
