"""Algorithm 2 (FTPRL-Scale), as printed and as corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL, Preconditioned
from ftprl.paper.base import Check, Outcome, Statement, Step, Verdict
from ftprl.paper.instances import ROUNDING, slope
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Box, L2Ball, Preimage

Vector = NDArray[np.float64]


def algorithm(A: Vector, gs: Vector, *, hat_gradient: bool, hat_centre: bool) -> Vector:
    """Run the pseudo-code line by line on {|Ax| <= 1} and return the plays x_1 .. x_{T+1}, one per row.

    As printed it uses g untransformed (`hat_gradient` False) and centres at the untransformed x_t (`hat_centre` False).
    """
    inverse = np.linalg.inv(A)
    n = len(A)
    x_hat, q, S, squares, total = np.zeros(n), np.zeros(n), np.zeros(n), 0.0, 0.0
    plays = [inverse @ x_hat]
    for g in gs:
        g_hat = inverse.T @ g
        squares += float(g_hat @ g_hat)
        weight = np.sqrt(squares) - total
        total += weight
        q = q + weight * (x_hat if hat_centre else plays[-1])
        S = S + (g_hat if hat_gradient else g)
        u = (q - S) / total
        x_hat = u / max(1.0, float(np.linalg.norm(u)))
        plays.append(inverse @ x_hat)
    return np.array(plays)


def regret(A: Vector, gs: Vector, plays: Vector) -> float:
    """Return the regret of plays against the best point of {|Ax| <= 1}."""
    return float((gs * plays[: len(gs)]).sum() + np.linalg.norm(np.linalg.inv(A).T @ gs.sum(axis=0)))


def bound(A: Vector, gs: Vector) -> float:
    """Return the theorem's bound 4 sqrt(sum |A^-T g|²)."""
    return 4 * float(np.linalg.norm(gs @ np.linalg.inv(A)))


def library(A: Vector, gs: Vector) -> Vector:
    """Return the library's plays of FTPRL-Scale."""
    game = Game(Preconditioned(A, FTPRL(L2Ball(len(A)), CoordinateConstant())))
    plays = [game.x]
    for g in gs:
        game.observe(g)
        plays.append(game.x)
    return np.array(plays)


def long_axis(T: int) -> tuple[Vector, Vector]:
    """Return A = diag(1, 10) and equal gradients, for which adding up g itself loses the direction."""
    return np.diag([1.0, 10.0]), np.tile([0.2, 1.0], (T, 1))


def wide(T: int) -> tuple[Vector, Vector]:
    """Return A = 0.02 and a first gradient of the other sign, for which centring at x_t is 50 times too far out."""
    gs = np.full((T, 1), -0.02)
    gs[0] = 0.02
    return np.array([[0.02]]), gs


def _outside() -> tuple[float, float]:
    """Return how far plays leave F if F is a part of {|Ax| <= 1}: projecting on the ball, and on A F."""
    F, A = Box(-0.1, 0.1, dim=2), np.eye(2) * 5
    gs = np.random.default_rng(5).normal([1.0, 0.5], 1.0, size=(200, 2))
    on_ball = algorithm(A, gs, hat_gradient=True, hat_centre=True)
    game = Game(Preconditioned(A, FTPRL(Preimage(np.linalg.inv(A), F), CoordinateConstant())))
    inside = []
    for g in gs:
        game.observe(g)
        inside.append(game.x)
    return tuple(max(float(np.abs(x).max()) - 0.1, 0.0) for x in (on_ball, np.array(inside)))  # type: ignore[return-value]


G, X, BOTH, NONE = "untransformed g", "untransformed x", "both, as printed", "corrected"
READINGS = {G: (False, True), X: (True, False), BOTH: (False, False), NONE: (True, True)}  # which hats are kept


def run(full: bool, step: Step) -> Outcome:
    """Measure the regret of each reading over the theorem's bound as T grows: each misprint alone, and both."""
    lengths = [int(T) for T in np.geomspace(30, 100_000 if full else 10_000, 6).round()]
    shares: dict[str, list[float]] = {name: [] for name in READINGS}
    apart, panels = [], []
    for title, make, alone in (("A = diag(1, 10)", long_axis, G), ("A = 0.02", wide, X)):
        curves: dict[str, list[float]] = {name: [] for name in (alone, BOTH, NONE, "bound")}
        for T in lengths:
            step(f"{title}, {T} rounds")
            A, gs = make(T)
            curves["bound"].append(bound(A, gs))
            for name in (alone, BOTH, NONE):
                hat_gradient, hat_centre = READINGS[name]
                plays = algorithm(A, gs, hat_gradient=hat_gradient, hat_centre=hat_centre)
                curves[name].append(regret(A, gs, plays))
                shares[name].append(curves[name][-1] / curves["bound"][-1])
        A, gs = make(500)
        right_plays = algorithm(A, gs, hat_gradient=True, hat_centre=True)
        apart.append(float(np.abs(right_plays - library(A, gs)).max() * np.abs(A).max()))
        panels.append(_panel(title, lengths, curves))
    on_ball, inside = _outside()
    limit = 1 + ROUNDING
    return Outcome(
        [
            Check("as printed: largest regret / bound", max(shares[BOTH]), "<=", limit),
            Check("untransformed g alone, A = diag(1, 10): largest regret / bound", max(shares[G]), "<=", limit),
            Check("untransformed x alone, A = 0.02: largest regret / bound", max(shares[X]), "<=", limit),
            Check("as printed, F a part of the ball: how far plays leave F", on_ball, "<=", ROUNDING),
        ],
        [
            Check("corrected: largest regret / bound", max(shares[NONE]), "<=", limit),
            Check("corrected against the library: largest distance of plays", max(apart), "<=", ROUNDING),
            Check("the library, F a part of the ball: how far plays leave F", inside, "<=", ROUNDING),
        ],
        panels=panels,
        numbers=[
            (
                f"At T = {lengths[-1]}, untransformed g alone has {shares[G][-1]:.1f} times the bound at"
                f" A = diag(1, 10), untransformed x alone {shares[X][-1]:.1f} times at A = 0.02, both together there"
                f" {shares[BOTH][-1]:.1f} times."
            ),
        ],
    )


def _panel(title: str, lengths: list[int], curves: dict[str, list[float]]) -> Panel:
    """Return the regrets over the bound for one misprint alone, both, and none."""
    alone = next(iter(curves))
    names = {alone: f"{alone} alone", BOTH: BOTH, NONE: NONE}
    return Panel(
        title,
        "rounds T",
        "regret (units of loss)",
        [
            *(
                Series(f"{label}, slope {slope(lengths[2:], curves[name][2:]):.2f}", lengths, curves[name], points=True)
                for name, label in names.items()
            ),
            Series("the bound, slope 0.50", lengths, curves["bound"], dashed=True, colour=6),
        ],
        log=True,
    )


STATEMENT = Statement(
    name="algorithm-2",
    title="Algorithm 2, FTPRL-Scale as printed and as corrected",
    place="Algorithm 2",
    claim="The pseudo-code of FTPRL-Scale plays on {|Ax| <= 1} the points for which the regret is at most 4"
    " sqrt(sum |A^-T g_t|²).",
    instance="Each of two misprints alone, and both: g added up untransformed, A = diag(1, 10) under equal gradients;"
    " x_t used untransformed, A = 0.02 with a first gradient of the other sign. A small box in the ball {|Ax| <= 1}.",
    measured="Regret over the bound, at most 1, up to 10,000 rounds (full: 100,000); how far plays leave F; the"
    " corrected plays against the library's, equal to 1e-9.",
    code="ftprl.Preconditioned",
    run=run,
    expected=Verdict.CORRECTED,
    correction="Add up the transformed gradients A^-T g_t, centre at the transformed play, and project on A F, which"
    " is the unit ball only if F is the whole of {|Ax| <= 1}. The weight sqrt(sum |A^-T g|²) presumes a transformed"
    " set of diameter 2.",
    tests="tests/theory/test_errata.py",
)
