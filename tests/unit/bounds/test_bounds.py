"""The ledger's sums, and the printed and plotted certificate."""

import itertools
import json
import math

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game, Ledger, play, psd
from ftprl.baselines import GradientDescent
from ftprl.errors import InvalidInput
from ftprl.schemes import BlockConstant, CoordinateConstant, Diagonal, Fixed, Full
from ftprl.sets import Box, L1Ball, L2Ball, LpBall, Polytope, Product, Simplex

CUBE = Box(-1, 1, dim=3)
SCHEMES = [Diagonal(), Diagonal(c=math.sqrt(2)), CoordinateConstant(), Full(), Fixed(lambda t, g: np.eye(3))]


def test_empty_ledger() -> None:
    ledger = Ledger.empty(3)
    assert ledger.t == 0
    assert ledger.GG is None
    assert Ledger.empty(2, full=True).GG.shape == (2, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [0.5, 0.0, -0.25]])
@pytest.mark.parametrize("before", [0, 2])
def test_z_whatever_the_first_play_and_round(start: list[float], before: int, rng: np.random.Generator) -> None:
    """z = the counted part of g_{1:t} minus q, from 0 or another point, from the learner's first round or a later
    one.
    """
    learner = FTPRL(Box(-1, 1, dim=3), Diagonal(), start=start)
    state, ledger = learner.init(), Ledger.empty(3)
    for g in rng.normal(size=(before, 3)):
        state = learner.update(state, g)
    for t, g in enumerate(rng.normal(size=(6, 3))):
        hint = 0.5 * g if t == 3 else None
        after = learner.update(state, g, hint)
        ledger, state = learner.record(ledger, state, g, after), after
        np.testing.assert_allclose(ledger.z, ledger.S - ledger.q, atol=1e-13)
    assert ledger.moved == (before > 0 or any(start))
    if not ledger.moved:
        np.testing.assert_array_equal(ledger.z, state.z)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("F", [CUBE, L2Ball(3), Simplex(3), L1Ball(3, 2.0)], ids=repr)
def test_sums_against_their_definitions(F: Box, scheme: Diagonal, rng: np.random.Generator) -> None:
    learner = FTPRL(F, scheme)
    state, ledger = learner.init(), Ledger.empty(3, full=True)
    loss = k = stability = 0.0
    rows = rng.normal(size=(7, 3))
    plays, increments = [], []
    for g in rows:
        after = learner.update(state, g)
        ledger = learner.record(ledger, state, g, after)
        loss += float(g @ state.x)
        k += psd.quad(after.Q, state.x - F.start())
        stability += psd.dual_quad(after.total, g)
        plays.append(state.x)
        increments.append(psd.array(after.Q))
        state = after
    assert ledger.t == 7
    assert ledger.loss == pytest.approx(loss)
    assert ledger.k == pytest.approx(k)
    assert ledger.stability == pytest.approx(stability)
    assert ledger.penalty == pytest.approx(sum(0.5 * F.sq_diameter(Q) for Q in increments), rel=1e-6)
    np.testing.assert_allclose(ledger.G, (rows**2).sum(axis=0))
    np.testing.assert_allclose(ledger.GG, rows.T @ rows)
    shift = psd.apply(state.total, F.start())  # the ledger's sums are relative to the first play
    np.testing.assert_allclose(state.z, ledger.S - ledger.q - shift, atol=1e-12)
    np.testing.assert_allclose(ledger.z, ledger.S - ledger.q, atol=1e-12)
    u = F.vertex(rng.normal(size=3))
    r = sum(0.5 * psd.quad(Q, u - x) for Q, x in zip(increments, plays, strict=True))
    assert ledger.regularisation(state.total, u) == pytest.approx(r, abs=1e-8)
    # The exact identity of the strong theorem: regret = r + deltas - (H_T(u) - H_T(x_{T+1})).
    gap = (ledger.S @ u + r) - (ledger.S @ state.x + ledger.regularisation(state.total, state.x))
    assert ledger.loss - ledger.S @ u == pytest.approx(r + ledger.delta - gap, abs=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: type(s).__name__)
def test_the_chain(scheme: Diagonal, rng: np.random.Generator) -> None:
    game = Game(FTPRL(CUBE, scheme))
    for g in rng.normal(size=(40, 3)) * 10.0 ** rng.uniform(-3, 3, size=3):
        game.observe(g)
        c = game.certificate()
        chain = [c.regret, c.tight, c.bound, c.theorem, c.worst_case, c.closed_form]
        values = [v for v in chain if v is not None]
        unit = 1e-9 * abs(values[-1])
        assert all(a <= b + unit for a, b in itertools.pairwise(values))
        if c.closed_form_strong is not None:
            assert c.bound <= c.closed_form_strong + unit


def test_ratio_and_families(rng: np.random.Generator) -> None:
    c = play(FTPRL(CUBE, Diagonal()), rng.normal(size=(20, 3))).certificate()
    assert c.family == "diagonal"
    assert c.ratio == pytest.approx(c.worst_case / c.post_hoc["diagonal"])
    assert 1.0 <= c.ratio <= c.proven_ratio + 1e-9
    blocks = Product(L2Ball(2), L2Ball(1))
    c = play(FTPRL(blocks, BlockConstant()), rng.normal(size=(20, 3))).certificate()
    assert set(c.post_hoc) == {"const", "diagonal", "full", "block"}
    assert c.ratio == pytest.approx(c.worst_case / c.post_hoc["block"])
    assert c.ratio <= c.proven_ratio + 1e-9


@pytest.mark.parametrize("rows", [[], [[0.0, 0.0, 0.0]] * 4])
def test_ratio_is_none_when_hindsight_is_free(rows: list[list[float]]) -> None:
    c = play(FTPRL(CUBE, Diagonal()), rows).certificate()
    assert c.post_hoc["diagonal"] == 0.0
    assert c.ratio is None
    assert "ratio to diagonal" in str(c)


def test_printing(rng: np.random.Generator) -> None:
    text = str(play(FTPRL(CUBE, Diagonal()), rng.normal(size=(1, 3))).certificate())
    lines = text.splitlines()
    assert lines[0] == "after 1 round"
    for name in ("regret at most", "tight bound", "worst case B_R", "best in hindsight, diagonal"):
        assert sum(line.strip().startswith(name) for line in lines) == 1
    assert "proved: at most 1.414" in text
    assert "true regret" not in text
    assert any(line.startswith("  note: ") for line in lines)
    assert max(map(len, lines)) <= 80
    assert not any(line != line.rstrip() for line in lines)
    with_truth = play(FTPRL(CUBE, Diagonal()), rng.normal(size=(2, 3)), hindsight=True).certificate()
    assert "true regret" in str(with_truth)
    assert str(with_truth).startswith("after 2 rounds\n  The total loss")


def test_sentences_have_the_numbers(rng: np.random.Generator) -> None:
    c = play(FTPRL(CUBE, Diagonal()), rng.normal(size=(20, 3)), hindsight=True).certificate()
    regret, proved, ratio, steps = c.sentences()
    assert f"is at most {c.true_regret:.6g} above that of the best fixed point" in regret
    assert f"at most {c.bound:.6g} above that, and at most {c.worst_case:.6g} above that of any other point" in proved
    assert (
        f"would have had {c.post_hoc['diagonal']:.6g} in place of {c.worst_case:.6g}, which is {c.ratio:.4g}" in ratio
    )
    assert steps == "Each step minimised its objective exactly."
    assert str(c).index(regret[:40]) < str(c).index("in numbers")
    descent = play(GradientDescent(CUBE), rng.normal(size=(5, 3))).certificate().sentences()
    assert "No bound is proved for this learner." in descent
    unbounded = play(FTPRL(Box(-1, math.inf, dim=3), Diagonal(widths=1.0)), rng.normal(size=(4, 3))).certificate()
    assert "inf" not in "".join(unbounded.sentences())


@pytest.mark.parametrize(
    "game",
    [
        lambda rows: play(FTPRL(CUBE, Diagonal()), rows, hindsight=True, history=True),
        lambda rows: play(GradientDescent(CUBE), rows),
        lambda rows: play(FTPRL(Box(-1, math.inf, dim=3), Diagonal(widths=1.0)), rows),
        lambda rows: play(FTPRL(CUBE, Fixed([0.0])), rows),
        lambda rows: play(FTPRL(Product(CUBE), BlockConstant()), rows, full=True),
    ],
)
def test_to_dict_is_json(game, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    result = game(rng.normal(size=(4, 3))).certificate().to_dict()
    again = json.loads(json.dumps(result, allow_nan=False))
    assert again == result
    assert result["rounds"] == 4
    for name in ("regret", "true_regret", "tight", "bound", "theorem", "worst_case", "ratio", "post_hoc", "caveats"):
        assert name in result


def test_baselines_have_regret_but_no_bounds(rng: np.random.Generator) -> None:
    c = play(GradientDescent(CUBE), rng.normal(size=(5, 3))).certificate()
    assert c.regret > 0
    assert c.tight is c.bound is c.worst_case is c.ratio is c.family is None
    assert c.post_hoc["const"] is not None


def test_plot(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(5, 3))
    figure = play(FTPRL(CUBE, Diagonal()), rows, history=True).certificate().plot()
    lines = figure.axes[0].get_lines()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "regret",
        "bound",
        "worst case B_R",
        "best in hindsight",
    ]
    np.testing.assert_array_equal(lines[0].get_xdata(), [1, 2, 3, 4, 5])
    for game in (play(FTPRL(CUBE, Diagonal()), rows), play(FTPRL(CUBE, Diagonal()), rows, history=9)):
        with pytest.raises(InvalidInput, match=r"plot needs a history, got none; play with Game\("):
            game.certificate().plot()


def test_history_of_an_old_certificate_stays(rng: np.random.Generator) -> None:
    game = play(FTPRL(CUBE, Diagonal()), rng.normal(size=(4, 3)), history=2)
    first = game.certificate().history
    game.observe(np.ones(3))
    game.observe(np.ones(3))
    second = game.certificate().history
    assert first is not None
    assert second is not None
    assert (first.rounds, second.rounds) == ((2, 4), (2, 4, 6))
    assert second.series["regret"][:2] == first.series["regret"]


SQUARE = Polytope(np.vstack((np.eye(3), -np.eye(3))), np.ones(6))


@pytest.mark.parametrize(
    ("learner", "word"),
    [
        (FTPRL(CUBE, Diagonal()), "lies in ["),
        (FTPRL(SQUARE, Diagonal()), "over diagonal is an upper bound"),
        (FTPRL(L1Ball(3), Diagonal()), "Game(..., full=True)"),
        (FTPRL(CUBE, Fixed([0.0])), "left the range"),
        (FTPRL(CUBE, Diagonal(), composite=Composite(l1=0.1)), "not of the regret"),
        (FTPRL(CUBE, Diagonal(), composite=Composite(l1=0.1, per_round=True)), "in every round"),
        (FTPRL(Box(-1, math.inf, dim=3), Diagonal(widths=1.0)), "certificate(comparator=x)"),
    ],
)
def test_caveats(learner: FTPRL, word: str) -> None:
    rows = [[1.0, -2.0, 0.5], [0.5, 0.5, -0.5]]
    result = play(learner, rows).certificate().caveats
    assert sum(word in text for text in result) == 1
    assert all("\n" not in text for text in result)


def test_no_caveats_where_all_is_exact() -> None:
    assert play(FTPRL(L2Ball(3), CoordinateConstant()), [[1.0, 2.0, 3.0]]).certificate().caveats == ()
    with_program = play(FTPRL(L1Ball(3), Diagonal()), [[1.0, 2.0, 3.0]], full=True)
    assert "program=True" in with_program.certificate().caveats[0]
    assert with_program.certificate(program=True).caveats == ()


def test_out_of_range_makes_bounds_infinite_but_not_the_tight_one() -> None:
    c = play(FTPRL(CUBE, Fixed([0.0])), [[1.0, 0.0, 0.0]]).certificate()
    assert c.bound == c.theorem == c.worst_case == math.inf
    assert c.regret <= c.tight < math.inf
    assert c.to_dict()["bound"] is None


def test_a_full_matrix_on_a_curved_set_accounts_for_the_solver(rng: np.random.Generator) -> None:
    c = play(FTPRL(LpBall(3, 3.0), Full(delta=0.1)), rng.normal(size=(10, 3))).certificate()
    assert 0 < c.solver_gap < 1e-6
    assert c.regret <= c.tight + 1e-9
    assert any("gap" in text for text in c.caveats)
