"""Several passes: the mixture learns nothing from known rows, held-out rows choose the number, all rows are learned."""

from __future__ import annotations

import copy
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data, errors
from ftprl.cli.app import run as ftprl
from ftprl.linear import Engine, Spec
from ftprl.linear.derived import forgetful
from ftprl.linear.model import Model
from ftprl.receipt import certify_model, verify_receipt
from ftprl.receipt.document import digest, make_receipt, write_receipt
from ftprl.runlog.events import read_events
from ftprl.training import train
from ftprl.training.holdout import held_out, numbers_of
from ftprl.training.passes import PATIENCE, rows_of
from laws.learner_arrays import arrays_of

MIXTURE = ("mixture.w", "mixture.totals", "newton_A.u", "newton_A.P", "newton_D.u", "newton_D.P")


def text(path: Path, rows: int, seed: int, noise: float, unique: int = 3) -> Path:
    """Return rows with one informative word, up to noise, and unique words by which rows can be memorised."""
    rng, lines = np.random.default_rng(seed), []
    for i in range(rows):
        word = rng.integers(0, 40)
        label = 1 if (word < 12) != (rng.random() < noise) else -1
        lines.append(f"{label} | w{word} {' '.join(f'u{seed}_{i}_{j}' for j in range(unique))}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text(tmp_path_factory.mktemp("log") / "log.vw", 1200, 1, 0.2)


def batches(log: Path, loss: str = "logistic") -> list[data.Batch]:
    return list(data.open(log, dim=2**14, loss=loss).batches())


def log_loss(model: Model, path: Path) -> float:
    y = np.concatenate([batch.y for batch in data.open(path).batches()])
    return float(np.logaddexp(0.0, -y * model.predict(path, raw=True)).mean())


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute", "hinge"])
def test_rows_seen_before_move_the_scales_but_not_their_mixture(log: Path, loss: str) -> None:
    frozen, free = (Engine(Spec(scale="auto", dim=2**14, loss=loss)) for _ in range(2))
    for number in range(2):
        before = {name: arrays_of(frozen)[name].copy() for name in MIXTURE}
        for batch in batches(log, loss):
            frozen.learn(batch, seen=number > 0)
            free.learn(batch)
        for name in MIXTURE:
            assert np.array_equal(before[name], arrays_of(frozen)[name]) == (number > 0), name
    np.testing.assert_array_equal(frozen.cells, free.cells)
    assert not np.array_equal(arrays_of(frozen)["mixture.w"], arrays_of(free)["mixture.w"])
    assert frozen.progress.rows == free.progress.rows


def test_held_out_rows_weigh_the_experts_by_bayes_rule(log: Path) -> None:
    engine = Engine(Spec(scale="auto", dim=2**14))
    *first, last = batches(log)[0].cut(400)
    for batch in first:
        engine.learn(batch)
    assert engine.mixture is not None
    names = engine.mixture.names
    n, drift = len(names), names.index("drift")
    cells, u, mixture = engine.cells, engine.saved_arrays["newton_A.u"].copy(), engine.state["w"].copy()
    lost = np.empty((n, len(last)))
    for j in range(n):  # the losses of each expert, one at a time
        one = engine.copy()
        one.state["w"][...] = np.eye(n)[j]
        lost[j] = np.logaddexp(0.0, -last.y * one.score(last)) if j != drift else loss_by_row(one, last)
    prior = np.exp(-0.01 * (engine.state["totals"] - engine.state["totals"].min()))
    prior /= prior.sum()
    # The hypotheses: each expert, and the mixture of the first pass, which has the weight of all experts. A prediction
    # leaves out the expert that drifts.
    believed, expected, awake = np.append(0.5 * prior, 0.5), [], np.arange(n) != drift
    for chances in np.exp(-lost.T):
        w = believed[:n] + believed[n] * mixture
        expected.append(-np.log(w[awake] @ chances[awake] / w[awake].sum()))
        believed *= np.append(chances, mixture @ chances)
        believed /= believed.sum()
    engine.start_weighing(0.01)
    losses, held = np.empty(len(last)), np.empty((len(last), 2))
    engine.weigh(last, losses=losses, baselines=held)
    np.testing.assert_allclose(engine.state["w"], believed[:n] + believed[n] * mixture, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    np.testing.assert_array_equal(engine.cells, cells)
    np.testing.assert_array_equal(engine.saved_arrays["newton_A.u"], u)


def loss_by_row(engine: Engine, rows: data.Batch) -> np.ndarray:
    """Return the loss of each row as the first that is learned: with all experts, which other predictions have not."""
    losses = np.empty((len(rows), 1))
    for loss, row in zip(losses, rows.cut(1), strict=True):
        engine.copy().learn(row, losses=loss)
    return losses[:, 0]


def test_ten_passes_do_not_memorise(log: Path, tmp_path: Path) -> None:
    new = text(tmp_path / "new.vw", 2000, 2, 0.2)
    options: list[dict[str, Any]] = [{}, {"passes": 10}, {"passes": 10, "holdout": 0}]
    one, many, all_rows = (train(log, bits=14, **more).model for more in options)
    assert log_loss(many, new) <= 1.06 * log_loss(one, new)
    engine = Engine(Spec(scale="auto", dim=2**14))
    for _ in range(10):
        for batch in batches(log):
            engine.learn(batch)
    assert log_loss(Model(engine, one.reading), new) > 1.5 * log_loss(many, new)
    assert log_loss(Model(engine, one.reading), new) > 1.2 * log_loss(all_rows, new)


@pytest.mark.parametrize("scale", ["auto", 0.5])
def test_the_best_number_of_passes_is_kept(log: Path, scale: float | str, tmp_path: Path) -> None:
    run = train(log, bits=14, passes=20, scale=scale, output=tmp_path / "m")
    means = [totals.mean for totals in run.reviews]
    assert run.best_pass == 1 + int(np.argmin(means))
    assert run.best_pass + PATIENCE == len(means) < 20
    assert run.holdout == run.reviews[run.best_pass - 1]
    ends = [event for event in run.events if event["event"] == "pass"]
    assert [event["holdout"] for event in ends] == means
    (relearn,) = [event for event in run.events if event["event"] == "relearn"]
    assert (relearn["passes"], relearn["compared"]) == (run.best_pass, len(means))
    assert (run.events[-1]["best_pass"], run.events[-1]["pass"]) == (run.best_pass, len(means) + run.best_pass)
    assert run.model.history["rows"] == 1200
    assert run.rows == 1200 * (len(means) + run.best_pass)
    shorter = train(log, bits=14, passes=max(2, run.best_pass), scale=scale, output=tmp_path / "s")
    assert shorter.best_pass == run.best_pass
    assert (tmp_path / "m").read_bytes() == (tmp_path / "s").read_bytes()
    assert f"all rows learned in {run.best_pass} pass" in str(run)


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
@pytest.mark.parametrize("more", [{}, {"scale": 0.5}], ids=str)
def test_in_the_end_all_rows_are_learned_and_mixed_as_was_best(log: Path, loss: str, more: dict[str, Any]) -> None:
    run = train(log, bits=14, passes=4, loss=loss, order="given", **more)
    spec = run.model.engine.spec
    assert run.best_pass is not None
    every_row, learned = Engine(spec), Engine(spec)
    for _ in range(run.best_pass):
        for batch in batches(log, loss):
            every_row.learn(batch)  # what a scale learns does not depend on the mixture
    (whole,) = batches(log, loss)
    rest = whole.replaced(weight=np.where(np.arange(1200) % 10 == 9, 0.0, 1.0))
    for number in range(run.best_pass):
        learned.learn(rest, seen=number > 0)
    model = run.model.engine
    np.testing.assert_array_equal(model.cells, every_row.cells)
    np.testing.assert_array_equal(model.intercept, every_row.intercept)
    assert model.progress.rows == every_row.progress.rows
    if spec.several:
        names = [name for name in model.saved_arrays if name.startswith("newton_")]
        assert {name[:8] for name in names} == {"newton_A", "newton_B", "newton_D"}
        for name in (*names, "mixture.totals"):
            np.testing.assert_array_equal(model.saved_arrays[name], learned.saved_arrays[name])
        held = rows_of(whole, np.arange(9, 1200, 10))
        learned.start_weighing(0.125 / 19)
        losses, numbers = np.empty(len(held)), np.empty((len(held), 2))
        learned.weigh(held, losses=losses, baselines=numbers)
        np.testing.assert_array_equal(model.state["w"], learned.state["w"])
        assert run.reviews[run.best_pass - 1].mean == pytest.approx(losses.mean(), rel=1e-12)


def test_a_model_that_is_trained_further_keeps_what_it_had_learned(log: Path, tmp_path: Path) -> None:
    more = text(tmp_path / "more.vw", 300, 5, 0.2)
    train(log, bits=14, order="given", output=tmp_path / "first")
    options: dict[str, Any] = {"passes": 3, "checkpoint": tmp_path / "c", "every": 100, "output": tmp_path / "m"}
    run = train(more, resume=tmp_path / "first", **options)
    assert run.best_pass is not None
    engine = Engine(run.model.engine.spec)
    for path in (log, *[more] * run.best_pass):
        for batch in batches(path):
            engine.learn(batch)
    np.testing.assert_array_equal(run.model.engine.cells, engine.cells)
    assert run.model.history["rows"] == 1500
    whole = (tmp_path / "m").read_bytes()
    for stop in (1, 4, 10, 12):
        (tmp_path / "c").unlink(missing_ok=True)
        with pytest.raises(errors.Interrupted):
            train(more, resume=tmp_path / "first", listener=stop_at(stop), **options)
        train(more, resume=tmp_path / "c", **options)
        assert (tmp_path / "m").read_bytes() == whole


def test_scales_that_were_dropped_meanwhile_are_dropped_from_the_start_too(log: Path) -> None:
    start = Engine(Spec(scale="auto", dim=2**14, coin=True, dense=True))
    for batch in batches(log):
        start.learn(batch)
    later = start.copy()
    for batch in batches(log):
        later.learn(batch)
    later.drop_expert("coin")
    later.keep_scales(3)
    expected = start.copy()
    expected.drop_expert("coin")
    expected.keep_scales(3)
    again = forgetful(later, start)
    assert again.spec == later.spec
    np.testing.assert_array_equal(again.cells, expected.cells)
    np.testing.assert_array_equal(again.state["w"], later.state["w"])
    assert again.progress.rows == 1200


@pytest.mark.parametrize(
    ("more", "every"),
    [({}, None), ({"passes": 2}, 20), ({"passes": 2, "holdout": 0}, None), ({"passes": 2, "holdout": 7}, 7)],
    ids=str,
)
def test_what_is_held_out(log: Path, more: dict[str, Any], every: int | None) -> None:
    run = train(log, bits=14, **more)
    assert run.events[0]["holdout_every"] == every
    assert run.events[0]["keeps_best_pass"] == (every is not None)
    assert len(run.reviews) == (2 if every else 0)
    assert run.progressive.rows == 1200 - (1200 // min(every, 10) if every else 0)


@given(st.integers(0, 3000), st.lists(st.integers(1, 900), min_size=1, max_size=6), st.integers(2, 40), st.booleans())
def test_which_rows_are_held_out(before: int, sizes: list[int], every: int, compares: bool) -> None:
    def is_held_out(number: int) -> bool:  # from 1, in this run
        first = compares and number <= 2000 and every > 10 and number % 10 == 0
        return first or (before + number) % every == 0

    whole, actual = data.Batch.from_rows([()] * sum(sizes)), []
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        part = whole[end - size : end]
        assert part.first_row == end - size
        actual += (end - size + held_out(numbers_of(part), every, before, compares=compares)).tolist()
    assert actual == [row for row in range(len(whole)) if is_held_out(row + 1)]


def test_a_receipt_is_for_all_passes_as_one_stream(log: Path) -> None:
    run = train(log, bits=14, passes=2, receipt=True, order="given")
    assert (run.events[0]["holdout_every"], run.best_pass) == (None, None)
    engine = Engine(Spec(scale="auto", dim=2**14, coin=True, dense=True), receipt=True)
    for _ in range(2):
        for batch in batches(log):
            engine.learn(batch)
    np.testing.assert_array_equal(run.model.engine.state["w"], engine.state["w"])


def stop_at(count: int) -> Callable[[dict[str, Any]], None]:
    """Return a listener that stops a run at one of its checkpoints."""
    left = [count]

    def hear(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint":
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

    return hear


def test_a_run_that_is_resumed_ends_in_the_same_bytes(log: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"bits": 14, "passes": 10, "checkpoint": tmp_path / "c", "every": 800}
    whole = train(log, output=tmp_path / "whole", **options)
    count = sum(event["event"] == "checkpoint" for event in whole.events)
    assert whole.best_pass is not None
    assert whole.best_pass < len(whole.reviews)
    assert count >= 6
    for stop in range(1, count + 1):
        with pytest.raises(errors.Interrupted):
            train(log, output=tmp_path / "m", listener=stop_at(stop), **options)
        again = train(log, output=tmp_path / "m", resume=tmp_path / "c", **options)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert (again.reviews, again.best_pass, again.rows) == (whole.reviews, whole.best_pass, whole.rows)
        (tmp_path / "m").unlink()


def test_the_command_reports_it(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, events = str(tmp_path / "m"), tmp_path / "e"
    assert (
        ftprl(["train", str(log), "-o", out, "--bits", "14", "--passes", "19", "--json", "--events", str(events)]) == 0
    )
    shown, result = capsys.readouterr().err, read_events(events)[-1]
    assert "at most 19: every 20th row (every 10th of the first 2000) is held out to choose the number of" in shown
    assert "pass 1: held-out loss " in shown
    best = result["best_pass"]
    assert f"stopped after pass {result['pass'] - best}, as the held-out loss no longer falls; pass {best} has" in shown
    assert ftprl(["train", str(log), "-o", out, "--bits", "14", "--passes", "2", "--json", "-q"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert len(values["holdout_by_pass"]) == 2
    assert values["best_pass"] in (1, 2)


@pytest.mark.parametrize("order", ["given", "random"])
def test_rows_that_were_learned_before_are_no_predictions(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Coin flips with unique features, ten passes: the run is nowhere reported as better than guessing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows = [f"{rng.integers(2)},{','.join(f'v{k}' for k in rng.integers(0, 3000, 4))}\n" for _ in range(1500)]
    Path("flips.csv").write_text("y,a,b,c,d\n" + "".join(rows))
    options = ["--passes", "10", "--holdout", "0", "--receipt", "--order", order, "--json"]
    assert ftprl(["train", "flips.csv", "--label", "y", "-o", "m", "--events", "e.jsonl", *options]) == 0
    out = capsys.readouterr()
    texts = {"screen": out.err}
    result = json.loads(out.out)
    assert abs(result["improvement"]) < 5.0
    assert abs((result["check"] or {}).get("improvement") or 0.0) < 5.0
    for command in ("certify", "inspect"):
        assert ftprl([command, "m"]) == 0
        texts[command] = capsys.readouterr().out
    assert ftprl(["certify", "m", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["rounds"] == 10 * numbers["first_pass"]["rows"] == 15_000
    assert numbers["first_pass"]["loss"] > 0.95 * numbers["first_pass"]["baseline"]
    assert ftprl(["report", "e.jsonl", "-o", "r.html"]) == 0
    texts["report"] = html.unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", Path("r.html").read_text(), flags=re.DOTALL))
    model = Model.load("m")
    run = train("flips.csv", label="y", passes=10, holdout=0, receipt=True, order=order)
    texts |= {"model": model._repr_html_(), "run": f"{run} {run._repr_html_()}", "certificate": str(run.certificate)}
    texts["card"] = run.certificate._repr_html_()
    for name, text in texts.items():
        gains = [float(gain) for gain in re.findall(r"([\d.]+) % better(?! than the run|\.| \(scale)", text)]
        assert all(gain < 20.0 for gain in gains), (name, gains)  # the first few rows may be lucky
        assert "15,000 rows, each predicted" not in text, name
        assert "15000 rows learned, each predicted" not in text, name
    assert abs(model.progressive.improvement) < 5.0
    for name in ("certify", "certificate", "card", "report"):
        assert "in the first pass" in texts[name], name
        assert "Over all passes" in texts[name], name


@pytest.mark.parametrize("order", ["given", "random"])
def test_a_receipt_states_the_losses_of_the_first_pass(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The losses in receipts are verified over all runs of a model, and the answer uses them."""
    monkeypatch.chdir(tmp_path)
    data.clicks.generate(300, seed=1, path="a.vw")
    data.clicks.generate(200, seed=2, path="b.vw")
    options = {"bits": 10, "receipt": True, "order": order}
    first = train("a.vw", passes=3, holdout=5, output="a", **options)
    both = train("b.vw", resume="a", output="b", order=order)
    total = first.progressive.loss + both.progressive.loss
    certificate = certify_model(both.model)
    assert certificate.first_pass is not None
    assert certificate.first_pass["loss"] == pytest.approx(total, rel=1e-12)
    assert certificate.first_pass["rows"] == 240 + 200 < certificate.rounds == 3 * 240 + 200
    receipt = make_receipt(both.model, certificate)
    write_receipt("r", receipt)
    verdict = verify_receipt("r", ["a.vw", "b.vw"])
    assert verdict.confirmed, str(verdict)
    assert f"{total / certificate.first_pass['weight']:.4f} per row in the first pass" in verdict.answers[0].answer
    for change in ({"loss": 0.9 * total}, None):
        forged = copy.deepcopy(receipt)
        if change is None:
            del forged["certificate"]["first_pass"]
        else:
            forged["certificate"]["first_pass"] |= change
        write_receipt("f", {**forged, "sha256": digest(forged)})
        assert verify_receipt("f", ["a.vw", "b.vw"]).status == "refused"
    single = train("a.vw", **options)
    assert certify_model(single.model).first_pass is None
