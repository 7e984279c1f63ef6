"""CSV and TSV: kinds of columns, quotes, labels, and every kind of bad row."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl._core import words
from ftprl.errors import BadFormat, InvalidInput
from oracles import unicode_twin
from oracles.batches import real, rows_of, totals
from oracles.readers_twin import Row, Twin

REMEDY = "; fix the row, or pass on_bad_row=skip"

NAME_IT = "pass loss=softmax for several classes, or name the label that counts as 1 with positive="
ROOT = Path(__file__).resolve().parents[3]


def opened(tmp_path: Path, content: str, name: str = "a.csv", **options: object) -> data.Source:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return data.open(path, intercept=False, **options)  # type: ignore[arg-type]


def read(tmp_path: Path, content: str, name: str = "a.csv", **options: object) -> list[Row]:
    return rows_of(opened(tmp_path, content, name, **options).batches())


def slot(name: str) -> int:
    return Twin(intercept=False).slot(name.encode())


def test_kinds(tmp_path: Path) -> None:
    text = "y,age,job,ok,note,id,w\n1,30,nurse,true,Hello hello,7,0.5\n0,,,false,,8,2\n"
    source = opened(tmp_path, text, label="y", ignore=["id"], text="note", weight="w")
    kinds = {"y": "label", "age": "numeric", "job": "categorical", "ok": "boolean"}
    assert source.describe().columns == {**kinds, "note": "text", "id": "ignore", "w": "weight"}
    first, second = rows_of(source.batches())
    assert first.features == {slot("age"): 30, slot("job=nurse"): 1, slot("ok=true"): 1, slot("note=hello"): 2}
    gone = {slot(f"{name} is missing"): 1 for name in ("age", "job", "note")}
    assert second.features == {slot("ok=false"): 1, **gone}
    assert [(row.y, row.weight) for row in (first, second)] == [(1, 0.5), (-1, 2)]


def test_the_user_decides(tmp_path: Path) -> None:
    text = "y,a,b\n1,1,1\n0,2,x\n"
    with pytest.raises(BadFormat, match=r"a\.csv:3: expected a number, got 'x' in column 'b'"):
        read(tmp_path, text, label="y", categorical="a", numeric=["b"])
    source = opened(tmp_path, text, label="y", categorical="a", numeric=["b"], on_bad_row="skip")
    assert [row.features for row in rows_of(source.batches())] == [{slot("a=1"): 1, slot("b"): 1}]


def test_kinds_come_from_the_first_ten_thousand_rows(tmp_path: Path) -> None:
    text = "y,a\n" + "1,2\n" * 10_000 + "1,x\n"
    with pytest.raises(BadFormat, match=r"a\.csv:10002: expected a number, got 'x' in column 'a'"):
        read(tmp_path, text, label="y")
    assert opened(tmp_path, "y,a\n" + "1,2\n" * 9999 + "1,x\n", label="y").describe().columns == {
        "y": "label",
        "a": "categorical",
    }


def test_quotes(tmp_path: Path) -> None:
    text = 'y,"a, b",c\r\n1,"x ""y"", z","two\nlines"\r\n0,"",plain "text"\r\n'
    first, second = read(tmp_path, text, label="y")
    assert first.features == {slot('a, b=x "y", z'): 1, slot("c=two\nlines"): 1}
    assert second.features == {slot("a, b is missing"): 1, slot('c=plain "text"'): 1}


def test_lines_are_counted_inside_quotes(tmp_path: Path) -> None:
    with pytest.raises(BadFormat, match=r"a\.csv:5: expected 2 columns, got 1"):
        read(tmp_path, 'y,a\n1,"1\n2\n3"\nonly\n', label="y")


def test_tsv_has_no_quotes_unless_asked(tmp_path: Path) -> None:
    assert read(tmp_path, 'y\ta\n1\t"x\n', "a.tsv", label="y")[0].features == {slot('a="x'): 1}
    assert read(tmp_path, 'y\ta\n1\t"x"\n', "a.tsv", label="y", quote='"')[0].features == {slot("a=x"): 1}


def test_no_header(tmp_path: Path) -> None:
    rows = read(tmp_path, "5;1\n6;0\n", sep=";", header=False, label=2)
    assert [row.features for row in rows] == [{slot("1"): 5}, {slot("1"): 6}]


@pytest.mark.parametrize(
    ("yes", "no"), [("1", "0"), ("1", "-1"), ("1.0", "0.0"), ("yes", "no"), ("TRUE", "False"), ("Y", "n"), ("t", "F")]
)
def test_pairs_of_labels(tmp_path: Path, yes: str, no: str) -> None:
    rows = read(tmp_path, f"y,a\n{yes},1\n{no},1\n,1\n", label="y")
    np.testing.assert_equal([row.y for row in rows], [1, -1, np.nan])


def test_other_labels_need_positive(tmp_path: Path) -> None:
    text = "y,a\nham,1\nspam,1\n"
    with pytest.raises(
        InvalidInput, match=r"logistic loss needs a label with two classes, got column 'y' with .* 'ham', 'spam'"
    ):
        opened(tmp_path, text, label="y")
    assert [row.y for row in read(tmp_path, text, label="y", positive="spam")] == [-1, 1]


def test_a_late_label_is_a_bad_row(tmp_path: Path) -> None:
    text = "y,a\n" + "yes,1\nno,1\n" * 5000 + "maybe,1\n"
    with pytest.raises(BadFormat, match=r"a\.csv:10002: expected the label 'yes' or 'no', got 'maybe' in column 'y'"):
        read(tmp_path, text, label="y")


def test_labels_of_a_regression(tmp_path: Path) -> None:
    assert [row.y for row in read(tmp_path, "y,a\n1.5,1\n-2,1\n", label="y", loss="squared")] == [1.5, -2]
    remedy = "fix the row, pass loss=softmax for classes, or pass on_bad_row=skip"
    with pytest.raises(BadFormat, match=rf"a\.csv:2: expected a number as the label, got 'x' in column 'y'; {remedy}"):
        read(tmp_path, "y,a\nx,1\n", label="y", loss="squared")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2", "expected 3 columns, got 2"),
        ("1,2,3,4", "expected 3 columns, got 4"),
        ("1,x,2", "expected a number, got 'x' in column 'a'"),
        ("1,inf,2", "expected a finite number, got 'inf' in column 'a'"),
        ("1,3,-2", "expected a weight of at least 0, got '-2' in column 'w'"),
        ("1,3,", "expected a weight of at least 0, got '' in column 'w'"),
        ('1,"3"x,1', "expected a separator after a closing quote, got other text"),
        ("7,3,1", f"expected the label 1 or 0, as in the rows before, got '7' in column 'y'; {NAME_IT}"),
        ('1,"3,1\n', "expected a closing quote, got the end of the file; close it, or pass another quote="),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, message: str) -> None:
    columns = {"y": "label", "a": "numeric", "w": "weight"}
    start = "y,a,w\n1,1,1\n0,1,1\n" + "1,1,1\n" * 10_000
    with pytest.raises(BadFormat) as caught:
        read(tmp_path, f"{start}{row}\n", columns=columns)
    assert str(caught.value) == f"{tmp_path / 'a.csv'}:10004: {message}{'' if '; ' in message else REMEDY}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.csv:1: expected a row of columns, got an empty file; check the path."),
        ("a,a\n1,2\n", "a.csv:1: expected each column once, got 'a' twice; rename one."),
        ("a,0,0\n1,2,3\n", "got '0' twice; rename one, or pass header=False, since the first row looks like data."),
        (
            '"a,b\n1,2\n',
            (
                "a.csv:1: expected a row of columns, got a quote that is not closed before a separator"
                "; close it, or pass another quote= or sep="
            ),
        ),
        ('"a";"b"\n1;2\n', "got a quote that is not closed before a separator; pass sep=';'"),
    ],
)
def test_bad_headers(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadFormat) as caught:
        opened(tmp_path, text, sep=",")
    assert str(caught.value).endswith(message)


def test_a_header_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff,b\n1,2\n")
    with pytest.raises(BadFormat, match=r"a\.csv:1: expected column names in UTF-8, got .*; convert it, as with ic"):
        data.open(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "z"}, "label= needs one of the columns 'y', 'a', got 'z'; check the name."),
        ({"label": "y", "ignore": "y"}, "column 'y' needs one kind, got ignore= and label=; keep one."),
        ({"sep": "::"}, "sep= needs a single ASCII character, got '::'"),
        ({"sep": '"'}, "sep= and quote= need to differ"),
        ({"columns": {"y": "colour"}}, "columns= needs a name and one of ignore, label"),
        (
            {"columns": {"y": "label"}, "label": "y"},
            "columns= has the kind of each column, got label= as well; keep one.",
        ),
        ({"label": "y", "loss": "cubic"}, "loss= needs a known name, got 'cubic'; use one of logistic, "),
        (
            {"label": "y", "loss": "squared", "positive": 1},
            "positive= needs a loss with two classes, got loss='squared'",
        ),
    ],
)
def test_bad_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        opened(tmp_path, "y,a\n1,2\n", **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_model_keeps_reads_other_files(tmp_path: Path) -> None:
    source = opened(tmp_path, "y,a,b\n1,2,x\n0,3,y\n", label="y")
    (tmp_path / "new.csv").write_text("b,extra,a\nx,9,2\n")
    kept = source.to_dict()
    (row,) = rows_of(data.open(tmp_path / "new.csv", **kept).batches())
    assert row.features == {slot("b=x"): 1, slot("a"): 2}
    assert np.isnan(row.y)
    (tmp_path / "new.csv").write_text("y,a,B\n1,2,x\n")
    with pytest.raises(BadFormat, match=r"new\.csv:1: expected a column 'b', got the column 'B'; rename 'B'\."):
        rows_of(data.open(tmp_path / "new.csv", **kept).batches())
    (tmp_path / "new.csv").write_text("a\n1\n")
    with pytest.raises(BadFormat, match=r"new\.csv:1: expected a column 'b', got the others only"):
        rows_of(data.open(tmp_path / "new.csv", **kept).batches())


def test_later_files_need_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("y,a\n1,2\n")
    (tmp_path / "2.csv").write_text("a,y\n3,0\n")
    rows = rows_of(data.open([tmp_path / "1.csv", tmp_path / "2.csv"], label="y", intercept=False).batches())
    assert [(row.y, row.features) for row in rows] == [(1, {slot("a"): 2}), (-1, {slot("a"): 3})]
    (tmp_path / "2.csv").write_text("y\n1\n")
    with pytest.raises(BadFormat, match=r"2\.csv:1: expected a column 'a'"):
        rows_of(data.open([tmp_path / "1.csv", tmp_path / "2.csv"], label="y").batches())


def test_words() -> None:
    assert words("Don't STOP—Ünïcode_1 ½ İ\u0000x".encode()) == [
        w.encode() for w in ("don", "t", "stop", "ünïcode_1", "½", "i", "x")
    ]


def test_tables_of_unicode_are_those_of_python() -> None:
    if unicodedata.unidata_version != unicode_twin.VERSION:
        pytest.skip(f"this Python has Unicode {unicodedata.unidata_version}, the tables {unicode_twin.VERSION}")
    assert (ROOT / "src" / "core" / "readers" / "unicode.hpp").read_text("utf-8") == unicode_twin.header()
    for c in [*range(1, 0xD800), *range(0xE000, 0x20000)]:
        expected = [chr(unicode_twin.lower(c)).encode()] if unicode_twin.is_word(c) else []
        assert words(chr(c).encode()) == expected


def test_elec() -> None:
    rows, share, _ = totals(data.open(real("elec.csv.gz"), label="class"))
    assert rows == 45_312
    assert share == pytest.approx(0.425, abs=1e-3)


def test_bank() -> None:
    source = data.open(real("bank.csv.gz"), sep=";", label="y")
    rows, share, _ = totals(source)
    assert rows == 41_188
    assert share == pytest.approx(0.113, abs=1e-3)
    kinds = list((source.describe().columns or {}).values())
    assert (kinds.count("numeric"), kinds.count("categorical")) == (10, 10)


def test_sms() -> None:
    source = data.open(real("sms.tsv.gz"), header=False, label=1, text=2, positive="spam")
    rows, share, _ = totals(source)
    assert rows == 5_574
    assert share == pytest.approx(0.134, abs=1e-3)


def test_text_in_another_encoding_is_read_as_bytes(tmp_path: Path) -> None:
    for name, encoding in (("a", "utf-8"), ("b", "latin-1")):
        (tmp_path / f"{name}.csv").write_bytes("y,drink\n1,café\n0,tea\n".encode(encoding))
    columns = {"y": "label", "drink": "categorical"}
    actual = [next(iter(data.open(tmp_path / f"{name}.csv", columns=columns).batches())).indices for name in "ab"]
    assert actual[0][0] != actual[1][0]
    assert actual[0][-1] == actual[1][-1]
    model = ftprl.train(tmp_path / "b.csv", label="y", bits=10).model
    assert r"drink=caf\xe9" in {str(entry["name"]) for entry in model.weights_table().to_pylist()}
