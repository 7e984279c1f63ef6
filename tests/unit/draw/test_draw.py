"""Figures: the drawn values are the given ones."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from ftprl.draw import COLOURS, SCHEMES, Columns, Panel, Series, figure, svg
from ftprl.draw.numbers import short


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
    """Names from data are drawn literally, not parsed as formulas."""
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


def test_areas_stand_on_one_another_and_are_named_from_top_to_bottom() -> None:
    lines = [Series("low", [1, 10], [0.2, 0.6], shade=0), Series("high", [1, 10], [0.8, 0.4], shade=7)]
    ax = figure([Panel("", "rows", "weight", lines, log="x", stacked=True, ylim=(0.0, 1.0))]).axes[0]
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in ax.collections]
    assert tops == [0.6, 1.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["high", "low"]


def test_columns_may_be_faint_and_have_names_below() -> None:
    columns = [
        Columns("a", [0, 1], [2, 3]),
        Columns("b", [0, 1], [4, 5]),
        Columns("", [0], [1], faint=True),
    ]
    ax = figure([Panel("", "x", "y", columns, ticks=[(0.0, "$one"), (1.0, "two")])]).axes[0]
    assert [patch.get_height() for patch in ax.patches] == [2, 3, 4, 5, 1]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["$one", "two"]
    assert len(ax.get_legend().get_texts()) == 2, "what has no name is not in the legend"


def test_vertical_lines_stand_above_the_axes_and_do_not_run_into_one_another() -> None:
    vlines = [(10.0, "pass 2"), (10.5, "pass 3"), (50.0, "resumed"), (1e9, "far off")]
    ax = figure([Panel("", "x", "y", [Series("a", [1, 100], [1, 2])], log="x", vlines=vlines)]).axes[0]
    assert [text.get_text() for text in ax.texts] == ["pass 2", "resumed"]


def test_panels_in_rows() -> None:
    fig = figure([panel(Series("a", [0, 1], [0, 1]))] * 3, columns=2)
    assert sum(ax.axison for ax in fig.axes) == 3
    assert tuple(fig.get_size_inches()) == pytest.approx((14.0, 8.4))


def test_numbers_on_the_axes_have_units() -> None:
    ax = figure([Panel("", "x", "y", [Series("a", [1, 2_000_000], [0, 1500])], log="x")]).axes[0]
    ax.figure.canvas.draw()
    assert {"1", "1k", "1M"} <= {label.get_text() for label in ax.get_xticklabels()}
    assert "1k" in {label.get_text() for label in ax.get_yticklabels()}


NASTY = '<script>$a_1^{ id="x" #0072B2 & \x00\x1b\u202e\ud800漢'


def test_an_svg_follows_its_page() -> None:
    fig = figure([panel(Series(NASTY, [0, 1, 2], [0, 1, 3]), Series("b", [0, 1], [1, 2], shade=3))])
    text = svg(fig, "one", label=NASTY)
    root = ElementTree.fromstring(text)
    assert (root.get("role"), root.get("width")) == ("img", None)
    assert root.get("aria-label", "").startswith('<script>$a_1^{ id="x" #0072B2 & \\x00\\x1b\\u202e\\ud800')
    ids = [node.get("id", "one-") for node in root.iter()]
    assert all(name.startswith("one-") for name in ids)
    links = [node.get("href", "") for node in root.iter() if node.get("href")]
    assert links
    assert {link[1:] for link in links} <= set(ids)
    assert "var(--c0, #0072b2)" in text
    assert "var(--r3," in text
    assert "var(--ink," in text
    assert "<metadata" not in text
    shown = "".join(root.itertext())
    assert '<script>$a_1^{ id="x" #0072B2 & \\x00' in shown, "names are shown as they are"
    assert svg(figure([panel(Series("a", [0, 1], [0, 1]))]), "x") == svg(
        figure([panel(Series("a", [0, 1], [0, 1]))]), "x"
    )


def test_an_svg_of_its_own_has_both_schemes_inside() -> None:
    text = svg(figure([panel(Series("a", [0, 1], [0, 1]))]), label="a")
    root = ElementTree.fromstring(text)
    assert root.get("width")
    assert SCHEMES in text
    assert "prefers-color-scheme:dark" in SCHEMES


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (999, "999"),
        (1000, "1k"),
        (-2_500_000, "-2.5M"),
        (1e15, "1e15"),
        (1e-5, "1e-5"),
        (0.5, "0.5"),
        (float("nan"), "nan"),
    ],
)
def test_short_numbers(value: float, expected: str) -> None:
    assert short(value) == expected
