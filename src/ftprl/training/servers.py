"""The servers and readers of a shared table as actors of a Ray cluster (docs/cluster.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, final

from ftprl._core import Learner
from ftprl.cluster.connection import Cluster
from ftprl.cluster.fault import ClusterFault
from ftprl.cluster.versions import Version
from ftprl.data import Batch
from ftprl.data.remote_rows import Fault
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear.core_learner import core_learner
from ftprl.linear.engine import Engine
from ftprl.linear.model import Model
from ftprl.linear.shard_table import ShardTable
from ftprl.linear.sharded_engine import ShardedEngine, faults_of
from ftprl.linear.shards import shards_of
from ftprl.linear.spec import Spec

# What an actor asks for: no processor, which those that parse need, but a byte of memory. Ray puts actors that ask for
# nothing on any machine, whatever its options are; all servers may then be on one of them.
_SMALL = {"num_cpus": 0, "memory": 1}
_RETRIES = 5  # of what a reader does, if it dies: it depends on nothing but its arguments


@final
class RowFaults:
    """Finds the rows of a batch that no learner of some settings takes; workers get it by pickling."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    def __call__(self, batch: Batch, /) -> Iterator[Fault]:
        """The rows, counted from 0, and why."""
        return faults_of(_checking(self._spec), batch)


@lru_cache(maxsize=2)
def _checking(spec: Spec) -> Learner:
    """A learner that only checks rows."""
    return core_learner(spec, False, 0)


class _Server:
    """Has some shards of a table."""

    def __init__(self, spec: Spec, receipt: bool) -> None:
        self._table = ShardTable(spec, receipt=receipt)

    def call(self, returns: int | None, method: str, *arguments: Any) -> Any:
        """Call a method of the table."""
        return _result(getattr(self._table, method)(*arguments), returns)


class _Reader:
    """Computes; it keeps nothing from one call to the next."""

    def node(self) -> str:
        """The machine it runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def call(self, returns: int | None, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function."""
        return _result(work(*arguments), returns)


def _result(value: Any, returns: int | None) -> Any:
    """A result as Ray takes it: a list of one is no list."""
    return value[0] if returns == 1 else value


@final
class RayActors:
    """`Actors` on a Ray cluster: each server and each reader is an actor, and values are in the object stores."""

    def __init__(self, cluster: Cluster, servers: int) -> None:
        self.servers, self._ray = servers, cluster.ray
        self.node = str(self._ray.get_runtime_context().get_node_id())
        self._readers_wanted = cluster.workers
        self._servers: list[Any] = []
        self._readers: list[Any] = []
        self._nodes: list[str] = []
        self._assigned: Counter[int] = Counter()  # blocks that each reader was given

    def open(self, spec: Spec, *, receipt: bool) -> None:
        """Start servers, whose tables are empty, and readers if there are none yet."""
        for server in self._servers:
            self._ray.kill(server)
        make = self._ray.remote(**_SMALL, max_restarts=0)(_Server)
        strategies = self._spread(self.servers)
        self._servers = [make.options(scheduling_strategy=strategy).remote(spec, receipt) for strategy in strategies]
        if not self._readers:
            reader = self._ray.remote(**_SMALL, max_restarts=-1, max_task_retries=_RETRIES)(_Reader)
            strategies = self._spread(self._readers_wanted)
            self._readers = [reader.options(scheduling_strategy=strategy).remote() for strategy in strategies]
            self._nodes = self.get([reader.node.remote() for reader in self._readers])

    def _spread(self, count: int) -> list[Any]:
        """A machine for each of so many: all that have processors in turn, that of this process last.

        A machine that has rows should have a reader, or its rows are moved. If a machine is lost, another one does.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        alive = [node for node in self._ray.nodes() if node["Alive"]]
        some = [node["NodeID"] for node in alive if node["Resources"].get("CPU", 0.0) >= 1.0]
        nodes = sorted(some or [node["NodeID"] for node in alive], key=lambda node: (node == self.node, node))
        return [On(nodes[number % len(nodes)], soft=True) for number in range(count)]

    def close(self) -> None:
        """End all of them."""
        for actor in (*self._servers, *self._readers):
            self._ray.kill(actor)
        self._servers, self._readers = [], []

    def on_server(self, number: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Have a server do something."""
        return _called(self._servers[number], returns, method, *arguments)

    def reader_near(self, nodes: Sequence[str]) -> int:
        """The reader with the fewest blocks so far, on one of these machines if there is one."""
        near = [number for number, node in enumerate(self._nodes) if node in nodes] or range(len(self._readers))
        chosen = min(near, key=lambda number: self._assigned[number])
        self._assigned[chosen] += 1
        return chosen

    def node_of(self, reader: int) -> str:
        """The machine of a reader."""
        return self._nodes[reader]

    def on_reader(self, number: int, work: Callable[..., Any], *arguments: Any, returns: int | None = None) -> Any:
        """Have a reader call a function."""
        return _called(self._readers[number], returns, work, *arguments)

    def put(self, value: Any) -> Any:
        """A handle for a value."""
        return self._ray.put(value)

    def get(self, handles: list[Any]) -> list[Any]:
        """The values of handles."""
        exceptions = self._ray.exceptions
        try:
            values: list[Any] = self._ray.get(handles)
        except exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, exceptions.RayError):
                raise _lost(cause) from None
            raise (cause if isinstance(cause, FtprlError | OSError | MemoryError) else error) from None
        except exceptions.RayError as error:
            raise _lost(error) from None
        return values


def _lost(error: BaseException) -> ClusterFault:
    what = " ".join(str(error).split())[:160] or type(error).__name__
    return ClusterFault(
        f"servers= needs servers and machines that stay, got one that was lost ({type(error).__name__}: {what});"
        " pass checkpoint= with a shared path, and the run goes on from there.",
        option=("servers", "checkpoint"),
    )


def _called(actor: Any, returns: int | None, *arguments: Any) -> Any:
    """A handle for what an actor returns, or one for each of several."""
    handles = actor.call.options(num_returns=returns or 1).remote(returns, *arguments)
    return [handles] if returns == 1 else handles


def check_servers(model: Model) -> None:
    """Refuse, before any work, what a shared table cannot do."""
    round_rows = model.engine.spec.round_rows
    if round_rows == 1:
        raise InvalidInput(
            "servers= needs rounds of several rows, got round_rows=1; pass round_rows=65536, or drop servers=.",
            option=("servers", "round_rows"),
        )
    if model.admission is not None:
        raise InvalidInput("servers= does not support admit= yet, got both; drop one.", option=("servers", "admit"))


@contextmanager
def spread_over(
    cluster: Cluster, servers: int, engine: Engine, saved: tuple[str, Version] | None
) -> Iterator[ShardedEngine]:
    """An engine whose cells go to servers of a cluster; `saved` is where they are if the engine has none of them."""
    actors = RayActors(cluster, servers)
    cluster.faults = RowFaults(engine.spec)
    sharded = ShardedEngine(engine, actors, None if saved is None else lambda: _load(actors, *saved))
    cluster.exchange = lambda: {"servers": servers, "exchange": sharded.exchange.to_dict()}
    try:
        if saved is not None:
            sharded.spread()
        yield sharded
    finally:
        cluster.faults = None
        actors.close()


def _load(actors: RayActors, uri: str, version: Version) -> None:
    """Have each server read its shards from the files of a version."""
    numbers = range(actors.servers)
    actors.get([actors.on_server(one, "load", uri, version, shards_of(one, actors.servers)) for one in numbers])
