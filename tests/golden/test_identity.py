"""Models, predictions and receipts are, bit for bit, those recorded in identity.json.

A rewrite that must not change results is checked against this record, and with compare_builds.py against a build from
before it: every labelled data set with every loss that its labels allow, with one scale and with eight, with and
without a receipt, and one run for each other way to train. Only the public API, the command line and the documented
layout of the model file are used, so that the test survives any move of modules. The record has the runs that take no
time; compare_builds.py has them all.

Results depend on the C library (exp, log1p) and on NumPy. The record says on which platform it was made, and the tests
are skipped on another. To record anew, on purpose, with the version of ftprl that is installed:

    python tests/golden/test_identity.py

`file_format_may_differ` in the record is set to true by hand when the model file itself has to change: then its tensors
are still compared, but not the bytes of the whole file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
RECORD = Path(__file__).parent / "identity.json"
CLICKS, CLICK_ROWS = "clicks.vw", 200_000  # long enough for scales to be retired, which begins after 2^17 rows
BITS = 18
STOP = 10_000  # rows after which an interrupted run stops
CHECKPOINT_EVERY = 3_000

NUMBER = ("squared", "absolute", "quantile", "huber")
TWO_CLASSES = ("logistic", "hinge", "squared_hinge")
SETS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {  # file, how it is read, losses
    "criteo80k": ("criteo80k.vw.gz", {}, TWO_CLASSES + NUMBER),
    "a9a": ("a9a.libsvm.gz", {}, TWO_CLASSES + NUMBER),
    "a9a.t": ("a9a.t.libsvm.gz", {}, TWO_CLASSES + NUMBER),
    "rcv1_small": ("rcv1_small.vw.gz", {}, TWO_CLASSES + NUMBER),
    "elec": ("elec.csv.gz", {"label": "class"}, (*TWO_CLASSES, *NUMBER, "poisson")),  # labels 1 and 0
    "bank": ("bank.csv.gz", {"label": "y", "sep": ";"}, TWO_CLASSES),  # labels are words
    "sms": ("sms.tsv.gz", {"header": False, "label": "1", "text": ["2"], "positive": "spam"}, TWO_CLASSES),
    "diamonds": ("diamonds.csv.gz", {"label": "price"}, (*NUMBER, "poisson")),
    "bikes": (
        "bikes.csv.gz",
        {"label": "bikers", "categorical": ["season", "hr", "weekday"]},
        (*NUMBER, "poisson"),
    ),
    "visits": ("visits.csv.gz", {"label": "mdvis"}, (*NUMBER, "poisson")),
    "clicks": (CLICKS, {}, ("logistic", "squared")),
}
ONE: dict[str, Any] = {"scale": 0.1}
QUICK_SETS = ("rcv1_small", "sms", "bikes")
CERTIFIED = (
    "sms logistic",
    "bikes poisson",
    "holdout",
    "passes and holdout",
    "bounds and l1",
    "float64",
    "weights",
)


@dataclass(frozen=True)
class Case:
    """One training run. `certify` adds the numbers of its certificates, against its own weights and a box."""

    name: str
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)
    certify: bool = False
    interrupt: bool = False  # stop after a checkpoint, then resume from it
    more: str | None = None  # a second data set, learned by resuming from the finished model
    quick: bool = False

    def read(self) -> dict[str, Any]:
        """All options of `train`."""
        return {"bits": BITS, "order": "given", **SETS[self.data][1], **self.options}


def _matrix() -> Iterator[Case]:
    """Return cases of every data set and loss that fits its labels, with one scale and eight, without and with a
    receipt.
    """
    for data, (_, _, losses) in SETS.items():
        for loss in losses if data != "clicks" else ():
            options = {"loss": loss} | ({"tau": 0.3} if loss == "quantile" else {})
            for count, scale in (("one", ONE), ("eight", {})):
                quick = data in QUICK_SETS
                yield Case(f"{data} {loss} {count}", data, {**options, **scale}, quick=quick)
                kept = {**options, **scale, "receipt": True}
                yield Case(
                    f"{data} {loss} {count} receipt", data, kept, certify=f"{data} {loss}" in CERTIFIED, quick=quick
                )


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "holdout": ("a9a.t", {"holdout": 10}),
    "passes": ("a9a.t", {"passes": 2}),
    "passes and holdout": ("bikes", {"loss": "squared", "passes": 3, "holdout": 7}),
    "l1": ("a9a", {"l1": 1.0}),
    "l2": ("bank", {"l2": 0.5}),
    "lower": ("elec", {"bounds": {"*": (-0.05, None)}}),
    "upper": ("elec", {"bounds": {"*": (None, 0.3)}}),
    "bounds and l1": ("sms", {"bounds": {"*": (-0.2, 0.4)}, "l1": 0.1, "l2": 0.01}),
    "float64": ("elec", {"float64": True}),
    "float64 text": ("rcv1_small", {"float64": True}),
    "no intercept": ("sms", {"intercept": False}),
    "seed": ("sms", {"seed": 7}),
    "weights": ("bank", {"weight": "age"}),
    "small table": ("rcv1_small", {"bits": 8}),  # most cells are used, so that all are saved
    "random order": ("bikes", {"loss": "squared", "order": "random"}),
    "more rows than wait": ("sms", {"order": "random", "waiting": 500, "order_seed": 3}),
}
EIGHT_ONLY: dict[str, tuple[str, dict[str, Any]]] = {
    "classes": ("diamonds", {"loss": "softmax", "label": "cut"}),
    "one against the rest": ("diamonds", {"loss": "ovr", "label": "color", "receipt": False}),
    "three scales": ("bikes", {"scale": (0.1, 1.0, 10.0), "loss": "squared"}),
}


def _others() -> Iterator[Case]:
    for name, (data, options) in OPTIONS.items():
        quick = data in QUICK_SETS
        for count, scale in (("one", ONE), ("eight", {})):
            kept = {**options, **scale, "receipt": True}
            yield Case(f"{name}: {data} {count}", data, kept, certify=name in CERTIFIED, quick=quick)
    for name, (data, options) in EIGHT_ONLY.items():
        yield Case(f"{name}: {data}", data, {"receipt": True, **options}, quick=data in QUICK_SETS)
    for data, receipt in (("a9a", False), ("elec", True)):
        for count, scale in (("one", ONE), ("eight", {})):
            kept = {**scale, "receipt": receipt}
            yield Case(f"interrupted: {data} {count}", data, kept, interrupt=True, certify=receipt)
            yield Case(f"more data: a9a {count} receipt={receipt}", "a9a", kept, more="a9a.t", certify=receipt)
    for loss in SETS["clicks"][2]:
        for receipt in (False, True):
            kept = {"loss": loss, "receipt": receipt}
            yield Case(f"retired: clicks {loss} receipt={receipt}", "clicks", kept, certify=receipt)


CASES = {case.name: case for case in (*_matrix(), *_others())}


# ---- recorded values ----


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tensors(model: bytes) -> str:
    """Return a digest of the tensors of a model file: docs/model-file.md."""
    start = 8 + int.from_bytes(model[:8], "little")
    header = json.loads(model[8:start])
    digest = hashlib.sha256()
    for name in sorted(header.keys() - {"__metadata__", "provenance"}):
        entry = header[name]
        digest.update(json.dumps([name, entry["dtype"], entry["shape"]]).encode())
        first, last = entry["data_offsets"]
        digest.update(model[start + first : start + last])
    return digest.hexdigest()


def numbers(value: Any, name: str = "") -> dict[str, float]:
    """Return the numbers of nested dicts and lists by their path, without words: {"post_hoc.const": 1.5, ...}."""
    if isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        return {k: v for key, part in pairs for k, v in numbers(part, f"{name}.{key}".lstrip(".")).items()}
    return {name: value} if isinstance(value, int | float) and not isinstance(value, bool) else {}


def platform_facts() -> dict[str, str]:
    """Return facts of the platform that change results; `functions` is a digest of mathematical functions' results."""
    x = np.linspace(-40.0, 40.0, 20_001)
    values = [np.exp(x), np.tanh(x), np.log1p(np.abs(x)), x.sum(), np.exp(x) @ x]
    values += [np.array([f(v) for v in x]) for f in (math.exp, math.tanh, math.expm1)]
    values += [np.array([f(abs(v) + 1e-300) for v in x]) for f in (math.log1p, math.log, math.sqrt)]
    return {
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "numpy": np.__version__,
        "functions": sha256(b"".join(np.asarray(part, "<f8").tobytes() for part in values)),
    }


class Interrupted(Exception):
    """Raised by a listener to stop a run."""


def file_of(data: str, folder: Path) -> Path:
    """Return the file of a data set; the click log is generated once."""
    if data != "clicks":
        return DATA / SETS[data][0]
    path = folder / CLICKS
    if not path.exists():
        ftprl.data.clicks.generate(CLICK_ROWS, seed=1, path=path)
    return path


def trained(case: Case, folder: Path) -> tuple[ftprl.Run, Path, dict[str, str]]:
    """Return the run, its model file, and the digests of files written during it."""
    path, output, options = file_of(case.data, folder), folder / "model.ftprl", case.read()
    if not case.interrupt:
        run = ftprl.train(path, output=output, **options)
        if case.more is None:
            return run, output, {}
        first = digests_of(output, "first")
        return ftprl.train(file_of(case.more, folder), resume=output, output=output), output, first

    def listener(event: Mapping[str, Any]) -> None:
        if event.get("rows", 0) >= STOP:
            raise Interrupted

    checkpoint = folder / "checkpoint.ftprl"
    with contextlib.suppress(Interrupted):
        ftprl.train(path, checkpoint=checkpoint, every=CHECKPOINT_EVERY, listener=listener, **options)
        raise AssertionError("the run was not interrupted")
    kept = digests_of(checkpoint, "checkpoint")
    return ftprl.train(path, resume=checkpoint, output=output), output, kept


def digests_of(path: Path, name: str) -> dict[str, str]:
    model = path.read_bytes()
    return {f"{name}_tensors": tensors(model), f"{name}_file": sha256(model)}


def measured(case: Case, folder: Path) -> dict[str, Any]:
    """Return the values by which a case is recorded."""
    run, output, kept = trained(case, folder)
    model = ftprl.load(output)
    predictions = model.predict(file_of(case.data, folder))
    actual: dict[str, Any] = {
        "predictions": sha256(np.asarray(predictions, "<f8").tobytes()),
        **digests_of(output, "model"),
        **kept,
        "run": {name: value for name, value in numbers(run.to_dict()).items() if name != "seconds"},
    }
    if case.certify:
        actual["own"] = numbers(run.certificate.to_dict())
        actual["box"] = numbers(ftprl.receipt.certify_model(model, radius=0.5).to_dict())
    return actual


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any], file_may_differ: bool) -> list[str]:
    """Return differences from the record; numbers that were not recorded are allowed."""
    wrong = []
    for name, value in expected.items():
        if isinstance(value, dict):
            wrong += [
                f"{name}: {key} is {actual[name].get(key)!r}, was {number!r}"
                for key, number in value.items()
                if actual[name].get(key) != number
            ]
        elif not (name.endswith("_file") and file_may_differ) and actual[name] != value:
            wrong.append(f"{name} differs")
    return wrong


# ---- the command line ----

# A run of `train`, `predict` and `certify` by options, and the case that has the same model.
COMMANDS = {
    "sms logistic one receipt": ["--label", "1", "--text", "2", "--no-header", "--positive", "spam", "--scale", "0.1"],
    "rcv1_small hinge eight receipt": ["--loss", "hinge"],
}


def command(*arguments: str | Path) -> str:
    full = [sys.executable, "-m", "ftprl", *map(str, arguments)]
    return subprocess.run(full, capture_output=True, text=True, check=True).stdout


def commanded(name: str, folder: Path) -> dict[str, Any]:
    path, model, text = file_of(CASES[name].data, folder), folder / "model.ftprl", folder / "predictions.txt"
    command("train", path, "-o", model, "--bits", str(BITS), "--receipt", "-q", "--order", "given", *COMMANDS[name])
    command("predict", model, path, "-o", text)
    box = json.loads(command("certify", model, "--radius", "0.5", "--json"))
    return {"text": sha256(text.read_bytes()), **digests_of(model, "model"), "box": numbers(box)}


# ---- the tests ----


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """Return the record, if the data and the platform are those it was made with."""
    recorded: dict[str, Any] = json.loads(RECORD.read_text())
    for file, digest in recorded["data"].items():
        if not (DATA / file).is_file():
            pytest.skip(f"{file} is absent: the data sets of ../shared/data are needed to compare models")
        if sha256((DATA / file).read_bytes()) != digest:
            pytest.skip(f"{file} is not the file that models were recorded with")
    for name, here in platform_facts().items():
        if here != recorded["platform"][name]:
            pytest.skip(f"models were recorded on another platform: {name} {recorded['platform'][name]}, here {here}")
    return recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder for models and the click log, which is generated once."""
    return tmp_path_factory.mktemp("identity")


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES.values() if c.quick])
def test_results_are_bit_for_bit_as_recorded(case: Case, record: dict[str, Any], folder: Path) -> None:
    expected = record["cases"][case.name]
    assert differences(measured(case, folder), expected, record["file_format_may_differ"]) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_gives_what_is_recorded(name: str, record: dict[str, Any], tmp_path: Path) -> None:
    actual = commanded(name, tmp_path)
    same = record["cases"][name]
    expected = {key: same[key] for key in ("model_tensors", "model_file")} | record["commands"][name]
    assert differences(actual, expected, record["file_format_may_differ"]) == []


@pytest.mark.slow
def test_the_click_log_is_as_recorded(record: dict[str, Any], folder: Path) -> None:
    assert sha256(file_of("clicks", folder).read_bytes()) == record["click_log"]


def test_every_quick_case_is_recorded() -> None:
    recorded = json.loads(RECORD.read_text())
    assert list(recorded["cases"]) == [case.name for case in CASES.values() if case.quick]
    assert list(recorded["commands"]) == list(COMMANDS)


def main() -> None:
    """Record what the installed version computes."""
    files = sorted({file for file, _, _ in SETS.values()} - {CLICKS})
    cases, commands = {}, {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, case in CASES.items():
            if case.quick:
                print(name, file=sys.stderr, flush=True)
                cases[name] = measured(case, folder)
        for name in COMMANDS:
            print("command:", name, file=sys.stderr, flush=True)
            actual = commanded(name, folder)
            commands[name] = {key: actual[key] for key in ("text", "box")}
        clicks = sha256(file_of("clicks", folder).read_bytes())
    head = {
        "file_format_may_differ": False,
        "platform": platform_facts(),
        "data": {file: sha256((DATA / file).read_bytes()) for file in files},
        "click_log": clicks,
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, entries in (("cases", cases), ("commands", commands)):  # one line per run
        inner = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
