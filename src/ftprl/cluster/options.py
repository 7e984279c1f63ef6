"""Where the work of a run is done."""

from __future__ import annotations

from typing import NamedTuple, final

from ftprl.errors import InvalidInput

ENGINES = ("local", "ray")
MOST_SERVERS = 64  # as many as there are shards of a table


@final
class ClusterOptions(NamedTuple):
    """`engine` is what reads the data; `address`, `workers` and `servers` are for Ray."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    servers: int | None = None

    def check(self) -> None:
        """Raise InvalidInput for options that do not fit together."""
        if self.engine not in ENGINES:
            raise InvalidInput(f"engine= needs one of {', '.join(ENGINES)}, got {self.engine!r}; pass one of them.")
        for name in ("address", "workers", "servers"):
            value = getattr(self, name)
            if value is not None and self.engine != "ray":
                raise InvalidInput(
                    f"{name}= needs engine=ray, got {name}={value!r} without it; add it, or drop {name}=.",
                    option=(name, "engine"),
                )
        for name, most in (("workers", None), ("servers", MOST_SERVERS)):
            value = getattr(self, name)
            is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if value is not None and not (is_count and (most is None or value <= most)):
                wanted = "of at least 1" if most is None else f"from 1 to {most}"
                raise InvalidInput(f"{name}= needs a whole number {wanted}, got {value!r}; pass one.")
