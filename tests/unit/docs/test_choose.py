"""docs/choose.md: every number of its table equals the library's proved ratio."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from ftprl import FTPRL, Preconditioned, best_bound, john, play
from ftprl.schemes import BestBound, BlockConstant, CoordinateConstant, Diagonal, Scheme
from ftprl.sets import (
    Birkhoff,
    Box,
    ConvexSet,
    Ellipsoid,
    FlowPolytope,
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

PAGE = (Path(__file__).parents[3] / "docs" / "choose.md").read_text()
TABLE = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and line.count("|") == 6 and "---" not in line
][1:]
N = 6
ROOT2 = math.sqrt(2.0)
A = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0] * np.geomspace(0.2, 4.0, N)


def value(cell: str, p: float = 0.0, gamma: float = 0.0) -> float:
    """Return a cell of the table as a number."""
    names = {"sqrt": math.sqrt, "pi": math.pi, "n": N, "p": p, "gamma": gamma}
    return float(eval(cell.strip("`"), {"__builtins__": {}}, names))


def row(where: str, scheme: str, against: str) -> tuple[str, str]:
    """Return the two numeric cells of the row that begins so."""
    actual = [r for r in TABLE if (r[0], r[1].strip("`").split("(")[0].split("`")[0], r[2]) == (where, scheme, against)]
    assert len(actual) == 1, (where, scheme, against)
    return actual[0][3], actual[0][4]


def proved(scheme: type, feasible: ConvexSet) -> tuple[float, float]:
    """Return the library's ratios: of B_R with c = 2, of the regret with the better constant."""
    if scheme is BestBound:
        rho = (BestBound().proven_ratio(feasible) or math.nan) ** 2 / 2
        paper, strong = BestBound(), BestBound(b=rho**-0.5)
    else:
        paper, strong = scheme(2.0), scheme(ROOT2)
    assert isinstance(paper, Scheme)
    first, second = paper.proven_ratio(feasible), strong.proven_regret_ratio(feasible)
    assert first is not None
    assert second is not None
    return first, second


def worst(feasible: ConvexSet, own: str, other: str) -> float:
    """Return the largest ratio of two families' best bounds over gradients of many kinds, including one coordinate
    alone.
    """
    rng = np.random.default_rng(1)
    most = 0.0
    for k in range(60):
        G = np.eye(N)[k % N] if k < N else rng.exponential(size=N) * 10.0 ** rng.uniform(-3, 3, size=N)
        most = max(most, best_bound(feasible, own, G).value / best_bound(feasible, other, G).value)
    return most


FLAT = "`Permutahedron`, `FlowPolytope`, `Birkhoff`, `Spectrahedron`"
OWN = [  # where the family of the table is the scheme's own
    ("`Box`", Diagonal, "diagonal", Box(-1, np.arange(1.0, N + 1)), 0.0),
    ("`LpBall` with p >= 4", Diagonal, "diagonal", LpBall(N, 4.0), 4.0),
    ("`LpBall` with p >= 4", Diagonal, "diagonal", LpBall(N, 7.0), 7.0),
    ("`LpBall` with p > 2", BestBound, "diagonal", LpBall(N, 2.5), 2.5),
    ("`LpBall` with p > 2", BestBound, "diagonal", LpBall(N, 6.0), 6.0),
    ("`Product` of L2 balls", BlockConstant, "block", Product(L2Ball(2), L2Ball(4, 3.0)), 0.0),
    ("`Simplex`", BestBound, "diagonal", Simplex(N), 0.0),
    (FLAT, CoordinateConstant, "constant", Permutahedron(N), 0.0),
    (FLAT, CoordinateConstant, "constant", FlowPolytope([(0, 1), (0, 1), (1, 2), (0, 2)], 0, 2), 0.0),
    (FLAT, CoordinateConstant, "constant", Birkhoff(3), 0.0),
    (FLAT, CoordinateConstant, "constant", Spectrahedron(2), 0.0),
    ("any bounded set", CoordinateConstant, "constant", Simplex(N), 0.0),
    ("any bounded set", CoordinateConstant, "constant", Ellipsoid(A), 0.0),
    ("any bounded set", Diagonal, "diagonal", Simplex(N), 0.0),
    ("any bounded set", Diagonal, "diagonal", L1Ball(N), 0.0),
]


@pytest.mark.parametrize(("where", "scheme", "against", "feasible", "p"), OWN, ids=lambda v: str(v)[:24])
def test_own_family(where: str, scheme: type, against: str, feasible: ConvexSet, p: float) -> None:
    cells = row(where, scheme.__name__, against)
    want = tuple(value(cell, p, feasible.gamma()) for cell in cells)
    assert proved(scheme, feasible) == pytest.approx(want)


OTHER = [  # where the scheme's own family is worse than that of the table by a factor of its own
    ("`L2Ball`", "const", "full", "full", L2Ball(N), 2.0),
    ("`L1Ball`, `LpBall` with p < 2", "const", "diagonal", "diagonal", L1Ball(N), 1.0),
    ("`L1Ball`, `LpBall` with p < 2", "const", "diagonal", "diagonal", LpBall(N, 1.5), 1.5),
    ("`LpBall` with 2 < p <= 4", "const", "diagonal", "diagonal", LpBall(N, 3.0), 3.0),
    ("`LpBall` with 2 < p <= 4", "const", "diagonal", "diagonal", LpBall(N, 4.0), 4.0),
    ("`Simplex`", "const", "diagonal", "diagonal", Simplex(N), 0.0),
    ("`NuclearBall`", "const", "diagonal", "diagonal", NuclearBall(2, 3), 0.0),
]


@pytest.mark.parametrize(("where", "own", "other", "against", "feasible", "p"), OTHER, ids=lambda v: str(v)[:24])
def test_constant_against_more(where: str, own: str, other: str, against: str, feasible: ConvexSet, p: float) -> None:
    """Against a larger family, CoordinateConstant's ratio is multiplied by that family's gain; single gradients
    attain it.
    """
    cells = row(where, "CoordinateConstant", against)
    gain = worst(feasible, own, other)
    want = tuple(value(cell, p) for cell in cells)
    assert tuple(gain * ratio for ratio in proved(CoordinateConstant, feasible)) == pytest.approx(want)


@pytest.mark.parametrize(
    ("where", "scheme", "feasible"),
    [
        ("`Box`", Diagonal, Box(-1, 1, dim=N)),
        ("`Product` of L2 balls", BlockConstant, Product(L2Ball(2), L2Ball(4, 3.0))),
        ("`Preimage(A, Box(-1, 1, dim=n))`", Diagonal, Box(-1, 1, dim=N)),
    ],
    ids=["box", "product", "parallelotope"],
)
def test_against_full_matrices(where: str, scheme: type, feasible: ConvexSet) -> None:
    """On quadratically convex sets a full matrix gains at most sqrt(pi/2), in the coordinates of the box."""
    name = "Preconditioned" if where.startswith("`Pre") else scheme.__name__
    want = tuple(value(cell) for cell in row(where, name, "full"))
    assert tuple(math.sqrt(math.pi / 2) * r for r in proved(scheme, feasible)) == pytest.approx(want)


def test_ellipsoid_and_stretched_balls() -> None:
    """FTPRL-Scale's certificate has the ratios of the image; on an ellipsoid that family is as good as all matrices."""
    gs = np.random.default_rng(2).normal(size=(30, N)) @ A
    for inner, where, against in (
        (L2Ball(N), "`Ellipsoid(A)`", "full"),
        (LpBall(N, 1.5), "`Preimage(A, LpBall(n, p))` with p < 2", "diagonal in A x"),
    ):
        want = tuple(value(cell) for cell in row(where, "Preconditioned", against))
        made = [play(Preconditioned(A, FTPRL(inner, CoordinateConstant(c))), gs).certificate() for c in (2.0, ROOT2)]
        assert (made[0].proven_ratio, made[1].proven_regret_ratio) == pytest.approx(want)
        assert made[0].post_hoc["const"] == pytest.approx(made[0].post_hoc["diagonal"])
    best = best_bound(Ellipsoid(A), "full", (gs**2).sum(axis=0), gs.T @ gs).value
    scale = play(Preconditioned(A, FTPRL(L2Ball(N), CoordinateConstant())), gs).certificate()
    assert scale.post_hoc["const"] == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_john(seed: int) -> None:
    """John scaling: the closed forms are within both factors of the best full matrix on random polytopes."""
    rng = np.random.default_rng(seed)
    n = 3
    C = np.vstack((rng.normal(size=(5, n)), np.eye(n), -np.eye(n)))
    F = Polytope(C, np.ones(len(C)) + rng.random(len(C)))
    gs = rng.normal(size=(6, n))
    A = john(F)
    best = best_bound(F, "full", (gs**2).sum(axis=0), gs.T @ gs, program=True).value
    limits = [value(cell) * math.sqrt(n / N) for cell in row("any set with interior", "john", "full")]
    for c, name, limit in ((2.0, "closed_form", limits[0]), (ROOT2, "closed_form_strong", limits[1])):
        inner = FTPRL(Preimage(np.linalg.inv(A), F), CoordinateConstant(c, diameter=1.0), start=A @ F.start())
        made = play(Preconditioned(A, inner), gs).certificate()
        assert best * (1 - 1e-6) <= getattr(made, name) * ROOT2
        assert getattr(made, name) <= limit * best * (1 + 1e-6)


def test_every_row_is_tested() -> None:
    """All nineteen rows are named above, and the text's statements on gamma and rho hold."""
    here = Path(__file__).read_text()
    assert len(TABLE) == 19
    for where, *_ in TABLE:
        assert f'"{where}"' in here, where
    assert Box(0, 1, dim=N).gamma() == 1
    assert Simplex(N).gamma() == N / 2
    assert 1 - 1 / math.sqrt(math.pi / 2) == pytest.approx(0.2, abs=0.01)  # "about a fifth at most"
