"""N-grams of words and pieces of words: against the twin, in every format, kept in the model, refused in one line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import data
from ftprl.cli.app import run as command
from ftprl.data.options import Grams, parse_grams
from ftprl.errors import FtprlError, InvalidInput
from oracles.hash_twin import feature_hash
from oracles.ngrams_twin import char_ngram_hash, char_ngrams, gram_hash, grams

DIM = 2**32
TEXTS = [
    "Free prize, call NOW to win",
    "see you at lunch",
    "free free free",
    "Über größe",
    "one",
    "",
    "call now call now",
]
ROWS = [{"body": text, "y": i % 2, "n": 1.5} for i, text in enumerate(TEXTS * 20)]


def row_of(batch: data.Batch, r: int) -> dict[int, float]:
    some = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
    return dict(zip(batch.indices[some].tolist(), batch.values[some].tolist(), strict=True))


def expected(words: list[str], group: str, n: int, skips: int, chars: tuple[int, int] | None) -> Counter[int]:
    """Return the cells of a text whose words are features of a column."""
    hashes = [feature_hash(f"{group}={word}".encode()) for word in words]
    actual = Counter[int](hashes)
    actual.update(gram_hash([hashes[i] for i in positions]) for positions in grams(len(words), n, skips))
    for word in words if chars is not None else ():
        assert chars is not None
        actual.update(char_ngram_hash(group, characters) for characters in char_ngrams(word, *chars))
    cells = Counter[int]()
    for number, count in actual.items():
        cells[number % DIM] += count
    return cells


SIZES = st.one_of(st.none(), st.tuples(st.integers(1, 4), st.integers(0, 2)))
WORDS = st.lists(st.sampled_from(["a", "free", "prize", "über", "日本語", "call", "x1"]), max_size=9)


@settings(deadline=None, max_examples=80)
@given(
    WORDS, st.integers(2, 5), st.integers(0, 3), st.one_of(st.none(), st.tuples(st.integers(1, 4), st.integers(0, 2)))
)
def test_a_text_column_has_the_grams_of_the_twin(
    words: list[str], n: int, skips: int, chars: tuple[int, int] | None
) -> None:
    sizes = None if chars is None else (chars[0], chars[0] + chars[1])
    options = {"ngrams": n, "skips": skips or None, "char_ngrams": sizes and [f"body={sizes[0]}-{sizes[1]}"]}
    source = data.open([{"body": " ".join(words)}], text="body", dim=DIM, missing="ignore", **options)
    actual = row_of(next(iter(source.batches())), 0)
    assert actual == expected(words, "body", n, skips, sizes)


@settings(deadline=None, max_examples=60)
@given(WORDS, st.integers(2, 5), st.integers(0, 3), st.booleans())
def test_a_namespace_has_the_grams_of_the_twin(words: list[str], n: int, skips: int, twice: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.vw")
        half = len(words) // 2 if twice else 0
        split = f"1 |body {' '.join(words[:half])} |other z |body {' '.join(words[half:])}"
        path.write_text((split if twice else f"1 |body {' '.join(words)} |other z") + "\n")
        options = {"ngrams": f"body={n}", "skips": [f"body={skips}"] if skips else None, "char_ngrams": "body=3"}
        actual = row_of(next(iter(data.open(path, dim=DIM, **options).batches())), 0)
    own = feature_hash(b"body")
    hashes = [feature_hash(word.encode(), own) for word in words]
    cells = Counter(number % DIM for number in hashes)
    cells.update(gram_hash([hashes[i] for i in positions]) % DIM for positions in grams(len(words), n, skips))
    cells.update(char_ngram_hash("body", characters) % DIM for word in words for characters in char_ngrams(word, 3, 3))
    cells[feature_hash(b"z", feature_hash(b"other")) % DIM] += 1
    assert actual == cells


def test_grams_have_the_value_1_and_those_without_values_stay_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("1 |a x:2 y:3 z\n1 |a x y z\n")
    for batch in data.open(path, dim=DIM, ngrams=2).batches():
        x, y, z = (feature_hash(name, feature_hash(b"a")) for name in (b"x", b"y", b"z"))
        pairs = {gram_hash(pair) % DIM: 1.0 for pair in ((x, y), (y, z))}
        assert row_of(batch, 0) == {x % DIM: 2.0, y % DIM: 3.0, z % DIM: 1.0, **pairs}
        assert row_of(batch, 1) == {x % DIM: 1.0, y % DIM: 1.0, z % DIM: 1.0, **pairs}


def test_a_namespace_is_known_by_its_first_letter_and_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("1 |body x y |title v w | p q\n")
    sizes = {}
    for option in ("b=2", "body=2", "2", ["b=2", "title=2"], {"*": 2}):
        (batch,) = data.open(path, dim=DIM, ngrams=option).batches()
        sizes[str(option)] = len(batch.indices)
    assert list(sizes.values()) == [7, 7, 9, 8, 9]


def written(folder: Path) -> dict[str, Any]:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyarrow import feather, orc
    from pyarrow import parquet as pq

    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    arrow = pa.table(columns)
    pq.write_table(arrow, folder / "r.parquet", row_group_size=33)
    feather.write_feather(arrow, str(folder / "r.feather"))
    orc.write_table(arrow, str(folder / "r.orc"))
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pl.DataFrame(columns).write_csv(folder / "r.csv")
    files = {suffix: folder / f"r.{suffix}" for suffix in ("csv", "jsonl", "parquet", "feather", "orc")}
    categories = pd.DataFrame(columns).astype({"body": "category"})
    frames = {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "arrow": arrow,
        "categories": categories,
    }
    return {**files, **frames, "dicts": ROWS}


OPTIONS: dict[str, Any] = {"label": "y", "text": "body", "bits": 16, "ngrams": 3, "skips": 1, "char_ngrams": "body=3-4"}


def test_all_formats_learn_one_model(tmp_path: Path) -> None:
    models = {name: ftprl.train(rows, **OPTIONS).model for name, rows in written(tmp_path).items()}
    digests = {name: model.state_digest() for name, model in models.items()}
    assert set(digests.values()) == {digests["csv"]}, digests
    names = {name: model.names.all() for name, model in models.items() if model.names is not None}
    assert all(own == names["csv"] for own in names.values())


def test_vw_text_of_the_same_names_learns_the_same_model(tmp_path: Path) -> None:
    rows = [{"body": text, "y": i % 2} for i, text in enumerate(["free prize now", "see you", "free you see"] * 30)]
    lines = [f"{2 * row['y'] - 1} | " + " ".join(f"body={word}" for word in row["body"].split()) for row in rows]
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    as_text = ftprl.train(path, bits=16, ngrams=3, skips=1)
    as_dicts = ftprl.train(rows, label="y", text="body", bits=16, ngrams=3, skips=1)
    assert as_text.model.state_digest() == as_dicts.model.state_digest()


def test_names_are_kept_and_explain_a_row() -> None:
    model = ftprl.train(ROWS, **OPTIONS).model
    assert model.names is not None
    names = set(model.names.all())
    assert {
        "body=free",
        "body=free ^ prize",
        "body=free ^ call",
        "body=free ^ prize ^ call",
        "body~ fr",
        "body~ree ",
    } <= names
    assert "body=prize ^ free" not in names
    result = {entry.name for entry in model.explain({"body": "call now"}).contributions}
    assert {"body=call", "body=now", "body=call ^ now", "body~ no"} <= result


def test_interactions_are_also_those_of_grams() -> None:
    rows = [{"body": "a b", "user": "u", "y": 1}, {"body": "b a", "user": "v", "y": 0}] * 10
    model = ftprl.train(rows, label="y", text="body", bits=16, ngrams=2, interactions="user:body").model
    assert model.names is not None
    assert {"body=a ^ b", "user=u*body=a ^ b", "user=v*body=b ^ a"} <= set(model.names.all())


def test_a_model_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    labels = np.random.default_rng(0).integers(0, 2, 400)
    path.write_text("y,body\n" + "".join("1,free prize\n" if y else "0,prize free\n" for y in labels))
    plain = ftprl.train(path, label="y", text="body", bits=14)
    run = ftprl.train(path, label="y", text="body", bits=14, ngrams=2, output=tmp_path / "m")
    assert run.progressive_loss < 0.3 * plain.progressive_loss  # words alone cannot tell them apart
    model = ftprl.load(tmp_path / "m")
    assert model.reading["ngrams"] == {"*": 2}
    first, second = model.predict([{"body": "free prize"}, {"body": "prize free"}])
    assert first > 0.9 > 0.1 > second
    np.testing.assert_array_equal(model.predict(path), run.model.predict(path))
    ftprl.train(path, resume=tmp_path / "m", ngrams=2)
    with pytest.raises(InvalidInput, match="ngrams= needs to be what the model was trained with"):
        ftprl.train(path, resume=tmp_path / "m", ngrams=3)


def test_a_cache_has_them(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("y,body\n" + "1,free prize\n0,prize free\n" * 100)
    options = {"label": "y", "text": "body", "bits": 14}
    usual = ftprl.train(path, ngrams=2, **options).model.state_digest()
    assert ftprl.train(path, ngrams=2, cache=tmp_path / "c.batches", **options).model.state_digest() == usual
    other = ftprl.train(path, **options).model.state_digest()
    assert ftprl.train(path, cache=tmp_path / "c.batches", **options).model.state_digest() == other != usual


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngrams": 1}, "ngrams= needs the longest n-gram, 2 to 8 words"),
        ({"ngrams": True}, "ngrams= needs the longest n-gram, 2 to 8 words"),
        ({"ngrams": "body=x"}, "ngrams= needs the longest n-gram, 2 to 8 words.* got 'body=x'"),
        ({"ngrams": "2-3"}, "ngrams= needs the longest n-gram"),
        ({"ngrams": ["body=2", "body=3"]}, "ngrams= needs one number for each column, got two for 'body'"),
        ({"ngrams": "y=2"}, "ngrams= needs columns of text, got 'y'; pass it with text= as well"),
        ({"skips": 1}, r"skips= is for n-grams, got none; pass ngrams= as well"),
        ({"ngrams": "body=2", "skips": 9}, "skips= needs how many words an n-gram may skip, 1 to 8"),
        ({"char_ngrams": "5-3"}, "char_ngrams= needs a number of characters from 1 to 16"),
        ({"char_ngrams": 17}, "char_ngrams= needs a number of characters from 1 to 16"),
        ({"char_ngrams": "z=3"}, "char_ngrams= needs columns of text, got 'z'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        ftprl.train(ROWS, label="y", text="body", **options)
    assert "\n" not in str(raised.value)


def test_data_without_text_or_names_has_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="ngrams= needs columns of text, got none; name them with text="):
        ftprl.train(ROWS, label="y", ngrams=2)
    with pytest.raises(InvalidInput, match="ngrams= is for features with names"):
        ftprl.train(np.ones((2, 2)), [0, 1], ngrams=2)
    (tmp_path / "r.libsvm").write_text("1 1:1\n")
    with pytest.raises(InvalidInput, match="char_ngrams= is for features with names"):
        ftprl.train(tmp_path / "r.libsvm", char_ngrams=3)
    (tmp_path / "r.vw").write_text("1 | a b\n-1 | b\n")
    model = ftprl.train(tmp_path / "r.vw", ngrams=2, bits=10).model
    with pytest.raises(InvalidInput, match="data needs the features of a namespace in their order"):
        model.predict([{"a": 1, "b": 1}])


def test_a_row_with_too_many_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.vw").write_text("1 | a\n1 | " + "w " * 2000 + "\n")
    with pytest.raises(FtprlError, match=r"r.vw:2: expected at most 1048576 n-grams in a row, got more"):
        ftprl.train(tmp_path / "r.vw", ngrams=8, skips=8)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.csv"
    path.write_text("y,body,title\n" + "1,free prize,a b\n0,prize free,b a\n" * 100)
    own = ["train", str(path), "--label", "y", "--text", "body,title", "--bits", "14", "-q", "-o", str(tmp_path / "m")]
    assert command([*own, "--ngrams", "body=2,title=3", "--skips", "title=1", "--char-ngrams", "3-4"]) == 0
    reading = ftprl.load(tmp_path / "m").reading
    assert reading["ngrams"] == {"body": 2, "title": 3}
    assert reading["char_ngrams"] == {"*": [3, 4]}
    assert command(["inspect", str(tmp_path / "m"), "--top", "5"]) == 0
    shown = capsys.readouterr().out
    assert "body=free ^ prize" in shown
    assert "--ngrams body=2,title=3 --skips title=1 --char-ngrams 3-4" in shown
    assert (
        command(["train", str(path), "--resume", str(tmp_path / "m"), "-o", str(tmp_path / "n"), "--ngrams", "3"]) == 2
    )
    assert "got '3' instead of 'body=2,title=3'" in capsys.readouterr().err
    assert command([*own, "--ngrams", "1"]) == 2
    assert "--ngrams needs the longest n-gram, 2 to 8 words" in capsys.readouterr().err


def test_options_are_parsed() -> None:
    assert parse_grams(2, {"body": 1}, ["3", "title=2-4"]) == Grams(
        {"*": 2}, {"body": 1}, {"*": (3, 3), "title": (2, 4)}
    )
    assert not parse_grams()


@pytest.mark.parametrize("line", ["1 |a p q r s t u", "1 |a p q |b x y z w", "1 |a p"])
def test_there_are_as_many_as_vowpal_wabbit_makes(line: str, tmp_path: Path) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    path = tmp_path / "r.vw"
    path.write_text(line + "\n")
    for n, skips in ((2, 0), (2, 2), (3, 1), (4, 0), (4, 3)):
        workspace = vw.Workspace(f"--quiet --noconstant --ngram {n}" + (f" --skips {skips}" if skips else ""))
        example = workspace.example(line)
        theirs = example.get_feature_number()
        workspace.finish_example(example)
        workspace.finish()
        (batch,) = data.open(path, dim=DIM, ngrams=n, skips=skips or None).batches()
        assert len(batch.indices) == theirs, (n, skips)
