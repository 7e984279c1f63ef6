"""The commands, and the only place where errors become a line and an exit code."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
import warnings
from typing import Any

import click

from ftprl.cli.groups import CommandGroup, suggestion
from ftprl.errors import FtprlError, FtprlWarning
from ftprl.version import __version__

COMMANDS = (
    *("demo", "train", "predict", "inspect", "compact", "export", "evaluate", "compare"),
    *("certify", "verify", "report", "watch", "generate", "paper"),
)
_COMPLETE = "_FTPRL_COMPLETE"  # set by the shell's completion

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


ftprl = click.version_option(__version__, message="ftprl %(version)s")(
    CommandGroup(
        "ftprl",
        modules=COMMANDS,
        help="Train linear models in one pass, without a learning rate to tune, and prove how good they are.",
        epilog="Exit codes: " + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
)


def _call(args: list[str]) -> int:
    """Call the command that was typed and return its exit code.

    Click's own `main` would turn an interrupt and a closed pipe into errors of its own.
    """
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(ftprl, {}, "ftprl", _COMPLETE, instruction)
    try:
        with ftprl.make_context("ftprl", list(args)) as context:
            return ftprl.invoke(context) or 0
    except click.exceptions.Exit as end:
        return end.exit_code


def run(args: list[str] | None = None) -> int:
    """Run one command line and return its exit code (see `EXIT_CODES`)."""
    typed = sys.argv[1:] if args is None else args
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", FtprlWarning)
            warnings.showwarning = _show_warning
            code = _call(typed)
        sys.stdout.flush()
    except FtprlError as error:
        from ftprl.cli.spelling import as_typed  # loads the table of options, which most calls do not need

        return _refuse(_with_option(as_typed(str(error), error.options), typed))
    except BrokenPipeError:  # the reader of the output has closed the pipe
        return 141
    except MemoryError as error:
        return _refuse(
            f"out of memory{_needed(error)}; raise the memory limit (ulimit -v), or use fewer --bits or --threads 1"
        )
    except click.ClickException as error:
        return _refuse(_usage(error, typed))
    except OSError as error:
        name = error.filename2 or error.filename or "standard output"
        remedy = "free some space" if error.errno == errno.ENOSPC else "check the path and its permissions"
        return _refuse(_with_option(f"{name}: {error.strerror}; {remedy}", typed))
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    return code


def _interrupted(interrupt: BaseException) -> int:
    """Print one line about the rows that were kept and lost; return 128 plus the number of the signal."""
    from ftprl.cli.spelling import as_typed

    message = as_typed(str(interrupt), getattr(interrupt, "options", ()))
    _print_error(message or "interrupted before the output was written")
    return 128 + int(getattr(interrupt, "signal", signal.SIGINT))


def _with_option(message: str, args: list[str]) -> str:
    """Return a message that begins with a file, with the option that named it, because there may be several files."""
    file, no_such_file, _ = message.partition(": no such file; ")
    if no_such_file and ("-q", file) in itertools.pairwise(args):
        from ftprl.cli.vw_options import of_pairs

        return of_pairs(file)
    for option, value in itertools.pairwise(args):
        if option == "--receipt" and (file == value or "files of one format" in message) and value.endswith(".json"):
            return f"--receipt takes no value, got {value!r}; train, then write it with ftprl certify MODEL -o {value}"
        if option in _OF_FILES and message.startswith(f"{value}: "):
            return f"{option} {message}"
    return message


def _usage(error: Any, args: list[str]) -> str:
    """Return the error of a wrong command line with the value, which Click may leave out, and a hint at the help."""
    message = " ".join(error.format_message().split()).rstrip(".")
    rule = getattr(getattr(getattr(error, "param", None), "entry", None), "rule", None)
    if isinstance(error, click.NoSuchOption):
        message = f"No such option: {error.option_name}" + _instead(error, args)
    names = getattr(getattr(error, "param", None), "opts", [])
    values = [value for option, value in itertools.pairwise(args) if option in names]
    if values and isinstance(error, click.MissingParameter):  # another option took its name, as in --cache -o model
        before = args[args.index(values[-1]) - 2 :]
        message = f"Option {before[0]!r} requires an argument, got {before[1]!r}"
    elif values and rule is not None:  # not a number, or not a whole one
        return f"{names[0]} needs {rule.wanted}, got {values[-1]!r:.60}; {rule.remedy}."
    elif values and repr(values[-1]) not in message:
        message += f", got {values[-1]!r}"
    path = " ".join(["ftprl", *(word for word in args[:1] if word in COMMANDS)])
    return f"{message}; see {path if error.ctx is None else error.ctx.command_path} --help"


def _needed(error: MemoryError) -> str:
    """Return how much memory was requested or, if C++ does not report it, how much the process had."""
    if str(error) not in ("", "std::bad_alloc"):
        return f": {error}"
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return f": more was needed than the {used / 1e9:.2f} GB in use"


def _instead(error: click.NoSuchOption, args: list[str]) -> str:
    """Suggest an option instead of one that does not exist; options of Vowpal Wabbit have their own suggestions."""
    from ftprl.cli.vw_options import hint, of_pairs

    text = ""
    if args[0].startswith("-") or args[0] in ("train", "predict", "evaluate", "inspect"):
        pairs = [word[2:] for word in args if word.startswith("-q") and error.option_name[1:] in word[2:]]
        text = f"; {of_pairs(pairs[0])}" if pairs else hint(error.option_name)
    return text or suggestion(error.option_name, error.possibilities or ())


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print a warning of the library in one line, and others as Python does."""
    if issubclass(category, FtprlWarning):
        _print_error(str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, *where[:2]))


def _refuse(message: str) -> int:
    """Print an error and return exit code 2."""
    _print_error(message)
    return 2


def _print_error(message: str) -> None:
    """Print an error as one printable line."""
    print(f"ftprl: {''.join(c if c.isprintable() else repr(c)[1:-1] for c in message)}", file=sys.stderr)
