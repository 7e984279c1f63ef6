"""What a run reports about its rows: their order, and how the saved model predicts (docs/order.md).

An `order` has the form in which a model stores it: `order` is "random" or "given". A `check` is a `FrozenCheck` as JSON
values, and a `sample` has the mean losses of the rows that were learned last, if these are a random sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, final

from ftprl.losses import LOSSES
from ftprl.runlog.yardstick import better, deviances, digits, root_mean_square

Values = Mapping[str, Any]


@final
class Caution(NamedTuple):
    """A warning of a run: its subject, the text, and the options that it names."""

    kind: str
    text: str
    options: tuple[str, ...] = ()

    @property
    def is_of_data(self) -> bool:
        """True if the first rows of the data were enough to find it."""
        return self.kind == "features" or self.kind.startswith("column ")


def measured(loss: str, mean: float, baseline: float | None, improvement: float | None) -> str:
    """Return a mean loss by its name, beside the loss of guessing each row from the labels before it.

    >>> measured("logistic", 0.45, 0.5, 10.0)
    'log loss 0.450000, 10.0 % better than guessing (0.500000)'
    >>> measured("squared", 2.0, 8.0, 75.0)
    'squared loss 2.000000 (RMSE 2), 75.0 % better than guessing (8.000000, RMSE 4)'
    """
    known = LOSSES.get(loss)
    both = deviances(mean, baseline, improvement) if known is not None and known.has_deviance else None
    if both is not None:
        return f"deviance {both[0]:.6g}, {better(improvement or 0.0)} than guessing ({both[1]:.6g})"
    has_root = known is not None and known.rmse
    text = f"{_unit(loss)} {digits(mean)}" + (f" (RMSE {root_mean_square(mean):.6g})" if has_root else "")
    if baseline is None or not math.isfinite(baseline) or improvement is None or not math.isfinite(improvement):
        return text
    root = f", RMSE {root_mean_square(baseline):.6g}" if has_root else ""
    return f"{text}, {better(improvement)} than guessing ({digits(baseline)}{root})"


def _unit(loss: str) -> str:
    """Return the name of the loss in a sentence."""
    known = LOSSES.get(loss)
    return "loss" if known is None else known.unit.removesuffix(" (nats)")


def headline(
    loss: str, rows: int, order: Values | None, total: Values, sample: Values | None, predicted: int | None = None
) -> str:
    """Return a sentence on how the rows of a run were predicted.

    `total` and `sample` have `loss`, `baseline` and `improvement`. `predicted` is the number of rows with a label that
    were not held out, if these are fewer.

    >>> total = {"loss": 0.45, "baseline": 0.5, "improvement": 10.0}
    >>> headline("logistic", 1000, {"order": "random"}, total, None)[:61]
    '1,000 rows in random order, each predicted before it was lear'
    """
    some = "" if predicted is None or predicted >= rows else f"{predicted:,} of "
    many, each = f"{some}{rows:,} row{'s'[: rows != 1]}", "each predicted before it was learned"
    if sample is not None:
        drawn = f"{int(sample['rows']):,} of them, drawn at random from all, were learned last"
        return f"{many}; {drawn}, {each}: {_measured(loss, sample)}"
    if order is None or order.get("order") != "random":
        ending = ". This is the loss of a model that goes on learning"
        return f"{many} in the order of the data, {each}: {_measured(loss, total)}{ending}"
    return f"{many} in random order, {each}: {_measured(loss, total)}"


def _measured(loss: str, means: Values) -> str:
    """Return a mean loss beside guessing, from a mapping."""
    return measured(loss, means["loss"], means.get("baseline"), means.get("improvement"))


def checked(loss: str, check: Values) -> str:
    """Return a sentence on how the model predicted rows while it did not learn, beside guessing if the rows were
    new.
    """
    rows = f"{int(check['rows']):,}"
    if check["kind"] == "last":
        head = f"the last {rows} rows, predicted when none of them was learned"
        return (
            f"{head}: {measured(loss, check['loss'], check['baseline'], check.get('improvement'))}{_ends(loss, check)}"
        )
    now, came = (_plain(loss, check[name], check) for name in ("loss", "progressive"))
    known = LOSSES.get(loss)
    what = "deviance" if known is not None and known.has_deviance else _unit(loss)
    return (
        f"{rows} of these rows, predicted again by the saved model, which has learned them: {what} {now} (before they"
        f" were learned: {came}; guessing: {_plain(loss, check['baseline'], check)}){_ends(loss, check)}"
    )


def _ends(loss: str, check: Values) -> str:
    """Return the interval of the loss for rows like those of a check, if it is known."""
    low, high = check.get("lower"), check.get("upper")
    if low is None:
        return ""
    first, *second = (_plain(loss, end, check) for end in (low, high) if end is not None)
    return f"; 95 %: {first} to {second[0]}" if second else f"; 95 %: at least {first}"


def _plain(loss: str, mean: float, check: Values) -> str:
    """Return a mean loss alone, in the unit of the losses it is compared with."""
    known = LOSSES.get(loss)
    if known is not None and known.has_deviance:
        return f"{2.0 * (mean - check['least']):.6g}"
    return f"{digits(mean)} (RMSE {root_mean_square(mean):.6g})" if known is not None and known.rmse else digits(mean)


def name_of_check(check: Values) -> str:
    """Return the label of a line about a check: "last rows" were new to the model, other rows are not."""
    return "last rows" if check["kind"] == "last" else "saved model"


def cautions_of(loss: str, check: Values | None) -> Iterator[Caution]:
    """Yield warnings about a model that is worse than its run, as a check measured it."""
    if check is None:
        return
    alarms = check.get("alarms", ())
    frozen, random = (_plain(loss, check[name], check) for name in ("loss", "progressive"))
    if "changed" in alarms:
        yield Caution(
            "changed",
            f"the data change along the file: other rows have a loss of {random}, the last rows {frozen}. Later rows"
            " may have the latter or more; train again, or go on with resume=",
            ("resume",),
        )
    if "worse" in alarms and check["kind"] == "last" and "changed" not in alarms:
        guess = _plain(loss, check["baseline"], check)
        text = f"at the last rows the model is worse than guessing: they have a loss of {frozen}, guessing {guess}"
        yield Caution("worse", text)
    elif "worse" in alarms and check["kind"] == "last":
        yield Caution(
            "worse",
            "at the last rows the model is worse than guessing: they are unlike the rows before them (sorted data, or a"
            " drift). Do not use it for later rows without a test",
        )
    if "forgotten" in alarms:
        yield Caution(
            "forgotten",
            f"the saved model has forgotten earlier rows: their loss has risen from {random} to {frozen}, where"
            f" guessing has {_plain(loss, check['baseline'], check)}. It is good only while it goes on learning; to"
            " save and apply a model, train with order=random, or compare both orders on rows that come later",
            ("order",),
        )


def as_order(order: Values | None) -> str:
    """Return the order of the rows as an option line.

    >>> as_order({"order": "random", "order_seed": 0, "waiting": 131072}), as_order(None)
    ('random, seed 0, waiting 131072', 'given')
    """
    if order is None or order.get("order") != "random":
        return "given"
    return f"random, seed {order['order_seed']}, waiting {order['waiting']}"
