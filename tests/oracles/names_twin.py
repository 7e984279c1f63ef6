"""The names of features that a model keeps, the slow way: a dict, by the cells that they land in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from oracles.hash_twin import feature_hash
from oracles.interactions_twin import Feature, products

OVERHEAD = 12  # bytes that a name counts for besides its own


class Kept(NamedTuple):
    """The names, the row of the first that does not fit and the row of the first such product, both from 1."""

    names: list[str]
    full_row: int | None
    products_full_row: int | None
    product_bytes: int


class RowOfNames(NamedTuple):
    """The names of a row and their hashes: single features, then products."""

    single: list[tuple[str, int]]
    products: list[tuple[str, int]]


def pairs_of(first: Iterable[str], second: Iterable[str]) -> RowOfNames:
    """Return a row of VW text with two interacting namespaces a and b."""
    features: list[tuple[str, Feature]] = []
    for space, words in (("a", first), ("b", second)):
        start = feature_hash(space.encode())
        features += [(f"{space}^{word}", (space, feature_hash(word.encode(), start), 1.0)) for word in words]
    ones = [one for one in features if one[1][0] == "a"]
    others = [other for other in features if other[1][0] == "b"]
    hashes = products([feature for _, feature in features], [["a", "b"]], namespaces=True)
    crossed = [f"{one}*{other}" for one, _ in ones for other, _ in others]
    single = [(name, feature[1]) for name, feature in features]
    return RowOfNames(single, [(name, key) for name, (key, _) in zip(crossed, hashes, strict=True)])


def cell_of(key: int, dim: int) -> int:
    """Return the cell of a hash in a table of `dim` cells."""
    return key % dim if dim & (dim - 1) == 0 else key * dim >> 64


def kept_names(rows: Iterable[RowOfNames], budget: int, dim: int) -> Kept:
    """Return the first name of each cell, within a budget, of which products may take a quarter."""
    known: dict[int, str] = {}
    total = product_bytes = 0
    full_row: int | None = None
    products_full_row: int | None = None
    for number, row in enumerate(rows, 1):
        for name, key in row.single:
            if full_row is not None or cell_of(key, dim) in known:
                continue
            if total + len(name.encode()) + OVERHEAD > budget:
                full_row = number
                continue
            total += len(name.encode()) + OVERHEAD
            known[cell_of(key, dim)] = name
        for name, key in row.products:
            if full_row is not None or products_full_row is not None or cell_of(key, dim) in known:
                continue
            size = len(name.encode()) + OVERHEAD
            if product_bytes + size > budget // 4 or total + size > budget:
                products_full_row = number
                continue
            total += size
            product_bytes += size
            known[cell_of(key, dim)] = name
    return Kept(list(known.values()), full_row, products_full_row, product_bytes)
