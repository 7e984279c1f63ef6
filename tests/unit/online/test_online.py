"""The online models: parameters, labels, pipelines of River, and saving."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import OnlineClassifier, OnlineRegressor
from ftprl.errors import FtprlError, InvalidInput

ROWS = [({"city": city, "size": size}, size > 1.5) for city in ("Ulm", "Bonn") for size in (1.0, 2.0, 3.0)] * 20


def test_classes_of_any_kind() -> None:
    booleans, words = OnlineClassifier(), OnlineClassifier(classes=("ham", "spam"))
    for x, y in ROWS:
        assert booleans.learn_one(x, y) is None
        words.learn_one(x, "spam" if y else "ham")
    x = ROWS[0][0]
    assert list(booleans.predict_proba_one(x)) == [False, True]
    assert list(words.predict_proba_one(x).values()) == list(booleans.predict_proba_one(x).values())
    assert (words.predict_one(x), booleans.predict_one(x)) == ("ham", False)
    with pytest.raises(InvalidInput, match="classes= needs two labels"):
        OnlineClassifier(classes=(1, 1))


VALUES = st.one_of(st.floats(-9, 9), st.integers(-3, 3), st.sampled_from(["Ulm", "", "x y"]), st.none(), st.booleans())
KEYS = st.sampled_from(["a", "b", "c", "a b", "é", 1, 2.5])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.dictionaries(KEYS, VALUES, max_size=5), min_size=1, max_size=4),
    st.sampled_from(["indicator", "ignore"]),
)
def test_keys_are_read_by_their_text(shapes: list[dict[Any, Any]], missing: str) -> None:
    """Rows with identical key objects in equal order are read faster; the learned result is equal."""
    rows = [(x, bool(i % 3)) for x in shapes for i in range(4)]
    same, others = OnlineClassifier(missing=missing, bits=10), OnlineClassifier(missing=missing, bits=10)
    for x, y in rows:
        copied = {"".join([*key]) if isinstance(key, str) else key: value for key, value in x.items()}
        same.learn_one(x, y)
        others.learn_one(copied, y)
        assert same.predict_proba_one(x) == others.predict_proba_one(copied)
    assert same.model.state_digest() == others.model.state_digest()


def test_a_dict_that_changes_while_it_is_read_is_refused() -> None:
    """A dict that changes while it is read is refused, also if it began with the keys of the previous row."""

    class Changing:
        def __init__(self, row: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> None:
            self.row, self.change = row, change

        def __float__(self) -> float:
            self.change(self.row)
            return 1.0

    def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        row: dict[str, Any] = {"a": 1.0, "b": 2.0, "c": 3.0}
        row["a"] = Changing(row, change)
        return row

    model = OnlineClassifier()
    for change in (lambda row: row.update(d=1.0), lambda row: row.pop("c")):
        model.learn_one({"a": 1.0, "b": 2.0, "c": 3.0}, True)
        model.learn_one({"a": 4.0, "b": 2.0, "c": 3.0}, False)
        with pytest.raises(FtprlError, match="expected a dict that nobody changes"):
            model.learn_one(changed(change), True)
    assert model.model.engine.progress.rows == 4


def test_more_than_two_classes_have_the_bits_of_a_run() -> None:
    labels = ("small", "large", "huge")
    rows = [(x, labels[int(x["size"]) - 1]) for x, _ in ROWS]
    model = OnlineClassifier(classes=labels, receipt=True)
    assert model.predict_proba_one(rows[0][0]) == pytest.approx(dict.fromkeys(labels, 1 / 3))
    for x, y in rows:
        model.learn_one(x, y)
    options: dict[str, Any] = {"loss": "softmax", "classes": labels, "receipt": True, "order": "given"}
    run = ftprl.train([x for x, _ in rows], [y for _, y in rows], **options).model
    assert model.model.state_digest() == run.state_digest()
    x = rows[-1][0]
    assert list(model.predict_proba_one(x).values()) == run.predict([x])[0].tolist()
    assert model.predict_one(x) == "huge" == max(run.predict_proba_one(x).items(), key=lambda item: item[1])[0]
    assert ftprl.receipt.certify_model(model.model).regret < ftprl.receipt.certify_model(model.model).bound
    twin = pickle.loads(pickle.dumps(model))
    twin.learn_one(x, "small")
    assert twin.predict_proba_one(x) != model.predict_proba_one(x)
    run.learn_one(x, "small")
    assert run.predict_proba_one(x) == twin.predict_proba_one(x)
    with pytest.raises(InvalidInput, match=r"y needs one of the classes \('small'.*got 'tiny'; name all in classes="):
        model.learn_one(x, "tiny")
    with pytest.raises(InvalidInput, match=r"y needs one of at most 3 classes \(small, large, huge"):
        run.learn_one(x, "tiny")
    with pytest.raises(InvalidInput, match="y needs the label of a class, got None"):
        run.learn_one(x, None)
    with pytest.raises(InvalidInput, match="call predict_proba_one"):
        run.predict_one(x)
    with pytest.raises(InvalidInput, match="loss= needs two classes"):
        OnlineClassifier(classes=labels, loss="hinge")


def test_no_probabilities_without_log_loss() -> None:
    model = OnlineClassifier(loss="hinge")
    for x, y in ROWS:
        model.learn_one(x, y)
    assert model.predict_one(ROWS[0][0]) is False
    with pytest.raises(NotImplementedError, match="probabilities need loss='logistic'"):
        model.predict_proba_one(ROWS[0][0])


def test_before_the_first_row() -> None:
    assert OnlineClassifier().predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert OnlineRegressor().predict_one({"a": 1.0}) == 0.0


def test_copies_and_clones() -> None:
    model = OnlineClassifier(scale=(0.1, 1.0), bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    x = ROWS[0][0]
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)):
        assert twin.predict_proba_one(x) == model.predict_proba_one(x)
        twin.learn_one(x, False)
        assert twin.predict_proba_one(x) != model.predict_proba_one(x)
    fresh = model.clone({"bits": 12})
    assert (fresh.bits, fresh.scale, fresh.predict_proba_one(x)[True]) == (12, (0.1, 1.0), 0.5)
    assert repr(model) == "OnlineClassifier(bits=10, scale=(0.1, 1.0))"
    with pytest.raises(ValueError, match="'bits' is not a mutable attribute"):
        model.mutate({"bits": 3})


def test_a_receipt() -> None:
    from ftprl.receipt import certify_model

    model = OnlineClassifier(receipt=True, bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    certificate: Any = certify_model(model.model)
    assert certificate.regret <= certificate.bound * (1 + 1e-12)


def test_a_saved_model_predicts_files(tmp_path: Any) -> None:
    model = OnlineClassifier(bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    model.model.save(tmp_path / "model.ftprl")
    loaded = ftprl.load(tmp_path / "model.ftprl")
    (tmp_path / "rows.jsonl").write_text('{"city": "Ulm", "size": 3}\n{"city": "Bonn", "size": 1}\n')
    high, low = loaded.predict(str(tmp_path / "rows.jsonl"))
    assert high == model.predict_proba_one({"city": "Ulm", "size": 3})[True]
    assert low == model.predict_proba_one({"city": "Bonn", "size": 1})[True]
    frame = polars.DataFrame({"city": ["Ulm", "Bonn"], "size": [3, 1]})
    assert loaded.predict(frame).tolist() == [high, low]
    (tmp_path / "rows.csv").write_text("city,size\nUlm,3\n")
    with pytest.raises(InvalidInput, match="got csv files; pass jsonl or parquet files"):
        loaded.predict(str(tmp_path / "rows.csv"))


# ---- options of reading and bounds: the bits of a list of dicts ----

TEXTS = ["win cash now", "see you at home", "cash for you", "at home now", "win win win"]


def _rows() -> tuple[list[dict[str, Any]], list[int]]:
    rows = [
        {"text": TEXTS[i % 5], "price": 1.0 + i % 4, "size": float(i % 3) - 1.0, "city": ("Ulm", "Bonn")[i % 2]}
        for i in range(120)
    ]
    return rows, [int(i * 37 % 100 < 20 * (i % 5)) for i in range(120)]


@pytest.mark.parametrize(
    "options",
    [
        {"text": ("text",), "ngrams": 2},
        {"text": ("text",), "ngrams": {"text": 3}, "skips": {"text": 1}, "char_ngrams": "3-4"},
        {"bounds": {"price": (0, None), "city": (None, 0.1)}},
        {"bounds": {"*": (-0.05, 0.05)}, "interactions": ("city:price",), "scale": 0.5, "receipt": True},
        {"bounds": {"price": (0.1, None)}, "bits": 2, "text": ("text",)},  # cells that several names share
    ],
    ids=str,
)
def test_options_of_reading_and_bounds(options: dict[str, Any]) -> None:
    rows, y = _rows()
    options = {"bits": 10, **options}
    model = OnlineClassifier(**options, classes=(0, 1))
    for x, label in zip(rows, y, strict=True):
        model.learn_one(x, label)
    same = ftprl.train(rows, y, missing="ignore", order="given", **options).model
    assert model.model.state_digest() == same.state_digest()
    assert model.predict_proba_one(rows[3])[1] == same.predict(rows[3:4])[0]
    loaded = ftprl.Model.from_bytes(model.model.to_bytes())  # goes on with its bounds
    for one in (loaded, same):
        one.learn_one({**rows[0], "new": 3.0}, 1)
    assert loaded.state_digest() == same.state_digest()


def test_weights_stay_within_bounds() -> None:
    rows, y = _rows()
    model = OnlineRegressor(bounds={"price": (0.5, 0.75), "size": (None, 0)}, bits=12, scale=2.0)
    for x, label in zip(rows, y, strict=True):
        model.learn_one(x, float(label))
    weights = {row["name"]: row["weight"] for row in model.model.weights_table().to_pylist()}
    assert 0.5 <= weights["price"] <= 0.75
    assert weights["size"] <= 0.0


def test_a_name_without_a_weight_stops_the_learning() -> None:
    model = OnlineClassifier(bounds={"a*": (1, None), "*b": (None, 0)}, bits=8)
    model.learn_one({"a": 1.0}, True)
    before = model.model.state_digest()
    for x in ({"ab": 1.0}, {"ab": 1.0}, {"a": 1.0}):
        with pytest.raises(InvalidInput, match="bounds= leaves no weight for 'ab'"):
            model.learn_one(x, True)
    assert model.model.state_digest() == before
    with pytest.raises(InvalidInput, match="bounds= needs a pair"):
        OnlineClassifier(bounds={"a": 3}).learn_one({"a": 1.0}, True)  # type: ignore[dict-item]


def test_missing_values_of_named_keys() -> None:
    model = OnlineRegressor(missing="indicator", numeric=("size",), categorical=("city",), bits=10)
    for x in ({"size": 1.0, "city": "Ulm"}, {"size": None}, {"other": None}):
        model.learn_one(x, 1.0)
    names = set(model.model.weights_table()["name"].to_pylist())
    assert names == {"size", "city=Ulm", "size is missing", "city is missing"}
    with pytest.raises(InvalidInput, match="missing= needs"):
        OnlineRegressor(missing="zero").learn_one({"a": 1.0}, 1.0)
