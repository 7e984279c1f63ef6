"""`ftprl paper`: list the statements of the paper, run them and judge them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ftprl.cli import signals
from ftprl.cli.groups import CommandGroup
from ftprl.cli.output import StatusLine
from ftprl.cli.parameters import argument, command, flag, option
from ftprl.errors import InvalidInput
from ftprl.terminal import wrapped

if TYPE_CHECKING:
    from ftprl.paper.base import Statement
    from ftprl.paper.runner import ExperimentProgress, Result

paper = CommandGroup("paper", help="Run the statements of the paper as experiments and check them.")


@paper.add_command
@command
def list_() -> None:
    """List the statements: name, place in the paper, title."""
    from ftprl.paper.registry import chosen

    every = chosen([])
    width, place = max(len(s.name) for s in every), max(len(s.place) for s in every)
    for s in every:
        print("\n".join(wrapped(f"{s.name:<{width}}  {s.place:<{place}}  {s.title}", 0, 6)))


@paper.add_command
@command
@argument("name", "Name, as `ftprl paper list` prints it")
def show(name: str) -> None:
    """Show what a statement claims and where its code is.

    It also prints how the statement is tested, and where its tests are.
    """
    from ftprl.paper.registry import chosen

    for number, statement in enumerate(chosen([name])):
        print("\n" * (number > 0), end="")
        _print_statement(statement)


def _print_statement(s: Statement) -> None:
    """Print a statement with its claim and correction, and where its code and tests are."""
    print(f"{s.title}\n{s.place}; expected: {s.expected.value}")
    facts = {"claim": s.claim, "instance": s.instance, "measured": s.measured, "correction": s.correction}
    for label, text in facts.items():
        if text:
            print(f"\n{label}\n{chr(10).join(wrapped(text, 2))}")
    _print_list("code", s.code, f"ftprl.paper.{s.name.replace('-', '_')}")
    _print_list("tests", s.tests, "tests/paper/test_verdicts.py")


def _print_list(heading: str, names: str, last: str) -> None:
    """Print a list of names under a heading."""
    print("\n  ".join([f"\n{heading}", *filter(None, names.split(", ")), last]))


@paper.add_command
@command
@argument("name", "Statements to run [default: all]", nargs=-1)
@flag(
    "--full/--quick",
    help="Use more rounds, dimensions and seeds: half an hour instead of minutes",
    default=False,
    show_default=True,
)
@option("--output", "-o", help="Folder for summary.html, results.json and the figures", type=Path)
@option("--docs", help="Folder for paper.md and figures/paper; needs all statements", type=Path)
@option("--jobs", "-j", help="Number of processes", type=int, default=2, show_default=True)
@flag("--json", "as_json", help="Print one line of JSON instead of a table")
def run(name: tuple[str, ...], full: bool, output: Path | None, docs: Path | None, jobs: int, as_json: bool) -> int:
    """Run experiments and judge them.

    Exit code 1: a verdict is not the expected one.
    """
    from ftprl.paper import markdown, page, runner
    from ftprl.paper.registry import chosen
    from ftprl.runlog.events import line

    signals.work_begins()
    if jobs < 1:
        raise InvalidInput(f"--jobs needs a number of at least 1, got {jobs}; pass one.")
    if docs is not None and name:
        raise InvalidInput(f"--docs needs all statements, got {', '.join(name)} alone; leave the names out.")
    for name_of_option, folder in (("--output", output), ("--docs", docs)):
        _check_folder(name_of_option, folder)
    statements = chosen(list(name))
    drawn = output is not None or docs is not None
    results = runner.run(statements, full=full, drawn=drawn, workers=jobs, on_progress=_printed(sys.stderr))
    if output is not None:
        page.write(results, output)
    if docs is not None:
        markdown.write(results, docs)
    if as_json:
        print(line({"results": [result.to_dict() for result in results]}))
    else:
        print("\n".join(_table(results)))
    return int(any(result.red for result in results))


def _check_folder(option: str, folder: Path | None) -> None:
    """Raise InvalidInput, before any work, for a path that cannot be a folder."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{option} needs a folder, got the file {str(folder)!r}; name another.")
    folder.mkdir(parents=True, exist_ok=True)


def _table(results: Sequence[Result]) -> list[str]:
    """Return the table of verdicts."""
    from ftprl.paper.base import Verdict
    from ftprl.paper.page import summary

    width = max(len(r.statement.name) for r in results)
    lines = []
    for r in results:
        o, remark = r.outcome, f" ({r.outcome.remark})" if r.outcome.remark else ""
        head = f"{r.statement.name:<{width}}  {r.verdict.value}"
        if r.red:
            lines.append(f"{head}  RED: {r.error or 'expected ' + r.statement.expected.value}{remark}")
            lines += [f"    {check}" for check in (*o.stated, *o.corrected, *o.instead) if not check.ok]
        elif r.verdict is Verdict.HOLDS:
            lines.append(f"{head}  {r.number}{remark}")
        else:
            mended = ("as corrected", o.corrected) if o.corrected else ("instead", o.instead)
            lines.append(f"{head}{remark}")
            lines.append(f"    as stated: {r.number}")
            lines += [f"    {mended[0]}: {check}" for check in mended[1][:1]]
    return [*(part for line in lines for part in wrapped(line, 0, 6)), "", *wrapped(summary(results))]


def _printed(out: TextIO) -> Callable[[ExperimentProgress], None]:
    """Return a listener that prints one line per verdict, and on a terminal also a live line."""
    status = StatusLine(out)

    def show(progress: ExperimentProgress) -> None:
        """Print the progress of an experiment."""
        head = f"[{progress.done:>2}/{progress.total}] {progress.name}: {progress.text}"
        if progress.result is None:
            status.show(head)
            return
        status.clear()
        red = " RED" if progress.result.red else ""
        print(f"{head}{red} ({progress.result.seconds:.1f} s)", file=out, flush=True)

    return show
