"""Digests of rows, and how a resumed run recognises its files: by their sizes and ends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import text_fingerprint
from ftprl.data.batch import Batch
from ftprl.data.files import is_uri, shown
from ftprl.errors import InvalidInput

_END_BYTES = 65_536
_MODULUS = 2**64  # of the fingerprints that the core makes of text
_FACTOR = 0x9E3779B97F4A7C15
_FACTORS = tuple(pow(_FACTOR, i, _MODULUS) for i in range(5))  # of the columns of a batch


@final
class BatchDigest:
    """The SHA-256 of rows, the same however they are cut into batches: of the five columns, each by itself.

    Lengths as int64, indices as uint32, values as they are, labels and weights as float64, all little-endian.
    """

    def __init__(self) -> None:
        import hashlib  # loads OpenSSL: most readings make no such digest

        self._new = hashlib.sha256
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

    def result(self) -> dict[str, Any]:
        """One digest of the five, and the number of rows."""
        whole = self._new("".join(digest.hexdigest() for digest in self._columns).encode())
        return {"rows": self.rows, "sha256": whole.hexdigest()}


@final
class RowDigest(NamedTuple):
    """A quick digest of rows, the same however they are cut into batches.

    It notices data that has changed, but is no proof against someone who makes up two streams with the same digest.
    """

    rows: int = 0
    entries: int = 0
    fingerprint: int = 0

    def plus(self, batch: Batch) -> RowDigest:
        """With some more rows."""
        total, entries = self.fingerprint, len(batch.indices)
        columns: tuple[tuple[NDArray[Any], int], ...] = (
            (np.diff(batch.indptr), self.rows),
            (batch.indices, self.entries),
            (batch.values, self.entries),
            (batch.y, self.rows),
            (batch.weight, self.rows),
        )
        for factor, (column, before) in zip(_FACTORS, columns, strict=True):
            size = column.nbytes
            view = np.ascontiguousarray(column).data.cast("B") if size else memoryview(b"")
            total += factor * text_fingerprint(view, 0, size, before * column.itemsize)
        return RowDigest(self.rows + len(batch), self.entries + entries, total % _MODULUS)

    def to_list(self) -> list[int]:
        """As JSON values."""
        return list(self)


def whole_numbers(saved: Any, count: int) -> list[int]:
    """The numbers of a digest as they were saved, checked."""
    if not isinstance(saved, list) or len(saved) != count or not all(_is_64_bit(number) for number in saved):
        raise InvalidInput(f"a digest needs {count} numbers from 0 to 2**64 - 1, got {saved!r:.100}; start anew.")
    return saved


def _is_64_bit(number: Any) -> bool:
    return type(number) is int and 0 <= number < _MODULUS


# ---- files ----


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
    if isinstance(saved, Mapping):
        raise InvalidInput(
            "resume= needs the data of the checkpoint, data in memory or a cache, got files; pass cache= too if it was"
            " used.",
            option="cache",
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
