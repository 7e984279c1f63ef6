"""The receipt, and the run, in words for people who do not prove theorems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ftprl.losses import SCALAR_LOSSES
from ftprl.report.figures import no_receipt
from ftprl.report.numbers import amount, count, percent
from ftprl.runlog.reader import Receipt, Told, number

_LIMITS = (
    "That the model is good. A receipt says how close the run came to the best that fixed weights on these features "
    "can do; better features, or a stream that keeps changing, are another matter. It speaks of the rows that were "
    "read, not of rows to come."
)
_CHAIN = ("regret", "tight", "bound", "theorem")


def broken(told: Told) -> tuple[str, str] | None:
    """Two neighbours of regret <= tight <= bound <= theorem that are not in order, beyond rounding."""
    there = [key for key in _CHAIN if key in told.receipt]
    r = told.receipt
    slack = 1e-6 * (1.0 + max((abs(r[key]) for key in there), default=0.0))
    return next(((a, b) for a, b in itertools.pairwise(there) if r[a] > r[b] + slack), None)


def verdict(told: Told) -> str:
    """The receipt in one sentence."""
    r = told.receipt
    if "regret" not in r or "bound" not in r:
        return f"How far it is from the best fixed weights is not known: {no_receipt(told)}"
    wrong = broken(told)
    if wrong is not None:
        a, b = wrong
        return f"The receipt does not add up: {a} is {amount(r[a])}, above {b}, {amount(r[b])}."
    if r["regret"] <= 0.0:
        return (
            f"Nothing was lost to the model’s own {_moment(told)} weights: they would have paid at least "
            f"{amount(-r['regret'])} more. The proof would have allowed a loss of {amount(r['bound'])}."
        )
    share = f" of the {amount(r['loss'])} that was paid ({percent(r['regret'] / r['loss'])})" if _pays(told) else ""
    return (
        f"The model’s {_moment(told)} weights, known from the first row on, would have saved at most "
        f"{amount(r['regret'])}{share}. The proof allows {amount(r['bound'])}, so the receipt holds."
    )


def _moment(told: Told) -> str:
    return "final" if told.status == "finished" else "present"


def _pays(told: Told) -> bool:
    return told.receipt.get("loss", 0.0) > 0.0


def meaning(told: Told) -> str:
    """What the mean loss says, in units that mean something."""
    loss = told.progressive
    if loss is None:
        return ""
    kind = SCALAR_LOSSES.get(told.loss)
    if kind is None:
        return ""
    if kind.predicts_probability:
        base = _base(told)
        said = f"{percent(math.exp(-loss))} for what came true (geometric mean)" if 0.0 <= loss < 700.0 else ""
        return said + (f"; always saying {percent(base[0])} would cost {amount(base[1])}" if base else "")
    if kind.rmse and loss >= 0:
        return f"half the square: a typical error of ±{amount(math.sqrt(2.0 * loss))}"
    return kind.note


def _base(told: Told) -> tuple[float, float] | None:
    """The share of positives and what it would have cost to say it for every row."""
    rows = sum(n for n, _, _ in told.calibration)
    p = sum(y for _, _, y in told.calibration) / rows if rows else 0.0
    return (p, -p * math.log(p) - (1 - p) * math.log1p(-p)) if 0.0 < p < 1.0 else None


def receipt(told: Told) -> list[tuple[str, str]]:
    """The receipt as headed paragraphs."""
    r = told.receipt
    if "regret" not in r or "bound" not in r:
        return []
    said = [
        ("What was paid", _paid(told)),
        ("What it is compared with", _compared(told)),
        ("What was lost", _lost(told)),
    ]
    said.append(("What is proved", _proved(told)))
    if "post_hoc" in r:
        said.append(("What was possible", _possible(told)))
    return [*said, ("What it does not say", _LIMITS)]


def _a_row(told: Told, key: str) -> str:
    weight = told.receipt.get("weight", 0.0)
    return f", {amount(told.receipt[key] / weight)} a row" if weight > 0 else ""


def _paid(told: Told) -> str:
    r = told.receipt
    if "loss" not in r:
        return "Every row was predicted before it was learned."
    rows = f"{count(r['rows'])} rows" if "rows" in r else "the rows"
    return (
        f"The run predicted {rows} before it learned each of them, and its predictions cost {amount(r['loss'])} in "
        f"total{_a_row(told, 'loss')}."
    )


def _compared(told: Told) -> str:
    several = " (those of its leading scale)" if told.receipt.get("excess") else ""
    return (
        f"With the weights that the model has ended up with{several}, as if they had been known before the first row "
        "and never changed. Nobody could have known them: they are a yardstick, and a hard one."
    )


def _lost(told: Told) -> str:
    r = told.receipt
    if r["regret"] <= 0.0:
        said = f"Nothing. The fixed weights would have cost at least {amount(-r['regret'])} more than the run did."
    else:
        said = f"At most {amount(r['regret'])}{_a_row(told, 'regret')}: the price of not knowing the answer beforehand."
    excess = r.get("excess", 0.0)
    if excess:
        better = "less" if excess < 0 else "more"
        said += (
            f" Several scales ran side by side; the number is that of the scale with the least bound{_named(r)}, with "
            f"the {amount(abs(excess))} counted in that the mixture paid {better} than that scale alone."
        )
    return said


def _named(r: Receipt) -> str:
    return f", {r['scale']:g}" if "scale" in r else ""


def _proved(told: Told) -> str:
    r = told.receipt
    wrong = broken(told)
    if wrong is not None:
        return (
            f"The numbers do not add up: {wrong[0]} = {amount(r[wrong[0]])} lies above {wrong[1]} = "
            f"{amount(r[wrong[1]])}, which cannot be. Do not trust this receipt."
        )
    said = (
        f"That what was lost cannot be above {amount(r['bound'])}{_a_row(told, 'bound')}. This is not an estimate: it "
        "follows from sums over the rows as they came, with no assumption about them, however adverse."
    )
    if "theorem" in r:
        said += f" The theorem of the paper, whose second term is twice as large, allows {amount(r['theorem'])}."
    return said


def _possible(told: Told) -> str:
    r = told.receipt
    said = (
        "With all rows known in advance, the best learning rate for each feature would have promised "
        f"{amount(r['post_hoc'])}"
    )
    if "ratio" in r:
        several = r.get("excess") and "theorem" in r
        alone = f", {amount(r['theorem'] - r['excess'])} for that scale alone," if several else ""
        said += f"; the theorem’s bound of this run{alone} is {r['ratio']:.2f} times that{_below(r)}."
    else:
        said += "."
    if "const" in r and r.get("gain", 0.0) > 1.0:
        said += (
            f" A single rate for all features could not have promised better than {amount(r['const'])}, "
            f"{r['gain']:.3g} times as much: this is what a rate for each feature gains on this stream."
        )
    return said


def _below(r: Receipt) -> str:
    said = ", below it, because it counts what was played and not the worst that could have been"
    return said if r["ratio"] < 1.0 else ""


def status(told: Told) -> tuple[str, str]:
    """One word for the badge, and a sentence."""
    rows = f"{count(told.rows)} row{'s' if told.rows != 1 else ''}"
    return {
        "waiting": ("waiting", "Nothing has been told yet."),
        "running": ("running", f"{rows} so far; the end has not been told: the run goes on, or it was stopped."),
        "finished": ("finished", f"{rows}, to the end."),
        "failed": ("failed", f"It stopped after {rows}: {told.message or 'no reason was told.'}"),
    }[told.status]


def happened(told: Told) -> Sequence[tuple[str, str, str]]:
    """All that is not progress: rows, kind and words; checkpoints as one line a stretch."""
    found: list[tuple[str, str, str]] = []
    saved = 0
    for event in told.others:
        kind = event["event"]
        saved = saved + 1 if kind == "checkpoint" else 0
        if saved > 1:
            found.pop()
        found.append((count(number(event.get("rows"))), kind, _happening(event, saved)))
    return found


def _happening(event: dict[str, object], saved: int) -> str:
    kind = event["event"]
    if kind == "checkpoint":
        return (
            f"{saved} checkpoints, the last to {event.get('path')}" if saved > 1 else f"written to {event.get('path')}"
        )
    if kind == "retire":
        return f"goes on with the scales {_several(event.get('kept'))}; without {_several(event.get('retired'))}"
    if kind == "pass":
        loss, held = number(event.get("loss")), number(event.get("holdout"))
        apart = "" if held is None else f", of held-out rows {amount(held)}"
        return f"pass {event.get('pass')} is over: mean loss {amount(loss)}{apart}"
    if kind == "end":
        bad = event.get("bad_rows")
        return f"done; {bad} bad rows were left out" if bad else "done; no row was left out"
    if kind == "error":
        return str(event.get("message"))
    return {"start": "the run begins", "resume": "the run is taken up again"}.get(str(kind), "")


def _several(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) and value else "none"
