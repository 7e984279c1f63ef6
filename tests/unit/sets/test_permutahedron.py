"""Rankings."""

import numpy as np
import pytest

from ftprl import FTPRL, play
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Permutahedron


def test_by_hand() -> None:
    F = Permutahedron(3)
    np.testing.assert_array_equal(F.values, [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(F.start(), [2.0, 2.0, 2.0])
    assert F.diameter() == pytest.approx(8**0.5)
    assert F.sq_diameter(np.array([5.0, 1.0, 2.0])) == 5 * 4 + 2 * 4
    np.testing.assert_allclose(F.argmin(np.array(1.0), -np.array([9.0, 2.1, 1.9]), F.start()), [3.0, 1.6, 1.4])
    assert F.contains(np.array([2.5, 2.5, 1.0]))
    assert not F.contains(np.array([2.6, 2.5, 0.9]))
    assert not F.contains(np.array([2.0, 2.0, 1.9])), "the sum"


def test_no_digit_is_lost_far_away() -> None:
    """Slopes of 1e12 with differences below 1 keep their ranks."""
    F = Permutahedron(3)
    x = F.argmin(np.array(1.0), -(2.0**40 + np.array([0.0, 0.25, 0.5])), F.start())
    np.testing.assert_allclose(x, [1.75, 2.0, 2.25], atol=1e-14)


def test_equal_values_are_one_point() -> None:
    F = Permutahedron([2.0, 2.0])
    assert F.diameter() == 0.0
    np.testing.assert_array_equal(F.vertex(np.array([1.0, -1.0])), [2.0, 2.0])
    assert play(FTPRL(F, CoordinateConstant()), [[1.0, 2.0]]).certificate().regret == 0.0
