"""Names of features again, as a plain list: in the order of the rows and of the columns of a row, up to a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oracles.hash_twin import feature_hash

OVERHEAD = 12  # bytes that a name counts for besides its own
BITS = 30  # of the hash that a name is known by


def names_within(rows: Iterable[Sequence[str]], budget: int, seed: int = 0) -> tuple[list[str], int | None]:
    """The names that fit, and the row of the first that does not, from 1; None when all do."""
    kept, known, used = list[str](), set[int](), 0
    for number, row in enumerate(rows, 1):
        for name in row:
            key = feature_hash(name.encode(), seed) % 2**BITS
            if key in known:
                continue
            used += OVERHEAD + len(name.encode())
            if used > budget:
                return kept, number
            known.add(key)
            kept.append(name)
    return kept, None
