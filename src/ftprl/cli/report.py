"""`ftprl report`: a run as a page or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ftprl.errors import InvalidInput

_FORMATS: tuple[Literal["html"], Literal["png"], Literal["svg"]] = ("html", "png", "svg")


def report(
    run: Annotated[Path, typer.Argument(help="Events of a run, as train --events wrote them")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write [default: RUN with the extension .html]")
    ] = None,
    format: Annotated[str | None, typer.Option(help="html, png or svg [default: inferred from the output]")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only")] = False,
) -> None:
    """Write one page with the loss, the receipt, the scales, the calibration and the speed of a run.

    It needs no network and nothing beside it. png and svg are the figures alone.

    ftprl train clicks.vw -o clicks.ftprl --events run.jsonl

    ftprl report run.jsonl -o run.html
    """
    import sys

    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.data.files import shown
    from ftprl.runlog.events import read

    if run.is_dir():
        raise InvalidInput(f"report needs a file of events, got the folder {str(run)!r}; name a file in it.")
    form = _form(output, format)
    target = output if output is not None else run.with_suffix(f".{form}")
    check_target("--output", target)
    check_apart({"--output": target}, {"the events": run})
    events = read(run)
    if not events:
        raise InvalidInput(f"{run}: expected events, got an empty file; wait for the run to begin, or use ftprl watch.")
    from ftprl.report import page, picture

    made = page(events, str(run)).encode("utf-8") if form == "html" else picture(events, form, str(run))
    with replacing(target) as out:
        out.write(made)
    if not quiet:
        print(f"wrote {shown(str(target))}", file=sys.stderr)


def _form(output: Path | None, format: str | None) -> Literal["html", "png", "svg"]:
    said = format if format is not None else "html" if output is None else output.suffix.lstrip(".").lower()
    named = None if output is None else output.suffix.lstrip(".").lower()
    if named in _FORMATS and said in _FORMATS and named != said:
        raise InvalidInput(
            f"--format {said} needs an output that does not end in .{named}, got {str(output)!r}; drop one."
        )
    for form in _FORMATS:
        if said == form:
            return form
    what = f"--format needs html, png or svg, got {format!r}"
    if format is None:
        what = f"--output needs a name ending in .html, .png or .svg, got {str(output)!r}"
    raise InvalidInput(f"{what}; or say --format html.")
