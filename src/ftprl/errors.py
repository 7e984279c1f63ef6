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
    """An invalid argument; the message has the value, the expected values and what to do."""


class BadFormat(FtprlError, ValueError):
    """A data file that does not conform to its format."""


class BadModel(FtprlError, ValueError):
    """A model file that is damaged, or a file that is no model."""


class Unsupported(FtprlError):
    """A combination that is not available; the message names one that is."""


class MissingExtra(FtprlError, ImportError):
    """An optional package that is not installed; the message names the extra of ftprl that installs it."""


class OutOfMemory(FtprlError, MemoryError):
    """A table, or a part of the data, that does not fit into memory; the message has how much it needs."""


class FtprlWarning(UserWarning):
    """A warning about data or a model that needs a look, although the run continues."""


class Interrupted(KeyboardInterrupt):
    """A run stopped by a signal; the message is one line about the rows that were kept and lost.

    `signal` is the number of the signal and `rows` the number of rows read. `checkpoint` is the file that contains
    them, or None, and `lost` the number of rows that no file contains.
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
