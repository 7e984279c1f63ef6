"""Generated streams for benchmarks/tuning.py: labels with heavy tails, sorted, collinear, of another unit, counts."""

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


def written(name: str, cache: Path, seed: int = 7) -> Path:
    """The stream as a CSV file in the cache, with the label in column `y`."""
    path = cache / f"{name.replace(' ', '-')}-{ROWS}{'' if seed == 7 else f'-{seed}'}.csv"
    if not path.exists():
        x, y = STREAMS[name][0](np.random.default_rng(seed))
        names = ["y", *(f"x{j}" for j in range(x.shape[1]))]
        np.savetxt(path, np.column_stack([y, x]), fmt="%.9g", delimiter=",", header=",".join(names), comments="")
    return path
