"""Frank-Wolfe on problems whose answer is known."""

import numpy as np
import pytest

from ftprl.sets import Box, L2Ball
from ftprl.solver import minimise_by_vertices


def test_a_corner_an_edge_and_the_inside() -> None:
    box = Box(-1, 1, dim=2)
    for target, want in (([3.0, -5.0], [1.0, -1.0]), ([0.2, 4.0], [0.2, 1.0]), ([0.2, -0.3], [0.2, -0.3])):
        actual = minimise_by_vertices(box.vertex, np.array(1.0), -np.array(target), np.zeros(2), 10.0, 50)
        np.testing.assert_allclose(actual.x, want, atol=1e-14)
        assert actual.gap <= 1e-12


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_a_singular_matrix(rank: int, rng: np.random.Generator) -> None:
    """Directions in which H is 0 are followed to the end."""
    box, B = Box(-1, 1, dim=6), rng.normal(size=(6, rank))
    z = rng.normal(size=6)
    actual = minimise_by_vertices(box.vertex, B @ B.T, z, np.zeros(6), 50.0, 200)
    assert actual.gap <= 1e-12
    assert np.abs(actual.x).max() <= 1.0


def test_few_steps_have_an_honest_gap(rng: np.random.Generator) -> None:
    ball, target = L2Ball(5), rng.normal(size=5)
    best = -target / np.linalg.norm(target)
    lam = np.geomspace(1e-3, 1.0, 5)
    gaps = []
    for steps in (1, 3, 10, 100):
        actual = minimise_by_vertices(ball.vertex, lam, target, np.zeros(5), 10.0, steps)
        short = 0.5 * lam @ (actual.x**2 - best**2) + target @ (actual.x - best)
        assert short <= actual.gap + 1e-12
        gaps.append(actual.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6 < gaps[0]
