"""Receipts of several classes: the replay has the core's bits, floors hold, forgeries are refused."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import ftprl
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.receipt import certify_model, verify_receipt
from ftprl.receipt.audit import Audit, Comparator
from ftprl.receipt.certificate import box_certificate, own_certificate, running_certificate
from ftprl.receipt.document import digest, make_receipt, write_receipt
from ftprl.receipt.replay import Replay
from laws.learner_arrays import assert_arrays
from oracles.classes_twin import ClassesTwin

SCALES = (0.02, 0.16, 0.45, 1.28, 3.6)
ROWS = 120
OPTIONS: list[dict[str, Any]] = [
    {"dense": True},
    {"dense": True, "float64": True},
    {"scale": 0.3},
    {"l1": 0.4, "l2": 0.3},
    {"lower": -0.1, "upper": 0.2},
    {"intercept": False},
]
NAMES = np.array(["rain", "sun", "snow", "fog"])


def stream(rows: int = ROWS, classes: int = 4, seed: int = 1) -> Batch:
    """Return two columns of numbers and one of five names; classes appear one after the other; some rows have
    weights.
    """
    rng = np.random.default_rng(seed)
    W, features, y, first = rng.normal(size=(7, classes)) * 1.5, [], [], {}
    for _ in range(rows):
        row = {0: float(rng.normal() + 4.0), 1: float(rng.normal() * 30.0), int(rng.integers(2, 7)): 1.0}
        score = sum(W[i] * (v / 30.0 if i == 1 else v) for i, v in row.items()) + rng.gumbel(size=classes)
        features.append(row)
        y.append(float(first.setdefault(int(np.argmax(score)), len(first))))
    return Batch.from_rows(features, y=y, weight=rng.choice([0.5, 1.0, 3.0], rows))


def spec_of(**options: Any) -> Spec:
    return Spec(**{"loss": "softmax", "dim": 8, "scale": SCALES, "classes": 6, **options})


@pytest.mark.parametrize("known", [0, 6])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_replay_has_the_cores_bits_and_the_audit_its_certificate(options: dict[str, Any], known: int) -> None:
    spec, batch = spec_of(**options), stream()
    engine, twin = Engine(spec, receipt=True, classes=known), Replay(spec, retire=False, known=known)
    losses, predicted = np.empty(ROWS), np.empty(ROWS)
    engine.learn(batch, losses=losses, scores=predicted)
    np.testing.assert_array_equal(twin.learn(batch), [losses, predicted])
    slots = engine.touched()
    parts = engine.parts_at(slots)
    for name, own in twin.parts_at(slots).items():
        np.testing.assert_array_equal(parts[name], own, err_msg=name)
    np.testing.assert_array_equal(engine.intercept_columns[:, :3], twin.intercept_columns[:, :3])
    assert engine.progress.loss == twin.progress.loss
    for k in range(len(spec.scales)):
        assert (engine.sums_of(k), engine.rounding_sums(k)) == (twin.sums_of(k), twin.rounding_sums(k))
    assert_arrays(engine, twin)
    audited = Audit(twin, Comparator()).certificate()
    for certificate in (own_certificate(engine), running_certificate(engine, grouped=True)):
        stated = certificate.to_dict()
        for name in ("regret", "tight", "bound", "theorem", "rounding", "drift", "excess"):
            assert stated[name] == pytest.approx(audited[name], rel=1e-9, abs=1e-9), name
        for ours, theirs in zip(stated["coordinates"], audited["coordinates"], strict=True):
            assert (ours["seen_from"], ours["count"]) == (theirs["seen_from"], theirs["count"])
            assert ours["bound"] == pytest.approx(theirs["bound"], rel=1e-9, abs=1e-9)
        for line, theirs in zip(stated["floor"]["lines"], audited["floor"]["lines"], strict=True):
            assert line["slope_2"] == pytest.approx(theirs["slope_2"], rel=1e-9)
            assert line["start"] == pytest.approx(theirs["start"], rel=1e-9)
        assert certificate.regret <= certificate.tight + 1e-9 <= certificate.bound + 2e-9 <= certificate.theorem + 3e-9


@pytest.mark.parametrize("options", [{}, {"dense": True}, {"scale": 0.3}, {"l1": 0.4, "l2": 0.3}], ids=str)
def test_the_replay_predicts_as_its_twin(options: dict[str, Any]) -> None:
    spec, batch = spec_of(float64=True, **options), stream()
    twin = ClassesTwin(spec)
    expected = []
    for r in range(len(batch)):
        row = slice(batch.indptr[r], batch.indptr[r + 1])
        entries = dict(zip(batch.indices[row].tolist(), batch.values[row].tolist(), strict=True))
        expected.append(twin.learn(entries, int(batch.y[r]), float(batch.weight[r])))
    np.testing.assert_allclose(Replay(spec, retire=False).learn(batch)[0], expected, rtol=1e-9)


def test_classes_to_come_count_as_if_each_had_a_column() -> None:
    """One column for four classes that never occur gives the receipt of a column for each of them."""
    spec, batch = spec_of(classes=8, dense=True), stream()
    few, many = (Engine(spec, receipt=True, classes=known) for known in (0, 8))
    for engine in (few, many):
        engine.learn(batch)
    assert few.columns < many.columns == 8
    for one, other in (
        (own_certificate(few), own_certificate(many)),
        (box_certificate(few, 0.7), box_certificate(many, 0.7)),
        (running_certificate(few, grouped=True), running_certificate(many, grouped=True)),
    ):
        for name in ("regret", "tight", "bound", "theorem", "drift"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-9), name
        assert [group["count"] for group in one.coordinates] == [group["count"] for group in other.coordinates]


def best_fixed(batch: Batch, units: np.ndarray, classes: int, ridge: float) -> tuple[float, float]:
    """Return length and loss of the softmax regression with this ridge, which is the best of its length."""
    loss, size = regression(batch, units, classes, ridge)
    solved = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    length = float(np.linalg.norm(solved.x))
    return length, loss(solved.x)[0] - 0.5 * ridge * length**2


def best_in_box(batch: Batch, units: np.ndarray, classes: int, radius: float) -> float:
    """Return the least loss of weights and intercepts of at most `radius` over their units."""
    loss, size = regression(batch, units, classes, 0.0)
    options = {"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9}
    box = [(-radius, radius)] * size
    return float(minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", bounds=box, options=options).fun)


def regression(
    batch: Batch, units: np.ndarray, classes: int, ridge: float
) -> tuple[Callable[[np.ndarray], tuple[float, np.ndarray]], int]:
    """Return the loss of softmax regression with its gradient, and its number of weights."""
    X = np.zeros((len(batch), len(units) + 1))
    X[np.repeat(np.arange(len(batch)), np.diff(batch.indptr)), batch.indices] = batch.values
    X = np.hstack([X[:, :-1] / np.where(units > 0, units, 1.0), np.ones((len(batch), 1))])
    y, weight = batch.y.astype(int), batch.weight

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(X.shape[1], classes)
        scores = X @ W
        logs = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
        slope = np.exp(logs)
        slope[np.arange(len(y)), y] -= 1.0
        total = -float(weight @ logs[np.arange(len(y)), y])
        return total + 0.5 * ridge * float(flat @ flat), (X.T @ (weight[:, None] * slope)).reshape(-1) + ridge * flat

    return loss, X.shape[1] * classes


@pytest.mark.parametrize(
    "options", [{"dense": True}, {"scale": 0.3}, {"classes": 4}, {"classes": 5}, {"intercept": False}], ids=str
)
def test_no_fixed_weights_of_the_classes_that_came_are_below_the_floor(options: dict[str, Any]) -> None:
    """Length is the Frobenius norm over these classes; compared with SciPy's optima of many lengths."""
    spec, batch = spec_of(**options), stream(600)
    engine = Engine(spec, receipt=True)
    engine.learn(batch)
    certificate = own_certificate(engine)
    unit = np.zeros(spec.dim)
    slots = engine.touched()
    unit[slots] = engine.parts_at(slots)["unit"]
    assert certificate.floor(0.0) <= math.log(4.0)  # each class that came has the same probability
    for ridge in (1000.0, 100.0, 10.0, 1.0, 0.1):
        length, loss = best_fixed(batch, unit, 4, ridge)
        assert certificate.floor(length) <= loss / certificate.weight, (ridge, length)
    length, loss = min(best_fixed(batch, unit, 4, ridge) for ridge in (200.0, 50.0, 20.0))
    share = 0.65 if spec.intercept else 0.3
    assert certificate.floor(length) > share * loss / certificate.weight  # it says something


def test_a_run_has_not_beaten_the_uniform_model_of_the_classes_that_came() -> None:
    """Labels of three classes by chance: fixed models need not reserve probability for up to 100 classes, the run
    must.
    """
    rng = np.random.default_rng(0)
    rows = [{"x": float(rng.normal()), "kind": f"c{rng.integers(3)}"} for _ in range(500)]
    options = {"label": "kind", "loss": "softmax", "receipt": True, "order": "given"}
    certificate, declared = (ftprl.train(rows, **options, **more).certificate for more in ({}, {"classes": 3}))
    assert certificate.loss / certificate.weight > math.log(3.0)
    assert not certificate.beaten_length
    assert "beat every" not in str(certificate)
    assert "models of the 3 classes that came" in str(certificate)
    for length in (0.0, 1.0, 5.0):  # nearly as high as if they had been declared
        assert certificate.floor(length) == pytest.approx(declared.floor(length), rel=0.1)


# ---- from a file to a verdict ----


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    batch = stream(90)
    lines = [f"{NAMES[int(y)]},{i},{v:.5g}" for i, (y, v) in enumerate(zip(batch.y, batch.values[::3], strict=True))]
    lines = [f"{line},{'abcde'[i % 5]}" for i, line in enumerate(lines)]
    Path("t.csv").write_text("\n".join(["kind,i,v,c", *lines]) + "\n")
    Path("u.csv").write_text("\n".join(["kind,i,v,c", *lines[::-1]]) + "\n")
    return lines


def trained(**more: Any) -> ftprl.Model:
    defaults = {"label": "kind", "loss": "softmax", "receipt": True, "bits": 8, "output": "m.ftprl"}
    return ftprl.train("t.csv", **{**defaults, **more}).model


def written(model: ftprl.Model, **more: Any) -> dict[str, Any]:
    receipt = make_receipt(model, certify_model(model, **more))
    write_receipt("r.json", receipt)
    return receipt


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"classes": "fog,sun,rain,snow", "passes": 2, "holdout": 7}, {"norm": "1"}),
        ({"scale": 0.2, "float64": True}, {"radius": 0.5}),
        ({"classes": 3, "on_bad_row": "skip"}, {}),
        ({"classes": 3, "on_bad_row": "skip"}, {"exact": "t.csv"}),
        ({"passes": 2}, {"radius": 0.5, "exact": "t.csv"}),
    ],
    ids=["default", "declared", "one scale", "too many", "best of a length", "best of a box"],
)
@pytest.mark.usefixtures("table")
def test_a_true_receipt_is_confirmed(options: dict[str, Any], more: dict[str, Any]) -> None:
    written(trained(**options), **more)
    verdict = verify_receipt("r.json", "t.csv", model="m.ftprl")
    assert verdict.confirmed, str(verdict)
    assert verdict.answers[0].question == "Better than guessing?"
    assert len(verdict.answers) == 4
    assert verify_receipt("r.json", "t.csv", rows=40).status == "partial"


def forgeries(receipt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return receipts with one fault each and a valid digest."""

    def changed(change: Any) -> dict[str, Any]:
        forged = copy.deepcopy(receipt)
        change(forged)
        forged["sha256"] = digest(forged)
        return forged

    def scaled(name: str, factor: float = 1.0001) -> Any:
        return changed(lambda r: r["certificate"].__setitem__(name, r["certificate"][name] * factor))

    return {
        "loss": scaled("loss"),
        "bound": scaled("bound"),
        "baseline": changed(lambda r: r["certificate"]["baseline"].__setitem__("baseline", 500.0)),
        "slope": changed(lambda r: r["certificate"]["floor"]["lines"][3].__setitem__("slope_2", 1.0)),
        "milestone": changed(lambda r: r["milestones"][4].__setitem__("regret", 0.0)),
        "labels": changed(lambda r: r.__setitem__("classes", r["classes"][::-1])),
        "declared": changed(lambda r: r["spec"].__setitem__("classes", 4)),
        "interval": changed(lambda r: r["certificate"]["confidence"]["error_rate"].__setitem__("mean", 0.01)),
        "points": changed(
            lambda r: r["certificate"]["floor"].__setitem__("points", [{"length": 1.0, "loss": 9.0, "at_least": 8.0}])
        ),
    }


@pytest.mark.usefixtures("table")
def test_a_forged_receipt_is_refused() -> None:
    receipt = written(trained())
    for name, forged in forgeries(receipt).items():
        Path("f.json").write_text(json.dumps(forged))
        assert verify_receipt("f.json", "t.csv").status == "refused", name
    assert verify_receipt("r.json", "u.csv").status == "refused"  # the rows in another order
    trained(seed=3, output="other.ftprl")
    assert verify_receipt("r.json", "t.csv", model="other.ftprl").status == "refused"
    without = {key: value for key, value in receipt.items() if key != "classes"}
    Path("f.json").write_text(json.dumps({**without, "sha256": digest(without)}))
    with pytest.raises(InvalidInput, match="several classes needs their labels"):
        verify_receipt("f.json", "t.csv")


@pytest.mark.usefixtures("table")
def test_a_resumed_run_has_the_receipt_of_a_whole_one() -> None:
    whole = trained(order="given")
    lines = Path("t.csv").read_text().splitlines(keepends=True)
    Path("a.csv").write_text("".join(lines[:41]))
    Path("b.csv").write_text("".join([lines[0], *lines[41:]]))
    options = {"label": "kind", "bits": 8, "loss": "softmax", "receipt": True, "order": "given"}
    ftprl.train("a.csv", output="p.ftprl", **options)
    parts = ftprl.train("b.csv", resume="p.ftprl", output="q.ftprl").model
    assert parts.state_digest() == whole.state_digest()
    written(parts)
    assert verify_receipt("r.json", ["a.csv", "b.csv"], model="q.ftprl").confirmed


@pytest.mark.usefixtures("table")
def test_what_is_not_computed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="certify --against does not support several classes yet"):
        certify_model(trained(), other="m.ftprl")


def learned_rows(model: ftprl.Model) -> tuple[Batch, np.ndarray]:
    """Return the rows of t.csv with class numbers, in renumbered cells, and the units of these."""
    (batch,) = (model.numbered(rows) for rows in ftprl.data.open("t.csv", **model.reading).batches())
    slots = model.engine.touched()
    place = np.zeros(model.engine.spec.dim, np.uint32)
    place[slots] = np.arange(len(slots))
    return batch.replaced(indices=place[batch.indices]), model.engine.parts_at(slots)["unit"].astype(float)


@pytest.mark.parametrize("classes", [4, 9])
@pytest.mark.usefixtures("table")
def test_the_best_fixed_weights_are_those_of_scipy(classes: int) -> None:
    """The best fixed weights of some lengths over the seen classes, and in a box over all possible classes."""
    model = trained(classes=classes)
    batch, unit = learned_rows(model)
    certificate = certify_model(model, exact="t.csv")
    points = certificate.points
    assert len(points) > 3
    for point in points:
        assert point["at_least"] <= point["loss"] <= point["at_least"] + 1e-3 * abs(point["loss"])
        assert certificate.floor(point["length"]) <= point["loss"] / certificate.weight
    came = len(model.classes or ())
    assert came < classes
    for ridge in (30.0, 5.0, 1.0, 0.2):
        length, loss = best_fixed(batch, unit, came, ridge)
        assert all(point["loss"] <= loss + 1e-4 for point in points if point["length"] >= length)
        assert all(point["loss"] >= loss - 1e-4 for point in points if point["length"] <= length)
    boxed = certify_model(model, radius=0.4, exact="t.csv")
    assert boxed.exact is not None
    best = best_in_box(batch, unit, classes, 0.4)
    assert boxed.exact["best_loss_at_least"] - 1e-6 <= best <= boxed.exact["best_loss"] + 1e-6
    assert boxed.exact["best_loss"] == pytest.approx(best, rel=1e-5)
    assert boxed.regret >= boxed.exact["true_regret"] - 1e-6
