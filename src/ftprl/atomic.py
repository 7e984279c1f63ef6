"""Atomic writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ftprl.errors import InvalidInput


def check_target(name: str, path: str | os.PathLike[str] | None) -> None:
    """Raise before any work is done if the output file could not be written afterwards."""
    if path is None:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInput(f"{name} needs a folder that can be written, got {os.fspath(path)!r}; create it first.")
    if Path(path).is_dir():
        raise InvalidInput(f"{name} needs a file, got the folder {os.fspath(path)!r}; name a file in it.")


def check_apart(
    targets: Mapping[str, Any], others: Mapping[str, Any], allowed: Collection[frozenset[str]] = ()
) -> None:
    """Raise if an output file is also an input or another output; pairs in `allowed` may be the same file."""
    paths = {name: os.path.realpath(path) for name, path in {**others, **targets}.items() if path is not None}
    for name in targets:
        for other in paths:
            known = name in paths and name != other and frozenset((name, other)) not in allowed
            if known and paths[name] == paths[other] and not _is_special(paths[name]):
                raise InvalidInput(
                    f"{name} needs a file of its own, got {os.fspath(targets[name])!r}, which is {other};"
                    " name another.",
                    option=other.rstrip("="),
                )


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once it is complete and synced; after an error it is removed.

    Symbolic links and permissions are kept; a pipe or a device is written directly.
    """
    target = Path(path).resolve()
    if _is_special(str(target)):
        with open(target, "wb") as out:
            yield out
        return
    try:
        handle, name = unnamed_file(target.parent) or _named_file(target.parent)
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}; check the folder and its permissions.") from None
    try:
        with os.fdopen(os.dup(handle), "wb") as out:
            yield out  # a compressor may close it
        if target.exists():
            os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
        os.fsync(handle)
        if not name:
            beside = str(target.parent / f".{os.getpid()}.{threading.get_ident()}.part")
            # An absolute path needs no folder, but only with one does Python follow the link.
            os.link(f"/proc/self/fd/{handle}", beside, src_dir_fd=handle, follow_symlinks=True)
            name = beside
        os.replace(name, target)
    except BaseException as error:
        if name:
            os.unlink(name)
        if isinstance(error, OSError) and error.errno is not None:  # the error of a write does not name the file
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        os.close(handle)
    _sync_folder(target.parent)


def unnamed_file(folder: Path) -> tuple[int, str] | None:
    """A file without a name (O_TMPFILE), which vanishes if the process is killed; None where this is not supported."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), ""
    except OSError:  # not supported by this file system
        return None


def _named_file(folder: Path) -> tuple[int, str]:
    handle, beside = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
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
