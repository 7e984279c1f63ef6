"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import errno
import itertools
import signal
import sys
from collections.abc import Callable
from importlib import import_module

from ftprl.cli.spelling import as_typed
from ftprl.errors import FtprlError

# Commands and groups of commands, each in the module of its name.
COMMANDS = (
    *("demo", "train", "predict", "convert", "inspect", "compact", "export", "evaluate", "compare"),
    *("certify", "verify", "report", "watch"),
)
GROUPS = ("generate", "paper")
_QUICK = ("train", "predict")  # their parameters are records of `ftprl.cli.declared`

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
    2: "bad input (one line on where, what was found and what to do)",
    3: "a partial check without a verdict (verify --rows)",
    4: "the model was written, but a checkpoint could not be (train)",
    130: "interrupted by Ctrl-C (train --checkpoint saves what was learned)",
    143: "ended by SIGTERM (train --checkpoint saves what was learned)",
}


class UsageError(Exception):
    """What was typed wrong."""


def _call(args: list[str]) -> int:
    """Call the command that was typed; the two that are called most often mostly without Typer."""
    if args and args[0] in _QUICK:
        from ftprl.cli.declared import arguments_of

        command: Callable[..., int | None] = getattr(import_module(f"ftprl.cli.{args[0]}"), args[0])
        arguments = arguments_of(command, args[1:])
        if arguments is not None:
            return command(**arguments) or 0
    from ftprl.cli.full import call

    return call(args)


def run(args: list[str] | None = None) -> int:
    """The exit code of one call: `EXIT_CODES`."""
    typed = sys.argv[1:] if args is None else args
    try:
        code = _call(typed)
        sys.stdout.flush()
    except FtprlError as error:
        return _refuse(_with_option(as_typed(str(error), error.options), typed))
    except BrokenPipeError:  # whoever read the output has seen enough
        return 141
    except MemoryError as error:
        needed = f": {error}" if str(error) else ""  # NumPy's message has how much it needed
        return _refuse(f"out of memory{needed}; raise the memory limit (ulimit -v), or use fewer --bits or --threads 1")
    except UsageError as error:
        return _refuse(str(error))
    except OSError as error:
        name = error.filename2 or error.filename or "standard output"
        remedy = "free some space" if error.errno == errno.ENOSPC else "check the path and its permissions"
        return _refuse(_with_option(f"{name}: {error.strerror}; {remedy}", typed))
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    return code


def _interrupted(interrupt: BaseException) -> int:
    """One line about what was kept and lost, and 128 plus the number of the signal."""
    message = as_typed(str(interrupt), getattr(interrupt, "options", ()))
    _print_error(message or "interrupted before the output was written")
    return 128 + int(getattr(interrupt, "signal", signal.SIGINT))


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
