"""Output files that are complete or absent, written by one run at a time, and never over an input."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ftprl.errors import InvalidInput

_LONGEST_NAME = 200  # longest file name from which other, longer names are built
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def check_target(name: str, path: str | os.PathLike[str] | None) -> None:
    """Raise InvalidInput before any work is done if the output file could not be written afterwards."""
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
    """Raise InvalidInput if an output file is also an input or another output; pairs in `allowed` may be one file.

    Links are followed, and files with several names (hard links) are compared by their inode. Standard input is 0.
    """
    files = {name: _identity(path) for name, path in {**others, **targets}.items() if path is not None}
    for name in targets:
        for other in files:
            known = name in files and name != other and frozenset((name, other)) not in allowed
            if known and files[name] == files[other] is not None:
                raise InvalidInput(
                    f"{name} needs a file of its own, got {os.fspath(targets[name])!r}, which is {other};"
                    " name another.",
                    option=other.rstrip("="),
                )


def _identity(path: Any) -> object:
    """Return a value that is equal for all names of a file; None for a pipe or a device, which several may use."""
    try:
        status = os.stat(path)
    except OSError:
        return None if isinstance(path, int) else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_special(path: str) -> bool:
    """Return True for an existing path that is not a regular file, such as a pipe or a device."""
    return os.path.exists(path) and not os.path.isfile(path)


# ---- one run at a time ----


@contextmanager
def reserved(targets: Mapping[str, str | os.PathLike[str] | None]) -> Iterator[None]:
    """Keep other runs from writing these files, each under the name of its option; raise InvalidInput if one is
    locked.

    The lock is on the empty file `.NAME.lock` beside the target and ends with the process, however that ends. A lock
    file left by a killed process is not locked: the next run takes it over and removes it.
    """
    with ExitStack() as stack:
        seen: set[Path] = set()
        for name, path in targets.items():
            target = None if path is None else Path(path).resolve()
            if target is None or target in seen or _is_special(str(target)):
                continue
            seen.add(target)
            lock = beside(target, "lock")
            handle = _lock_beside(lock, _taken(name, path or target))
            if handle is not None:
                stack.callback(_unlock, handle, lock)
        yield


def _taken(name: str, path: str | os.PathLike[str]) -> InvalidInput:
    """Return the error for a file that another run is writing."""
    return InvalidInput(
        f"{name} needs a file that no other run writes, got {os.fspath(path)!r}, which another run is writing; wait"
        " until that ends, or name another.",
        option=name.rstrip("="),
    )


def lock_file(handle: int, name: str, path: str | os.PathLike[str]) -> None:
    """Lock an open file until it is closed; raise InvalidInput if another run has it.

    `name` is the option that named the file.
    """
    if _try_lock(handle) is False:
        raise _taken(name, path)


def _try_lock(handle: int) -> bool | None:
    """Return True if the lock was acquired, False if another run has it, None if the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _lock_beside(lock: Path, taken: InvalidInput) -> int | None:
    """Create and lock a file; return None if locks are not supported or another user owns the file."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError:
            return None
        is_locked = _try_lock(handle)
        if is_locked and _is_named(handle, lock):
            return handle
        os.close(handle)
        if is_locked is None:
            with suppress(OSError):
                os.unlink(lock)
            return None
        if not is_locked:
            raise taken
        # A run that ended just now removed it: make another.


def _is_named(handle: int, path: Path) -> bool:
    """Return True if an open file is the one at this path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _unlock(handle: int, lock: Path) -> None:
    """Remove a lock file and close it."""
    with suppress(OSError):
        os.unlink(lock)
    os.close(handle)


def beside(path: str | os.PathLike[str], kind: str) -> Path:
    """Return the path of the hidden file `.NAME.kind` in the folder of a file.

    >>> beside("/tmp/model", "lock").name
    '.model.lock'
    """
    target = Path(path).resolve()
    return target.parent / f".{_stem(target)}.{kind}"


def _stem(target: Path) -> str:
    """Return the file name, or a digest if it is long, since other names are built from it."""
    name = target.name
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    import hashlib  # loads OpenSSL, which few commands need before they read

    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


# ---- complete or not at all ----


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` once it is complete and synced; after an error it is removed.

    Symbolic links and permissions are kept; a pipe or a device is written directly. Temporary files that killed
    processes left for this target are removed first.
    """
    target = Path(path).resolve()
    if _is_special(str(target)):
        with open(target, "wb") as out:
            yield out
        return
    _remove_stale_parts(target)
    try:
        handle, name = unnamed_file(target.parent) or _named_file(target)
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error.strerror}; check the folder and its permissions.") from None
    try:
        with os.fdopen(os.dup(handle), "wb") as out:
            yield out  # a compressor may close it
        _complete(handle, target)
        if not name:
            handle, name = _linked(handle, target)
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


def _complete(handle: int, target: Path) -> None:
    """Copy the permissions of the replaced file to the new one and sync it to disk."""
    if target.exists():
        os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
    os.fsync(handle)


def unnamed_file(folder: Path) -> tuple[int, str] | None:
    """Open a file without a name (O_TMPFILE), which vanishes if the process is killed; None if not supported."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:  # not supported by this file system
        return None
    _try_lock(handle)  # lock it before it has a name
    return handle, ""


def _linked(handle: int, target: Path) -> tuple[int, str]:
    """Give a file without a name a name beside its target; where that fails, copy it."""
    name = _part_name(target)
    try:
        # An absolute path needs no folder, but Python follows the link only if one is passed.
        os.link(f"/proc/self/fd/{handle}", name, src_dir_fd=handle, follow_symlinks=True)
        return handle, name
    except OSError:
        pass
    import shutil  # few runs need it

    copy, name = _named_file(target)
    try:
        with open(f"/proc/self/fd/{handle}", "rb") as source, os.fdopen(os.dup(copy), "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
        _complete(copy, target)
    except BaseException:
        os.close(copy)
        os.unlink(name)
        raise
    os.close(handle)
    return copy, name


def _part_name(target: Path) -> str:
    """Return a fresh name for a temporary file beside the target."""
    return str(target.parent / f".{_stem(target)}.{os.urandom(4).hex()}.part")


def _named_file(target: Path) -> tuple[int, str]:
    """Create a temporary file beside the target, locked so that no other run takes it for a stale one."""
    while True:
        name = _part_name(target)
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if _try_lock(handle) is None or _is_named(handle, Path(name)):
            return handle, name
        os.close(handle)  # another process took it for stale before it was locked


def _remove_stale_parts(target: Path) -> None:
    """Remove unlocked temporary files that killed processes left for a target."""
    mine = re.compile(re.escape(f".{_stem(target)}.") + r"[0-9a-f]{8}\.part")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if mine.fullmatch(name):
                _remove_if_stale(target.parent / name)


def _remove_if_stale(part: Path) -> None:
    """Remove a temporary file unless another process has locked it."""
    with suppress(OSError):
        handle = os.open(part, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if _try_lock(handle):
                os.unlink(part)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that a new name in it survives a crash; ignored where folders cannot be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # the folder may be writable but not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            reason = f"{error.strerror} while the folder was synced; the file is complete, but may not survive a crash"
            raise OSError(error.errno, reason, os.fspath(folder)) from None
    finally:
        os.close(handle)
