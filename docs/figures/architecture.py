"""Draw docs/figures/packages.svg and docs/figures/row.svg: the packages of ftprl, and the path of a row through them.

Run `python docs/figures/architecture.py` after a package was added or moved.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
BLUE, GREEN, GREY, INK = "#e3eafc", "#e2f3e6", "#f1f1f1", "#1c2333"


def box(x: float, y: float, width: float, height: float, title: str, lines: list[str], fill: str) -> str:
    """A rounded box with a bold title and smaller lines below it."""
    parts = [f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='8' fill='{fill}' stroke='#8a94a8'/>"]
    middle = x + width / 2
    top = y + (height - 17 * len(lines)) / 2 + 5
    parts.append(f"<text x='{middle}' y='{top}' font-size='14' font-weight='bold'>{escape(title)}</text>")
    for i, line in enumerate(lines, 1):
        parts.append(f"<text x='{middle}' y='{top + 17 * i}' font-size='12'>{escape(line)}</text>")
    return "".join(parts)


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='#5a6478' stroke-width='1.5' marker-end='url(#head)'/>"
    )


def note(x: float, y: float, text: str) -> str:
    return f"<text x='{x}' y='{y}' font-size='11' fill='#5a6478' font-style='italic'>{escape(text)}</text>"


def svg(width: int, height: int, parts: list[str]) -> str:
    head = (
        "<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        "<path d='M0 0 L8 4 L0 8 z' fill='#5a6478'/></marker></defs>"
    )
    head_tag = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {FONT} text-anchor='middle'>"
    background = f"<rect width='{width}' height='{height}' fill='white'/>"
    return head_tag + background + head + f"<g fill='{INK}'>" + "".join(parts) + "</g></svg>\n"


def packages() -> str:
    """The packages: each imports only packages below it."""
    parts = [box(20, 20, 860, 46, "cli", ["one module per command; thin calls into the library"], GREY)]
    sparse = [
        ("report, estimators, online", "page and figures of a run; scikit-learn's and River's interfaces"),
        ("training", "options, schedule, trainer, train, predict"),
        ("receipt, export", "ledger, certificate, verify, replay; scorers, ONNX"),
        ("linear, evaluation", "spec, Engine, mixture, model file; metrics, comparisons"),
        ("cluster, data", "workers of a cluster; sources: files, frames, matrices"),
        ("runlog, confidence", "events, reader, plots; confidence sequences"),
    ]
    for i, (name, what) in enumerate(sparse):
        parts.append(box(20, 96 + 62 * i, 420, 48, name, [what], BLUE))
    dense = [
        ("paper", "every statement of the paper as an experiment"),
        ("baselines, adversaries", "other algorithms, hard instances"),
        ("bandit, game, hindsight, learner", "rounds, plays, FTPRL"),
        ("schemes, bounds, posthoc", "how Q adapts; certificate; best bound in hindsight"),
        ("sets", "convex sets and their exact steps"),
        ("programs, solver", "quadratic, conic and semidefinite programs"),
    ]
    for i, (name, what) in enumerate(dense):
        parts.append(box(460, 96 + 62 * i, 420, 48, name, [what], GREEN))
    shared = ["one table of losses, options, positive semidefinite matrices, plots, input validation, atomic writes"]
    parts.append(box(20, 476, 860, 48, "losses, options, psd, draw, check, schema, atomic, errors", shared, GREY))
    what = ["readers (text to rows) · learners (kernels, mixture) · replay (verify) · support (memory, CPU dispatch)"]
    parts.append(box(20, 538, 860, 50, "_core (C++)", what, GREY))
    parts.append(note(230, 90, "sparse half: streams larger than memory"))
    parts.append(note(670, 90, "dense half: any convex set, exact steps"))
    return svg(900, 608, parts)


def row() -> str:
    """The path of a row from a file to a prediction, a loss and an updated model."""
    stages = [
        ("file", ["gzip, bz2, zstd", "or plain"], GREY),
        ("data.Source", ["chunks of whole", "rows, in threads"], BLUE),
        ("_core reader", ["parse, hash names", "to slots"], GREY),
        ("data.Batch", ["CSR rows, labels,", "weights"], BLUE),
        ("training.Trainer", ["cut where something", "is due (schedule)"], BLUE),
        ("linear.Engine", ["learn(batch): checks,", "drops scales"], BLUE),
        ("_core learner", ["per row: predict,", "loss, update"], GREY),
    ]
    parts = []
    for i, (name, lines, fill) in enumerate(stages):
        x = 10 + 158 * i
        parts.append(box(x, 60, 140, 78, name, lines, fill))
        if i:
            parts.append(arrow(x - 18, 99, x - 2, 99))
    outs = [
        (642, "events, checkpoint", ["progress for runlog,", "state of the run"], BLUE),
        (800, "model file", ["cells, mixture,", "how data is read"], BLUE),
        (958, "receipt", ["sums per coordinate", "for certify, verify"], BLUE),
    ]
    for x, name, lines, fill in outs:
        parts.append(box(x, 190, 140, 78, name, lines, fill))
        parts.append(arrow(x + 70, 138, x + 70, 188))
    parts.append(
        note(555, 40, "the numbers do not depend on how the stream is cut into batches, nor on the number of threads")
    )
    return svg(1110, 290, parts)


if __name__ == "__main__":
    (HERE / "packages.svg").write_text(packages())
    (HERE / "row.svg").write_text(row())
