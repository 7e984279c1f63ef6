"""Random streams of sparse rows, for the laws of the kernel."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ftprl.data import Batch
from ftprl.linear import Spec
from ftprl.losses import SCALAR_LOSSES

LOSSES = tuple(SCALAR_LOSSES)
SIGNS = tuple(name for name, loss in SCALAR_LOSSES.items() if loss.labels == "signs")
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no_intercept": {"intercept": False},
    "l1": {"l1": 0.4},
    "l2": {"l2": 0.3},
    "bounds": {"lower": -0.05, "upper": 0.2},
    "above_zero": {"lower": 0.05},
    "all": {"l1": 0.2, "l2": 0.5, "lower": -0.3, "upper": 0.1, "beta": 0.0, "scale": 0.7},
}


def labels(rng: np.random.Generator, loss: str, count: int) -> np.ndarray:
    """Labels that a loss accepts."""
    kind = SCALAR_LOSSES[loss].labels
    if kind == "signs":
        return np.where(rng.random(count) < 0.4, 1.0, -1.0)
    if kind == "nonnegative":
        return rng.poisson(2.0, size=count).astype(np.float64)
    if kind == "positive":
        return rng.gamma(2.0, size=count)
    return rng.normal(size=count) * 2


def fitted(loss: str, y: ArrayLike) -> np.ndarray:
    """Return numbers as the nearest labels that a loss accepts: signs, sizes, or themselves."""
    numbers, kind = np.asarray(y, np.float64), SCALAR_LOSSES[loss].labels
    if kind == "signs":
        return np.where(numbers > 0, 1.0, -1.0)
    if kind == "positive":
        return np.where(numbers == 0, 1.0, np.abs(numbers))
    return np.abs(numbers) if kind == "nonnegative" else numbers


def stream(
    seed: int, loss: str = "logistic", *, rows: int = 120, dim: int = 23, float64: bool = True, complete: bool = False
) -> Batch:
    """Rows of 0 to 11 entries with repeats; unless `complete`, labels may be missing and weights differ or are 0."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, size=rows)
    entries = [list(zip(rng.integers(0, dim, size=k).tolist(), values(rng, k), strict=True)) for k in lengths]
    y, weight = labels(rng, loss, rows), np.ones(rows)
    if not complete:
        y[rng.random(rows) < 0.1] = np.nan
        weight = np.where(rng.random(rows) < 0.1, 0.0, rng.uniform(0.1, 4.0, size=rows))
    return Batch.from_rows(entries, y, weight, float64=float64)


def values(rng: np.random.Generator, count: int) -> list[float]:
    """Values of all sizes, including ones and zeros."""
    kinds = rng.integers(0, 4, size=count)
    sizes = rng.normal(size=count) * 10 ** rng.uniform(-3, 3, size=count)
    return np.choose(kinds, [np.ones(count), np.zeros(count), -rng.random(count), sizes]).tolist()


def spec(loss: str, dim: int = 23, **options: Any) -> Spec:
    """A small spec."""
    return Spec(**{"loss": loss, "dim": dim, "tau": 0.7, **options})
