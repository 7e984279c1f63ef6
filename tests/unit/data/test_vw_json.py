"""Vowpal Wabbit's JSON: the features, labels and tags of the same examples as VW text."""

from __future__ import annotations

from pathlib import Path

import pytest

import ftprl
from ftprl import data
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
    found = [keys(row) for row in rows_of(data.open(tmp_path / "a.vwjson").batches())]
    expected = [keys(row) for row in rows_of(data.open(tmp_path / "a.vw").batches())]
    for (line, _), one, other in zip(PAIRS, found, expected, strict=True):
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
