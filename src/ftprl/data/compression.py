"""Compressed files: recognised by their first bytes, decompressed as they are read, compressed as they are written."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, final

from ftprl.errors import InvalidInput

BY_SUFFIX = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
MAGIC_BYTES = 4
_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
_SKIPPABLE = b"\x2a\x4d\x18"  # behind a byte from 0x50 to 0x5f: a frame of zstd that holds no data
_CHUNK = 1 << 18
ERRORS = (EOFError, OSError, zlib.error)  # what a decompressor raises for damaged data


class Readable(Protocol):
    """An object with a method `read`."""

    def read(self, size: int = -1, /) -> bytes | None: ...


def compression_of(head: bytes) -> str:
    """gzip, bzip2 or zstd by the first bytes of a file; "" for anything else.

    >>> compression_of(b"BZh9"), compression_of(b"1 | ")
    ('bzip2', '')
    """
    if head[1:4] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F:
        return "zstd"
    return next((name for name, magic in _MAGIC.items() if head.startswith(magic)), "")


def decompressed(raw: Any, compression: str) -> Readable:
    """The content of a compressed file."""
    if compression == "gzip":
        return _Members(raw, _GzipMember)
    if compression == "bzip2":
        return _Members(raw, _Bzip2Member)
    import pyarrow as pa

    stream: Readable = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return stream


def explained(compression: str, error: Exception) -> str:
    """What is wrong with compressed data, in one line."""
    reason = " ".join(str(error).split())
    if compression == "zstd" and "requires too much memory" in reason:
        return "expected zstd data with a window of at most 128 MiB, got a longer one; run zstd -d --long=31 on it."
    return f"expected whole {compression} data, got a broken file ({reason}); copy or compress it again."


class _Member(Protocol):
    """One of the compressed streams of which a file is made."""

    is_complete: bool
    unused: bytes  # behind the end of the stream

    def decompress(self, data: bytes, size: int) -> bytes:
        """Up to `size` bytes of what `data` and the input before it decompress to."""

    @property
    def needs_input(self) -> bool:
        """Whether more input has to come first."""


@final
class _GzipMember:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(31)
        self.is_complete, self.unused = False, b""

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    def decompress(self, data: bytes, size: int) -> bytes:
        out = self._stream.decompress(self._stream.unconsumed_tail + data, max(size, 0))
        self.is_complete, self.unused = self._stream.eof, self._stream.unused_data
        return out


@final
class _Bzip2Member:
    def __init__(self) -> None:
        import bz2

        self._stream = bz2.BZ2Decompressor()
        self.is_complete, self.unused = False, b""

    @property
    def needs_input(self) -> bool:
        return self._stream.needs_input

    def decompress(self, data: bytes, size: int) -> bytes:
        out = self._stream.decompress(data, size)
        self.is_complete, self.unused = self._stream.eof, self._stream.unused_data if self._stream.eof else b""
        return out


@final
class _Members:
    """One compressed stream or several, one behind the other.

    What follows a stream has to be another one, or zeros: the modules `gzip` and `bz2` of Python end a file without a
    word where a later stream is damaged. They are slower, too, and `gzip` needs a burst of memory.
    """

    def __init__(self, raw: Readable, make: Callable[[], _Member]) -> None:
        self._raw, self._make = raw, make
        self._member: _Member | None = make()
        self._pending = b""  # behind the last stream that is complete

    def read(self, size: int = -1, /) -> bytes:
        while True:
            if self._member is None and not self._next_member():
                return b""
            member = self._member
            assert member is not None
            data = b""
            if member.needs_input:
                data, self._pending = self._pending or self._raw.read(_CHUNK) or b"", b""
                if not data:
                    raise EOFError("it ends too early")
            out = member.decompress(data, size)
            if member.is_complete:
                self._member, self._pending = None, member.unused
            if out:
                return out

    def _next_member(self) -> bool:
        """Begin with the next stream; False at the end of the file."""
        while True:
            data = self._pending or self._raw.read(_CHUNK) or b""
            self._pending = data.lstrip(b"\0")  # some tools fill a block with zeros
            if self._pending:
                self._member = self._make()
                return True
            if not data:
                return False


def suffixes(file: str) -> tuple[str, str]:
    """The suffix of the format and that of the compression, each in lower case or empty."""
    stem, last = os.path.splitext(os.path.basename(file).lower())
    return (os.path.splitext(stem)[1], last) if last in BY_SUFFIX else (last, "")


_BLOCK = 1 << 20  # bytes


@contextmanager
def _uncompressed(target: Any) -> Iterator[Any]:
    yield target


def _gzip(target: Any) -> AbstractContextManager[Any]:
    import gzip

    # No name and no time inside: the same rows are the same bytes.
    return gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=target, mtime=0)


@contextmanager
def _zstd(target: Any) -> Iterator[Any]:
    import pyarrow as pa

    with pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(target), mode="w"), "zstd") as out:
        yield out


@final
class _LeftOpen:
    """A file for pyarrow's streams, which close what they write to: that is left to whoever opened it."""

    def __init__(self, target: Any) -> None:
        self.write, self.flush, self.closed = target.write, target.flush, False

    def close(self) -> None:
        """Note that it was closed; whoever opened the file closes it."""
        self.closed = True


PACKERS: dict[str, Callable[[Any], AbstractContextManager[Any]]] = {"": _uncompressed, ".gz": _gzip, ".zst": _zstd}


def check_packing(name: str, path: str) -> None:
    """Refuse an output file whose suffix is that of a compression that is only read."""
    suffix = suffixes(path)[1]
    if suffix not in PACKERS:
        raise InvalidInput(f"{name} needs a name that ends in .gz or .zst or in neither, got {path!r}; rename it.")


@contextmanager
def packed(target: Any, path: str) -> Iterator[Any]:
    """A file that is written compressed if its name ends in .gz or .zst; the bytes depend on the content alone."""
    suffix = suffixes(path)[1]
    with PACKERS[suffix](target) as out:
        if not suffix:
            yield out
            return
        blocks = _Blocks(out)
        yield blocks
        blocks.finish()


@final
class _Blocks:
    """Passes on what is written in blocks of one size: what a compressor makes may depend on how it is fed."""

    closed = False  # pyarrow's writers ask

    def __init__(self, out: Any) -> None:
        self._out, self._rest = out, bytearray()

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self._rest += data
        while len(self._rest) >= _BLOCK:
            self._out.write(bytes(self._rest[:_BLOCK]))
            del self._rest[:_BLOCK]
        return len(data)

    def flush(self) -> None:
        """Nothing: writers call it when they like, and the bytes depend on the content alone."""

    def finish(self) -> None:
        """Write what is left: at the end."""
        self._out.write(bytes(self._rest))
        self._rest.clear()
