"""Files of columns for workers in other processes: a job is a part of a file, such as a row group."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, final

from ftprl.data.files import shown
from ftprl.data.frame_source import BlockParser, FramePosition, FrameSettings, ParsedBlock, jobs_of
from ftprl.data.remote import size_of

if TYPE_CHECKING:
    from ftprl.data.column_source import FileBlocks


@final
class ColumnJob(NamedTuple):
    """A part of a file; `start` is where the reading begins."""

    file: int
    group: int
    start: FramePosition


def column_jobs(reader: FileBlocks, start: FramePosition) -> Generator[ColumnJob]:
    """The parts of all files from a position on; one without parts is a job too, so that its columns are checked."""
    begin = replace(start, digest=None, end=None, first_bad=None)
    for file in range(start.file, len(reader.files)):
        first = start.group if file == start.file else 0
        for group in range(first, max(first + 1, reader.groups(file))):
            yield ColumnJob(file, group, begin)


@final
class ColumnWork:
    """Reads and parses a part of a file; blocks come back without their rows."""

    def __init__(self, reader: FileBlocks, settings: FrameSettings) -> None:
        self._reader, self._settings = reader, settings

    def __call__(self, job: ColumnJob, /) -> Iterator[ParsedBlock]:
        """The rows of the part."""
        parser = BlockParser(self._settings)
        for block in self._reader.blocks_of_group(job.file, job.group):
            for part in jobs_of(block, job.start):
                parsed = parser.parse(part, job.start.negative)
                yield replace(parsed, job=(block.without_rows(), *part[1:]))
                if parsed.problem is not None:
                    return

    def size(self, result: ParsedBlock, /) -> tuple[int, int]:
        """The rows of a result and its bytes."""
        return size_of(result.batches)

    def describe(self, job: ColumnJob, /) -> str:
        """The file of a job, and which part of it."""
        return f"{shown(self._reader.files[job.file])}, part {job.group}"
