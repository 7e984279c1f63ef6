"""Laws of games in any units: points from 1e-150 to 1e150, gradients from 1e-150 to 1e150, every set and scheme."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import FTPRL, Certificate, Composite, Game, Preconditioned, john
from ftprl.errors import InvalidInput
from ftprl.schemes import CentredBestBound, CoordinateConstant, Diagonal, Fixed, Full, Scheme
from ftprl.sets import (
    Birkhoff,
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    FlowPolytope,
    Halfspace,
    Intersection,
    L1Ball,
    L2Ball,
    LpBall,
    NuclearBall,
    Permutahedron,
    Polytope,
    Preimage,
    Product,
    Simplex,
    Spectrahedron,
)
from laws.strategies import SEEDS, law
from oracles.zoo import admits, schemes

Vector = NDArray[np.float64]

_A = np.array([[1.0, 0.4, -0.2], [0.1, 0.8, 0.3], [-0.3, 0.2, 1.5]])
_FACES = np.array([[1.0, 1.0, 0.5], [-1.0, 0.3, 0.2], [0.2, -1.0, -0.4], [0.1, 0.2, -1.0], [0.4, -0.1, 1.0]])
_CUBE = np.vstack((np.eye(3), -np.eye(3)))

# Each set as a function of the unit of its points.
SETS: dict[str, Callable[[float], ConvexSet]] = {
    "box": lambda s: Box([-s, 0.5 * s, -0.1 * s], [s, 2.5 * s, 0.3 * s]),
    "l2": lambda s: L2Ball(3, 1.5 * s, [0.2 * s, -0.1 * s, 0.0]),
    "l1": lambda s: L1Ball(3, 0.8 * s),
    "lp1.5": lambda s: LpBall(3, 1.5, s),
    "lp3": lambda s: LpBall(3, 3.0, 0.7 * s),
    "lpinf": lambda s: LpBall(3, math.inf, s),
    "ellipsoid": lambda s: Ellipsoid(_A / s, [0.1 * s, 0.0, -0.2 * s]),
    "axis ellipsoid": lambda s: Ellipsoid(np.diag([1.0, 3.0, 0.5]) / s),
    "preimage l1": lambda s: Preimage(_A / s, L1Ball(3)),
    "preimage box": lambda s: Preimage(_A, Box(-s, s, dim=3)),
    "preimage l3": lambda s: Preimage(np.diag([1.0, 2.0, 0.5]) / s, LpBall(3, 3.0)),
    "simplex": lambda s: Simplex(4, 2 * s),
    "capped": lambda s: Preimage(np.eye(4) / s, CappedSimplex(4, 0.4)),
    "polytope": lambda s: Polytope(_FACES, np.full(5, s)),
    "polytope eq": lambda s: Polytope(_CUBE, np.full(6, s), [[1.0, 2.0, -1.0]], [0.3 * s]),
    "product": lambda s: Product(L2Ball(2, s), Box(-s, 2 * s, dim=1), Simplex(2, s)),
    "l2 box": lambda s: Intersection(L2Ball(3, s), Box(-0.3 * s, 0.9 * s, dim=3)),
    "simplex box": lambda s: Intersection(Simplex(3, s), Box(0.1 * s, 0.7 * s, dim=3)),
    "halfspace box": lambda s: Intersection(Halfspace([1.0, -2.0, 0.5], 0.4 * s), Box(-s, s, dim=3)),
    "ellipsoid box": lambda s: Intersection(Ellipsoid(_A / s), Box(-0.5 * s, 0.8 * s, dim=3)),
    "permutahedron": lambda s: Permutahedron([0.5 * s, -s, 2 * s]),
    "flow": lambda s: Preimage(np.eye(5) / s, FlowPolytope([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0, 3)),
    "birkhoff": lambda s: Preimage(np.eye(4) / s, Birkhoff(2)),
    "spectrahedron": lambda s: Preimage(np.eye(4) / s, Spectrahedron(2)),
    "nuclear": lambda s: Preimage(np.eye(4) / s, NuclearBall(2, 2)),
}
KINDS = ("gaussian", "sparse", "equal", "long and short rounds", "long and short axes")
EXPONENTS = st.integers(-498, 498)  # of 2: 1e-150 to 1e150


def scheme_in(name: str, s: float, unit: float) -> Scheme:
    """Return a scheme with its own constants in the units of points and gradients."""
    if name == "fixed":
        Q = np.diag([1.0, 2.0, 3.0, 4.0, 5.0]) + 0.5
        return Fixed(lambda t, g: Q[: len(g), : len(g)] * (unit / s) / math.sqrt(t))
    if name == "full delta":
        return Full(2.0, delta=0.5 * unit * unit)
    return CentredBestBound(limits=1e9 * unit) if name == "centred best bound" else schemes(2.0)[name]


NAMES = (*schemes(2.0), "centred best bound")
PAIRS = [(F, k) for F, make in SETS.items() for k in NAMES if admits(make(1.0), scheme_in(k, 1.0, 1.0))]


def stream(kind: str, n: int, rounds: int, seed: int) -> list[Vector]:
    rng = np.random.default_rng(seed)
    if kind == "sparse":
        return list(np.where(rng.random((rounds, n)) < 0.4, rng.choice((-1.0, 1.0), size=(rounds, n)), 0.0))
    if kind == "equal":
        return [np.ones(n)] * rounds
    sizes = {"long and short rounds": (rounds, 1), "long and short axes": (1, n)}.get(kind, (1, 1))
    decades = rng.integers(-8, 9, size=sizes) if kind.startswith("long") else np.zeros(sizes)
    return list(rng.normal(size=(rounds, n)) * 10.0**decades)


def play(learner: FTPRL, rows: list[Vector]) -> tuple[Certificate, list[Vector]]:
    game, plays = Game(learner), []
    for g in rows:
        plays.append(game.x)
        game.observe(g)
    return game.certificate(), plays


def chain(c: Certificate) -> dict[str, float]:
    numbers = {
        "regret": c.regret,
        "tight": c.tight,
        "bound": c.bound,
        "theorem": c.theorem,
        "worst_case": c.worst_case,
        "closed_form": c.closed_form,
    }
    return {name: value for name, value in numbers.items() if value is not None}


def assert_chain(c: Certificate) -> None:
    numbers = chain(c)
    assert all(map(math.isfinite, numbers.values())), numbers
    for (_, low), (_, high) in pairwise(numbers.items()):
        assert low <= high * (1 + 1e-9), numbers


@law(400)
@given(st.sampled_from(PAIRS), EXPONENTS, EXPONENTS, st.sampled_from(KINDS), st.integers(1, 6), SEEDS)
def test_bounds_hold_in_any_units(
    pair: tuple[str, str], points: int, gradients: int, kind: str, rounds: int, seed: int
) -> None:
    """Bounds are finite and ordered, and above a regret computed from the plays; or InvalidInput has one line."""
    s, unit = 2.0**points, 2.0**gradients
    F = SETS[pair[0]](s)
    rows = [g * unit for g in stream(kind, F.dim, rounds, seed)]
    limited = pair[1] == "centred best bound" and not 1e-150 <= 1e9 * unit <= 1e150
    if limited or max(np.abs(g).max() for g in rows) >= 1e150:
        with pytest.raises(InvalidInput, match=r"^(limits|g) needs .*; rescale the losses\.$"):
            play(FTPRL(F, scheme_in(pair[1], s, unit)), rows)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow on the way
        certificate, plays = play(FTPRL(F, scheme_in(pair[1], s, unit)), rows)
    assert_chain(certificate)
    seen = [np.where(np.abs(g) < 1e-150, 0.0, g) / unit for g in rows]
    best = F.vertex(np.sum(seen, axis=0)) / s
    regret = math.fsum(float(g @ (x / s - best)) for g, x in zip(seen, plays, strict=True))
    assert regret * unit * s <= chain(certificate)["bound"] * (1 + 1e-9)


@law(250)
@given(st.sampled_from(PAIRS), EXPONENTS, st.integers(-430, 430), st.sampled_from(KINDS[:3]), st.integers(1, 6), SEEDS)
def test_certificates_are_equivariant(
    pair: tuple[str, str], points: int, gradients: int, kind: str, rounds: int, seed: int
) -> None:
    """Other units of points and gradients multiply every number of a certificate by their product."""

    def numbers(s: float, unit: float) -> tuple[dict[str, float], bool]:
        F, scheme = SETS[pair[0]](s), scheme_in(pair[1], s, unit)
        rows = [g * unit for g in stream(kind, F.dim, rounds, seed)]
        certificate, _ = play(FTPRL(F, scheme), rows)
        best = {f"in hindsight, {k}": v for k, v in certificate.post_hoc.items() if v is not None}
        return {k: v / unit / s for k, v in {**chain(certificate), **best}.items()}, certificate.solver_gap > 0

    here, _ = numbers(1.0, 1.0)
    there, inexact = numbers(2.0**points, 2.0**gradients)
    assert list(here) == list(there)
    size = 1e-4 if inexact else 1e-9  # a solver's plays are as far from the best ones as the root of their gap
    for name, value in here.items():
        assert there[name] == pytest.approx(value, rel=size, abs=size * max(here.values())), name


@law(60)
@given(st.sampled_from(["box", "l2", "l1", "simplex", "product"]), EXPONENTS, st.integers(-430, 430), SEEDS)
def test_penalties_and_hints_in_any_units(name: str, points: int, gradients: int, seed: int) -> None:
    s, unit = 2.0**points, 2.0**gradients
    F = SETS[name](s)
    rows = [g * unit for g in stream("gaussian", F.dim, 4, seed)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if math.isfinite(unit / s) and unit / s > 1e-290:
            penalty = Composite(l1=0.2 * unit, l2=0.3 * unit / s, per_round=True)
            assert_chain(play(FTPRL(F, Diagonal(), composite=penalty), rows)[0])
        game = Game(FTPRL(F, Diagonal()))
        for g in rows:
            game.observe(g, hint=0.5 * g)
        assert_chain(game.certificate())


@pytest.mark.parametrize("name", [F for F in SETS if SETS[F](1.0).dim < 4])
@pytest.mark.parametrize("points", [-490, -333, 333, 490])
def test_programs_in_hindsight_are_equivariant(name: str, points: int) -> None:
    rows = stream("gaussian", 3, 3, 1)
    best = []
    for s in (1.0, 2.0**points):
        game = Game(FTPRL(SETS[name](s), Diagonal()), full=True)
        for g in rows:
            game.observe(g)
        found = game.certificate(program=True).post_hoc
        best.append({k: -1.0 if v is None else v / s for k, v in found.items()})
    assert best[1] == pytest.approx(best[0], rel=1e-6)


def rotation(rng: np.random.Generator) -> Vector:
    return np.asarray(np.linalg.qr(rng.normal(size=(3, 3)))[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", ["ellipsoid", "polytope", "preimage of a box", "preimage of a polytope"])
def test_john_of_long_sets(kind: str, condition: float, seed: int) -> None:
    """A linear image of a set has the image of its ellipsoid, with an equal guarantee, in every direction at once."""
    rng = np.random.default_rng(seed)
    A = rotation(rng) @ np.diag(np.geomspace(1.0, 1 / condition, 3)) @ rotation(rng)
    cube = Polytope(_CUBE, np.ones(6))
    F = {
        "ellipsoid": Ellipsoid(A),
        "polytope": Polytope(_CUBE @ A, np.ones(6)),
        "preimage of a box": Preimage(A, Box(-1, 1, dim=3)),
        "preimage of a polytope": Preimage(A, cube),
    }[kind]
    J = john(F)
    there = J @ np.linalg.inv(A)  # of the ball or the cube that F is an image of: a multiple of a rotation
    assert np.linalg.norm(there, 2) == pytest.approx(1 / 2 if kind == "ellipsoid" else 1 / math.sqrt(12), rel=1e-6)
    assert np.linalg.cond(there) == pytest.approx(1.0, rel=1e-6)
    learner = Preconditioned(J, FTPRL(Preimage(np.linalg.inv(J), F), CoordinateConstant(diameter=1.0)))
    game = Game(learner)
    for g in rng.normal(size=(5, 3)):
        game.observe(A.T @ g)
    assert_chain(game.certificate())


@pytest.mark.parametrize("size", [1e-160, 1e160])
@pytest.mark.parametrize("name", ["box", "l2", "ellipsoid", "simplex"])
def test_sets_whose_squares_leave_the_range_of_a_float_are_refused(name: str, size: float) -> None:
    F = SETS[name](size)
    with pytest.raises(InvalidInput, match=r"feasible needs widths of 0 or from 1e-151 to 1e151, got D.0.=.*unit"):
        FTPRL(F, Diagonal()).init()
