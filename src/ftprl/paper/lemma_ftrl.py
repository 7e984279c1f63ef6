"""Lemma 1: the regret of following the regularised leader is at most r_{1:T}(x*) + sum f_t(x_t) - f_t(x_{t+1})."""

from __future__ import annotations

import math

import numpy as np

from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.finite import Sides, Table, excess, size, tables
from ftprl.paper.instances import ROUNDING, GameRecord, adaptive_histories, sides


def on_table(table: Table) -> Sides:
    """Return the regret and its bound on a table, with x_1 the first point."""
    after = table.after()
    plays = np.concatenate(([0], after[:-1]))
    own_loss = table.f[table.rounds, plays]
    moved = float((own_loss - table.f[table.rounds, after]).sum())
    regret = float(own_loss.sum() - table.f[:, table.best].sum())
    return regret, float(table.r[:, table.best].sum()) + moved, table.size


def in_game(history: GameRecord) -> Sides:
    """Return the regret and its bound for FTPRL's plays and linear losses."""
    steps = zip(history.g, history.x, history.x[1:], strict=False)
    moved = math.fsum(float(g @ (x - after)) for g, x, after in steps)
    return history.regret(), history.r(history.best()) + moved, size(history)


def run(full: bool, step: Step) -> Outcome:
    """Measure by how much the regret exceeds its bound, on tables and in games."""
    step("random tables")
    finite = [on_table(table) for table in tables(20_000 if full else 2000, 1)]
    games = [in_game(history) for history in adaptive_histories(full, step)]
    near = [(left, right) for left, right, _ in finite if right < 300]
    return Outcome(
        [
            Check("tables: largest excess of the regret, relative", excess(finite), "<=", ROUNDING),
            Check("games of FTPRL: largest excess, relative", excess(games), "<=", ROUNDING),
        ],
        panels=[
            sides(
                "Any functions on a finite set",
                [left for left, _ in near],
                [right for _, right in near],
                "regret",
                "r(x*) + sum of f_t(x_t) - f_t(x_{t+1})",
            ),
            sides(
                "Games of FTPRL",
                [max(left, 1e-3) for left, _, _ in games],
                [right for _, right, _ in games],
                "regret (at least 0.001)",
                "r(x*) + sum of g_t·(x_t - x_{t+1})",
                log=True,
            ),
        ],
        numbers=[f"{len(finite)} tables and {len(games)} games."],
    )


STATEMENT = Statement(
    name="lemma-ftrl",
    title="Follow the regularised leader: regret is regularisation plus movement",
    place="Lemma 1",
    claim="For any losses, convex or not, and any non-negative regularisers, the regret is at most r_{1:T}(x*)"
    " plus the sum over the rounds of f_t(x_t) - f_t(x_{t+1}), what would have been saved by moving one round"
    " earlier.",
    instance="Random tables of losses and regularisers on finite sets; games of FTPRL with both adaptive schemes on"
    " nine sets under six kinds of gradients.",
    measured="The excess of the regret over the right side, relative to the size of the sums: at most 1e-9.",
    code="ftprl.FTPRL",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
