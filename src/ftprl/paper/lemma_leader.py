"""Lemma 6: playing the leader of all rounds including the current one has no regret."""

from __future__ import annotations

import math

from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.finite import Sides, Table, excess, size, tables
from ftprl.paper.instances import ROUNDING, GameRecord, adaptive_histories, sides


def on_table(table: Table) -> Sides:
    """Return sum f_t(x*_t) and sum f_t(x*_T), with x*_t the leader of f_1 .. f_t."""
    leaders = table.f.cumsum(axis=0).argmin(axis=1)
    left = float(table.f[table.rounds, leaders].sum())
    return left, float(table.f[:, leaders[-1]].sum()), table.size


def in_game(history: GameRecord) -> Sides:
    """Return both sides for the losses g_t·x + r_t(x), whose leader after t rounds is FTPRL's x_{t+1}."""
    T = len(history.g)
    left = math.fsum(
        float(g @ after) + GameRecord(history.feasible, [x], [g], [Q]).r(after)
        for g, Q, x, after in zip(history.g, history.Q, history.x, history.x[1:], strict=False)
    )
    return left, history.objective(history.x[-1], T), size(history)


def run(full: bool, step: Step) -> Outcome:
    """Measure by how much the left side exceeds the right, on tables and in games."""
    step("random tables")
    finite = [on_table(table) for table in tables(20_000 if full else 2000, 6)]
    games = [in_game(history) for history in adaptive_histories(full, step)]
    small = [(left, right) for left, right, _ in finite if abs(right) < 200]
    return Outcome(
        [
            Check("tables: largest excess of the left side, relative", excess(finite), "<=", ROUNDING),
            Check("games of FTPRL: largest excess, relative", excess(games), "<=", ROUNDING),
        ],
        panels=[
            sides(
                "Any functions on a finite set",
                [left for left, _ in small],
                [right for _, right in small],
                "loss of the leaders of each round",
                "loss of the last leader",
            )
        ],
        numbers=[f"{len(finite)} tables and {len(games)} games."],
    )


STATEMENT = Statement(
    name="lemma-leader",
    title="Be the leader: who plays the leader of all rounds including this one has no regret",
    place="Lemma 6",
    claim="For any functions on any set, playing in round t the best point of rounds 1 to t has a total loss of at"
    " most that of the best point of all rounds.",
    instance="Random tables of up to 30 functions on up to 12 points; and games of FTPRL, whose next play is the"
    " leader of the losses together with their regularisers.",
    measured="The excess of the left side over the right, relative to the size of the sums: at most 1e-9, for"
    " rounding.",
    code="ftprl.FTPRL",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
