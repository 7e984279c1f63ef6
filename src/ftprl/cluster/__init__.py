"""Reading on many machines: workers of a Ray cluster parse the data, this process learns it (docs/cluster.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ftprl.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from ftprl.cluster.connection import Cluster
    from ftprl.data.protocol import Source


@contextlib.contextmanager
def reading(options: ClusterOptions, source: Source) -> Iterator[Cluster | None]:
    """The cluster that reads the data of a source; None where threads of this process do it."""
    options.check()
    if options.engine == "local":
        yield None
        return
    from ftprl.cluster.connection import connect  # most commands do without

    with connect(options, source) as cluster:
        yield cluster
