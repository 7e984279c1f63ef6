"""Vowpal Wabbit's JSON: the features, labels and tags of the same examples as VW text."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl import data
from ftprl._core import NameTable, feature_hash
from ftprl.errors import BadFormat
from oracles.batches import keys, rows_of

# Each pair was compared with what `vw --json --audit` and `vw --audit` print.
PAIRS = [
    ('{"_label": 1, "a": 2, "b": "x y", "t": true, "f": false, "n": null}', "1 | a:2 bx_y t"),
    ('{"_label": -1, "_text": "hello wor:ld  x|y"}', "-1 | hello wor_ld x_y"),
    ('{"_label": 1, "ns": {"c": 3, "d": "e", "inner": {"q": 1.5}}}', "1 |ns c:3 de |inner q:1.5"),
    ('{"_label": 1, "list": [0.5, 0, null, 3], "arr": []}', "1 |list :0.5 :0 :3"),
    ('{"_label": 1, "objs": [{"k": 1}, {"l": "m"}]}', "1 |objs k lm"),
    ('{"_label": 1, "a": [1, {"b": 2}, 5]}', "1 |a :1 b:2 :5"),
    ('{"_label": {"Label": -1, "Weight": 2.5}, "_tag": "tg", "a": 2}', "-1 2.5 'tg| a:2"),
    ('{"_label": "1 2.0", "a": 2}', "1 2.0 | a:2"),
    ('{"_label_Label": 1, "_label_Weight": 3, "a": 2}', "1 3 | a:2"),
    ('{"_label": {"label": -1}, "_TAG": "x", "a": true}', "-1 'x| a"),
    ('{"a": 1, "_weight": 5, "_other": {"z": [1, "}"]}, "_label": 1}', "1 | a"),
    ('{"a": 1, "_label": null}', " | a"),
    ('{"a": 1, "_label": ""}', " | a"),
    ('{"ns": {"_label": 1, "_text": "in ns", "_tag": "q"}}', "1 'q|ns in ns"),
    ('{"ns": {"": "v"}, "_label": 1}', "1 |ns v"),
    ('{"a\\u00e9": -2, "_label": 1}', "1 | aé:-2"),
    ('{"a": {"b": {"c": {"d": [{"e": 1}]}}}}', " |d e"),
]


def test_examples_are_those_of_vw_text(tmp_path: Path) -> None:
    (tmp_path / "a.vwjson").write_text("".join(f"{line}\n" for line, _ in PAIRS))
    (tmp_path / "a.vw").write_text("".join(f"{line}\n" for _, line in PAIRS))
    actual = [keys(row) for row in rows_of(data.open(tmp_path / "a.vwjson").batches())]
    expected = [keys(row) for row in rows_of(data.open(tmp_path / "a.vw").batches())]
    for (line, _), one, other in zip(PAIRS, actual, expected, strict=True):
        assert one == other, line
    of_json = ftprl.train(tmp_path / "a.vwjson", bits=10).model
    of_text = ftprl.train(tmp_path / "a.vw", bits=10).model
    assert of_json.state_digest() == of_text.state_digest()
    assert of_json.predict(tmp_path / "a.vw").tolist() == of_text.predict(tmp_path / "a.vwjson").tolist()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": ["x"]}', "expected numbers or objects in an array, got text"),
        ('{"a": [true]}', "expected numbers or objects in an array, got true or false"),
        ('{"a": [[1]]}', "expected numbers or objects in an array, got an array"),
        ('{"_tag": 7}', "expected text for '_tag', got '7'"),
        ('{"_text": 5}', "expected text for '_text', got '5'"),
        ('{"_label": true}', "expected a number for the label and its weight, got another value"),
        ('{"_label": "x"}', "expected a number as the label, got 'x'"),
        ('{"_label": "1 1 0.5"}', "expected a weight of at least 0, got '1 0.5'"),
        ('{"_label": {"Label": 1, "Initial": 0.5}}', "expected Label or Weight in the label, got 'Initial'"),
        ('{"_label_cost": 1}', "expected Label or Weight in the label, got '_label_cost'"),
        ('{"_multi": [{"a": 1}]}', "expected one example a line, got '_multi' for several, as contextual bandits have"),
        ('{"_labelIndex": 1}', "expected one example a line, got '_labelIndex' for several"),
        ('{"a": 1', "expected ',' or '}', got the end of the line"),
        ('{"a": 1e999}', "expected a finite number, got '1e999'"),
    ],
)
def test_what_is_wrong_with_a_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.vwjson"
    path.write_text(f'{{"_label": 1, "a": 1}}\n{line}\n')
    with pytest.raises(BadFormat) as raised:
        list(data.open(path).batches())
    assert str(raised.value).startswith(f"{path}:2: {message}")
    assert sum(len(batch) for batch in data.open(path, on_bad_row="skip").batches()) == 1


TEXTS = ["x", "Rome", "two words", "a:b|c", "tab\there", 'quo"te', "São Paulo", "longer than sixteen bytes", ""]


def values(rng: random.Random) -> dict[str, Any]:
    """A row of the same keys as any other, in the same order."""
    scalar = [rng.choice(TEXTS), rng.random(), rng.randrange(-3, 4), True, False, None]
    inner = {"c": rng.choice(TEXTS), "d": rng.choice(scalar), "_tag": f"t{rng.randrange(3)}"}
    label = {"Label": rng.choice([1, -1]), "Weight": rng.randrange(1, 3)}
    rest = {"e": rng.choice(TEXTS), "_skip": rng.choice(scalar), "f": rng.choice(scalar), "_text": rng.choice(TEXTS)}
    return {"_label": label, "a": rng.choice(scalar), "ns": inner, "other": {"c": rng.choice(TEXTS)}, **rest}


def spaced(row: dict[str, Any], rng: random.Random) -> str:
    """The same row with blanks that no other row has."""
    parts = [f'"{key}"{" " * rng.randrange(9)}: {json.dumps(value)}' for key, value in row.items()]
    return "{" + ("," + " " * rng.randrange(9)).join(parts) + "}"


@pytest.mark.parametrize("options", [{}, {"names": "0"}, {"interactions": ["n:o"]}, {"ngrams": "ns=2"}])
def test_rows_of_one_shape_are_those_of_any_other(tmp_path: Path, options: dict[str, Any]) -> None:
    rng = random.Random(3)
    rows = [values(rng) for _ in range(300)]
    changed = [{**row, "a": [1, 2]} if i % 50 == 40 else row for i, row in enumerate(rows)]
    (tmp_path / "same.vwjson").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in changed))
    (tmp_path / "blanks.vwjson").write_text("".join(spaced(row, rng) + "\n" for row in changed))
    one, other = (rows_of(data.open(tmp_path / f"{name}.vwjson").batches()) for name in ("same", "blanks"))
    assert [keys(row) for row in one] == [keys(row) for row in other]
    of_one, of_other = (
        ftprl.train(tmp_path / f"{name}.vwjson", bits=12, **options).model for name in ("same", "blanks")
    )
    assert of_one.state_digest() == of_other.state_digest()
    names = [None if model.names is None else model.names.all() for model in (of_one, of_other)]
    assert names[0] == names[1]


def test_bad_values_in_rows_of_one_shape_are_refused(tmp_path: Path) -> None:
    good = '{"_label": 1, "a": "x"}\n' * 5
    for bad in (
        '{"_label": 7, "a": "x"}',
        '{"_label": 1, "a": 1e999}',
        '{"_label": 1, "a": "x}',
        '{"_label": 1, "a": }',
    ):
        (tmp_path / "a.vwjson").write_text(f"{good}{bad}\n")
        with pytest.raises(BadFormat, match=r"a.vwjson:6: expected .*, got"):
            list(data.open(tmp_path / "a.vwjson").batches())


def alike_names() -> tuple[str, str]:
    """Two texts of the key `a` whose names agree in the lowest 17 bits of their hashes."""
    seen: dict[int, str] = {}
    for number in range(10_000):
        text = f"text{number}"
        other = seen.setdefault(feature_hash(f"a{text}") % 2**17, text)
        if other != text:
            return other, text
    raise AssertionError


def test_each_name_has_its_own_text_where_hashes_are_alike(tmp_path: Path) -> None:
    one, other = alike_names()
    before = [f'{{"_label": 1, "a": "{one}"}}\n'] * 3
    # The name of the second text is not settled when a row with the first one, and with new keys, is read.
    behind = [f'{{"_label": 1, "a": "{other}"}}\n', f'{{"_label": 1, "z": 1, "a": "{one}", "q": "something else"}}\n']
    path = tmp_path / "a.vwjson"
    path.write_text("".join(before + behind))
    source = data.open(path, names="all", block_size=len("".join(behind)))
    batches = [batch for batch, _ in source.read(threads=0)]
    assert len(batches) > 1
    for batch in batches:
        table = NameTable(2**20)
        assert batch.names is not None
        batch.names.add_to(table)
        assert len(table)
        for number, own in enumerate(table.hashes.tolist()):
            assert feature_hash(table.name(number).decode()) == own, table.name(number)
