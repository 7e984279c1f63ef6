"""Formats with one row per line and no columns: VW text and libsvm."""

from __future__ import annotations

from ftprl.data.labels import of_numbers
from ftprl.data.ngrams import NAMES
from ftprl.data.options import OF_TABLES, ReadingOptions
from ftprl.data.text import TextSource
from ftprl.data.text_settings import settings_of
from ftprl.errors import InvalidInput


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """VW text or libsvm files as a source."""
    why = f" needs a table, got the format {options.format}; drop it, or pass format=csv."
    options.refuse(OF_TABLES, why, option="format")
    if options.format == "libsvm":
        options.refuse(
            ("interactions", *NAMES), " is for features with names, got format libsvm; drop it.", option="format"
        )
    if not options.header:
        raise InvalidInput(f"header=False{why}", option=("header", "format"))
    return TextSource(files, settings_of(options, of_numbers(options.loss, options.positive_label)))
