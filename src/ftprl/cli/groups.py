"""Groups of commands, each imported only when it is called."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class CommandGroup(click.Group):
    """A group that prints its help if no command is typed; commands in `modules` are imported when they are called."""

    def __init__(self, name: str, *, modules: Sequence[str] = (), **details: Any) -> None:
        super().__init__(name, invoke_without_command=True, callback=_show_help, **details)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return [*self.modules, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, from the module of its name; None if there is none."""
        if cmd_name not in self.modules:
            return self.commands.get(cmd_name)
        command: click.Command = getattr(import_module(f"ftprl.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that was typed, or suggest another one."""
        every = self.list_commands(ctx)
        if not args[0].startswith("-") and args[0] not in every:
            meant = f". To learn the file type ftprl train {args[0]}" if os.path.exists(args[0]) else ""
            ctx.fail(f"No such command {args[0]!r}{suggestion(args[0], every) or meant}")
        return super().resolve_command(ctx, args)


@click.pass_context
def _show_help(context: click.Context) -> None:
    """Print the help if no command was typed."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def suggestion(typed: str, known: Iterable[str]) -> str:
    """Return a sentence with the names that are close to what was typed, the closest first.

    >>> suggestion("--labl", ["--lower", "--label", "--bits"])
    '. Did you mean --label?'
    """
    close = get_close_matches(typed, list(known), cutoff=0.7)
    return f". Did you mean {' or '.join(close)}?" if close else ""
