"""Small random sets and quadratic problems on them, for the laws."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import psd
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

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Rng = np.random.Generator
Maker = Callable[[Rng, int], ConvexSet]


def law(max_examples: int) -> Any:
    """Settings of a law: equal examples in every run, nothing left on the disk."""
    return settings(
        max_examples=max_examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],  # a smaller seed is no simpler example
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def random_box(rng: Rng, n: int) -> Box:
    """A box with an offset and unequal sides, sometimes with a coordinate that cannot move."""
    low = rng.normal(size=n) * 2
    width = rng.uniform(0.1, 3.0, size=n) * (rng.random(n) > 0.1)
    return Box(low, low + width)


def box_around(rng: Rng, x: Vector) -> Box:
    """A box with `x` in its interior."""
    return Box(x - rng.uniform(0.1, 1.0, size=len(x)), x + rng.uniform(0.1, 1.0, size=len(x)))


def invertible(rng: Rng, n: int) -> Vector:
    """A matrix of condition at most 9."""
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return U @ np.diag(rng.uniform(0.3, 2.7, size=n)) @ V


def random_polytope(rng: Rng, n: int, equalities: int = 0) -> Polytope:
    """Random faces around a point, closed by a box; equalities hold at this point."""
    c = rng.normal(size=n)
    C = np.vstack((rng.normal(size=(n, n)), np.eye(n), -np.eye(n)))
    d = C @ c + rng.uniform(0.2, 1.0, size=len(C))
    if not equalities:
        return Polytope(C, d)
    A = rng.normal(size=(equalities, n))
    return Polytope(C, d, A, A @ c)


def _center(rng: Rng, n: int) -> Vector:
    return rng.normal(size=n)


def _share(rng: Rng, n: int) -> float:
    return float(rng.uniform(0.5, 3.0))


def _capped(rng: Rng, n: int) -> CappedSimplex:
    scale = _share(rng, n)
    return CappedSimplex(n, scale / n * float(rng.uniform(1.0, n)), scale)


def _cut(maker: Maker) -> Maker:
    """The intersection of a set from `maker` with a box around one of its points."""

    def make(rng: Rng, n: int) -> ConvexSet:
        inner = maker(rng, n)
        toward = inner.vertex(rng.normal(size=n))
        return Intersection(inner, box_around(rng, inner.start() + 0.7 * (toward - inner.start())))

    return make


def _cut_halfspace(rng: Rng, n: int) -> ConvexSet:
    box = random_box(rng, n)
    a = rng.normal(size=n)
    a[rng.random(n) < 0.2] = 0.0
    a[0] = a[0] or 1.0
    low, high = float(a @ box.vertex(a)), float(a @ box.vertex(-a))
    return Intersection(Halfspace(a, low + (high - low) * float(rng.uniform(0.2, 0.9))), box)


def _product(rng: Rng, n: int) -> ConvexSet:
    parts: list[ConvexSet] = [Simplex(1 + n // 2), L2Ball(1, radius=0.7), random_box(rng, 1 + n // 4)]
    return Product(*parts)


def random_network(rng: Rng, n: int) -> FlowPolytope:
    """A path from 0 to n with further forward edges; some of them leave every path."""
    pairs = [(a, b) for a in range(n + 2) for b in range(a + 1, n + 2)]
    more = [pairs[k] for k in rng.permutation(len(pairs))[: n + 2]]
    edges = [*((a, a + 1) for a in range(n)), *more]
    return FlowPolytope([edges[k] for k in rng.permutation(len(edges))], 0, n)


BALLS: dict[str, Maker] = {
    "l1": lambda rng, n: L1Ball(n, _share(rng, n)),
    "l1 off centre": lambda rng, n: L1Ball(n, _share(rng, n), _center(rng, n)),
    "l2": lambda rng, n: L2Ball(n, _share(rng, n)),
    "l2 off centre": lambda rng, n: L2Ball(n, _share(rng, n), _center(rng, n)),
    **{f"lp {p:g}": (lambda rng, n, p=p: LpBall(n, p, _share(rng, n))) for p in (1.0, 1.2, 1.5, 2.0, 3.0, 7.0, np.inf)},
    "lp 1.7 off centre": lambda rng, n: LpBall(n, 1.7, _share(rng, n), _center(rng, n)),
    "lp 4 off centre": lambda rng, n: LpBall(n, 4.0, _share(rng, n), _center(rng, n)),
}
SYMMETRIC: dict[str, Maker] = {
    "cube": lambda rng, n: Box(-_share(rng, n), 1.0, dim=n),
    "simplex": lambda rng, n: Simplex(n, _share(rng, n)),
    "capped simplex": _capped,
    **{name: maker for name, maker in BALLS.items() if "off" not in name},
}
SETS: dict[str, Maker] = {
    **SYMMETRIC,
    **BALLS,
    "box": random_box,
    "ellipsoid": lambda rng, n: Ellipsoid(invertible(rng, n), _center(rng, n)),
    "ellipsoid on the axes": lambda rng, n: Ellipsoid(np.diag(rng.uniform(0.5, 3, size=n)), _center(rng, n)),
    "polytope": random_polytope,
    "flat polytope": lambda rng, n: random_polytope(rng, n + 1, equalities=1),
    "preimage of a box": lambda rng, n: Preimage(invertible(rng, n), random_box(rng, n)),
    "preimage of a simplex": lambda rng, n: Preimage(invertible(rng, n), Simplex(n)),
    "stretched ball": lambda rng, n: Preimage(np.diag(rng.uniform(0.5, 3, size=n)), L2Ball(n)),
    "preimage of an l4 ball": lambda rng, n: Preimage(invertible(rng, n), LpBall(n, 4)),
    "product": _product,
    "cut l1": _cut(BALLS["l1 off centre"]),
    "cut l2": _cut(BALLS["l2 off centre"]),
    "cut l4": _cut(BALLS["lp 4 off centre"]),
    "cut l1.5": _cut(BALLS["lp 1.5"]),
    "cut linf": _cut(BALLS["lp inf"]),
    "cut simplex": _cut(SYMMETRIC["simplex"]),
    "cut capped simplex": _cut(_capped),
    "cut box": _cut(random_box),
    "cut halfspace": _cut_halfspace,
    "cut ellipsoid": _cut(lambda rng, n: Ellipsoid(invertible(rng, n))),
    "cut polytope": _cut(random_polytope),
}
ORACLES: dict[str, Maker] = {
    "nuclear ball": lambda rng, n: NuclearBall(1 + n // 2, 1 + (n + 1) // 3, _share(rng, n)),
    "spectrahedron": lambda rng, n: Spectrahedron(1 + n // 2, _share(rng, n)),
    "birkhoff": lambda rng, n: Birkhoff(1 + n // 2),
    "permutahedron": lambda rng, n: Permutahedron(rng.normal(size=n) * _share(rng, n)),
    "ranks": lambda rng, n: Permutahedron(n),
    "flow": random_network,
}
EVERY = SETS | ORACLES  # those of SETS also have a conic form
SHAPES = ("scalar", "diagonal", "singular diagonal", "full", "singular full", "zero")
SEEDS = st.integers(0, 2**32 - 1)


def random_psd(rng: Rng, n: int, shape: str) -> PSD:
    """A PSD matrix of the given shape, sometimes badly scaled."""
    if shape == "zero":
        return np.zeros(())
    size = 10.0 ** rng.integers(-3, 4)
    if shape == "scalar":
        return np.array(size * rng.uniform(0.1, 2.0))
    if "diagonal" in shape:
        lam = size * rng.uniform(0.1, 2.0, size=n) * 10.0 ** rng.uniform(0, 2, size=n)
        return lam * (rng.random(n) < 0.6) if "singular" in shape else lam
    rank = int(rng.integers(1, n)) if "singular" in shape and n > 1 else n
    B = rng.normal(size=(n, rank)) if "singular" in shape else invertible(rng, n)
    return size * (B @ B.T)


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem: minimise ½ xᵀHx + z·x over F, near a point of F; `name` and `shape` identify the draw."""

    name: str
    shape: str
    F: ConvexSet
    H: PSD
    z: Vector
    near: Vector

    def slope(self, x: Vector) -> Vector:
        """The gradient of the objective."""
        return psd.apply(self.H, x) + self.z

    def value(self, x: Vector) -> float:
        """The objective."""
        return 0.5 * psd.quad(self.H, x) + float(self.z @ x)

    def unit(self) -> float:
        """The size of the objective over F, for relative tolerances."""
        low, high = self.F.bounds()
        reach = float(np.maximum(np.abs(low), np.abs(high)).max()) + float(self.F.widths().max())
        return reach * (float(np.abs(self.z).sum()) + reach * float(psd.dense(self.H, self.F.dim).trace()))

    def tolerance(self) -> float:
        """Rounding for closed forms and polyhedra; the solver's accuracy for other sets with a full matrix."""
        curved = any(w in self.name for w in ("lp 1.", "lp 3", "lp 7", "lp 4", "l4", "l1.5", "l2", "ellipsoid"))
        curved = curved or self.name in ("nuclear ball", "spectrahedron")
        solver = (
            (self.H.ndim == 2 and curved)
            or (self.H.ndim and self.name in ORACLES)
            or self.name in ("cut ellipsoid", "preimage of an l4 ball")
        )
        return (1e-7 if solver else 1e-10) * self.unit()


def points(rng: Rng, F: ConvexSet, count: int) -> Vector:
    """Points of F, as mixtures of its vertices along random directions."""
    corners = np.array([F.vertex(rng.normal(size=F.dim)) for _ in range(count + 2)])
    return rng.dirichlet(np.full(len(corners), 0.3), size=count) @ corners


def make_problem(name: str, shape: str, n: int, seed: int, in_range: bool = False) -> Problem:
    """Return the problem with these arguments."""
    rng = np.random.default_rng(seed)
    F = EVERY[name](rng, n)
    H = random_psd(rng, F.dim, shape)
    near = points(rng, F, 1)[0] if rng.random() < 0.5 else F.start()
    u = rng.normal(size=F.dim) * 10.0 ** rng.integers(-1, 2)
    if in_range or rng.random() < 0.5:
        z = -psd.apply(H, u)
    else:
        z = u * float(np.abs(H).max() or 1.0) * (rng.random(F.dim) < 0.8)
    return Problem(name, shape, F, H, z, near)


def problems(
    names: tuple[str, ...] = tuple(EVERY), shapes: tuple[str, ...] = SHAPES, in_range: bool = False
) -> st.SearchStrategy[Problem]:
    """Problems on the sets with these names and matrices with these shapes."""
    return st.builds(
        make_problem,
        st.sampled_from(names),
        st.sampled_from(shapes),
        st.integers(1, 6),
        SEEDS,
        st.just(in_range),
    )


def each_set(n: int, seed: int = 0) -> Iterator[tuple[str, ConvexSet]]:
    """Return one set of each kind."""
    for k, (name, maker) in enumerate(SETS.items()):
        yield name, maker(np.random.default_rng((seed, k)), n)
