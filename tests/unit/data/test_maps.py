"""Maps, structures and objects with equal names and values have equal features in a model of any of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ftprl
from ftprl import data
from ftprl._core import feature_hash
from ftprl.data.formats import settings_for
from ftprl.data.parts import as_data
from ftprl.errors import BadFormat, InvalidInput
from oracles.batches import rows_of

DIM = 1 << 20
NUMBERS = [{"k": 1.0, "j": 2.0}, {"k": 3.0}, None, {"j": -1.5, "k": 0.5}, {}] * 3
TEXTS = [{"k": "a", "j": "b"}, {"k": "b"}, None, {"j": "c", "k": "a"}, {}] * 3
Rows = list[dict[str, Any]]


def rows_with(maps: list[Any]) -> Rows:
    return [{"a": i % 4, "m": inner, "z": "xy"[i % 2], "y": i % 2} for i, inner in enumerate(maps)]


def as_map(rows: Rows) -> pa.Table:
    value = pa.string() if rows == rows_with(TEXTS) else pa.float64()
    pairs = [None if row["m"] is None else list(row["m"].items()) for row in rows]
    return _table(rows, pa.array(pairs, pa.map_(pa.string(), value)))


def as_pairs(rows: Rows) -> pa.Table:
    maps = [row["m"] for row in rows]
    pairs = [None if inner is None else [{"value": v, "name": k} for k, v in inner.items()] for inner in maps]
    value = pa.string() if rows == rows_with(TEXTS) else pa.float64()
    return _table(rows, pa.array(pairs, pa.large_list(pa.struct([("value", value), ("name", pa.string())]))))


def as_structure(rows: Rows) -> pa.Table:
    value = pa.string() if rows == rows_with(TEXTS) else pa.float64()
    return _table(rows, pa.array([row["m"] for row in rows], pa.struct([("k", value), ("j", value)])))


def _table(rows: Rows, maps: pa.Array) -> pa.Table:
    others = {name: [row[name] for row in rows] for name in ("a", "z", "y")}
    return pa.table({"a": others["a"], "m": maps, "z": others["z"], "y": others["y"]})


def forms_of(rows: Rows, folder: Path) -> dict[str, Any]:
    forms: dict[str, Any] = {"dicts": rows, "map": as_map(rows), "pairs": as_pairs(rows), "struct": as_structure(rows)}
    for name in ("map", "pairs", "struct"):
        pq.write_table(forms[name], folder / f"{name}.parquet", row_group_size=4)
        with pa.ipc.new_file(str(folder / f"{name}.arrow"), forms[name].schema) as out:
            out.write_table(forms[name], max_chunksize=4)
        forms |= {f"{name}.parquet": folder / f"{name}.parquet", f"{name}.arrow": folder / f"{name}.arrow"}
        forms[f"slices of {name}"] = [forms[name][:3], forms[name][3:]]
    write_lines(folder / "rows.jsonl", rows)
    write_lines(folder / "pairs.jsonl", with_pairs(rows))
    lines = {"jsonl": folder / "rows.jsonl", "jsonl of pairs": folder / "pairs.jsonl"}
    return {**forms, "dicts of pairs": with_pairs(rows), **lines}


def write_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def with_pairs(rows: Rows) -> Rows:
    """Return the rows with maps as lists of names and values."""
    pairs = [None if row["m"] is None else [{"name": k, "value": v} for k, v in row["m"].items()] for row in rows]
    return [{**row, "m": own} for row, own in zip(rows, pairs, strict=True)]


def as_model(source: data.Source, other: Any) -> data.Source:
    """Return other data, read as a model of this source reads it."""
    read = as_data(other)
    return data.open(read, **settings_for(source.to_dict(), read))


def features(source: data.Source) -> list[dict[int, float]]:
    return [row.features for row in rows_of(source.batches())]


@pytest.mark.parametrize("missing", ["ignore", "indicator"])
@pytest.mark.parametrize("maps", [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_all_forms_are_the_same_rows_to_a_model_of_any(tmp_path: Path, maps: list[Any], missing: str) -> None:
    rows = rows_with(maps)
    forms = forms_of(rows, tmp_path)
    for trained, form in forms.items():
        source = data.open(form, label="y", dim=DIM, missing=missing)
        expected = features(source)
        assert sum(map(len, expected)) > 2 * len(rows)
        for other, same in forms.items():
            got = features(as_model(source, same))
            assert got == expected, (trained, other)


def test_a_model_of_a_map_reads_objects_in_the_place_of_their_column(tmp_path: Path) -> None:
    rows = rows_with(NUMBERS)
    for form in (as_map(rows), as_structure(rows)):
        source = data.open(form, label="y", dim=DIM)
        first = next(iter(source.batches()))
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for other in (rows, tmp_path / "a.jsonl"):
            batch = next(iter(as_model(source, other).batches()))
            assert batch.indices.tolist() == first.indices.tolist()  # and so in the same order
            assert batch.values.tolist() == first.values.tolist()


def test_values_of_a_map_by_the_kind_of_its_column(tmp_path: Path) -> None:
    row = {"m": {"n": 2, "f": 1.5, "t": "3", "b": True, "none": None, "empty": "", "in": {"side": 4}}}
    cells = pa.table({"m": pa.array([[("n", 2.0)]], pa.map_(pa.string(), pa.float64()))})
    numeric = data.open(cells, dim=DIM, missing="ignore")
    categorical = data.open(cells, categorical="m", dim=DIM, missing="ignore")
    numbers = {"m.n": 2, "m.f": 1.5, "m.t": 3, "m.b": 1, "m.in.side": 4}
    texts = {"m.n=2": 1, "m.f=1.5": 1, "m.t=3": 1, "m.b=true": 1, "m.in.side=4": 1}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    for form in ([row], tmp_path / "a.jsonl"):
        for kinds, names in ((numeric, numbers), (categorical, texts)):
            expected = {feature_hash(name) % DIM: float(value) for name, value in names.items()}
            assert features(as_model(kinds, form)) == [expected]
    struct = pa.Table.from_pylist([{"m": {"n": 2, "f": 1.5, "b": True, "in": {"side": 4}}}])
    wanted = {feature_hash(name) % DIM: float(value) for name, value in numbers.items() if name != "m.t"}
    assert features(as_model(numeric, struct)) == [wanted]
    mixed = pa.Table.from_pylist([{"m": {"n": 2, "t": "3"}}])
    wanted = {feature_hash(name) % DIM: 1.0 for name in ("m.n=2", "m.t=3")}
    assert features(as_model(categorical, mixed)) == [wanted]
    with pytest.raises(InvalidInput, match=r"column 'm' needs fields of one type, got struct<.*, where the model"):
        features(as_model(categorical, struct))


def test_a_map_may_have_more_names_than_a_model_and_one_of_them_twice() -> None:
    rows: Rows = [{"m": {"k": 1.0, "j": 2.0}, "y": 1}, {"m": {"k": 3.0}, "y": 0}]
    pairs = [[("k", 9.0), ("k", 1.0), ("new", 7.0), ("j", 2.0)], [("k", 3.0)]]
    table = pa.table({"m": pa.array(pairs, pa.map_(pa.string(), pa.float64())), "y": [1, 0]})
    options = {"label": "y", "dim": DIM, "missing": "ignore"}
    by_value = data.open(rows, **options)
    expected = features(by_value)
    with_new = expected[0] | {feature_hash("m.new") % DIM: 7.0}
    assert features(as_model(by_value, table)) == [with_new, expected[1]]
    struct = data.open(pa.Table.from_pylist(rows), **options)
    assert features(as_model(struct, table)) == expected  # a model of a table has the columns that it has


STRUCTURES: Rows = [
    {"m": {"n": 1.0, "t": "a", "in": {"b": 2}}, "y": 1},
    {"m": {"n": 2.0, "t": "b", "in": {"b": 1}}, "y": 0},
]


@pytest.mark.parametrize("missing", ["ignore", "indicator"])
@pytest.mark.parametrize("trained", ["table", "dicts"])
def test_pairs_are_the_columns_that_a_model_has(tmp_path: Path, trained: str, missing: str) -> None:
    train = pa.Table.from_pylist(STRUCTURES) if trained == "table" else STRUCTURES
    source = data.open(train, label="y", dim=DIM, missing=missing)
    cases: list[tuple[list[Any], dict[str, Any]]] = [
        ([("n", 3), ("t", "b"), ("in.b", 4)], {"n": 3, "t": "b", "in.b": 4}),
        ([("t", 7), ("n", "1.5")], {"t": 7, "n": "1.5"}),  # by the kinds of the columns, not by the values
        ([("n", 3), ("t", "b"), ("n", 5)], {"n": 5, "t": "b"}),  # the last value of a name counts
        ([("n", 3), ("n", None)], {"n": None}),
        ([("n", True), ("t", True)], {"n": True, "t": True}),
        ([("n", ""), ("t", "")], {"n": "", "t": ""}),
        ([("n", 1), ("new", 2), ("later", "x"), ("none", None)], {"n": 1, "new": 2, "later": "x"}),
        ([], {}),
    ]
    for pairs, same in cases:
        listed = {"m": [{"value": value, "name": name} for name, value in pairs], "y": 1}
        write_lines(tmp_path / "pairs.jsonl", [listed])
        (expected,) = features(as_model(source, [{"m": same, "y": 1}]))
        for form in ([listed], tmp_path / "pairs.jsonl", [{"m": np.array(listed["m"], object), "y": 1}]):
            assert features(as_model(source, form)) == [expected], pairs
    inner = [{"m": {"n": 1, "in": [{"key": "b", "value": 2}]}, "m.t": "a"}]
    write_lines(tmp_path / "inner.jsonl", inner)
    same_rows = [{"m": {"n": 1, "t": "a", "in": {"b": 2}}}]
    for form in (inner, tmp_path / "inner.jsonl"):
        assert features(as_model(source, form)) == features(as_model(source, same_rows))


def test_a_label_and_a_column_that_is_ignored_in_pairs(tmp_path: Path) -> None:
    rows: Rows = [{"m": {"n": i, "y": i % 2, "id": f"{i}"}} for i in range(6)]
    pairs = with_pairs(rows)
    write_lines(tmp_path / "pairs.jsonl", pairs)
    source = data.open(rows, label="m.y", ignore="m.id", dim=DIM)
    expected = [(row.y, row.features) for row in rows_of(source.batches())]
    assert {y for y, _ in expected} == {-1.0, 1.0}
    for form in (pairs, tmp_path / "pairs.jsonl"):
        assert [(row.y, row.features) for row in rows_of(as_model(source, form).batches())] == expected


def test_bad_pairs_where_a_model_has_columns(tmp_path: Path) -> None:
    source = data.open(pa.Table.from_pylist(STRUCTURES), label="y")
    for bad in ([{"name": "n", "value": [1]}], [{"name": "n", "size": 1}], [{"name": "n", "value": "many"}]):
        write_lines(tmp_path / "bad.jsonl", [{"m": bad}])
        for form in ([{"m": bad}], tmp_path / "bad.jsonl"):
            with pytest.raises(BadFormat, match=r"(row 0|jsonl:1): expected .* in column '?m"):
                features(as_model(source, form))


@pytest.mark.parametrize("kind", ["date", "boolean", "bucket"])
def test_an_object_for_a_single_value_is_refused(tmp_path: Path, kind: str) -> None:
    cells = {"date": ["2024-05-01", "2024-05-02"], "boolean": [True, False], "bucket": [1.0, 2.0]}[kind]
    source = data.open(pa.table({"m": cells}), **{kind: "m"})
    with pytest.raises(BadFormat, match="row 0: expected one value, got a dict in column 'm'; fix the row"):
        features(as_model(source, [{"m": {"k": 1}}]))
    (tmp_path / "a.jsonl").write_text('{"m": {"k": 1}}\n')
    with pytest.raises(BadFormat, match="jsonl:1: expected one value, got an object in column 'm'; fix the row"):
        features(as_model(source, tmp_path / "a.jsonl"))


def test_a_list_within_a_map_is_refused(tmp_path: Path) -> None:
    cells = pa.table({"m": pa.array([[("n", 2.0)]], pa.map_(pa.string(), pa.float64()))})
    source = data.open(cells)
    with pytest.raises(BadFormat, match="row 0: expected numbers or text in a dict, got a list in column 'm'; fix"):
        features(as_model(source, [{"m": {"k": [1]}}]))
    (tmp_path / "a.jsonl").write_text('{"m": {"k": [1]}}\n')
    with pytest.raises(
        BadFormat, match="jsonl:1: expected numbers or text in an object, got an array in column 'm'; f"
    ):
        features(as_model(source, tmp_path / "a.jsonl"))
    deep: Any = 1
    for _ in range(70):
        deep = {"d": deep}
    with pytest.raises(BadFormat, match="expected at most 64 dicts within each other, got more"):
        features(as_model(source, [{"m": deep}]))


def test_predictions_of_a_map_column_from_all_forms(tmp_path: Path) -> None:
    rows = rows_with(NUMBERS) * 20
    model = ftprl.train(as_map(rows), label="y", bits=12).model
    expected = model.predict(as_map(rows))
    assert len(set(expected.tolist())) > 5
    for form in forms_of(rows, tmp_path).values():
        assert model.predict(form).tolist() == expected.tolist()
    for row, value in zip(rows[:15], expected, strict=False):
        explained = model.explain({name: own for name, own in row.items() if name != "y"})
        assert explained.prediction == value


def model_of_a_map() -> ftprl.Model:
    maps = pa.array([[("k", 1.0)], [("k", -1.0)]] * 20, pa.map_(pa.string(), pa.float64()))
    return ftprl.train(pa.table({"m": maps, "y": [1, 0] * 20}), label="y").model


def test_a_key_with_a_point_is_no_element_of_a_map_in_any_order_of_rows(tmp_path: Path) -> None:
    model = model_of_a_map()
    rows = [{"m.k": 2}, {"m": {"k": 1}}]
    alone = [model.predict([row])[0] for row in rows]
    for order in ([0, 1], [1, 0]):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(rows[i]) + "\n" for i in order))
        np.testing.assert_array_equal(model.predict(path), [alone[i] for i in order])


def test_structures_of_odd_shapes_where_a_model_has_other_columns() -> None:
    model = model_of_a_map()
    without_fields = pa.table({"m": pa.array([{}, None], pa.struct([]))})
    np.testing.assert_array_equal(model.predict(without_fields), model.predict([{"m": None}, {"m": None}]))
    with pytest.raises(InvalidInput, match="needs fields with one value each, got a list in 'k'"):
        model.predict(pa.table({"m": [{"k": [1.0]}]}))
    dates = ftprl.train(pa.table({"d": ["2020-01-01", "2020-01-02"] * 20, "y": [1, 0] * 20}), label="y", date="d").model
    with pytest.raises(BadFormat, match=r"expected a column 'd', got the column 'd\.a'"):
        dates.predict(pa.table({"d": [{"a": 1.0}]}))


def test_pairs_in_frames_for_a_model_of_structures() -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    model = ftprl.train(
        [{"m": {"k": 1.0, "j": 0.0}, "y": 1}, {"m": {"k": 0.0, "j": 1.0}, "y": 0}] * 20, label="y"
    ).model
    pairs = {"m": [[{"name": "k", "value": 2.0}], [{"name": "j", "value": 1.0}]]}
    for frame in (pl.DataFrame(pairs), pd.DataFrame(pairs)):
        np.testing.assert_array_equal(model.predict(frame), model.predict([{"m": {"k": 2.0}}, {"m": {"j": 1.0}}]))
