"""SVG figures whose colours follow the light or dark scheme of the page."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Tree

from ftprl.draw.paint import GRID, INK, PAPER, printable
from ftprl.draw.shapes import COLOURS, RAMP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SPACE, _LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
_NAMES = {
    INK: "ink",
    GRID: "grid",
    PAPER: "paper",
    **{colour: f"c{i}" for i, colour in enumerate(COLOURS)},
    **{colour: f"r{i}" for i, colour in enumerate(RAMP)},
}
_LIGHT = {name: colour for colour, name in _NAMES.items()}
_DARK_COLOURS = ("#4DA3E0", "#FF8A3D", "#2EC79B", "#E79BC6", "#F2B53A", "#8FD3FA", "#F2F4F7")
_DARK_RAMP = ("#1C3A57", "#23507A", "#2C689E", "#3A82BF", "#5C9DD2", "#86B8E1", "#B0D2EE", "#DCECFA")
_DARK = dict(zip(_LIGHT, ("#D5DAE1", "#4A525D", "#191E24", *_DARK_COLOURS, *_DARK_RAMP), strict=True))
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def _set(colours: dict[str, str]) -> str:
    """Return custom CSS properties for the colours."""
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


# The colours of both schemes as custom properties: once per page, or inside a stand-alone file.
SCHEMES = (
    f":root{{{_set(_LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_set(_DARK)}}}}}"
    f"@media print{{:root{{{_set(_LIGHT)}}}}}"
)


def png(fig: Figure) -> bytes:
    """Return the figure as a PNG file."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that the font lacks
        fig.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()


def svg(fig: Figure, name: str | None = None, *, label: str = "") -> str:
    """Return the figure as one <svg> element, with equal bytes each time; `label` is its text for screen readers.

    With a `name` it is for embedding in a page: its ids begin with the name, and it follows the dark scheme of a page
    that has `SCHEMES` among its styles. Without one it is a stand-alone file.
    """
    from matplotlib import rc_context

    out = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ftprl"}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character that only the reader's font has
        fig.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    root = Tree.fromstring(out.getvalue())
    for part in list(root):
        if part.tag == f"{{{_SPACE}}}metadata":
            root.remove(part)
    for node in root.iter():
        _restyle(node, "" if name is None else f"{name}-")
    if label:
        root.set("role", "img")
        root.set("aria-label", printable(label))
    if name is None:
        style = Tree.Element(f"{{{_SPACE}}}style")
        style.text = SCHEMES
        root.insert(0, style)
        root.set("style", f"background: var(--paper, {_LIGHT['paper']})")  # a dark figure may be on a light page
    else:
        root.attrib.pop("width", None)
        root.attrib.pop("height", None)
    Tree.register_namespace("", _SPACE)
    return Tree.tostring(root, encoding="unicode")


def _restyle(node: Tree.Element, prefix: str) -> None:
    """Replace colours by named ones, set the reader's font, and make ids unique within the page."""
    for key in ("style", "fill", "stroke"):
        if key in node.attrib:
            node.set(key, _restyled(node.attrib[key]))
    if "id" in node.attrib:
        node.set("id", prefix + node.attrib["id"])
    if _LINK in node.attrib:
        node.set("href", "#" + prefix + node.attrib.pop(_LINK).removeprefix("#"))
    if "clip-path" in node.attrib:
        node.set("clip-path", node.attrib["clip-path"].replace("url(#", f"url(#{prefix}"))
    if node.tag == f"{{{_SPACE}}}text" and "fill" not in node.attrib.get("style", ""):
        node.set("style", f"{node.attrib.get('style', '')}; fill: var(--ink, {INK})")


def _restyled(style: str) -> str:
    """Return a style with the reader's font and named colours."""
    style = re.sub(r"(font: [^;]*?[\d.]+px) [^;]*", rf"\1 {FONT}", style)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: _named(m[0]), style)


def _named(colour: str) -> str:
    """Return a colour as a custom property, if it has a name."""
    name = _NAMES.get(colour.upper())
    return f"var(--{name}, {colour})" if name else colour
