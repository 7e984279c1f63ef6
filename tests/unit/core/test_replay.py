"""The compiled replay of verify against the reference of its formulas, and laws that need no other learner."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear import Spec
from ftprl.linear.mixture import experts_of, losers
from ftprl.receipt.replay import Replay
from ftprl.receipt.replay_drops import dropped_experts, kept_scales

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT.parent / "shared" / "v2_golden.json"
REFERENCE = ROOT.parent / "shared" / "reference_v2.py"
LOSSES = ("logistic", "squared", "absolute", "quantile", "poisson", "softmax")
ALL_LOSSES = (*LOSSES, "huber", "gamma", "hinge", "squared_hinge")
Rows = list[list[tuple[str, float]]]


def settings(loss: str, **more: Any) -> Spec:
    """A model with all experts that its loss can have."""
    classes = loss == "softmax"
    own = {"tau": 0.9} if loss == "quantile" else {}
    own |= {"dim": 1024, "scale": "auto", "float64": True, "coin": not classes, "dense": True}
    return Spec(loss=loss, classes=3 if classes else 0, **{**own, **more})


def replay_of(spec: Spec, **more: Any) -> Replay:
    return Replay(spec, retire=True, known=spec.classes, **more)


def batch_of(rows: Rows, y: Any, weight: Any = None) -> Batch:
    """Rows with a number for each name, in the order in which the names come."""
    numbers: dict[str, int] = {}
    entries = [[(numbers.setdefault(name, len(numbers)), value) for name, value in row] for row in rows]
    ends = np.cumsum([0, *(len(row) for row in rows)])
    cells = np.array([cell for row in entries for cell, _ in row], np.uint32)
    values = np.array([value for row in entries for _, value in row])
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, float)
    return Batch(ends, cells, values, np.asarray(y, float), weight)


def changing_rows(seed: int, count: int) -> tuple[Rows, list[float]]:
    """Numbers that most rows have, that come and leave, and whose first values are outliers; beside rare names."""
    rng = np.random.default_rng(seed)
    rows, scores = [], []
    for t in range(count):
        a, b, c = rng.normal(size=3)
        row = [("a", 1e5 if t == 11 else 50 + 10 * a), ("b", -4e4 if t == 12 else b)]
        in_the_middle = count // 6 < t < 5 * count // 12
        row += [("middle", 3 * c)] if in_the_middle else []
        row += [("late", float(rng.exponential()))] if t > 2 * count // 3 and rng.random() < 0.4 else []
        row += [(f"name {i}", 1.0) for i in rng.choice(400, 8, replace=False)]
        row += [("constant", 2.0)] if rng.random() < 0.3 else []
        rows.append(row)
        scores.append(float(a + 0.5 * b + (0.5 * c if in_the_middle else 0.0) + 0.5 * rng.normal()))
    return rows, scores


def labels_of(loss: str, scores: list[float]) -> list[float]:
    rng = np.random.default_rng(1)
    kinds: dict[str, Callable[[float], float]] = {
        **dict.fromkeys(("logistic", "hinge", "squared_hinge"), lambda f: 1.0 if f > 0.3 else -1.0),
        "poisson": lambda f: float(rng.poisson(math.exp(min(f, 3.0)))),
        "gamma": lambda f: math.exp(f) + 0.1,
        "softmax": lambda f: float((f > 0) + (f > 1)),
    }
    return [kinds.get(loss, lambda f: 100 + 20 * f)(f) for f in scores]


@pytest.mark.parametrize("loss", LOSSES)
def test_it_has_the_numbers_of_the_golden_rows(loss: str) -> None:
    if not GOLDEN.exists():
        pytest.skip(f"needs the golden rows, {GOLDEN.name}")
    golden = json.loads(GOLDEN.read_text())[loss]
    rows = golden["rows"]
    replay = replay_of(settings(loss, tau=golden["tau"]), coin_input=False)
    losses, predictions = replay.learn(
        batch_of([[(name, value) for name, value in row["row"]] for row in rows], [row["label"] for row in rows])
    )
    expected = np.array([row["loss"] for row in rows])
    np.testing.assert_allclose(losses, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(replay.state["w"], golden["weights"], rtol=1e-9, atol=1e-12)
    if loss == "logistic":
        y = np.array([row["label"] for row in rows])
        chances = np.where(y > 0, np.exp(-losses), 1.0 - np.exp(-losses))
        np.testing.assert_allclose(chances, [row["prediction"] for row in rows], rtol=1e-9)
    elif loss != "softmax":
        np.testing.assert_allclose(predictions, [row["prediction"] for row in rows], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_come_move_and_leave_as_in_the_reference(loss: str) -> None:
    if not REFERENCE.exists():
        pytest.skip(f"needs the reference, {REFERENCE.name}")
    found = importlib.util.spec_from_file_location("reference_v2", REFERENCE)
    assert found is not None
    assert found.loader is not None
    reference = importlib.util.module_from_spec(found)
    found.loader.exec_module(reference)
    rows, scores = changing_rows(5, 600)
    y = labels_of(loss, scores)
    model = reference.ClassModel(3) if loss == "softmax" else reference.Model(loss, 0.9 if loss == "quantile" else 0.5)
    expected = [
        model.row(row, int(label) if loss == "softmax" else label)[1] for row, label in zip(rows, y, strict=True)
    ]
    replay = replay_of(settings(loss), coin_input=False)
    met, means = [], []
    losses = []
    for part in batch_of(rows, y).cut(1):
        losses.append(float(replay.learn(part)[0][0]))
        facts = replay.arrays["columns.facts"]
        met.append(facts[:, 0].copy())
        means.append(facts[:, 1].copy())
    np.testing.assert_allclose(losses, expected, rtol=1e-9, atol=1e-9 * max(map(abs, expected)))
    np.testing.assert_allclose(replay.state["w"], model.mix.w, rtol=1e-9, atol=1e-12)
    numbers, columns = model.columns, replay.arrays["columns.facts"]
    used = columns[: numbers.used, 0] > 0
    assert used.tolist() == [name is not None for name in numbers.feature[: numbers.used]]
    np.testing.assert_allclose(columns[: numbers.used][used, 1], numbers.mean[: numbers.used][used], rtol=1e-12)
    np.testing.assert_allclose(columns[: numbers.used][used, 2], numbers.dev[: numbers.used][used], rtol=1e-9)
    slots = np.array(met)
    is_other = slots[1:] != slots[:-1]
    assert (is_other & (slots[:-1] > 0)).any()  # left
    assert (is_other & (slots[1:] > 0)).any()  # joined
    assert (~is_other & (np.diff(np.array(means), axis=0) != 0)).any()  # moved


def state_of(replay: Replay) -> dict[str, np.ndarray]:
    """All that a replay has learned; where cells are stored depends on the calls, and so is left out."""
    cells = {name: array.copy() for name, array in replay.parts_at(replay.touched()).items()}
    others = {name: array.copy() for name, array in replay.arrays.all.items() if len(array) != len(replay.arrays["z"])}
    for name in {"columns.facts", "columns.table"} & others.keys():
        others[name] = others[name][:, 1:]
    return cells | others


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_bits_do_not_depend_on_how_rows_are_cut_into_calls(loss: str) -> None:
    rows, scores = changing_rows(2, 200)
    weight = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], 200, p=[0.05, 0.2, 0.7, 0.05])
    batch = batch_of(rows, labels_of(loss, scores), weight)
    whole = replay_of(settings(loss, float64=False))
    together = whole.learn(batch)
    for size in (1, 7, 64):
        cut = replay_of(settings(loss, float64=False))
        parts = [cut.learn(part) for part in batch.cut(size)]
        for own, all_rows in zip(zip(*parts, strict=True), together, strict=True):
            np.testing.assert_array_equal(np.concatenate(own), all_rows)
        assert_same(state_of(cut), state_of(whole))


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_rows_without_weight_or_label_are_not_there(loss: str) -> None:
    rows, scores = changing_rows(4, 120)
    batch = batch_of(rows, labels_of(loss, scores))
    learned, y = np.arange(120) % 5 != 2, batch.y.copy()
    y[::10] = np.where(learned[::10], y[::10], np.nan)
    some, others = replay_of(settings(loss)), replay_of(settings(loss))
    some.learn(batch.replaced(weight=np.where(learned, 1.0, 0.0), y=y))
    for row in np.flatnonzero(learned).tolist():
        others.learn(batch[row : row + 1])
    one, two = state_of(some), state_of(others)
    assert one["tallies"][2] == learned.sum()
    assert_same(one, two)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_the_first_row_of_weight_two(loss: str) -> None:
    """The experts begin more equal, are charged by their losses, and share a part: docs/scales.md."""
    rows, scores = changing_rows(6, 40)
    batch = batch_of(rows, labels_of(loss, scores))
    replay = replay_of(settings(loss))
    replay.learn(batch[:20])
    before, totals = replay.state["w"].copy(), replay.state["totals"].copy()
    replay.learn(batch[20:21].replaced(weight=np.array([2.0])))
    losses = (replay.state["totals"] - totals) / 2.0
    w = np.sqrt(before) / np.sqrt(before).sum() * np.exp(-losses)
    share = min(2.0**-10, 1 / 22)
    np.testing.assert_allclose(replay.state["w"], (1 - share) * w / w.sum() + share / len(w), rtol=1e-9)
    assert replay.state["facts"].tolist() == [0.0, 0.0, 0.0, 2.0, 0.0, 0.0]
    if loss == "logistic":
        odds = replay.arrays["labels.odds"]
        assert odds[2] == 2.0
        assert odds[:2].sum() == 22.0


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_a_row_that_is_only_predicted_changes_nothing_and_leaves_the_drift_out(loss: str) -> None:
    rows, scores = changing_rows(7, 150)
    batch = batch_of(rows, labels_of(loss, scores))
    replay = replay_of(settings(loss))
    replay.learn(batch[:100])
    before = state_of(replay)
    losses = replay.score(batch[100:])
    assert_same(state_of(replay), before)
    np.testing.assert_array_equal(replay.score(batch[100:]), losses)
    w, drift = replay.state["w"], experts_of(replay.spec).index("drift")
    assert w[drift] > 0.0
    whole = w.sum() - w[drift]
    w[:] = w / whole
    w[drift] = 0.0
    np.testing.assert_allclose(replay.score(batch[100:]), losses, rtol=1e-12, atol=1e-14)


def test_features_of_columns_are_counted_where_they_are_zero() -> None:
    """A number that is 0 in row 16 becomes a column then, as the others do."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    X[15, 1] = 0.0
    X[:, 2] *= rng.random(40) < 0.05
    rows = [[(f"x{j}", float(v)) for j, v in enumerate(x) if v] for x in X]
    replay = replay_of(settings("squared"))
    replay.learn(batch_of(rows[:15], X[:15, 0]))
    assert not replay.arrays["columns.facts"].any()
    replay.learn(batch_of(rows, X[:, 0])[15:16])
    facts, count = replay.arrays["columns.facts"], np.arange(8, 16)
    assert replay.arrays["columns.sizes"][0] == 2
    np.testing.assert_allclose(np.sort(facts[:2, 2]), np.sort(X[count, :2].std(axis=0)), rtol=1e-12)
    assert replay.arrays["columns.rows"][0] == 0
    diagonal = replay.arrays["newton_B.P"].diagonal()
    assert diagonal[-65:].tolist()[1:3] == [0.25, 0.25]


def test_the_table_of_features_forgets_rare_ones_in_order() -> None:
    rng = np.random.default_rng(2)
    rows: Rows = [[("often", 1.0), *((f"n{t}-{i}", 1.0) for i in range(20))] for t in range(127)]
    for t in range(64, 127):
        rows[t] += [("twice", 1.0)] if t % 3 == 0 else []
    replay = replay_of(settings("logistic", dim=8192))
    batch = batch_of(rows, rng.choice([-1.0, 1.0], 127))
    largest = 0
    for part in batch.cut(1):
        replay.learn(part)
        largest = max(largest, int(replay.arrays["columns.sizes"][1]))
    assert 1000 < largest <= 1024
    table = replay.arrays["columns.table"][: int(replay.arrays["columns.sizes"][1])]
    assert table[0, 1] == 63  # the feature of all rows since row 64 is still the first
    assert len(np.unique(table[:, 0])) == len(table) < 1024
    assert (np.diff(table[:, 0][table[:, 1] == 1]) > 0).all()


# ---- what is dropped ----


def test_both_rules_of_dropping_agree() -> None:
    """The learner's rule and the replay's are written apart; at random losses they name the same experts."""
    rng = np.random.default_rng(5)
    seen = set()
    for trial in range(400):
        others = [name for name in ("columns", "drift", "offset", "coin") if rng.random() < 0.8]
        names = ("0.1", "1", "scores", *others)
        sign = -1.0 if trial % 4 == 0 else 1.0
        octave = sign * (100.0 + rng.normal(size=len(names)) * rng.choice([0.3, 3.0]))
        without = sign * 100.0 + 0.3 * rng.normal(size=len(names))
        state = {name: np.array([0.0 * row, row]) for name, row in (("octave", octave), ("without", without))}
        state["octave_loss"] = np.array([0.0, sign * 100.0])
        own = tuple(dropped_experts(state, names, 2**15))
        assert own == losers(names, octave.tolist(), without.tolist(), sign * 100.0)
        assert dropped_experts(state, names, 2**15 + 1) == []
        assert dropped_experts(state, names, 2**13) == []
        seen.add(own)
    assert {(), ("columns",), ("coin",), ("drift",)} <= seen
    assert any(len(own) > 1 for own in seen)


def test_windows_of_scales_are_kept_only_if_they_do_as_well() -> None:
    sums = np.array([[0.0] * 4, [0.0] * 4, [5.0, 4.0, 4.0, 3.9]])
    assert kept_scales({"windows": sums}, 6, 2**17) is None
    sums[2, 3] = 3.999
    assert kept_scales({"windows": sums}, 6, 2**17) == 1
    assert kept_scales({"windows": sums}, 6, 2**17 + 1) is None
    assert kept_scales({"windows": sums}, 4, 2**17) is None


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge", "softmax"])
def test_an_expert_that_is_dropped_leaves_all_arrays(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 64)
    rows, scores = changing_rows(8, 128)
    batch = batch_of(rows, labels_of(loss, scores))
    names = list(experts_of(settings(loss)))
    for dropped in [name for name in ("coin", "columns", "drift") if name in names]:
        replay = replay_of(settings(loss))
        replay.learn(batch[:63])
        octave = replay.state["octave"]
        monkeypatch.setattr(
            "ftprl.receipt.replay.dropped_experts", lambda state, own, t, name=dropped: [name] if t == 64 else []
        )
        before, inputs = octave.shape[1], {name: a.shape for name, a in replay.arrays.all.items()}
        replay.learn(batch[63:64])
        assert replay.spec.dropped_experts == (dropped,)
        assert dropped not in experts_of(replay.spec)
        assert replay.spec.coin == (dropped != "coin" and "coin" in names)
        for name in ("w", "totals", "octave", "without"):
            assert replay.state[name].shape[-1] == before - 1
        assert replay.state["w"].sum() == pytest.approx(1.0)
        left = {"coin": ("coin",), "columns": ("newton_B", "columns"), "drift": ("newton_D",)}[dropped]
        assert not [name for name in replay.arrays.all if name.startswith(left)]
        if dropped == "coin":
            assert replay.arrays["newton_A.P"].shape == tuple(n - 1 for n in inputs["newton_A.P"])
            assert replay.arrays["newton_B.u"].shape == tuple(n - 1 for n in inputs["newton_B.u"])
        replay.learn(batch[64:])
        assert np.isfinite(replay.tallies).all()
        assert replay.state["octave"].shape == (2, before - 1)


@pytest.mark.parametrize("loss", ["logistic", "absolute", "poisson", "softmax"])
def test_octave_sums_are_those_of_the_rows_since_the_last_power_of_two(loss: str) -> None:
    rows, scores = changing_rows(9, 64)
    y = labels_of(loss, scores)
    replay = replay_of(settings(loss))
    totals, losses = [], []
    for part in batch_of(rows, y).cut(1):
        losses.append(float(replay.learn(part)[0][0]))
        totals.append(replay.state["totals"].copy())
    least = [label - label * math.log(label) if loss == "poisson" and label else 0.0 for label in y]
    np.testing.assert_allclose(replay.state["octave"][1], totals[-1] - totals[31] - sum(least[32:]), rtol=1e-9)
    assert replay.state["octave_loss"][1] == pytest.approx(sum(losses[32:]) - sum(least[32:]))
    assert not replay.state["octave"][0].any()
    for name, sums in zip(experts_of(replay.spec), replay.state["without"][1].tolist(), strict=True):
        assert (sums != 0.0) == (name in ("columns", "drift", "coin"))


# ---- what it may include ----


def includes_of(path: Path, core: Path) -> set[Path]:
    found: set[Path] = set()
    left = [path]
    while left:
        own = left.pop()
        for name in re.findall(r'#include "([^"]+)"', own.read_text()):
            header = core / name
            if header.exists() and header not in found:
                found.add(header)
                left.append(header)
    return found


def test_it_includes_nothing_of_the_learner() -> None:
    core = ROOT / "src" / "core"
    files = sorted((core / "replay").glob("*.cpp"))
    assert len(files) > 5
    folders = set(itertools.chain.from_iterable((header.parent.name for header in includes_of(f, core)) for f in files))
    assert folders == {"replay"}
