"""Lemma 7: playing the regularised leader one round ahead has a regret of at most r_{1:T}(x*)."""

from __future__ import annotations

import math

from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.finite import Sides, Table, excess, size, tables
from ftprl.paper.instances import ROUNDING, GameRecord, adaptive_histories, sides


def on_table(table: Table) -> Sides:
    """Return the regret of playing x_{t+1} in round t, and r_{1:T}(x*), on a table."""
    own_loss = float(table.f[table.rounds, table.after()].sum())
    return own_loss - float(table.f[:, table.best].sum()), float(table.r[:, table.best].sum()), table.size


def in_game(history: GameRecord) -> Sides:
    """Return the regret of playing x_{t+1} in round t, and r_{1:T}(x*), for FTPRL's plays."""
    best = history.best()
    regret = math.fsum(float(g @ (after - best)) for g, after in zip(history.g, history.x[1:], strict=True))
    return regret, history.r(best), size(history)


def run(full: bool, step: Step) -> Outcome:
    """Measure by how much the regret exceeds r(x*), on tables and in games, and with negative regularisers."""
    step("random tables")
    every = tables(20_000 if full else 2000, 7)
    finite = [on_table(table) for table in every]
    games = [in_game(history) for history in adaptive_histories(full, step)]
    negative = [on_table(Table(table.f, -table.r)) for table in every]
    broken = sum(left > right + ROUNDING * scale for left, right, scale in negative)
    near = [(left, right) for left, right, _ in finite if right < 300]
    return Outcome(
        [
            Check("tables: largest excess of the regret, relative", excess(finite), "<=", ROUNDING),
            Check("games of FTPRL: largest excess, relative", excess(games), "<=", ROUNDING),
            Check("with regularisers below 0: share of tables that break it", broken / len(every), ">=", 0.1),
        ],
        panels=[
            sides(
                "Any functions on a finite set",
                [left for left, _ in near],
                [right for _, right in near],
                "regret of playing one round ahead",
                "regularisation of the best point, r(x*)",
            )
        ],
        numbers=[f"{len(finite)} tables and {len(games)} games."],
    )


STATEMENT = Statement(
    name="lemma-regularised-leader",
    title="Be the regularised leader: one round ahead, the regret is at most r(x*)",
    place="Lemma 7",
    claim="For any losses and any non-negative regularisers, playing x_{t+1} (the regularised leader that already"
    " knows round t) in round t has a regret of at most r_{1:T}(x*).",
    instance="Random tables of losses and regularisers on finite sets; games of FTPRL; and, as a control, the same"
    " tables with regularisers below 0, which the lemma excludes.",
    measured="The excess of the regret over r(x*), relative to the size of the sums: at most 1e-9. At least a tenth"
    " of the tables with negative regularisers must break it, so that the measurement can fail.",
    code="ftprl.FTPRL",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
