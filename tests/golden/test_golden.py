"""Golden vectors: numbers from 50-digit arithmetic that the library must reproduce."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game, Preconditioned, best_bound
from ftprl.bounds import Certificate
from ftprl.learner import Learner
from ftprl.schemes import BestBound, CoordinateConstant, Diagonal, Fixed, Full
from ftprl.schemes.diagonal import DiagonalState
from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Intersection,
    L1Ball,
    L2Ball,
    LpBall,
    Product,
    Simplex,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "theory_golden.json").read_text())
RTOL, ATOL = 1e-11, 1e-13


def entry(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return GOLDEN[name]["inputs"], GOLDEN[name]["expected"]


def close(actual: Any, expected: Any, rtol: float = RTOL) -> None:
    np.testing.assert_allclose(np.asarray(actual, float), np.asarray(expected, float), rtol=rtol, atol=ATOL)


def constant(c: float | str) -> float:
    return math.sqrt(2) if c == "sqrt2" else float(c)


def run(learner: Learner[Any], rows: Any, hints: Any = None) -> tuple[np.ndarray, list[Certificate], Game]:
    game = Game(learner)
    plays, certificates = [game.x], []
    for t, g in enumerate(rows):
        game.observe(g, hint=None if hints is None else hints[t])
        plays.append(game.x)
        certificates.append(game.certificate())
    return np.array(plays), certificates, game


def check_receipt(receipt: Certificate, game_loss: float | None, want: dict[str, float], c: float) -> None:
    close(receipt.regret, want["regret"])
    close(receipt.theorem, want["bound_exact_paper"])
    close(receipt.bound, want["bound_exact_strong"])
    close(receipt.worst_case, want["B_R"])
    close(receipt.post_hoc["diagonal"], want["OPT_diag"])
    # The vector contains 2 sum S_i, the formula at c = 2, for plays with any c.
    assert receipt.closed_form is not None
    close(receipt.closed_form * 2 / (c / 2 + 2 / c), want["bound_closed_paper"])
    if game_loss is not None:
        close(game_loss, want["loss"])


@pytest.mark.parametrize("name", ["diag_box_3d_c2", "diag_box_3d_csqrt2"])
def test_diagonal_on_a_box_round_by_round(name: str) -> None:
    inputs, want = entry(name)
    c = constant(inputs["c"])
    learner = FTPRL(Box(inputs["lo"], inputs["hi"]), Diagonal(c), start=inputs["x1"])
    plays, certificates, game = run(learner, inputs["g"])
    close(plays, want["X"])
    state = game.state.scheme  # type: ignore[attr-defined]
    assert isinstance(state, DiagonalState)
    close(state.total, want["lambda_bar"])
    close(state.G, want["G"])
    close(game.state.z, want["z"])  # type: ignore[attr-defined]
    assert [w["t"] for w in want["certificate"]] == list(range(1, len(certificates) + 1))
    for receipt, row in zip(certificates, want["certificate"], strict=True):
        check_receipt(receipt, None, row, c)
    last = want["certificate"][-1]
    close(game.ledger.loss, last["loss"])
    close(game.ledger.stability, last["stability"])
    best = certificates[-1].comparator
    assert best is not None
    close(game.ledger.S @ best, last["best_fixed"])
    close(game.ledger.regularisation(state.total, best), last["r_at_xstar"])


def test_diagonal_on_a_box_away_from_zero_with_a_pinned_coordinate() -> None:
    inputs, want = entry("diag_box_offset_zero_width")
    learner = FTPRL(Box(inputs["lo"], inputs["hi"]), Diagonal(inputs["c"]), start=inputs["x1"])
    plays, certificates, game = run(learner, inputs["g"])
    close(plays, want["X"])
    close(game.state.scheme.total, want["lambda_bar"])  # type: ignore[attr-defined]
    close(game.state.scheme.G, want["G"])  # type: ignore[attr-defined]
    check_receipt(certificates[-1], game.ledger.loss, want["certificate_last"], 2.0)


def test_constant_on_a_ball() -> None:
    inputs, want = entry("const_l2_ball_R1.5")
    plays, certificates, game = run(FTPRL(L2Ball(3, inputs["R"]), CoordinateConstant(inputs["c"])), inputs["g"])
    close(plays, want["X"])
    close(game.state.scheme.total, want["alpha_bar"])  # type: ignore[attr-defined]
    close(game.ledger.G.sum(), want["G"])
    close(certificates[-1].regret, want["regret"])
    close(certificates[-1].closed_form, want["bound_closed_paper"])
    close(certificates[-1].post_hoc["const"], want["OPT_const"])
    close(certificates[-1].post_hoc["full"], want["OPT_full"])


def test_scale_on_an_ellipsoid() -> None:
    inputs, want = entry("scale_ellipsoid_2d")
    learner = Preconditioned(inputs["A"], FTPRL(L2Ball(2), CoordinateConstant()))
    plays, certificates, game = run(learner, inputs["g"])
    close(plays, want["X"])
    close(plays @ np.array(inputs["A"]).T, want["X_hat"])
    inner = learner.core_state(game.state)  # type: ignore[arg-type]
    close(inner.scheme.total, want["alpha_bar"])  # type: ignore[attr-defined]
    close(game.ledger.G.sum(), want["G_hat"])
    close(certificates[-1].regret, want["regret"])
    close(certificates[-1].closed_form, want["bound_closed_paper"])
    close(certificates[-1].post_hoc["full"], want["OPT_full"])


@pytest.mark.parametrize("name", ["general_Q_full_box", "general_Q_full_l2"])
def test_given_full_matrices(name: str) -> None:
    inputs, want = entry(name)
    feasible: ConvexSet = Box(inputs["lo"], inputs["hi"]) if "lo" in inputs else L2Ball(2, inputs["R"])
    plays, _, _ = run(FTPRL(feasible, Fixed(inputs["Q"]), start=inputs["x1"]), inputs["g"])
    close(plays, want["X"], rtol=RTOL if "lo" in inputs else 1e-9)


def test_full_matrix_scheme_on_a_ball() -> None:
    inputs, want = entry("full_matrix_l2_ball")
    learner = FTPRL(L2Ball(2, inputs["R"]), Full(constant(inputs["c"]), delta=inputs["delta"]))
    plays, certificates, game = run(learner, inputs["g"])
    close(plays, want["X"], rtol=1e-9)
    close(game.state.scheme.total, want["P_T"])  # type: ignore[attr-defined]
    close(certificates[-1].closed_form_strong, want["bound_strong"])


def test_hints_on_a_box() -> None:
    inputs, want = entry("optimistic_diag_box")
    learner = FTPRL(Box(inputs["lo"], inputs["hi"]), Diagonal(constant(inputs["c"])), start=[0, 0])
    plays, _, game = run(learner, inputs["g"], hints=inputs["g"])
    close(plays[:-1], want["X_played"])
    close(game.state.scheme.total, want["lambda_bar"])  # type: ignore[attr-defined]


def test_composite_l1_on_a_box() -> None:
    inputs, want = entry("composite_l1_diag_box")
    composite = Composite(l1=inputs["l1_per_round"], per_round=True)
    learner = FTPRL(Box(inputs["lo"], inputs["hi"]), Diagonal(inputs["c"]), start=[0, 0], composite=composite)
    plays, _, game = run(learner, inputs["g"])
    close(plays, want["X"])
    close(game.state.z, want["z"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("p", ["1", "1.5", "2", "3", "4", "inf"])
def test_post_hoc_on_unit_balls(p: str) -> None:
    inputs, want = entry("posthoc_unit_lp_balls_diag")
    ball, G = LpBall(3, float(p), inputs["radius"]), np.array(inputs["G"])
    diagonal, const = best_bound(ball, "diagonal", G), best_bound(ball, "const", G)
    assert diagonal is not None
    assert const is not None
    close(diagonal.value, want[p]["OPT_diag"])
    close(diagonal.Q, want[p]["lambda_"])
    close(const.value, want[p]["OPT_const"])


@pytest.mark.parametrize("case", ["a", "b"])
def test_post_hoc_on_the_simplex(case: str) -> None:
    inputs, want = entry("posthoc_simplex_diag")
    G = np.array(inputs[f"G_{case}"])
    diagonal, const = best_bound(Simplex(3), "diagonal", G), best_bound(Simplex(3), "const", G)
    assert diagonal is not None
    assert const is not None
    close(diagonal.value, want[case]["OPT_diag"])
    close(diagonal.Q, want[case]["lambda_"])
    close(const.value, want[case]["OPT_const"])


def test_post_hoc_on_a_box() -> None:
    inputs, want = entry("posthoc_box_diag")
    result = best_bound(Box(0.0, inputs["D"]), "diagonal", np.array(inputs["G"]))
    assert result is not None
    close(result.value, want["OPT_diag"])
    close(result.Q, want["lambda_"])


def test_post_hoc_full_on_an_ellipsoid() -> None:
    inputs, want = entry("posthoc_ellipsoid_full")
    g = np.array(inputs["g"])
    A = np.array(inputs["A"])
    result = best_bound(Ellipsoid(A), "full", (g**2).sum(axis=0), g.T @ g)
    assert result is not None
    close(result.value, want["OPT_full"])
    hat = float(((g @ np.linalg.inv(A)) ** 2).sum())
    close(result.Q, math.sqrt(hat / 2) * A.T @ A)


def test_post_hoc_on_a_product_of_balls() -> None:
    inputs, want = entry("posthoc_product_of_balls")
    balls = Product(*(L2Ball(2, D / 2) for D in inputs["D"]))
    G = np.repeat(np.array(inputs["G_blocks"]) / 2, 2)
    result = best_bound(balls, "block", G)
    assert result is not None
    close(result.value, want["OPT"])
    close(result.Q, np.repeat(want["alpha"], 2))


PROJECTIONS: dict[str, ConvexSet] = {
    "l2_r1": L2Ball(4),
    "l1_r1": L1Ball(4),
    "simplex_s1": Simplex(4),
    "l3_r1": LpBall(4, 3),
    "l2_r0.8_cap_box_-0.3_0.6": Intersection(L2Ball(4, 0.8), Box(-0.3, 0.6, dim=4)),
    "capped_simplex_s1_c0.4": CappedSimplex(4, 0.4),
}


@pytest.mark.parametrize("name", GOLDEN["projections_diag_metric"]["expected"])
def test_projections_in_a_diagonal_metric(name: str) -> None:
    inputs, want = entry("projections_diag_metric")
    u, lam = np.array(inputs["u"]), np.array(inputs["lam"])
    feasible = PROJECTIONS[name]
    close(feasible.argmin(lam, -lam * u, feasible.start()), want[name], rtol=1e-9)


@pytest.mark.parametrize("p", GOLDEN["lmo_unit_lp"]["expected"])
def test_best_points_of_unit_balls(p: str) -> None:
    inputs, want = entry("lmo_unit_lp")
    g = np.array(inputs["g"])
    x = LpBall(4, float(p)).vertex(g)
    close(x, want[p]["x"])
    close(g @ x, want[p]["value"])


def test_best_bound_scheme_on_the_l4_ball() -> None:
    inputs, want = entry("ftbb_l4_lambda_star")
    ball, scheme = LpBall(2, inputs["p"]), BestBound(b=1.0)
    state = scheme.init(ball)
    before = np.zeros(2)
    for G, lam, value in zip(inputs["G_sequence"], want["lambda_star"], want["OPT"], strict=True):
        _, state = scheme.step(state, np.sqrt(np.array(G) - before))  # type: ignore[assignment]
        before = np.array(G)
        close(state.total, lam)
        close(state.value, value)


def test_sum_lemma() -> None:
    inputs, want = entry("auer_sum")
    x = np.array(inputs["x"])
    root = np.sqrt(np.cumsum(x))
    close(np.divide(x, root, out=np.zeros_like(x), where=root > 0).sum(), want["lhs"])
    close(2 * root[-1], want["rhs"])


def test_no_vector_is_forgotten() -> None:
    text = Path(__file__).read_text()
    assert [name for name in GOLDEN if name != "_meta" and f'"{name}"' not in text] == []
