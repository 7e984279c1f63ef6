"""Servers and readers in one process, which share nothing: whatever goes from one to another is pickled."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from ftprl.linear import Spec
from ftprl.linear.shard_table import ShardTable


class Handle:
    """Stands for a value; it holds its bytes."""

    def __init__(self, value: Any) -> None:
        self.body = pickle.dumps(value, protocol=5)

    def value(self) -> Any:
        """A copy of the value."""
        return pickle.loads(self.body)


class LocalActors:
    """`Actors` for the law tests: calls are done at once, in the order in which they are made."""

    def __init__(self, servers: int, readers: int = 1) -> None:
        self.servers, self.node, self._readers, self._next = servers, "here", readers, 0
        self.tables: list[ShardTable] = []

    def open(self, spec: Spec, *, receipt: bool) -> None:
        """Start servers, whose tables are empty."""
        self.tables = [ShardTable(spec, receipt=receipt) for _ in range(self.servers)]

    def on_server(self, number: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Have a server do something."""
        return self._called(getattr(self.tables[number], method), arguments, returns)

    def reader_near(self, nodes: Sequence[str]) -> int:
        """The readers take turns."""
        self._next = (self._next + 1) % self._readers
        return self._next

    def node_of(self, reader: int) -> str:
        """Every reader is on a machine of its own."""
        return f"reader {reader}"

    def on_reader(self, number: int, work: Callable[..., Any], *arguments: Any, returns: int | None = None) -> Any:
        """Have a reader call a function."""
        return self._called(work, arguments, returns)

    def _called(self, work: Callable[..., Any], arguments: Sequence[Any], returns: int | None) -> Any:
        values = [one.value() if isinstance(one, Handle) else Handle(one).value() for one in arguments]
        result = work(*values)
        if returns is None:
            return Handle(result)
        assert len(result) == returns
        return [Handle(one) for one in result]

    def put(self, value: Any) -> Handle:
        """A handle for a value."""
        return Handle(value)

    def get(self, handles: list[Handle]) -> list[Any]:
        """The values of handles."""
        return [handle.value() for handle in handles]
