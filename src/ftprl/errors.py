"""Exceptions of ftprl; each message is one line."""

from __future__ import annotations

import sys
import warnings


class FtprlError(Exception):
    """Base class of all exceptions that ftprl raises on purpose.

    `options` are the options that the message names. It spells them as in Python, `label=` or `bits=10`; the command
    line prints them as its user typed them, `--label` or `--bits 10`.

    >>> InvalidInput("label= needs the name of a column, got none; pass one.", option="label").options
    ('label',)
    """

    def __init__(self, message: str = "", *, option: str | tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.options = (option,) if isinstance(option, str) else option


class InvalidInput(FtprlError, ValueError):
    """An argument is not valid; the message has the value, what was expected and what to do."""


class BadFormat(FtprlError, ValueError):
    """A data file does not conform to its format."""


class BadModel(FtprlError, ValueError):
    """A model file is damaged or is not a model."""


class Unsupported(FtprlError):
    """This combination is not available; the message names one that is."""


class MissingExtra(FtprlError, ImportError):
    """An optional package is not installed; the message names the extra of ftprl that has it."""


class OutOfMemory(FtprlError, MemoryError):
    """A table, or a part of the data, does not fit into memory; the message has how much it needs."""


class FtprlWarning(UserWarning):
    """What the command line prints as a warning: a run went on, but its data or its model need a look."""


class Interrupted(KeyboardInterrupt):
    """A signal stopped a run; the message is one line on what was kept and what is lost.

    `signal` is its number, `rows` how many rows had been read. `checkpoint` is the file that has them, or None, and
    `lost` how many rows no file has.
    """

    def __init__(
        self,
        message: str = "",
        *,
        signal: int = 2,
        rows: int = 0,
        lost: int = 0,
        checkpoint: str | None = None,
        option: str | tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.signal, self.rows, self.lost, self.checkpoint = signal, rows, lost, checkpoint
        self.options = (option,) if isinstance(option, str) else option


def warn(text: str) -> None:
    """Warn at the line of the program that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ftprl":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, FtprlWarning, stacklevel=level)
