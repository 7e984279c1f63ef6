"""Labels that arrive late: rows are predicted when they arrive and learned when their labels do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl.cli.app import run as command
from ftprl.data import Batch
from ftprl.errors import BadModel, FtprlError, InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.training import train
from ftprl.training.delay import Waiting
from ftprl.training.holdout import only_scored
from laws.learner_arrays import assert_arrays
from oracles.learner_twin import LearnerTwin

ROWS = 1500
BITS = 6
DIM = 2**BITS


def table(rows: int = ROWS, seed: int = 0) -> dict[str, list[Any]]:
    """Return columns with a label that depends on them, and a number to predict."""
    rng = np.random.default_rng(seed)
    user, x = rng.integers(0, 12, rows), rng.normal(size=rows).round(3)
    score = 0.5 * (user % 3) - 0.7 + x
    return {
        "user": [f"u{value}" for value in user],
        "x": x.tolist(),
        "y": [int(value) for value in rng.random(rows) < 1 / (1 + np.exp(-score))],
        "count": (3 + score + 0.3 * rng.normal(size=rows)).round(3).tolist(),
    }


def written(path: Path, columns: dict[str, list[Any]]) -> Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text(",".join(columns) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "rows.csv", table())


READING: dict[str, Any] = {"label": "y", "ignore": ["count"]}
CHOSEN: dict[str, Any] = {**READING, "bits": BITS}


def late_rows(rows: Batch, delay: int) -> list[tuple[Batch, int]]:
    """Return rows in the order of the protocol: predicted rows with weight 0, then learned ones, with their numbers."""
    ordered: list[tuple[Batch, int]] = []
    waiting: list[tuple[int, int]] = []
    single = [rows[r : r + 1] for r in range(len(rows))]
    for t, row in enumerate(single):
        ordered.append((only_scored(row, np.array([0])), t))
        waiting.append((t + delay, t))
        for due, number in sorted(entry for entry in waiting if entry[0] == t):
            ordered.append((single[number], number))
            waiting.remove((due, number))
    return ordered + [(single[number], number) for _, number in sorted(waiting)]


ADDED: list[dict[str, Any]] = [{"scale": (0.05, 0.1, 0.4), "l2": 0.01}, {"scale": "auto"}]


@pytest.mark.parametrize("delay", [1, 30, ROWS + 5])
@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("added", ADDED, ids=["no coin", "default"])
@pytest.mark.parametrize(("loss", "label"), [("logistic", "y"), ("absolute", "count")])
def test_several_scales_learn_as_the_twin_does(
    tmp_path: Path, loss: str, label: str, added: dict[str, Any], delay: int, float64: bool
) -> None:
    """With the log loss to the bit; drift sleeps where a label is late."""
    rows = 300
    path = written(tmp_path / "rows.csv", table(rows))
    reading = {"label": label, "ignore": [{"y": "count", "count": "y"}[label]], "loss": loss}
    run = train(path, delay=delay, predictions=tmp_path / "p.txt", bits=BITS, float64=float64, **reading, **added)
    batch = next(ftprl.data.open(path, **reading, dim=DIM, dtype="float64" if float64 else "float32").batches())
    twin, scores, late = LearnerTwin(run.model.engine.spec), np.empty(rows), {}
    for one, number in late_rows(batch, delay):
        score = np.empty(1)
        twin.learn(one, scores=score, late=late, numbers=[number])
        if one.weight[0] == 0.0:
            scores[number] = score[0]
    predicted = np.array([float(line) for line in (tmp_path / "p.txt").read_text().split()])
    shown = run.model.mean(scores)
    engine = run.model.engine
    if loss == "logistic":
        np.testing.assert_array_equal(predicted, np.clip(shown, 1e-15, 1 - 1e-15))
        for name in ("z", "R"):
            np.testing.assert_array_equal(engine.parts[name], getattr(twin.cells, name))
        assert_arrays(engine, twin)
    else:
        np.testing.assert_allclose(predicted, shown, rtol=1e-6, atol=1e-6)
        assert_arrays(engine, twin, rtol=1e-4, atol=1e-4)


def test_several_classes_do_not_depend_on_batches_threads_or_checkpoints(tmp_path: Path) -> None:
    columns = table()
    columns["kind"] = [f"k{min(i // 300, 2) if x < 0.3 else 3}" for i, x in enumerate(columns["x"])]
    path = written(tmp_path / "rows.csv", columns)
    options: dict[str, Any] = {"label": "kind", "loss": "softmax", "ignore": ["y", "count"], "bits": BITS}
    options |= {"delay": 50}
    runs = [train(path, threads=threads, predictions=tmp_path / f"p{threads}", **options) for threads in (0, 2)]
    assert runs[0].model.classes == ("k0", "k3", "k1", "k2")
    assert runs[0].model.state_digest() == runs[1].model.state_digest()
    assert (tmp_path / "p0").read_text() == (tmp_path / "p2").read_text()
    at_once = train(path, label="kind", loss="softmax", ignore=["y", "count"], bits=BITS)
    assert at_once.progressive_loss < runs[0].progressive_loss < 1.3  # the baseline with these labels has 1.8
    train(path, output=tmp_path / "whole", **options)
    seen: list[int] = []

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint":
            seen.append(event["rows"])
            if event["rows"] >= 300:
                raise KeyboardInterrupt

    files = {"checkpoint": tmp_path / "c", "every": 100}
    with pytest.raises(KeyboardInterrupt):
        train(path, listener=stop, **files, **options)
    assert seen[-1] < 400  # before the last class
    train(path, resume=tmp_path / "c", output=tmp_path / "m", **files)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(("loss", "label"), [("logistic", "y"), ("squared", "count"), ("absolute", "count")])
def test_one_scale_learns_as_rows_one_by_one(tmp_path: Path, loss: str, label: str) -> None:
    path = written(tmp_path / "rows.csv", table(400))
    other = {"y": "count", "count": "y"}[label]
    options = {"label": label, "ignore": other, "loss": loss}
    run = train(path, scale=0.1, bits=BITS, delay=40, predictions=tmp_path / "p.txt", **options)
    batch = next(ftprl.data.open(path, dim=DIM, **options).batches())
    engine, scores = Engine(Spec(loss=loss, scale=0.1, dim=DIM)), np.empty(400)
    for one, number in late_rows(batch, 40):
        if one.weight[0] == 0.0:
            scores[number] = engine.score(one)[0]
        else:
            engine.learn(one)
    assert run.model.state_digest() == Model(engine).state_digest()
    predicted = np.array([float(line) for line in (tmp_path / "p.txt").read_text().split()])
    shown = run.model.mean(scores)
    np.testing.assert_array_equal(predicted, np.clip(shown, 1e-15, 1 - 1e-15) if loss == "logistic" else shown)
    losses = run.model.engine.spec.scalar_loss().arrays(scores, batch.y)[0]
    assert run.progressive_loss == pytest.approx(losses.mean(), rel=1e-12)


def test_no_delay_is_the_ordinary_run_and_one_row_is_not(data: Path) -> None:
    usual = train(data, order="given", **CHOSEN)
    assert train(data, delay=0, order="given", **CHOSEN).model.state_digest() == usual.model.state_digest()
    assert train(data, delay=1, **CHOSEN).model.state_digest() != usual.model.state_digest()


def test_one_scale_with_the_same_delay_for_all_learns_the_usual_model(data: Path) -> None:
    usual = train(data, scale=0.1, order="given", **CHOSEN)
    for delay in (1, 77, 10**6):
        late = train(data, scale=0.1, delay=delay, **CHOSEN)
        assert late.model.state_digest() == usual.model.state_digest()
        assert late.progressive_loss != usual.progressive_loss


@pytest.mark.parametrize("delay", [50, 700])
def test_cuts_and_threads_change_nothing(data: Path, tmp_path: Path, delay: int) -> None:
    results = []
    for size in (1 << 10, 1 << 22):
        for threads in (1, 3):
            source = ftprl.data.open(data, block_size=size, names=True, dim=DIM, **READING)
            lines = tmp_path / "p.txt"
            run = train(source, threads=threads, predictions=lines, delay=delay, output=tmp_path / "m")
            results.append(((tmp_path / "m").read_bytes(), lines.read_bytes(), run.progressive))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("options", [{"delay": 50, "holdout": 7}, {"delay": 400}, {"delay": 3, "admit": 2}])
def test_a_resumed_run_gives_the_same_bytes(data: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    options = {**CHOSEN, **options}
    whole = train(data, output=tmp_path / "whole", predictions=tmp_path / "whole.txt", **options)

    class Stopped(Exception):
        pass

    for at in (300, 1200):

        def stop(event: dict[str, Any], at: int = at) -> None:
            if event["event"] == "checkpoint" and event["rows"] >= at:
                raise Stopped

        files = {"checkpoint": tmp_path / "c", "every": 300, "predictions": tmp_path / "p.txt"}
        with pytest.raises(Stopped):
            train(data, listener=stop, **files, **options)
        run = train(data, resume=tmp_path / "c", output=tmp_path / "m", **files)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert (tmp_path / "p.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
        assert run.progressive == whole.progressive


def test_a_checkpoint_does_not_depend_on_the_cut(data: Path, tmp_path: Path) -> None:
    kept = []
    for size in (1 << 10, 1 << 22):
        source = ftprl.data.open(data, block_size=size, names=True, dim=DIM, **READING)
        train(source, delay=400, checkpoint=tmp_path / "c", every=1000)
        model = Model.load(tmp_path / "c")
        kept.append({name: array.tolist() for name, array in model.waiting.items()})
        assert len(model.waiting["waiting.row"]) == 400
    assert kept[0] == kept[1]


@pytest.mark.parametrize("part", ["row", "indices", "expert_scores", "weight"])
def test_a_forged_checkpoint_is_refused(data: Path, tmp_path: Path, part: str) -> None:
    train(data, checkpoint=tmp_path / "c", every=1000, delay=400, **CHOSEN)
    model = Model.load(tmp_path / "c")
    name = f"waiting.{part}"
    old = model.waiting[name]
    model.waiting[name] = old[:-1] if part == "expert_scores" else old * 0 - (part != "indices")
    if part == "indices":
        model.waiting[name] = np.full_like(model.waiting[name], DIM)
    model.save(tmp_path / "c")
    with pytest.raises(BadModel, match="rows that wait"):
        train(data, resume=tmp_path / "c")


def test_rows_that_are_held_out_or_have_no_label_are_never_learned(tmp_path: Path) -> None:
    columns = table()
    columns["y"] = ["" if i % 5 == 0 else y for i, y in enumerate(columns["y"])]
    run = train(written(tmp_path / "rows.csv", columns), delay=20, holdout=4, **CHOSEN)
    labelled = [i for i in range(ROWS) if i % 5]
    held = [i for i in labelled if (i + 1) % 4 == 0]
    assert run.holdout is not None
    assert run.holdout.rows == len(held)
    assert run.progressive.rows == run.model.engine.progress.rows == len(labelled) - len(held)


def test_rows_that_cannot_be_learned_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    lines = [f"{7 if i % 11 == 4 else rng.choice([1, -1])} | a{rng.integers(9)}" for i in range(200)]
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    run = train(path, delay=3, bits=BITS, on_bad_row="skip", scale=0.1)
    clean = tmp_path / "clean.vw"
    clean.write_text("\n".join(line for line in lines if not line.startswith("7")) + "\n")
    assert run.bad_rows == sum(line.startswith("7") for line in lines)
    assert run.model.state_digest() == train(clean, bits=BITS, scale=0.1, order="given").model.state_digest()


def test_a_model_goes_on_with_more_data(tmp_path: Path) -> None:
    first, second = written(tmp_path / "1.csv", table(500, 1)), written(tmp_path / "2.csv", table(500, 2))
    train(first, output=tmp_path / "m", delay=40, **CHOSEN)
    run = train(second, resume=tmp_path / "m")
    assert run.model.history["rows"] == 1000
    assert run.model.history["progressive"][2] == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": -1}, "delay= needs a number of rows from 0 to 2"),
        ({"delay": True}, "delay= needs a number of rows from 0 to 2"),
        ({"delay": 3, "passes": 2}, "delay= is for one pass over a stream, got passes=2"),
        ({"delay": 3, "receipt": True}, "delay= learns rows later than they are predicted, which no receipt covers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(data: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FtprlError, match=message) as raised:
        train(data, **CHOSEN, **options)
    assert "\n" not in str(raised.value)


def test_a_checkpoint_keeps_its_delay(data: Path, tmp_path: Path) -> None:
    train(data, delay=5, checkpoint=tmp_path / "c", every=1000, **CHOSEN)
    with pytest.raises(InvalidInput, match="delay= needs to be what the checkpoint was made with, got 6 instead of 5"):
        train(data, resume=tmp_path / "c", delay=6)


def test_the_command_line_names_the_option_as_typed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, own = str(tmp_path / "m"), ["--label", "y", "--ignore", "count"]
    assert command(["train", str(data), *own, "--delay", "9", "-o", out, "--quiet"]) == 0
    assert Model.load(out).state_digest() == train(data, delay=9, **READING).model.state_digest()
    assert command(["train", str(data), *own, "--delay", "9", "--passes", "3", "-o", out]) == 2
    assert "--delay is for one pass over a stream, got --passes 3" in capsys.readouterr().err


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 12), st.data())
def test_every_row_is_predicted_and_then_learned_in_the_order(count: int, delay: int, draw: Any) -> None:
    rows = Batch.from_rows([{r: 1.0} for r in range(count)], y=np.ones(count))
    expected = [(number, float(one.weight[0])) for one, number in late_rows(rows, delay)]
    waiting, actual, at = Waiting(delay), list[tuple[int, float]](), 0
    while at < len(rows):
        end = draw.draw(st.integers(at + 1, len(rows)))
        order = waiting.order(rows[at:end])
        actual += zip(order.rows.indices.tolist(), order.rows.weight.tolist(), strict=True)
        waiting.keep(order, at)
        if draw.draw(st.booleans()):
            saved, waiting = waiting.tensors(), Waiting(delay)
            waiting.restore(saved, len(rows), end)
        at = end
    for batch, _ in waiting.rest():
        actual += zip(batch.indices.tolist(), batch.weight.tolist(), strict=True)
    assert actual == expected
    assert len(waiting) == 0


def test_inspect_shows_late_labels_and_losses_at_arrival(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = train(data, output=tmp_path / "m", delay=20, **CHOSEN).progressive
    assert command(["inspect", str(tmp_path / "m")]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "20 rows after their row" in lines["labels"]
    assert f": log loss {end.mean:.6f}, {end.improvement:.1f} % better than guessing" in lines["progressive"]
    assert float(lines["baseline"].split()[1]) == pytest.approx(end.baseline_mean, abs=1e-6)
