"""train --receipt, run.certificate, certify: stored data, output and errors."""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.data.source import BatchDigest
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.receipt import NotProved, certify_model, make_receipt, provenance, verify_receipt, write_receipt
from ftprl.receipt.certificate import box_certificate
from ftprl.receipt.document import digest
from ftprl.receipt.provenance import Provenance, provenance_of
from ftprl.receipt.replay import Replay
from ftprl.runlog import events
from laws.streams import stream

Capture = pytest.CaptureFixture[str]
BITS = {"bits": 10}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log.vw"), 400, 3)
    log(Path("more.vw"), 150, 4)


def log(path: Path, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"a{v} b{w}" for v, w in zip(rng.zipf(1.6, rows) % 20, rng.integers(0, 5, rows), strict=True)]
    labels = np.where(rng.random(rows) < 0.4, 1, -1)
    path.write_text("".join(f"{y} | {a}\n" for y, a in zip(labels, names, strict=True)))


def train(data: Any = "log.vw", **more: Any) -> ftprl.Run:
    return ftprl.train(data, receipt=True, **{**BITS, **more})


def test_a_receipt_is_not_kept_unless_it_is_asked_for() -> None:
    plain = ftprl.train("log.vw", **BITS)
    assert provenance_of(plain.model) is None
    assert "receipt" not in plain.events[-1]
    with pytest.raises(InvalidInput, match="--receipt"):
        _ = plain.certificate
    with pytest.raises(InvalidInput, match="--receipt"):
        certify_model(plain.model)


def test_the_receipt_changes_nothing_that_is_learned() -> None:
    with_one, without = train(), ftprl.train("log.vw", **BITS)
    assert with_one.progressive == without.progressive
    assert with_one.model.engine.spec == without.model.engine.spec
    assert with_one.model.engine.spec.coin
    assert with_one.model.engine.spec.dense
    np.testing.assert_array_equal(with_one.model.weights(), without.model.weights())
    np.testing.assert_array_equal(with_one.model.predict("log.vw"), without.model.predict("log.vw"))


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_events_tell_the_receipt(scale: Any) -> None:
    run = train(scale=scale, events="run.jsonl")
    read = events.read_events("run.jsonl")
    assert read[0]["receipt"] is True
    progress = [event for event in read if event["event"] == "progress"]
    with_one = [event for event in progress if "receipt" in event]
    assert [event["rows"] for event in with_one] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    for event in [*with_one, read[-1]]:
        receipt = event["receipt"]
        assert receipt["regret"] <= receipt["tight"] + 1e-6 <= receipt["bound"] + 2e-6 <= receipt["theorem"] + 3e-6
        assert len(event["calibration"]) == 20
        assert sum(bin[0] for bin in event["calibration"]) == receipt["weight"] == receipt["rows"]
    end = read[-1]
    assert end["receipt"]["loss"] == run.progressive.loss
    assert end["receipt"]["regret"] == pytest.approx(run.certificate.regret, rel=1e-9)
    assert end["coordinates_by"] == ("rows" if scale == "auto" else "gradients")
    for key in ("regret", "bound"):
        total = sum(group[key] for group in end["coordinates"]) + end["receipt"]["shared"][key]
        assert total == pytest.approx(end["receipt"][key], rel=1e-9)
    total = sum(group["post_hoc"] for group in end["coordinates"])
    assert total == pytest.approx(end["receipt"]["post_hoc"])
    raw = Path("log.vw").read_bytes()
    assert end["digests"] == [{"file": "log.vw", "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}]


def test_calibration_is_that_of_the_predictions() -> None:
    engine = Engine(Spec(dim=23, float64=True), receipt=True)
    batch = stream(4)
    scores = np.empty(len(batch))
    engine.learn(batch, scores=scores)
    learned = (batch.weight > 0) & (batch.y == batch.y)
    p, y, w = 1 / (1 + np.exp(-scores[learned])), batch.y[learned], batch.weight[learned]
    bins = np.minimum((p * 20).astype(int), 19)
    assert engine.calibration is not None
    for column, values in enumerate((w, w * p, w * (y > 0))):
        np.testing.assert_allclose(engine.calibration[:, column], np.bincount(bins, values, minlength=20), rtol=1e-9)
    assert Engine(Spec(loss="squared", dim=4), receipt=True).calibration is None


def test_seen_groups_count_rows() -> None:
    r = train(scale="auto")
    names: dict[str, int] = {}
    for row in Path("log.vw").read_text().splitlines():
        for name in set(row.split("| ")[1].split()):
            names[name] = names.get(name, 0) + 1
    actual = {group["seen_from"]: group["count"] for group in r.certificate.coordinates if group["seen_from"]}
    expected: dict[float, int] = {}
    for count in names.values():
        low = 2.0 ** (count.bit_length() - 1)
        expected[low] = expected.get(low, 0) + 1
    assert actual == expected


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_save_load_and_resume_keep_the_receipt_to_the_bit(scale: Any) -> None:
    whole = train(scale=scale, output="whole", passes=2, holdout=7)

    class Stop(Exception):
        pass

    def stop(event: Any) -> None:
        if event["event"] == "checkpoint" and event["rows"] == 500:
            raise Stop

    with pytest.raises(Stop):
        train(scale=scale, checkpoint="part", every=100, passes=2, holdout=7, listener=stop, output="again")
    ftprl.train("log.vw", resume="part", output="again")
    assert Path("again").read_bytes() == Path("whole").read_bytes()
    loaded = ftprl.load("whole")
    assert provenance_of(loaded) == provenance_of(whole.model)
    assert certify_model(loaded).to_dict() == whole.certificate.to_dict()


def test_a_checkpoint_can_be_certified_but_makes_no_receipt(capsys: Capture) -> None:
    train(checkpoint="part", every=100)
    assert run(["certify", "part"]) == 0
    assert run(["certify", "part", "-o", "r.json"]) == 2
    assert "finish the run" in capsys.readouterr().err
    assert not Path("r.json").exists()


def test_more_data_is_one_stream() -> None:
    first = train(output="m", order="given")
    second = ftprl.train("more.vw", resume="m")
    assert provenance_of(second.model) is not None
    assert [r["rows"] for r in provenance_of(second.model).runs] == [400, 150]
    assert second.certificate.rounds == 550
    assert [entry["read"] for entry in provenance_of(second.model).milestones][-2:] == [128, 256]  # of the first run
    both = train(["log.vw", "more.vw"], order="given").certificate
    assert second.certificate.regret == both.regret
    assert first.certificate.rounds == 400 or first.model is second.model


def test_a_receipt_cannot_begin_or_end_on_the_way() -> None:
    train(output="with")
    ftprl.train("log.vw", output="without", **BITS)
    for path, receipt in (("with", False), ("without", True)):
        with pytest.raises(InvalidInput, match="from the first row on"):
            ftprl.train("more.vw", resume=path, receipt=receipt)


def test_retired_scales_leave_the_others_numbers_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    ftprl.data.clicks.generate(5000, seed=2, path="clicks.vw")
    fewer = train("clicks.vw", scale="auto", bits=14)
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2**17)
    all_of_them = train("clicks.vw", scale="auto", bits=14)
    kept = fewer.model.engine.spec.scales
    assert len(kept) == 4
    names = ("scale", "loss")
    before = {row["scale"]: row for row in all_of_them.certificate.scales}
    for row in fewer.certificate.scales:
        assert [row[n] for n in names] == [before[row["scale"]][n] for n in names]
    k = all_of_them.model.engine.spec.scales.index(kept[0])
    assert fewer.model.engine.sums_of(0) == all_of_them.model.engine.sums_of(k)


def test_standard_input_has_a_digest_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("log.vw").read_bytes())))
    record = provenance_of(train("-", format="vw").model)
    assert record is not None
    digest = BatchDigest()
    source = ftprl.data.open("log.vw", dim=2**10)
    for batch in source.batches():
        for part in batch.cut(7):
            digest.update(part)
    assert record.runs[0]["files"] is None
    assert record.runs[0]["batches"] == digest.result()


def test_against_another_model(capsys: Capture) -> None:
    train(output="a")
    ftprl.train("log.vw", output="b", scale=1.0, **BITS)
    assert run(["certify", "a", "--against", "b", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["comparator"]["kind"] == "model"
    assert printed["regret"] <= printed["bound"] <= printed["theorem"]
    ftprl.train("log.vw", output="c", bits=9)
    assert run(["certify", "a", "--against", "c"]) == 2
    assert "expected dim=1024, got 512" in capsys.readouterr().err
    train(output="bounded", bounds={"*": (-0.01, 0.01)}, scale=0.1)
    assert run(["certify", "bounded", "--against", "b"]) == 2
    assert "within the model's bounds" in capsys.readouterr().err
    assert run(["certify", "a", "--against", "b", "--radius", "1"]) == 2
    assert run(["certify", "a", "--radius", "-1"]) == 2
    assert run(["certify", "a", "--exact", "more.vw"]) == 2
    assert run(["certify", "log.vw"]) == 2
    assert run(["certify", "nothing"]) == 2


def test_a_weight_times_a_value_beyond_the_range_is_refused_when_it_is_read(capsys: Capture) -> None:
    Path("far.vw").write_text("1 | a\n" + "-1 1e20 | b a:1e20\n" + "1 | a\n" * 8)
    for more in ([], ["--loss", "squared"], ["--float64", "--scale", "0.1"]):
        assert run(["train", "far.vw", "-o", "far", "--receipt", "-q", *more]) == 2
        error = capsys.readouterr().err
        assert "far.vw:2: weight times value needs to be within 1e30, got 1" in error
        assert len(error.splitlines()) == 1
    ftprl.train("far.vw", output="far", receipt=True, on_bad_row="skip", **BITS)
    assert run(["certify", "far", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "far.vw", "--model", "far", "-q"]) == 0


@pytest.mark.parametrize(
    ("loss", "rows"), [("logistic", "1 | a:9e29\n-1 | a:9e29\n"), ("squared", "1e29 | a\n-1e29 | a\n2 | a:1e9\n")]
)
@pytest.mark.parametrize("scale", ["0.1", "auto"])
def test_gradients_that_a_cell_may_have_cut_have_no_certificate(
    loss: str, rows: str, scale: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    Path("far.vw").write_text(rows * 20)
    command = ["train", "far.vw", "--loss", loss, "--order", "given", "-o", "far", "--receipt", "-q", "--scale", scale]
    assert run(command) == 0
    assert run(["certify", "far", "-o", "r.json"]) == 1
    error = capsys.readouterr().err
    assert "no certificate: gradients up to " in error
    assert len(error.splitlines()) == 1
    with monkeypatch.context() as forger:
        forger.setattr("ftprl.receipt.certify.cut_gradients", lambda *_: None)
        assert run(["certify", "far", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "far.vw"]) == 1
    assert "REFUSED  certificate: no gradient was cut" in capsys.readouterr().out
    assert run([*command, "--float64"]) == 0  # which has room for them
    assert run(["certify", "far", "-o", "r.json"]) == 0


OTHERS: dict[str, dict[str, Any]] = {
    "positive": {"positive": "no"},
    "seed": {"seed": 7},
    "loss": {"loss": "hinge"},
    "columns": {"categorical": "a"},
    "ngrams": {"ngrams": 3},
    "interactions": {"interactions": "a:t"},
    "missing": {"missing": "ignore"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_that_reads_the_data_otherwise_is_no_comparison(name: str, capsys: Capture) -> None:
    """In a model that reads the data differently, weights would be of other features, or of the other class."""
    lines = [f"{'yes' if i % 3 else 'no'},{i % 7},word{i % 5} and\n" for i in range(40)]
    Path("t.csv").write_text("y,a,t\n" + "".join(lines))
    usual = {"label": "y", "positive": "yes", "text": "t", "ngrams": 2, "order": "given", **BITS}
    ftprl.train("t.csv", output="a", receipt=True, **usual)
    ftprl.train("t.csv", output="b", scale=1.0, **usual)
    ftprl.train("t.csv", output="c", **{**usual, **OTHERS[name]})
    assert run(["certify", "a", "--against", "b", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "t.csv", "--against", "b", "-q"]) == 0
    capsys.readouterr()
    for command in (["certify", "a"], ["verify", "r.json", "t.csv"]):
        assert run([*command, "--against", "c"]) == 2
        error = capsys.readouterr().err
        assert f"c: expected {name}=" in error
        assert "compare models that read the data in the same way" in error
        assert len(error.splitlines()) == 1


def test_a_model_made_by_hand_has_a_certificate() -> None:
    engine = Engine(Spec(dim=23, lower=-1.0, upper=1.0), receipt=True)
    engine.learn(stream(2, float64=False))
    assert box_certificate(engine, 1.0).rounds == engine.progress.rows
    assert certify_model(Model(engine)).rounds == engine.progress.rows


def test_a_regret_above_the_total_loss_is_noted_as_not_informative() -> None:
    model = train(output="m").model
    wide, narrow = certify_model(model, radius=100.0), certify_model(model, radius=1e-3)
    assert wide.regret > wide.loss
    assert "not informative" in wide.caveats[0]
    assert narrow.regret < narrow.loss
    assert not any("not informative" in note for note in narrow.caveats)


def test_the_floor_is_proved_of_the_best_weights_too(capsys: Capture) -> None:
    model = train(output="m", scale="auto").model
    certificate = certify_model(model, exact="log.vw")
    lengths = [point["length"] for point in certificate.points]
    assert lengths == sorted(lengths)
    assert len(lengths) > 2
    for point in certificate.points:
        assert certificate.floor(point["length"]) * certificate.weight <= point["at_least"] <= point["loss"]
        assert point["loss"] - point["at_least"] < 1e-3 * point["loss"]
    assert run(["certify", "m", "--exact", "log.vw", "--picture", "floor.png", "-o", "r"]) == 0
    assert "for the best of this length" in capsys.readouterr().out
    assert Path("floor.png").read_bytes()[:4] == b"\x89PNG"
    assert run(["verify", "r", "log.vw", "--model", "m", "-q"]) == 0


@pytest.mark.parametrize("norm", [1, "2", float("inf")])
def test_lengths_in_other_norms(norm: Any, capsys: Capture) -> None:
    model = train(output="m").model
    certificate = certify_model(model, norm=norm)
    assert certificate.norm == f"{norm}"
    write_receipt("r", make_receipt(model, certificate))
    assert verify_receipt("r", "log.vw").confirmed
    assert run(["certify", "m", "--norm", f"{norm}", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["floor"]
    assert printed["norm"] == f"{norm}"
    assert printed["beaten_length"] == certificate.beaten_length
    for bad in (3, True, "two", None):
        with pytest.raises(InvalidInput, match="norm needs"):
            certify_model(model, norm=bad)  # type: ignore[arg-type]


def test_the_four_questions_come_first(capsys: Capture) -> None:
    train(output="m", scale="auto")
    assert run(["certify", "m"]) == 0
    out = capsys.readouterr().out
    positions = [
        out.index(text)
        for text in (
            "Better than guessing?",
            "Would another learning rate have been better?",
            "Would other fixed weights have been better?",
            "details: regret and its bounds",
            "best per-coordinate bound",
        )
    ]
    assert positions == sorted(positions)


def test_bounds_above_the_total_loss_are_one_line() -> None:
    """A bound above the total loss is reported with the length up to which the floor is informative."""
    model = train(output="m").model
    wide, narrow = str(certify_model(model, radius=100.0)), str(certify_model(model, radius=1e-3))
    assert "bounds are not shown: they are above the total loss" in wide
    assert "use the floor above, up to length" in wide
    assert "  theorem's bound  " not in wide
    assert "  theorem's bound  " in narrow
    assert "its bounds are above" not in narrow


def test_weights_with_penalties_bounds_and_offsets_have_floors() -> None:
    Path("numbers.vw").write_text("".join(f"{10 + i % 7} {1 + i % 3} | a{i % 7}:0.5 b\n" for i in range(200)))
    for more in ({"l1": 0.1}, {"l2": 0.1}, {"bounds": {"*": (-0.1, 0.1)}}, {"loss": "squared"}, {"loss": "absolute"}):
        data = "numbers.vw" if "loss" in more else "log.vw"
        run_ = train(data, output="m", **more)
        certificate = run_.certificate
        assert certificate.floor(0.1) > 0.0
        assert ("on top of" in str(certificate)) == ("loss" in more)
        write_receipt("r", make_receipt(run_.model, certify_model(run_.model)))
        assert verify_receipt("r", data).confirmed


def test_the_floor_is_logged() -> None:
    r = train(scale="auto")
    logged = r.events[-1]["floor"]
    assert logged["beaten_length"] == pytest.approx(r.certificate.beaten_length)
    assert r.events[-1]["rates"] == {**(r.certificate.rates or {}), "weight": r.certificate.baseline["weight"]}


def test_the_certificate_prints_and_is_json(capsys: Capture) -> None:
    train(output="m")
    assert run(["certify", "m", "--radius", "0.5"]) == 0
    out = capsys.readouterr().out
    for word in (
        "total loss",
        "regret at most",
        "bound",
        "best per-coordinate bound",
        "best one-rate bound / best per-coordinate bound",
        "note:",
    ):
        assert word in out
    assert run(["certify", "m", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    keys = set(ftprl.Certificate.__dataclass_fields__) - {"history", "loose", "delays", "in_expectation"}
    of_a_set = {"worst_case", "closed_form", "closed_form_strong", "proven_ratio", "proven_regret_ratio", "ratio_of"}
    assert keys - of_a_set <= set(printed)
    assert printed["comparator"] == {"kind": "weights", "nonzero": printed["comparator"]["nonzero"]}


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("milestones"),
        lambda r: r["runs"][0].update(passes=0),
        lambda r: r["runs"][0].update(files=None),
        lambda r: r["runs"][0].pop("skip"),
        lambda r: r["runs"][0]["files"][0].update(bytes=-1),
        lambda r: r["runs"][0]["files"][0].update(sha256="ab"),
        lambda r: r["milestones"][0].pop("read"),
        lambda r: r.update(runs=3),
    ],
)
def test_a_record_that_no_training_makes(change: Any) -> None:
    record = provenance_of(train().model)
    assert record is not None
    plain = json.loads(json.dumps(record.to_dict()))
    assert Provenance.from_dict(plain).to_dict() == plain
    change(plain)
    with pytest.raises(InvalidInput):
        Provenance.from_dict(plain)


def test_a_model_with_a_damaged_calibration() -> None:
    r = train(output="m")
    assert r.model.engine.calibration is not None
    r.model.engine.calibration[0, 1] = -1.0
    r.model.save("broken")
    with pytest.raises(BadModel):
        ftprl.load("broken")


def test_a_model_may_be_resumed_thousands_of_times() -> None:
    """The header is limited to 1 MB; runs are stored beside it, and too many are refused before learning."""
    Path("few.vw").write_text("1 | a\n-1 | b\n")
    train("few.vw", output="m")
    size = Path("m").stat().st_size
    for _ in range(10):
        ftprl.train("few.vw", resume="m", output="m")
    assert Path("m").stat().st_size - size < 10 * 400
    model = ftprl.load("m")
    record = provenance_of(model)
    assert record is not None
    assert len(record.runs) == 11
    for _ in range(5000):
        record = record.with_run(record.runs[-1])
    model.provenance = record.to_dict()
    model.save("m")
    again = ftprl.train("few.vw", resume="m", output="m").model
    assert len(provenance_of(ftprl.load("m")).runs) == 5012  # type: ignore[union-attr]
    assert certify_model(again).rounds == 24


def test_what_a_receipt_has_no_room_for_is_refused_before_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    train(output="m")
    monkeypatch.setattr(provenance, "MOST_RUNS", 1)
    monkeypatch.setattr(Engine, "learn", None)
    with pytest.raises(InvalidInput, match="at most 1 runs"):
        ftprl.train("more.vw", resume="m")
    with pytest.raises(InvalidInput, match="passes"):
        train(passes=10_001)


def test_a_model_whose_provenance_is_forged_is_refused_in_one_line(capsys: Capture) -> None:
    train(output="m")
    for change in (
        {"runs": "x"},
        {"milestones": [{}]},
        {"milestones": None},
        {"\x1b": 1},
        {"stream": [], "trail": []},
    ):
        model = ftprl.load("m")
        model.provenance = {**(model.provenance or {}), **change}
        model.save("forged")
        assert run(["certify", "forged"]) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "\x1b" not in error


def test_numbers_that_contradict_the_theorem_are_not_certified(capsys: Capture) -> None:
    """A model whose sums were changed by hand: exit code 1 and one line."""
    model = train(output="m").model
    for name, factor in (("linear", 3.0), ("stability", -2.0)):
        forged = ftprl.load("m")
        forged.engine.state["sums"][{"linear": 0, "stability": 2}[name]] *= factor
        if name == "linear":
            forged.engine.state["sums"][0] = np.abs(forged.engine.state["sums"][0]) + 1e9
        forged.save("forged")
        with pytest.raises(NotProved, match="by more than rounding"):
            certify_model(ftprl.load("forged"))
        assert run(["certify", "forged", "-o", "r.json"]) == 1
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "no certificate" in error
        assert not Path("r.json").exists()
    assert certify_model(model).rounds == 400


def absorbed_by_float32(loss: str, rows: int) -> list[str]:
    """Train on a first row beside which a float32 absorbs all other gradients; return how to certify the model."""
    first, other = ("10000000 | a\n", "1 | a\n") if loss == "squared" else ("1 1000000 | a\n", "-1 0.03 | a\n")
    Path("out.vw").write_text(first + other * rows)
    return [] if loss == "squared" else ["--radius", "0.5"]


def certify_and_verify_absorbed(loss: str, rows: int, scale: str) -> None:
    """The regret equals that of the predictions, no bound is below it, and the receipt is confirmed."""
    compared = absorbed_by_float32(loss, rows)
    command = ["train", "out.vw", "--loss", loss, "--bits", "4", "--no-intercept", "--receipt", "--scale", scale, "-q"]
    assert run([*command, "-o", "o"]) == 0
    assert run(["certify", "o", *compared, "-o", "o.receipt"]) == 0
    made = json.loads(Path("o.receipt").read_text())["certificate"]
    assert made["regret"] <= made["tight"] + made["rounding"]
    assert made["tight"] <= made["bound"] + made["rounding"]
    if scale != "auto":  # learned again with all digits kept: the sums of the receipt against sums of single rows
        engine, regrets = ftprl.linear.Engine(ftprl.load("o").engine.spec), []
        own = engine.spec.scalar_loss()
        replay = Replay(engine.spec, retire=False)
        candidates = [-0.5, 0.5] if compared else [float(ftprl.load("o").engine.weights().sum())]
        for rows_read in ftprl.data.open("out.vw", dim=16, loss=loss).batches():
            losses = np.empty(len(rows_read))
            engine.learn(rows_read, losses=losses)
            offsets, _ = replay.learn_offsets(rows_read)
            fixed = [own.arrays(offsets + u * rows_read.values, rows_read.y)[0] for u in candidates]
            regrets.append(rows_read.weight * (losses - np.array(fixed)))
        true_regret = max(math.fsum(row) for row in np.concatenate(regrets, axis=1).tolist())
        assert true_regret <= made["regret"] + made["rounding"]
    assert run(["verify", "o.receipt", "out.vw", "--model", "o", "-q"]) == 0


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("scale", ["0.1", "auto"])
def test_the_command_of_a_stream_that_float32_absorbs(loss: str, scale: str) -> None:
    certify_and_verify_absorbed(loss, 5_000, scale)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "rows"), [("squared", 100_000), ("absolute", 400_000)])
@pytest.mark.parametrize("scale", ["0.1", "auto"])
def test_the_whole_stream_that_float32_absorbs(loss: str, rows: int, scale: str) -> None:
    certify_and_verify_absorbed(loss, rows, scale)


def test_a_broken_chain_is_refused_by_verify() -> None:
    model = train(scale=0.1).model
    made = make_receipt(model, certify_model(model))
    made["certificate"]["regret"] = made["certificate"]["bound"] + 10 * made["certificate"]["rounding"] + 1.0
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert "certificate: each bound holds" in {one.name for one in verify_receipt("f.json", "log.vw").refused}
