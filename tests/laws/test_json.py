"""Laws of JSON lines: they equal their naive twin, and no bytes crash the reader."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl.data.options import RECORDS
from ftprl.errors import FtprlError, InvalidInput
from oracles.batches import keys, rows_of, same
from oracles.json_twin import read_json_line
from oracles.readers_twin import Bad, Row, Twin

LAW = settings(deadline=None, max_examples=200)
KEYS = st.sampled_from(["a", "b", "a.b", "name", "value", "key", "é", "", "long name of a column", '\n"\\'])
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-1e20, 1e20), st.sampled_from([0.1, 1e300, 1e-320, 10**25, -0.0]))
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["", "x", "Rome", "\ud800", "a\tb", "😀", "c" * 40]))
SCALARS = st.one_of(NUMBERS, TEXTS, st.booleans(), st.none(), st.just(float("nan")))
ENTRIES = st.fixed_dictionaries({}, optional={"name": SCALARS, "value": SCALARS, "key": SCALARS, "x": st.integers()})
LISTS = st.lists(st.one_of(SCALARS, SCALARS, ENTRIES, st.lists(st.integers(), max_size=1)), max_size=4)
VALUES = st.recursive(st.one_of(SCALARS, LISTS), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
LABELS = st.sampled_from([1, 0, 1.0, None, "1", "0", [1]])
ROWS = st.dictionaries(KEYS, VALUES, max_size=4).flatmap(
    lambda row: st.tuples(st.just(row), LABELS).map(lambda pair: {**pair[0], "y": pair[1]})
)


@st.composite
def lines(draw: st.DrawFn, *, may_break: bool) -> str:
    text = json.dumps(
        draw(ROWS),
        ensure_ascii=not may_break or draw(st.booleans()),
        separators=draw(st.sampled_from([None, (",", ":")])),
    )
    if may_break and draw(st.integers(0, 8)) == 0:
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from(['"', "{", "}", "]", ",", "\\", "x", " "])) + text[at + 1 :]
    return text


def read(text: bytes, suffix: str, **options: Any) -> tuple[list[Row], int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(text)
        source = data.open(path, on_bad_row="skip", **options)
        return rows_of(source.batches()), source.bad_rows


@LAW
@given(st.data(), st.booleans(), st.sampled_from([64, 1 << 20]))
def test_json_lines_are_their_twin(drawn: st.DataObject, may_break: bool, block_size: int) -> None:
    texts = drawn.draw(st.lists(lines(may_break=may_break), max_size=6))
    ignore = set() if may_break else {"b"}  # of what is ignored, only the ends are looked for
    twin, expected, bad = Twin(dim=1 << 20, intercept=False), [], 0
    for text in texts:
        if not text.strip():
            continue
        try:
            text.encode()
            expected.append(read_json_line(text, twin, "y", ignore))
        except (Bad, UnicodeEncodeError):
            bad += 1
    content = "".join(text + "\n" for text in texts).encode("utf-8", "surrogatepass")
    columns = {"y": "label", **dict.fromkeys(ignore, "ignore")}
    try:
        actual, left_out = read(content, ".jsonl", columns=columns, dim=1 << 20, block_size=block_size)
    except InvalidInput:
        assume(False)  # a break may have made a label of which the first rows say that it is none of two classes
    assert left_out == bad
    same(actual, expected)


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows that mostly have equal keys in equal order, which take a faster path than other rows."""
    names = draw(st.lists(KEYS.filter(lambda name: name != "y"), unique=True, min_size=1, max_size=4))
    inside = draw(st.sampled_from([None, *names]))
    rows = []
    for _ in range(draw(st.integers(3, 8))):
        row = {name: draw(SCALARS) for name in names}
        if inside is not None:
            row[inside] = {"a": draw(SCALARS), "b": draw(SCALARS)}
        if draw(st.integers(0, 7)) == 0:
            row[draw(st.sampled_from(names))] = draw(VALUES)
        rows.append({**row, "y": draw(st.sampled_from([1, 0, 1.0, "1", None, "x"]))})
    return rows


@LAW
@given(alike())
def test_rows_alike_are_their_twin(rows: list[dict[str, Any]]) -> None:
    twin, expected, bad, texts = Twin(dim=1 << 20, intercept=False), [], 0, []
    for row in rows:
        texts.append(json.dumps(row))
        try:
            expected.append(read_json_line(texts[-1], twin, "y", {"b"}))
        except Bad:
            bad += 1
    content = "".join(text + "\n" for text in texts).encode()
    try:
        actual, left_out = read(content, ".jsonl", columns={"y": "label", "b": "ignore"}, dim=1 << 20)
    except InvalidInput:
        assume(False)
    assert left_out == bad
    same(actual, expected)


@LAW
@given(alike(), st.sampled_from(["indicator", "ignore"]), st.permutations(["categorical", "numeric", "text", "ignore"]))
def test_rows_alike_do_not_depend_on_their_blanks(rows: list[dict[str, Any]], missing: str, kinds: list[str]) -> None:
    columns = {"y": "label", **dict(zip(("a", "b", "name", "é"), kinds, strict=True))}
    separators = [(",", ":"), (", ", ": ")]
    regular = "".join(json.dumps(row) + "\n" for row in rows)
    mixed = "".join(json.dumps(row, separators=separators[i % 2]) + "\n" for i, row in enumerate(rows))
    actual: list[Any] = []
    for text in (regular, mixed):
        try:
            actual.append(read(text.encode(), ".jsonl", columns=columns, dim=1 << 20, missing=missing))
        except FtprlError:  # a column that no row has
            actual.append(None)
    if None in actual:
        assert actual == [None, None]
        return
    same(actual[0][0], actual[1][0])
    assert actual[0][1] == actual[1][1]


def has_one_meaning(row: dict[str, Any]) -> bool:
    """Return True if no two keys have equal paths, as in {"a": {"b": 1}, "a.b": 2}, and all text is UTF-8."""

    def paths(value: dict[str, Any], before: str) -> list[str]:
        inner = [
            paths(own, f"{before}{key}.") if isinstance(own, dict) else [before + key] for key, own in value.items()
        ]
        objects = [before + key for key, own in value.items() if isinstance(own, dict)]
        return [*objects, *(path for part in inner for path in part)]

    named = paths(row, "")
    return len(named) == len(set(named)) and "\\ud800" not in json.dumps(row)


@LAW
@given(
    st.lists(ROWS.filter(has_one_meaning), min_size=1, max_size=6),
    st.sampled_from([None, {"y": "label", "b": "ignore"}, {"y": "label", "a": "categorical", "a.b": "text"}]),
    st.sampled_from(["indicator", "ignore"]),
)
def test_json_lines_are_the_dicts_they_hold(
    rows: list[dict[str, Any]], columns: dict[str, str] | None, missing: str
) -> None:
    options: dict[str, Any] = {"label": "y"} if columns is None else {"columns": columns}
    options |= {"dim": 1 << 20, "missing": missing}
    of_dicts = {"on_bad_row": "skip", **options, **({} if columns is None else {"format": RECORDS})}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    dicts = [json.loads(line) for line in text.splitlines()]
    results: list[Any] = []
    for read_rows in (
        lambda: read(text.encode(), ".jsonl", **options),
        lambda: (
            rows_of((source := data.open(dicts, **of_dicts)).batches()),
            source.bad_rows,
        ),
    ):
        try:
            results.append(read_rows())
        except FtprlError:
            results.append(None)
    if None in results:
        assert results == [None, None]
        return
    assert results[1][1] == results[0][1]
    assume(columns is not None or results[1][1] == 0)  # what a bad row says of the kinds of columns is not defined
    assert [keys(row) for row in results[1][0]] == [keys(row) for row in results[0][0]]


@LAW
@given(st.binary(max_size=80))
def test_no_bytes_make_a_reader_fall_over(text: bytes) -> None:
    with suppress(FtprlError):
        read(b'{"a": [1, {"name": "\\u00e9"' + text + b'\n{"y":1}\n' + text, ".jsonl")
