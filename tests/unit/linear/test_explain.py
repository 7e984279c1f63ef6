"""Contributions of one row sum to its score; weights by name, in tables and files."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import ftprl
from ftprl.cli.app import run as ftprl_command
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from ftprl.linear import Model

WORDS = ["free", "call", "home", "lunch", "txt", "love", "win", "see"]


def shop(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    words = rng.integers(0, len(WORDS), (rows, 3))
    y = ((words == 0).any(axis=1) | (words == 6).any(axis=1)) ^ (rng.random(rows) < 0.1)
    text = [" ".join(WORDS[i] for i in row) for row in words.tolist()]
    return pl.DataFrame(
        {"n": rng.normal(size=rows).round(3), "city": rng.choice(["Rome", "Oslo"], rows), "t": text}
    ).with_columns(y=pl.Series(y))


@pytest.fixture(scope="module")
def model() -> Model:
    return ftprl.train(shop(), label="y", text="t", bits=12).model


def check_sum(model: Model, row: object) -> None:
    result = model.explain(row)
    parts = [result.intercept, *(entry.contribution for entry in result.contributions), result.remainder]
    assert math.fsum(parts) == pytest.approx(result.score, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"scale": 0.1}, {"loss": "squared"}, {"loss": "hinge"}])
def test_contributions_sum_to_the_score(options: dict[str, object]) -> None:
    table = shop().with_columns(pl.col("y").cast(pl.Int64))
    made = ftprl.train(table, label="y", text="t", bits=12, **options).model
    for i in range(10):
        row = table.drop("y")[i]
        check_sum(made, row)
        result = made.explain(row)
        assert result.score == made.predict(row, raw=True)[0]
        assert result.prediction == made.predict(row)[0]
        size = sum(abs(entry.contribution) for entry in result.contributions)
        if options.get("loss") != "hinge":  # whose experts are cut to -1 and 1, and soon get there
            assert abs(result.remainder) <= 0.05 * size + 1e-12


def test_one_scale_adds_weight_times_value() -> None:
    table = shop()
    made = ftprl.train(table, label="y", text="t", bits=12, scale=0.1).model
    weights = made.weights()
    result = made.explain(table.drop("y")[0])
    for entry in result.contributions:
        assert entry.contribution == pytest.approx(weights[entry.cell] * entry.value, abs=1e-12)
    assert result.remainder == pytest.approx(0.0, abs=1e-12)


def test_every_form_of_a_row_has_the_same_explanation(model: Model) -> None:
    row = {"n": 0.5, "city": "Rome", "t": "Free lunch"}
    result = model.explain(row)
    assert {entry.name for entry in result.contributions} == {"n", "city=Rome", "t=free", "t=lunch"}
    for other in (
        pl.DataFrame([row]),
        '{"n": 0.5, "city": "Rome", "t": "Free lunch"}',
        "0.5,Rome,Free lunch",
        "0.5,Rome,Free lunch,1",
    ):
        assert model.explain(other) == result


def test_a_line_of_vw_text_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 |a x y:2\n-1 |a y |b z\n" * 50)
    model = ftprl.train(tmp_path / "a.vw", bits=8).model
    result = model.explain("|a x y:3 new")
    assert {(entry.name, entry.value) for entry in result.contributions} == {("a^x", 1.0), ("a^y", 3.0), ("a^new", 1.0)}
    assert next(entry.contribution for entry in result.contributions if entry.name == "a^new") == 0.0
    with pytest.raises(FtprlError, match=r"^row: expected a number after ':', got 'q'"):
        model.explain("|a x:q")


def test_the_fields_of_a_line_are_in_the_order_of_the_data(tmp_path: Path) -> None:
    shop().select("t", "y", "n", "city").write_csv(tmp_path / "a.csv")  # not in the order of the alphabet
    trained = ftprl.train(tmp_path / "a.csv", label="y", text="t", bits=12, output=tmp_path / "m").model
    expected = trained.explain({"t": "win lunch", "n": 0.5, "city": "Oslo"})
    for saved in (trained, ftprl.load(tmp_path / "m")):
        assert saved.explain("win lunch,0.5,Oslo") == expected
        assert saved.explain("win lunch,1,0.5,Oslo") == expected
        del saved.reading["order"]
        with pytest.raises(
            InvalidInput, match=r"^row needs a JSON object, since the model does not know the order of its columns"
        ):
            saved.explain("win lunch,0.5,Oslo")


@pytest.mark.parametrize("row", ["1,2", "{bad", [{"n": 1.0}, {"n": 2.0}], []])
def test_what_is_no_row_is_refused(row: object, model: Model) -> None:
    with pytest.raises(InvalidInput):
        model.explain(row)


def test_the_weights_that_matter_come_first(model: Model) -> None:
    table = model.weights_table()
    assert table.column_names == ["name", "cell", "weight", "unit_weight", "unit", "seen"]
    assert set(table["name"].to_pylist()[:2]) == {"t=free", "t=win"}
    words = sum(text.split().count("free") > 0 for text in shop()["t"].to_list())
    seen = dict(zip(table["name"].to_pylist(), table["seen"].to_pylist(), strict=True))
    assert seen["t=free"] == words


def test_the_weight_of_a_mixture_is_what_a_feature_adds_alone(model: Model) -> None:
    table = model.weights_table().to_pylist()
    for entry in table[:3]:
        alone = model.explain({"t": entry["name"].removeprefix("t=")})
        assert alone.score - alone.intercept == pytest.approx(entry["weight"], rel=0.2)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_export(suffix: str, model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    target = tmp_path / f"w{suffix}"
    assert ftprl_command(["inspect", str(tmp_path / "m"), "--export", str(target)]) == 0
    if suffix == ".csv":
        with target.open() as file:
            names = [row["name"] for row in csv.DictReader(file)]
    else:
        names = pq.read_table(target)["name"].to_pylist()
    assert names == model.weights_table()["name"].to_pylist()


def test_an_export_needs_a_known_suffix(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(tmp_path / "m")
    assert ftprl_command(["inspect", str(tmp_path / "m"), "--export", str(tmp_path / "w.txt")]) == 2
    assert "ends in .csv or .parquet" in capsys.readouterr().err
    assert not (tmp_path / "w.txt").exists()


def test_inspect_by_name(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.save(tmp_path / "m")
    assert ftprl_command(["inspect", str(tmp_path / "m"), "--match", "t=*", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[-1] for line in lines[-2:]} == {"t=free", "t=win"}
    assert ftprl_command(["inspect", str(tmp_path / "m"), "--row", '{"t": "free"}']) == 0
    assert "t=free" in capsys.readouterr().out


def test_names_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.vw").write_bytes(b"1 | \x1b[31mred [bold]x <b>\n-1 | \xff\xfe\n" * 20)
    ftprl.train(tmp_path / "a.vw", bits=8, output=tmp_path / "m")
    assert ftprl_command(["inspect", str(tmp_path / "m")]) == 0
    assert ftprl_command(["inspect", str(tmp_path / "m"), "--row", "| \x1b[31mred"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred" in out
    assert "\x1b" not in out
    assert "[bold]x" in out


@pytest.mark.parametrize("scale", [None, 1.0])
def test_new_features_and_keys_that_are_left_out_are_marked(scale: float | None, tmp_path: Path) -> None:
    options = {} if scale is None else {"scale": scale}
    made = ftprl.train(shop(), label="y", text="t", bits=12, output=tmp_path / "m", **options).model
    row = {"n": 0.5, "citty": "Rome", "city": "Lima", "t": "free sofa", "y": True, "u": {"age": 3}}
    result = made.explain(row)
    new = {entry.name for entry in result.contributions if entry.is_new}
    assert new == {"city=Lima", "t=sofa"}
    assert result.left_out == ("citty", "u.age")
    assert result.to_dict()["left_out"] == ["citty", "u.age"]
    lines = str(result).splitlines()
    assert any(line.endswith("  city=Lima  (not in the training data)") for line in lines)
    assert lines[-2:] == [
        "note: 'citty' is not a column of the model and is ignored; did you mean 'city'?",
        "note: 'u.age' is not a column of the model and is ignored; check the name.",
    ]
    known = made.explain({"n": 0.5, "city": "Rome", "t": "free"})
    assert not any(entry.is_new for entry in known.contributions)
    assert known.left_out == ()
    assert [entry.is_new for entry in Model.load(tmp_path / "m").explain(row).contributions] == [
        entry.is_new for entry in result.contributions
    ]


def test_a_name_in_a_cell_of_others_is_not_told_apart_from_them() -> None:
    rows = [{"a": f"v{i % 40}", "y": i % 2} for i in range(400)]
    made = ftprl.train(rows, label="y", bits=3).model  # every cell is in use
    entries = made.explain({"a": "other"}).contributions
    assert [(entry.name, entry.is_new) for entry in entries] == [("a=other", False)]
    assert entries[0].contribution != 0.0


def test_a_line_with_another_separator_is_recognised(model: Model, tmp_path: Path) -> None:
    shop().write_csv(tmp_path / "shop.csv")
    made = ftprl.train(tmp_path / "shop.csv", label="y", text="t", bits=12).model
    wanted = made.explain("0.5,Rome,free call")
    for sep in (";", "\t", "|"):
        assert made.explain(sep.join(("0.5", "Rome", "free call"))) == wanted
    with pytest.raises(InvalidInput, match=r"row needs 3 fields .*, got 2; write a JSON object"):
        made.explain("0.5;Rome")
    one = ftprl.train([{"a": i, "y": i % 2} for i in range(9)], label="y", bits=4).model
    with pytest.raises(InvalidInput, match=r"row needs 1 field \(a\) or all 2 columns, got 3;"):
        one.explain("x,y,z")  # another separator would make one field of it
    with pytest.raises(BadFormat, match=r"^row: expected a number, got 'x' in column 'n'; fix the row$"):
        made.explain("x,Rome,free")


def test_a_compact_model_does_not_call_dropped_features_new() -> None:
    rows = [{"u": f"u{i % 5}", "x": 1.0 * (i % 2), "y": i % 2} for i in range(100)]
    model = ftprl.train(rows, label="y", l1=5.0).model
    row = {"u": "u1", "x": 1.0}
    assert not any(entry.is_new for entry in model.explain(row).contributions)
    assert not any(entry.is_new for entry in model.compact().explain(row).contributions)


def test_keys_that_are_left_out_beside_maps_and_structures() -> None:
    import pyarrow as pa

    maps = pa.array([[("k", 1.0)], [("k", -1.0)]] * 20, pa.map_(pa.string(), pa.float64()))
    table = pa.table({"m": maps, "s": [{"a": 1.0}, {"a": 2.0}] * 20, "y": [1, 0] * 20})
    model = ftprl.train(table, label="y").model
    cases = [
        ({"m.k": 2.0, "s": {"a": 1.0}}, ("m.k",)),  # only what is within the map itself is read
        ({"m": {"k": 2.0, "other": 1.0}, "s.a": 1.0}, ()),
        ({"m": {}, "s": {"a": 1.0, "b": 1.0}, "t": {"u": 1}}, ("s.b", "t.u")),
        ({"s": [{"name": "a", "value": 1.0}, {"name": "b", "value": 1.0}, 7]}, ("s.b", "s")),
    ]
    for row, left_out in cases:
        assert model.explain(row).left_out == left_out
    empty = model.explain({"m": None, "s": {"a": 1.0}})
    assert model.explain(cases[0][0]).score != model.explain({"m": {"k": 2.0}, "s": {"a": 1.0}}).score
    assert model.explain(cases[0][0]).score == empty.score
