"""Frames with contents that Arrow does not take directly: mixed pandas columns, sparse ones, intervals, objects,
runs.
"""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ftprl
from ftprl.errors import BadFormat, InvalidInput

ROWS = 8
LABELS = [0, 1] * (ROWS // 2)


def features(data: Any, **options: Any) -> list[str]:
    names = ftprl.train(data, LABELS, bits=14, **options).model.names
    assert names is not None
    return sorted(names.all())


@pytest.fixture
def pd() -> Any:
    return pytest.importorskip("pandas")


MIXED = [1, "a", None, 2.5, True, "1", Decimal("0.1"), datetime.date(2024, 5, 1)]


def test_a_column_of_mixed_types_is_refused_with_its_types_and_what_to_do(pd: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        features(pd.DataFrame({"c": pd.Series([1, "a"] * 4, dtype=object)}))
    message = "column 'c' needs numbers, text, dates, booleans or categories, got int and str; pass it with ignore=, or"
    assert str(caught.value) == f"{message} with categorical= to use its text."


def test_options_read_a_column_of_mixed_types_or_leave_it_out(pd: Any) -> None:
    frame = pd.DataFrame({"c": pd.Series(MIXED, dtype=object), "d": 1.0})
    texts = ["c=0.1", "c=1", "c=2.5", "c=2024-05-01", "c=a", "c=true"]
    assert features(frame, categorical="c") == ["c is missing", *texts, "d"]
    assert features(frame, ignore="c") == ["d"]
    numbers = pd.DataFrame({"c": pd.Series([1, "2", None, 2.5] * 2, dtype=object)})
    assert features(numbers, numeric="c") == ["c", "c is missing"]
    with pytest.raises(BadFormat, match="row 1: expected a number, got 'a' in column 'c'"):
        features(frame, numeric="c")


def test_mixed_types_read_as_categories_are_those_of_dicts(pd: Any) -> None:
    values = [1, "a", None, 2.5, True, "1", 7, "b"]
    frame = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    assert features(frame, categorical="c") == features([{"c": value} for value in values])


@pytest.mark.parametrize(
    ("values", "what"),
    [([object()] * ROWS, "object"), ([{1, "a"}] * ROWS, "set"), ([lambda: 1] * ROWS, "function")],
)
def test_a_column_of_objects_is_only_left_out(pd: Any, values: list[Any], what: str) -> None:
    frame = pd.DataFrame({"c": values, "d": 1.0})
    for options in ({}, {"categorical": "c"}, {"numeric": "c"}):
        with pytest.raises(InvalidInput, match=rf"column 'c' needs .*, got {what}; pass it with ignore=\.$"):
            features(frame, **options)
    assert features(frame, ignore="c") == ["d"]


def test_sparse_columns_are_read_as_dense_ones(pd: Any) -> None:
    numbers, words = [0.0, 1.5, np.nan, 0.0] * 2, ["a", "b"] * 4
    dense = pd.DataFrame({"c": numbers, "w": words})
    sparse = pd.DataFrame({"c": pd.arrays.SparseArray(numbers), "w": pd.arrays.SparseArray(words)})
    models = [ftprl.train(frame, LABELS, bits=14).model for frame in (dense, sparse)]
    assert features(sparse) == features(dense)
    assert np.array_equal(models[0].predict(dense), models[1].predict(sparse))


def test_numbers_beyond_64_bits_are_numbers(pd: Any) -> None:
    large = pd.DataFrame({"c": pd.Series([10**25, 1] * 4, dtype=object)})
    small = pd.DataFrame({"c": [1e25, 1.0] * 4})
    models = [ftprl.train(frame, LABELS, bits=14).model for frame in (large, small)]
    assert np.array_equal(models[0].predict(large), models[1].predict(small))
    assert features(pd.DataFrame({"c": np.arange(ROWS).astype(np.longdouble)})) == ["c"]
    with pytest.raises(InvalidInput, match=r"^y= needs one number or text per row, got .*; pass a list or an array\.$"):
        ftprl.train(small, [10**30] * ROWS)


def test_intervals_of_pandas_are_categories_of_their_texts(pd: Any) -> None:
    ages = pd.DataFrame({"age": pd.cut([1, 15, 30, 99] * 2, [0, 18, 65])})
    assert features(ages) == ["age is missing", "age=(0, 18]", "age=(18, 65]"]
    days = pd.DataFrame({"day": pd.period_range("2024-05-01", periods=ROWS, freq="D")})
    with pytest.raises(InvalidInput, match=r"got period\[D\]; pass it with ignore=, or with categorical= to use its"):
        features(days)
    assert features(days, categorical="day")[0] == "day=2024-05-01"


def test_a_column_that_occurs_twice_is_named(pd: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^data needs each column once, got 'a' twice; rename one\.$"):
        features(pd.DataFrame(np.ones((ROWS, 2)), columns=["a", "a"]))


def test_one_column_is_no_frame(pd: Any) -> None:
    one = r"^data needs a frame with columns, got %s, which is one column; %s\.$"
    with pytest.raises(InvalidInput, match=one % ("Series", r"call \.to_frame\(\) on it")):
        features(pd.Series([1.0] * ROWS))
    with pytest.raises(InvalidInput, match=one % ("Int64Array", "put it into a table with a name")):
        features(pa.array([1] * ROWS))
    with pytest.raises(InvalidInput, match=r"^y= needs one number or text per row, got DataFrame of shape \(8, 1\);"):
        ftprl.train(pd.DataFrame({"a": [1.0] * ROWS}), pd.DataFrame({"y": LABELS}))


def test_polars_objects_are_only_left_out_and_wide_numbers_are_read() -> None:
    pl = pytest.importorskip("polars")
    objects = pl.DataFrame({"c": pl.Series([object()] * ROWS, dtype=pl.Object), "d": [1.5] * ROWS})
    for options in ({}, {"categorical": "c"}):
        with pytest.raises(InvalidInput, match=r"column 'c' needs .*, got Python objects; pass it with ignore=\.$"):
            features(objects, **options)
    assert features(objects, ignore="c") == ["d"]
    if hasattr(pl, "Int128"):
        wide = pl.DataFrame({"c": pl.Series([2**80, 5] * 4, dtype=pl.Int128)})
        assert features(wide) == ["c"]


def test_columns_in_runs_are_those_without() -> None:
    words, numbers = pa.array(["a", "a", None, "b"] * 2), pa.array([1.5, 1.5, 2.0, None] * 2)
    days = pa.array([datetime.date(2024, 5, 1)] * ROWS)
    plain = pa.table({"w": words, "n": numbers, "d": days})
    runs = pa.table({name: pa.compute.run_end_encode(plain[name].combine_chunks()) for name in plain.column_names})
    models = [ftprl.train(table, LABELS, bits=14).model for table in (plain, runs)]
    assert features(runs) == features(plain)
    assert np.array_equal(models[0].predict(plain), models[1].predict(runs))


def test_uuids_are_categories_when_named() -> None:
    if not hasattr(pa, "uuid"):
        pytest.skip("this version of pyarrow has no UUIDs")
    table = pa.table({"c": pa.array([uuid.UUID(int=i % 2).bytes for i in range(ROWS)], pa.uuid())})
    with pytest.raises(InvalidInput, match=r"got extension<arrow\.uuid>; pass it with ignore=, or with categorical="):
        features(table)
    assert len(features(table, categorical="c")) == 2


def damaged(name: str) -> pa.Array:
    """Return an array whose offsets or entries point outside its memory, as a faulty producer makes it."""
    offsets = pa.py_buffer(np.array([0, 1, 1 << 30, 3], np.int32))
    if name == "texts":
        return pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abc"))
    if name == "lists":
        return pa.ListArray.from_buffers(pa.list_(pa.int64()), 3, [None, offsets], children=[pa.array([1, 2, 3])])
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 1 << 30]), pa.array(["a", "b"]), safe=False)


@pytest.mark.parametrize("name", ["texts", "lists", "entries"])
def test_damaged_memory_is_refused(name: str) -> None:
    """Damaged memory raises an error; it once ended the process."""
    bad = pa.table({"x": damaged(name), "y": [0, 1, 0]})
    whole = [[1], [2], [3]] if name == "lists" else ["a", "b", "a"]
    model = ftprl.train(pa.table({"x": whole, "y": [0, 1, 0]}), label="y", bits=8).model
    batch = bad.to_batches()[0]
    for step in (
        lambda: ftprl.train(bad, label="y", bits=8),
        lambda: ftprl.train(batch, label="y", bits=8),
        lambda: ftprl.train([bad.slice(0, 0), bad], label="y", bits=8),
        lambda: model.predict(bad),
        lambda: model.predict(batch),
    ):
        with pytest.raises(
            BadFormat, match=r"^<memory>: expected a valid \w+, got damaged memory \(.*\); make it anew\.$"
        ):
            step()
