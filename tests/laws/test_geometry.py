"""Geometric quantities of every set against its own vertices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.reference import ascent, assert_boxes, assert_maximum, minimum
from laws.strategies import EVERY, SEEDS, law, points, random_psd


@pytest.mark.parametrize("name", EVERY)
@law(4)
@given(st.integers(1, 5), SEEDS)
def test_vertex_minimises(name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    g = rng.normal(size=F.dim) * (rng.random(F.dim) < 0.8) * 10.0 ** rng.integers(-3, 4)
    v = F.vertex(g)
    unit = (1 + float(np.abs(np.array(F.bounds())).max())) * float(np.abs(g).sum())
    assert F.contains(v)
    assert g @ v <= (points(rng, F, 5) @ g).min() + 1e-9 * unit
    assert abs(g @ v - minimum(F, np.zeros(()), g)) <= 1e-7 * unit


@pytest.mark.parametrize("name", EVERY)
@law(2)
@given(st.integers(1, 4), SEEDS)
def test_sizes(name: str, n: int, seed: int) -> None:
    """Widths, diameter and N are never too small, and exact if the set claims so."""
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    true = np.array([F.vertex(-e)[i] - F.vertex(e)[i] for i, e in enumerate(np.eye(F.dim))])
    D = F.widths()
    assert np.all(true - 1e-7 <= D)
    if F.is_exact("widths"):
        np.testing.assert_allclose(D, true, atol=1e-7)
    starts = 2 if name == "cut ellipsoid" else 12  # each step there is a conic program
    for shape, what in (("scalar", "diameter"), ("singular diagonal", "diagonal"), ("full", "full")):
        Q = random_psd(rng, F.dim, shape)
        assert_maximum(F.sq_diameter(Q), ascent(F, Q, rng, starts), F.is_exact(what), 2e-6)
    assert F.diameter() ** 2 == pytest.approx(F.sq_diameter(np.array(1.0)))


@pytest.mark.parametrize("name", EVERY)
@law(4)
@given(st.integers(1, 5), SEEDS)
def test_boxes_start_and_tangent(name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    inside = points(rng, F, 6)
    assert all(F.contains(x) for x in inside)
    assert F.contains(F.start(), 1e-9)
    low, high = F.bounds()
    assert np.all(inside >= low - 1e-7)
    assert np.all(inside <= high + 1e-7)
    assert_boxes(F, inside, 1e-6)
    g = rng.normal(size=F.dim)
    t = F.tangent(g)
    np.testing.assert_allclose(inside @ t - inside[0] @ t, inside @ g - inside[0] @ g, atol=1e-8)
    assert t @ t <= g @ g * (1 + 1e-9) or name.startswith("preimage")


@pytest.mark.parametrize("name", EVERY)
@law(4)
@given(st.integers(1, 5), SEEDS)
def test_contains_knows_the_outside(name: str, n: int, seed: int) -> None:
    """Points beyond a vertex along its own direction are outside; the tolerance is atol·(1 + scale)."""
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    g = rng.normal(size=F.dim)
    v = F.vertex(g)
    step = g / np.linalg.norm(g)
    assert not F.contains(v - 1e-3 * step)
    assert F.contains(v - 1e-3 * step, 1.0)
    assert not F.contains(v - 1e-5 * step, 1e-12)
