"""A set that defines only `dim` and `vertex`."""

import numpy as np
import pytest

from ftprl import FTPRL, play
from ftprl.schemes import CoordinateConstant, Full
from ftprl.sets import OracleSet


class Hull(OracleSet):
    """The convex hull of the points."""

    def __init__(self, points: list[list[float]]) -> None:
        self.points = np.array(points)

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def vertex(self, g: np.ndarray) -> np.ndarray:
        return np.asarray(self.points[(self.points @ g).argmin()])


SQUARE = Hull([[0, 0], [2, 0], [2, 1], [0, 1]])


def test_everything_else_has_a_default() -> None:
    np.testing.assert_array_equal(SQUARE.widths(), [2.0, 1.0])
    np.testing.assert_array_equal(SQUARE.start(), [1.0, 0.25])
    assert SQUARE.diameter() == pytest.approx(5**0.5)
    assert SQUARE.contains(np.array([1.3, 0.2]))
    assert not SQUARE.contains(np.array([1.3, 1.2]))
    assert SQUARE.violation(np.array([1.3, 1.2])) == pytest.approx(0.1)
    assert SQUARE.violation(np.array([1.3, 0.2])) <= 1e-15
    np.testing.assert_allclose(SQUARE.argmin(np.array(1.0), -np.array([1.3, 4.0]), SQUARE.start()), [1.3, 1.0])


def test_without_weight_the_play_moves_only_to_gain() -> None:
    near = np.array([1.0, 0.5])
    np.testing.assert_array_equal(SQUARE.minimise(np.zeros(()), np.zeros(2), near).x, near)
    np.testing.assert_array_equal(SQUARE.minimise(np.zeros(2), np.array([0.0, 1.0]), near).x[1], 0.0)


@pytest.mark.parametrize("scheme", [CoordinateConstant(), Full()], ids=repr)
def test_a_game(scheme: CoordinateConstant | Full) -> None:
    c = play(FTPRL(SQUARE, scheme), np.random.default_rng(0).normal(size=(50, 2))).certificate()
    assert c.regret <= c.tight <= c.bound <= c.theorem <= c.worst_case
    assert c.solver_gap <= 1e-12


def test_the_gap_counts_when_steps_are_cut_short() -> None:
    """With one vertex per step the plays are poor; the certificate reports the gaps, and its bounds still hold."""

    class Hasty(Hull):
        max_steps = 1

    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 6)).tolist()
    rows = rng.normal(size=(60, 6)) + 0.5
    hasty, exact = (play(FTPRL(kind(points), CoordinateConstant()), rows).certificate() for kind in (Hasty, Hull))
    assert hasty.solver_gap > 1e-2 > 1e-10 > exact.solver_gap
    assert hasty.regret <= hasty.tight <= hasty.bound
    assert any("solved to a gap" in note for note in hasty.caveats)
    assert not any("solved to a gap" in note for note in exact.caveats)
