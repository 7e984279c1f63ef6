"""Where the work of a run is done."""

from __future__ import annotations

from typing import NamedTuple, final

from ftprl.errors import InvalidInput

ENGINES = ("local", "ray")


@final
class ClusterOptions(NamedTuple):
    """`engine` is what reads the data; `address` and `workers` are for Ray."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Raise InvalidInput for options that do not fit together."""
        if self.engine not in ENGINES:
            raise InvalidInput(f"engine= needs one of {', '.join(ENGINES)}, got {self.engine!r}; pass one of them.")
        for name in ("address", "workers"):
            value = getattr(self, name)
            if value is not None and self.engine != "ray":
                raise InvalidInput(
                    f"{name}= needs engine=ray, got {name}={value!r} without it; add it, or drop {name}=.",
                    option=(name, "engine"),
                )
        workers = self.workers
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise InvalidInput(f"workers= needs a whole number of at least 1, got {workers!r}; pass one.")
