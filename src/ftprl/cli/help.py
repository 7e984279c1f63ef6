"""The help of a command as plain text, its options in groups."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup


class Stopped(Exception):
    """An interrupt on its way through Typer, which would forget what it is about; `interrupt` is the error itself."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        super().__init__(str(interrupt))
        self.interrupt = interrupt


class ClosedPipe(Exception):
    """Whoever read the output has seen enough; Typer would make a failure of it."""


class AllCommands(TyperGroup):
    """The main command."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Stopped(interrupt) from None
        except BrokenPipeError:
            raise ClosedPipe from None


class GroupedCommand(TyperCommand):
    """A command whose help lists its options under the groups they belong to."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then each group in the order in which its first option was declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                group = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None)
                name, text = record
                sections.setdefault(_title(group), []).append((_in_capitals(name), _with_losses(text)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _in_capitals(name: str) -> str:
    """What stands for a value is written as INT, also where no word was chosen for it.

    >>> _in_capitals("--top <int>"), _in_capitals("--format <str>")
    ('--top INT', '--format TEXT')
    """
    return re.sub(r"<(\w+)>", lambda match: {"str": "TEXT"}.get(match[1], match[1].upper()), name)


def _title(group: str | None) -> str:
    return group if group == "Arguments" else "Options" if group is None else f"{group.capitalize()} options"


def _with_losses(text: str) -> str:
    """The names of the losses are looked up here, since importing them takes long."""
    if "{losses}" not in text:
        return text
    from ftprl.losses import LOSSES

    return text.replace("{losses}", ", ".join(LOSSES))
