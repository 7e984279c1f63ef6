"""What can go wrong, as types: every error of ftprl is one of these and fits on one line."""

from __future__ import annotations


class FtprlError(Exception):
    """The root of all errors that ftprl raises on purpose."""


class InvalidInput(FtprlError, ValueError):
    """An argument breaks a rule; the message has the value, the rule and the remedy."""


class BadFormat(FtprlError, ValueError):
    """A data file does not say what its format promises."""


class BadModel(FtprlError, ValueError):
    """A model file is damaged or is not a model."""


class Unsupported(FtprlError):
    """The mathematics (or this library) offers no such combination; the message names one that works."""
