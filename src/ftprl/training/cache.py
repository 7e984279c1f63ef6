"""`train --cache`: the rows of the data as a file of hashed batches, made once for as long as the data is the same.

The file is used if it was made with the same options from files with the same bytes: all of them are read and compared
by their fingerprints, which takes a small part of the time of parsing.
"""

from __future__ import annotations

import os
from typing import Any

from ftprl._core import read_block
from ftprl.data import Source
from ftprl.data.batches import BatchesSource, write_batches
from ftprl.data.files import suffixes
from ftprl.errors import FtprlError, InvalidInput

_BLOCK = 1 << 22
_FACTOR = 0x9E3779B97F4A7C15


def cached(source: Source, path: str, threads: int | None = None, *, names: bool | str = False) -> Source:
    """The rows of a source, read from the file `path`, which is made first if there is none of the same data.

    `names` says whether the names of features are kept.
    """
    if suffixes(path) != (".batches", ""):
        raise InvalidInput(f"cache= needs a name that ends in .batches, got {path!r}; rename it.", option="cache")
    if isinstance(source, BatchesSource):
        raise InvalidInput(f"cache= needs data that is parsed, got {source.files[0]!r}, which is batches; drop it.")
    on_bad_row = "skip" if source.skips_bad_rows else "raise"
    known = data_of(source, names) if source.can_be_read_again else None
    if known is not None and (earlier := _opened(path, source, on_bad_row, names)) and earlier.made_from == known:
        return earlier
    write_batches(path, source, known, threads=threads)
    if known is not None and data_of(source, names) != known:
        os.unlink(path)
        raise InvalidInput(
            "cache= needs data that stays as it is, got files that changed while they were read; train again."
        )
    return BatchesSource(path, on_bad_row=on_bad_row, files=source.files, names=names)


def _opened(path: str, source: Source, on_bad_row: str, names: bool | str) -> BatchesSource | None:
    """The file of an earlier run, if it is whole and was made with the same options."""
    try:
        earlier = BatchesSource(path, on_bad_row=on_bad_row, files=source.files, names=names)
    except FtprlError:
        return None
    return earlier if earlier.to_dict() == source.to_dict() else None


def data_of(source: Source, names: bool | str) -> Any:
    """What the data is recognised by: the size and the fingerprint of each file, and what of it is kept."""
    files = [_fingerprint(file) for file in source.files] if source.files else source.fingerprint()
    return {"files": files, "skip": source.skips_bad_rows, "names": names}


def _fingerprint(file: str) -> list[int]:
    """The size of a file and one number of the fingerprints of its parts."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = total = 0
        while True:
            block, fingerprint = read_block(handle, size, _BLOCK)
            if not len(block):
                return [size, total]
            size, total = size + len(block), (total * _FACTOR + fingerprint + 1) % 2**64
    finally:
        os.close(handle)
