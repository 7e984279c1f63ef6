"""The same summary as Markdown, for the documentation: a page and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ftprl.paper.base import Check
from ftprl.paper.page import behind, relation, save, shown, summary
from ftprl.paper.runner import Result

_FIGURES = Path("figures") / "paper"
_HEAD = """# The paper in code

Every statement of McMahan and Streeter (2010), and some beyond it, as an experiment: it runs, it is drawn, and a
verdict is given from numbers whose limits were set before they were measured. This page is written by
`ftprl paper run --quick --docs docs`; `ftprl paper run NAME` repeats any line of it, and `ftprl paper show NAME` says
what it is.

```console
$ ftprl paper list
$ ftprl paper show lemma-sum
$ ftprl paper run lemma-sum
lemma-sum  holds  ...
```
"""


def markdown_page(results: Sequence[Result]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, summary(results), "", *_table(results), *(line for r in results for line in _section(r))])


def write(results: Sequence[Result], folder: Path) -> None:
    """From results with pictures `paper.md`, and the figures in `figures/paper`."""
    (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
    for result in results:
        if result.picture is not None:
            save(folder / _FIGURES / f"{result.statement.name}.svg", result.picture.svg_file)
    save(folder / "paper.md", markdown_page(results).encode())


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _verdict(result: Result) -> str:
    return f"**{result.verdict.value}, not as expected**" if result.red else result.verdict.value


def _table(results: Sequence[Result]) -> list[str]:
    lines = ["| statement | where | function | test | figure | number | verdict |", "|---|---|---|---|---|---|---|"]
    for r in results:
        s = r.statement
        drawn = f"[figure]({(_FIGURES / s.name).as_posix()}.svg)" if r.picture is not None else ""
        code, tests = _code(s.code), _code(s.tests or "tests/paper/test_verdicts.py")
        lines.append(
            f"| [{s.name}](#{s.name}): {_plain(s.title)} | {_plain(s.place)} | {code} | {tests} | {drawn} |"
            f" {_plain(behind(r))} | {_verdict(r)} |"
        )
    return [*lines, ""]


def _section(result: Result) -> list[str]:
    s, out = result.statement, result.outcome
    lines = [f"## {s.name}", "", f"**{_plain(s.title)}** ({_plain(s.place)}): {_verdict(result)}.", ""]
    facts = {"Claim": s.claim, "Instance": s.instance, "Measured": s.measured, "Correction": s.correction}
    for name, text in facts.items():
        if text:
            lines += [f"*{name}.* {_plain(text)}", ""]
    lines += (
        _checks("as stated", out.stated)
        + _checks("as corrected", out.corrected)
        + _checks("what does hold", out.instead)
    )
    if result.picture is not None:
        lines += [f"![{_plain(s.title)}]({(_FIGURES / s.name).as_posix()}.svg)", ""]
    for text in out.numbers:
        lines += [_plain(text), ""]
    return lines


def _checks(heading: str, checks: Sequence[Check]) -> list[str]:
    if not checks:
        return []
    rows = [
        f"| {_plain(c.what)} | {shown(c.value)} | {relation(c)} {shown(c.limit)} | {'met' if c.ok else 'not met'} |"
        for c in checks
    ]
    return [f"| {heading} | found | limit | |", "|---|--:|--:|---|", *rows, ""]
