"""Reading done by other processes: jobs that can be sent to them, and results that come back in order."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from ftprl.data.batch import Batch
from ftprl.data.files import is_uri, shown
from ftprl.errors import InvalidInput

J = TypeVar("J")
R = TypeVar("R")
J_contra = TypeVar("J_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[J_contra, R_co]):
    """What a worker does with a job: it reads and parses, and yields results; all of them can be pickled."""

    def __call__(self, job: J_contra, /) -> Iterator[R_co]:
        """The results of one job, in order; they are the same whenever it is done."""

    def size(self, result: Any, /) -> tuple[int, int]:
        """The rows of a result, and about how many bytes it has."""

    def describe(self, job: J_contra, /) -> str:
        """What the job reads, for messages."""


@runtime_checkable
class Workers(Protocol):
    """Processes that do jobs, on this machine or on others."""

    def results(self, jobs: Iterator[J], work: Work[J, R]) -> Generator[R]:
        """The results of all jobs, in the order of the jobs; a job whose worker dies is done again."""


def check_here(file: str) -> None:
    """Refuse a file that the process that learns has found and this one, on another machine, does not have."""
    if not is_uri(file) and not os.path.exists(file):
        import socket  # takes long, and most readings need none

        raise InvalidInput(
            f"{shown(file)}: not there on a worker of the cluster, on {socket.gethostname()}; put the data on a path"
            " that all nodes have."
        )


def size_of(batches: Iterable[Batch]) -> tuple[int, int]:
    """The rows of some batches and the bytes of their arrays."""
    rows = size = 0
    for batch in batches:
        rows += len(batch)
        size += sum(a.nbytes for a in (batch.indptr, batch.indices, batch.values, batch.y, batch.weight))
    return rows, size
