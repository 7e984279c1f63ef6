"""Files that are compressed as they are written, by the suffix of their names: the same content is the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, final

from ftprl.data.files import suffixes
from ftprl.errors import InvalidInput

_BLOCK = 1 << 20  # bytes


@contextmanager
def _plain(target: Any) -> Iterator[Any]:
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


PACKERS: dict[str, Callable[[Any], AbstractContextManager[Any]]] = {"": _plain, ".gz": _gzip, ".zst": _zstd}


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
