"""SHA-256 of the data of a run: of the raw bytes of its files, in a background thread, or of the rows themselves."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, final

from ftprl.data.files import opened, shown
from ftprl.errors import InvalidInput

_BUFFER = 1 << 16  # fits the first caches: a buffer four times as large takes half as long again
Entry = dict[str, Any]


def digest_of_file(file: str, stop: threading.Event | None = None) -> Entry:
    """The number of bytes of a file and their SHA-256."""
    digest, size, buffer = hashlib.sha256(), 0, bytearray(_BUFFER)
    view = memoryview(buffer)
    try:
        with opened(file) as raw:
            while (count := raw.readinto(buffer)) and not (stop is not None and stop.is_set()):
                digest.update(view[:count])
                size += count
    except OSError as error:
        raise InvalidInput(f"{shown(file)}: {error.strerror}; check the file and its disk.") from None
    return {"bytes": size, "sha256": digest.hexdigest()}


def _lower_priority() -> None:
    """Let the learner's threads run first: the digest is needed only at the end."""
    if sys.platform == "linux":  # elsewhere it would be the priority of the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


@final
class FileDigests:
    """The digests of files, computed one after another in a background thread."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files, self._digests = tuple(files), list[Entry]()
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ftprl-digest", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        _lower_priority()
        try:
            for file in self._files:
                self._digests.append(digest_of_file(file, self._stop))
        except BaseException as error:
            self._error = error

    def result(self) -> list[Entry]:
        """The digests of all files; waits until they are computed."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._digests

    def close(self) -> None:
        """Stop early."""
        self._stop.set()
        self._thread.join()
