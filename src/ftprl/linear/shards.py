"""Which server of a cluster has which shard of a table, and the files of shards (docs/cluster.md).

A table has 64 shards, and a server has whole ones. A round of rows over several servers is done in six steps:

1. `shard_reader.prepare`, by readers: number the coordinates of each block of rows, and announce them to the servers
   that have them.
2. `ShardTable.play`, by servers: raise the units by what all blocks have, and send the weights to the readers.
3. `shard_reader.score`, by readers: the products of rows with these weights, and the entries of hot coordinates.
4. The mixture of the rows, one after the other, by `ShardedEngine`.
5. `shard_reader.add_up`, by readers: the sums of the gradients of each coordinate.
6. `ShardTable.step`, by servers: one step for each coordinate, with the sums of all blocks in order.

Nothing in these modules depends on who calls it, in which process, or how many servers and readers there are. What they
send to each other is in `shard_messages`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ftprl.cluster.versions import Version, VersionedFolder
from ftprl.data.files import shown
from ftprl.errors import BadModel
from ftprl.linear.engine import Engine
from ftprl.linear.model_file import Loaded, parse
from ftprl.linear.rounds import SHARDS, Slots, Vector, no_sums, shard_of
from ftprl.linear.tensors import put_cells


def owner_of(slots: Slots, servers: int) -> NDArray[np.int64]:
    """The number of the server that has each slot, of so many: neighbouring shards are with one server.

    >>> owner_of(np.array([0, 1, 2], np.uint32), 2).tolist()
    [0, 1, 0]
    """
    return shard_of(slots).astype(np.int64) * servers // SHARDS


def shards_of(server: int, servers: int) -> list[int]:
    """The shards of one of so many servers.

    >>> shards_of(63, 64), len(shards_of(0, 3))
    ([63], 22)
    """
    return [shard for shard in range(SHARDS) if shard * servers // SHARDS == server]


def file_of(shard: int) -> str:
    """The name of a shard's file in a version.

    >>> file_of(7)
    'shard-07'
    """
    return f"shard-{shard:02d}"


def shard_files(uri: str, version: Version, shards: Sequence[int]) -> Iterator[Loaded]:
    """The shards of a version, one after the other."""
    folder = VersionedFolder(uri, "resume")
    for shard in shards:
        name = file_of(shard)
        loaded = parse(folder.read(version, name), f"{uri}, {name}")
        slots = loaded.tensors.get("slots")
        if loaded.content != {"shard": shard, "of": SHARDS} or slots is None or (shard_of(slots) != shard).any():
            raise BadModel(f"{shown(uri)}: expected shard {shard} in {name}, got another; start anew.")
        yield loaded


def put_shards(engine: Engine, uri: str, version: Version) -> None:
    """Put the cells of all shards of a version into one table."""
    for loaded in shard_files(uri, version, range(SHARDS)):
        put_cells(engine, loaded.tensors["slots"], loaded.tensors)


def sums_by_shard(servers: Sequence[Vector]) -> Vector:
    """The sums of all servers, each of which has some of the shards, as one learner would have them."""
    out = no_sums()
    for number, own in enumerate(servers):
        for shard in shards_of(number, len(servers)):
            out[shard, :, : own.shape[2]] = own[shard]
    return out
