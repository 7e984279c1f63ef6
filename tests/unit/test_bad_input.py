"""Misuse: an error of one line with the value and a remedy, and no change of state."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game, Preconditioned, best_bound, best_in_hindsight, john, play
from ftprl.baselines import AdaGrad, GradientDescent
from ftprl.errors import FtprlError, InvalidInput, Unsupported
from ftprl.schemes import BestBound, BlockConstant, CoordinateConstant, Diagonal, Fixed, Full, Sketch
from ftprl.sets import (
    Birkhoff,
    Box,
    CappedSimplex,
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

NAN, INF = math.nan, math.inf
CUBE = Box(-1, 1, dim=2)
OPEN = Box(-INF, INF, dim=2)
ROWS = [[1.0, 0.0], [-1.0, 0.0]]


def learner(scheme: Any = None, F: Any = CUBE, **kw: Any) -> FTPRL:
    return FTPRL(F, scheme or Diagonal(), **kw)


def first(scheme: Any, F: Any = CUBE) -> Any:
    """A scheme is checked against its set when the game starts."""
    return Game(FTPRL(F, scheme))


CONSTRUCTIONS: list[tuple[str, Callable[[], Any], str]] = [
    ("box upside down", lambda: Box([0, 2], [1, 1]), "lower[1]=2"),
    ("box of nan", lambda: Box(NAN, 1.0), "nan"),
    ("box at infinity", lambda: Box(INF, INF), "inf"),
    ("box of strings", lambda: Box("low", 1.0), "'low'"),
    ("box of unequal lengths", lambda: Box([0, 0], [1, 1, 1]), "(3,)"),
    ("box with another dim", lambda: Box([0, 0], [1, 1], dim=3), "dim=3"),
    ("box of a matrix", lambda: Box(np.zeros((2, 2)), 1.0), "(2, 2)"),
    ("box without coordinates", lambda: Box([], []), "0"),
    ("box of dim 0", lambda: Box(0, 1, dim=0), "got 0"),
    ("box of dim 1.5", lambda: Box(0, 1, dim=1.5), "1.5"),  # type: ignore[arg-type]
    ("box of ragged rows", lambda: Box([[1], [1, 2]], 3), "[[1], [1, 2]]"),  # type: ignore[list-item]
    ("ball of dim 0", lambda: L2Ball(0), "got 0"),
    ("ball of dim True", lambda: L2Ball(True), "True"),
    ("ball of dim '3'", lambda: L2Ball("3"), "'3'"),  # type: ignore[arg-type]
    ("ball of radius 0", lambda: L2Ball(2, 0.0), "0.0"),
    ("ball of radius -1", lambda: L1Ball(2, -1.0), "-1.0"),
    ("ball of radius inf", lambda: L2Ball(2, INF), "inf"),
    ("ball of radius 'r'", lambda: L2Ball(2, "r"), "'r'"),  # type: ignore[arg-type]
    ("ball with a long centre", lambda: L2Ball(2, 1.0, [0, 0, 0]), "(3,)"),
    ("ball with centre nan", lambda: L2Ball(2, 1.0, [0, NAN]), "center[1]=nan"),
    ("p below 1", lambda: LpBall(2, 0.5), "p=0.5"),
    ("p nan", lambda: LpBall(2, NAN), "p=nan"),
    ("p a string", lambda: LpBall(2, "2"), "'2'"),  # type: ignore[arg-type]
    ("ellipsoid of a singular matrix", lambda: Ellipsoid([[1, 1], [1, 1]]), "condition"),
    ("ellipsoid of zeros", lambda: Ellipsoid(np.zeros((2, 2))), "condition"),
    ("ellipsoid of a flat matrix", lambda: Ellipsoid(np.ones((2, 3))), "(2, 3)"),
    ("ellipsoid of a vector", lambda: Ellipsoid([1.0, 2.0]), "(2,)"),
    ("ellipsoid of nothing", lambda: Ellipsoid(np.zeros((0, 0))), "inf"),
    ("ellipsoid of nan", lambda: Ellipsoid([[1.0, NAN], [0.0, 1.0]]), "A[0,1]=nan"),
    ("simplex of scale 0", lambda: Simplex(3, 0.0), "0.0"),
    ("simplex of dim -1", lambda: Simplex(-1), "-1"),
    ("cap too small", lambda: CappedSimplex(3, 0.2), "0.2 * 3 < 1"),
    ("cap below 0", lambda: CappedSimplex(3, -0.5), "-0.5"),
    ("halfspace without a normal", lambda: Halfspace([0.0, 0.0], 1.0), "zeros"),
    ("halfspace with b nan", lambda: Halfspace([1.0], NAN), "nan"),
    ("halfspace with b inf", lambda: Halfspace([1.0], INF), "inf"),
    ("halfspace with b a vector", lambda: Halfspace([1.0], [1.0, 2.0]), "(2,)"),  # type: ignore[arg-type]
    ("polytope without a point", lambda: Polytope(ROWS, [-1, -1]), "none among 2"),
    ("polytope with a short d", lambda: Polytope(ROWS, [1.0]), "(1,)"),
    ("polytope with d inf", lambda: Polytope(ROWS, [1.0, INF]), "inf"),
    ("polytope of a vector", lambda: Polytope([1.0, 2.0], [1.0]), "(2,)"),
    ("polytope with A_eq alone", lambda: Polytope(ROWS, [1, 1], A_eq=[[1, 1]]), "A_eq"),
    ("polytope with a wide A_eq", lambda: Polytope(ROWS, [1, 1], [[1, 1, 1]], [0]), "(1, 3)"),
    ("polytope off its equality", lambda: Polytope(ROWS, [1, 1], [[1, 0]], [3]), "1 equalities"),
    ("polytope without columns", lambda: Polytope(np.zeros((2, 0)), [1, 1]), "0"),
    ("preimage of another dim", lambda: Preimage(np.eye(3), CUBE), "3 and 2"),
    ("preimage by a singular matrix", lambda: Preimage(np.ones((2, 2)), CUBE), "condition"),
    ("product of nothing", lambda: Product(), "none"),
    ("product of numbers", lambda: Product(1.0), "1.0"),  # type: ignore[arg-type]
    ("preimage of a number", lambda: Preimage([[1.0]], 3), "3"),  # type: ignore[arg-type]
    ("intersection of other dims", lambda: Intersection(CUBE, Box(0, 1)), "2 and 1"),
    ("intersection with a ball", lambda: Intersection(CUBE, L2Ball(2)), "L2Ball"),  # type: ignore[arg-type]
    ("empty intersection with a simplex", lambda: Intersection(Simplex(2), Box(2, 3, dim=2)), "Simplex"),
    ("empty intersection with a ball", lambda: Intersection(L2Ball(2), Box(2, 3, dim=2)), "L2Ball"),
    ("empty intersection with a box", lambda: Intersection(CUBE, Box(2, 3, dim=2)), "Box"),
    ("empty intersection at a halfspace", lambda: Intersection(Halfspace([1, 0], -5), CUBE), "Halfspace"),
    ("empty intersection with an ellipsoid", lambda: Intersection(Ellipsoid(np.eye(2)), Box(2, 3, dim=2)), "none"),
    ("empty intersection with a polytope", lambda: Intersection(Polytope(ROWS, [1, 1]), Box(2, 3, dim=2)), "none"),
    ("unbounded intersection", lambda: Intersection(Halfspace([1, 0], 1), OPEN), "infinite"),
    ("nuclear ball without rows", lambda: NuclearBall(0, 2), "got 0"),
    ("nuclear ball of radius 0", lambda: NuclearBall(2, 2, 0.0), "0.0"),
    ("nuclear ball, a vector as matrix", lambda: NuclearBall(2, 2).vector([1.0, 2.0]), "(2,)"),
    ("nuclear ball, a matrix of three rows", lambda: NuclearBall(2, 2).vector(np.ones((3, 2))), "got 3"),
    ("nuclear ball, a short vector", lambda: NuclearBall(2, 2).matrix([1.0, 2.0]), "(2,)"),
    ("spectrahedron of size 1.5", lambda: Spectrahedron(1.5), "1.5"),  # type: ignore[arg-type]
    ("spectrahedron of scale -1", lambda: Spectrahedron(2, -1.0), "-1.0"),
    ("birkhoff of size 0", lambda: Birkhoff(0), "got 0"),
    ("permutahedron of nothing", lambda: Permutahedron([]), "got 0"),
    ("permutahedron of 0", lambda: Permutahedron(0), "got 0"),
    ("permutahedron of nan", lambda: Permutahedron([1.0, NAN]), "values[1]=nan"),
    ("flow without edges", lambda: FlowPolytope([], 0, 1), "none"),
    ("flow in a circle", lambda: FlowPolytope([(0, 1), (1, 0), (1, 2)], 0, 2), "0 -> 1"),
    ("flow without a path", lambda: FlowPolytope([(0, 1), (2, 1)], 0, 2), "from 0 to 2"),
    ("flow from nowhere", lambda: FlowPolytope([(0, 1)], "home", 1), "'home'"),
    ("flow of numbers", lambda: FlowPolytope([3], 0, 1), "edges[0]"),  # type: ignore[list-item]
    ("flow along a loop", lambda: FlowPolytope([(0, 0), (0, 1)], 0, 1), "(0, 0)"),
    ("flow between lists", lambda: FlowPolytope([([0], 1)], 0, 1), "edges[0]"),  # type: ignore[list-item]
    ("c of 0", lambda: Diagonal(c=0), "got 0"),
    ("c below 0", lambda: CoordinateConstant(c=-2.0), "-2.0"),
    ("c nan", lambda: Full(c=NAN), "nan"),
    ("c a string", lambda: BlockConstant(c="2x"), "'2x'"),  # type: ignore[arg-type]
    ("delta below 0", lambda: Full(delta=-1.0), "-1.0"),
    ("rank 0", lambda: Sketch(0), "got 0"),
    ("rank 1.5", lambda: Sketch(1.5), "1.5"),  # type: ignore[arg-type]
    ("b of 0", lambda: BestBound(b=0.0), "0.0"),
    ("family of fruit", lambda: BestBound(family="fruit"), "'fruit'"),  # type: ignore[arg-type]
    ("best bound of full", lambda: BestBound(family="full"), "'full'"),
    ("diameter 0", lambda: CoordinateConstant(diameter=0.0), "0.0"),
    ("fixed number", lambda: Fixed(1.0), "1.0"),  # type: ignore[arg-type]
    ("fixed string", lambda: Fixed("abc"), "'abc'"),
    ("l1 below 0", lambda: Composite(l1=-1.0), "-1.0"),
    ("l2 nan", lambda: Composite(l2=NAN), "nan"),
    ("preconditioned by a singular matrix", lambda: Preconditioned(np.ones((2, 2)), learner()), "condition"),
    ("preconditioned by another dim", lambda: Preconditioned(np.eye(3), learner()), "3 and 2"),
    ("diagonal without widths", lambda: first(Diagonal(), OPEN), "D[0]=inf"),
    ("diagonal with widths 0", lambda: first(Diagonal(widths=0.0)), "got 0"),
    ("diagonal with widths nan", lambda: first(Diagonal(widths=[1.0, NAN])), "widths[1]=nan"),
    ("diagonal with three widths", lambda: first(Diagonal(widths=[1.0, 2.0, 3.0])), "(3,)"),
    ("constant on an open box", lambda: first(CoordinateConstant(), OPEN), "inf"),
    ("full on an open box", lambda: first(Full(), OPEN), "inf"),
    ("sketch on an open box", lambda: first(Sketch(1), OPEN), "inf"),
    ("best bound on an open box", lambda: first(BestBound(), OPEN), "inf"),
    (
        "best bound on a polytope",
        lambda: first(BestBound(), Polytope(np.vstack((np.eye(2), -np.eye(2))), np.ones(4))),
        "Polytope",
    ),
    ("blocks without a product", lambda: first(BlockConstant()), "Box(-1, 1, dim=2)"),
    ("start outside", lambda: Game(learner(start=[0.0, 5.0])), "5."),
    ("start too long", lambda: Game(learner(start=[0.0, 0.0, 0.0])), "(3,)"),
    ("start nan", lambda: Game(learner(start=[0.0, NAN])), "start[1]=nan"),
    ("start a word", lambda: Game(learner(start="here")), "'here'"),
    ("history of 0", lambda: Game(learner(), history=0), "got 0"),
    ("history of -1", lambda: Game(learner(), history=-1), "-1"),
    ("history a word", lambda: Game(learner(), history="all"), "'all'"),  # type: ignore[arg-type]
    ("first hint nan", lambda: Game(learner(), hint=[0.0, NAN]), "hint[1]=nan"),
    ("first hint for a baseline", lambda: Game(GradientDescent(CUBE), hint=[0.0, 1.0]), "GradientDescent"),
    ("rows of another length", lambda: play(learner(), [[1.0]]), "(1,)"),
    ("rows of words", lambda: play(learner(), ["ab"]), "'ab'"),
    ("one flat list of numbers", lambda: play(learner(), [1.0, 2.0]), "()"),
    ("hindsight of words", lambda: best_in_hindsight(CUBE, ["ab"]), "'ab'"),
    ("hindsight on an open box", lambda: best_in_hindsight(OPEN, [[1.0, 0.0]]), "inf"),
    ("family of the best bound", lambda: best_bound(CUBE, "fruit", np.ones(2)), "'fruit'"),  # type: ignore[arg-type]
    ("best bound with two G for three", lambda: best_bound(CUBE, "diagonal", np.ones(3)), "(3,)"),
    ("best bound with G below 0", lambda: best_bound(CUBE, "diagonal", np.array([1.0, -1.0])), "-1"),
    ("best bound with a list", lambda: best_bound(CUBE, "diagonal", [1.0, "a"]), "'a'"),  # type: ignore[arg-type]
    ("john of a simplex", lambda: john(Simplex(3)), "Simplex"),
    ("john of an open box", lambda: john(OPEN), "Box"),
    ("adagrad with two rates for three", lambda: AdaGrad(Box(0, 1, dim=3), [1.0, 2.0]).init(), "(2,)"),
]


def assert_helpful(error: FtprlError, message: str) -> None:
    """Check that a message has one line, the value, and a remedy after a semicolon."""
    text = str(error)
    assert isinstance(error, InvalidInput | Unsupported)
    assert "\n" not in text
    assert message in text
    head, _, remedy = text.rpartition(";")
    assert len(head) > 10
    assert len(remedy.strip()) > 5


@pytest.mark.parametrize(("make", "message"), [c[1:] for c in CONSTRUCTIONS], ids=[c[0] for c in CONSTRUCTIONS])
def test_construction(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(FtprlError) as caught:
        make()
    assert_helpful(caught.value, message)


class Closes:
    """A rule whose later matrices are bad."""

    def __init__(self, bad: Any) -> None:
        self.bad = bad
        self.calls = 0

    def __call__(self, t: int, g: np.ndarray) -> Any:
        self.calls += 1
        return self.bad if self.calls == 3 else np.eye(2)


CALLS: list[tuple[str, Callable[[Game], Any], str]] = [
    ("nan", lambda game: game.observe([NAN, 0.0]), "g[0]=nan"),
    ("inf", lambda game: game.observe([0.0, -INF]), "g[1]=-inf"),
    ("huge", lambda game: game.observe([1e200, 0.0]), "g[0]=1e+200"),
    ("too long", lambda game: game.observe([1.0, 2.0, 3.0]), "(3,)"),
    ("a number", lambda game: game.observe(1.0), "()"),
    ("a matrix", lambda game: game.observe([[1.0, 2.0]]), "(1, 2)"),
    ("empty", lambda game: game.observe([]), "(0,)"),
    ("words", lambda game: game.observe(["a", "b"]), "'a'"),
    ("words in an array", lambda game: game.observe(np.array(["a", "b"])), "'a'"),
    ("objects in an array", lambda game: game.observe(np.array([None, 1.0])), "nan"),
    ("none", lambda game: game.observe(None), "None"),  # type: ignore[arg-type]
    ("complex numbers", lambda game: game.observe(np.array([1j, 2.0])), "1.j"),
    ("a hint of nan", lambda game: game.observe([1.0, 1.0], hint=[NAN, 0.0]), "hint[0]=nan"),
    ("a long hint", lambda game: game.observe([1.0, 1.0], hint=[1.0]), "(1,)"),
    ("a loss of nan", lambda game: game.observe([1.0, 1.0], loss=NAN), "nan"),
    ("a loss of words", lambda game: game.observe([1.0, 1.0], loss="much"), "'much'"),  # type: ignore[arg-type]
    ("a comparator outside", lambda game: game.certificate(comparator=[9.0, 0.0]), "9"),
    ("a long comparator", lambda game: game.certificate(comparator=[0.0]), "(1,)"),
    ("a comparator of nan", lambda game: game.certificate(comparator=[NAN, 0.0]), "nan"),
    ("a best loss of words", lambda game: game.certificate(best_loss="x"), "'x'"),  # type: ignore[arg-type]
    ("a best loss of nan", lambda game: game.certificate(best_loss=NAN), "nan"),
    ("a plot without history", lambda game: game.certificate().plot(), "none"),
]
LEARNERS: dict[str, Callable[[], Any]] = {
    "diagonal": lambda: learner(),
    "full on a ball": lambda: learner(Full(), L2Ball(2)),
    "preconditioned": lambda: Preconditioned([[2.0, 0.3], [0.0, 1.0]], learner(CoordinateConstant(), L2Ball(2))),
    "adagrad": lambda: AdaGrad(CUBE),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(("call", "message"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_calls_of_a_game_change_nothing(name: str, call: Callable[[Game], Any], message: str) -> None:
    game, twin = Game(LEARNERS[name]()), Game(LEARNERS[name]())
    for g in ([1.0, -0.3], [0.2, 0.5]):
        game.observe(g, loss=1.0)
        twin.observe(g, loss=1.0)
    state, ledger = game.state, game.ledger
    with pytest.raises(FtprlError) as caught:
        call(game)
    assert_helpful(caught.value, message)
    assert game.state is state
    assert game.ledger is ledger
    game.observe([0.4, -2.0], loss=0.5)
    twin.observe([0.4, -2.0], loss=0.5)
    np.testing.assert_array_equal(game.x, twin.x)
    assert game.certificate(best_loss=0.0).to_dict() == twin.certificate(best_loss=0.0).to_dict()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "-1"),
        ([[1.0, 0.5], [0.0, 1.0]], "0.5"),
        ([-1.0, 1.0], "-1"),
        (-0.5, "-0.5"),
        (NAN, "nan"),
        (np.eye(3), "(3, 3)"),
        ("Q", "'Q'"),
        (None, "None"),
    ],
)
def test_a_rule_that_gives_no_psd_matrix(bad: Any, message: str) -> None:
    game = Game(FTPRL(CUBE, Fixed(Closes(bad))))
    game.observe([1.0, 0.5])
    game.observe([1.0, 0.5])
    state, ledger = game.state, game.ledger
    with pytest.raises(InvalidInput, match=r"^Q_3 needs") as caught:
        game.observe([1.0, 0.5])
    assert_helpful(caught.value, message)
    assert game.state is state
    assert game.ledger is ledger
    game.observe([1.0, 0.5])
    assert game.rounds == 3


def test_losses_that_answer_nonsense() -> None:
    for bad in (lambda x: 3.0, lambda x: (1.0, [NAN, 0.0]), lambda x: ("a", [1.0, 0.0]), lambda x: (NAN, [1.0, 0.0])):
        with pytest.raises(InvalidInput) as caught:
            play(learner(), [bad])
        assert_helpful(caught.value, "")


def test_an_unbounded_step_is_refused() -> None:
    """On an unbounded box the first play needs weight; an unbounded step is refused, and the game continues."""
    game = Game(FTPRL(OPEN, Fixed([0.0, [1.0, 1.0], [1.0, 1.0]])))
    with pytest.raises(InvalidInput) as caught:
        game.observe([1.0, 0.0])
    assert_helpful(caught.value, "coordinate 0")
    assert game.rounds == 0
    np.testing.assert_array_equal(game.x, [0.0, 0.0])


def test_errors_are_value_errors_where_that_is_what_they_are() -> None:
    assert issubclass(InvalidInput, ValueError)
    assert not issubclass(Unsupported, ValueError)
