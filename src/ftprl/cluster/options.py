"""Where the work of a run is done."""

from __future__ import annotations

from typing import NamedTuple, final

from ftprl.options.checks import check_together, check_values


@final
class ClusterOptions(NamedTuple):
    """`engine` is what reads the data; `address` and `workers` are for Ray."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Raise InvalidInput for options that do not fit together."""
        check_together(self._asdict())
        check_values(self._asdict())
