"""From what was typed to keywords of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ftprl.cli.declared import option
from ftprl.errors import InvalidInput
from ftprl.options import BY_NAME

__all__ = ["FORMS", "budget", "form_of", "keywords", "option", "warn_of_bad_rows"]

FORMS: tuple[Literal["html"], Literal["png"], Literal["svg"]] = ("html", "png", "svg")


def _columns(option: str, values: Sequence[str] | None) -> tuple[str, ...] | None:
    """Columns named one by one or with commas between them; a name with a comma is in double quotes.

    >>> _columns("ignore", ["a,b", '"c,d",e'])
    ('a', 'b', 'c,d', 'e')
    """
    if not values:
        return None
    import csv

    names: list[str] = []
    for value in values:
        try:
            names += [name for row in csv.reader([value], strict=True) for name in row if name]
        except csv.Error:
            raise InvalidInput(
                f"{BY_NAME[option].typed} needs columns with commas between them, got {value!r:.80}; put a name that"
                " has a comma into double quotes and double the quotes inside it, such as '\"a,b\",c'."
            ) from None
    return tuple(names) or None


def _character(text: str | None) -> str | None:
    """A separator as it is typed in a shell: `\\\\t` and `tab` are a tab."""
    return "\t" if text in ("\\t", "tab") else text


def _scale(text: str | None) -> str | float | tuple[float, ...] | None:
    """`auto`, a number, or several with commas between them."""
    if text is None or "," not in text:
        return _number_or_word("--scale", text)
    return tuple(_number("--scale", part) for part in text.split(","))


def _share(text: str | None) -> str | float | None:
    return _number_or_word("--share", text)


def _number_or_word(name: str, text: str | None) -> str | float | None:
    return text if text is None or text.isalpha() else _number(name, text)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name} needs a number, got {text!r}; see ftprl train --help.") from None


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "scale": _scale,
    "share": _share,
    "sep": _character,
    **{
        name: partial(_columns, name)
        for name in (
            *("ignore", "categorical", "numeric", "text", "boolean", "date", "bucket"),
            *("ngrams", "skips", "char_ngrams"),
        )
    },
}


def keywords(typed: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of Python for the parameters of a command; None for an option that was not used.

    >>> keywords({"no_header": True, "sep": "tab", "ignore": ["a,b"], "float64": False, "receipt": None})
    {'header': False, 'sep': '\\t', 'ignore': ('a', 'b'), 'float64': None, 'receipt': None}
    """
    passed: dict[str, Any] = {}
    for parameter, value in typed.items():
        name = parameter if parameter in BY_NAME else parameter.removeprefix("no_")
        entry = BY_NAME.get(name)
        if entry is not None and entry.switch is not None and isinstance(value, bool) and "/" not in entry.switch:
            passed[name] = (not parameter.startswith("no_")) if value else None
        else:
            passed[name] = _PARSERS.get(name, lambda same: same)(value)
    return passed


def budget(names: str | None, *, off: bool) -> str | int | None:
    """The budget for names; `off` is whether none are to be kept."""
    if off and names is not None:
        raise InvalidInput(f"--no-names stores no names, got --names {names} as well; keep one.")
    return 0 if off else names


def form_of(output: Path) -> Literal["html", "png", "svg"]:
    """The form of a page or picture, by the extension of its name."""
    for form in FORMS:
        if output.suffix.lower() == f".{form}":
            return form
    raise InvalidInput(f"--output needs a name ending in .html, .png or .svg, got {str(output)!r}; choose one of them.")


def warn_of_bad_rows(count: int, first: str | None) -> None:
    """Print one line about rows that were left out."""
    if count:
        from ftprl.cli.spelling import as_typed
        from ftprl.data.files import shown

        reason = as_typed(shown(first or "")[:400], ("classes",))  # of a resumed run it is from the checkpoint
        print(f"ftprl: left out {count} bad row{'s'[: count > 1]}; the first: {reason}", file=sys.stderr)
