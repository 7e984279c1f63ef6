"""The summary as one self-contained HTML page: a table of verdicts, then each statement with its figure."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ftprl.atomic import replacing
from ftprl.paper.base import Check, Verdict
from ftprl.paper.runner import Result

_PLURAL = {
    Verdict.HOLDS: "hold",
    Verdict.CORRECTED: "hold with a correction",
    Verdict.FAILS: "do not hold as stated",
}
_CSS_CLASSES = {Verdict.HOLDS: "holds", Verdict.CORRECTED: "corrected", Verdict.FAILS: "fails"}

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5a5a5a; --line: #d4d4d4; --back: #ffffff; --bad: #b3261e;
  --good: #00674b; --amended: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #a8a8a8; --line: #454545; --back: #17181a;
  --bad: #ff8a80; --good: #6fd3ae; --amended: #ffca6a; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 64rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.25; } h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; }
a { color: inherit; } code { font-size: .9em; overflow-wrap: anywhere; }
.place, .soft { color: var(--soft); }
.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: var(--good); } .corrected { color: var(--amended); } .fails { color: var(--amended); }
.red { color: var(--bad); } tr.red td { background: color-mix(in srgb, var(--bad) 12%, transparent); }
section.red { border-left: .4rem solid var(--bad); padding-left: 1rem; }
figure { margin: 1.2rem 0; background: #fff; border: 1px solid var(--line); padding: .5rem; }
figure svg { width: 100%; max-width: 58rem; height: auto; display: block; margin: auto; }
figure.single svg { max-width: 40rem; }
@media print { body { max-width: none; font-size: 11pt; } section { break-inside: avoid; } }
"""


def html_page(results: Sequence[Result]) -> str:
    """Return the whole page."""
    title = "The paper, run and judged"
    body = "\n".join([f"<h1>{title}</h1>", f"<p>{summary(results)}</p>", _table(results), *map(_section, results)])
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{title}</title><style>{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def summary(results: Sequence[Result]) -> str:
    """Return the number of statements with each verdict, in a sentence."""
    counts = Counter(result.verdict for result in results)
    parts = [f"{n} {v.value if n == 1 else _PLURAL[v]}" for v in Verdict if (n := counts[v])]
    red = sum(result.red for result in results)
    judged = f"{len(results)} statement{'s' if len(results) != 1 else ''}: {', '.join(parts)}."
    if red:
        return f"{judged} {red} {'is' if red == 1 else 'are'} not as expected."
    return f"{judged} Every verdict is the expected one."


def relation(check: Check) -> str:
    """Return the sign of a relation as printed in books."""
    return "≤" if check.relation == "<=" else "≥"


def shown(value: float) -> str:
    """Return five significant digits.

    >>> shown(1 / 3), shown(1e-12)
    ('0.33333', '1e-12')
    """
    return f"{value:.5g}"


def behind(result: Result) -> str:
    """Return the number that decided the verdict, with its limit."""
    c = result.number
    if c is None:
        return result.error
    remark = f" ({result.outcome.remark})" if result.outcome.remark else ""
    return f"{c.what}: {shown(c.value)}, limit {relation(c)} {shown(c.limit)}{remark}"


def _verdict(result: Result) -> str:
    """Return the verdict as HTML, marked if it is not the expected one."""
    kind = "red" if result.red else _CSS_CLASSES[result.verdict]
    note = f" (expected: {result.statement.expected.value})" if result.red else ""
    return f'<span class="verdict {kind}">{result.verdict.value}{note}</span>'


def _table(results: Sequence[Result]) -> str:
    """Return the table of verdicts."""
    rows = [
        f"<tr{' class=red' if r.red else ''}>"
        f'<td><a href="#{r.statement.name}">{html.escape(r.statement.title)}</a></td>'
        f'<td class="place">{html.escape(r.statement.place)}</td><td>{_verdict(r)}</td>'
        f'<td class="soft">{html.escape(behind(r))}</td></tr>'
        for r in results
    ]
    head = "<tr><th>statement</th><th>where</th><th>verdict</th><th>the number behind it</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _section(result: Result) -> str:
    """Return the section of one statement."""
    s, out = result.statement, result.outcome
    facts = [("Claim", s.claim), ("Instance", s.instance), ("Measured", s.measured), ("Correction", s.correction)]
    definitions = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in facts if text)
    definitions += "".join(
        f"<dt>{name}</dt><dd><code>{html.escape(text)}</code></dd>"
        for name, text in (("Code", s.code), ("Tests", s.tests))
        if text
    )
    broken = f'<p class="red">The experiment broke: {html.escape(result.error)}</p>' if result.error else ""
    checks = (
        _checks("as stated", out.stated)
        + _checks("as corrected", out.corrected)
        + _checks("what does hold", out.instead)
    )
    numbers = "".join(f"<p>{html.escape(text)}</p>" for text in out.numbers)
    single = ' class="single"' if len(out.panels) == 1 else ""
    picture = "" if result.picture is None else f"<figure{single}>{result.picture.svg}</figure>"
    return (
        f'<section id="{s.name}"{" class=red" if result.red else ""}><h2>{html.escape(s.title)}</h2>'
        f'<p><span class="place">{html.escape(s.place)}, <code>{s.name}</code></span> · {_verdict(result)}</p>'
        f"<dl>{definitions}</dl>{broken}<table>{checks}</table>{picture}{numbers}"
        f'<p class="soft">{result.seconds:.1f} s, {"full" if result.full else "quick"}</p></section>'
    )


def _checks(heading: str, checks: Sequence[Check]) -> str:
    """Return a table of checks under a heading."""
    if not checks:
        return ""
    rows = "".join(
        f'<tr{"" if c.ok else " class=unmet"}><td>{html.escape(c.what)}</td><td class="number">{shown(c.value)}</td>'
        f'<td class="number">{relation(c)} {shown(c.limit)}</td><td>{"met" if c.ok else "not met"}</td></tr>'
        for c in checks
    )
    head = f'<th>{heading}</th><th class="number">measured</th><th class="number">limit</th><th></th>'
    return f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"


def write(results: Sequence[Result], folder: Path) -> None:
    """Write `summary.html`, `results.json`, and each figure as SVG and PNG; the results need pictures."""
    from ftprl.runlog.events import line

    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        if result.picture is not None:
            save(folder / f"{result.statement.name}.svg", result.picture.svg_file)
            save(folder / f"{result.statement.name}.png", result.picture.png)
    values = json.loads(line({"results": [result.to_dict() for result in results]}))
    save(folder / "results.json", (json.dumps(values, indent=1) + "\n").encode())
    save(folder / "summary.html", html_page(results).encode())


def save(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as out:
        out.write(content)
