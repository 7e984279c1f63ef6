"""From paths to text: folders, patterns, URIs, standard input, compressed files, and what can go wrong with them."""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import posixpath
import re
import stat
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

from ftprl.data.compression import (
    BY_SUFFIX,
    ERRORS,
    MAGIC_BYTES,
    Readable,
    compression_of,
    decompressed,
    explained,
    suffixes,
)
from ftprl.errors import BadFormat, FtprlError, InvalidInput

T = TypeVar("T")
STDIN = STDOUT = "-"
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 18
_LOOK = 1 << 14  # bytes read at a time to find the end of a row
_FIRST_LOOK = 1 << 12
LONGEST_LOOK = 1 << 16  # bytes without a line feed before a carriage return counts as the end of a line


def shown(text: bytes | str) -> str:
    """Text from a file as one printable line.

    >>> shown(b"a\\tb\\xff")
    'a\\\\tb\\\\xff'
    """
    decoded = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in decoded)


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The files of paths, folders and patterns; those of a folder or a pattern in the order of their names."""
    items = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [file for path in items for file in _expand_one(os.fspath(path))]
    if not files:
        kind = type(paths).__name__
        raise InvalidInput(f"data needs at least one row or path, got an empty {kind}; pass rows, a frame or paths.")
    if STDIN in files and len(files) > 1:
        raise InvalidInput(f"data needs '-' alone, got it among {len(files)} files; read standard input by itself.")
    return tuple(files)


def _expand_one(path: str) -> list[str]:
    if not isinstance(path, str):
        raise InvalidInput(f"paths needs text or Path objects, got {path!r}; decode it first.")
    if not path:
        raise InvalidInput("data needs the path of a file, got an empty text; pass one, or '-' for standard input.")
    if is_uri(path):
        pass

        return expand_uri(path)
    if path == STDIN or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        files = _files_in(Path(path))
        if not files:
            raise InvalidInput(f"{shown(path)}: expected files in the folder, got none; check the path.")
        return files
    if os.path.exists(path):  # a pipe, a device
        return [path]
    files = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
    if not files and ("|" in path or "\n" in path):
        raise InvalidInput(
            f"data needs the paths of files, got the text {shown(path[:60])!r}; write the rows to a file first."
        )
    if not files:
        raise InvalidInput(f"{shown(path)}: no such file; check the path.")
    return files


def _files_in(folder: Path) -> list[str]:
    """The files of a folder and of its partitions, which are folders such as `day=3`, in the order of their names."""
    files: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and "=" in path.name:
            files += _files_in(path)
        elif path.is_file() and not is_hidden(path.name):
            files.append(str(path))
    return files


def is_hidden(name: str) -> bool:
    """Whether a file of a folder is no data: `.name`, and what others leave beside tables, such as `_SUCCESS`."""
    return name.startswith(".") or (name.startswith("_") and "." not in name)


_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_uri(file: str) -> bool:
    """Whether a path is one of another file system, such as s3://bucket/file."""
    return _URI.match(file) is not None


def lasts(file: str) -> bool:
    """Whether a file can be read again: standard input, pipes and devices cannot."""
    return file != STDIN and (is_uri(file) or os.path.isfile(file))


def is_compressed(file: str) -> bool:
    """Whether a file that can be opened is compressed, by its first bytes."""
    try:
        with open(file, "rb", buffering=0) as raw:
            return bool(compression_of(raw.read(MAGIC_BYTES) or b""))
    except OSError:
        return False  # what is wrong with it is reported when it is read


def is_receipt(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a receipt of `ftprl certify`."""
    return head.startswith(b"{") and b'"format": "ftprl-receipt"' in head


def is_model(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a model: the length of a JSON header, and its begin."""
    return head[3:8] == bytes(5) and head[8:].startswith(b'{"__metadata__"')


def mistaken(file: str) -> str:
    """What a file is that was passed as another kind of file, for messages; "" if it is no file of ftprl.

    >>> mistaken("/no/such/file")
    ''
    """
    try:
        with open(file, "rb") as raw:
            head = raw.read(LONGEST_LOOK)
    except OSError:
        return ""
    return "a model" if is_model(head) else "a receipt" if is_receipt(head) else ""


@final
class ErrorWithoutLine(Exception):
    """What is wrong with a file, before it is known at which line its reader is."""

    def __init__(self, kind: type[FtprlError], name: str, message: str, *, option: str | tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self._kind, self._name, self._option = kind, name, option

    def __reduce__(self) -> tuple[Any, ...]:
        return _error_without_line, (self._kind, self._name, str(self), self._option)

    def at(self, line: int) -> FtprlError:
        """The error, with its line."""
        return self._kind(f"{self._name}:{line}: {self}", option=self._option)


def _error_without_line(kind: type[FtprlError], name: str, message: str, option: tuple[str, ...]) -> ErrorWithoutLine:
    return ErrorWithoutLine(kind, name, message, option=option)


def unreadable(name: str, error: OSError | EOFError) -> ErrorWithoutLine:
    """An error of the system about a file."""
    if isinstance(error, OSError):
        return ErrorWithoutLine(InvalidInput, name, f"{error.strerror}; check the file and its disk.")
    return ErrorWithoutLine(
        BadFormat,
        name,
        f"expected the file as it was, got an end too early ({error}); do not change it while it is read.",
    )


@final
class SharedFile:
    """A file that stays open as long as anybody may read from it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = os.dup(descriptor)

    def __del__(self) -> None:
        os.close(self.descriptor)


@final
class _Joined(io.RawIOBase):
    """Some bytes already read, then the rest of a file."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        # What a pipe has by now, rather than waiting until the block is full.
        self._more: Callable[[int], bytes | None] = rest.read1 if isinstance(rest, io.BufferedReader) else rest.read

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes | None:
        if self._head or size < 0:
            return super().read(size)
        return self._more(size)  # as it comes: through `readinto` every block would be copied twice more

    def readinto(self, buffer: Any, /) -> int:
        taken = self._head[: len(buffer)] or self._more(len(buffer)) or b""
        self._head = self._head[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


def _standard_input() -> Any:
    """Without a buffer of Python's: a thread that waits in one cannot be left behind when the program ends."""
    try:
        return io.FileIO(sys.stdin.fileno(), closefd=False)
    except (AttributeError, OSError, ValueError):  # closed, or something that only looks like a file
        if sys.stdin is None:
            raise InvalidInput("standard input is closed; pass a file or open it.") from None
        return sys.stdin.buffer


def opened(file: str) -> Any:
    """The bytes of a file, as they are, from its begin on."""
    if is_uri(file):
        pass

        return open_stream(file)
    return open(file, "rb", buffering=0)


@final
class Stream:
    """The text of one file, decompressed, as blocks of bytes; errors name the file and the line that was reached."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.name = "<stdin>" if file == STDIN else shown(file)
        try:
            raw: Any = _standard_input() if file == STDIN else opened(file)
        except OSError as error:
            raise InvalidInput(f"{self.name}: {error.strerror}; check the path and its permissions.") from None
        self._raw = raw
        self.first_size = 0 if file == STDIN or is_uri(file) else self.size()
        try:
            head = self._head(raw)
        except ErrorWithoutLine as error:
            self.close()
            raise error.at(1) from None
        self._compression = compression_of(head)
        if head[3:4] == b"\0" and mistaken(file):
            self.close()
            raise BadFormat(f"{self.name}: expected rows of data, got a model; pass the data.")
        promised = BY_SUFFIX.get(suffixes(file)[1], "")
        if promised and self._compression != promised:
            self.close()
            raise BadFormat(f"{self.name}:1: expected {promised} data, got other bytes; check the file or its suffix.")
        joined = _Joined(head, raw)
        self._text: Readable = decompressed(joined, self._compression) if self._compression else joined
        self._is_fresh = True
        self._read_before = b""  # read to see how lines end
        self._ends_in_cr = False

    def _head(self, raw: Readable) -> bytes:
        def first() -> bytes:
            head = b""
            while len(head) < MAGIC_BYTES and (more := raw.read(MAGIC_BYTES - len(head))):
                head += more
            return head

        return self._careful(first)

    def read(self, size: int, line: int = 1) -> bytes:
        """Up to `size` more bytes; none at the end."""
        try:
            return self._read(size)
        except ErrorWithoutLine as error:
            raise error.at(line) from None

    def read_into(self, view: memoryview) -> int:
        """How many more bytes were put into `view`; 0 at the end. What goes wrong has no line yet."""
        if self.can_jump():
            return self._careful(lambda: self._raw.readinto(view) or 0)
        block = self._read(len(view))
        view[: len(block)] = block
        return len(block)

    def _read(self, size: int) -> bytes:
        self.look_ahead(size)
        block, self._read_before = self._read_before[:size], self._read_before[size:]
        return block or self._lines_of(self._some(size))

    def _lines_of(self, text: bytes) -> bytes:
        return text.replace(b"\r", b"\n") if self._ends_in_cr else text

    def look_ahead(self, size: int) -> None:
        """Read as far as is needed to leave out a byte order mark and to see how lines end, unless that was done.

        Decompressed text is read in blocks of `size` bytes; of other files little is read: they are read in place, and
        from a pipe more would come too late.

        Lines of text from old systems end in a carriage return alone.
        """
        if not self._is_fresh:
            return
        self._is_fresh = False
        amount = size if self._compression else _FIRST_LOOK
        text = self._some(amount)
        while text and b"\n" not in text and len(text) < LONGEST_LOOK and (more := self._some(amount)):
            text += more
        start = len(_BOM) if text.startswith(_BOM) else 0
        self._ends_in_cr = b"\r" in text and b"\n" not in text
        if self._is_raw() and not self._ends_in_cr:
            self._raw.seek(start)
        else:
            self._read_before = self._lines_of(text[start:])

    def from_offset(self, offset: int, data: bytes, line: int) -> bytes:
        """The text that is known from `offset` on, given all that was read so far; `line` is where it begins."""
        at = len(data)
        while at < offset:
            if self.can_jump() and os.fstat(self._raw.fileno()).st_size >= offset:
                self._raw.seek(offset - at, os.SEEK_CUR)
                return b""
            data = self.read(_CHUNK, line)
            if not data:
                raise BadFormat(
                    f"{self.name}:{line}: expected at least {offset} bytes of text, got {at};"
                    " resume with the data that was read before."
                )
            at += len(data)
        return data[len(data) - (at - offset) :]

    def can_jump(self) -> bool:
        """Whether the next byte of the text is the next byte of a regular file."""
        return self._is_raw() and not self._is_fresh and not self._ends_in_cr

    def _is_raw(self) -> bool:
        """Whether the text is that of a regular file, as it is."""
        if self.file == STDIN or is_uri(self.file) or self._compression:
            return False
        return stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode)

    def offset(self, back: int = 0) -> int:
        """Where the text stands in a file in which one can jump, so many bytes before what was read."""
        return int(self._raw.tell()) - back

    def jump(self, offset: int) -> None:
        """Go on from byte `offset` of such a file."""
        self._raw.seek(offset)

    def size(self) -> int:
        """How many bytes such a file has by now."""
        return os.fstat(self._raw.fileno()).st_size

    def shared(self) -> SharedFile:
        """The file, for those who read it on their own."""
        return SharedFile(self._raw.fileno())

    def row_end(self, start: int, stop: int) -> int:
        """Where the last whole line of bytes [start, stop) of such a file ends; `start` when none does."""
        file = self._raw.fileno()
        while stop > start:
            begin = max(start, stop - _LOOK)
            newline = self._careful(partial(os.pread, file, stop - begin, begin)).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            stop = begin
        return start

    def _some(self, size: int) -> bytes:
        return self._careful(lambda: self._text.read(size) or b"")

    def _careful(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except ERRORS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise unreadable(self.name, error) from None
            raise ErrorWithoutLine(BadFormat, self.name, shown(explained(self._compression, error))) from None

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.file != STDIN:
            self._raw.close()


_WILD = "*["  # a question mark begins the options of a URI


def expand_uri(uri: str) -> list[str]:
    """The files of a URI: itself, those of a folder and its partitions, or those that fit a pattern."""
    from pyarrow import fs

    scheme, rest = uri.split("://", 1)
    is_pattern = any(c in rest for c in _WILD)
    if scheme == "file" and not is_pattern:
        pass

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
