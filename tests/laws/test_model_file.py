"""Laws of the model file: for any bytes `load` returns a whole model or raises BadModel with one line."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.data import Batch
from ftprl.errors import BadModel
from ftprl.linear import Engine, Spec
from ftprl.linear.model import Model

MANY = settings(deadline=None, max_examples=60)


def sealed(header: bytes, tensors: bytes = b"") -> bytes:
    """Return a file with a valid digest and any header, as an attacker would write it."""
    key = b'"sha256":"'
    raw = len(header).to_bytes(8, "little") + header
    if key in header:
        at = raw.index(key) + len(key)
        digest = hashlib.sha256(raw[:at] + raw[at + 64 :] + tensors).hexdigest()
        raw = raw[:at] + digest.encode() + raw[at + 64 :]
    return raw + tensors


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def whole(folder: Path) -> bytes:
    model = Model(Engine(Spec(dim=8, l1=0.1), receipt=True), {"format": "vw", "columns": {"ä": "label"}})
    model.engine.learn(Batch.from_rows([{0: 1.0, 5: -2.0}, {3: 0.5}], y=[1, -1]))
    model.save(folder / "whole")
    return (folder / "whole").read_bytes()


def taken_apart(body: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def forged(header: Any, tensors: bytes) -> bytes:
    return sealed(json.dumps(header, separators=(",", ":")).encode(), tensors)


def assert_clean(folder: Path, body: bytes) -> None:
    """Check that a model works and can be saved, or that the error is one printable line of limited length."""
    path, output = folder / "m", ""
    path.write_bytes(body)
    try:
        model = Model.load(path)
    except BadModel as error:
        output = str(error)
    assert output.isprintable()
    assert len(output) < 500 + len(str(path))
    if output:
        return
    model.predict(Batch.from_rows([{0: 1.0}]))
    model.save(path)
    Model.load(path)


def assert_refused(folder: Path, body: bytes) -> None:
    (folder / "m").write_bytes(body)
    with pytest.raises(BadModel, match=r"^[ -~]{1,400}$"):
        Model.load(folder / "m")


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["F32", "F64", "\x1b[2J", "\ud800", "logistic", "1", 0, 1, 4, 8, [0, 2**70], [1] * 100]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=5,
)


def replaced(data: st.DataObject, value: Any) -> Any:
    """Return the JSON with one value, somewhere, replaced."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        return value | {key: replaced(data, value[key])}
    return data.draw(JSON)


@MANY
@given(body=st.binary(max_size=200), length=st.integers(0, 250))
def test_no_bytes_make_it_fall_over(folder: Path, body: bytes, length: int) -> None:
    assert_refused(folder, body)
    assert_refused(folder, length.to_bytes(8, "little") + body)
    assert_refused(folder, sealed(body))


@MANY
@given(data=st.data())
def test_any_header_under_a_right_digest(folder: Path, whole: bytes, data: st.DataObject) -> None:
    header, tensors = taken_apart(whole)
    assert_clean(folder, forged(replaced(data, header), tensors))


@MANY
@given(data=st.data())
def test_any_content_under_a_right_digest(folder: Path, whole: bytes, data: st.DataObject) -> None:
    header, tensors = taken_apart(whole)
    content = replaced(data, json.loads(header["__metadata__"]["content"]))
    spec = content.get("spec") if isinstance(content, dict) else None
    if isinstance(spec, dict) and isinstance(spec.get("dim"), int | float):
        spec["dim"] = min(spec["dim"], 2**20)  # a table of 2**32 cells is allowed, and too large for a test
    header["__metadata__"]["content"] = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert_clean(folder, forged(header, tensors))


@MANY
@given(data=st.data())
def test_any_numbers_under_a_right_digest(folder: Path, whole: bytes, data: st.DataObject) -> None:
    header, tensors = taken_apart(whole)
    at = data.draw(st.integers(0, len(tensors)))
    some = data.draw(st.binary(max_size=12))
    assert_clean(folder, forged(header, (tensors[:at] + some + tensors[at + len(some) :])[: len(tensors)]))


@pytest.mark.parametrize("content", ["", "nul", "[" * 100_000, "9" * 5000, "1", "[]", '{"a":NaN}', "{}", '{"a": 1}'])
def test_a_content_that_is_none(folder: Path, whole: bytes, content: str) -> None:
    header, tensors = taken_apart(whole)
    header["__metadata__"]["content"] = content
    assert_refused(folder, forged(header, tensors))


@pytest.mark.parametrize("digest", [1, None, [], "x", "0" * 64, "A" * 64])
def test_a_digest_that_is_none(folder: Path, whole: bytes, digest: object) -> None:
    header, tensors = taken_apart(whole)
    header["__metadata__"]["sha256"] = digest
    text = json.dumps(header, separators=(",", ":")).encode()
    assert_refused(folder, len(text).to_bytes(8, "little") + text + tensors)
    spaced = json.dumps(header).encode()
    assert_refused(folder, len(spaced).to_bytes(8, "little") + spaced + tensors)


@pytest.mark.parametrize("shape", [{}, "", [0, 2**70], [2**70, 0], [0] * 100, [True]])
def test_a_shape_that_is_none(folder: Path, whole: bytes, shape: object) -> None:
    header, tensors = taken_apart(whole)
    end = len(tensors) + (4 if shape in ({}, "", [True]) else 0)
    header["z"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(tensors), end]}
    assert_refused(folder, forged(header, tensors + bytes(end - len(tensors))))


@pytest.mark.parametrize(
    "change",
    [
        {"spec": []},
        {"spec": {"scale": 10**400}},
        {"spec": {"dim": 2**64}},
        {"receipt": 1},
        {"receipt": None},
        {"reading": [["a", 1]]},
        {"reading": None},
        {"hash_version": "\x1b[2J" * 50},
        {"spec": {"\x1b[2J\u2028" * 300: 1}},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_a_content_with_one_thing_wrong(folder: Path, whole: bytes, change: dict[str, Any]) -> None:
    header, tensors = taken_apart(whole)
    content = json.loads(header["__metadata__"]["content"]) | change
    header["__metadata__"]["content"] = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert_refused(folder, forged(header, tensors))


@pytest.mark.parametrize(("place", "value"), [(0, np.nan), (0, np.inf), (1, -1.0), (2, -1e-30), (3, -np.inf)])
def test_cells_that_no_learning_makes_are_refused(folder: Path, whole: bytes, place: int, value: float) -> None:
    header, tensors = taken_apart(whole)
    for key, dtype in (("cells", "<f4"), ("intercept", "<f8")):
        at = header[key]["data_offsets"][0] + np.dtype(dtype).itemsize * place
        number = np.array(value, dtype).tobytes()
        assert_refused(folder, forged(header, tensors[:at] + number + tensors[at + len(number) :]))


def test_slots_that_repeat_are_refused(folder: Path) -> None:
    model = Model(Engine(Spec(dim=64)))
    model.engine.learn(Batch.from_rows([{3: 1.0, 9: 1.0}], y=[1]))
    model.save(folder / "m")
    header, tensors = taken_apart((folder / "m").read_bytes())
    first, last = header["slots"]["data_offsets"]
    for slots in ([9, 9], [9, 3], [3, 64]):
        other = tensors[:first] + np.array(slots, "<u4").tobytes() + tensors[last:]
        assert_refused(folder, forged(header, other))
