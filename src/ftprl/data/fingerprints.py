"""How a resumed run recognises its files: their sizes and ends, and a digest of all text that was read."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from ftprl._core import text_fingerprint
from ftprl.data.chunks import TextPosition
from ftprl.data.digests import TextDigest
from ftprl.data.files import Stream, is_uri, shown
from ftprl.errors import InvalidInput

_END_BYTES = 65_536
_BLOCK = 1 << 20


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


def check_same_text(files: Sequence[str], position: TextPosition) -> None:
    """Read all text before a position again, and refuse it if its digest is not that of the position."""
    digest = TextDigest()
    for number in range(position.file + 1):
        stream = Stream(files[number])
        try:
            end = position.offset + position.chunk_bytes  # rows behind the position, but in its chunk, were read too
            offset, limit = 0, end if number == position.file else sys.maxsize
            while offset < limit and (block := stream.read(min(_BLOCK, limit - offset))):
                digest = digest.plus(text_fingerprint(block, 0, len(block), offset))
                offset += len(block)
        finally:
            stream.close()
        digest = digest if number == position.file else digest.next_file(offset)
    if position.digest is None or digest != position.digest.plus(position.chunk_fingerprint):
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected {shown(files[position.file])} and the files before"
            " it as they were, got other bytes; pass the same files."
        )
