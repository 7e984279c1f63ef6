"""The process that learns in a run that `ftprl.training.supervisor` looks after: `python -m`, with a pipe to it."""

from __future__ import annotations

import pickle
import signal
import sys
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from ftprl.errors import FtprlError, Interrupted
from ftprl.runlog.events import Event


class _Abandoned(BaseException):
    """Nobody listens any more: the supervisor is gone, or its listener has raised an error."""


def main(number: int) -> None:
    """Train with the arguments that come through the pipe, and send back events, then what became of it."""
    with Connection(number) as supervisor:
        arguments: dict[str, Any] = supervisor.recv()

        def listen(event: Event) -> None:
            try:
                supervisor.send(("event", event))
                supervisor.recv()
            except (EOFError, ConnectionError):
                raise _Abandoned from None

        signal.signal(signal.SIGTERM, _stop)
        from ftprl.training.api import train_here

        try:
            run = train_here({**arguments, "listener": listen})
        except _Abandoned:
            return
        except BaseException as error:
            supervisor.send(("error", _sendable(error)))
            return
        body = run.model.to_bytes() if arguments["output"] is None else None
        supervisor.send(("done", (replace(run, model=None), body)))  # type: ignore[arg-type]


def _sendable(error: BaseException) -> BaseException:
    """An error that can be sent; one that nobody raised on purpose says where it came from."""
    try:
        sent: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # of a class that cannot be pickled, or not read again
        sent = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(error, FtprlError | OSError | MemoryError | KeyboardInterrupt):
        sent.add_note("In the process that learns:\n" + "".join(traceback.format_exception(error)))
    return sent


def _stop(number: int, frame: FrameType | None) -> None:
    raise Interrupted(signal=number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
