"""Ctrl-C and SIGTERM, from the first line of a command on: little is imported here, since this comes first."""

from __future__ import annotations

import os
import signal

_is_working = False


def listen() -> None:
    """Handle both from now on, unless they are ignored, as for a command that nohup or a shell script starts with &."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def work_begins() -> None:
    """From now on a signal is an error, since there may be something to save or to tidy up."""
    global _is_working
    _is_working = True


def _stop(number: int, frame: object) -> None:
    if _is_working:
        from ftprl.errors import Interrupted

        raise Interrupted(signal=number)
    os.write(2, b"ftprl: interrupted before anything was done\n")
    os._exit(128 + number)  # there is nothing to tidy up, and an import would turn an exception into an ImportError
