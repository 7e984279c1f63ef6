"""Reading on many machines: workers of a Ray cluster parse the data, this process learns it (docs/cluster.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ftprl.cluster.connection import Cluster
    from ftprl.data.source import Source


@contextlib.contextmanager
def reading(engine: str | None, workers: int | None, source: Source) -> Iterator[Cluster | None]:
    """Let the workers of a cluster read the data of a source if `engine` is "ray"; yields the cluster, or None.

    `workers` is the option `threads`: how many parts of the data are read in parallel.
    """
    if engine in (None, "local"):
        yield None
        return
    from ftprl.cluster.connection import connect  # most commands do not need it

    with connect(workers, source) as cluster:
        yield cluster
