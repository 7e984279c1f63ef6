"""A run and its receipt in plain sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from ftprl.losses import LOSSES, scalar_loss
from ftprl.receipt.caveats import offset_in_words
from ftprl.report.numbers import amount, count, percent
from ftprl.runlog.answers import GUESS, Answer, fixed_weights, guessing, learning_rate, rows_of, tomorrow
from ftprl.runlog.reader import Point, Receipt, RunLog, number, some
from ftprl.runlog.yardstick import better, deviances, root_mean_square

_LIMITS = (
    "A receipt does not show that the model is good. It shows how close the run came to fixed weights on these "
    "features, here its own last ones; better features, or a stream that keeps changing, are another matter. It covers "
    "the rows that were learned, not future ones."
)
_ORDER = ("regret", "tight", "bound", "theorem")


def answers(log: RunLog) -> list[Answer]:
    """Return the questions about a run, each with its answer."""
    first, loss, again = log.first_pass, LOSSES.get(log.loss), log.has_later_passes
    listed = []
    order, sample = log.settings.get("order"), log.end.get("sample")
    about = "drawn" if sample is not None else str(order)
    if isinstance(sample, Mapping) and (mean := number(sample.get("loss"))) is not None:
        rows = rows_of(None, drawn=int(sample["rows"]))
        baseline, gain = (number(sample.get(name)) for name in ("baseline", "improvement"))
        listed.append(guessing(log.loss, mean, baseline, gain, rows))
    elif first is not None and first.loss is not None:
        rows = rows_of(order if isinstance(order, str) else None, again=again)
        listed.append(guessing(log.loss, first.loss, first.baseline, first.improvement, rows))
    several = any(p.weights for p in log.points)
    weight = log.rates.get("weight", log.receipt.get("weight", 0.0)) if "loss" in log.rates else 0.0
    if weight > 0.0 and {"scale", "loss", "mixture"} <= set(log.rates):
        listed.append(learning_rate(log.rates, weight, again=again, about=about))
    elif log.points and not several:
        listed.append(learning_rate(None, 0.0))
    offset = "" if loss is None or not loss.has_offset else offset_in_words(scalar_loss(log.loss, _tau(log)))
    may_have_receipt = loss is None or not loss.has_classes
    if log.floor is not None or (log.keeps_receipt is False and may_have_receipt):
        listed.append(fixed_weights(log.floor, offset, again=again, about=about))
    check = log.end.get("check")
    known = order if order in ("given", "random") else None
    expected = tomorrow(log.confidence, known, check if isinstance(check, Mapping) and "loss" in check else None)
    return [*listed, expected] if log.confidence else listed


def _tau(log: RunLog) -> float:
    """Return the quantile of the quantile loss, 0.5 by default."""
    spec = log.settings.get("spec")
    tau = number(spec.get("tau")) if isinstance(spec, Mapping) else None
    return tau if tau is not None and 0.0 < tau < 1.0 else 0.5


def no_receipt(log: RunLog) -> str:
    """Return the reason why there is no receipt."""
    if log.keeps_receipt:
        return "the receipt comes with the first progress event."
    return "this run kept no receipt." if log.keeps_receipt is False else "the events of this run have no receipt."


def inconsistent(log: RunLog) -> tuple[str, str] | None:
    """Return two neighbours of regret <= tight <= bound <= theorem that violate this order beyond rounding, or None."""
    keys = [key for key in _ORDER if key in log.receipt]
    r = log.receipt
    tolerance = 1e-6 * (1.0 + max((abs(r[key]) for key in keys), default=0.0))
    return next(((a, b) for a, b in itertools.pairwise(keys) if r[a] > r[b] + tolerance), None)


def verdict(log: RunLog) -> str:
    """Return the receipt in one sentence."""
    r = log.receipt
    if "regret" not in r or "bound" not in r:
        return f"The regret against fixed weights is not known: {no_receipt(log)}"
    wrong = inconsistent(log)
    if wrong is not None:
        a, b = wrong
        return f"The receipt is inconsistent: {a} is {amount(r[a])}, above {b}, {amount(r[b])}."
    total = f" of a total loss of {amount(r['loss'])}" if "loss" in r else ""
    if r["regret"] <= 0.0:
        than = f" than the {amount(r['loss'])} of the run" if total else ""
        return (
            f"No regret: the model’s {_moment(log)} weights, fixed from the first row on, would have had at least "
            f"{amount(-r['regret'])} more loss{than}. "
            f"The proved bound on the regret is {amount(r['bound'])}."
        )
    share = f" ({percent(r['regret'] / r['loss'])})" if r.get("loss", 0.0) > 0.0 else ""
    return (
        f"The model’s {_moment(log)} weights, fixed from the first row on, would have saved at most "
        f"{amount(r['regret'])}{total}{share}. That is within the proved bound of {amount(r['bound'])}: "
        "the run’s own numbers agree. ftprl verify checks them against the data."
    )


def _moment(log: RunLog) -> str:
    """Return the word for the model's state: "final" if the run is finished, else "present"."""
    return "final" if log.status == "finished" else "present"


def baseline(log: RunLog) -> str:
    """Return a description of the baseline; empty for an unknown loss."""
    loss = LOSSES.get(log.loss)
    if loss is None:
        return ""
    return f"each row predicted by {GUESS[loss.baseline].removesuffix(' so far')} of the labels before it"


def warnings(log: RunLog) -> list[str]:
    """Return the warnings of a finished run as sentences."""
    texts = [text for text in log.end.get("warnings") or () if isinstance(text, str) and text]
    return [f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in texts]


def meaning(log: RunLog, point: Point | None) -> str:
    """Return a mean loss in meaningful units, beside the baseline’s."""
    loss = LOSSES.get(log.loss)
    if loss is None or point is None or point.loss is None:
        return ""
    means = [mean for mean in (point.loss, point.baseline) if mean is not None and mean >= 0.0]
    if loss.rmse and means:
        return "RMSE " + ", baseline ".join(amount(root_mean_square(mean)) for mean in means)
    if loss.has_deviance and (both := deviances(point.loss, point.baseline, point.improvement)) is not None:
        return f"mean deviance {amount(both[0])}, baseline {amount(both[1])}"
    if (loss.is_probabilistic or loss.has_classes) and means:
        first, *second = (percent(math.exp(-mean)) for mean in means)
        beside = f", baseline {second[0]}" if second else ""
        return f"probability of the observed label, on (geometric) average: {first}{beside}"
    return loss.explanation or "mean per row"


SAVED = {
    "last": "last rows, predicted when none of them was learned",
    "again": "rows that it has learned, predicted again",
}


def against_baseline(loss: float | None, baseline: float | None, improvement: float | None) -> str:
    """Return the baseline of a mean loss and by how much the model is better; empty without a baseline."""
    if loss is None or baseline is None:
        return ""
    return f"baseline {amount(baseline)}" + ("" if improvement is None else f", {better(improvement)}")


def receipt(log: RunLog) -> list[tuple[str, str]]:
    """Return the receipt as paragraphs with headings."""
    r = log.receipt
    if "regret" not in r or "bound" not in r:
        return []
    paragraphs = [
        ("Loss", _loss(log)),
        ("Compared with", _compared(log)),
        ("Regret", _regret(log)),
        ("Proved bound", _bound(log)),
    ]
    if "post_hoc" in r:
        paragraphs.append(("Best bound in hindsight", _hindsight(log)))
    return [*paragraphs, ("Limits", _LIMITS)]


def _per_row(log: RunLog, key: str) -> str:
    """Return a number of the receipt per row."""
    weight = log.receipt.get("weight", 0.0)
    return f", {amount(log.receipt[key] / weight)} per row" if weight > 0 else ""


def _loss(log: RunLog) -> str:
    """Return the paragraph about the loss."""
    r = log.receipt
    if "loss" not in r:
        return "Every row was predicted before it was learned."
    rows = f"{count(r['rows'])} rows" if "rows" in r else "the rows"
    loss = f"with a total loss of {amount(r['loss'])}{_per_row(log, 'loss')}."
    text = f"The run predicted {rows}, each before it was learned, {loss}"
    if log.has_later_passes:
        text = (
            f"The run learned {rows} in several passes, {loss} From the second pass on, rows had been learned before."
        )
    first = log.first_pass
    yardstick = "" if first is None else against_baseline(first.loss, first.baseline, first.improvement)
    if first is None or not yardstick:
        return text
    described = f" ({baseline(log)})" if baseline(log) else ""
    return f"{text} The mean of the first pass was {amount(first.loss)}; {yardstick}{described}."


def _compared(log: RunLog) -> str:
    """Return the paragraph about the weights that the regret compares with."""
    several = " (those of its leading scale)" if _mixed(log) else ""
    return (
        f"The model’s own last weights{several}, fixed from the first row on. They were not known before the rows had "
        "been learned, which makes them a hard yardstick."
    )


def _regret(log: RunLog) -> str:
    """Return the paragraph about the regret."""
    r = log.receipt
    if r["regret"] <= 0.0:
        text = f"None: the fixed weights would have had at least {amount(-r['regret'])} more loss than the run."
    else:
        share = f", {percent(r['regret'] / r['loss'])} of the total loss" if r.get("loss", 0.0) > 0.0 else ""
        text = f"At most {amount(r['regret'])}{_per_row(log, 'regret')}{share}."
    excess = r.get("excess", 0.0)
    if excess and not _mixed(log):
        text += (
            f" This includes {amount(excess)} from labels beyond the range of those before them, to which predictions "
            "are cut."
        )
    elif excess:
        sign = "less" if excess < 0 else "more"
        text += (
            f" Several scales were learned side by side; this is for the scale with the smallest bound{_scale(r)}, "
            f"including the {amount(abs(excess))} by which the mixture’s loss was {sign} than that scale’s."
        )
    return text


def _mixed(log: RunLog) -> bool:
    """Return True if several scales were learned side by side."""
    return any(p.weights for p in log.points)


def _scale(r: Receipt) -> str:
    """Return the scale of the receipt."""
    return f", {r['scale']:g}" if "scale" in r else ""


def _bound(log: RunLog) -> str:
    """Return the paragraph about the bound."""
    r = log.receipt
    wrong = inconsistent(log)
    if wrong is not None:
        return (
            f"The numbers are inconsistent: {wrong[0]} = {amount(r[wrong[0]])} is above {wrong[1]} = "
            f"{amount(r[wrong[1]])}, which is impossible. Do not trust this receipt."
        )
    text = (
        f"The regret cannot exceed {amount(r['bound'])}{_per_row(log, 'bound')}. This is not an estimate: it follows "
        "from sums over the rows as they came, without assumptions about them."
    )
    if "theorem" in r:
        text += f" The theorem of the paper, whose second term is twice as large, gives {amount(r['theorem'])}."
    return text


def _hindsight(log: RunLog) -> str:
    """Return the paragraph about the best bound in hindsight."""
    r = log.receipt
    text = (
        "The best per-coordinate learning rates, chosen with all rows known in advance, would have had a bound of "
        f"{amount(r['post_hoc'])}"
    )
    if "ratio" in r:
        several = r.get("excess") and "theorem" in r and _mixed(log)
        alone = f", {amount(r['theorem'] - r['excess'])} for that scale alone," if several else ""
        text += f"; the theorem’s bound for this run{alone} is {r['ratio']:.2f} times that{_below(r)}."
    else:
        text += "."
    if "const" in r and r.get("gain", 0.0) > 1.0:
        text += (
            f" A single global learning rate could not have had a bound below {amount(r['const'])}, {r['gain']:.3g} "
            "times as much: this is what per-coordinate learning rates gain on this data."
        )
    return text


def _below(r: Receipt) -> str:
    """Return a note for a ratio below 1."""
    text = ", below 1 because it depends on the actual predictions and not on the worst case"
    return text if r["ratio"] < 1.0 else ""


def status(log: RunLog) -> tuple[str, str]:
    """Return one word for the badge, and a sentence."""
    rows = f"{count(log.rows)} row{'s' if log.rows != 1 else ''}"
    return {
        "waiting": ("waiting", "No event has been logged yet."),
        "running": ("running", f"{rows} so far; no end has been logged: the run is going on, or it was stopped."),
        "finished": ("finished", f"{rows}, complete."),
        "failed": ("failed", f"Failed after {rows}: {log.error or 'no reason was logged.'}"),
        "interrupted": ("interrupted", f"Interrupted after {rows}: {log.error or 'nothing else was logged.'}"),
    }[log.status]


def timeline(log: RunLog) -> Sequence[tuple[str, str, str]]:
    """Return (rows, kind, description) of all events except progress; consecutive checkpoints are one line.

    Of very many events only some are returned.
    """
    lines: list[tuple[str, str, str]] = []
    saved = 0
    for event in log.other_events:
        kind = event["event"]
        saved = saved + 1 if kind == "checkpoint" else 0
        if saved > 1:
            lines.pop()
        lines.append((count(number(event.get("rows"))), kind, _description(event, saved)))
    return some(lines)


def _description(event: dict[str, object], saved: int) -> str:
    """Return the description of an event."""
    kind = event["event"]
    if kind == "checkpoint":
        return (
            f"{saved} checkpoints, the last to {event.get('path')}" if saved > 1 else f"written to {event.get('path')}"
        )
    if kind == "retire":
        return f"scales kept: {_list(event.get('kept'))}; dropped: {_list(event.get('retired'))}"
    if kind in ("pass", "end"):
        return _losses(event)
    if kind == "relearn":
        return f"pass {event.get('passes')} had the smallest held-out loss: all rows are learned in so many passes"
    if kind in ("error", "checkpoint_failed", "interrupted"):
        return str(event.get("message"))
    return {"start": "the run started", "resume": "the run was resumed"}.get(str(kind), "")


def _losses(event: dict[str, object]) -> str:
    """Return the losses at the end of a pass or of the run, with their baselines."""
    parts = []
    later = event["event"] == "pass" and event.get("pass") != 1
    for prefix, name in (("", "loss"), ("holdout_", "holdout")):
        loss, base, gain = (number(event.get(key)) for key in (name, f"{prefix}baseline", f"{prefix}improvement"))
        yardstick = "rows learned before" if later and not prefix else against_baseline(loss, base, gain)
        if loss is not None:
            of = (
                "held-out rows" if prefix else f"pass {event.get('pass')}" if event["event"] == "pass" else "first pass"
            )
            parts.append(f"{of}: mean loss {amount(loss)}{f' ({yardstick})' if yardstick else ''}")
    if event["event"] == "end":
        bad = event.get("bad_rows")
        parts.insert(0, f"done; {bad} bad rows were left out" if bad else "done; no row was left out")
        best = number(event.get("best_pass"))
        if best is not None:
            parts.append(f"pass {best:g} had the smallest held-out loss: all rows were learned in so many passes")
    return "; ".join(parts) or "done"


def _list(value: object) -> str:
    """Return the entries of a list, or "none"."""
    return ", ".join(map(str, value)) if isinstance(value, list) and value else "none"
