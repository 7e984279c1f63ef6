"""The best fixed weights of a box against CVXPY, and the true regret below the linearised one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.errors import InvalidInput
from ftprl.linear import Spec
from ftprl.losses import quantile
from ftprl.receipt import certify_model, verify_receipt
from ftprl.receipt.document import digest
from ftprl.receipt.exact import Problem, learned_data, regrets
from ftprl.receipt.soundness import broken_link
from laws.streams import LOSSES, labels
from oracles import order_twin
from oracles.batches import real
from oracles.labels_twin import Labels


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_losses_at_a_time_are_those_one_by_one(loss: str) -> None:
    rng = np.random.default_rng(1)
    spec = Spec(loss=loss, dim=2, tau=0.3)
    s, y = rng.normal(size=200) * 4, labels(rng, loss, 200)
    one = quantile(0.3) if loss == "quantile" else spec.scalar_loss()
    values, slopes, curves = spec.scalar_loss().arrays(s, y)
    np.testing.assert_allclose(values, [one.value(a, b) for a, b in zip(s, y, strict=True)], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, [one.slope(a, b) for a, b in zip(s, y, strict=True)], rtol=1e-12, atol=1e-12)
    if curves is not None and loss not in ("squared_hinge", "huber"):  # which have kinks in their slopes
        step = 1e-5
        rise = (spec.scalar_loss().arrays(s + step, y)[1] - spec.scalar_loss().arrays(s - step, y)[1]) / (2 * step)
        np.testing.assert_allclose(curves, rise, rtol=1e-4, atol=1e-6)


def small_log(loss: str, seed: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) * [1.0, 5.0, 0.1, 1.0]
    y = labels(rng, loss, 80)
    rows = [" ".join(f"{i + 1}:{v!r}" for i, v in enumerate(row.tolist())) for row in X]
    Path("s.libsvm").write_text("".join(f"{a!r} {row}\n" for a, row in zip(y.tolist(), rows, strict=True)))
    return X, y


def running_offsets(loss: str, y: Any) -> Any:
    """Return the running mean of the labels before each row, or their running median (docs/labels.md)."""
    if loss not in ("squared", "absolute", "huber"):
        return np.zeros(len(y))
    facts, offsets = Labels(loss, 0.5), []
    for label in y.tolist():
        offsets.append(facts.m)
        facts.learn(label, 1.0)
    return np.array(offsets)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute", "huber", "squared_hinge"])
@pytest.mark.parametrize("order", ["random", "given"])
def test_the_best_loss_is_that_of_an_independent_solver(loss: str, passes: int, order: str) -> None:
    X, y = small_log(loss)
    options = {"loss": loss, "bits": 4, "float64": True, "scale": 0.3, "passes": passes, "order": order}
    model = ftprl.train("s.libsvm", receipt=True, **options).model
    c = certify_model(model, radius=0.8, exact="s.libsvm")
    assert c.exact is not None
    u, b = cp.Variable(4), cp.Variable()
    # Predictions of fixed weights are added to the offset of the labels, which continues over all passes.
    learned = order_twin.plan(len(y), 1 << 17).order if order == "random" else range(len(y))
    X, y = np.tile(X[list(learned)], (passes, 1)), np.tile(y[list(learned)], passes)
    s = X @ u + b + running_offsets(loss, y)
    losses = {
        "logistic": lambda: cp.sum(cp.logistic(-cp.multiply(y, s))),
        "hinge": lambda: cp.sum(cp.pos(1 - cp.multiply(y, s))),
        "squared_hinge": lambda: 0.5 * cp.sum_squares(cp.pos(1 - cp.multiply(y, s))),
        "squared": lambda: 0.5 * cp.sum_squares(s - y),
        "absolute": lambda: cp.norm1(s - y),
        "huber": lambda: 0.5 * cp.sum(cp.huber(s - y, 1)),
    }
    limits = [cp.abs(u) <= 0.8 / np.abs(X).max(axis=0), cp.abs(b) <= 0.8]
    problem = cp.Problem(cp.Minimize(losses[loss]()), limits)
    problem.solve(solver=cp.CLARABEL)
    best = problem.value
    kinks = loss in ("hinge", "absolute")
    assert c.exact["best_loss_at_least"] <= best + 1e-5
    assert c.exact["best_loss"] == pytest.approx(best, rel=1e-2 if kinks else 1e-6)
    assert c.exact["best_loss"] >= best - 1e-5
    assert c.true_regret is not None
    assert c.true_regret >= c.loss - best - 1e-5
    if not kinks:
        assert c.true_regret == pytest.approx(c.loss - best, abs=1e-6 * c.loss)
        assert c.true_regret <= c.regret + c.rounding
        assert f"{c.true_regret:.6g}" in str(c)


def test_bounds_held_out_rows_and_more_data() -> None:
    small_log("logistic")
    ftprl.train("s.libsvm", receipt=True, bits=4, output="m", bounds={"*": (-0.1, 0.2)}, scale=0.3, holdout=3)
    model = ftprl.train("s.libsvm", resume="m").model
    c = certify_model(model, radius=1.0, exact=["s.libsvm", "s.libsvm"])
    assert c.true_regret is not None
    assert c.true_regret <= c.regret + c.rounding
    with pytest.raises(InvalidInput, match="2 files"):
        certify_model(model, radius=1.0, exact="s.libsvm")
    Path("t.libsvm").write_text("".join(Path("s.libsvm").read_text().splitlines(keepends=True)[:70]))
    with pytest.raises(InvalidInput, match="the data that was learned"):
        certify_model(model, radius=1.0, exact=["s.libsvm", "t.libsvm"])


def test_verify_looks_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    small_log("logistic")
    ftprl.train("s.libsvm", receipt=True, bits=4, output="m")
    assert run(["certify", "m", "--radius", "1", "--exact", "s.libsvm", "-o", "r.json", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["true_regret"] == result["exact"]["true_regret"]
    assert verify_receipt("r.json", "s.libsvm").confirmed
    made = json.loads(Path("r.json").read_text())
    made["certificate"]["exact"]["true_regret"] -= 0.01
    Path("f.json").write_text(json.dumps(made))
    assert "certificate.exact.true_regret" in {one.name for one in verify_receipt("f.json", "s.libsvm").refused}


def test_true_regret_on_census_data() -> None:
    path = str(real("a9a.libsvm.gz"))
    model = ftprl.train(path, receipt=True, bits=12).model
    c = certify_model(model, radius=1.0, exact=path)
    assert c.true_regret is not None
    assert c.exact is not None
    assert c.true_regret <= c.regret
    assert c.true_regret == pytest.approx(c.loss - c.exact["best_loss"], abs=1e-6 * c.loss)


@pytest.mark.slow
def test_true_regret_on_clicks() -> None:
    path = str(real("criteo80k.vw.gz"))
    model = ftprl.train(path, receipt=True, bits=20).model
    c = certify_model(model, radius=0.1, exact=path)
    assert c.true_regret is not None
    assert c.exact is not None
    assert c.true_regret <= c.regret
    assert c.true_regret == pytest.approx(c.loss - c.exact["best_loss"], abs=1e-6 * c.loss)


def test_other_data_of_the_same_weight_is_refused() -> None:
    Path("s.vw").write_text("1 | a b\n-1 | b c\n" * 20)
    Path("t.vw").write_text("1 | a b\n-1 | c c\n" * 20)
    ftprl.train("s.vw", bits=8, receipt=True, output="m")
    with pytest.raises(InvalidInput, match=r"t\.vw: expected the data that was learned, of SHA-256"):
        certify_model(ftprl.load("m"), radius=1.0, exact="t.vw")


@pytest.mark.parametrize("name", ["best_loss", "best_loss_at_least", "true_regret", "true_regret_at_least"])
def test_a_small_change_of_any_exact_number_is_refused(name: str) -> None:
    Path("s.vw").write_text("1 | a b\n-1 | b c\n1 | c\n" * 10)
    ftprl.train("s.vw", bits=8, receipt=True, output="m")
    assert run(["certify", "m", "--radius", "1", "--exact", "s.vw", "-o", "r.json"]) == 0
    assert verify_receipt("r.json", "s.vw").confirmed
    made = json.loads(Path("r.json").read_text())
    made["certificate"]["exact"][name] *= 1 + 1e-7
    made["sha256"] = digest({key: value for key, value in made.items() if key != "sha256"})
    Path("f.json").write_text(json.dumps(made))
    refused = {one.name for one in verify_receipt("f.json", "s.vw").refused}
    assert refused
    assert all(one.startswith("certificate.") for one in refused), "the digest itself is right"


def changing_labels(loss: str) -> Any:
    """Labels with outliers that are cut, and of a level that moves far."""
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.normal(5e3, 50.0, 400), rng.normal(3.0, 0.1, 3000)])
    y[[30, 31, 900, 2000]] = [1e9, 1e8, -1e7, 4e6]
    X = rng.normal(size=(len(y), 2))
    rows = (f"{a!r} 1:{b!r} 2:{c!r}\n" for a, (b, c) in zip(y.tolist(), X.tolist(), strict=True))
    Path("c.libsvm").write_text("".join(rows))
    return y


@pytest.mark.parametrize("order", ["given", "random"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber"])
def test_fixed_weights_are_on_top_of_the_learners_own_offset(loss: str, order: str) -> None:
    """Weights of 0 have the loss of the offset expert, to the last digits."""
    changing_labels(loss)
    model = ftprl.train("c.libsvm", receipt=True, loss=loss, bits=4, order=order).model
    mixture = model.engine.mixture
    assert mixture is not None
    offset = mixture.losses[mixture.names.index("offset")]
    problem = Problem(model.engine, learned_data(model, "c.libsvm"), 1.0)
    value = problem.value_and_slope(np.zeros_like(problem.start))[0]
    assert value == pytest.approx(offset, rel=1e-12)
    c = certify_model(model, radius=1e-9, exact="c.libsvm")
    assert c.true_regret == pytest.approx(c.loss - offset, abs=1e-6 * offset)
    assert c.true_regret <= c.regret + c.rounding


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber"])
def test_one_scale_begins_from_labels_that_are_cut(loss: str) -> None:
    y = changing_labels(loss)
    model = ftprl.train("c.libsvm", receipt=True, loss=loss, bits=4, order="given", scale=0.1, float64=True).model
    problem = Problem(model.engine, learned_data(model, "c.libsvm"), 1.0)
    facts, total = Labels(loss, 0.5), 0.0
    spec = model.engine.spec
    for label in y.tolist():
        total += float(spec.scalar_loss().arrays(np.array([facts.m]), np.array([label]))[0][0])
        facts.learn(facts.believed(label), 1.0)
    assert problem.value_and_slope(np.zeros_like(problem.start))[0] == pytest.approx(total, rel=1e-9)


def test_a_model_that_learned_no_feature() -> None:
    """If all labels are equal, no row changes a model of one scale."""
    Path("one.vw").write_text("5 | a\n" * 9)
    model = ftprl.train("one.vw", receipt=True, loss="squared", bits=4, scale=0.1).model
    c = certify_model(model, radius=1.0, exact="one.vw")
    b = 5.0 / 9.0  # the best intercept: the offset is 0 at the first row and 5 at the others
    assert c.true_regret == pytest.approx(c.loss - 0.5 * (5.0 - b) ** 2 - 4.0 * b**2, rel=1e-6)


def test_a_search_that_stops_early_is_no_contradiction() -> None:
    """If the search stops early, the proved least loss may be far off, and the true regret with it."""
    rng = np.random.default_rng(4)
    weights, X = 10.0 ** rng.uniform(-5, 5, 200), rng.normal(size=(200, 8))
    y = np.where(X @ rng.normal(size=8) > 0, 1, -1)
    rows = (" ".join(f"f{i}:{v!r}" for i, v in enumerate(row)) for row in X.tolist())
    Path("w.vw").write_text("".join(f"{a} {w!r} | {x}\n" for a, w, x in zip(y, weights.tolist(), rows, strict=True)))
    model = ftprl.train("w.vw", receipt=True, loss="hinge", bits=18, order="given").model
    problem = Problem(model.engine, learned_data(model, "w.vw"), 1.0)
    value, _ = problem(problem.start)
    c = certify_model(model, radius=1.0).with_exact(regrets(c_loss := model.engine.progress.loss, value, -1e9))
    assert broken_link(c.to_dict()) is None
    wrong = c.with_exact(regrets(c_loss, c_loss - 2.0 * c.regret, -1e9))
    assert "true_regret_at_least" in (broken_link(wrong.to_dict()) or "")
