"""`Actors`: the servers and readers of a `ShardedEngine`, whatever runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ftprl.linear.spec import Spec


class Actors(Protocol):
    """Servers with parts of a table, and readers that compute; what they return are handles for `get`."""

    servers: int
    node: str  # where this process is

    def open(self, spec: Spec, *, receipt: bool) -> None:
        """Start servers, whose tables are empty."""

    def on_server(self, number: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Have a server do something; handles among the arguments stand for their values.

        Returns a handle, or with `returns` a list of as many.
        """

    def reader_near(self, nodes: Sequence[str]) -> int:
        """The number of a reader on one of these machines, if there is one, that has little to do."""

    def node_of(self, reader: int) -> str:
        """The machine of a reader."""

    def on_reader(self, number: int, work: Callable[..., Any], *arguments: Any, returns: int | None = None) -> Any:
        """Have a reader call a function, as `on_server`."""

    def put(self, value: Any) -> Any:
        """A handle for a value."""

    def get(self, handles: list[Any]) -> list[Any]:
        """The values of handles; raises if a server or a reader was lost."""
