"""Generated streams for benchmarks/tuning.py: labels with heavy tails, sorted, collinear, of another unit, counts.

`FRESH` has streams of other kinds, made after all constants were chosen, for benchmarks/tuning_variants.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
ROWS = 20_000
_COLUMNS = 10


def _numbers(rng: np.random.Generator, columns: int = _COLUMNS) -> Vector:
    return rng.standard_normal((ROWS, columns))


def heavy(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """A linear function in units of 100, with noise that has no variance (Student's t with 2 degrees of freedom)."""
    x = _numbers(rng)
    return x, 500.0 + 100.0 * (x @ rng.standard_normal(_COLUMNS)) + 60.0 * rng.standard_t(2, ROWS)


def sorted_labels(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """A linear function with noise, in the order of its labels."""
    x = _numbers(rng)
    y = x @ rng.standard_normal(_COLUMNS) + rng.standard_normal(ROWS)
    order = np.argsort(y)
    return x[order], y[order]


def collinear(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Twenty columns that are nearly one: a common factor, and a tenth of noise that the label depends on."""
    own = _numbers(rng, 20)
    x = rng.standard_normal((ROWS, 1)) + 0.1 * own
    return x, 10.0 * (own @ rng.standard_normal(20)) / np.sqrt(20.0) + x[:, 0] + rng.standard_normal(ROWS)


def new_unit(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """A linear function whose label is in a unit 1000 times smaller from half of the rows on."""
    x = _numbers(rng)
    y = 5.0 + x @ rng.standard_normal(_COLUMNS) + rng.standard_normal(ROWS)
    y[ROWS // 2 :] *= 1000.0
    return x, y


def counts(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Counts whose logarithmic mean is linear."""
    x = _numbers(rng)
    mean = np.exp(1.0 + 0.3 * (x @ rng.standard_normal(_COLUMNS)))
    return x, rng.poisson(mean).astype(np.float64)


STREAMS: dict[str, tuple[Callable[[np.random.Generator], tuple[Vector, Vector]], tuple[str, ...]]] = {
    "heavy": (heavy, ("squared", "absolute", "quantile", "huber")),
    "sorted": (sorted_labels, ("squared", "absolute", "quantile", "huber")),
    "collinear": (collinear, ("squared", "absolute", "quantile", "huber")),
    "new unit": (new_unit, ("squared", "absolute", "quantile", "huber")),
    "counts": (counts, ("squared", "absolute", "quantile", "poisson")),
}


def prices(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Prices that are products: a place, a kind and a size, with noise in proportion."""
    place, kind, size = rng.integers(0, 40, ROWS), rng.integers(0, 12, ROWS), rng.uniform(20.0, 200.0, ROWS)
    each = 40.0 * np.exp(0.5 * rng.standard_normal(40)[place] + 0.3 * rng.standard_normal(12)[kind])
    places, kinds = np.eye(40)[place], np.eye(12)[kind]
    return np.column_stack([places, kinds, size]), each * size * np.exp(0.2 * rng.standard_normal(ROWS))


def seasons(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """A level that wanders, an hour of the day and a temperature, in the order of time."""
    hour, warm = np.arange(ROWS) % 24, 15.0 + 10.0 * np.sin(np.arange(ROWS) / 700.0) + rng.standard_normal(ROWS)
    level = np.cumsum(0.05 * rng.standard_normal(ROWS))
    hours = np.eye(24)[hour]
    y = 200.0 + 10.0 * level + 30.0 * (hours @ rng.standard_normal(24)) + 3.0 * warm + 10.0 * rng.standard_normal(ROWS)
    return np.column_stack([hours, warm]), y


def rare_names(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Three names of 300 each, few of them frequent, whose effects add up: numbers in every row are absent."""
    chances = 1.0 / np.arange(1, 301)
    some = rng.choice(300, (ROWS, 3), p=chances / chances.sum())
    x = np.concatenate([np.eye(300)[some[:, j]] for j in range(3)], axis=1)
    return x, 0.01 * (x @ rng.standard_normal(900) + rng.standard_normal(ROWS))


def many_zeros(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Amounts that are 0 in most rows, and gamma distributed in the others."""
    x = _numbers(rng)
    score = x @ rng.standard_normal(_COLUMNS)
    some = rng.random(ROWS) < 1.0 / (1.0 + np.exp(-(score - 4.5)))
    return x, np.where(some, rng.gamma(2.0, 15.0, ROWS) * np.exp(0.2 * x[:, 0]), 0.0).round(2)


def new_weights(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """A linear function whose weights are others from every fourth part of the rows on."""
    x = _numbers(rng)
    weights = np.repeat(rng.standard_normal((4, _COLUMNS)), ROWS // 4, axis=0)
    return x, 1e4 * (3.0 + (x * weights).sum(axis=1) + 0.5 * rng.standard_normal(ROWS))


def bent(rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Ten numbers from 0 to 1, of which five matter and not linearly (Friedman 1991)."""
    x = rng.random((ROWS, _COLUMNS))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, y + rng.standard_normal(ROWS)


NUMBERS = ("squared", "absolute", "quantile", "huber")
FRESH: dict[str, tuple[Callable[[np.random.Generator], tuple[Vector, Vector]], tuple[str, ...]]] = {
    "prices": (prices, NUMBERS),
    "seasons": (seasons, NUMBERS),
    "rare names": (rare_names, NUMBERS),
    "many zeros": (many_zeros, (*NUMBERS, "poisson")),
    "new weights": (new_weights, NUMBERS),
    "bent": (bent, NUMBERS),
}


def written(name: str, cache: Path, seed: int = 7) -> Path:
    """The stream as a CSV file in the cache, with the label in column `y`."""
    path = cache / f"{name.replace(' ', '-')}-{ROWS}{'' if seed == 7 else f'-{seed}'}.csv"
    if not path.exists():
        x, y = (STREAMS | FRESH)[name][0](np.random.default_rng(seed))
        names = ["y", *(f"x{j}" for j in range(x.shape[1]))]
        np.savetxt(path, np.column_stack([y, x]), fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    return path
