"""The connection to a Ray cluster, or to one that is started on this machine for the duration of a run."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Generator, Iterator
from typing import Any, TypeVar, final

from ftprl.cluster.jobs import ReadingTotals, ordered_results
from ftprl.data.jobs import JobSource, Work
from ftprl.data.source import Source
from ftprl.errors import InvalidInput
from ftprl.extras import extra_imports
from ftprl.version import __version__

J = TypeVar("J")
R = TypeVar("R")

ADDRESS = "RAY_ADDRESS"  # Ray's own variable with the address of a cluster, such as auto or 10.0.0.1:6379
_ANSWER_SECONDS = 5
_START_SECONDS = 120
# Settings of Ray, unless the environment has others: no warning about GPUs at each start, no statistics sent anywhere,
# and workers with the priority of the command itself (Ray gives them the lowest one).
_SETTINGS = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}


@final
class Cluster:
    """Workers of a Ray cluster; `results` runs jobs on them and yields the results in order."""

    def __init__(self, ray: Any, workers: int) -> None:
        self.ray, self.workers = ray, workers
        self.totals = ReadingTotals()

    def summary(self) -> dict[str, Any]:
        """Return statistics of the workers so far, as JSON values."""
        return {"engine": "ray", "workers": self.workers, **self.totals.to_dict()}

    def results(self, jobs: Iterator[J], work: Work[J, R]) -> Generator[R]:
        """Yield the results of all jobs, in the order of the jobs; a job whose worker dies is run again."""
        yield from ordered_results(self.ray, work, self.workers, self.totals, jobs)


@contextlib.contextmanager
def connect(workers: int | None, source: Source) -> Iterator[Cluster]:
    """Let the workers of a cluster read the data of a source.

    By default there is one worker for each processor of the cluster but one, which learns.
    """
    if workers is not None and workers < 1:
        raise InvalidInput("threads= needs at least 1 with engine=ray, got 0; pass 1.", option=("threads", "engine"))
    readable = _readable(source)
    ray = _imported()
    is_ours = not ray.is_initialized()
    if is_ours:
        _initialise(ray, workers)
    try:
        _check_versions(ray)
        cluster = Cluster(ray, workers or max(1, int(ray.cluster_resources().get("CPU", 2)) - 1))
        readable.use_workers(cluster)
        yield cluster
    finally:
        readable.use_workers(None)
        if is_ours:
            ray.shutdown()


def _readable(source: Source) -> JobSource:
    """Return the source; raise InvalidInput if workers cannot read its data."""
    if not isinstance(source, JobSource) or not source.suits_workers or not source.can_be_read_again:
        what = "standard input or a pipe" if source.files else "data in memory"
        raise InvalidInput(
            f"engine=ray needs files that every worker can open, got {what}; save it to a file.", option="engine"
        )
    return source


def _imported() -> Any:
    """Import Ray; raise MissingExtra if it is not installed."""
    with extra_imports:
        import ray
    return ray


def _initialise(ray: Any, workers: int | None) -> None:
    """Connect to the cluster of the environment, or start one on this machine; an error is one line."""
    address = os.environ.get(ADDRESS)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        if address:
            _check_answer(address)
            ray.init(address=address, **quiet)
        else:
            # "local" prevents Ray from using another cluster on this machine. There is one processor more than
            # workers, because workers wait for this process most of the time.
            ray.init("local", num_cpus=(workers or _processors()) + 1, include_dashboard=False, **quiet)
        _keep_silent()
    except Exception as error:  # Ray raises errors of many kinds, also plain ones
        where = f"at {address!r}" if address else "on this machine"
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InvalidInput(
            f"engine=ray needs a cluster, got none {where} ({reason}); check {ADDRESS}, and that the cluster runs the"
            " same versions of Ray and Python.",
            option="engine",
        ) from None


def _keep_silent() -> None:
    """Suppress Ray's output of dead nodes' logs to stdout, where predictions go.

    No option of Ray turns this off; a failure raises an error as well.
    """
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


def _check_answer(address: str) -> None:
    """Raise OSError if nobody answers at host:port; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _installed_version() -> str:
    """Return the installed version of ftprl, or an empty text if it is not installed."""
    try:
        from ftprl.version import __version__ as installed
    except ImportError:
        return ""
    return installed


def _check_versions(ray: Any) -> None:
    """Raise an error if workers have another version of ftprl, which could hash features to other cells."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    ask = ray.remote(num_cpus=0, max_retries=3)(_installed_version)
    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    answers = {node: ask.options(scheduling_strategy=On(node, soft=False)).remote() for node in nodes}
    for node, host in nodes.items():
        try:
            installed = ray.get(answers[node], timeout=_START_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise InvalidInput(
                f"engine=ray needs nodes that can start a worker, got none within {_START_SECONDS} s from {host}; wait,"
                " or take it out of the cluster.",
                option="engine",
            ) from None
        except ray.exceptions.RayError:
            continue  # the node has just died: other nodes read its share
        if installed != __version__:
            what = f"version {installed}" if installed else "none"
            raise InvalidInput(
                f"engine=ray needs ftprl {__version__} on every node, got {what} on {host}; install it there.",
                option="engine",
            )
