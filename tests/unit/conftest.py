"""Fixtures of the unit tests."""

import numpy as np
import pytest

from ftprl import psd
from ftprl.sets import ConvexSet

Vector = np.ndarray


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a random generator with a fixed seed."""
    return np.random.default_rng(20100)


class Disc(ConvexSet):
    """A user's own set: the unit disc with only the five required methods; argmin misses by `error`."""

    def __init__(self, error: float = 0.0) -> None:
        self.error = error

    @property
    def dim(self) -> int:
        return 2

    def argmin(self, H: Vector, z: Vector, near: Vector) -> Vector:
        x, step = near, 1.0 / max(psd.largest(H), 1e-9)
        if not np.any(H):
            return self.vertex(z) if z.any() else near
        for _ in range(400):
            x = x - step * (psd.apply(H, x) + z)
            x = x / max(1.0, float(np.linalg.norm(x)))
        return x * (1.0 - self.error)

    def vertex(self, g: Vector) -> Vector:
        size = float(np.linalg.norm(g))
        return -g / size if size else np.zeros(2)

    def widths(self) -> Vector:
        return np.full(2, 2.0)

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        return float(np.linalg.norm(x)) <= 1 + 2 * atol


@pytest.fixture
def disc() -> type[Disc]:
    """Return the class of a user's own set."""
    return Disc
