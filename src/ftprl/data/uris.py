"""Files of other file systems, through pyarrow: s3://, gs://, hdfs:// and what fsspec adds where it is installed."""

from __future__ import annotations

import fnmatch
import posixpath
from typing import Any

from ftprl.data.files import is_hidden, shown
from ftprl.errors import InvalidInput

_WILD = "*["  # a question mark begins the options of a URI


def expand_uri(uri: str) -> list[str]:
    """The files of a URI: itself, those of a folder and its partitions, or those that fit a pattern."""
    from pyarrow import fs

    scheme, rest = uri.split("://", 1)
    is_pattern = any(c in rest for c in _WILD)
    if scheme == "file" and not is_pattern:
        from ftprl.data.files import expand

        return list(expand(_local(uri)))
    head = posixpath.dirname(rest[: min(rest.find(c) for c in _WILD if c in rest)]) if is_pattern else rest
    system, path = resolved(f"{scheme}://{head}")
    try:
        info = system.get_file_info(path)
        if not is_pattern and info.type == fs.FileType.File:
            return [uri]
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        paths = [one.path for one in system.get_file_info(selector) if one.type == fs.FileType.File]
    except Exception as error:  # whatever a file system of others raises
        raise unreachable(uri, error) from None
    shift = len(path.rstrip("/"))
    inside = {one: one[shift:].lstrip("/") for one in paths}
    if is_pattern:
        wanted = rest[len(head) :].lstrip("/")
        kept = [short for short in inside.values() if fnmatch.fnmatchcase(short, wanted)]
    else:
        kept = [short for short in inside.values() if _is_data(short)]
    if not kept:
        raise InvalidInput(f"{shown(uri)}: no such file; check the path.")
    return [f"{scheme}://{head.rstrip('/')}/{short}" for short in sorted(kept)]


def _is_data(path: str) -> bool:
    """Whether a file within a folder is data of the folder itself or of one of its partitions."""
    *folders, name = path.split("/")
    return all("=" in folder for folder in folders) and not is_hidden(name)


def _local(uri: str) -> str:
    from pyarrow import fs

    path: str = fs.FileSystem.from_uri(uri)[1]
    return path


def resolved(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path there."""
    from pyarrow import ArrowException, fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
        return system, path
    except ArrowException as error:
        known = _by_fsspec(uri)
        if known is None:
            raise unreachable(uri, error) from None
        return known
    except Exception as error:  # no network, no credentials, no library for it
        raise unreachable(uri, error) from None


def _by_fsspec(uri: str) -> tuple[Any, str] | None:
    """The same by fsspec; None if it is not installed or does not know the scheme either."""
    from pyarrow import fs

    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(uri)
    except Exception:
        return None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def open_stream(uri: str) -> Any:
    """The bytes of a file, from its begin on."""
    system, path = resolved(uri)
    try:
        return system.open_input_stream(path, compression=None)
    except Exception as error:
        raise unreachable(uri, error) from None


def open_file(uri: str) -> Any:
    """The bytes of a file in any order."""
    system, path = resolved(uri)
    try:
        return system.open_input_file(path)
    except Exception as error:
        raise unreachable(uri, error) from None


def unreachable(uri: str, error: Exception) -> InvalidInput:
    """The error of a file that another file system does not give."""
    what = shown(" ".join(str(error).split()))[:160] or type(error).__name__
    return InvalidInput(f"{shown(uri)}: cannot be reached ({what}); check the address, the network and its access.")
