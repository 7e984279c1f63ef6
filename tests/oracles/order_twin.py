"""The order of rows, row by row in plain Python: docs/order.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MASK = (1 << 64) - 1
LEAST = 1000


class Plan(NamedTuple):
    """The rows in the order in which they are learned, and where the parts of the last phase begin."""

    order: list[int]
    last: int  # where the last phase begins
    check: int  # where the rows of `checked` are predicted
    quarter: int  # where the last quarter begins
    checked: list[int]
    waited: int  # rows that waited at once, at most


def key(seed: int, t: int) -> int:
    """splitmix64."""
    z = ((t + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1342543DE82EF95) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def plan(rows: int, waiting: int, seed: int = 0, sizes: Sequence[int] | None = None, most: int = 256 << 20) -> Plan:
    """Plan the order for rows of these sizes in bytes; the latest tenth of the waiting rows is kept aside."""
    sizes = [24] * rows if sizes is None else sizes
    keys = [key(seed, t) for t in range(rows)]
    limit, recent, kept, order, waited = 1 << 64, [], [], [], 0
    tenth, tenth_of_bytes = waiting // 10, most // 10

    def settle(t: int) -> None:
        nonlocal limit, kept
        if keys[t] >= limit:
            order.append(t)
            return
        kept.append(t)
        while len(kept) > waiting - tenth or sum(sizes[i] for i in kept) > most - tenth_of_bytes:
            limit //= 2
            order.extend(sorted((i for i in kept if keys[i] >= limit), key=lambda i: (keys[i], i)))
            kept = [i for i in kept if keys[i] < limit]

    for t in range(rows):
        recent.append(t)
        while len(recent) > tenth or sum(sizes[i] for i in recent) > tenth_of_bytes:
            settle(recent.pop(0))
        waited = max(waited, len(kept) + len(recent))
    late = min(min(rows, waiting) // 10, len(recent)) if rows >= LEAST else 0
    while len(recent) > late:
        settle(recent.pop(0))
    half = limit // 2
    turn = {t: keys[t] for t in kept}
    for t in recent:
        turn[t] = keys[t] if half <= keys[t] < limit else half + keys[t] % half // 2
    last = sorted(turn, key=lambda t: (turn[t], t))
    quarter = sum(turn[t] < half + half // 2 for t in last)
    check = sum(turn[t] < half for t in last) if late else quarter
    start = len(order)
    return Plan([*order, *last], start, start + check, start + quarter, recent, waited)
