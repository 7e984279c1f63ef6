"""`ftprl paper` as a user meets it, and the runner behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ftprl import InvalidInput
from ftprl.cli.app import run
from ftprl.paper import registry, runner
from ftprl.paper.base import Check, Outcome, Statement, Verdict
from ftprl.paper.registry import chosen, find, names

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fake(name: str, value: float, expected: Verdict = Verdict.HOLDS) -> Statement:
    def judge(full: bool, step: Callable[[str], None]) -> Outcome:
        step("working")
        return Outcome([Check("value", value, "<=", 1.0 if full else 0.5)])

    return replace(find("lemma-sum"), name=name, run=judge, expected=expected)


def test_list_has_one_statement_a_line(capsys: Capture) -> None:
    assert run(["paper", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(names())
    for line, s in zip(lines, chosen([]), strict=True):
        assert s.place in line
        assert line.endswith(s.title)
    assert sum(line.split("  ")[0].startswith("lemma-") for line in lines) == 7


def test_names_are_modules_and_unique() -> None:
    assert len(set(names())) == len(names())
    for name in names():
        assert find(name).name == name


def test_show(capsys: Capture) -> None:
    assert run(["paper", "show", "algorithm-1"]) == 0
    out = capsys.readouterr().out
    s = find("algorithm-1")
    assert out.splitlines()[:2] == [s.title, "Algorithm 1; expected: holds with a correction"]
    flat = " ".join(out.split())
    for text in (s.claim, s.instance, s.measured, s.correction):
        assert text in flat
    assert f"code {s.code} ftprl.paper.algorithm_1 tests {s.tests} tests/paper/test_verdicts.py" in flat
    assert run(["paper", "show", "lemma-sum"]) == 0
    assert "correction" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "run"])
def test_an_unknown_name_is_refused_with_the_nearest(command: str, capsys: Capture) -> None:
    assert run(["paper", command, "lema-sun"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "ftprl: no statement is called 'lema-sun'; did you mean lemma-sum? ftprl paper list shows all.\n"


def test_run_prints_a_table_and_progress(capsys: Capture) -> None:
    assert run(["paper", "run", "lemma-one-round", "lemma-sum", "-j", "1", "-o", "out"]) == 0
    out, err = capsys.readouterr()
    table = out.splitlines()
    assert table[0].startswith("lemma-one-round  holds  largest g·(x1 - x2) / g'Q^-1 g: 1 <= 1")
    assert table[1].startswith("lemma-sum        holds  largest left side / right side: 0.9")
    assert table[-1] == "2 statements: 2 hold. Every verdict is the expected one."
    assert [line.split(":")[0] for line in err.splitlines()] == ["[ 1/2] lemma-one-round", "[ 2/2] lemma-sum"]
    assert "\x1b" not in out + err
    files = {"lemma-sum.png", "lemma-sum.svg", "lemma-one-round.png", "lemma-one-round.svg", "results.json"}
    assert set(os.listdir("out")) == files | {"summary.html"}


def test_two_processes_give_what_one_gives(capsys: Capture) -> None:
    record = []
    for jobs in ("1", "2"):
        assert run(["paper", "run", "lemma-sum", "lemma-one-round", "-j", jobs, "--json"]) == 0
        made = json.loads(capsys.readouterr().out)["results"]
        record.append([{key: value for key, value in entry.items() if key != "seconds"} for entry in made])
    assert record[0] == record[1]
    assert [entry["name"] for entry in record[0]] == ["lemma-one-round", "lemma-sum"], "in the order of the paper"


def test_a_process_of_its_own_says_no_more_than_it_should() -> None:
    """The workers leave nothing on stderr: no warning, no trace."""
    command = [sys.executable, "-m", "ftprl", "paper", "run", "lemma-sum", "lemma-one-round"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0
    assert len(made.stderr.splitlines()) == 2, made.stderr
    assert made.stdout.endswith("Every verdict is the expected one.\n")


def test_red_is_exit_code_1(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "chosen", lambda wanted: [fake("good", 0.2), fake("bad", 0.7)])
    assert run(["paper", "run", "-j", "1", "--quick"]) == 1
    out, err = capsys.readouterr()
    assert "good  holds  value: 0.2 <= 0.5" in out
    assert "bad   does not hold as stated  RED: expected holds" in out
    assert "value: 0.7 <= 0.5 is not met" in out
    assert "2 statements: 1 holds, 1 does not hold as stated. 1 is not as expected." in out
    assert "bad: does not hold as stated RED" in err
    assert run(["paper", "run", "-j", "1", "--full"]) == 0


def test_what_holds_instead_must_hold_and_saves_nothing() -> None:
    """A different statement that holds does not save the printed one; if it fails, the line is red."""
    good, bad = Check("other", 0.1, "<=", 1.0), Check("other", 2.0, "<=", 1.0)
    experiment = fake("false", 0.7, Verdict.FAILS)
    for instead, red in ((good, False), (bad, True)):
        outcome = Outcome([Check("value", 0.7, "<=", 0.5)], instead=[instead], remark="synthetic data")
        result = runner.Result(experiment, outcome, 0.0)
        assert outcome.verdict is Verdict.FAILS
        assert result.red is red
        assert result.to_dict()["instead"][0]["ok"] is not red


def test_a_remark_stands_in_the_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome([Check("value", 0.2, "<=", 0.5)], remark="synthetic data")
    experiment = replace(fake("good", 0.2), run=lambda full, step: outcome)
    monkeypatch.setattr(registry, "chosen", lambda wanted: [experiment])
    assert run(["paper", "run", "-j", "1"]) == 0
    assert "value: 0.2 <= 0.5 (synthetic data)" in capsys.readouterr().out


def test_a_correction_is_a_line_of_its_own(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome([Check("value", 0.7, "<=", 0.5)], [Check("half the value", 0.35, "<=", 0.5)])
    experiment = replace(fake("mended", 0.7, Verdict.CORRECTED), run=lambda full, step: outcome)
    monkeypatch.setattr(registry, "chosen", lambda wanted: [experiment])
    assert run(["paper", "run", "-j", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "mended  holds with a correction",
        "    as stated: value: 0.7 <= 0.5 is not met",
        "    as corrected: half the value: 0.35 <= 0.5",
    ]


@pytest.mark.parametrize("word", ["theorem-1", "Theorem 1"])
def test_a_statement_is_found_by_its_place(word: str, capsys: Capture) -> None:
    assert [statement.name for statement in chosen([word])] == ["bad-class"]
    assert run(["paper", "show", word]) == 0
    assert "\nTheorem 1, Section 1.2; expected: holds\n" in capsys.readouterr().out


def test_an_expected_failure_is_not_red(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "chosen", lambda wanted: [fake("false", 0.7, Verdict.FAILS)])
    assert run(["paper", "run", "-j", "1"]) == 0
    assert "Every verdict is the expected one." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-j", "0"], "--jobs needs a number of at least 1, got 0; pass one."),
        (["lemma-sum", "--docs", "d"], "--docs needs all statements, got lemma-sum alone; leave the names out."),
        (["-o", "file"], "--output needs a folder, got the file 'file'; name another."),
    ],
)
def test_bad_options_are_refused_before_any_work(args: list[str], message: str, capsys: Capture) -> None:
    Path("file").write_text("")
    assert run(["paper", "run", *args]) == 2
    assert capsys.readouterr() == ("", f"ftprl: {message}\n")


def test_docs_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "chosen", lambda wanted: [fake("good", 0.2)])
    assert run(["paper", "run", "-j", "1", "--docs", "docs"]) == 0
    assert "## good" in Path("docs/paper.md").read_text()


def test_steps_are_reported_as_they_happen() -> None:
    heard: list[runner.ExperimentProgress] = []
    runner.run([fake("a", 0.1), fake("b", 0.1)], on_progress=heard.append)
    assert [(p.name, p.text, p.done, p.total) for p in heard] == [
        ("a", "working", 0, 2),
        ("a", "holds", 1, 2),
        ("b", "working", 1, 2),
        ("b", "holds", 2, 2),
    ]


def test_chosen_is_in_order_and_once() -> None:
    assert [s.name for s in chosen(["lemma-sum", "regret-theorem", "lemma-sum"])] == ["regret-theorem", "lemma-sum"]
    with pytest.raises(InvalidInput, match="no statement is called ''"):
        chosen([""])


def test_paper_alone_shows_help(capsys: Capture) -> None:
    assert run(["paper"]) == 0
    out = capsys.readouterr().out
    for word in ("list", "run", "show"):
        assert word in out
