"""Four questions about a run, each answered in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from ftprl.losses import LOSSES
from ftprl.runlog.floor import FloorCurve, headline
from ftprl.runlog.yardstick import deviances, root_mean_square

GUESS = {
    "base_rate": "the base rate so far",
    "mean": "the mean so far",
    "log_mean": "the mean so far",
    "median": "the running median",
    "quantile": "the running quantile",
    "majority": "the more frequent class",
    "class_rates": "the share of each class so far",
}
_SAME = 5e-5  # a share of the loss that would be shown as 0.00 %
_LITTLE = 0.01
_HARDLY = 0.05  # an improvement in percent that would be shown as 0.0 %


@final
class Answer(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


def rows_of(order: str | None, *, again: bool = False, drawn: int | None = None) -> str:
    """Return a phrase for the rows that a loss is about.

    `again` means that later passes followed, so the loss is about the first pass; `drawn` is the number of rows that
    were drawn at random and learned last.

    >>> rows_of("given"), rows_of("random", drawn=358)
    (' while the model went on learning', ' of the 358 that were drawn at random from all and learned last')
    """
    if drawn is not None:
        return f" of the {drawn:,} that were drawn at random from all and learned last"
    return (" in the first pass" if again else "") + (" while the model went on learning" if order == "given" else "")


def guessing(loss: str, mean: float, baseline: float | None, improvement: float | None, rows: str = "") -> Answer:
    """Answer whether the predictions are better than the baseline's, which uses only the labels before each row.

    `rows` is a phrase for the rows that the numbers are about, as `rows_of` returns it.

    >>> guessing("logistic", 0.45, 0.5, 10.0).answer
    'Yes: a log loss of 0.4500 per row, 10.0 % better than guessing the base rate so far, 0.5000.'
    """
    known = LOSSES.get(loss)
    what = "the labels before each row" if known is None else GUESS[known.baseline]
    unit = "loss" if known is None else known.unit.removesuffix(" (nats)")
    question = "Better than guessing?"
    if baseline is None or not math.isfinite(baseline) or improvement is None or not math.isfinite(improvement):
        return Answer(
            question, f"Not known: the {unit} was {_short(mean)} per row{rows}, and no baseline was recorded."
        )
    root = known is not None and known.rmse
    beside = deviances(mean, baseline, improvement) if known is not None and known.has_deviance else None
    own, other = (_with_root(value, root) for value in (mean, baseline))
    if beside is not None:
        own, other = (f"{_short(a)} (deviance {_short(b)})" for a, b in zip((mean, baseline), beside, strict=True))
    if improvement <= 0.0:
        return Answer(question, f"No: a{_n(unit)} {unit} of {own} per row{rows}; guessing {what} has {other}.")
    if improvement < _HARDLY:
        return Answer(question, f"Hardly: a{_n(unit)} {unit} of {own} per row{rows}; guessing {what} has {other}.")
    text = f"Yes: a{_n(unit)} {unit} of {own} per row{rows}, {improvement:.1f} % better than guessing {what}, {other}."
    return Answer(question, text)


def _n(word: str) -> str:
    """Return "n" before a vowel, to complete the article "a"."""
    return "n" if word[:1].lower() in "aeiou" else ""


def _with_root(value: float, root: bool) -> str:
    """Return a mean loss, with its RMSE if `root`."""
    return f"{_short(value)} (RMSE {_short(root_mean_square(value))})" if root else _short(value)


def learning_rate(
    rates: Mapping[str, Any] | None, weight: float, *, again: bool = False, about: str | None = None
) -> Answer:
    """Answer whether a single learning rate would have had less loss than the mixture, with the guarantee for it.

    Question and answer are about the rates that were kept to the end. The numbers are over all passes; `again` is True
    if there were several.

    >>> text = learning_rate({"scale": 0.2, "loss": 8.0, "mixture": 8.0, "dropped_row": 16}, 20.0).answer
    >>> print(text[:27], "...", text[-63:])
    No, of those that were kept ... Nothing is known of the scales that were dropped, after row 16.
    """
    question = "Would another learning rate have been better?"
    if rates is None or not weight > 0.0:
        return Answer(question, "Not measured: the run had a single one. Train without --scale to compare eight.")
    saved, mixture = (rates["mixture"] - rates["loss"]) / weight, rates["mixture"] / weight
    share = saved / abs(mixture) if mixture else 0.0
    row, kept, of_those = int(rates.get("dropped_row") or 0), "", ""
    if row or rates.get("dropped"):
        kept, of_those = " that was kept", ", of those that were kept"
    best = f"the best single one (scale {rates['scale']:g}) had a loss of {_short(rates['loss'] / weight)} per row"
    # A loss that may be negative, such as Poisson's, has no meaningful shares.
    by = f"{100.0 * abs(share):.2f} %" if mixture >= 0.0 else _short(abs(saved))
    if abs(share) < _SAME:
        text = f"No{of_those}: {best}, the same as the mixture of all."
    elif share < 0.0:
        text = f"No{of_those}: {best}, {by} more than the mixture of all."
    else:
        text = f"{'Hardly' if share < _LITTLE else 'Yes'}{of_those}: {best}, {by} less than the mixture of all."
    promised = rates.get("guaranteed")
    if promised is not None:
        most = _small(promised / weight)
        text += f" Guaranteed in advance: the mixture is at most {most} per row above the best scale{kept}."
    if kept:
        text += f" Nothing is known of the scales that were dropped{f', after row {row:,}' if row else ''}."
    if again or about == "drawn":
        text += f" These losses are those of all {'passes' if again else 'rows'}."
    return Answer(question, text)


def fixed_weights(
    curve: FloorCurve | None, offset: str = "", *, again: bool = False, about: str | None = None
) -> Answer:
    """Answer whether weights known from the first row on would have been better; `offset` is what they are added to.

    The curve is over all passes; `again` is True if there were several. `about` is "given" if the rows were learned in
    the order of the data, and "drawn" if most of them were: then the answer is about a model that goes on learning.
    """
    question = "Would other fixed weights have been better?"
    if curve is None:
        return Answer(question, "Not known: the run kept no receipt. Train with --receipt.")
    text = headline(curve)
    if again:
        text = f"Over all passes, of which later ones meet rows that were learned before: {text[:1].lower()}{text[1:]}"
    if about in ("given", "drawn"):
        text += " This is about the model while it went on learning, not about the saved one."
    return Answer(question, f"{text} (Fixed weights on top of {offset} up to each row.)" if offset else text)


_IF = {
    None: "if new rows are like these",
    "given": "if the model goes on learning and the data go on changing as they did",
    "random": "for a row drawn at random from data like these",
    "latest": "for a row drawn at random from data like those of the latest run",
}


def tomorrow(
    confidence: Mapping[str, Any] | None, order: str | None = None, check: Mapping[str, Any] | None = None
) -> Answer:
    """Answer which loss to expect of future rows, in random order ("random") or in the order of the data ("given").

    In the order of the data that is the loss of a model that goes on learning. A `check` measures the model while it
    does not learn, as JSON values. For numeric labels the interval leaves out the first rows, which are used to choose
    the bound of the losses.

    >>> loss = {"mean": 0.453, "lower": 0.449, "upper": 0.457, "level": 0.95}
    >>> print(tomorrow({"loss": loss, "error_rate": {}}).answer)
    A mean loss from 0.4490 to 0.4570 per row, if new rows are like these (95 % confidence, valid at every row).
    """
    question = "What to expect tomorrow?"
    loss, gain = _interval(confidence, "loss"), _interval(confidence, "improvement")
    if loss is None or confidence is None:
        return Answer(question, "Not known: the run has no record of it.")
    low, high, level = loss
    start = "" if "error_rate" in confidence or order in ("random", "latest") else " after the first 32 rows"
    better = "" if gain is None or gain[1] is None else f", {_less(gain[0], gain[1])} than guessing"
    sure = f"({100.0 * level:g} % confidence, valid at every row)"
    between = f"of at least {_short(low)}" if high is None else f"from {_short(low)} to {_short(high)}"
    text = f"A mean loss {between} per row{start}{better}, {_IF[order]} {sure}.{_cut(confidence['loss'])}"
    if high is None:
        text += " No upper limit can be told: losses far above those seen may be rare and yet most of the mean."
    if check is not None and check.get("kind") == "last":
        is_alarm, last = "changed" in check.get("alarms", ()), _of_check(check)
        had = f"the last {int(check['rows']):,} rows, predicted when none of them was learned, had {last}"
        changed = f" But the data change: {had}. Later rows may have this or more."
        text += changed if is_alarm else f" For later rows: {had}."
    elif check is not None:
        text += f" At rows that it has learned, the saved model, which does not learn, has {_of_check(check)}."
    drift = confidence.get("drift")
    row = drift.get("row") if isinstance(drift, Mapping) else None
    if isinstance(row, int):
        text += f" Drift alarm: by row {row:,} the loss had risen, so new rows may have a larger one."
    return Answer(question, text)


def _less(low: float, high: float) -> str:
    """Return an interval of an improvement in words.

    >>> _less(0.1, 0.2), _less(-0.1, 0.2), _less(-0.2, -0.1)
    ('0.1000 to 0.2000 less', 'between 0.1000 more and 0.2000 less', '0.1000 to 0.2000 more')
    """
    if low > 0.0:
        return f"{_short(low)} to {_short(high)} less"
    return (
        f"{_short(-high)} to {_short(-low)} more"
        if high < 0.0
        else f"between {_short(-low)} more and {_short(high)} less"
    )


def _interval(confidence: Mapping[str, Any] | None, name: str) -> tuple[float, float | None, float] | None:
    """Return (lower, upper, level) of an interval, or None if it is unknown."""
    entry = None if confidence is None else confidence.get(name)
    if not isinstance(entry, Mapping):
        return None
    low, high, level = (_number(entry.get(key)) for key in ("lower", "upper", "level"))
    return None if low is None or level is None else (low, high, level)


def _of_check(check: Mapping[str, Any]) -> str:
    """Return the loss of a check, with its interval for rows like these and the baseline's loss if known."""
    low, high, baseline = (_number(check.get(key)) for key in ("lower", "upper", "baseline"))
    text = _short(check["loss"])
    if low is not None:
        text += f" (95 %: at least {_short(low)})" if high is None else f" (95 %: {_short(low)} to {_short(high)})"
    return text if baseline is None else f"{text}; guessing has {_short(baseline)}"


def _number(value: Any) -> float | None:
    """Return a finite number as a float, None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _cut(entry: Mapping[str, Any]) -> str:
    """Return a sentence on how many losses were clipped and what they would add to the mean.

    >>> _cut({"cut_rows": 3, "rows": 4000, "bound": 16.0, "cut_off": 0.25})
    ' 3 of 4,000 losses were cut (at 16.0000 in the end); in full they add 0.2500 to the mean.'
    """
    cut, rows, bound, off = (_number(entry.get(key)) for key in ("cut_rows", "rows", "bound", "cut_off"))
    if not cut or rows is None or bound is None or off is None:
        return ""
    many = f"{cut:,.0f} of {rows:,.0f} losses {'was' if cut == 1.0 else 'were'} cut (at {_short(bound)} in the end)"
    return f" {many}; in full {'it adds' if cut == 1.0 else 'they add'} {_short(off)} to the mean."


def _short(value: float) -> str:
    """Return a loss of any size with at least three digits.

    >>> _short(0.45), _short(0.000213), _short(7959242.1), _short(3e15)
    ('0.4500', '0.000213', '7,959,242', '3e+15')
    """
    size = abs(value)
    if size >= 1e3:
        return f"{value:,.0f}" if size < 1e12 else f"{value:.4g}"
    return f"{value:.4f}" if size >= 1e-3 or size < 1e-12 else f"{value:.3g}"


def _small(value: float) -> str:
    """Return two significant digits."""
    return f"{value:.2g}"
