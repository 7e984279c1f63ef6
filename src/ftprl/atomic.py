"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ftprl.errors import InvalidInput


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write beside `path`; when all went well it is synced and takes its place, otherwise it is removed."""
    target = Path(path)
    folder = target.resolve().parent
    try:
        handle, name = _nameless(folder) or _named(folder, target.name)
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}; check the folder and its permissions.") from None
    try:
        with os.fdopen(os.dup(handle), "wb") as out:
            yield out  # a packer may close it
        os.fsync(handle)
        if not name:
            beside = str(folder / f".{target.name}.{os.getpid()}.{threading.get_ident()}.part")
            # An absolute path needs no folder, but only with one does Python follow the link.
            os.link(f"/proc/self/fd/{handle}", beside, src_dir_fd=handle, follow_symlinks=True)
            name = beside
        os.replace(name, target)
    except BaseException as error:
        if name:
            os.unlink(name)
        if isinstance(error, OSError) and error.errno is not None:  # a write does not know its file
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        os.close(handle)
    _sync_folder(folder)


def _nameless(folder: Path) -> tuple[int, str] | None:
    """A file that vanishes with its process, where the system has such: `kill -9` leaves nothing behind."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), ""
    except OSError:  # not on this kind of disk
        return None


def _named(folder: Path, name: str) -> tuple[int, str]:
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{name}.", suffix=".part")
    os.chmod(beside, 0o666 & ~_umask())
    return handle, beside


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
