"""Objects in a notebook and as `repr`: short, and with the terms of the documentation."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import FTPRL, Game, OnlineClassifier, ProgressBar
from ftprl.draw.card import card
from ftprl.schemes import Diagonal
from ftprl.sets import Box

ROWS = [{"city": city, "size": float(size)} for size in range(30) for city in ("Ulm", "Bonn <b>")]
LABELS = [int(row["size"] > 15) for row in ROWS]


class _Tables(HTMLParser):
    """Collects the text of each cell, and checks that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def _cells(html: str) -> list[str]:
    parser = _Tables()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser.cells


def test_text_is_escaped() -> None:
    assert _cells(card("a <b>", [("<i>", "x & y")], "note <")) == ["a <b>", "<i>", "x & y", "note <"]


@pytest.fixture(scope="module")
def run() -> Any:
    return ftprl.train(ROWS, LABELS, bits=10, receipt=True)


def test_a_run_a_model_and_a_certificate(run: Any) -> None:
    for shown, words in (
        (run, ["Run", "progressive loss", "loss of rows like these"]),
        (run.model, ["Model", "learning-rate scales", "cells in use", "receipt"]),
        (run.certificate, ["Certificate of 60 rows", "Better than guessing?", "regret"]),
    ):
        cells = _cells(shown._repr_html_())
        assert set(words) <= set(cells)
        assert len(repr(shown).splitlines()) == 1
        assert len(repr(shown)) < 200


def test_passes_bad_rows_and_a_file(tmp_path: Any) -> None:
    rows = [*ROWS, {"size": float("inf")}]
    run = ftprl.train(rows, [*LABELS, 1], bits=10, passes=2, on_bad_row="skip", output=tmp_path / "m.ftprl")
    cells = _cells(run._repr_html_())
    assert {"passes", "held-out loss", "bad rows left out"} <= set(cells)
    assert repr(run).endswith("m.ftprl)")


def test_a_certificate_of_a_game() -> None:
    game = Game(FTPRL(Box(np.full(2, -1.0), np.full(2, 1.0)), Diagonal()))
    for sign in (1.0, -1.0, 1.0):
        game.observe(np.array([sign, 0.5]))
    certificate = game.certificate()
    assert {"Certificate after 3 rounds", "regret at most", "bound"} <= set(_cells(certificate._repr_html_()))
    assert len(repr(certificate).splitlines()) == 1


def test_an_online_model() -> None:
    model = OnlineClassifier(bits=8)
    assert _cells(model._repr_html_()) == ["OnlineClassifier(bits=8)"]
    model.learn_one(ROWS[0], True)
    assert "rows learned" in _cells(model._repr_html_())


def test_figures_are_pictures(run: Any) -> None:
    assert run.plot()._repr_png_().startswith(b"\x89PNG\r\n\x1a\n")


def test_progress_in_a_terminal() -> None:
    from rich.console import Console

    file = io.StringIO()
    ftprl.train(ROWS, LABELS, bits=10, listener=ProgressBar(Console(file=file, force_terminal=True, width=100)))
    assert "60 rows" in file.getvalue()
    assert "loss 0." in file.getvalue()
