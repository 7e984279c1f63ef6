"""Output that several commands share: pages and pictures, a live line, and a line about bad rows."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from ftprl.errors import InvalidInput
from ftprl.terminal import columns, cut

if TYPE_CHECKING:
    from ftprl.runlog.rows import Caution

REFRESH_SECONDS = 0.1  # between two updates of a live line
FORMS: tuple[Literal["html"], Literal["png"], Literal["svg"]] = ("html", "png", "svg")


def form_of(output: Path) -> Literal["html", "png", "svg"]:
    """Return the format of a page or picture, by the extension of its name."""
    for form in FORMS:
        if output.suffix.lower() == f".{form}":
            return form
    raise InvalidInput(f"--output needs a name ending in .html, .png or .svg, got {str(output)!r}; choose one of them.")


class StatusLine:
    """A line of a terminal that is rewritten again and again; nothing is written to a file or a pipe."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._shown, self._is_there = out, 0.0, False

    def show(self, text: str) -> None:
        """Write the line, unless it was written a moment ago."""
        now = time.monotonic()
        if self._out.isatty() and now - self._shown >= REFRESH_SECONDS:
            self._shown, self._is_there = now, True
            self._write(f"\r{cut(text, columns(self._out) - 1)}\x1b[K")

    def clear(self) -> None:
        """Remove the line, so that other output can be written."""
        if self._is_there:
            self._is_there = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Write text; a closed terminal does not stop the work."""
        with contextlib.suppress(OSError):  # a closed terminal does not stop the work
            self._out.write(text)
            self._out.flush()


def repeat(cautions: Iterable[Caution]) -> None:
    """Print the warnings of the runs that trained a model."""
    from ftprl.cli.spelling import as_typed

    for caution in cautions:
        print(f"ftprl: of the training of this model: {as_typed(caution.text, caution.options)}", file=sys.stderr)


def warn_of_bad_rows(count: int, first: str | None) -> None:
    """Print one line about rows that were left out."""
    if count:
        from ftprl.cli.spelling import as_typed
        from ftprl.data.files import shown

        reason = as_typed(shown(first or "")[:400], ("classes",))  # in a resumed run it comes from the checkpoint
        print(f"ftprl: left out {count} bad row{'s'[: count > 1]}; the first: {reason}", file=sys.stderr)
