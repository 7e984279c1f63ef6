"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ftprl.errors import InvalidInput


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write beside `path`; when all went well it is synced and takes its place, otherwise it is removed."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.resolve().parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}; check the folder and its permissions.") from None
    try:
        with os.fdopen(os.dup(handle), "wb") as out:
            yield out  # a packer may close it
        os.fsync(handle)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno is not None:  # a write does not know its file
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        os.close(handle)
    _sync_folder(target.resolve().parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
