"""How a resumed run recognises its data: the size of each file and a digest of its first and last bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from ftprl.data import Source
from ftprl.data.files import shown
from ftprl.errors import InvalidInput

Fingerprint = tuple[int, str]  # the size in bytes, and the digest

_END_BYTES = 65_536  # a digest of a whole large file would take as long as reading it


def fingerprints(source: Source) -> list[Fingerprint] | None:
    """One fingerprint for each file; None for data that can be read only once."""
    return [_fingerprint(file) for file in source.files] if source.can_be_read_again else None


def _fingerprint(file: str) -> Fingerprint:
    with open(file, "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        ends = raw.read(_END_BYTES)
        raw.seek(max(0, size - _END_BYTES))
        return size, hashlib.sha256(ends + raw.read(_END_BYTES)).hexdigest()


def check_same_data(
    files: Sequence[str], now: Sequence[Fingerprint] | None, saved: Sequence[Sequence[Any]] | None
) -> None:
    """Refuse files that are not those a checkpoint was made with."""
    if now is None or saved is None:
        raise InvalidInput(
            "resume= needs data that can be read again, got standard input or a pipe; save it to a file and use that."
        )
    then = [tuple(fingerprint) for fingerprint in saved]
    if list(now) != then:
        raise InvalidInput(
            f"a checkpoint needs the data it was made with, expected {_difference(files, now, then)};"
            " pass the same files."
        )


def _difference(files: Sequence[str], now: Sequence[Fingerprint], then: Sequence[tuple[Any, ...]]) -> str:
    if len(now) != len(then):
        return f"{len(then)} files, got {len(now)}"
    changed = next(i for i in range(len(now)) if now[i] != then[i])
    if then[changed][0] == now[changed][0]:
        return f"{shown(files[changed])} as it was, got other bytes"
    return f"{then[changed][0]} bytes in {shown(files[changed])}, got {now[changed][0]}"
