"""How a resumed run recognises its files: by their sizes and ends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ftprl.data.files import is_uri, shown
from ftprl.errors import InvalidInput

_END_BYTES = 65_536


def ends_of(file: str) -> tuple[int, str]:
    """The size of a file, and the SHA-256 of its first and last 64 KiB."""
    import hashlib  # loads OpenSSL: a run without checkpoints reads before it needs it

    if is_uri(file):
        from ftprl.data import uris

        opened: Any = uris.open_file(file)
    else:
        opened = open(file, "rb")  # noqa: SIM115
    with opened as raw:
        size = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        ends = raw.read(_END_BYTES)
        raw.seek(max(0, size - _END_BYTES))
        return size, hashlib.sha256(ends + raw.read(_END_BYTES)).hexdigest()


def check_same_files(files: Sequence[str], now: Sequence[tuple[int, str]] | None, saved: Any) -> None:
    """Refuse files that are not those a checkpoint was made with."""
    if now is None or saved is None:
        raise InvalidInput(
            "resume= needs data that can be read again, got standard input or a pipe; save it to a file and use that."
        )
    then = [tuple(entry) for entry in saved]
    if list(now) == then:
        return
    difference = f"{len(then)} files, got {len(now)}"
    if len(now) == len(then):
        which = next(i for i in range(len(now)) if now[i] != then[i])
        difference = f"{then[which][0]} bytes in {shown(files[which])}, got {now[which][0]}"
        if then[which][0] == now[which][0]:
            difference = f"{shown(files[which])} as it was, got other bytes"
    raise InvalidInput(f"resume= needs the data of the checkpoint, expected {difference}; pass the same files.")
