"""The report of a run as one self-contained HTML page, and its figures as one picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ftprl import draw
from ftprl.errors import InvalidInput
from ftprl.report import sentences
from ftprl.report.figure import Figure
from ftprl.report.figures import figures
from ftprl.report.html import details, esc, facts, table, tag
from ftprl.report.numbers import amount, count, duration, headline
from ftprl.report.settings import settings
from ftprl.runlog.events import Event
from ftprl.runlog.reader import RunLog, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_HERE = Path(__file__).parent
_SIZE = (4.6, 3.1)  # inches: on a phone the letters are still large enough to read, in two columns not too large
PARTS = ("head", "figures", "receipt", "settings", "events")


def page(events: Iterable[Event], name: str, *, nonce: str | None = None) -> str:
    """Return the report as HTML; with a `nonce` the page asks its server for updates."""
    log = RunLog.from_events(events)
    inside = "".join(tag("section", part, id=key) for key, part in parts(log, name).items())
    return frame(inside, name, nonce)


def parts(
    log: RunLog, name: str, cache: dict[str, tuple[str, str]] | None = None, *, prefix: str = ""
) -> dict[str, str]:
    """Return the inner HTML of each section.

    A `cache` keeps pictures, so that only changed ones are drawn again. With a `prefix` all ids begin with it, so that
    several runs fit into one page.
    """
    named = [replace(figure, name=prefix + figure.name) for figure in figures(log)]
    return {
        "head": _head(log, name),
        "figures": _figures(named, {} if cache is None else cache),
        "receipt": _receipt(log, prefix),
        "settings": _settings(log),
        "events": _events(log),
    }


def frame(inside: str, name: str, nonce: str | None = None, made_from: str = "the events of the run") -> str:
    """Return the page around its sections."""
    style = draw.SCHEMES + (_HERE / "page.css").read_text("utf-8")
    script = ""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    if nonce is not None:
        policy += f"; script-src 'nonce-{nonce}'; connect-src 'self'"
        script = f'<script nonce="{esc(nonce)}">{(_HERE / "live.js").read_text("utf-8")}</script>'
    live = tag("p", "", id="live", role="status") if nonce is not None else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{esc(name)} · ftprl</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{live}<main>\n{inside}\n</main>\n"
        f"<footer>Made by ftprl from {made_from}; self-contained, no network needed.</footer>\n"
        f"{script}</body>\n</html>\n"
    )


def _head(log: RunLog, name: str) -> str:
    """Return the title, the state of the run and the main numbers."""
    word, sentence = sentences.status(log)
    return (
        tag("h1", esc(os.path.basename(name) or name), " ", tag("span", word, class_=f"badge {word}"))
        + tag("p", esc(sentence), class_="failed" if log.status == "failed" else "status")
        + "".join(tag("p", esc(warning), class_="verdict bad") for warning in sentences.warnings(log))
        + _answers(log)
        + tag("div", *_tiles(log), class_="tiles")
    )


def _answers(log: RunLog) -> str:
    """Return the questions and answers; if numbers of the receipt contradict each other, that comes first."""
    wrong = tag("p", esc(sentences.verdict(log)), class_="verdict bad") if sentences.inconsistent(log) else ""
    entries = [tag("div", tag("dt", esc(a.question)), tag("dd", esc(a.answer))) for a in sentences.answers(log)]
    return wrong + (tag("dl", *entries, class_="answers") if entries else "")


def _tiles(log: RunLog) -> list[str]:
    """Return the main numbers, each beside its baseline."""
    first, held = log.first_pass, log.held_out
    tiles = [
        _tile("rows", count(log.rows), f"in {duration(log.seconds)}"),
        _tile("progressive loss", headline(log.progressive), sentences.meaning(log, first)),
        *_saved_model(log),
    ]
    if first is not None and first.baseline is not None:
        tiles.append(_tile("baseline", headline(first.baseline), sentences.baseline(log)))
        if first.improvement is not None:
            note = "more loss than the baseline" if first.improvement < 0.0 else "less loss; 100 % is perfect"
            tiles.append(_tile("improvement", f"{first.improvement:.1f} %", note))
    if log.residuals is not None:
        summary = log.residuals
        note = f"the mean label would have {amount(summary.label_deviation)}"
        tiles.append(_tile("RMSE", headline(summary.rmse), note))
    if held is not None:
        yardstick = sentences.against_baseline(held.holdout, held.holdout_baseline, held.holdout_improvement)
        tiles.append(_tile("held-out loss", headline(held.holdout), yardstick or "rows that were never learned"))
    tiles.append(_tile("rows per second", count(None if log.speed is None else round(log.speed)), "mean of the run"))
    bad = next((n for e in reversed(log.other_events) if (n := number(e.get("bad_rows")))), None)
    if bad:
        tiles.append(_tile("bad rows", count(bad), f"left out, of {count(log.rows + bad)}"))
    return tiles


def _saved_model(log: RunLog) -> list[str]:
    """Return the losses of the saved model on rows it was measured on, if there are any."""
    tiles = []
    for key in ("check", "sample"):
        known = log.end.get(key)
        if not isinstance(known, Mapping) or (loss := number(known.get("loss"))) is None:
            continue
        name = "rows learned last" if key == "sample" else "last rows" if known.get("kind") == "last" else "saved model"
        gain, before = number(known.get("improvement")), number(known.get("progressive"))
        yardstick = sentences.against_baseline(loss, number(known.get("baseline")), gain)
        if known.get("kind") == "again" and before is not None:
            yardstick = f"{amount(before)} before they were learned, baseline {amount(number(known.get('baseline')))}"
        what = sentences.SAVED.get(str(known.get("kind")), "a random draw from all rows")
        tiles.append(_tile(name, headline(loss), f"{count(number(known.get('rows')))} {what}; {yardstick}"))
    return tiles


def _tile(label: str, value: str, note: str) -> str:
    """Return one number with its label and a note."""
    name, explanation = tag("span", esc(label), class_="label"), tag("span", esc(note), class_="note")
    return tag("div", name, tag("strong", esc(value)), explanation, class_="tile")


def _figures(all_figures: Sequence[Figure], cache: dict[str, tuple[str, str]]) -> str:
    """Return the figures, and the reasons for missing ones."""
    cards = [figure_card(figure, figure.panel, cache) for figure in all_figures if figure.panel is not None]
    missing = [tag("li", tag("b", esc(f.title)), ": ", esc(f.caption)) for f in all_figures if f.panel is None]
    left_out = tag("div", tag("h2", "Not shown"), tag("ul", *missing), class_="missing") if missing else ""
    return tag("div", *cards, class_="cards") + left_out


def figure_card(figure: Figure, panel: draw.Panel, cache: dict[str, tuple[str, str]] | None = None) -> str:
    """Return a figure with its caption and its numbers."""
    cache = {} if cache is None else cache
    key = repr((figure.caption, panel))
    if cache.get(figure.name, ("", ""))[0] != key:
        fig = draw.figure([replace(panel, title="")], *_SIZE)
        cache[figure.name] = key, draw.svg(fig, figure.name, label=f"{figure.title}. {figure.caption}")
    numbers = details(f"{figure.name}-numbers", "Numbers", table(figure.title, figure.head, figure.rows))
    caption = tag("h2", esc(figure.title)) + tag("p", esc(figure.caption))
    return tag("figure", tag("figcaption", caption), cache[figure.name][1], numbers, id=figure.name, class_="card")


def _receipt(log: RunLog, prefix: str) -> str:
    """Return the details of the receipt."""
    paragraphs = sentences.receipt(log)
    title = tag("h2", "Details of the receipt")
    if not paragraphs:
        return title + tag("p", esc(sentences.verdict(log)))
    entries = [(name, amount(value)) for name, value in log.receipt.items()]
    text = "".join(tag("div", tag("h3", esc(head)), tag("p", esc(words))) for head, words in paragraphs)
    inside = facts("The receipt", entries)
    if log.digests:
        files = [
            (str(d.get("file")), f"{count(number(d.get('bytes')))} bytes", str(d.get("sha256"))) for d in log.digests
        ]
        inside += facts("The files it covers, with their SHA-256", files)
    numbers = details(f"{prefix}receipt-numbers", "All numbers of the receipt", inside)
    verdict = tag("p", esc(sentences.verdict(log)))
    return title + verdict + tag("div", text, class_="words") + numbers


def _settings(log: RunLog) -> str:
    """Return the table of settings."""
    rows = settings(log)
    inside = facts("Settings of the run", rows) if rows else tag("p", "The events have no settings.")
    return tag("h2", "Settings") + inside


def _events(log: RunLog) -> str:
    """Return the table of events."""
    rows = sentences.timeline(log)
    inside = facts("Events by row number", rows) if rows else tag("p", "No event has been logged yet.")
    return tag("h2", "Events") + inside


def picture(events: Iterable[Event], form: Literal["png", "svg"], name: str = "") -> bytes:
    """Return all figures of a run in one picture; raise InvalidInput if there are none."""
    log = RunLog.from_events(events)
    some = [figure for figure in figures(log) if figure.panel is not None]
    if not some:
        raise InvalidInput(f"{name}: expected progress to draw, got none; wait for the first rows.")
    fig = draw.figure([f.panel for f in some if f.panel is not None], *_SIZE, columns=2)
    return drawn(fig, form, "; ".join(f.title for f in some))


def drawn(figure: MatplotlibFigure, form: Literal["png", "svg"], label: str) -> bytes:
    """Return a picture as a file; `label` is the text of an SVG for screen readers."""
    return draw.png(figure) if form == "png" else draw.svg(figure, label=label).encode("utf-8")


def cards(panels: Sequence[draw.Panel], name: str, size: tuple[float, float]) -> str:
    """Return each panel as a picture of its own on a page; their ids are the name with a number."""
    pictures = [draw.svg(draw.figure([p], *size), f"{name}{i}", label=p.title) for i, p in enumerate(panels)]
    return tag("div", *(tag("figure", svg, class_="card") for svg in pictures), class_="cards")
