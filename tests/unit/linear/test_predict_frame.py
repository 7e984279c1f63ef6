"""Frames go to the core directly: few calls, and the bits of any other way to read them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ftprl import Model, train
from ftprl.data.jobs import CoreParser
from ftprl.errors import BadFormat, InvalidInput

MOST_FUNCTIONS = 12


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return numbers with gaps, categories, booleans, dates and labels."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "x": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400)),
        "n": rng.integers(0, 9, 400),
        "city": rng.choice(["Ulm", "Bonn", "Köln"], 400),
        "flag": rng.random(400) < 0.5,
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), "D"),
    }
    frame = pd.DataFrame(columns)
    return frame.assign(y=(rng.random(400) < 0.3).astype(int), kind=frame["city"].astype("category"))


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> Model:
    return train(frame, label="y").model


@pytest.mark.parametrize("converts", [False, True])
@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
def test_few_calls_lead_to_the_core(frame: pd.DataFrame, form: str, converts: bool) -> None:
    """Count our own functions from Model.predict to the parser of the core."""
    frame = frame if converts else frame.drop(columns="kind")
    model = train(frame, label="y").model
    forms = {"pandas": lambda: frame, "polars": lambda: pl.from_pandas(frame), "pyarrow": lambda: pa.table(frame)}
    rows = forms[form]()
    model.predict(rows)  # what the columns are is decided once
    calls, parse = list[str](), CoreParser.parse.__code__

    def count(called: Any, event: str, _: Any) -> None:
        if event == "call" and "/ftprl/" in called.f_code.co_filename and "tests" not in called.f_code.co_filename:
            calls.append(called.f_code.co_qualname)
            if called.f_code is parse:
                sys.setprofile(None)

    sys.setprofile(count)
    try:
        model.predict(rows)
    finally:
        sys.setprofile(None)
    assert calls[0] == "Model.predict"
    assert calls[-1] == "CoreParser.parse"
    assert len(set(calls)) <= MOST_FUNCTIONS, calls


def test_all_ways_have_the_same_bits(model: Model, frame: pd.DataFrame) -> None:
    """A frame at once, as a source, with reordered columns of other types, and in chunks."""
    wanted = model.predict(model.open(frame)).tolist()
    assert model.predict(frame).tolist() == wanted
    assert model.predict(pl.from_pandas(frame)).tolist() == wanted
    table = pa.Table.from_pandas(frame, preserve_index=False)
    assert model.predict(table).tolist() == wanted
    assert model.predict(table.select(table.column_names[::-1])).shape == (400,)
    assert model.predict(pa.concat_tables([table[:7], table[7:]])).tolist() == wanted
    assert model.predict(frame.drop(columns="y")).tolist() == wanted
    assert model.predict(frame.assign(other="a")).tolist() == wanted
    with pytest.raises((BadFormat, InvalidInput), match="expected a column 'city'"):
        model.predict(frame.drop(columns="city"))


def test_missing_numbers_are_read_as_in_a_frame_with_text(frame: pd.DataFrame) -> None:
    """A frame of numbers alone, some missing, has the features of a frame with an additional text column."""
    numbers = frame[["x", "n", "y"]].astype(float)
    mixed = numbers.assign(note="a")
    alone, beside = train(numbers, label="y"), train(mixed, label="y", ignore="note")
    assert alone.model.state_digest() == beside.model.state_digest()
    assert alone.model.predict(numbers).tolist() == beside.model.predict(mixed).tolist()
    assert alone.progressive_loss == beside.progressive_loss
    for rows in (pl.from_pandas(numbers), pa.Table.from_pandas(numbers, preserve_index=False)):
        assert train(rows, label="y").model.state_digest() == alone.model.state_digest()
