"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import errno
import itertools
import signal
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from ftprl.cli.help import AllCommands, ClosedPipe, GroupedCommand, Stopped
from ftprl.errors import FtprlError
from ftprl.options import as_typed

# Commands and groups of commands, each in the module of its name.
COMMANDS = (
    *("demo", "train", "predict", "convert", "inspect", "compact", "export", "evaluate", "compare"),
    *("certify", "verify", "report", "watch"),
)
GROUPS = ("generate", "paper")

# Typer carries its own copy of Click in newer versions: take the base of its errors from its public names.
_UsageErrors: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


_OF_FILES = (
    "--resume",
    "--model",
    "--against",
    "--exact",
    "--checkpoint",
    "--events",
    "--output",
    "-o",
    "--predictions",
)

# Shown by ftprl --help; docs/exit-codes.md explains them.
EXIT_CODES = {
    0: "done",
    1: "a receipt is refused, or a statement of the paper did not hold",
    2: "bad input: one line on where, what was found and what to do",
    3: "verify --rows: a partial check, no verdict",
    4: "train: finished, but a checkpoint could not be written",
    130: "interrupted by Ctrl-C; train --checkpoint saves what was learned",
    143: "ended by SIGTERM; train --checkpoint saves what was learned",
}


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
            app.command(cls=GroupedCommand)(getattr(module, name))
        else:
            app.add_typer(module.app, name=name)
    return app


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


def run(args: list[str] | None = None) -> int:
    """The exit code of one call: `EXIT_CODES`."""
    given = sys.argv[1:] if args is None else args
    try:
        code = _app(given)(args=given, prog_name="ftprl", standalone_mode=False)
        sys.stdout.flush()
    except FtprlError as error:
        return _refuse(_with_option(as_typed(str(error), error.options), given))
    except (BrokenPipeError, ClosedPipe):  # whoever read the output has seen enough
        return 141
    except MemoryError as error:
        needed = f": {error}" if str(error) else ""  # NumPy says how much it needed
        return _refuse(f"out of memory{needed}; raise the memory limit (ulimit -v), or use fewer --bits or --threads 1")
    except _UsageErrors as error:
        return _refuse(_usage(error, given))
    except OSError as error:
        name = error.filename2 or error.filename or "standard output"
        remedy = "free some space" if error.errno == errno.ENOSPC else "check the path and its permissions"
        return _refuse(_with_option(f"{name}: {error.strerror}; {remedy}", given))
    except Stopped as stopped:
        return _interrupted(stopped.interrupt)
    except (typer.Abort, KeyboardInterrupt) as interrupt:
        return _interrupted(interrupt)
    if code == 130:  # how newer versions of Typer report an interrupt outside of a command
        return _interrupted(KeyboardInterrupt())
    return code if isinstance(code, int) else 0


def _interrupted(interrupt: BaseException) -> int:
    """One line about what was kept and lost, and 128 plus the number of the signal."""
    message = as_typed(str(interrupt), getattr(interrupt, "options", ()))
    _print_error(message or "interrupted before the output was written")
    return 128 + int(getattr(interrupt, "signal", signal.SIGINT))


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


def _with_option(message: str, args: list[str]) -> str:
    """A message that begins with a file, with the option that named it: there may be several files."""
    for option, value in itertools.pairwise(args):
        if option in _OF_FILES and message.startswith(f"{value}: "):
            return f"{option} {message}"
    return message


def _refuse(message: str) -> int:
    _print_error(message)
    return 2


def _print_error(message: str) -> None:
    print(f"ftprl: {''.join(c if c.isprintable() else repr(c)[1:-1] for c in message)}", file=sys.stderr)
