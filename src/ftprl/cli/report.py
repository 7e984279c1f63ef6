"""`ftprl report`: the report of a run as an HTML page or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ftprl.cli import signals
from ftprl.cli.output import FORMS, form_of
from ftprl.cli.parameters import command, files, flag, option
from ftprl.errors import InvalidInput


@command
@files("runs", "Events of a run, as train --events wrote them; or of several", metavar="RUN...", type=Path)
@option("--output", "-o", help="File to write [default: RUN with the extension .html]", type=Path)
@option("--format", help="html, png or svg [default: inferred from the output]")
@flag("--quiet", "-q", help="Print errors only")
def report(runs: tuple[Path, ...], output: Path | None, format: str | None, quiet: bool) -> None:
    """Write a report of a run as an HTML page, PNG or SVG.

    It shows the loss beside the baseline, the receipt, the scales, the calibration and the speed.

    The HTML page is self-contained and needs no network. png and svg are the figures alone.

    ftprl train clicks.vw -o clicks.ftprl --events run.jsonl

    ftprl report run.jsonl -o run.html

    Several runs are compared in one page: ftprl report a.jsonl b.jsonl -o both.html
    """
    import sys

    from ftprl.atomic import check_apart, check_target, replacing
    from ftprl.data.files import shown
    from ftprl.runlog.events import read_events

    signals.work_begins()

    for run in runs:
        if run.is_dir():
            raise InvalidInput(f"report needs a file of events, got the folder {str(run)!r}; name a file in it.")
    form = _form(output, format)
    if len(runs) > 1 and form != "html":
        raise InvalidInput(f"--format {form} needs one run, got {len(runs)}; use html for several.")
    target = output if output is not None else runs[0].with_suffix(f".{form}")
    check_target("--output", target)
    check_apart({"--output": target}, {f"the events {run}": run for run in runs})
    logged = [(str(run), read_events(run)) for run in runs]
    for name, events in logged:
        if not events:
            raise InvalidInput(f"{name}: expected events, got none; wait for the run to start, or use ftprl watch.")
    from ftprl.report import page, page_of_several, picture

    (name, events), *others = logged
    if others:
        report = page_of_several(logged).encode("utf-8")
    else:
        report = page(events, name).encode("utf-8") if form == "html" else picture(events, form, name)
    with replacing(target) as out:
        out.write(report)
    if not quiet:
        print(f"wrote {shown(str(target))}", file=sys.stderr)


def _form(output: Path | None, format: str | None) -> Literal["html", "png", "svg"]:
    """Return the format asked for; raise InvalidInput if the extension of the output contradicts it."""
    if format is None:
        return "html" if output is None else form_of(output)
    if format not in FORMS:
        raise InvalidInput(f"--format needs html, png or svg, got {format!r}; pass html.")
    extension = "" if output is None else output.suffix.lstrip(".").lower()
    if extension in (*FORMS, "pdf") and extension != format:
        raise InvalidInput(
            f"--format {format} needs an output that does not end in .{extension}, got {str(output)!r}; drop one."
        )
    return FORMS[FORMS.index(format)]
