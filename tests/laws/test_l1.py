"""The quadratic with an L1 term against CVXPY, on every set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.reference import minimum
from laws.strategies import SEEDS, SETS, SHAPES, law, make_problem


@pytest.mark.parametrize("name", SETS)
@law(5)
@given(st.sampled_from(SHAPES), st.integers(1, 5), st.floats(-2, 0.5), SEEDS)
def test_minimise_l1(name: str, shape: str, n: int, power: float, seed: int) -> None:
    p = make_problem(name, shape, n, seed)
    l1 = 10**power * float(np.abs(p.z).max() or 1.0)
    actual = p.F.minimise_l1(p.H, p.z, l1, p.near)
    value = p.value(actual.x) + l1 * float(np.abs(actual.x).sum())
    unit = p.unit() + l1 * (1 + float(np.abs(np.array(p.F.bounds())).sum()))
    best = minimum(p.F, p.H, p.z, l1)
    assert p.F.contains(actual.x)
    assert value <= best + 1e-7 * unit
    assert value - actual.gap <= best + 1e-7 * unit
    assert actual.gap <= 1e-6 * unit


@pytest.mark.parametrize("name", SETS)
@law(3)
@given(st.sampled_from(SHAPES), st.integers(1, 5), SEEDS)
def test_minimise_without_l1(name: str, shape: str, n: int, seed: int) -> None:
    """With l1 = 0 the result equals `minimise`, and the gap bounds the distance to the minimum."""
    p = make_problem(name, shape, n, seed)
    actual = p.F.minimise(p.H, p.z, p.near)
    best = minimum(p.F, p.H, p.z)
    assert p.value(actual.x) <= best + 1e-7 * (p.unit() + 1e-3)
    assert p.value(actual.x) - actual.gap <= best + 1e-7 * (p.unit() + 1e-3)
