"""Columns in parts for workers in other processes: a job is a part, such as a row group of a file."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, final

from ftprl.data.blocks import Block
from ftprl.data.files import shown
from ftprl.data.frame_blocks import BlockParser, FramePosition, FrameSettings, Job, ParsedBlock, jobs_of
from ftprl.data.frame_source import Blocks, FrameSource
from ftprl.data.remote import Work, Workers, size_of


class BlocksInParts(Blocks, Protocol):
    """Blocks of which each part can be read by itself, in any process."""

    @property
    def files(self) -> tuple[str, ...]:
        """What has the parts."""

    def groups(self, number: int, /) -> int:
        """How many parts a file has."""

    def blocks_of_group(self, file: int, group: int, /) -> Iterator[Block]:
        """The blocks of one part."""

    def check_here(self, number: int, /) -> None:
        """Raise InvalidInput if this process does not have a file."""


@final
class ColumnJob(NamedTuple):
    """A part of a file; `start` is where the reading begins."""

    file: int
    group: int
    start: FramePosition


def column_jobs(reader: BlocksInParts, start: FramePosition) -> Generator[ColumnJob]:
    """The parts of all files from a position on; one without parts is a job too, so that its columns are checked."""
    begin = replace(start, digest=None, end=None, first_bad=None)
    for file in range(start.file, len(reader.files)):
        first = start.group if file == start.file else 0
        for group in range(first, max(first + 1, reader.groups(file))):
            yield ColumnJob(file, group, begin)


@final
class ColumnWork:
    """Reads and parses a part of a file; blocks come back without their rows."""

    def __init__(self, reader: BlocksInParts, settings: FrameSettings) -> None:
        self._reader, self._settings = reader, settings

    def __call__(self, job: ColumnJob, /) -> Iterator[ParsedBlock]:
        """The rows of the part."""
        self._reader.check_here(job.file)
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


class PartSource(FrameSource):
    """Columns in parts as batches, which workers in other processes may parse."""

    def __init__(self, reader: BlocksInParts, settings: FrameSettings) -> None:
        super().__init__(reader, settings)
        self._parts = reader

    def use_workers(self, workers: Workers | None) -> None:
        """Have all rows parsed by these workers, in other processes; None for threads of this one."""
        self._workers = workers

    def _remote(self, start: FramePosition) -> tuple[Generator[Any], Work[Any, ParsedBlock]]:
        return column_jobs(self._parts, start), ColumnWork(self._parts, self._settings)

    def _job_again(self, job: Job) -> Job:
        block, at, stop = job
        if self._workers is None:
            return job
        same = (one for one in self._parts.blocks_of_group(block.file, block.group) if one.first == block.first)
        return next(same), at, stop
