"""Interactions by enumeration: every choice of features, every set once, products of values, hashes of sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from oracles.hash_twin import feature_hash, mix

MASK = 2**64 - 1
K0 = 0x6A09E667F3BCC908
Feature = tuple[str, int, float]  # its group, its hash, its value


def is_meant(term: str, group: str, namespaces: bool) -> bool:
    return term in ("*", group) or (namespaces and len(term) == 1 and group.startswith(term))


def products(
    features: Sequence[Feature], interactions: Iterable[Sequence[str]], *, namespaces: bool
) -> list[tuple[int, float]]:
    """Return the hash and the value of every product."""
    actual: list[tuple[int, float]] = []
    for terms in interactions:
        seen: set[frozenset[int]] = set()
        numbers = range(len(features))
        members = [[i for i in numbers if is_meant(term, features[i][0], namespaces)] for term in terms]
        for chosen in itertools.product(*members):
            key = frozenset(chosen)
            if len(key) < len(terms) or key in seen:
                continue
            seen.add(key)
            total = sum(features[i][1] for i in chosen) + len(terms) * K0
            actual.append((mix(total & MASK), math.prod(features[i][2] for i in chosen)))
    return actual


def column_features(row: dict[str, object], text: Iterable[str] = ()) -> list[Feature]:
    """Return the features of a dict: numbers, booleans, categories, lower-case words of texts, and missing values."""
    features: list[Feature] = []
    for name, value in row.items():
        if value is None or value == "":
            features.append((name, feature_hash(f"{name} is missing".encode(), 0), 1.0))
        elif isinstance(value, bool):
            features.append((name, feature_hash(f"{name}={str(value).lower()}".encode(), 0), 1.0))
        elif isinstance(value, float):
            features.append((name, feature_hash(name.encode(), 0), value))
        elif name in text:
            features += [(name, feature_hash(f"{name}={word}".encode(), 0), 1.0) for word in str(value).split()]
        else:
            features.append((name, feature_hash(f"{name}={value}".encode(), 0), 1.0))
    return features


def cells(features: Sequence[Feature], crossed: Iterable[tuple[int, float]], dim: int) -> dict[int, float]:
    """Return the row in a table of `dim` cells, a power of two."""
    row: dict[int, float] = {}
    for number, value in [*((number, value) for _, number, value in features), *crossed]:
        row[number % dim] = row.get(number % dim, 0.0) + value
    return {cell: value for cell, value in row.items() if value != 0.0}
