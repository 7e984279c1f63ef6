"""Options and arguments of the commands, and commands whose help lists the options in groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ftprl.errors import InvalidInput
from ftprl.options import BY_NAME, COMMON
from ftprl.options import Option as Entry
from ftprl.options.option import Bounds, Columns, Grams, Interactions, Scale
from ftprl.options.option import Path as AnyPath

_F = TypeVar("_F", bound=Callable[..., Any])
_METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}


# Paths, which the shell completes; a name may also be a pattern, a URI, or - for standard input.
_PATH: Any = click.Path(path_type=Path, readable=False)
_NAME: Any = click.Path(readable=False)


class Argument(click.Argument):
    """An argument with a help text."""

    def __init__(self, *args: Any, text: str, **details: Any) -> None:
        super().__init__(*args, **details)
        self.text = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the line of the help."""
        return self.make_metavar(ctx).strip("[]"), self.text + ("  [required]" if self.required else "")


class Option(click.Option):
    """An option of one command; `group` is the heading of its help."""

    def __init__(self, *args: Any, group: str | None = None, **details: Any) -> None:
        super().__init__(*args, **details)
        self.group = group


class TableOption(Option):
    """An option of the table of options, which converts the text that was typed, or passes None."""

    def __init__(self, names: Sequence[str]) -> None:
        (name,) = names
        self.entry = entry = BY_NAME[name]
        details: dict[str, Any] = {"metavar": entry.placeholder, "type": _click_type(entry)}
        if entry.is_switch:
            details = {"is_flag": True, "default": None}
        elif entry.type in _REPEATED:
            details["multiple"] = True
        spellings = [entry.switch or entry.typed, *([entry.short] if entry.short else [])]
        super().__init__(
            [name, *spellings], group=entry.group, required=name == "output", callback=self._converted, **details
        )

    def _converted(self, ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        """Convert the text that was typed."""
        if value is None or value == ():
            return None
        if self.entry.is_switch:
            return value != self.entry.typed.startswith("--no-")
        return _CONVERTERS.get(self.entry.type, _same)(self.entry, value)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help, built only when the help is printed."""
        self.help = self.entry.line(_spelled)
        return super().get_help_record(ctx)


class Command(click.Command):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, the most used options, then each group of options."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Common options": []}
        common = [name for name in COMMON if self.name == "train"]
        parameters = {str(parameter.name): parameter for parameter in self.get_params(ctx)}
        for name in sorted(parameters, key=lambda name: common.index(name) if name in common else len(common)):
            parameter = parameters[name]
            record = parameter.get_help_record(ctx)
            group = "common" if name in common else getattr(parameter, "group", None)
            title = "Options" if group is None else f"{group.capitalize()} options"
            if record is not None:
                sections.setdefault("Arguments" if isinstance(parameter, Argument) else title, []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def command(function: Callable[..., Any]) -> Command:
    """Turn a function into a command of its name; decorators below this one declare the parameters."""
    return click.command(function.__name__.strip("_"), cls=Command)(function)


def argument(name: str, text: str, type: Any = str, **details: Any) -> Callable[[_F], _F]:
    """Declare an argument of a command."""
    return click.argument(name, cls=Argument, text=text, type=_PATH if type is Path else type, **details)


def files(
    name: str = "data",
    text: str = "Files, folders, patterns, or - for standard input",
    type: Any = None,
    metavar: str | None = None,
) -> Callable[[_F], _F]:
    """Declare the last argument of a command: one or more files, as they were typed unless `type` is Path."""
    kind = _NAME if type is None else _PATH
    return click.argument(name, cls=Argument, text=text, type=kind, nargs=-1, required=True, metavar=metavar)


def option(*spellings: str, help: str, type: Any = None, **details: Any) -> Callable[[_F], _F]:
    """Declare an option of a command."""
    if not details.get("is_flag"):
        type = str if type is None else type
        details = {"metavar": _METAVARS[type], "type": _PATH if type is Path else type, **details}
    return click.option(*spellings, cls=Option, help=help, **details)


def flag(*spellings: str, help: str, **details: Any) -> Callable[[_F], _F]:
    """Declare a switch of a command."""
    return option(*spellings, help=help, is_flag=True, **details)


def from_table(*names: str) -> Callable[[_F], _F]:
    """Declare options of the table as options of a command, in this order."""

    def declare(function: _F) -> _F:
        """Add the options to a function."""
        for name in reversed(names):
            function = click.option(name, cls=TableOption)(function)
        return function

    return declare


def passed(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were typed."""
    return {name: value for name, value in values.items() if value is not None}


# ---- conversion of typed text to Python values ----


def _columns(entry: Entry, values: Sequence[str]) -> tuple[str, ...] | None:
    """Split columns at commas; a name with a comma is in double quotes.

    >>> _columns(BY_NAME["ignore"], ["a,b", '"c,d",e'])
    ('a', 'b', 'c,d', 'e')
    """
    import csv

    names: list[str] = []
    for value in values:
        try:
            names += [name for row in csv.reader([value], strict=True) for name in row if name]
        except csv.Error:
            raise InvalidInput(
                f"{entry.typed} needs columns with commas between them, got {value!r:.80}; put a name that"
                " has a comma into double quotes and double the quotes inside it, such as '\"a,b\",c'."
            ) from None
    return tuple(names) or None


def _numbers(entry: Entry, text: str) -> str | float | tuple[float, ...]:
    """Read a word such as `auto`, a number, or several numbers separated by commas."""
    if "," in text:
        return tuple(_number(entry, part) for part in text.split(","))
    return text if text.isalpha() else _number(entry, text)


def _number(entry: Entry, text: str) -> float:
    """Read a number; raise InvalidInput for other text."""
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{entry.typed} needs a number, got {text!r}; see ftprl train --help.") from None


def _same(entry: Entry, value: Any) -> Any:
    """Return what was typed; a separator may be typed as `\\\\t` or `tab`."""
    return "\t" if entry.name == "sep" and value in ("\\t", "tab") else value


_REPEATED = (Columns | None, Grams | None, Interactions | None, Bounds | None)
_CONVERTERS: dict[Any, Callable[[Entry, Any], Any]] = {
    Columns | None: _columns,
    Grams | None: _columns,
    Scale | None: _numbers,
}


def _click_type(entry: Entry) -> Any:
    """Return the type that Click needs for an option."""
    if entry.type == AnyPath | None:
        return _NAME
    return next((kind for kind in (int, float) if entry.type == kind | None), str)


def _spelled(name: str) -> str:
    """Return an option as it is typed, for a help text; the names of the losses are looked up only here."""
    if name != "losses":
        return BY_NAME[name].typed
    from ftprl.losses import LOSSES

    return ", ".join(LOSSES)
