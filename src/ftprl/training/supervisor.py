"""A run whose learner is a process of its own: if that is killed, another one takes over from the last checkpoint.

The learner asks before it goes on from an event, so that a listener sees each at its row, as in a run without all this,
and so that a learner whose supervisor is gone ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from types import FrameType
from typing import Any, final

from ftprl.errors import FtprlError, Interrupted
from ftprl.linear.model import Model
from ftprl.runlog.events import Event
from ftprl.training.run import Run

MOST_DEATHS = 5  # of learners, one after the other, without a checkpoint between them
_MODULE = "ftprl.training.learner_process"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def supervised(arguments: Mapping[str, Any]) -> Run:
    """`train` with these arguments, done by learners one after the other until one reaches the end."""
    return _Supervisor(arguments).run()


@final
class _Supervisor:
    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = {**arguments, "listener": None}
        if arguments["engine"] == "ray" and arguments["address"] is None:
            self._arguments["address"] = _own_cluster()
        self._listener = arguments["listener"]
        self._events: list[Event] = []
        self._rows = 0  # that the last checkpoint has
        self._deaths = 0  # since then
        self._signal: int | None = None  # the last that came: what dies then is not replaced
        self._clock = time.monotonic()

    def run(self) -> Run:
        while True:
            done = self._learn()
            if done is not None:
                run, body = done
                path = self._arguments["output"]
                model = Model.from_bytes(body) if body is not None else Model.load(path)
                return replace(run, model=model, events=tuple(self._events), seconds=time.monotonic() - self._clock)

    def _learn(self) -> tuple[Run, bytes | None] | None:
        """What a learner sends at its end; None if it died before."""
        ours, theirs = Pipe()
        with _started(theirs) as process, ours, self._passing_on(process):  # closed before it waits for its end
            message = _answer(ours, self._arguments)
            while message is not None:
                kind, content = message
                if kind == "error":
                    raise content
                if kind == "done":
                    return content  # type: ignore[no-any-return]
                self._see(content)
                message = _answer(ours, None)
            code = process.wait()
            self._replace(signal.Signals(-code).name if code < 0 else f"exit code {code}")
        return None

    def _see(self, event: Event) -> None:
        if event["event"] == "checkpoint":
            # Only now is it known to be complete; before that a learner begins where this one did.
            self._arguments["resume"], self._rows, self._deaths = self._arguments["checkpoint"], event["rows"], 0
        if event["event"] != "tick":
            self._events.append(event)
        if self._listener is not None:
            self._listener(event)
        elif event["event"] == "checkpoint_failed":
            warnings.warn(event["message"], RuntimeWarning, stacklevel=6)

    def _replace(self, how: str) -> None:
        """After a learner died: have another one take over, unless nobody wants that or it would die as well."""
        if self._signal is not None:
            raise Interrupted("interrupted; the learner had ended", signal=self._signal, rows=self._rows)
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            raise FtprlError(
                f"the process that learns died {self._deaths} times after row {self._rows} ({how}); give it more"
                " memory, or a smaller table with bits=.",
                option="bits",
            )
        message = f"the process that learns died ({how}); another one goes on from row {self._rows}"
        self._see({"event": "learner_died", "rows": self._rows, "message": message})

    @contextmanager
    def _passing_on(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Signals that come meanwhile are for the learner, which saves what it has and says so."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def receive(number: int, frame: FrameType | None) -> None:
            self._signal = number
            process.send_signal(number)

        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        handled = {number: handler for number, handler in handlers.items() if callable(handler)}
        for number in handled:
            signal.signal(number, receive)
        try:
            yield
        finally:
            for number, handler in handled.items():
                signal.signal(number, handler)


@contextmanager
def _started(connection: Connection[Any, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """A learner that talks through a connection; it does not outlive this block."""
    number = connection.fileno()
    # In a session of its own, Ctrl-C of a terminal comes to it once, through the supervisor.
    command = [sys.executable, "-m", _MODULE, str(number)]
    with connection:
        process = subprocess.Popen(command, pass_fds=(number,), start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            _ended(process)


def _ended(process: subprocess.Popen[bytes], seconds: float = 10.0) -> None:
    """Wait for a process that got its last message; one that does not end is ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answer(connection: Connection[Any, Any], content: object) -> tuple[str, Any] | None:
    """The answer of a learner to a message; None if it is dead."""
    try:
        connection.send(content)
        return connection.recv()  # type: ignore[no-any-return]
    except (EOFError, ConnectionError):
        return None


def _own_cluster() -> str | None:
    """The address of the cluster that this program is connected to; None if there is none."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    address: str = ray.get_runtime_context().gcs_address
    return address
