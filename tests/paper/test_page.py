"""The pages: all results are on them, escaped, and the committed page is up to date."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ftprl.draw import Panel, Series
from ftprl.paper import markdown, page
from ftprl.paper.base import Check, Outcome, Statement, Verdict
from ftprl.paper.picture import picture
from ftprl.paper.registry import chosen
from ftprl.paper.runner import Result

ROOT = Path(__file__).parents[2]
GOOD, BAD = Check("small", 0.5, "<=", 1.0), Check("large", 2.0, "<=", 1.0)
PANEL = Panel("a < b", "x", "y", [Series("one", [1, 2], [1, 2], points=True)])


def statement(
    name: str = "some-thing", expected: Verdict = Verdict.HOLDS, title: str = "A <title> & more"
) -> Statement:
    return Statement(
        name,
        title,
        "Lemma 9",
        "claim <b>",
        "instance",
        "measured",
        "ftprl.x",
        lambda full, step: Outcome(()),
        expected,
        correction="" if expected is Verdict.HOLDS else "mend it",
        tests="tests/a.py, tests/b.py",
    )


drawn = cache(lambda name: picture(name, [PANEL]))


def result(*checks: Check, expected: Verdict = Verdict.HOLDS, error: str = "", name: str = "some-thing") -> Result:
    outcome = Outcome(checks, panels=[PANEL], numbers=["3 < 4"])
    return Result(statement(name, expected), outcome, 1.5, error=error, picture=drawn(name))


class Reader(HTMLParser):
    """Collects text, ids, unclosed tags, and references to other sites."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(given["id"] or "")
        loaded = given.get("src") or (given.get("href") if tag in ("link", "image", "script") else None)
        self.loads += [loaded] if loaded else []

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_holds_all_and_loads_nothing() -> None:
    text = page.html_page([result(GOOD), result(GOOD, name="other")])
    read = Reader(text)
    for shown in (
        "A <title> & more",
        "claim <b>",
        "small",
        "3 < 4",
        "small: 0.5, limit ≤ 1",
        "tests/a.py, tests/b.py",
        "1.5 s, quick",
    ):
        assert shown in read.text
    assert "2 statements: 2 hold. Every verdict is the expected one." in read.text
    assert read.loads == []
    assert "<script" not in text
    assert text.count("<svg") == 2
    assert len(read.ids) == len(set(read.ids)), "each figure has ids of its own"
    assert 'class="red"' not in text.replace("class=red", 'class="red"')


def test_red_is_marked() -> None:
    text = page.html_page([result(BAD), result(GOOD, name="fine"), result(GOOD, error="boom <x>", name="broke")])
    assert text.count("<tr class=red>") == 2
    assert text.count("class=red><h2>") == 2
    read = Reader(text)
    assert "does not hold as stated (expected: holds)" in read.text
    assert "The experiment broke: boom <x>" in read.text
    assert "2 are not as expected." in read.text


def test_a_correction_is_shown() -> None:
    outcome = Outcome([BAD], [GOOD])
    text = page.html_page([Result(statement(expected=Verdict.CORRECTED), outcome, 0.1)])
    read = Reader(text)
    for shown in ("holds with a correction", "mend it", "as stated", "as corrected", "not met"):
        assert shown in read.text
    assert "<svg" not in text
    assert "class=red" not in text


@pytest.mark.parametrize(
    ("checks", "text"),
    [
        ([GOOD], "1 statement: 1 holds. Every verdict is the expected one."),
        ([BAD, BAD, GOOD], "3 statements: 1 holds, 2 do not hold as stated. 2 are not as expected."),
        ([BAD], "1 statement: 1 does not hold as stated. 1 is not as expected."),
    ],
)
def test_summary(checks: list[Check], text: str) -> None:
    assert page.summary([result(check) for check in checks]) == text


def test_write(tmp_path: Path) -> None:
    page.write([result(GOOD), result(Check("no number", float("nan"), "<=", 1.0), name="other")], tmp_path / "a" / "b")
    files = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    want = ["other.png", "other.svg", "results.json", "some-thing.png", "some-thing.svg", "summary.html"]
    assert files == want
    record = json.loads((tmp_path / "a" / "b" / "results.json").read_text())["results"]
    assert [entry["red"] for entry in record] == [False, True]
    assert record[1]["stated"][0]["value"] is None
    assert (tmp_path / "a" / "b" / "other.svg").read_text().startswith("<?xml")


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        drawn.cache_clear()
        page.write([result(GOOD)], tmp_path / name)
        markdown.write([result(GOOD)], tmp_path / name)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_markdown(tmp_path: Path) -> None:
    markdown.write([result(GOOD), result(BAD, name="other")], tmp_path)
    text = (tmp_path / "paper.md").read_text()
    assert "| [A \\<title\\> & more](#some-thing) | Lemma 9 | holds |" in text
    assert "| [A \\<title\\> & more](#other) | Lemma 9 | **does not hold as stated, not as expected** |" in text
    assert "## other\n\nclaim \\<b\\> **Does not hold as stated, not as expected.**\n" in text
    assert "Measured: large: 2, limit ≤ 1. Code: `ftprl.x`; tests: `tests/a.py`, `tests/b.py`." in text
    assert "![some-thing](figures/paper/some-thing.svg)" in text
    assert (tmp_path / "figures" / "paper" / "other.svg").exists()


ROW = re.compile(r"^\| \[.+\]\(#([a-z0-9-]+)\) \| .* \| (.*?) \|$", re.MULTILINE)


def test_the_committed_page_is_up_to_date() -> None:
    """The page has every statement with verdict, place, code and figure; `ftprl paper run --quick --docs docs` makes
    it.
    """
    text = (ROOT / "docs" / "paper.md").read_text()
    assert dict(ROW.findall(text)) == {s.name: s.expected.value for s in chosen([])}
    for s in chosen([]):
        assert f"## {s.name}\n" in text
        assert all(f"`{name}`" in text for name in s.code.split(", "))
        assert markdown.escaped(s.claim) in text
        assert (ROOT / "docs" / "figures" / "paper" / f"{s.name}.svg").exists()


@pytest.mark.parametrize("s", chosen([]), ids=lambda s: s.name)
def test_a_statement_says_where_things_are(s: Statement) -> None:
    """A statement's code can be imported, its tests exist, and a correction is described if one is needed."""
    from pydoc import locate

    assert all(locate(name) is not None for name in s.code.split(", "))
    for test in filter(None, s.tests.split(", ")):
        assert (ROOT / test.split("::")[0]).exists()
    assert bool(s.correction) == (s.expected is not Verdict.HOLDS)
    for text in (s.title, s.place, s.claim, s.instance, s.measured):
        assert text
        assert text == text.strip()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", s.name)
