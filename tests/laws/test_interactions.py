"""Interactions: products equal the slow twin's, and rows do not depend on the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from oracles.interactions_twin import Feature, cells, column_features, products

DIM = 2**20
VALUES = st.sampled_from([0.5, 1.0, -2.0, 3.0])
WORDS = st.lists(st.sampled_from(["free", "call", "now", "x1"]), max_size=4).map(" ".join)
ROW = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["ann", "bob"]),
        "ad": st.sampled_from(["a", "b", "c", "", None]),
        "n": st.one_of(st.none(), VALUES),
        "note": st.one_of(st.none(), WORDS),
        "new": st.sampled_from([True, False, None]),
    }
)
TERM = st.sampled_from(["user", "ad", "n", "note", "new", "*"])
SCHEMA = {"user": pl.String, "ad": pl.String, "n": pl.Float64, "note": pl.String, "new": pl.Boolean}
SPECS = st.lists(st.lists(TERM, min_size=2, max_size=3), min_size=1, max_size=3)


def rows_of(batches: Any) -> list[dict[int, float]]:
    rows: list[dict[int, float]] = []
    for batch in batches:
        for r in range(len(batch)):
            part = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
            rows.append(dict(zip(batch.indices[part].tolist(), batch.values[part].tolist(), strict=True)))
    return rows


def unique(specs: list[list[str]]) -> list[list[str]]:
    kept: list[list[str]] = []
    for terms in specs:
        if not any(sorted(terms) == sorted(other) for other in kept):
            kept.append(terms)
    return kept


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4), SPECS)
def test_every_format_has_the_products_of_the_twin(rows: list[dict[str, Any]], specs: list[list[str]]) -> None:
    expected = []
    for row in rows:
        features = column_features(row, ("note",))
        expected.append(cells(features, products(features, unique(specs), namespaces=False), DIM))
    options: dict[str, Any] = {"dim": DIM, "text": "note", "numeric": "n", "boolean": "new", "categorical": "ad"}
    options |= {"interactions": specs, "dtype": "float64", "missing": "indicator"}
    frame = pl.DataFrame(rows, schema=SCHEMA)
    for source in (rows, frame, frame.to_arrow()):
        got = rows_of(data.open(source, **options).batches())
        assert [set(row) for row in got] == [set(row) for row in expected]
        for one, other in zip(got, expected, strict=True):
            assert all(one[cell] == pytest.approx(other[cell], rel=1e-12) for cell in other)


def test_files_have_the_rows_of_the_frame(tmp_path: Path) -> None:
    rows = [{"user": "ann", "ad": "x", "n": 2.0, "note": "free call"}, {"user": "bob", "ad": "y", "n": 0.5, "note": ""}]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options: dict[str, Any] = {"dim": DIM, "text": "note", "interactions": ["user:ad", "*:note", "n:ad:user"]}
    expected = rows_of(data.open(rows, **options).batches())
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        assert rows_of(data.open(str(tmp_path / name), **options).batches()) == expected


NAMES = st.lists(st.tuples(st.sampled_from(["x", "y", "a_longer_name_than_sixteen"]), VALUES), max_size=3)
SPACES = st.lists(st.tuples(st.sampled_from(["user", "ad", "u2"]), NAMES), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    SPACES, st.lists(st.lists(st.sampled_from(["u", "a", "user", "*"]), min_size=2, max_size=3), min_size=1, max_size=2)
)
def test_namespaces_by_letter_or_name(
    tmp_path_factory: Any, spaces: list[tuple[str, Any]], specs: list[list[str]]
) -> None:
    from oracles.hash_twin import feature_hash

    path = tmp_path_factory.mktemp("vw") / "t.vw"
    path.write_text(
        "1 " + " ".join(f"|{space} " + " ".join(f"{n}:{v}" for n, v in names) for space, names in spaces) + "\n"
    )
    features: list[Feature] = [
        (space, feature_hash(n.encode(), feature_hash(space.encode(), 0)), v)
        for space, names in spaces
        for n, v in names
    ]
    expected = cells(features, products(features, unique(specs), namespaces=True), DIM)
    (got,) = rows_of(data.open(str(path), dim=DIM, interactions=specs, dtype="float64").batches())
    assert set(got) == set(expected)
    assert np.allclose([got[cell] for cell in expected], list(expected.values()), rtol=1e-12)
