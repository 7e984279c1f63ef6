"""Laws that connect the log-loss kernel with its twin, the theory half, and the objective that it minimises.

The laws of the other losses, whose labels may be in any unit, are in test_labels.py.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from ftprl._core import Learner, RowError, use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.learner import FTPRL, Composite
from ftprl.linear import Engine, Spec
from ftprl.linear.totals import RegretSums
from ftprl.schemes import Diagonal
from ftprl.sets import Box
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, spec, stream
from oracles.learner_twin import LearnerTwin

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")


@pytest.fixture(params=KERNELS)
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    use_instruction_set(request.param)
    yield request.param
    use_instruction_set("")


def run(learner: Engine | LearnerTwin, batch: Batch) -> tuple[np.ndarray, ...]:
    """Everything a learner can tell after a batch."""
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    totals = learner.learn(batch, scores=scores, losses=losses)
    after = learner.score(batch)
    total_array = np.array([totals.loss, totals.weight, totals.rows])
    if isinstance(learner, LearnerTwin):
        return scores, losses, after, total_array, table(learner), intercept(learner), learner.cells.weights()
    return scores, losses, after, total_array, learner.cells.copy(), learner.intercept.copy(), learner.weights()


def table(twin: LearnerTwin) -> np.ndarray:
    """z, R, the unit and S of each cell, as stored."""
    c = twin.cells
    return np.stack([c.z[:, 0], c.R[:, 0], c.unit, c.S[:, 0]], axis=1)


def intercept(twin: LearnerTwin) -> np.ndarray:
    c = twin.cells
    return np.array([c.own_z, c.own_R, c.own_S, [c.own_kappa]])


def assert_same(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("options", OPTIONS)
@law(8)
@given(seed=SEEDS, cells64=st.booleans(), values64=st.booleans())
def test_kernel_equals_twin_to_the_bit(options: str, seed: int, cells64: bool, values64: bool) -> None:
    batch = stream(seed, float64=values64)
    s = spec("logistic", float64=cells64, **OPTIONS[options])
    twin = LearnerTwin(s)
    expected = run(twin, batch)
    for name in KERNELS:
        use_instruction_set(name)
        for receipt in (False, True):
            engine = Engine(s, receipt=receipt)
            assert_same(run(engine, batch), expected)
            assert list(engine.tallies[:3]) == twin.tallies.tolist()
            assert not receipt or engine.sums == RegretSums(*twin.cells.sums[:, 0].tolist())
            assert receipt or not engine.tallies[3:].any()
    use_instruction_set("")


@law(12)
@given(seed=SEEDS, cuts=st.lists(st.integers(0, 120), max_size=6), float64=st.booleans())
def test_the_cut_into_batches_changes_no_bit(seed: int, cuts: list[int], float64: bool) -> None:
    batch = stream(seed)
    s = spec("logistic", float64=float64, l1=0.05)
    whole, in_parts = Engine(s, receipt=True), Engine(s, receipt=True)
    scores, parts = np.empty(len(batch)), []
    whole.learn(batch, scores=scores)
    ends = [0, *sorted(cuts), len(batch)]
    for start, stop in itertools.pairwise(ends):
        part = np.empty(stop - start)
        in_parts.learn(batch[start:stop], scores=part)
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), scores)
    for name in ("cells", "intercept", "tallies"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(in_parts, name))


@pytest.mark.parametrize("float64", [True, False])
@law(6)
@given(seed=SEEDS, powers=st.lists(st.integers(-40, 40), min_size=23, max_size=23))
def test_the_unit_of_a_feature_changes_no_prediction(float64: bool, seed: int, powers: list[int]) -> None:
    batch = stream(seed, complete=True)
    unit = 2.0 ** np.array(powers)
    scaled = replace(batch, values=batch.values * unit[batch.indices])
    s = spec("logistic", float64=float64)
    one, other = Engine(s), Engine(s)
    first, second = np.empty((2, len(batch)))
    one.learn(batch, scores=first)
    other.learn(scaled, scores=second)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(one.weights(), other.weights() * unit)


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.2, 0.6)])
@law(8)
@given(seed=SEEDS, c=st.sampled_from([math.sqrt(2), 2.0]), side=st.sampled_from([(-0.5, 0.5), (-0.1, 1.0), (0.2, 0.7)]))
def test_twin_equals_theory_on_boxes(l1: float, l2: float, seed: int, c: float, side: tuple[float, float]) -> None:
    """Values in {0, ±1}, beta = 0 and h = D/c: FTPRL(Box, Diagonal(c)) from clip(0), to rounding."""
    dim, count = 6, 60
    rng = np.random.default_rng(seed)
    V = rng.integers(-1, 2, size=(count, dim)).astype(np.float64)
    y = np.where(rng.random(count) < 0.5, 1.0, -1.0)
    s = spec(
        "logistic", dim, scale=(side[1] - side[0]) / c, beta=0.0, l1=l1, l2=l2, lower=side[0], upper=side[1],
        intercept=False,
        float64=True,
    )  # fmt: skip
    twin = LearnerTwin(s)
    start = np.clip(np.zeros(dim), *side)
    learner = FTPRL(Box(*side, dim=dim), Diagonal(c), start=start, composite=Composite(l1, l2))
    state = learner.init()
    for v, label in zip(V, y, strict=True):
        score = float(v @ state.x)
        predicted = np.empty(1)
        twin.learn(Batch.from_rows([list(enumerate(v.tolist()))], [label], float64=True), scores=predicted)
        assert predicted[0] == pytest.approx(score, abs=1e-7)
        state = learner.update(state, s.scalar_loss().slope(predicted[0], label) * v)
    # a coordinate without weight may stay anywhere in the theory half
    seen = np.abs(twin.cells.R[:, 0]) > 0
    np.testing.assert_allclose(twin.cells.weights()[seen], state.x[seen], atol=1e-7)


def literal(history: list[tuple[float, float, float, float]], s: Spec, M: float) -> float:
    """Return the minimiser of one coordinate's objective for rounds (g, x, sigma, rho), with rho centred at the
    origin.

    Penalties are on the weight times the unit M of its feature.
    """

    def objective(u: float) -> float:
        rounds = sum(g * u + 0.5 * sigma * (u - x) ** 2 + 0.5 * rho * u * u for g, x, sigma, rho in history)
        return rounds + s.l1 * M * abs(u) + 0.5 * s.l2 * (M * u) ** 2

    low, high = max(s.lower, -1e3), min(s.upper, 1e3)
    actual = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-12, "maxiter": 500})
    ends = [u for u in (low, high, min(max(0.0, low), high)) if objective(u) <= actual.fun]
    return min(ends, key=objective) if ends else float(actual.x)


@pytest.mark.parametrize("options", ["plain", "l1", "l2", "bounds", "above_zero", "all"])
@law(6)
@given(seed=SEEDS)
def test_twin_plays_the_minimiser(options: str, seed: int) -> None:
    s = spec("logistic", 4, float64=True, **OPTIONS[options])
    twin = LearnerTwin(s)
    rng = np.random.default_rng(seed)
    history: dict[int, list[tuple[float, float, float, float]]] = {i: [] for i in range(4)}
    squares, M = np.zeros(4), np.zeros(4)
    for _ in range(12):
        v = dict(zip(rng.permutation(4)[:3].tolist(), rng.normal(size=3) * 3, strict=True))
        y = float(rng.choice([-1.0, 1.0]))
        for i, value in v.items():  # what the row raises, before it is predicted
            new = max(M[i], abs(value))
            rho = ((new - M[i]) * math.sqrt(squares[i]) + s.beta * (new**2 - M[i] ** 2)) / s.scale
            history[i].append((0.0, 0.0, 0.0, rho))
            M[i] = new
        x = {
            i: literal(history[i], s, M[i]) if M[i] * (s.beta + squares[i] + s.l2) > 0 else max(0.0, s.lower) for i in v
        }
        predicted = np.empty(1)
        base = twin_bias(twin)
        twin.learn(Batch.from_rows([v], [y], float64=True), scores=predicted)
        assert predicted[0] == pytest.approx(sum(x[i] * v[i] for i in v) + base, abs=1e-5)
        slope = s.scalar_loss().slope(float(predicted[0]), y)
        for i, value in v.items():
            g = slope * value
            sigma = M[i] / s.scale * (math.sqrt(squares[i] + g * g) - math.sqrt(squares[i]))
            squares[i] += g * g
            history[i].append((g, x[i], sigma, 0.0))
        for i in v:
            if squares[i] > 0:
                assert twin.cells.weights()[i] == pytest.approx(literal(history[i], s, M[i]), abs=1e-5)


def twin_bias(twin: LearnerTwin) -> float:
    return float(twin.score(Batch.from_rows([()]))[0])


def bound(engine: Engine, u: np.ndarray, u0: float) -> tuple[float, float]:
    """Return LinRegret(u) and its bound."""
    s, sums = engine.spec, engine.sums
    left = right = 0.0
    base = np.insert(engine.intercept[:3], 2, 1.0, axis=0).T  # its unit is 1
    parts = [(engine.cells.astype(np.float64), u, s.l1, s.l2), (base, np.array([u0]), 0.0, 0.0)]
    for (z, R, M, S), at, l1, l2 in ((cells.T, at, l1, l2) for cells, at, l1, l2 in parts):
        Q = M * (s.beta * M + R) / s.scale
        left -= float(S @ at)
        penalty = l1 * float(np.abs(M * at).sum())  # penalties are on weights times the units of their features
        right += 0.5 * float(np.sum((Q + l2 * M * M) * at**2 - 2 * (S - z) * at)) + penalty
    return left + sums.linear, right + 0.5 * sums.proximal + 0.5 * sums.stability


@pytest.mark.parametrize("options", [name for name in OPTIONS if name != "no_intercept"])
@law(6)
@given(seed=SEEDS)
def test_certificate_holds_for_every_comparator(options: str, seed: int) -> None:
    s = spec("logistic", float64=True, **OPTIONS[options])
    engine = Engine(s, receipt=True)
    engine.learn(stream(seed, rows=200))
    rng = np.random.default_rng(seed + 1)
    for size in (0.0, 1e-3, 0.1, 1.0, 30.0):
        u = np.clip(rng.normal(size=s.dim) * size, s.lower, s.upper)
        regret, most = bound(engine, u, size * rng.normal())
        assert regret <= most + 1e-9 * (1 + abs(regret) + abs(most))
    leader, bias = engine.weights(), engine.bias()  # where the bound is tightest
    regret, most = bound(engine, leader, bias)
    assert regret <= most + 1e-9 * (1 + abs(regret) + abs(most))


def test_a_stalled_root_does_not_let_z_drift() -> None:
    """If a float32 cannot represent the sum with g², sigma is 0 too: plays remain a function of Q and z."""
    engine = Engine(Spec(dim=1, intercept=False, scale=1.0))
    engine.put(np.array([0]), np.array([[0.0, 2.0**20, 1.0, 0.0]]))
    up_down = np.tile([1.0, -1.0], 50_000)
    many = Batch(
        np.arange(len(up_down) + 1), np.zeros(len(up_down), np.uint32), np.ones(len(up_down), np.float32), up_down,
        np.ones(len(up_down)),
    )  # fmt: skip
    engine.learn(many)
    assert engine.cells[0, 1] == 2.0**20
    assert abs(engine.cells[0, 0]) <= 0.5  # a gradient of each row, and those of two rows in turn cancel out
    assert abs(engine.score(Batch.from_rows([{0: 1.0}]))[0]) <= 2.0**-20


@pytest.mark.parametrize("float64", [True, False])
def test_extremes_stay_finite(float64: bool, kernels: str) -> None:
    """For all valid input, no cell becomes infinite or NaN, and the twin agrees."""
    huge, small = 1e30, 1e-40
    y = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0]
    rows: list[dict[int, float]] = [
        {0: huge, 1: small},
        {0: -huge, 1: 1.0},
        {1: huge},
        {0: small},
        {},
        {0: 1, 1: small},
    ]
    batch = Batch.from_rows(rows * 40, y * 40, np.tile([1.0, 1.0, 1e-30, huge, huge, huge], 40), float64=True)
    for scale in (1e30, 1e-30):
        s = Spec(dim=2, float64=float64, scale=scale)
        engine, twin = Engine(s, receipt=True), LearnerTwin(s)
        with np.errstate(all="ignore"):
            assert_same(run(engine, batch), run(twin, batch))
        assert np.isfinite(engine.cells).all()
        assert np.isfinite(engine.intercept).all()
        assert np.isfinite(engine.score(batch)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": (5, 23)}, "an index needs to be below 23, got 23; "),
        ({"indices": (5, 2**32 - 1)}, "got 4294967295; "),
        ({"values": (5, math.nan)}, "a value needs to be finite and within 1e30, got nan; "),
        ({"values": (5, -math.inf)}, "got -inf; "),
        ({"values": (5, 1e31)}, "got 1e+31; "),
        ({"y": (4, 0.0)}, "a label needs to be -1 or 1 (or NaN when it is missing), got 0; "),
        ({"y": (4, math.inf)}, "got inf; "),
        ({"weight": (4, -1.0)}, "a weight needs to be from 0 to 1e30, got -1; "),
        ({"weight": (4, math.nan)}, "got nan; "),
    ],
)
@pytest.mark.parametrize("float64", [True, False])
def test_a_bad_row_is_refused_and_changes_nothing(
    change: dict[str, tuple[int, Any]], message: str, float64: bool, kernels: str
) -> None:
    batch = replace(stream(3, complete=True), first_row=100, origin="clicks.vw")
    engine = Engine(spec("logistic", float64=float64))
    engine.learn(batch)
    before = engine.copy()
    for name, (at, value) in change.items():
        column = getattr(batch, name).copy()
        column[at] = value
        row = int(np.searchsorted(batch.indptr, at, side="right")) - 1 if name in ("indices", "values") else at
        with pytest.raises(InvalidInput) as caught:
            engine.learn(replace(batch, **{name: column}))
        assert str(caught.value).startswith(f"clicks.vw: row {100 + row}: a")
        assert message in str(caught.value)
        if name in ("indices", "values"):
            with pytest.raises(InvalidInput):
                engine.score(replace(batch, **{name: column}))
    for name in ("cells", "intercept", "tallies", "baseline_state"):
        np.testing.assert_array_equal(getattr(engine, name), getattr(before, name))


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("dim", [64, 100])
def test_one_bad_entry_is_found_wherever_it_stands(dim: int, float64: bool, kernels: str) -> None:
    """Entries are checked several at a time; if the table's size is a power of two, by the bits of the indices."""
    limit = np.float64(1e30) if float64 else np.float32(1e30)
    count = 37
    rng = np.random.default_rng(4)
    indices = rng.integers(0, dim, count).astype(np.uint32)
    indices[5], indices[6] = dim - 1, 0
    values = rng.choice([1.0, -1.0, -0.0, 5e-324 if float64 else 1e-45, limit, -limit], count).astype(limit.dtype)
    core = Learner(
        dim, float64=float64, receipt=False, loss="logistic", scales=[0.1], beta=1.0, l1=0.0, l2=0.0, lower=-math.inf,
        upper=math.inf, intercept=True, tau=0.5,
    )  # fmt: skip
    indptr, scores = np.arange(count + 1), np.empty((count, 1))
    core.score(indptr, indices, values, scores)
    for at in range(count):
        for bad in (dim, dim + 1, 2**31, 2**32 - 1):
            changed = indices.copy()
            changed[at] = bad
            with pytest.raises(RowError, match=f"below {dim}, got {bad};") as caught:
                core.score(indptr, changed, values, scores)
            assert caught.value.row == at
        for value in (np.nan, -np.nan, np.inf, -np.inf, np.nextafter(limit, limit.dtype.type(np.inf))):
            wrong = values.copy()
            wrong[at] = value
            with pytest.raises(RowError, match="a value needs to be finite and within 1e30") as caught:
                core.score(indptr, indices, wrong, scores)
            assert caught.value.row == at


def test_one_bad_label_or_weight_is_found_wherever_it_stands() -> None:
    """Rows of two classes with weight 1 are checked at once."""
    count = 21
    y = np.where(np.arange(count) % 3 == 0, 1.0, -1.0)
    batch = Batch.from_rows([{0: 1.0}] * count, y)
    engine = Engine(Spec(dim=2))
    for at in range(count):
        for name, wrong in (("y", (0.0, 2.0, -math.inf)), ("weight", (-1.0, -1e-300, math.nan, math.inf))):
            for value in wrong:
                column = getattr(batch, name).copy()
                column[at] = value
                with pytest.raises(InvalidInput, match=f"^row {at}: a {'label' if name == 'y' else name} needs"):
                    engine.learn(replace(batch, **{name: column}))
    assert engine.progress.rows == 0
    for name, right in (("y", (math.nan,)), ("weight", (0.0, -0.0, 0.5, 1e30))):
        for value in right:
            column = getattr(batch, name).copy()
            column[3] = value
            assert Engine(Spec(dim=2)).learn(replace(batch, **{name: column})).rows >= count - 1


@pytest.mark.parametrize("float64", [True, False])
def test_a_row_that_repeats_a_slot_gives_the_same_bits_everywhere(float64: bool) -> None:
    """Repeated slots violate the promise of a batch: all kernels learn the last entry of such a slot.

    They add all gradients to an S beside its cell; with float64 S is in the cell.
    """
    indptr = np.array([0, 2, 4, 7, 14])
    indices = np.array([1, 1, 0, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0, 2], np.uint32)
    values = np.array([1.0, 0.0, 0.5, 2.0, 1e-3, 1.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, -7.0], np.float32)
    batch = Batch(indptr, indices, values, np.array([1.0, -1.0, 1.0, 1.0]), np.ones(4))
    states = []
    for name in KERNELS:
        use_instruction_set(name)
        engine = Engine(spec("logistic", dim=4, float64=float64), receipt=True)
        for r in range(4):
            engine.learn(batch[r : r + 1])
            engine = engine.copy()
        parts = (engine.cells, engine.tallies, engine.parts_at(np.arange(4))["S"], engine.score(batch))
        states.append(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    use_instruction_set("")
    assert len(set(states)) == 1
    assert np.isfinite(engine.cells).all()
    first = Engine(spec("logistic", dim=4, float64=float64), receipt=True)
    first.learn(batch[:1])
    assert not first.cells[1].any()
    assert first.parts_at(np.array([1]))["S"] == (0.0 if float64 else -0.5)
