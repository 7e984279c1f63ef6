"""A certificate as text: the four questions with their answers, then the paper's numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ftprl.data.files import shown as shown_name
from ftprl.linear.totals import improvement
from ftprl.runlog import answers
from ftprl.runlog.answers import Answer
from ftprl.runlog.floor import LENGTHS, FloorCurve, below
from ftprl.terminal import columns

if TYPE_CHECKING:
    from ftprl.receipt.certificate import StreamCertificate

_MOST_GROUPS = 12
Row = tuple[str, float | None, bool, str]


class Answerable(Protocol):
    """What the questions are answered from: a certificate, or the numbers of a replay."""

    @property
    def loss_name(self) -> str: ...
    @property
    def baseline(self) -> Mapping[str, float | None]: ...
    @property
    def first_pass(self) -> Mapping[str, float | None] | None: ...
    @property
    def rates(self) -> Mapping[str, Any] | None: ...
    @property
    def curve(self) -> FloorCurve: ...
    @property
    def offset(self) -> str: ...
    @property
    def confidence(self) -> Mapping[str, Any] | None: ...
    @property
    def latest(self) -> Mapping[str, Any]: ...


def four_answers(c: Answerable) -> list[Answer]:
    """Return the questions about a run in their order, from the numbers of a receipt.

    `latest` has the `order` of the rows in the latest run, the losses of those learned last (`drawn`) if they are a
    random draw from more rows than may wait, and how the model predicted while it did not learn (`check`).
    """
    drawn, order, again = c.latest.get("drawn"), c.latest.get("order"), c.first_pass is not None
    first = drawn or c.first_pass or c.baseline
    rows = answers.rows_of(order, again=again, drawn=None if drawn is None else int(drawn["rows"]))
    about = "drawn" if drawn is not None else order
    latest = "latest" if order == "random" and c.latest.get("runs", 1) > 1 else order
    loss, weight = first.get("loss") or 0.0, first.get("weight") or 0.0
    mean = loss / weight if weight else 0.0
    base, least = first.get("baseline"), first.get("least") or 0.0
    gain = None if base is None else improvement(loss, base, least)
    return [
        answers.guessing(c.loss_name, mean, None if base is None or not weight else base / weight, gain, rows),
        answers.learning_rate(c.rates, c.baseline.get("weight") or 0.0, again=again, about=about),
        answers.fixed_weights(c.curve, c.offset, again=again, about=about),
        *([] if c.confidence is None else [answers.tomorrow(c.confidence, latest, c.latest.get("check"))]),
    ]


def certificate_text(c: StreamCertificate) -> str:
    """All of a certificate, for a terminal."""
    lines = [_rows(c), *answer_lines(_with_own_length(c, four_answers(c)))]
    return "\n".join([*lines, *_floor(c), *_details(c), *_named(c), *(f"  note: {caveat}" for caveat in c.caveats)])


def _rows(c: StreamCertificate) -> str:
    """How many rows were learned, and which of them are predictions."""
    first = c.first_pass
    if first is None:
        return f"{c.rounds} row{'s' if c.rounds != 1 else ''} learned, each predicted before it was learned"
    return f"{first['rows']} rows, each predicted before it was learned; {c.rounds} with those learned again later"


def _with_own_length(c: StreamCertificate, answers: list[Answer]) -> list[Answer]:
    """Add how long the compared weights are to the answer about fixed weights of some lengths."""
    if c.length is None or c.norm != "2":
        return answers
    own = f"{str(c.comparison).capitalize()} have length {c.length:.3g}."
    return [*answers[:2], answers[2]._replace(answer=f"{answers[2].answer} {own}"), *answers[3:]]


def answer_lines(answers: Sequence[Answer]) -> list[str]:
    """Questions and answers for a terminal."""
    return [line for question, answer in answers for line in (f"  {question}", *_indented(answer))]


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, columns() - 4, initial_indent="    ", subsequent_indent="    ")


def _floor(c: StreamCertificate) -> list[str]:
    """The floor at some lengths, beside the run's own loss."""
    curve = c.curve
    lengths = [a for a in (0.0, *_round_lengths(c)) if curve.least is None or curve.at(a) > curve.least]
    if not lengths or not curve.weight > 0.0:
        return []
    per = "row" if c.weight == c.rounds else "unit of weight"
    rows = [(a, f"{a:g}", f"{curve.at(a):.4g}", _beside(c, a)) for a in lengths]
    rows += [
        (
            p["length"],
            f"{p['length']:.3g}",
            f"{curve.at(p['length']):.4g}",
            f"{p['loss'] / c.weight:.4g} for the best of this length",
        )
        for p in c.points
    ]
    cells = [("length up to", "loss at least", ""), *(row[1:] for row in sorted(rows))]
    wide = [max(len(row[i]) for row in cells) for i in range(2)]
    own = f"{curve.mean:.4g}"
    run = "the loss of this run" if c.first_pass is None else "over all passes the loss"
    head = f"floor: a lower bound on the loss per {per} of all fixed weights up to a length; {run} is {own}"
    end = curve.informative_length
    limit = [] if end is None else [f"  for lengths above {below(end)} nothing is proved"]
    table = [f"    {a:>{wide[0]}}  {b:>{wide[1]}}  {note}".rstrip() for a, b, note in cells]
    words = textwrap.wrap(f"length: {LENGTHS[c.norm]}{_in_unit(c)}", columns() - 2)
    return [head, *table, *limit, *(f"  {line}" for line in words)]


def _in_unit(c: StreamCertificate) -> str:
    return f", divided by the unit of the labels, {c.floors.unit:.4g}" if c.floors.unit != 1.0 else ""


def _round_lengths(c: StreamCertificate) -> list[float]:
    named = list(c.curve.named_lengths())
    step = max(1, len(named) // 6)
    return named[::step][:8]


def _beside(c: StreamCertificate, length: float) -> str:
    curve = c.curve
    if curve.at(length) >= curve.mean:
        return "the run was better than all of these"
    if curve.least is None:  # such losses may be below 0: no share of them means anything
        return f"at most {curve.mean - curve.at(length):.4g} less than the run"
    return f"at most {100.0 * curve.better(length):.1f} % better than the run"


def _details(c: StreamCertificate) -> list[str]:
    """The numbers of the paper, in total and per row."""
    rows = [row for row in _table(c) if row[1] is not None]
    cells = [(name, f"{value:.6g}", _per_row(c, value) if in_loss else "", note) for name, value, in_loss, note in rows]
    cells.insert(0, ("", "total", "per row" if c.weight == c.rounds else "per weight", ""))
    width, total, mean = (max(len(row[i]) for row in cells) for i in range(3))
    leading = " (those of its leading scale)" if c.comparison.kind == "weights" and len(c.scales) > 1 else ""
    lines = [f"details: regret and its bounds, compared with {c.comparison}{leading}"]
    lines += [f"  {a:<{width}}  {b:>{total}}  {m:>{mean}}  {d}".rstrip() for a, b, m, d in cells]
    return lines + _vacuous(c)


def _named(c: StreamCertificate) -> list[str]:
    """What the columns or namespaces add to regret and bound, those with the largest share of the bound first."""
    groups = sorted(c.named, key=lambda group: (-abs(group["bound"]), group["name"]))
    if len(groups) < 3:  # the intercept and one other say nothing that is not above
        return []
    shown = groups[:_MOST_GROUPS]
    cells = [(shown_name(g["name"])[:40], f"{g['count']}", f"{g['regret']:.6g}", f"{g['bound']:.6g}") for g in shown]
    cells.insert(0, ("", "features", "regret", "bound"))
    wide = [max(len(row[i]) for row in cells) for i in range(4)]
    lines = [
        "by column or namespace: what its features add to regret and bound (without mixing and terms of whole rows)"
    ]
    lines += [f"  {a:<{wide[0]}}  {b:>{wide[1]}}  {r:>{wide[2]}}  {d:>{wide[3]}}" for a, b, r, d in cells]
    return lines + ([f"  and {len(groups) - len(shown)} others, in --json"] if len(groups) > len(shown) else [])


def _vacuous(c: StreamCertificate) -> list[str]:
    """One line in place of bounds that prove nothing."""
    if not is_vacuous(c, c.bound):
        return []
    length = c.curve.informative_length
    where = "" if not length else f"; use the floor above, up to length {below(length)}"
    return [f"  bounds are not shown: they are above the total loss, so they prove nothing{where}"]


def is_vacuous(c: StreamCertificate, bound: float | None) -> bool:
    """Whether a bound is above the total loss, of a loss that is never below 0."""
    return bound is not None and c.curve.least is not None and bound > c.loss >= 0.0


def _per_row(c: StreamCertificate, value: float | None) -> str:
    return f"{(value or 0.0) / (c.weight or 1.0):.4g}"


def _unless_vacuous(c: StreamCertificate, value: float | None) -> float | None:
    return None if is_vacuous(c, value) else value


def _table(c: StreamCertificate) -> list[Row]:
    """Label, number, whether it is a loss (and has a mean per row), explanation."""
    alone = f", both of scale {c.scale:g} alone" if len(c.scales) > 1 else ""
    better = "; below 1: better than fixed rates could guarantee" if (c.ratio or 1.0) < 1.0 else ""
    name, what = _excess_in_words(c)
    return [
        ("total loss", c.loss, True, _losses(c)),
        (
            "regret at most",
            c.regret,
            True,
            "total loss minus that of the fixed weights, linearised: an upper limit of the true regret",
        ),
        (
            "true regret",
            c.true_regret,
            True,
            "an upper limit too: the same without linearising, from the training data",
        ),
        (
            "tight bound",
            _unless_vacuous(c, c.tight),
            True,
            "regret plus how far the fixed weights are from the regularised optimum",
        ),
        ("bound", _unless_vacuous(c, c.bound), True, "proved from sums of this run: the regret cannot be larger"),
        ("theorem's bound", _unless_vacuous(c, c.theorem), True, "the larger bound that the paper states"),
        (name, c.excess or None, True, f"{what}; included in regret and bounds"),
        (
            "best one-rate bound",
            c.post_hoc["const"],
            True,
            "bound of the best single learning rate, chosen in hindsight",
        ),
        (
            "best per-coordinate bound",
            c.post_hoc["diagonal"],
            True,
            "bound of the best learning rate for each feature, chosen in hindsight",
        ),
        ("per-coordinate gain", c.gain, False, "best one-rate bound / best per-coordinate bound"),
        ("competitive ratio", c.ratio, False, f"theorem's bound / best per-coordinate bound{alone}{better}"),
    ]


def _losses(c: StreamCertificate) -> str:
    if c.first_pass is None:
        return "of the predictions, each made before its row was learned"
    return "over all passes; in later ones, of rows that had been learned before"


def _excess_in_words(c: StreamCertificate) -> tuple[str, str]:
    """A name for `excess`, and what it is."""
    if len(c.scales) > 1:
        return "mixing", f"loss of the mixture minus that of scale {c.scale:g} alone"
    return "new range", "loss from labels beyond the range of those before, to which predictions are cut"
