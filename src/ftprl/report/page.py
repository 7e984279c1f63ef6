"""One page that needs nothing else: figures, numbers and words of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ftprl import draw
from ftprl.errors import InvalidInput
from ftprl.report import sentences
from ftprl.report.figures import Figure, figures
from ftprl.report.html import details, esc, facts, table, tag
from ftprl.report.numbers import amount, count, duration
from ftprl.report.settings import settings
from ftprl.runlog.events import Event
from ftprl.runlog.reader import Told, number, tell

_HERE = Path(__file__).parent
_SIZE = (5.2, 3.4)  # inches: on a phone the letters are still large enough to read, in two columns not too large
PARTS = ("head", "figures", "receipt", "settings", "events")


def page(events: Iterable[Event], name: str, *, nonce: str | None = None) -> str:
    """The events of a run as HTML; with a `nonce` the page asks its server for news."""
    told = tell(events)
    inside = "".join(tag("section", part, id=key) for key, part in parts(told, name).items())
    return frame(inside, name, nonce)


def parts(told: Told, name: str, memory: dict[str, tuple[str, str]] | None = None) -> dict[str, str]:
    """The inner HTML of each section; a `memory` keeps the pictures, so that only what has changed is drawn again."""
    return {
        "head": _head(told, name),
        "figures": _figures(figures(told), {} if memory is None else memory),
        "receipt": _receipt(told),
        "settings": _settings(told),
        "events": _events(told),
    }


def frame(inside: str, name: str, nonce: str | None = None) -> str:
    """The page around its sections."""
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
        "<footer>Made by ftprl from the events of the run. This page needs no network.</footer>\n"
        f"{script}</body>\n</html>\n"
    )


def _head(told: Told, name: str) -> str:
    word, sentence = sentences.status(told)
    tiles = [
        _tile("rows", count(told.rows), f"in {duration(told.seconds)}"),
        _tile("progressive loss", amount(told.progressive), sentences.meaning(told)),
        _tile("rows a second", count(None if told.speed is None else round(told.speed)), "over the whole run"),
    ]
    held = [p.holdout for p in (*told.points, *told.passes) if p.holdout is not None]
    if held:
        tiles.append(_tile("held-out loss", amount(held[-1]), "of rows that were never learned"))
    bad = next((n for e in reversed(told.others) if (n := number(e.get("bad_rows")))), None)
    if bad:
        tiles.append(_tile("bad rows", count(bad), "left out"))
    mood = "bad" if sentences.broken(told) else "good" if "regret" in told.receipt else "none"
    return (
        tag("h1", esc(os.path.basename(name) or name), " ", tag("span", word, class_=f"badge {word}"))
        + tag("p", esc(sentence), class_="failed" if told.status == "failed" else "status")
        + tag("div", *tiles, class_="tiles")
        + tag("p", esc(sentences.verdict(told)), class_=f"verdict {mood}")
    )


def _tile(label: str, value: str, note: str) -> str:
    said = tag("span", esc(label), class_="label") + tag("strong", esc(value)) + tag("span", esc(note), class_="note")
    return tag("div", said, class_="tile")


def _figures(found: Sequence[Figure], memory: dict[str, tuple[str, str]]) -> str:
    cards = [_card(figure, figure.panel, memory) for figure in found if figure.panel is not None]
    missing = [tag("li", tag("b", esc(f.title)), ": ", esc(f.caption)) for f in found if f.panel is None]
    left_out = tag("div", tag("h2", "Not shown"), tag("ul", *missing), class_="missing") if missing else ""
    return tag("div", *cards, class_="cards") + left_out


def _card(figure: Figure, panel: draw.Panel, memory: dict[str, tuple[str, str]]) -> str:
    key = repr((figure.caption, panel))
    if memory.get(figure.name, ("", ""))[0] != key:
        fig = draw.figure([replace(panel, title="")], *_SIZE)
        memory[figure.name] = key, draw.svg(fig, figure.name, label=f"{figure.title}. {figure.caption}")
    numbers = details(f"{figure.name}-numbers", "The numbers", table(figure.title, figure.head, figure.rows))
    said = tag("h2", esc(figure.title)) + tag("p", esc(figure.caption))
    return tag("figure", tag("figcaption", said), memory[figure.name][1], numbers, id=figure.name, class_="card")


def _receipt(told: Told) -> str:
    said = sentences.receipt(told)
    title = tag("h2", "The receipt in words")
    if not said:
        return title + tag("p", esc(sentences.verdict(told)))
    entries = [(name, amount(value)) for name, value in told.receipt.items()]
    paragraphs = "".join(tag("div", tag("h3", esc(head)), tag("p", esc(text))) for head, text in said)
    inside = facts("The receipt", entries)
    if told.digests:
        files = [
            (str(d.get("file")), f"{count(number(d.get('bytes')))} bytes", str(d.get("sha256"))) for d in told.digests
        ]
        inside += facts("The files it is about, with their SHA-256", files)
    numbers = details("receipt-numbers", "Every number of it", inside)
    return title + tag("div", paragraphs, class_="words") + numbers


def _settings(told: Told) -> str:
    rows = settings(told)
    inside = facts("What decided the run", rows) if rows else tag("p", "The events have no settings.")
    return tag("h2", "Settings") + inside


def _events(told: Told) -> str:
    rows = sentences.happened(told)
    inside = facts("What happened, at which row", rows) if rows else tag("p", "Nothing has been told yet.")
    return tag("h2", "Events") + inside


def picture(events: Iterable[Event], form: Literal["png", "svg"], name: str = "") -> bytes:
    """All figures of a run in one picture."""
    told = tell(events)
    found = [figure for figure in figures(told) if figure.panel is not None]
    if not found:
        raise InvalidInput(f"{name}: expected progress to draw, got none; wait for the first rows.")
    fig = draw.figure([f.panel for f in found if f.panel is not None], *_SIZE, columns=2)
    if form == "svg":
        return draw.svg(fig, label="; ".join(f.title for f in found)).encode("utf-8")
    return draw.png(fig)
