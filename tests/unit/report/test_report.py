"""The page of a run: complete for every run, safe for every name, and without external resources."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import draw
from ftprl.cli.app import run
from ftprl.errors import InvalidInput
from ftprl.receipt.printed import four_answers
from ftprl.report import page, page_of_several, picture, sentences
from ftprl.report.figures import figures
from ftprl.report.html import MOST_ROWS, esc, table
from ftprl.report.numbers import percent
from ftprl.report.settings import settings as settings_of
from ftprl.runlog.events import read_events
from ftprl.runlog.reader import RunLog
from oracles.events import HOSTILE, any_events, finished, progress, receipt, start

DATA = Path(__file__).parents[3] / ".." / "shared" / "data"


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def check(text: str) -> Reader:
    """Check that a page is well formed, has no script and loads nothing."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    tags = {name for name, _ in reader.seen}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "foreignobject"}
    ids = [attributes["id"] for _, attributes in reader.seen if "id" in attributes]
    assert len(ids) == len(set(ids)), "every id once"
    for _, attributes in reader.seen:
        assert not any(name.startswith("on") for name in attributes)
        assert all((attributes.get(name) or "#").startswith("#") for name in ("href", "src", "xlink:href"))
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]{1,2})", text)) <= {"#" + c for c in "flrscw"}
    text.encode("utf-8")
    return reader


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures of a page in tests of its words, because drawing takes most of the time."""
    monkeypatch.setattr(draw, "figure", lambda *panels, **size: None)
    monkeypatch.setattr(draw, "svg", lambda *figure, **names: "<svg></svg>")


def test_a_finished_run_has_every_section() -> None:
    reader = check(page(finished(), "folder/run.jsonl"))
    names = {attributes.get("id") for _, attributes in reader.seen}
    assert {"loss", "regret", "scales", "calibration", "speed", "coordinates"} <= names
    assert {"head", "figures", "receipt", "settings", "events"} <= names
    assert "Not shown" not in reader.text
    for sentence in (
        "run.jsonl",
        "finished",
        "1,000",
        "the run’s own numbers agree",
        "scales dropped",
        "baseline 0.6250, 20.0 % better",
        "each row predicted by the base rate of the labels before it",
        "a.part",
        "1,024",
        "12,345 bytes",
        "ab" * 32,
    ):
        assert sentence in reader.text
    figures_, tables = [sum(tag == name for tag, _ in reader.seen) for name in ("svg", "details")]
    assert figures_ == 7
    assert tables == 8, "a table for every figure, and the receipt's"
    labels = [attributes.get("aria-label") for tag, attributes in reader.seen if tag == "svg"]
    assert all(labels)


@pytest.mark.usefixtures("undrawn")
def test_a_loss_without_a_best_bound_shows_the_regret_of_the_features() -> None:
    events = json.loads(json.dumps(finished()))
    for group in (group for event in events for group in event.get("coordinates", ())):
        group["post_hoc"] = None
    reader = check(page(events, "run.jsonl"))
    assert "Regret by feature frequency" in reader.text
    assert "which features were expensive to learn. The largest share, " in reader.text
    assert "Best bound by feature frequency" not in reader.text
    assert "Best bound by feature frequency" in check(page(finished(), "run.jsonl")).text


@pytest.mark.usefixtures("undrawn")
def test_the_page_opens_with_the_answers() -> None:
    confidence = {"loss": {"mean": 0.5, "lower": 0.48, "upper": 0.53, "level": 0.95}, "drift": {"row": 700}}
    reader = check(page([*finished()[:-1], {**finished()[-1], "confidence": confidence}], "run.jsonl"))
    answers = (
        "Better than guessing?",
        "20.0 % better than guessing the base rate so far",
        "Would another learning rate have been better?",
        "2.00 % more than the mixture of all",
        "Would other fixed weights have been better?",
        "provably beat every fixed linear model of length up to 2;",
        "What to expect tomorrow?",
        "from 0.4800 to 0.5300 per row",
        "Drift alarm: by row 700 the loss had risen, so new rows may have a larger one.",
        "rows per second",
    )
    positions = [reader.text.index(text) for text in answers]
    assert positions == sorted(positions)
    assert "Train with --receipt" in check(page([start(receipt=False), progress(9, floor=None)], "run.jsonl")).text


@pytest.mark.parametrize("order", ["random", "given"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_the_answers_are_those_of_the_receipt(loss: str, order: str) -> None:
    """With Poisson loss a receipt divides each row by the mean of the labels; losses per row must not be divided."""
    rows = [{"a": "xyz"[i % 3], "b": i % 7} for i in range(200)]
    y = [i % 3 + i % 2 for i in range(200)] if loss != "logistic" else [i % 3 == 0 for i in range(200)]
    trained = ftprl.train(rows, y, loss=loss, receipt=True, bits=8, order=order)
    page_answers = sentences.answers(RunLog.from_events(trained.events))
    assert trained.certificate.rates is not None
    assert [tuple(answer) for answer in page_answers] == [
        (question, text) for question, text in four_answers(trained.certificate)
    ]


def test_several_runs_are_one_page() -> None:
    text = page_of_several([("a/run.jsonl", finished()), ("b/run.jsonl", finished()), (HOSTILE, [start()])])
    reader = check(text)
    assert "3 runs" in reader.text
    for name in ("a/run.jsonl", "b/run.jsonl"):
        assert name in reader.text
    names = {attributes.get("id") for tag, attributes in reader.seen if tag == "figure"}
    assert {"losses", "run1-loss", "run1-floor", "run2-loss", "run2-floor"} <= names
    assert "<script>" not in text
    check(page_of_several([("x", []), ("x", [])]))


@pytest.mark.usefixtures("undrawn")
def test_the_policy_forbids_everything_but_styles() -> None:
    text = page(finished(), "run.jsonl")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "script-src" not in policy
    (policy,) = re.findall(r'Policy" content="([^"]*)"', page([], "run.jsonl", nonce="abc"))
    assert "script-src 'nonce-abc'; connect-src 'self'" in policy


def without(*keys: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in event.items() if k not in keys} for event in finished()]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("events", "missing", "why"),
    [
        (without("receipt", "coordinates"), {"regret", "coordinates"}, "have no receipt"),
        (
            [{**e, "receipt": False} for e in without("coordinates", "calibration")],
            {"regret", "calibration"},
            "kept no",
        ),
        (without("mixture"), {"scales"}, "a single scale was learned"),
        (without("calibration"), {"calibration"}, "Calibration"),
        (finished()[:1], {"loss", "regret", "scales", "speed"}, "no progress has been logged yet"),
        (finished()[:5], {"coordinates"}, "logged when the run ends"),
        ([progress(1)], {"speed", "coordinates"}, "too close in time"),
        ([{"event": "error", "rows": 0, "message": "it broke"}], {"loss"}, "it broke"),
    ],
)
def test_what_is_absent_is_left_out_with_a_reason(events: list[dict[str, Any]], missing: set[str], why: str) -> None:
    reader = check(page(events, "run.jsonl"))
    names = {attributes.get("id") for tag, attributes in reader.seen if tag == "figure"}
    assert not missing & names
    assert why in reader.text


@pytest.mark.usefixtures("undrawn")
def test_a_loss_without_probabilities_has_no_calibration() -> None:
    events = [start(spec={"loss": "hinge"}), progress(4, loss=8.0, baseline=12.5, calibration=None)]
    assert "this run has hinge loss" in check(page(events, "run.jsonl")).text
    events = [start(spec={"loss": "squared"}), progress(4, loss=8.0, baseline=12.5, calibration=None)]
    reader = check(page(events, "run.jsonl"))
    assert "the events have no residuals" in reader.text
    assert "RMSE 4.000, baseline 5.000" in reader.text


def test_names_from_data_are_shown_and_do_nothing() -> None:
    data = {"files": [HOSTILE], "columns": {HOSTILE: "label", "x": HOSTILE}, "format": HOSTILE}
    events = [
        start(version=HOSTILE, data=data, spec={"loss": HOSTILE}, **{HOSTILE: {HOSTILE: [HOSTILE]}}),
        progress(40, mixture={"names": [HOSTILE, "$x$"], "weights": [0.5, 0.5]}),
        progress(80),
        {"event": "checkpoint", "rows": 1, "path": HOSTILE},
        {"event": "retire", "rows": 1, "kept": [HOSTILE]},
        {"event": HOSTILE, "rows": HOSTILE},
        {"event": "error", "rows": 3, "message": HOSTILE},
    ]
    text = page(events, HOSTILE)
    reader = check(text)
    assert reader.text.count("<script>alert(1)</script>") >= 15
    assert reader.text.count("\\x00\\x1b[31m\\u202e") >= 15
    labels = [attributes.get("aria-label") for tag, attributes in reader.seen if tag == "svg"]
    assert len(labels) == 5


@given(st.text())
def test_text_stays_text(text: str) -> None:
    reader = Reader()
    reader.feed(f'<p title="{esc(text)}">{esc(text)}</p>')
    assert reader.seen == [("p", {"title": reader.text or ""})]
    assert reader.text.isprintable()


def test_a_long_table_shows_its_ends() -> None:
    rows = [(str(i), "x") for i in range(1000)]
    text = table("t", ("a", "b"), rows)
    assert text.count("<tr>") == MOST_ROWS + 2
    assert "600 rows left out" in text


BARE = {"excess": 1, "bound": 0, "regret": 0, "ratio": 0, "post_hoc": 0}


@given(any_events())
@example([{"event": "start", "receipt": BARE}])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_events_have_words_figures_and_settings(events: list[dict[str, Any]]) -> None:
    log = RunLog.from_events(events)
    for figure in figures(log):
        assert figure.caption
        assert all(len(row) == len(figure.head) for row in figure.rows)
    assert sentences.verdict(log)
    assert all(len(row) == 3 for row in (*sentences.timeline(log), *settings_of(log)))
    sentences.receipt(log), sentences.meaning(log, log.first_pass), sentences.status(log)


@given(any_events(), st.text(max_size=20))
@settings(max_examples=4, suppress_health_check=list(HealthCheck), deadline=None)
def test_any_events_make_a_page(events: list[dict[str, Any]], name: str) -> None:
    check(page(events, name))


# ---- words ----


def test_the_verdict_follows_the_numbers() -> None:
    def verdict(**more: float) -> str:
        return sentences.verdict(
            RunLog.from_events(
                [start(), progress(100, receipt={**receipt(100), **more}), {"event": "end", "rows": 100}]
            )
        )

    r = receipt(100)
    assert f"{r['regret']:.2f}" in verdict()
    assert "the run’s own numbers agree" in verdict()
    assert "is inconsistent" in verdict(regret=2.0 * r["bound"])
    assert "is inconsistent" in verdict(theorem=0.5 * r["bound"])
    assert "No regret" in verdict(regret=-5.0)
    assert "numbers agree" in verdict(tight=r["bound"] * (1 + 1e-9)), "rounding is no lie"


@pytest.mark.usefixtures("undrawn")
def test_a_broken_receipt_is_red_and_distrusted() -> None:
    events = [start(), progress(100, receipt={**receipt(100), "regret": 1e6})]
    text = page(events, "run.jsonl")
    assert 'class="verdict bad"' in text
    assert "Do not trust this receipt" in text


def test_the_receipt_in_words_says_each_number() -> None:
    paragraphs = dict(sentences.receipt(RunLog.from_events(finished())))
    r = RunLog.from_events(finished()).receipt
    assert f"{r['post_hoc']:.1f}" in paragraphs["Best bound in hindsight"]
    assert "5 times as much" in paragraphs["Best bound in hindsight"]
    assert f"{r['theorem']:.1f}" in paragraphs["Proved bound"]
    assert "0.16" in paragraphs["Regret"]
    assert f"{percent(r['regret'] / r['loss'])} of the total loss" in paragraphs["Regret"]
    assert "baseline 0.6250, 20.0 % better" in paragraphs["Loss"]


def test_checkpoints_in_a_row_are_one_line() -> None:
    events = [start(), *({"event": "checkpoint", "rows": i, "path": "p"} for i in range(1, 50)), progress(60)]
    lines = sentences.timeline(RunLog.from_events(events))
    assert len(lines) == 2
    assert lines[1] == ("49", "checkpoint", "49 checkpoints, the last to p")


# ---- pictures ----


def test_pictures_of_a_run() -> None:
    assert picture(finished(), "png").startswith(b"\x89PNG")
    drawn = picture(finished(), "svg")
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert picture(finished(), "svg") == drawn
    with pytest.raises(InvalidInput, match="expected progress"):
        picture([start()], "png")


def test_run_plot(tmp_path: Path) -> None:
    data = tmp_path / "a.vw"
    data.write_text("".join(f"{1 if i % 3 else -1} | a{i % 7} b\n" for i in range(300)))
    done = ftprl.train(data, bits=8)
    figure = done.plot()
    assert figure.axes[0].get_title() == "Progressive loss"
    x, y = next(line.get_data() for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 20)
    assert x[-1] <= 300
    assert y[0] == pytest.approx(0.693147, abs=1e-5)


# ---- the command ----


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in finished()))
    return path


def test_the_format_is_inferred_from_the_extension(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "run.jsonl"]) == 0
    assert capsys.readouterr().err == "wrote run.html\n"
    check(Path("run.html").read_text("utf-8"))
    assert run(["report", "run.jsonl", "-o", "x.svg", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert Path("x.svg").read_bytes().startswith(b"<svg")
    assert run(["report", "run.jsonl", "-o", "picture", "--format", "png"]) == 0
    assert Path("picture").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["absent.jsonl"], "absent.jsonl: No such file"),
        (["empty.jsonl"], "expected events, got none"),
        (["bad.jsonl"], "bad.jsonl:1: expected an event in JSON"),
        (["binary.jsonl"], "binary.jsonl:1: expected an event"),
        (["deep.jsonl"], "deep.jsonl:1: expected an event"),
        (["run.jsonl", "-o", "run.jsonl", "--format", "html"], "which is the events"),
        (["run.jsonl", "-o", "x.pdf"], "ending in .html, .png or .svg"),
        (["run.jsonl", "--format", "pdf"], "--format needs html, png or svg, got 'pdf'"),
        (["run.jsonl", "--format", "png", "-o", "a.svg"], "--format png needs an output that does not end in .svg"),
        (["run.jsonl", "-o", "absent/x.html"], "folder that can be written"),
        (["."], "got the folder"),
    ],
)
def test_bad_input_is_one_line(
    events: Path, args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.jsonl").touch()
    Path("bad.jsonl").write_text("hello\n")
    Path("binary.jsonl").write_bytes(bytes(range(128, 256)) + b"\n")
    Path("deep.jsonl").write_text("[" * 100_000 + "\n")
    before = events.read_text()
    assert run(["report", *args]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert sentence in err
    assert events.read_text() == before


def test_a_file_name_may_be_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "<script>alert(1)<\u2215script>.vw"
    Path(name).write_text("1 | a\n-1 | b\n" * 50)
    assert run(["train", name, "-o", "m.ftprl", "--bits", "8", "-q", "--events", f"{name}.jsonl"]) == 0
    assert run(["report", f"{name}.jsonl", "-o", "page.html", "-q"]) == 0
    assert "<script>alert(1)<" in check(Path("page.html").read_text("utf-8")).text


def test_resumed_runs_and_several_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.vw").write_text("".join(f"{1 if i % 3 else -1} | a{i % 7}:{i} b\n" for i in range(500)))
    train = ["train", "a.vw", "-q", "--bits", "8", "--passes", "3", "--holdout", "5", "--events", "e.jsonl"]
    assert run([*train, "-o", "a.ftprl", "--checkpoint", "p", "--every", "400"]) == 0
    lines = Path("e.jsonl").read_text().splitlines(keepends=True)
    at = max(i for i, line in enumerate(lines) if '"checkpoint"' in line)
    Path("e.jsonl").write_text("".join(lines[: at + 2]) + lines[-1][:20])  # killed while it wrote a line
    assert run([*train, "-o", "b.ftprl", "--resume", "p"]) == 0
    assert run(["report", "e.jsonl", "-q"]) == 0
    text = check(Path("e.html").read_text("utf-8")).text
    rows, best = (read_events("e.jsonl")[-1][name] for name in ("rows", "best_pass"))
    assert rows == 500 * (3 + best)
    for sentence in (
        "was resumed",
        "pass 3: mean loss",
        "held-out loss",
        f"{rows:,} rows, complete",
        "all rows are learned",
    ):
        assert sentence in text


@pytest.mark.skipif(not (DATA / "bank.csv.gz").exists(), reason="the shared data sets are not here")
def test_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = str((DATA / "bank.csv.gz").resolve())
    log = ["train", data, "--label", "y", "--sep", ";", "--bits", "14", "-q", "-o", "m", "--events", "e.jsonl"]
    assert run(log) == 0
    assert run(["report", "e.jsonl", "-q"]) == 0
    text = check(Path("e.html").read_text("utf-8")).text
    assert "41,188" in text
    assert "euribor3m" in text
