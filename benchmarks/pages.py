"""Write docs/related.md and docs/real-data.md with their figures: `python -m benchmarks.pages [--quick]`."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ftprl import draw
from ftprl.baselines import Best
from ftprl.paper import clicks, portfolios, related
from ftprl.paper.base import Outcome
from ftprl.paper.expected import NODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES = Path("figures")
HOW = "Written by `python -m benchmarks.pages`; all numbers come from that run."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose first column is text and whose others are numbers."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def verdict(outcome: Outcome) -> list[str]:
    """The checks and what follows from them."""
    rows = [
        (c.what, f"{c.value:.4g}", f"{c.relation} {c.limit:.4g}", "met" if c.ok else "**not met**")
        for c in outcome.stated
    ]
    return [f"**{outcome.verdict.value.capitalize()}.**", "", *table(("", "found", "limit", ""), rows)]


def save(figure: Figure, name: str, folder: Path) -> str:
    """Write a figure as SVG, the same bytes for the same numbers, and give its line of Markdown."""
    import matplotlib

    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(folder / FIGURES / f"{name}.svg", metadata={"Date": None, "Creator": None})
    return f"({(FIGURES / name).as_posix()}.svg)"


def regret_bars(title: str, row: dict[str, Best]) -> Figure:
    """Regrets in ascending order; FTPRL, per-coordinate or matrix rates, and global rates in three colours."""

    def look(name: str) -> tuple[int, str]:
        return (0, "") if "FTPRL" in name else ((2, "//") if related.ALGORITHMS[name][1] else (4, ".."))

    order = sorted(row, key=lambda name: row[name].cost)
    items = [draw.Bar(n, row[n].cost, look(n)[0], f"{row[n].cost:.4g}", look(n)[1]) for n in order]
    return draw.bars(title, "regret at the best constant (log scale)", items)


def related_page(found: related.Findings, folder: Path) -> str:
    """Related work side by side."""
    outcome = related.judged(found)
    names = list(found.problems)
    rows = []
    for name in related.ALGORITHMS:
        cells = [cell(found.problems[p].get(name), min(b.cost for b in found.problems[p].values())) for p in names]
        if any(cells):
            rows.append((name, *(c or "-" for c in cells)))
    heavy, poor = "heavy-tailed features", "poor ellipsoid"
    growth = save(draw.figure(outcome.panels, width=8.5, height=5.0), "related-bad-class", folder)
    bars = [
        (
            p,
            save(
                regret_bars(f"{p} ({found.sizes[p]})", dict(found.problems[p])),
                "related-" + p.replace(" ", "-"),
                folder,
            ),
        )
        for p in (heavy, poor, "sparse target")
        if p in found.problems
    ]
    errors = [
        (name, f"{share:.3f}", f"{best.constant:.3g}")
        for name, (share, best) in sorted(found.errors.items(), key=lambda e: e[1][0])
    ]
    return "\n".join(
        [
            "# Related work, side by side",
            "",
            (
                "Every algorithm that the paper compares itself with, in `ftprl.baselines`, each at the best "
                "constant of a grid that is widened until the best lies inside (at most six times), and then "
                f"refined around the best. {HOW}"
            ),
            "",
            *verdict(outcome),
            "## Regret",
            "",
            (
                "Against the best fixed point; bold is the least. A dagger marks a best constant at the edge of its "
                "grid, a dash an algorithm that is not for the set (or needs a quadratic program a round in more than "
                "six dimensions)."
            ),
            "",
            *table(("", *(f"{p}, {found.sizes[p]}" for p in names)), rows),
            (
                "On the bad class the best that a global rate can do is not to move, and its regret is then "
                "T^(2/3)/2; with per-coordinate rates it grows no faster than sqrt T. On linear losses with a "
                "constant chosen in hindsight, the methods that can follow the leader do so, and those do not "
                "differ: these columns are shown, not judged. " + others(found)
            ),
            "",
            (
                "The perturbed leader's guarantee is for linear losses. Its expected play is run, exact on boxes and "
                f"the mean over {NODES:,} evenly spread points elsewhere, where that is right to about 1 in 100: no "
                "draw decides. Its noise is positive, so it begins near the lower corner of a box, which is where the "
                "bad class has its best point. Without a penalty FOBOS is gradient descent at the rate c/sqrt t; on "
                "the sparse target, under an l1 penalty in every round, FOBOS, dual averaging and FTPRL take the "
                "penalty as it is, the others its slope."
            ),
            "",
            f"![Growth of the regret on the bad class]{growth}",
            "",
            (
                "In the next figures FTPRL is blue and plain, per-coordinate or matrix rates green with slashes, a "
                "global rate (or none) yellow with dots."
            ),
            "",
            *(line for p, path in bars for line in (f"![Regrets: {p}]{path}", "")),
            "## Classification",
            "",
            (
                "Share of errors, each row predicted before it is learned, on 0/1 features of which the i-th "
                "comes with probability i^-1.2 and labels of which one in twenty is turned. Confidence-weighted "
                "learning and AROW, the closest in spirit, are for labels alone. (For confidence-weighted "
                "learning a constant c stands for the confidence 1/2 + c/(2 + 2c).)"
            ),
            "",
            *table(("", "errors", "best constant"), errors),
            "## What each of them is",
            "",
            *what(),
        ]
    )


def others(found: related.Findings) -> str:
    """The problems on which another than FTPRL has the least regret."""
    first = {problem: order[0] for problem, order in related.winners(found).items()}
    lost = [f"{name} ({problem})" for problem, name in first.items() if "FTPRL" not in name]
    return (
        f"FTPRL is not the best on {len(lost)} of {len(first)} problems; the best there: {', '.join(lost) or 'none'}."
    )


def what() -> list[str]:
    """The algorithms and their classes."""
    rows = [
        ("Zinkevich 2003", "`GradientDescent`", "projected at once"),
        ("Zinkevich 2004", "`LazyDescent`", "projected only to play: centred at u_t, not x_t"),
        ("Bartlett, Hazan, Rakhlin 2008", "`AdaptiveDescent`", "curvature is added as the gradients ask for it"),
        ("Streeter, McMahan 2010", "`PerCoordinateDescent`", "per-coordinate rates, on boxes"),
        ("Duchi, Hazan, Singer 2010", "`AdaGrad`, `AdaGradDual`", "both forms, diagonal and full"),
        ("Xiao 2009", "`DualAveraging`", "l1-RDA, plain and enhanced"),
        ("Duchi, Singer 2009", "`Fobos`", "l1 and l2 by their own exact step"),
        ("Shalev-Shwartz, Singer, Srebro 2007", "`Pegasos`", "rate 1/(l2 t); with the hinge a support vector machine"),
        ("Kalai, Vempala 2003", "`PerturbedLeader`", "fresh noise in every round; above, its expected play"),
        ("Kivinen, Warmuth 1997", "`ExponentiatedGradient`", "on the simplex"),
        ("Hazan, Agarwal, Kale 2007", "`OnlineNewtonStep`", "for exp-concave losses"),
        ("Agarwal, Hazan, Kale, Schapire 2006", "`NewtonLeader`", "its form for portfolios"),
        ("Dredze, Crammer, Pereira 2008", "`ConfidenceWeighted`", "both rules, diagonal"),
        ("Crammer, Kulesza, Dredze 2009", "`Arow`", "diagonal and full"),
    ]
    lines = ["| paper | `ftprl.baselines` | |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return [
        *lines,
        (
            "`LearnerClassifier` makes a classifier of any learner and a loss; `best_constant` finds the constant and "
            "says whether it lies at the edge of what was tried. Each update is checked against its own paper's, "
            "worked by hand, in `tests/unit/baselines/test_related.py` and `tests/unit/baselines/test_classifiers.py`."
        ),
        "",
    ]


def cell(best: Best | None, least: float) -> str:
    """A regret, bold when it is the least, with a dagger at an edge."""
    if best is None:
        return ""
    text = f"{best.cost:.4g}" + ("†" if best.at_edge else "")
    return f"**{text}**" if best.cost == least else text


def real_page(streams: list[clicks.Stream], markets: list[portfolios.Market], folder: Path) -> str:
    """The paper on real data."""
    told, traded = clicks.judged(streams), portfolios.judged(markets)
    tails, _ = told.panels
    main = next((s for s in streams if s.name == "criteo"), streams[0])
    pictures = {
        "tails": save(draw.figure([tails], width=7.5, height=4.6), "real-tails", folder),
        "losses": save(
            draw.figure([clicks.losses(main), clicks.tuning(main)], width=6.5, height=4.4), "real-losses", folder
        ),
        "wealth": save(draw.figure(traded.panels, width=7.5, height=4.8), "real-portfolios", folder),
    }
    return "\n".join(
        [
            "# The paper on real data",
            "",
            (
                "Click prediction and text are the paper's motivation; portfolios are a classic on the "
                "simplex. The files are third-party data and no part of the project: `FTPRL_DATA` names the folder "
                f"that has them, and without it the synthetic click log and a synthetic market are run. {HOW}"
            ),
            "",
            "## Clicks and words",
            "",
            *verdict(told),
            (
                "Progressive log loss (each row is predicted before it is learned), each rule at the best constant of "
                f"a grid that is widened until the best lies inside, on the box of half-width {clicks.RADIUS:g}. The "
                "last column needs no constant: it is what `ftprl train` does."
            ),
            "",
            *loss_table(streams),
            (
                "The bounds side by side, for FTPRL at the paper's c = 2. The regret is linearised, against the best "
                "corner of the box; B_R is what could be promised, and the last column is the best B_R that one "
                "number could have had in hindsight over the best that per-coordinate rates could have had, on the "
                "same gradients."
            ),
            "",
            *bound_table(streams),
            (
                "The same runs by their share of errors, each at the constant that is best for it, beside the two "
                "classifiers that the paper calls closest in spirit."
            ),
            "",
            *error_table(streams),
            f"![Heavy tails: how often the r-th most frequent feature occurs]{pictures['tails']}",
            "",
            f"![Progressive loss on {main.name}, and what the constant does]{pictures['losses']}",
            "",
            (
                "At its best constant FTPRL-Diag rarely meets the box, and then it is descent with a rate a "
                "coordinate, to the last digit shown: the two lines lie on each other. What differs is the receipt."
            ),
            "",
            "## Portfolios",
            "",
            *verdict(traded),
            *(line for m in markets for line in market_part(m)),
            f"![Log wealth behind the best constant-rebalanced portfolio]{pictures['wealth']}",
            "",
            (
                "Gradients are nearly equal from asset to asset, so centring them (`center=True`) is what makes "
                "FTPRL's bounds small here. A dagger marks a best constant at the edge of a grid that was let go "
                "on for two more steps, as a rule where the learner hardly moves from equal shares, which none of "
                "them beats by much; the Newton leader, which weighs second moments, is the exception. A small "
                "regret bound is a promise for the worst market, not for this one."
            ),
            "",
        ]
    )


def loss_table(streams: list[clicks.Stream]) -> list[str]:
    """Losses at the best constants, the least of a line in bold."""
    rows = []
    for s in streams:
        least = min(t.loss for t in s.tuned.values())
        cells = [
            f"**{t.loss:.4f}**" if f"{t.loss:.4f}" == f"{least:.4f}" else f"{t.loss:.4f}" for t in s.tuned.values()
        ]
        rows.append((f"{s.name}, {s.rows:,} rows, {s.features:,} features", *cells, f"{s.untuned:.4f}"))
    return table(("", *clicks.RULES, "eight scales, untuned"), rows)


def error_table(streams: list[clicks.Stream]) -> list[str]:
    """Shares of errors, the least of a line in bold."""
    rows = []
    for s in streams:
        least = min(s.errors.values())
        rows.append((s.name, *(f"**{e:.4f}**" if e == least else f"{e:.4f}" for e in s.errors.values())))
    return table(("", *streams[0].errors), rows)


def bound_table(streams: list[clicks.Stream]) -> list[str]:
    """Regret and bounds of both schemes at c = 2."""
    rows = []
    for s in streams:
        for rule in clicks.PAPER:
            t = s.tuned[rule]
            i, b = t.at(2.0), t.account.bounds
            numbers = [t.account.regret[i], b.bound[i], *(x[i] for x in (b.worst_case, b.post_hoc) if x is not None)]
            ratio = numbers[2] / numbers[3]
            gain = f"{s.gain:.2f}" if rule == "FTPRL-Diag" else ""
            rows.append((f"{s.name}: {rule}", *(f"{v:,.0f}" for v in numbers), f"{ratio:.3f}", gain))
    return table(("", "regret", "bound", "B_R", "best in hindsight", "ratio", "gain of per-coordinate rates"), rows)


def market_part(m: portfolios.Market) -> list[str]:
    """Wealth of every learner and the receipts of FTPRL's."""
    even = math.exp(float(np.log(m.R.mean(axis=1)).sum()))
    rows = []
    for who, p in sorted(m.played.items(), key=lambda item: -item[1].growth.sum()):
        edge = "†" if p.best.at_edge else ""
        pair = m.receipts.get(who)
        receipt = (
            (f"{pair[0].true_regret:.3f}", f"{pair[0].regret:.3f}", f"{pair[0].bound:.3f}", f"{pair[0].worst_case:.3f}")
            if pair
            else ("", "", "", "")
        )
        rows.append(
            (
                who,
                f"{math.exp(p.own.sum()):.4g}",
                f"{math.exp(p.growth.sum()):.4g}{edge}",
                f"{p.best.constant:.3g}",
                *receipt,
            )
        )
    head = ("", "wealth, untuned", "wealth, best constant", "constant", "true regret", "regret", "bound", "B_R")
    return [
        (
            f"**{m.name}**: {len(m.R):,} days, {m.R.shape[1]} assets. From 1, the best constant-rebalanced portfolio "
            f"grows to {math.exp(m.rebalanced.log_wealth):.4g} (to a proved gap of {m.rebalanced.gap:.1g} in its "
            f"logarithm), the best asset to {float(m.R.prod(axis=0).max()):.4g}, equal shares to {even:.4g}. Receipts "
            "are those of the untuned runs, in log wealth."
        ),
        "",
        *table(head, rows),
    ]


def main() -> None:
    """Run everything and write both pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the short runs")
    parser.add_argument("-o", "--output", type=Path, default=DOCS, help="the folder of the pages")
    parser.add_argument("--only", choices=("related", "real-data"), help="one of the two pages")
    args = parser.parse_args()

    def step(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    full = not args.quick
    args.output.mkdir(parents=True, exist_ok=True)
    if args.only != "real-data":
        (args.output / "related.md").write_text(related_page(related.study(full, step), args.output), "utf-8")
    if args.only != "related":
        page = real_page(clicks.streams(full, step), portfolios.markets(full, step), args.output)
        (args.output / "real-data.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
