"""Ctrl-C and SIGTERM, from the first line of a command on; few modules are imported, because this comes first."""

from __future__ import annotations

import os
import signal

_is_working = False


def listen() -> None:
    """Handle both signals, unless they are ignored, as nohup and shell scripts do for background commands."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def work_begins() -> None:
    """Turn signals into exceptions from now on, because there may be something to save."""
    global _is_working
    _is_working = True


def _stop(number: int, frame: object) -> None:
    """Raise Interrupted if work has begun, else end the process at once."""
    if _is_working:
        from ftprl.errors import Interrupted

        raise Interrupted(signal=number)
    os.write(2, b"ftprl: interrupted before anything was done\n")
    os._exit(128 + number)  # nothing to tidy up, and an import would turn an exception into an ImportError
