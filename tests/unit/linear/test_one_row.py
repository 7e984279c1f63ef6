"""Learning one row at a time: types of values, bad rows, threads, and the model's memory of columns."""

from __future__ import annotations

import json
import math
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import Model, OnlineClassifier, OnlineRegressor
from ftprl.errors import BadFormat, FtprlError, InvalidInput

VALUES = st.one_of(
    st.floats(-1e6, 1e6), st.integers(-(2**70), 2**70), st.booleans(), st.text(max_size=6), st.none(), st.just(math.nan)
)
RECORDS = st.dictionaries(st.sampled_from(["a", "b", "a b", "größe", "", "x" * 40]), VALUES, max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORDS, min_size=1, max_size=8), st.sampled_from([0.1, "auto"]))
def test_dicts_are_read_as_in_training(records: list[dict[str, Any]], scale: Any) -> None:
    """Dicts equal a list of dicts whose keys are read by their values, as none is in the first rows."""
    start = [{"other": 1.0}, {"other": 2.0}]
    model = ftprl.train(start, [1, 0], bits=10, scale=scale, missing="ignore").model
    twin: Model = Model.from_bytes(model.to_bytes())
    for number, record in enumerate(records):
        model.learn_one({str(key): value for key, value in record.items()}, number % 2)  # keys that nobody interned
    batches = [
        batch for batch, _ in twin.open_labelled(records, y=[number % 2 for number in range(len(records))]).read()
    ]
    for batch in batches:
        twin.engine.learn(batch)
    assert model.state_digest() == twin.state_digest()
    np.testing.assert_array_equal([model.predict_one(record) for record in records], twin.predict(records))


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.float64(2.5), 2.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (Decimal("2.5"), 2.5),
        (b"Ulm", "Ulm"),
        (None, math.nan),
        ("", None),
    ],
    ids=repr,
)
def test_values_of_other_types(value: Any, same: Any) -> None:
    models = [OnlineClassifier(bits=8) for _ in range(2)]
    for model, entry in zip(models, (value, same), strict=True):
        model.learn_one({"x": entry, "y": 1.0}, True)
    assert models[0].model.state_digest() == models[1].model.state_digest()


def test_words_of_a_text() -> None:
    online = OnlineClassifier(text=("message",), bits=10)
    rows = [({"message": "Win a prize, WIN now", "length": 20}, 1), ({"message": "see you", "length": 7}, 0)] * 3
    for x, y in rows:
        online.learn_one(x, y)
    options: dict[str, Any] = {"text": "message", "bits": 10, "missing": "ignore", "order": "given"}
    same = ftprl.train([x for x, _ in rows], [y for _, y in rows], **options).model
    assert online.model.state_digest() == same.state_digest()
    assert online.model.names is not None
    assert set(online.model.names.all()) >= {"message=win", "message=prize", "length"}


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": math.inf}, True, "the row: expected a finite number, got 'inf' in column 'a'."),
        ({"a": {1, 2}}, True, "got set in column 'a'"),
        ({"a": [1, [2]]}, True, "got a list within a list in column 'a'"),
        ([1.0], True, "the row: expected a dict, got list."),
        ({"a": 1e40}, True, "expected values within 1e30"),
        ({"a": 1.0}, "maybe", "y needs one of the classes (False, True), got 'maybe'"),
        ({"a": 1.0}, None, "y needs one of the classes"),
    ],
)
def test_bad_rows_change_nothing(x: Any, y: Any, message: str) -> None:
    model = OnlineClassifier(bits=8)
    model.learn_one({"a": 1.0}, True)
    before = model.model.to_bytes()
    with pytest.raises((BadFormat, InvalidInput)) as wrong:
        model.learn_one(x, y)
    assert message in str(wrong.value)
    assert "\n" not in str(wrong.value)
    assert model.model.to_bytes() == before
    model.learn_one({"a": 1.0}, True)


def test_labels_that_a_loss_does_not_take() -> None:
    model = OnlineRegressor(loss="poisson", bits=8)
    with pytest.raises(BadFormat, match="a label needs to be from 0 to 1e30"):
        model.learn_one({"a": 1.0}, -1.0)
    with pytest.raises(InvalidInput, match="y needs a finite number, got 'three'"):
        model.learn_one({"a": 1.0}, "three")  # type: ignore[arg-type]


def test_labels_of_a_model() -> None:
    rows = [{"a": 1.0}, {"b": 1.0}] * 4
    words = ftprl.train(rows, ["spam", "ham"] * 4, positive="spam", bits=8, missing="ignore").model
    numbers = ftprl.train(rows, [1, 0] * 4, bits=8, missing="ignore").model
    words.learn_one({"a": 1.0}, "spam")
    words.learn_one({"b": 1.0}, "ham")
    for label in (True, -1):
        numbers.learn_one({"a" if label is True else "b": 1.0}, label)
    assert words.state_digest() == numbers.state_digest()
    with pytest.raises(InvalidInput, match="y needs a label, got None"):
        numbers.learn_one({"a": 1.0}, None)


def test_weights_are_those_of_rows() -> None:
    model = OnlineRegressor(bits=8)
    for size, weight in ((1.0, 1.0), (2.0, 0.5), (3.0, 4.0), (3.0, 0.0)):
        model.learn_one({"size": size}, 2.0 * size, weight)
    rows = [{"size": size} for size in (1.0, 2.0, 3.0, 3.0)]
    options: dict[str, Any] = {"weight": [1.0, 0.5, 4.0, 0.0], "loss": "squared", "bits": 8, "order": "given"}
    same = ftprl.train(rows, [2.0, 4.0, 6.0, 6.0], **options).model
    assert model.model.state_digest() == same.state_digest()


def test_models_that_cannot_learn_one_row(tmp_path: Path) -> None:
    rows = [{"a": 1.0}, {"b": 1.0}] * 4
    compact = ftprl.train(rows, [1, 0] * 4, bits=8).model.compact()
    with pytest.raises(InvalidInput, match="got one that was made compact"):
        compact.learn_one({"a": 1.0}, 1)
    assert 0.0 < compact.predict_one({"a": 1.0}) < 1.0
    numbered = ftprl.train(np.eye(4), [1, 0, 1, 0]).model
    with pytest.raises(InvalidInput, match="which has numbers for them and no names"):
        numbered.predict_one({"a": 1.0})


def test_a_model_keeps_what_it_learned(tmp_path: Path) -> None:
    rows = [({"city": city, "size": float(i)}, i % 2) for i, city in enumerate(["Ulm", "Bonn"] * 20)]
    model = ftprl.train([x for x, _ in rows[:10]], [y for _, y in rows[:10]], bits=10, receipt=True).model
    assert model.provenance is not None
    for x, y in rows[10:]:
        model.learn_one(x, y)
    model.save(tmp_path / "model.ftprl")
    loaded = ftprl.load(tmp_path / "model.ftprl")
    assert loaded.history["rows"] == 40
    assert loaded.history == model.history
    assert loaded.provenance is None  # of rows that came one by one there is no record that could be verified
    loaded.learn_one(*rows[0])
    model.learn_one(*rows[0])
    assert loaded.to_bytes() == model.to_bytes()


def test_threads_take_turns() -> None:
    """Reading a value may run code that lets other threads run."""

    class Slow:
        def __float__(self) -> float:
            threading.Event().wait(0.0005)
            return 1.0

    model, alone = OnlineClassifier(bits=8, scale=0.1), OnlineClassifier(bits=8, scale=0.1)
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                model.learn_one({"a": Slow(), "b": 1.0}, True)
                model.predict_proba_one({"a": 1.0, "c": Slow()})
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for _ in range(200):
        alone.learn_one({"a": 1.0, "b": 1.0}, True)
    assert alone.model.state_digest() == model.model.state_digest()


def test_a_dict_that_changes_while_it_is_read() -> None:
    class Growing:
        def __float__(self) -> float:
            x.update({f"new {i}": 1.0 for i in range(1000)})
            return 1.0

    class Recursive:
        def __float__(self) -> float:
            model.predict_one({"a": 1.0})
            return 1.0

    model = OnlineClassifier(bits=8)
    x: dict[str, Any] = {"a": Growing(), "b": 1.0}
    with pytest.raises(BadFormat, match="expected a dict that nobody changes"):
        model.learn_one(x, True)
    with pytest.raises((RuntimeError, BadFormat)):
        model.learn_one({"a": Recursive()}, True)
    model.learn_one({"a": 1.0}, True)


WORDS = st.text("abxyz_.", min_size=1, max_size=20)
FEATURES = st.dictionaries(st.sampled_from(["user", "site", ""]), st.dictionaries(WORDS, st.floats(-9, 9), max_size=4))


def as_line(row: dict[str, dict[str, float]]) -> str:
    return " ".join(f"|{space} " + " ".join(f"{name}:{value!r}" for name, value in row[space].items()) for space in row)


def as_keys(row: dict[str, dict[str, float]]) -> dict[str, float]:
    return {f"{space}^{name}": value for space, own in row.items() for name, value in own.items()}


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(FEATURES.filter(bool), min_size=1, max_size=6))
@pytest.mark.parametrize("interactions", [(), ("user:site", "u:u")])
def test_namespaces_of_vw_text_are_in_dicts_too(
    rows: list[dict[str, dict[str, float]]], interactions: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A row of VW text as a line, as keys and as nested dicts is learned and predicted equally, to the bit."""
    folder = tmp_path_factory.mktemp("vw")
    (folder / "a.vw").write_text("1 |user a:1 |site b:1 | c:1\n-1 |user b:2 |site a | b\n" * 5)
    model = ftprl.train(folder / "a.vw", bits=14, interactions=interactions).model
    (folder / "b.vw").write_text("\n".join(map(as_line, rows)) + "\n")
    expected = model.predict(folder / "b.vw").tolist()
    assert model.predict([as_line(row) for row in rows]).tolist() == expected
    assert model.predict([as_keys(row) for row in rows]).tolist() == expected
    nested = [{**{space: own for space, own in row.items() if space}, **row.get("", {})} for row in rows]
    (folder / "b.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in nested))
    order = [{space: row[space] for space in sorted(row, key="".__eq__)} for row in rows]
    same = model.predict([as_line(row) for row in order]).tolist()
    assert model.predict(nested).tolist() == model.predict(folder / "b.jsonl").tolist() == same
    models = [Model.from_bytes(model.to_bytes()) for _ in range(2)]
    for number, row in enumerate(rows):
        assert models[0].predict_one(as_line(row)) == models[1].predict_one(as_keys(row))
        models[0].learn_one(as_line(row), number % 2)
        models[1].learn_one(as_keys(row), number % 2)
    assert models[0].state_digest() == models[1].state_digest()
    assert models[0].history == models[1].history
    assert models[0].names is not None
    assert models[1].names is not None
    assert models[0].names.all() == models[1].names.all()


def test_columns_of_frames_are_in_namespaces(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 |user age:3 city=Rome |site news\n-1 |user age:9 |site shop\n" * 20)
    model = ftprl.train(tmp_path / "a.vw", bits=12).model
    expected = model.predict("|user age:5 city=Rome |site news:2").tolist()
    flat = pa.table({"user^age": [5], "user^city": ["Rome"], "site^news": [2]})
    nested = pa.table({"user": [{"age": 5, "city": "Rome"}], "site": [{"news": 2}]})
    for table in (flat, nested):
        pq.write_table(table, tmp_path / "a.parquet")
        assert model.predict(table).tolist() == model.predict(tmp_path / "a.parquet").tolist() == expected
    assert model.evaluate(flat.append_column("y", [[1]]), label="y").rows == 1


def test_keys_in_no_namespace_of_the_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 |user age:3 |site news\n-1 |user age:9 |site shop\n" * 20)
    model = ftprl.train(tmp_path / "a.vw", bits=12).model
    said = r"in a namespace of the model \('site', 'user'\), got (column )?'age'; write it as 'namespace\^name'"
    (tmp_path / "a.jsonl").write_text('{"age": 3}\n')
    before = model.state_digest()
    for _ in range(2):  # a key that was refused is not left out when it comes again
        with pytest.raises(FtprlError, match=said):
            model.predict_one({"age": 3})
        with pytest.raises(FtprlError, match=said):
            model.learn_one({"age": 3}, 1)
    for data in ([{"age": 3}], pa.table({"age": [3]}), tmp_path / "a.jsonl"):
        with pytest.raises(FtprlError, match=said):
            model.predict(data)
    assert model.state_digest() == before
    with pytest.raises(FtprlError, match=r"^row: expected a number after ':', got 'x' in 'age:x'; fix the row$"):
        model.predict_one("|user age:x")
    with pytest.raises(InvalidInput, match="one line each, got 2 rows in 1 line"):
        model.predict("|user a\n|user b")
