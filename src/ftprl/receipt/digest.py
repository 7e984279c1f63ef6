"""SHA-256 of what a run reads: the raw bytes of its files, by a thread beside it, or the rows themselves."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, final

import numpy as np

from ftprl.data import Batch
from ftprl.data.files import shown
from ftprl.errors import InvalidInput

_ROOM = 1 << 16  # stays in the nearer caches: four times as much takes half as long again
Entry = dict[str, Any]


def digest_of_file(file: str, stop: threading.Event | None = None) -> Entry:
    """The number of bytes of a file and their SHA-256."""
    digest, size, room = hashlib.sha256(), 0, bytearray(_ROOM)
    view = memoryview(room)
    try:
        with open(file, "rb", buffering=0) as raw:
            while (count := raw.readinto(room)) and not (stop is not None and stop.is_set()):
                digest.update(view[:count])
                size += count
    except OSError as error:
        raise InvalidInput(f"{shown(file)}: {error.strerror}; check the file and its disk.") from None
    return {"bytes": size, "sha256": digest.hexdigest()}


def _give_way() -> None:
    """Let the learner's threads go first: only at the end is a digest waited for."""
    if sys.platform == "linux":  # elsewhere it would be the whole process that gives way
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


@final
class FileDigests:
    """The digests of files, one after another in a thread of their own, ready when they are asked for."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files, self._found = tuple(files), list[Entry]()
        self._wrong: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ftprl-digest", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        _give_way()
        try:
            for file in self._files:
                self._found.append(digest_of_file(file, self._stop))
        except BaseException as wrong:
            self._wrong = wrong

    def result(self) -> list[Entry]:
        """Wait for all of them."""
        self._thread.join()
        if self._wrong is not None:
            raise self._wrong
        return self._found

    def close(self) -> None:
        """Stop early."""
        self._stop.set()
        self._thread.join()


@final
class BatchDigest:
    """The digest of rows, the same however they are cut into batches: of the five columns, each by itself.

    Lengths as int64, indices as uint32, values as they are, labels and weights as float64, all little-endian.
    """

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in range(5)]
        self.rows = 0

    def update(self, batch: Batch) -> None:
        """Add some rows."""
        lengths = np.diff(batch.indptr)
        for digest, column in zip(
            self._columns, (lengths, batch.indices, batch.values, batch.y, batch.weight), strict=True
        ):
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            digest.update(little.data if little.size else b"")
        self.rows += len(batch)

    def result(self) -> Entry:
        """One digest of the five, and the number of rows."""
        whole = hashlib.sha256("".join(digest.hexdigest() for digest in self._columns).encode())
        return {"rows": self.rows, "sha256": whole.hexdigest()}
