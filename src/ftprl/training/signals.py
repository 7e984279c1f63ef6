"""Ctrl-C and SIGTERM during a run: held back until a batch is learned, so that the state is whole when they arrive."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, final

Handler = Callable[[int, FrameType | None], Any]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
REPEATED = 0.3


@final
class SignalHold:
    """Holds the first signal back while it is on hold, and passes it on to the handler of before at `deliver`.

    A second signal is passed on at once: whoever sends it does not want to wait. One that comes within `REPEATED`
    seconds is no second one: some programs send theirs twice. Without a handler in Python (SIGTERM, unless a program
    sets one) and in other threads than the main one, which get no signals, it does nothing.
    """

    def __init__(self) -> None:
        self.received: int | None = None  # the number of the last signal
        self.is_on = False
        self._pending: int | None = None
        self._at = -REPEATED  # when the last signal came
        self._handlers: dict[int, Handler] = {}

    def __enter__(self) -> SignalHold:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is None:
            self.deliver()

    def hold(self) -> None:
        """From now on the first signal waits."""
        self.is_on = True

    def deliver(self) -> None:
        """Pass on a signal that waits; its handler may raise an error here."""
        if self._pending is not None:
            number, self._pending, self.is_on = self._pending, None, False
            self._handlers[number](number, None)

    def release(self) -> None:
        """No signal waits any longer."""
        self.is_on = False
        self.deliver()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        before, self._at = self._at, time.monotonic()
        if self.received is not None and self._at - before < REPEATED:
            return
        is_first, self.received = self._pending is None, number
        if self.is_on and is_first:
            self._pending = number
        else:
            self._pending = None
            self._handlers[number](number, frame)
