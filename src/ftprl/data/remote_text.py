"""Text files for workers in other processes: which parts of the files each of them reads and parses."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, final

from ftprl.data.chunks import BufferPool, Chunk, TextPosition, chunks
from ftprl.data.files import SharedFile, is_compressed, is_uri, shown
from ftprl.data.parsing import ChunkParser, ParsedChunk
from ftprl.data.remote import check_here, size_of
from ftprl.errors import FtprlError

if TYPE_CHECKING:
    from ftprl.data.text_settings import TextSettings

_PARTS = 8  # of a file in place, for one job: few enough that jobs end at about the same time


@final
class TextJob(NamedTuple):
    """Rows of one file: some parts of it, read in place or already read, or all text from a position on."""

    file: int
    parts: tuple[Chunk, ...] = ()
    start: TextPosition | None = None
    negative: float = 1.0  # the label that counts as -1, 1 while that is not known


def text_jobs(files: tuple[str, ...], settings: TextSettings, start: TextPosition) -> Generator[TextJob]:
    """The text of the files from a position on, as jobs.

    A compressed file, and one of another file system, is one job: its text can only be read from the begin. Of other
    files this process finds where rows end; in place if it can do so without reading all of it.
    """
    negative = start.negative
    for number in range(start.file, len(files)):
        here = start if number == start.file else TextPosition(file=number, digest=None)
        if is_uri(files[number]) or is_compressed(files[number]):
            yield TextJob(number, start=here._replace(digest=None), negative=negative)
            continue
        parts: list[Chunk] = []
        with closing(chunks(files[: number + 1], settings, here, BufferPool())) as text:
            for chunk in text:
                if chunk.shared_file is None:
                    yield from _job(number, parts, negative)
                    yield TextJob(number, (_sendable(chunk),), negative=negative)
                    parts = []
                    continue
                parts.append(chunk._replace(shared_file=None))
                if len(parts) == _PARTS:
                    yield from _job(number, parts, negative)
                    parts = []
            yield from _job(number, parts, negative)


def _job(number: int, parts: list[Chunk], negative: float) -> Iterator[TextJob]:
    if parts:
        yield TextJob(number, tuple(parts), negative=negative)


def _sendable(chunk: Chunk) -> Chunk:
    """A chunk with nothing but its own text."""
    return chunk._replace(block=chunk.block[chunk.start : chunk.end], start=0, end=chunk.end - chunk.start)


@final
class TextWork:
    """Parses the text of a job; chunks come back without their text."""

    def __init__(self, files: tuple[str, ...], settings: TextSettings, *, digest: bool, keeps_records: bool) -> None:
        self._files, self._settings, self._digest, self._keeps_records = files, settings, digest, keeps_records

    def __call__(self, job: TextJob, /) -> Iterator[ParsedChunk]:
        """The rows of each chunk."""
        if job.start is not None or any(not part.block for part in job.parts):
            check_here(self._files[job.file])
        core = self._settings.parser()
        parser = ChunkParser(core, wants_fingerprint=self._digest, keeps_records=self._keeps_records)
        with closing(self._chunks(job)) as text:
            for chunk in text:
                parsed = parser.parse(chunk, job.negative)
                yield parsed._replace(chunk=parsed.chunk._replace(block=bytearray(), shared_file=None))
                if parsed.problem is not None:
                    return

    def size(self, result: ParsedChunk, /) -> tuple[int, int]:
        """The rows of a result and its bytes."""
        return size_of(result.batches)

    def describe(self, job: TextJob, /) -> str:
        """The file of a job."""
        return shown(self._files[job.file])

    def _chunks(self, job: TextJob) -> Generator[Chunk]:
        if job.start is not None:
            yield from chunks(self._files[: job.file + 1], self._settings, job.start, BufferPool())
            return
        shared: SharedFile | None = None
        for part in job.parts:
            if part.block or part.end == part.start:
                yield part
                continue
            shared = self._opened(job.file) if shared is None else shared
            yield part._replace(shared_file=shared)

    def _opened(self, number: int) -> SharedFile:
        with open(self._files[number], "rb", buffering=0) as raw:
            return SharedFile(raw.fileno())


def text_again(files: tuple[str, ...], settings: TextSettings, chunk: Chunk) -> Chunk:
    """A chunk with its text, which is read again."""
    length, text = chunk.end - chunk.start, bytearray()
    start = TextPosition(file=chunk.file, offset=chunk.offset)
    with closing(chunks(files[: chunk.file + 1], settings, start, BufferPool())) as rest:
        for part in rest:
            if part.shared_file is not None:
                text += os.pread(part.shared_file.descriptor, part.end - part.start, part.start)
            else:
                text += part.block[part.start : part.end]
            if len(text) >= length:
                return chunk._replace(block=text[:length], start=0, end=length)
    raise FtprlError(f"{chunk.origin}: the file became shorter while it was read; do not change it.")
