"""Structures, lists and maps in the columns of frames and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ftprl
from ftprl import data
from ftprl._core import feature_hash
from ftprl.errors import BadFormat, InvalidInput
from oracles.batches import rows_of

DIM = 1 << 20
MAP = pa.map_(pa.string(), pa.int32())
NAMED = pa.list_(pa.struct([("value", pa.float64()), ("name", pa.string())]))


def features(frame: Any, **options: Any) -> list[dict[int, float]]:
    options = {"missing": "ignore", **options}
    return [row.features for row in rows_of(data.open(frame, dim=DIM, **options).batches())]


def slots(*pairs: tuple[str, float]) -> dict[int, float]:
    return {feature_hash(name) % DIM: value for name, value in pairs}


def nested_frame() -> pa.Table:
    return pa.table(
        {
            "user": pa.array([{"age": 3, "home": {"city": "Rome"}}, None, {"age": None, "home": {"city": "Oslo"}}]),
            "tags": pa.array([["a", "b", "a"], None, ["", None, "c"]]),
            "vector": pa.array([[0.5, 0.0, None], [], [float("nan"), 2.0]]),
            "ids": pa.array([[7], [8, 9], None], pa.list_(pa.int64())),
            "counts": pa.array([[("x", 2), ("y", None)], None, [("", 1)]], MAP),
            "words": pa.array(
                [
                    [{"name": "big", "value": 2.0}, None],
                    [],
                    [{"name": None, "value": 1.0}, {"name": "a", "value": 0.5}],
                ],
                NAMED,
            ),
        }
    )


EXPECTED = [
    slots(("user.age", 3), ("user.home.city=Rome", 1), ("tags=a", 2), ("tags=b", 1), ("vector.0", 0.5), ("ids=7", 1))
    | slots(("counts.x", 2), ("words.big", 2)),
    slots(("ids=8", 1), ("ids=9", 1)),
    slots(("user.home.city=Oslo", 1), ("tags=c", 1), ("vector.1", 2), ("counts.", 1), ("words.a", 0.5)),
]


def test_frames_with_columns_in_columns() -> None:
    frame = nested_frame()
    assert features(frame, categorical="ids") == EXPECTED
    assert features([frame[:1], frame[1:]], categorical="ids") == EXPECTED
    assert features(frame[1:], categorical="ids") == EXPECTED[1:]
    assert features(frame.slice(2), categorical="ids") == EXPECTED[2:]
    kinds = data.open(frame).describe().columns
    assert kinds == {
        "user.age": "numeric",
        "user.home.city": "categorical",
        "tags": "categorical",
        "vector": "numeric",
        "ids": "numeric",
        "counts": "numeric",
        "words": "numeric",
    }


def test_files_with_columns_in_columns(tmp_path: Path) -> None:
    frame = nested_frame()
    pq.write_table(frame, tmp_path / "a.parquet")
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), frame.schema) as out:
        out.write_table(frame)
    for name in ("a.parquet", "a.arrow"):
        assert features(tmp_path / name, categorical="ids") == EXPECTED
        some = [{slot: value for slot, value in row.items() if slot in slots(("user.age", 1))} for row in EXPECTED]
        ignored = ["tags", "vector", "ids", "counts", "words", "user.home.city"]
        assert features(tmp_path / name, ignore=ignored) == some
        ignored = ["tags", "vector", "ids", "counts", "words", "user"]
        assert features(tmp_path / name, ignore=ignored) == [{}, {}, {}]


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), {}, [slots(("x.0", 1), ("x.1", 2)), {}]),
        (pa.array([["a b", "b"], None]), {"text": "x"}, [slots(("x=a", 1), ("x=b", 2)), {}]),
        (pa.array([[True, False], None]), {}, [slots(("x=true", 1), ("x=false", 1)), {}]),
        (pa.array([[True, False], None]), {"numeric": "x"}, [slots(("x.0", 1)), {}]),
        (pa.array([["1.5", "NA"], None]), {"numeric": "x"}, [slots(("x.0", 1.5)), {}]),
        (pa.array([["a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))), {}, [slots(("x=a", 1)), {}]),
        (pa.array([["a"], None], pa.large_list(pa.large_string())), {}, [slots(("x=a", 1)), {}]),
        (pa.array([["a"], None], pa.list_(pa.string_view())), {}, [slots(("x=a", 1)), {}]),
        (pa.array([["a"], None], pa.list_view(pa.string())), {}, [slots(("x=a", 1)), {}]),
        (pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.string())), {}, [slots(("x.k=v", 1)), {}]),
        (pa.array([[(3, 2.0)], None], pa.map_(pa.int64(), pa.float32())), {}, [slots(("x.3", 2)), {}]),
        (pa.array([[{"key": "k", "value": True}], None]), {}, [slots(("x.k=true", 1)), {}]),
        (pa.array([[1.5], None], pa.list_(pa.float16())), {}, [slots(("x.0", 1.5)), {}]),
    ],
)
def test_lists_of_every_type(cells: pa.Array, options: Any, expected: Any) -> None:
    assert features(pa.table({"x": cells}), **options) == expected
    both = pa.concat_arrays([cells, cells]) if cells.type != pa.list_view(pa.string()) else cells
    assert features(pa.table({"x": both[1:]}), **options) == (expected * 2)[1 : len(both)]


def test_lists_of_polars_and_dicts_of_json_agree(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    rows = [{"y": 1, "tags": ["a", "b"], "v": [1.0, 2.0]}, {"y": 0, "tags": [], "v": [0.5]}] * 20
    import json

    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = ftprl.train(tmp_path / "a.jsonl", label="y", bits=10).model.state_digest()
    assert ftprl.train(pl.DataFrame(rows), label="y", bits=10).model.state_digest() == expected
    assert ftprl.train(pa.Table.from_pylist(rows), label="y", bits=10).model.state_digest() == expected


def test_long_vectors_have_a_name_for_each_place() -> None:
    cells = pa.array([[0.0] * 70_000 + [1.0]])
    assert features(pa.table({"x": cells})) == [slots(("x.70000", 1))]


def test_what_is_refused() -> None:
    with pytest.raises(BadFormat, match="row 1: expected a finite number, got 'inf' in column 'x'; fix the row"):
        features(pa.table({"x": [[1.0], [float("inf")]]}))
    with pytest.raises(BadFormat, match="row 0: expected a number, got 'a' in column 'x'"):
        features(pa.table({"x": [["a"]]}), numeric="x")
    bad = pa.array([[b"b\xff"]], pa.list_(pa.binary())).cast(pa.list_(pa.binary()))
    bad = pa.ListArray.from_arrays(bad.offsets, bad.values.view(pa.string()))
    with pytest.raises(BadFormat, match="row 0: expected text in UTF-8, got other bytes in column 'x'"):
        features(pa.table({"x": bad}))
    for cells in (pa.array([[[1]]]), pa.array([[{"a": 1, "b": 2}]])):
        with pytest.raises(
            InvalidInput, match="column 'x' needs numbers, text, dates, booleans or categories, got list<"
        ):
            features(pa.table({"x": cells}))
        assert features(pa.table({"x": cells, "z": [1]}), ignore="x") == [slots(("z", 1))]
    with pytest.raises(InvalidInput, match="column 'x' needs numbers"):
        features(pa.table({"x": [[1.0]]}), label="x")
    deep: Any = 1
    for _ in range(70):
        deep = {"a": deep}
    with pytest.raises(InvalidInput, match="needs structures at most 64 deep, got deeper ones; flatten it"):
        features(pa.table({"x": [deep]}))
    with pytest.raises(InvalidInput, match=r"data needs each column once, got 'a.b' twice; rename one"):
        features(pa.table({"a": [{"b": 1}], "a.b": [1]}))


def test_dicts_have_dicts_and_lists(tmp_path: Path) -> None:
    rows = [
        {"user": {"age": 3, "home": {"city": "Rome"}}, "tags": ("a", "b", "a"), "vector": np.array([0.5, 0.0]), "y": 1},
        {"user": None, "tags": [], "words": [{"name": "big", "value": 2}, {"key": 7, "value": None}], "y": 0},
    ]
    expected = [
        slots(("user.age", 3), ("user.home.city=Rome", 1), ("tags=a", 2), ("tags=b", 1), ("vector.0", 0.5)),
        slots(("words.big", 2)),
    ]
    assert features(rows, label="y") == expected
    described = data.open(rows, label="y").describe().columns
    assert described["user.age"] == described["words"] == "numeric"
    assert described["user.home.city"] == described["tags"] == "categorical"
    assert features(rows, label="y", ignore=["user", "words"], categorical="vector", text="tags") == [
        slots(("tags=a", 2), ("tags=b", 1), ("vector=0.5", 1), ("vector=0.0", 1)),
        {},
    ]
    with_missing = features(rows, label="y", missing="indicator", ignore=["vector", "words"])
    assert with_missing[1] == slots(("user.age is missing", 1), ("user.home.city is missing", 1))
    inner = [{"x": {"a": i % 3}, "seen": {"click": i % 2}} for i in range(40)]
    assert features(inner, label="seen.click") == features([{"x.a": i % 3, "y": i % 2} for i in range(40)], label="y")


def test_dicts_within_dicts_row_by_row() -> None:
    rows = [{"user": {"age": i % 5, "tags": ["a", "b"][: i % 3]}, "n": i % 7} for i in range(200)]
    y = [int(i % 5 > 2) for i in range(200)]
    model = ftprl.OnlineClassifier()
    for row, label in zip(rows, y, strict=True):
        model.learn_one(row, label)
    flat = [{"user.age": row["user"]["age"], "user.tags": row["user"]["tags"], "n": row["n"]} for row in rows]
    other = ftprl.OnlineClassifier()
    for row, label in zip(flat, y, strict=True):
        other.learn_one(row, label)
    assert [model.predict_proba_one(row) for row in rows] == [other.predict_proba_one(row) for row in flat]
    assert "user.tags=a" in model.model.weights_table()["name"].to_pylist()


def test_categories_of_polars_wherever_they_are() -> None:
    """Polars has dictionaries of string views, which pyarrow can neither cast nor take from."""
    pl = pytest.importorskip("polars")
    text = {"c": ["a b", "b", None] * 20, "k": ["1", "2", None] * 20, "y": ["no", "yes"] * 30, "w": ["1", "2.5"] * 30}
    plain = pl.DataFrame({**text, "list": [["a"], ["b", "a"], None] * 20, "n": range(60)})
    pairs = [[{"name": "u", "value": "v"}], None, []] * 20
    plain = plain.with_columns(pl.Series("pairs", pairs))
    categories = plain.with_columns(
        *(pl.col(name).cast(pl.Categorical) for name in text),
        pl.col("list").cast(pl.List(pl.Categorical)),
        pl.col("pairs").cast(pl.List(pl.Struct({"name": pl.Categorical, "value": pl.Categorical}))),
    )
    for options in (
        {"label": "y", "positive": "yes"},
        {"label": "y", "loss": "softmax", "text": ["c", "list"]},
        {"label": "n", "loss": "squared", "numeric": "k", "ignore": "y"},
        {"label": "y", "positive": "yes", "weight": "w"},
    ):
        models = [ftprl.train(frame, bits=12, **options).model for frame in (plain, categories)]
        assert models[0].state_digest() == models[1].state_digest(), options
        assert models[0].predict(plain).tolist() == models[0].predict(categories).tolist()


def test_categories_that_are_numbers_stay_categories_in_parquet(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"zip": pd.Categorical([1010, 2020, None] * 20), "x": range(60), "y": [0, 1] * 30})
    frame["half"] = pd.Categorical([0.5, 1.0] * 30)
    frame.to_parquet(tmp_path / "a.parquet")
    for options in ({}, {"ignore": "zip"}, {"numeric": "zip"}):
        source = data.open(tmp_path / "a.parquet", label="y", **options)
        assert source.describe().columns == data.open(frame, label="y", **options).describe().columns
        runs = [ftprl.train(form, label="y", bits=12, **options) for form in (frame, tmp_path / "a.parquet")]
        assert runs[0].model.state_digest() == runs[1].model.state_digest()
    pq.write_table(pa.table({"zip": [1, 2], "y": [0, 1]}), tmp_path / "b.parquet")
    assert data.open(tmp_path / "b.parquet", label="y").describe().columns == {"zip": "numeric", "y": "label"}
