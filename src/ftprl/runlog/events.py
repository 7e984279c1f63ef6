"""What a run tells while it runs: one JSON object a line.

Every event has `event` (its kind) and `rows` (how many rows had been read). Kinds: `start`, `resume`, `progress`,
`pass`, `checkpoint`, `end`, `error`. A number that does not exist is null.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import IO, Any, final

from ftprl.errors import BadFormat, InvalidInput

Event = dict[str, Any]


def line(event: Mapping[str, Any]) -> str:
    """One event as one line of JSON."""
    return json.dumps(plain(event), allow_nan=False)


def plain(value: Any) -> Any:
    """An event as it is after a journey through a file: JSON has lists, and neither NaN nor infinity: they are null."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@final
class Writer:
    """Events into a file, each one out of the door before the next happens."""

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False) -> None:
        self._path = os.fspath(path)
        try:
            if append and os.path.isfile(path):
                _cut_short_line(path)
            self._file: IO[str] = open(path, "a" if append else "w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise InvalidInput(
                f"{self._path}: {error.strerror}; name a file for the events that can be written."
            ) from None

    def write(self, event: Mapping[str, Any]) -> None:
        """Add a line."""
        try:
            self._file.write(line(event) + "\n")
            self._file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cut_short_line(path: str | os.PathLike[str]) -> None:
    """Remove what a killed process left of a line."""
    with open(path, "rb+") as file:
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)


def read(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a file; a last line that was cut short is left out."""
    events: list[Event] = []
    with open(path, encoding="utf-8", errors="replace") as file:  # any file may be named by mistake
        for number, text in enumerate(file, 1):
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                if not text.endswith("\n"):
                    break
                raise BadFormat(f"{os.fspath(path)}:{number}: expected an event in JSON, got {text[:40]!r}") from None
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise BadFormat(f"{os.fspath(path)}:{number}: expected an event, got {text[:40].rstrip()!r}")
            events.append(event)
    return events
