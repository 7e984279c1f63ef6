"""What several commands write: pages and pictures, and a line about bad rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from ftprl.errors import InvalidInput

FORMS: tuple[Literal["html"], Literal["png"], Literal["svg"]] = ("html", "png", "svg")


def form_of(output: Path) -> Literal["html", "png", "svg"]:
    """Return the form of a page or picture, by the extension of its name."""
    for form in FORMS:
        if output.suffix.lower() == f".{form}":
            return form
    raise InvalidInput(f"--output needs a name ending in .html, .png or .svg, got {str(output)!r}; choose one of them.")


def warn_of_bad_rows(count: int, first: str | None) -> None:
    """Print one line about rows that were left out."""
    if count:
        from ftprl.cli.spelling import as_typed
        from ftprl.data.files import shown

        reason = as_typed(shown(first or "")[:400], ("classes",))  # of a resumed run it is from the checkpoint
        print(f"ftprl: left out {count} bad row{'s'[: count > 1]}; the first: {reason}", file=sys.stderr)
