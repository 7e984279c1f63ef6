"""verify: a true receipt is confirmed, any other is refused."""

from __future__ import annotations

import copy
import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear import Engine
from ftprl.receipt import certify_model, replay, verify_receipt
from ftprl.receipt.document import FORMAT_VERSION, digest, make_receipt, write_receipt
from ftprl.receipt.provenance import provenance_of
from ftprl.receipt.replay import Replay
from ftprl.receipt.replay_arrays import ReplayArrays
from laws.streams import LOSSES, OPTIONS, spec, stream
from oracles.batches import real

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log.vw"), 40, 3)
    log(Path("more.vw"), 21, 4)


def log(path: Path, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = [
        f"{rng.choice([-1, 1])} {rng.choice([1, 2, 0.5])} | a{rng.integers(9)} b:{rng.normal():.3f}\n"
        for _ in range(rows)
    ]
    path.write_text("".join(lines))


def receipt_of(model: ftprl.Model, **more: Any) -> dict[str, Any]:
    made = make_receipt(model, certify_model(model, **more))
    write_receipt("r.json", made)
    return made


def trained(data: Any = "log.vw", **more: Any) -> ftprl.Model:
    return ftprl.train(data, receipt=True, **{"bits": 8, **more}).model


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_replay_has_the_cores_bits(loss: str, options: str, several: bool) -> None:
    """The replay's sums are in the core's order, so it agrees to the bit; exp and log are the C library's."""
    more = {**OPTIONS[options]} | ({"scale": (0.03, 0.2, 1.0, 4.0, 9.0)} if several else {})
    settings = spec(loss, float64=False, **more)
    engine, twin = Engine(settings, receipt=True), Replay(settings, retire=False)
    batch = stream(8, loss, rows=60, float64=False)
    engine.learn(batch)
    twin.learn(batch)
    slots = engine.touched()
    for name, part in twin.parts_at(slots).items():
        np.testing.assert_array_equal(part.reshape(engine.parts[name][slots].shape), engine.parts[name][slots], name)
    np.testing.assert_array_equal(twin.intercept_columns, engine.intercept_columns)
    for k in range(len(settings.scales)):
        assert twin.sums_of(k) == engine.sums_of(k)
    assert twin.progress == engine.progress
    if loss == "logistic":
        np.testing.assert_array_equal(twin.calibration, engine.calibration)


RUNS: dict[str, dict[str, Any]] = {
    "one scale": {"scale": 0.1},
    "all scales": {},
    "float64": {"float64": True},
    "two passes": {"passes": 2, "scale": 0.1},
    "held out": {"holdout": 4},
    "penalties": {"scale": 0.3, "l1": 0.1, "l2": 0.2, "bounds": {"*": (-0.5, 0.4)}},
    "two scales": {"scale": (0.1, 1.0)},
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared"},
    "quantile": {"loss": "quantile", "tau": 0.3},
}


@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("name", RUNS)
def test_a_true_receipt_is_confirmed(name: str, radius: float | None) -> None:
    receipt_of(trained(**RUNS[name]), radius=radius)
    verdict = verify_receipt("r.json", "log.vw")
    assert verdict.confirmed, str(verdict)
    assert verdict.whole
    assert len(verdict.checks) > 60


def test_a_receipt_with_other_notes_is_refused() -> None:
    made = receipt_of(trained(loss="squared"))
    notes = made["certificate"]["caveats"]
    assert notes[0].startswith("fixed weights are compared on top of the mean of the labels up to each row")
    for changed in ([notes[0].replace("mean", "median"), *notes[1:]], ["these are the best", *notes[1:]], notes[1:]):
        made["certificate"]["caveats"] = changed
        write_receipt("r.json", {**made, "sha256": digest(made)})
        assert not verify_receipt("r.json", "log.vw").confirmed


def test_runs_one_after_another() -> None:
    ftprl.train("log.vw", receipt=True, bits=8, output="m", passes=2, holdout=5)
    receipt_of(ftprl.train(["more.vw", "log.vw"], resume="m", holdout=3).model)
    verdict = verify_receipt("r.json", ["log.vw", "more.vw", "log.vw"])
    assert verdict.confirmed, str(verdict)
    assert verdict.rows == 2 * 40 + 21 + 40
    assert not verify_receipt("r.json", ["log.vw", "log.vw", "more.vw"]).confirmed
    with pytest.raises(InvalidInput, match="the 3 files"):
        verify_receipt("r.json", ["log.vw", "more.vw"])


def test_bad_rows_that_were_left_out() -> None:
    text = Path("log.vw").read_text().splitlines()
    text[3], text[9], text[12] = "x y z", "1 | a:1e35", "7 | a"
    Path("bad.vw").write_text("\n".join(text) + "\n")
    for more in ({}, {"passes": 2, "holdout": 3}):
        model = trained("bad.vw", on_bad_row="skip", **more)
        made = receipt_of(model)
        assert made["runs"][0]["bad_rows"] == 3
        verdict = verify_receipt("r.json", "bad.vw")
        assert verdict.confirmed, str(verdict)


def test_packed_files_tables_and_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("log.vw.gz").write_bytes(gzip.compress(Path("log.vw").read_bytes()))
    receipt_of(trained("log.vw.gz"))
    assert verify_receipt("r.json", "log.vw.gz").confirmed
    refused = {one.name for one in verify_receipt("r.json", "log.vw").refused}
    assert refused == {"runs.0.files.0.bytes", "runs.0.files.0.sha256"}  # the same rows, other bytes
    Path("t.csv").write_text("y,a,n\n" + "".join(f"{'yes' if i % 3 else 'no'},w{i % 5},{i}\n" for i in range(30)))
    receipt_of(trained("t.csv", label="y", positive="yes"))
    assert verify_receipt("r.json", "t.csv").confirmed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("log.vw").read_bytes())))
    receipt_of(trained("-", format="vw"))
    assert verify_receipt("r.json", "log.vw").confirmed
    rows = Path("log.vw").read_text().splitlines()
    Path("other.vw").write_text("\n".join([*rows[:-1], "1 | a1 b:0.25"]) + "\n")
    assert any("batches" in one.name for one in verify_receipt("r.json", "other.vw").refused)


def test_scales_that_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    ftprl.data.clicks.generate(2100, seed=2, path="clicks.vw")
    made = receipt_of(trained("clicks.vw", bits=14))
    assert len(made["retired"]) == 4
    verdict = verify_receipt("r.json", "clicks.vw")
    assert verdict.confirmed, str(verdict)
    for change in ({"dropped": []}, {"dropped_row": 1024}):
        forged = copy.deepcopy(made)
        forged["certificate"]["rates"].update(change)
        write_receipt("f.json", {**forged, "sha256": digest(forged)})
        assert next(one.name for one in verify_receipt("f.json", "clicks.vw").refused).startswith("certificate.rates")


def noise_then_signal(path: Path, noise: int, rows: int) -> None:
    """Return rows with uninformative features, and then informative ones, which large scales learn at once."""
    rng = np.random.default_rng(5)
    first = [f"{rng.choice([-1, 1])} | n{rng.integers(30)}\n" for _ in range(noise)]
    names, signs = rng.integers(2000, size=rows), rng.choice([-1, 1], 2000)
    path.write_text("".join(first + [f"{signs[n]} | s{n}\n" for n in names.tolist()]))


def test_the_answer_about_learning_rates_is_about_the_scales_that_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dropped scales would have been far better here, so the answer must not include them."""
    noise_then_signal(Path("change.vw"), 2100, 6000)
    options = {"bits": 14, "order": "given"}
    every = ftprl.train("change.vw", receipt=True, **options).model
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    model = trained("change.vw", **options)
    spec = model.engine.spec
    losses = dict(zip(every.engine.spec.scales, every.engine.state["totals"].tolist(), strict=False))
    rates = receipt_of(model)["certificate"]["rates"]
    assert rates["dropped"] == list(spec.retired)
    assert rates["dropped_row"] == 2048
    assert rates["mixture"] > min(losses[scale] for scale in spec.retired) + 3 * rates["guaranteed"]
    assert rates["mixture"] <= min(losses[scale] for scale in spec.scales) + rates["guaranteed"]
    verdict = verify_receipt("r.json", "change.vw")
    assert verdict.confirmed
    answer = verdict.answers[1].answer
    assert ", of those that were kept: " in answer
    assert (
        "above the best scale that was kept. Nothing is known of the scales that were dropped, after row 2,048."
        in answer
    )
    assert answer in " ".join(str(certify_model(model)).split())
    assert answer in " ".join(page_of(model, "change.vw", options).split())


def page_of(model: ftprl.Model, data: str, options: dict[str, Any]) -> str:
    """Return the text of the run's report."""
    ftprl.train(data, receipt=True, events="run.jsonl", **options)
    assert run(["report", "run.jsonl", "-o", "run.html", "-q"]) == 0
    return Path("run.html").read_text()


def test_the_first_rows_alone_give_no_verdict(capsys: Capture) -> None:
    receipt_of(trained())
    verdict = verify_receipt("r.json", "log.vw", rows=20)
    assert verdict.status == "partial"
    assert not verdict.confirmed
    assert not verdict.whole
    assert not verdict.refused
    assert verdict.rows == 20
    assert "no verdict" in str(verdict)
    names = {one.name.split(".")[1] for one in verdict.checks if one.name.startswith("milestones.")}
    assert names == {"1", "2", "4", "8", "16"}
    made = json.loads(Path("r.json").read_text())
    for at, rows, status in ((3, 8, "refused"), (3, 7, "partial"), (4, 8, "partial"), (4, 16, "refused")):
        forged = copy.deepcopy(made)
        forged["milestones"][at]["loss"] *= 1 + 1e-6
        write_receipt("f.json", {**forged, "sha256": digest(forged)})
        assert verify_receipt("f.json", "log.vw", rows=rows).status == status
    forged = copy.deepcopy(made)
    forged["certificate"]["bound"] *= 0.5  # the headline, which the first rows say nothing about
    write_receipt("f.json", {**forged, "sha256": digest(forged)})
    assert run(["verify", "f.json", "log.vw", "--rows", "20"]) == 3
    assert "no verdict" in capsys.readouterr().out
    assert run(["verify", "f.json", "log.vw", "--rows", "20", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["status"] == "partial"
    assert run(["verify", "f.json", "log.vw", "--rows", "40"]) == 1
    assert run(["verify", "r.json", "log.vw", "--rows", "40"]) == 0


def test_a_model_that_the_receipt_is_not_about(capsys: Capture) -> None:
    trained(output="m")
    trained(output="other", scale=0.2)
    assert run(["certify", "m", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "log.vw", "--model", "m"]) == 0
    capsys.readouterr()
    assert run(["verify", "r.json", "log.vw", "--model", "other"]) == 1
    assert "REFUSED  model.sha256" in capsys.readouterr().out
    # An issuer who writes the digest of another model into the receipt is detected by its weights.
    made = json.loads(Path("r.json").read_text())
    changed_model = ftprl.load("m")
    changed_model.engine.put(
        changed_model.engine.touched()[:1], changed_model.engine.take(changed_model.engine.touched()[1:2])
    )
    changed_model.save("changed")
    made["model"]["sha256"] = ftprl.load("changed").digest()
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert run(["verify", "f.json", "log.vw", "--model", "changed"]) == 1
    assert "model.weights" in capsys.readouterr().out
    assert run(["verify", "f.json", "log.vw", "--model", "nothing"]) == 2


def test_a_receipt_of_another_version_cannot_be_checked(capsys: Capture) -> None:
    made = receipt_of(trained(scale=0.1))
    for change in ({"version": "0.0.1"}, {"format_version": 1}, {"hash_version": 77}):
        write_receipt("f.json", {**made, **change})
        assert run(["verify", "f.json", "log.vw"]) == 2
        error = capsys.readouterr().err
        assert "cannot be checked" in error
        assert ftprl.__version__ in error
        assert str(next(iter(change.values()))) in error
        assert len(error.splitlines()) == 1


def test_absurd_passes_are_refused_before_anything_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    made = receipt_of(trained(scale=0.1))
    learned: list[int] = []

    def learn(self: Replay, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        learned.append(len(batch))
        return np.ones(len(batch)), np.zeros(len(batch))

    monkeypatch.setattr(Replay, "learn", learn)
    made["runs"][0].update(passes=10**12, rows=40 * 10**12)
    write_receipt("f.json", {**made, "sha256": digest(made)})
    with pytest.raises(FtprlError, match="passes"):
        verify_receipt("f.json", "log.vw")
    assert learned == []
    made["runs"][0].update(passes=10_000, rows=10_000 * 50)  # not the rows of this file
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert not verify_receipt("f.json", "log.vw").confirmed
    assert sum(learned) <= 40


FORGED: list[Any] = [
    lambda r: r.update(version="\x1b[31m1.0"),
    lambda r: r["reading"].update(format="\x1b[2J"),
    lambda r: r["reading"].update(columns=[1]),
    lambda r: r["reading"].update(columns={"a": {}}),
    lambda r: r["reading"].update(sep=7),
    lambda r: r["reading"].update(positive=["\x1b]0;x\x07"]),
    lambda r: r["certificate"].update(caveats=["\x1b[31m"]),
    lambda r: r["certificate"].update(caveats="text"),
    lambda r: r["certificate"].update(loss="1"),
    lambda r: r["certificate"].update(scales={}),
    lambda r: r["certificate"].update(extra=1),
    lambda r: r["certificate"].pop("rounding"),
    lambda r: r["certificate"]["comparator"].update(kind="\x1b"),
    lambda r: r["milestones"][0].update(loss=None),
    lambda r: r["milestones"][0].update({"\x1b[31m": 1}),
    lambda r: r["runs"][0].update(holdout=1),
    lambda r: r["runs"][0]["files"][0].update(sha256="\x1b" * 64),
    lambda r: r["runs"].extend([{}] * 3),
    lambda r: r.update(calibration=[[1, 2]]),
    lambda r: r.update(calibration=[[-1.0, 0.0, 0.0]] * 20),
    lambda r: r.update(retired=["x"]),
    lambda r: r.update(model={"sha256": 1}),
    lambda r: r.update({"\x1b[31m": 1}),
    lambda r: r["spec"].update({"\x1b[31m": 1}),
    lambda r: r["spec"].update(loss="\x1b[31m"),
    lambda r: r["spec"].update(dim=2**40),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
def test_forged_fields_with_a_right_digest_are_one_clean_line(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    made = receipt_of(trained())
    FORGED[number](made)
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert run(["verify", "f.json", "log.vw"]) in (1, 2)
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, (*at, key))
    else:
        yield at


def changed(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return 0.01 if value is None else not value
    if isinstance(value, float):
        return value * (1 + 1e-6) if abs(value) > 1e-6 else value + 1e-6
    if isinstance(value, int):
        return value + 1
    return value[:-1] + ("0" if value[-1:] != "0" else "1")


def is_refused(made: dict[str, Any]) -> bool:
    write_receipt("f.json", made)
    try:
        return not verify_receipt("f.json", "log.vw").confirmed
    except FtprlError:
        return True


# Settings that do not matter for this stream: unused switches, error handling of absent bytes, and the model, which is
# compared only if it is passed. Any number of waiting rows above that of the data gives an equal order.
IDLE = {
    ("runs", 0, "order", "waiting"),
    ("runs", 0, "retire"),
    ("runs", 0, "skip"),
    ("spec", "stack"),
    ("reading", "positive"),
    ("model", "sha256"),
}


@pytest.mark.parametrize("several", [False, True])
def test_a_receipt_with_anything_changed_is_refused(several: bool) -> None:
    log(Path("log.vw"), 6, 5)
    made = receipt_of(trained(scale=(0.1, 1.0) if several else 0.1), radius=1.0)
    assert not is_refused(made)
    tried = 0
    for at in leaves(made):
        forged = copy.deepcopy(made)
        inside: Any = forged
        for key in at[:-1]:
            inside = inside[key]
        inside[at[-1]] = changed(inside[at[-1]])
        assert digest(forged) != forged["sha256"], f"{at}, its digest as it was"
        if at == ("sha256",) or at in IDLE:
            continue
        forged["sha256"] = digest(forged)
        assert is_refused(forged), f"{at}, with a digest made anew"
        tried += 1
    assert tried > 100


def test_data_with_any_byte_changed_is_refused() -> None:
    log(Path("log.vw"), 5, 5)
    receipt_of(trained(scale=0.1))
    raw = Path("log.vw").read_bytes()
    for at in range(len(raw)):
        Path("f.vw").write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        assert not verify_receipt("r.json", "f.vw").confirmed, at
    for other in (raw[:-1], raw + b"\n", raw + raw, b"1 | a\n"):
        Path("f.vw").write_bytes(other)
        assert not verify_receipt("r.json", "f.vw").confirmed


def test_exit_codes(capsys: Capture) -> None:
    trained(output="m")
    assert run(["certify", "m", "--radius", "1", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "log.vw"]) == 0
    assert "confirmed" in capsys.readouterr().out
    made = json.loads(Path("r.json").read_text())
    made["certificate"]["bound"] *= 0.99
    write_receipt("f.json", made)
    assert run(["verify", "f.json", "log.vw"]) == 1
    out = capsys.readouterr().out
    assert "REFUSED  sha256" in out
    assert "REFUSED  certificate.bound" in out
    assert run(["verify", "f.json", "log.vw", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in result["refused"]} == {"sha256", "certificate.bound"}
    assert run(["verify", "r.json", "more.vw"]) == 1
    for bad in (["m", "log.vw"], ["log.vw", "log.vw"], ["r.json", "nothing.vw"], ["r.json", "log.vw", "more.vw"]):
        assert run(["verify", *bad]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert run(["verify", "r.json", "log.vw", "--rows", "0"]) == 2
    assert run(["verify", "r.json", "log.vw", "--against", "m"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["reading"].update(nonsense=1),
        lambda r: r["reading"].update(format=3),
        lambda r: r["reading"].update(dim="many"),
        lambda r: r["spec"].update(scale="none"),
        lambda r: r["spec"].pop("beta"),
        lambda r: r["spec"].update(scale=[[1]]),
        lambda r: r["certificate"].update(comparator={"kind": "box", "radius": "wide"}),
        lambda r: r.update(certificate=[]),
        lambda r: r.pop("milestones"),
        lambda r: r.update(format_version=FORMAT_VERSION + 1),
        lambda r: r.update(runs=[{}]),
    ],
)
def test_what_is_no_receipt_is_refused_in_one_line(change: Any, capsys: Capture) -> None:
    made = receipt_of(trained(scale=0.1))
    change(made)
    write_receipt("f.json", made)
    assert run(["verify", "f.json", "log.vw"]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) <= 1
    for text in ("", "{", "[1]", '{"format": "ftprl-receipt"}', '{"format": NaN}', "\xff" * 5):
        Path("f.json").write_bytes(text.encode("latin-1"))
        assert run(["verify", "f.json", "log.vw"]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_against_another_model() -> None:
    trained(output="m")
    trained(scale=1.0, output="other")
    receipt_of(ftprl.load("m"), other="other")
    assert verify_receipt("r.json", "log.vw", other="other").confirmed
    with pytest.raises(InvalidInput, match="--against"):
        verify_receipt("r.json", "log.vw")
    assert not verify_receipt("r.json", "log.vw", other="m").confirmed


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, "auto"])
@pytest.mark.parametrize("name", ["a9a.libsvm.gz", "criteo80k.vw.gz"])
def test_real_receipts_are_confirmed(name: str, scale: Any) -> None:
    receipt_of(trained(str(real(name)), scale=scale, bits=20), radius=1.0)
    verdict = verify_receipt("r.json", str(real(name)))
    assert verdict.confirmed, str(verdict)


def test_real_receipts_are_confirmed_in_a_prefix() -> None:
    for name in ("rcv1_small.vw.gz", "criteo80k.vw.gz"):
        receipt_of(trained(str(real(name)), bits=18))
        assert verify_receipt("r.json", str(real(name)), rows=300).status == "partial"


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_a_receipt_does_not_depend_on_how_rows_came(scale: Any, tmp_path: Path) -> None:
    """Many coordinates, held-out rows, a resumed run, two files: equal bytes and numbers."""
    rng = np.random.default_rng(5)
    ids = np.sort(rng.integers(1, 2**22, size=(7000, 40)), axis=1)
    lines = [
        f"{1 if i % 3 else -1} " + " ".join(f"{n}:1" for n in sorted(set(row))) for i, row in enumerate(ids.tolist())
    ]
    (tmp_path / "all.libsvm").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.libsvm").write_text("\n".join(lines[:1500]) + "\n")
    (tmp_path / "b.libsvm").write_text("\n".join(lines[1500:]) + "\n")
    whole = ftprl.train(tmp_path / "all.libsvm", receipt=True, scale=scale, holdout=3, output=tmp_path / "whole").model
    stopped = {"checkpoint": tmp_path / "part", "every": 1000}
    with pytest.raises(KeyboardInterrupt):
        ftprl.train(tmp_path / "all.libsvm", receipt=True, scale=scale, holdout=3, listener=_stop_at(3000), **stopped)
    ftprl.train(tmp_path / "all.libsvm", resume=tmp_path / "part", output=tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()
    parts = [tmp_path / "a.libsvm", tmp_path / "b.libsvm"]
    cut = ftprl.train(parts, receipt=True, scale=scale, holdout=3).model
    assert provenance_of(whole) is not None
    assert provenance_of(cut) is not None
    assert provenance_of(cut).milestones == provenance_of(whole).milestones
    np.testing.assert_array_equal(cut.engine.own_sums(), whole.engine.own_sums())
    np.testing.assert_array_equal(cut.engine.own_sums(cut.engine.touched()), whole.engine.own_sums())


def _stop_at(rows: int) -> Any:
    def listen(event: Any) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= rows:
            raise KeyboardInterrupt

    return listen


def numbers_log(path: Path, rows: int) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, 3)) * [1, 10, 1] + [0, 50, 0]
    y = np.sign(X[:, 0] + rng.normal(size=rows))
    lines = (f"{b:g} | a:{x[0]:.4f} b:{x[1]:.4f} c:{x[2]:.4f} n{rng.integers(9)}\n" for b, x in zip(y, X, strict=True))
    path.write_text("".join(lines))


FAULTS: dict[str, dict[str, Any]] = {
    "no coin": {"without": "coin"},
    "no columns": {"without": "columns"},
    "no drift": {"without": "drift"},
    "no input of the coin": {"coin_input": False},
    "another beta": {"beta": 0.31},
    "no intercept": {"intercept": False},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_replay_with_a_fault_in_coin_or_columns_is_refused(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers_log(Path("numbers.vw"), 80)
    model = trained("numbers.vw")
    assert model.engine.spec.coin
    assert len(model.engine.saved_arrays["columns.facts"]) > 1
    receipt_of(model)
    assert verify_receipt("r.json", "numbers.vw").confirmed
    right = replay.settings_of

    def wrong(spec: Any) -> dict[str, Any]:
        settings = {**right(spec), **FAULTS[fault]}
        settings["experts"] = [name for name in settings["experts"] if name != settings.get("without")]
        return settings

    monkeypatch.setattr(replay, "settings_of", wrong)
    assert not verify_receipt("r.json", "numbers.vw").confirmed


STARTS = {"newton_A.P": 0, "newton_B.u": 0, "newton_D.u": 8, "mixture.w": 0, "mixture.facts": 3, "coin.intercept": 4}


@pytest.mark.parametrize("part", STARTS)
def test_a_replay_that_starts_elsewhere_is_refused(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers_log(Path("numbers.vw"), 80)
    receipt_of(trained("numbers.vw"))

    def elsewhere(*settings: Any, **more: Any) -> ReplayArrays:
        arrays = ReplayArrays(*settings, **more)
        arrays[part].flat[STARTS[part]] = 1.5 * arrays[part].flat[STARTS[part]] + 0.01
        return arrays

    monkeypatch.setattr(replay, "ReplayArrays", elsewhere)
    assert not verify_receipt("r.json", "numbers.vw").confirmed


@pytest.mark.parametrize("part", ["mixture.w", "newton_B.u", "coin.intercept"])
def test_a_model_that_mixes_otherwise_is_refused(part: str, capsys: Capture) -> None:
    numbers_log(Path("numbers.vw"), 80)
    made, model = receipt_of(trained("numbers.vw", output="m")), ftprl.load("m")
    array = model.engine.saved_arrays[part]
    array[:] = array if part == "coin.intercept" else array[::-1].copy()
    array[2] += 0.01 if part == "coin.intercept" else 0.0
    model.save("changed")
    made["model"]["sha256"] = ftprl.load("changed").digest()
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert run(["verify", "r.json", "numbers.vw", "--model", "m", "-q"]) == 0
    assert run(["verify", "f.json", "numbers.vw", "--model", "changed"]) == 1
    named = {"mixture.w": "model.mixture", "newton_B.u": "model.columns", "coin.intercept": "model.coin's intercept"}
    assert f"REFUSED  {named[part]}" in capsys.readouterr().out


def test_a_coin_that_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 512)
    ftprl.data.clicks.generate(700, seed=1, path="clicks.vw")
    made = receipt_of(trained("clicks.vw", bits=14, output="m"))
    assert made["spec"]["coin"]
    assert "coin" in made["dropped_experts"]
    assert verify_receipt("r.json", "clicks.vw", model="m").confirmed
    made["dropped_experts"] = []
    write_receipt("f.json", {**made, "sha256": digest(made)})
    assert [one.name for one in verify_receipt("f.json", "clicks.vw").refused] == ["dropped_experts"]
    more = ftprl.train("log.vw", resume="m", receipt=True).model  # goes on without it
    assert "coin" in more.engine.spec.dropped_experts
    receipt_of(more)
