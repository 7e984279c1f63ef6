"""Receipts with a valid digest and one wrong field are refused in one printable line, without a traceback."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.data.kinds import KINDS
from ftprl.errors import FtprlError
from ftprl.linear import Model, Spec, model_file
from ftprl.losses import LOSSES
from ftprl.receipt import certify_model, make_receipt, verify_receipt
from ftprl.receipt.document import digest, write_receipt
from oracles.forged import forge_model, forge_receipt, leaves, replaced

Capture = pytest.CaptureFixture[str]
WRONG: list[Any] = [
    None, True, -1, 0, 10**40, 1.5, float("nan"), float("inf"), -1e308, "", "\x1b[2J\n", "\u202e", "\ud800", [], [[]],
    [1, 2, 3], {}, {"a": 1}, "a" * 500_000,
]  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("y,a,t\n" + "".join(f"{i % 2},{i % 7},word{i % 5}\n" for i in range(9)))


def forge_every_field(some: int, capsys: Capture) -> int:
    """Forge each field with each wrong value, or every n-th pair; return how many receipts were checked."""
    model = ftprl.train("d.csv", label="y", text="t", bits=4, scale=0.1, receipt=True, holdout=4).model
    receipt = make_receipt(model, certify_model(model, radius=1.0))
    pairs = list(itertools.product(leaves(receipt), WRONG))[::some]
    for path, new in pairs:
        if path == ("sha256",):
            continue
        forge_receipt(Path("r.json"), replaced(receipt, path, new))
        code = run(["verify", "r.json", "d.csv", "-q"])
        out, err = capsys.readouterr()
        # With some other settings the replay gives equal numbers: no quotes, no bad rows, a bound never reached.
        may_hold = (
            path[0] in ("reading", "spec") or path[-1] in ("skip", "retire") or replaced(receipt, path, new) == receipt
        )
        assert code in ((0, 1, 2) if may_hold else (1, 2)), (path, new)
        assert len(err.splitlines()) == (code == 2), (path, new, err)
        assert len(err) < 1000, (path, new)
        assert all(c == "\n" or c.isprintable() for c in out + err), (path, new, out, err)
    return len(pairs)


def test_wrong_fields_of_a_receipt(capsys: Capture) -> None:
    assert forge_every_field(29, capsys) > 50


@pytest.mark.slow
def test_every_wrong_field_of_a_receipt(capsys: Capture) -> None:
    assert forge_every_field(1, capsys) > 2000


def test_a_table_of_another_size_for_reading(capsys: Capture) -> None:
    """An index outside the replay's table is refused; found by fuzzing."""
    model = ftprl.train("d.csv", label="y", text="t", bits=4, scale=0.1, receipt=True).model
    receipt = make_receipt(model, certify_model(model))
    forge_receipt(Path("r.json"), replaced(receipt, ("reading", "dim"), 32))
    assert run(["verify", "r.json", "d.csv", "-q"]) == 2
    error = capsys.readouterr().err
    assert "dim 32 for reading and 16 for learning" in error
    assert len(error.splitlines()) == 1


# ---- models with edited headers ----

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "binary": ("t.csv", {"label": "y", "positive": "yes"}),
    "squared": ("t.csv", {"label": "a", "loss": "squared", "scale": 0.1}),
    "classes": ("t.csv", {"label": "k", "loss": "softmax", "classes": 4}),
    "text": ("t.csv", {"label": "y", "text": "t", "ngrams": 2, "l1": 0.1}),
    "lines of VW": ("t.vw", {"bounds": {"a*": (0.0, 1.0)}}),
}
# Fields that a header may have besides the usual ones.
FIELDS = {
    "spec": [field.name for field in dataclasses.fields(Spec)],
    "reading": [
        *("positive", "interactions", "ngrams", "skips", "char_ngrams", "columns", "missing", "order", "sampled"),
        *("header", "quote", "sep"),
    ],
    "history": ["delay", "order", "check", "sample", "cautions"],
}


def write_tables() -> None:
    rng = random.Random(5)
    rows = [(rng.choice(["yes", "no"]), rng.randrange(9), rng.random(), rng.choice("uvw")) for _ in range(60)]
    lines = [f"{y},{a},{x:.3f},{k},{k} and {'b' if y == 'no' else 'c'}" for y, a, x, k in rows]
    Path("t.csv").write_text("\n".join(["y,a,x,k,t", *lines]) + "\n")
    Path("t.vw").write_text("".join(f"{1 if y == 'yes' else -1} | a:{a} b:{x:.3f} {k}\n" for y, a, x, k in rows))


def edited(header: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy of a header with one field changed, removed, swapped with another of its kind, or added."""
    paths = list(leaves(header))
    path = rng.choice(paths)
    old = value_at(header, path)
    how = rng.choice(["change", "change", "swap", "remove", "add"])
    if how == "add":
        part = rng.choice(sorted(FIELDS))
        return replaced(header, (part, rng.choice(FIELDS[part])), rng.choice([0.5, 1, 2, True, None, "csv", [0.5], {}]))
    if how == "swap" and isinstance(old, list | dict) and len(old) > 1:
        i, j = rng.sample(list(old) if isinstance(old, dict) else range(len(old)), 2)
        return replaced(replaced(header, (*path, i), old[j]), (*path, j), old[i])
    if how == "remove":
        inside = value_at(header, path[:-1])
        kept = {k: v for k, v in inside.items() if k != path[-1]} if isinstance(inside, dict) else inside[:-1]
        return replaced(header, path[:-1], kept) if len(path) > 1 else kept
    if isinstance(old, bool):
        return replaced(header, path, not old)
    if isinstance(old, int | float):
        return replaced(header, path, rng.choice([old + 1, old * 2, -old, old + 0.5, 0, None]))
    # Another value of the field: any text that occurs in a header, most of which the schema refuses.
    texts = [a for a in (value_at(header, p) for p in paths) if isinstance(a, str)]
    words = [*texts, *LOSSES, *KINDS, "csv", "vw", "libsvm", "random", "given", "ignore", "no", ","]
    return replaced(header, path, rng.choice([*words, None, 1]))


def value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def told(model: Model, data: str, capsys: Capture) -> tuple[Any, ...]:
    """Return the observable content of a model: its header, the classes, the output of `inspect`, and its
    predictions.
    """
    model.save("told")
    capsys.readouterr()
    run(["inspect", "told", "--json"])
    try:
        predicted = model.predict(data).tobytes()
    except FtprlError as error:
        predicted = str(error).encode()
    return (
        json.dumps(model_file.load("told").content, sort_keys=True),
        model.classes,
        capsys.readouterr().out,
        predicted,
    )


def forge_headers(wanted: int, capsys: Capture) -> int:
    """Forge headers of models that load with other content; return how many of them have other predictions."""
    write_tables()
    rng, predicts = random.Random(9), 0
    for name, (data, options) in MODELS.items():
        options = {"bits": 6, "order": "given", "receipt": True, **options}
        body = ftprl.train(data, output="m", **options).model.to_bytes()
        model = ftprl.load("m")
        write_receipt("r.json", make_receipt(model, certify_model(model)))
        assert verify_receipt("r.json", data, model="m").confirmed
        truth, header, forgeries = told(model, data, capsys), model_file.load("m").content, 0
        while forgeries < wanted // len(MODELS):
            made = edited(header, rng)
            try:
                Path("f").write_bytes(forge_model(body, lambda held, made=made: (held.clear(), held.update(made))))
                forged = ftprl.load("f")
            except FtprlError:
                continue
            tells = told(forged, data, capsys)
            if tells == truth:
                continue
            forgeries, predicts = forgeries + 1, predicts + (tells[-1] != truth[-1])
            assert run(["verify", "r.json", data, "--model", "f", "-q"]) == 1, (name, made)
            # A forger may also write the digest, or all content, of the forged model into the receipt.
            with_digest = json.loads(Path("r.json").read_text()) | {"model": {"sha256": forged.digest()}}
            write_receipt("g.json", {**with_digest, "sha256": digest(with_digest)})
            if tells[-1] != truth[-1]:
                assert run(["verify", "g.json", data, "--model", "f", "-q"]) == 1, (name, made)
            try:
                write_receipt("g.json", make_receipt(forged, certify_model(forged)))
            except FtprlError:
                continue
            if tells[-1] != truth[-1] or tells[1] != truth[1]:
                assert run(["verify", "g.json", data, "--model", "f", "-q"]) != 0, (name, made)
    return predicts


def test_200_forged_headers_of_a_model(capsys: Capture) -> None:
    """No forged header with other content or predictions is confirmed."""
    assert forge_headers(200, capsys) > 40
