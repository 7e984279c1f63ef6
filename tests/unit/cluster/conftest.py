"""One Ray cluster on this machine for all tests of a process, because starting one takes seconds."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("RAY_worker_niceness", "0")  # before Ray reads it: tests run beside others


@pytest.fixture(scope="session")
def ended() -> Iterator[None]:
    """End the cluster after the last test."""
    yield
    import ray

    ray.shutdown()


@pytest.fixture
def cluster(ended: None) -> None:
    """Start a cluster with three processors, unless one is running."""
    import ray

    if not ray.is_initialized():
        started = {"num_cpus": 3, "object_store_memory": 200_000_000, "include_dashboard": False}
        ray.init("local", log_to_driver=False, configure_logging=False, **started)
