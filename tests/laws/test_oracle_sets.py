"""Sets described by their vertices: Frank-Wolfe, its measured gap, and games on them."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import FTPRL, Preconditioned, play, psd
from ftprl.schemes import CoordinateConstant, Diagonal, Full, Scheme, Sketch
from ftprl.sets import Box, ConvexSet, OracleSet, Product, Simplex
from laws.reference import minimum
from laws.strategies import EVERY, ORACLES, SEEDS, SETS, SHAPES, Vector, invertible, law, make_problem, random_network

POLYTOPES = ("birkhoff", "permutahedron", "ranks", "flow")
VERTICES_ONLY = ("cube", "simplex", "capped simplex", "l1", "l2", "lp 3", "polytope", "flat polytope", "product")


class Hidden(OracleSet):
    """A set that exposes nothing but another set's `vertex`."""

    def __init__(self, inner: ConvexSet) -> None:
        self.inner = inner

    @property
    def dim(self) -> int:
        return self.inner.dim

    def vertex(self, g: Vector) -> Vector:
        return self.inner.vertex(g)


@pytest.mark.parametrize("name", ORACLES)
@law(25)
@given(st.sampled_from(SHAPES), st.integers(1, 6), SEEDS)
def test_the_gap_is_honest(name: str, shape: str, n: int, seed: int) -> None:
    """The step lies in the set within its gap of CVXPY's minimum; on polytopes the gap is 0."""
    p = make_problem(name, shape, n, seed)
    step = p.F.minimise(p.H, p.z, p.near)
    assert p.F.violation(step.x) <= 1e-13
    assert step.gap <= (1e-12 if name in POLYTOPES or p.H.ndim == 0 else 1e-7) * p.unit()
    least = minimum(p.F, p.H, p.z)
    assert p.value(step.x) <= least + step.gap + 2e-7 * p.unit()
    assert p.value(step.x) >= least - 2e-7 * p.unit()


@pytest.mark.parametrize("name", VERTICES_ONLY)
@law(15)
@given(st.sampled_from(SHAPES), st.integers(1, 6), SEEDS)
def test_vertices_are_enough(name: str, shape: str, n: int, seed: int) -> None:
    """With nothing but `vertex` steps are as good as the set's own; widths, bounds and membership agree."""
    p = make_problem(name, shape, n, seed)
    hidden = Hidden(p.F)
    actual, own = hidden.minimise(p.H, p.z, p.near), p.F.minimise(p.H, p.z, p.near)
    assert p.F.violation(actual.x) <= 1e-12
    assert actual.gap <= (1e-6 if name in ("l2", "lp 3") else 1e-10) * p.unit()
    assert abs(p.value(actual.x) - p.value(own.x)) <= actual.gap + own.gap + 1e-12 * p.unit()
    np.testing.assert_allclose(hidden.widths(), p.F.widths(), atol=1e-9)
    assert hidden.contains(p.near, 1e-7)
    assert hidden.contains(actual.x, 1e-7)
    g = np.ones(p.F.dim)
    assert not hidden.contains(p.F.vertex(g) - 0.1 * g, 1e-7)
    assert hidden.violation(p.F.vertex(g) - 0.1 * g) > 1e-4


def every_corner(F: ConvexSet) -> Vector:
    """Return all vertices of a small set by enumeration."""
    if hasattr(F, "values"):
        return np.array(list(itertools.permutations(F.values)))
    if hasattr(F, "edges"):
        actual, open_paths = [], [(F.source, ())]
        while open_paths:
            node, path = open_paths.pop()
            if node == F.target:
                actual.append(np.isin(np.arange(F.dim), path).astype(float))
            open_paths += [(b, (*path, e)) for e, (a, b) in enumerate(F.edges) if a == node]
        return np.array(actual)
    size = F.rows  # type: ignore[attr-defined]
    return np.array([np.eye(size)[list(order)].ravel() for order in itertools.permutations(range(size))])


@pytest.mark.parametrize("name", POLYTOPES)
@law(20)
@given(st.integers(1, 5), SEEDS)
def test_geometry_by_enumeration(name: str, n: int, seed: int) -> None:
    """Vertices, widths, diameters and N against all corners."""
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    V = every_corner(F)
    g = rng.normal(size=F.dim)
    assert F.contains(F.vertex(g), 1e-13)
    assert g @ F.vertex(g) <= (V @ g).min() + 1e-12
    np.testing.assert_allclose(F.widths(), np.ptp(V, axis=0), atol=1e-12)
    low, high = F.bounds()
    np.testing.assert_allclose([low, high], [V.min(axis=0), V.max(axis=0)], atol=1e-12)
    Y = (V[:, None] - V).reshape(-1, F.dim)
    B = rng.normal(size=(F.dim, F.dim))
    for Q, what in ((np.array(0.7), "diameter"), (rng.exponential(size=F.dim), "diagonal"), (B @ B.T, "full")):
        true = float(((Y @ psd.dense(Q, F.dim)) * Y).sum(axis=1).max())
        assert F.sq_diameter(Q) >= true * (1 - 1e-12)
        if F.is_exact(what):  # type: ignore[arg-type]
            assert F.sq_diameter(Q) <= true * (1 + 1e-12)
    np.testing.assert_allclose(Y @ F.tangent(g), Y @ g, atol=1e-9)


SCHEMES: dict[str, Scheme] = {
    "constant": CoordinateConstant(2**0.5),
    "centred": CoordinateConstant(center=True),
    "diagonal": Diagonal(),
    "full": Full(),
    "sketch": Sketch(2),
}


def assert_chain(game: Any) -> None:
    """regret <= tight <= bound <= theorem <= worst case, and the play lies in the set."""
    c = game.certificate()
    links = [c.regret, c.tight, c.bound, c.theorem, c.worst_case]
    for a, b in itertools.pairwise(links):
        assert a <= b * (1 + 1e-13)
    if c.closed_form_strong is not None:
        assert c.bound <= c.closed_form_strong * (1 + 1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ORACLES)
@law(3)
@given(st.integers(2, 5), SEEDS)
def test_the_chain_holds(name: str, scheme: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    rows = rng.normal(size=(15, F.dim)) * 10.0 ** rng.uniform(-6, 6) + rng.normal(size=F.dim)
    game = play(FTPRL(F, SCHEMES[scheme]), rows)
    assert F.violation(game.x) <= 1e-13
    assert_chain(game)


@pytest.mark.parametrize("name", ORACLES)
def test_inside_other_sets(name: str) -> None:
    """A product with other sets and any change of coordinates work, too."""
    rng = np.random.default_rng(3)
    F = EVERY[name](rng, 3)
    both = Product(F, Simplex(2))
    assert_chain(play(FTPRL(both, Diagonal()), rng.normal(size=(20, both.dim))))
    assert_chain(
        play(Preconditioned(invertible(rng, F.dim), FTPRL(F, CoordinateConstant())), rng.normal(size=(20, F.dim)))
    )


@law(30)
@given(st.integers(1, 6), SEEDS)
def test_paths_are_drawn_as_the_flow_says(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = random_network(rng, n)
    x = 0.3 * F.vertex(rng.normal(size=F.dim)) + 0.7 * F.vertex(rng.normal(size=F.dim))
    drawn = np.zeros(F.dim)
    for _ in range(400):
        path = F.sample(x, rng)
        assert [F.edges[a][1] for a in path[:-1]] == [F.edges[b][0] for b in path[1:]]
        drawn[path] += 1 / 400
    assert np.abs(drawn - x).max() < 0.12


def test_a_warm_start_needs_fewer_vertices() -> None:
    """Started at the previous round's point, a step needs few vertices."""
    calls = []

    class Counted(Hidden):
        def vertex(self, g: Vector) -> Vector:
            calls.append(1)
            return self.inner.vertex(g)

    rng = np.random.default_rng(0)
    F = Counted(Box(-1, 1, dim=12))
    H, z = np.array(1.0), rng.normal(size=12) * 0.3
    F.widths()
    calls.clear()
    first = F.minimise(H, z, F.inner.vertex(z))
    cold = len(calls)
    calls.clear()
    again = F.minimise(H, z, first.x)
    assert len(calls) < cold / 3
    np.testing.assert_allclose(again.x, first.x, atol=1e-9)


def test_every_set_with_a_conic_form_gives_the_same_bounds() -> None:
    """ORACLES and SETS do not share a name, so that EVERY has them all."""
    assert len(EVERY) == len(SETS) + len(ORACLES)
