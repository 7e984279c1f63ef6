"""The events of a training run: one JSON object per line (docs/events.md).

Every event has `event` (its kind) and `rows` (how many rows had been read). Kinds: `start`, `resume`, `progress`,
`retire`, `pass`, `relearn`, `checkpoint`, `checkpoint_failed`, `interrupted`, `end`, `error`. A number that does not
exist is null.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from typing import IO, Any, final

from ftprl.atomic import lock_file
from ftprl.errors import BadFormat, InvalidInput

Event = dict[str, Any]
Listener = Callable[[Event], None]
_LONGEST = 1 << 24  # characters of the longest event that is read
_REMEDY = "name a file that train --events wrote"


def line(event: Mapping[str, Any]) -> str:
    """Return one event as one line of JSON."""
    return json.dumps(json_values(event), allow_nan=False)


def json_values(value: Any) -> Any:
    """Return an event as it is read back from a file: tuples become lists, NaN and infinity become None.

    >>> json_values({"loss": float("nan"), "kept": (1, 2)})
    {'loss': None, 'kept': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@final
class Writer:
    """A writer of events to a file, each flushed before the next, so that readers see them during the run."""

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False) -> None:
        self._path = os.fspath(path)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self._start(handle, append)
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            raise InvalidInput(
                f"events= needs a file that can be written, got {self._path!r}: {error.strerror}; name another."
            ) from None
        self._file: IO[str] = os.fdopen(handle, "w", encoding="utf-8")

    def _start(self, handle: int, append: bool) -> None:
        """Lock a file, and only then truncate it, to nothing or to its complete lines."""
        if stat.S_ISREG(os.fstat(handle).st_mode):
            lock_file(handle, "events=", self._path)
            os.ftruncate(handle, _complete_lines(self._path) if append else 0)
            os.lseek(handle, 0, os.SEEK_END)

    def write(self, event: Mapping[str, Any]) -> None:
        """Append an event."""
        try:
            self._file.write(line(event) + "\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None


def _complete_lines(path: str | os.PathLike[str]) -> int:
    """Return the length of a file without an incomplete last line, which a killed process leaves."""
    with open(path, "rb") as file:
        return file.read().rfind(b"\n") + 1


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """Return the events of a file, without an incomplete last line.

    Raises BadFormat if the file contains anything else.
    """
    events: list[Event] = []
    with open(path, encoding="utf-8", errors="replace") as file:  # any file may be named by mistake
        for number, text in enumerate(iter(lambda: file.readline(_LONGEST), ""), 1):
            if len(text) == _LONGEST:
                raise BadFormat(
                    f"{os.fspath(path)}:{number}: expected an event in a line of less than {_LONGEST} characters, got a"
                    f" longer one; {_REMEDY}."
                )
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                if not text.endswith("\n"):
                    break
                raise BadFormat(
                    f"{os.fspath(path)}:{number}: expected an event in JSON, got {text[:40].rstrip()!r}; {_REMEDY}."
                ) from None
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise BadFormat(
                    f"{os.fspath(path)}:{number}: expected an event, got {text[:40].rstrip()!r}; {_REMEDY}."
                )
            events.append(event)
    return events
