"""All commands as Typer reads them: their help, and whatever is typed that `ftprl.cli.declared` leaves to it."""

import itertools
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Annotated, Any, get_args

import typer

from ftprl.cli.app import COMMANDS, EXIT_CODES, GROUPS, UsageError
from ftprl.cli.declared import Declared
from ftprl.cli.help import AllCommands, ClosedPipe, GroupedCommand, Stopped
from ftprl.options import BY_NAME

# Typer carries its own copy of Click in newer versions: take the base of its errors from its public names.
_UsageErrors: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def call(args: list[str]) -> int:
    """Call a command; its exit code."""
    try:
        code = _app(args)(args=args, prog_name="ftprl", standalone_mode=False)
    except ClosedPipe:
        raise BrokenPipeError from None
    except _UsageErrors as error:
        raise UsageError(_usage(error, args)) from None
    except Stopped as stopped:
        raise stopped.interrupt from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == 130:  # how newer versions of Typer report an interrupt outside of a command
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _app(args: list[str]) -> typer.Typer:
    """The command that is called, or all of them where none is: each takes time to set up."""
    app = typer.Typer(
        name="ftprl",
        cls=AllCommands,
        help="Train linear models in one pass, without a learning rate to tune, and prove how good they are.",
        epilog="Exit codes: " + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(_root)
    wanted = args[:1] if args and args[0] in (*COMMANDS, *GROUPS) else (*COMMANDS, *GROUPS)
    for name in wanted:
        module = import_module(f"ftprl.cli.{name}")
        if name in COMMANDS:
            app.command(cls=GroupedCommand)(for_typer(getattr(module, name)))
        else:
            app.add_typer(module.app, name=name)
    return app


def for_typer(command: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of the command whose parameters are described as Typer wants them."""
    made = FunctionType(command.__code__, command.__globals__, command.__name__, command.__defaults__)
    made.__kwdefaults__, made.__doc__, made.__module__ = command.__kwdefaults__, command.__doc__, command.__module__
    made.__annotations__ = {name: _hint(hint) for name, hint in command.__annotations__.items()}
    return made


def _hint(hint: Any) -> Any:
    declared = getattr(hint, "__metadata__", (None,))[0]
    return Annotated[get_args(hint)[0], _info(declared)] if isinstance(declared, Declared) else hint


def _info(declared: Declared) -> Any:
    """What Typer needs to know of a parameter."""
    if declared.is_argument:
        return typer.Argument(**declared.details)
    if declared.name is None:
        return typer.Option(*declared.spellings, **declared.details)
    entry = BY_NAME[declared.name]
    return typer.Option(
        *declared.spellings,
        help=entry.line(_spelled),
        metavar=entry.metavar or None,
        show_default=False,
        rich_help_panel=entry.group,
    )


def _spelled(name: str) -> str:
    return "{losses}" if name == "losses" else BY_NAME[name].typed  # the list is filled in when the help is shown


def _version(value: bool) -> None:
    if value:
        from ftprl.version import __version__

        typer.echo(f"ftprl {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Train linear models in one pass, without a learning rate to tune, and prove how good they are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _usage(error: Any, args: list[str]) -> str:
    """What was typed wrong, with the value, which Typer may leave out, and where the right way is shown."""
    message = " ".join(error.format_message().split()).rstrip(".")
    names = getattr(getattr(error, "param", None), "opts", [])
    values = [b for a, b in itertools.pairwise(args) if a in names]
    if values and repr(values[-1]) not in message:
        message += f", got {values[-1]!r}"
    command = args[:1] if args[:1] and args[0] in (*COMMANDS, *GROUPS) else []
    if command and command[0] in GROUPS and "No such command" not in message:
        command += [word for word in args[1:2] if not word.startswith("-")]
    return f"{message}; see {' '.join(['ftprl', *command, '--help'])}"
