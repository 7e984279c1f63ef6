"""What can go wrong, as types: every error of ftprl is one of these and fits on one line."""

from __future__ import annotations


class FtprlError(Exception):
    """The root of all errors that ftprl raises on purpose.

    `options` are the options that the message names. It spells them as in Python, `label=` or `bits=10`; the command
    line prints them as its user typed them, `--label` or `--bits 10`.

    >>> InvalidInput("label= needs the name of a column, got none; pass one.", option="label").options
    ('label',)
    """

    def __init__(self, message: str = "", *, option: str | tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.options = (option,) if isinstance(option, str) else option


class InvalidInput(FtprlError, ValueError):
    """An argument breaks a rule; the message has the value, the rule and the remedy."""


class BadFormat(FtprlError, ValueError):
    """A data file does not say what its format promises."""


class BadModel(FtprlError, ValueError):
    """A model file is damaged or is not a model."""


class Unsupported(FtprlError):
    """The mathematics (or this library) offers no such combination; the message names one that works."""
