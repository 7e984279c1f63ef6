"""Figures: what is drawn is what was given."""

import io
import re

import numpy as np
import pytest

from ftprl.draw import COLOURS, Bar, Panel, Series, bars, figure, svg


def panel(*series: Series, log: bool = False) -> Panel:
    return Panel("title", "round", "regret", series, log)


def test_lines_labels_and_styles() -> None:
    fig = figure([panel(Series("a", [1, 2, 3], [1.0, 4.0, 9.0]), Series("b", [1, 2], [0, 1], dashed=True))])
    ax = fig.axes[0]
    a, b = ax.get_lines()
    np.testing.assert_array_equal(a.get_ydata(), [1.0, 4.0, 9.0])
    assert (a.get_linestyle(), b.get_linestyle()) == ("-", "--")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("title", "round", "regret")
    assert a.get_color() == COLOURS[0] != b.get_color()


def test_colours_wrap_and_can_be_chosen() -> None:
    many = [Series(str(i), [0, 1], [i, i]) for i in range(9)]
    lines = figure([panel(*many, Series("same", [0], [0], colour=1))]).axes[0].get_lines()
    assert lines[7].get_color() == COLOURS[0]
    assert lines[9].get_color() == COLOURS[1]


def test_log_axes_skip_what_is_not_positive() -> None:
    ax = figure([panel(Series("a", [1, 2, 3], [-1.0, 0.0, 5.0]), log=True)]).axes[0]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [np.nan, np.nan, 5.0])


@pytest.mark.parametrize("count", [1, 3])
def test_panels_side_by_side(count: int) -> None:
    fig = figure([panel(Series("a", [0, 1], [0, 1]))] * count)
    assert len(fig.axes) == count
    assert fig.get_size_inches()[0] == pytest.approx(7.0 * count)


@pytest.mark.parametrize("name", ["$broken", "$a$", "_hidden", "a < b & c", "50 %", "x_1^{", "\\alpha"])
def test_any_name_can_be_drawn(name: str) -> None:
    """Names may come from data: they are shown as they are, not read as formulas."""
    fig = figure([panel(Series(name, [0, 1], [0, 1]))])
    fig.savefig(io.BytesIO(), format="png")
    assert [t.get_text() for t in fig.axes[0].get_legend().get_texts()] == [name]


def test_the_same_figure_gives_the_same_bytes() -> None:
    def render() -> bytes:
        out = io.BytesIO()
        figure([panel(Series("a", [0, 1], [0, 1]))]).savefig(out, format="png")
        return out.getvalue()

    assert render() == render()
    assert render().startswith(b"\x89PNG")


def test_bars_run_from_top_to_bottom_with_their_text_at_the_end() -> None:
    fig = bars("title", "seconds", [Bar("first $a", 1.0, text="1 s"), Bar("second", 10.0, 1, "10 s")])
    ax = fig.axes[0]
    assert [bar.get_width() for bar in ax.patches] == [1.0, 10.0]
    assert ax.patches[0].get_y() > ax.patches[1].get_y()
    assert [text.get_text() for text in ax.texts] == ["1 s", "10 s"]
    assert ax.get_xscale() == "log"
    labels = dict(zip(ax.get_yticks(), ax.get_yticklabels(), strict=True))
    assert labels[1].get_text() == "first $a"
    assert not labels[1].get_parse_math()


def test_svg_has_ids_of_its_own_and_the_same_bytes() -> None:
    fig = figure([panel(Series("a < b", [0, 1], [0, 1], points=True))])
    text = svg(fig, "first")
    assert text == svg(figure([panel(Series("a < b", [0, 1], [0, 1], points=True))]), "first")
    assert text.startswith("<svg")
    assert "a &lt; b" in text
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert ids
    assert all(name.startswith("first-") for name in ids)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', text))
    assert used
    assert used <= set(ids)
