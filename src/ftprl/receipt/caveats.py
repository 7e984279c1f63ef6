"""What a certificate is about, and what its numbers do not say by themselves, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from ftprl.linear.spec import Spec
from ftprl.losses import ScalarLoss

_COARSE = "its float32 cells no longer count its smallest gradients; train with --float64"


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The fixed weights u of a comparison: the model's own `weights`, all of a `box`, or those of another `model`."""

    kind: str
    radius: float | None = None
    sha256: str | None = None  # of the other model
    nonzero: int | None = None  # coordinates that are not 0

    def __str__(self) -> str:
        if self.kind == "box":
            return f"the best weights with |weight| <= {self.radius:g} / unit of the feature"
        return "the model's final weights" if self.kind == "weights" else "the weights of the other model"


def no_worst_case(spec: Spec, units: tuple[float, float], comparison: Comparison) -> str | None:
    """Why the worst case is no bound for this run; None where it is one."""
    if spec.scalar_loss().has_units:
        return "these are of gradients in a fixed unit; only logistic loss has one"
    if comparison.kind != "box":
        return "they hold for a box of weights; pass one with --radius"
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return "it was trained without --lower and --upper, so that its weights may leave the box"
    if spec.bounds:
        return "some weights have bounds of their own"
    if spec.intercept:
        return "the intercept has no bounds; train with --no-intercept"
    if spec.beta != 0.0 or spec.l1 != 0.0 or spec.l2 != 0.0:
        return f"beta={spec.beta:g}, l1={spec.l1:g} and l2={spec.l2:g} are not all 0"
    low, high = units
    if low < high or (high and high != 1.0):
        return "not every |value| was 1"
    if not spec.upper == -spec.lower == comparison.radius:
        return f"the box of radius {comparison.radius:g} is not the bounds {spec.lower:g} to {spec.upper:g}"
    return None


def caveats_of(
    spec: Spec,
    scale: float,
    units: tuple[float, float],
    comparison: Comparison,
    unit_values: bool,
    forms: Mapping[str, float | None],
    *,
    regret: float,
    loss: float,
) -> tuple[str, ...]:
    """What the numbers do not say by themselves, in words."""
    # `verify` compares these texts: a receipt that was written earlier is confirmed only if they stay as they are.
    notes = []
    if regret > loss >= 0.0 and spec.scalar_loss().link != "log":  # with a log link losses may be below 0
        notes.append(
            "not informative: the regret stated here is above the total loss, which no regret can be. Use a smaller"
            " --radius, or --radius R --exact DATA"
        )
    loss_function = spec.scalar_loss()
    if loss_function.has_offset:
        notes.append(
            f"what fixed weights predict is added to {offset_in_words(loss_function)} up to each row, as with the"
            " predictions of this run"
        )
    if spec.classes:
        notes.append(
            f"weights are of all {spec.classes} classes that there may be (--classes), and a length is over all of them"
        )
    if loss_function.rule == "log_mean":
        notes.append("losses here are divided by the mean of the labels up to their row")
    if len(spec.scales) > 1:
        notes.append(
            f"regret and bounds are those of scale {scale:g}, the one with the smallest bound, plus the line `mixing`"
        )
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return tuple(notes)  # most runs: docs/receipt-reference.md says when there is a worst case
    if (reason := no_worst_case(spec, units, comparison)) is not None:
        notes.append(f"no worst case and no closed form: {reason}")
    elif forms.get("worst_case") is None:
        notes.append(f"no worst case and no closed form: {_COARSE}")
    elif not unit_values:
        notes.append("no closed form: not every |value| was 1")
    elif forms.get("closed_form") is None:
        notes.append(f"no closed form: {_COARSE}")
    return tuple(notes)


def offset_in_words(loss: ScalarLoss) -> str:
    """What scores are counted from: docs/labels.md.

    >>> offset_in_words(Spec(loss="squared").scalar_loss())
    'the mean of the labels'
    """
    kinds = {
        "mean": "the mean",
        "median_of_unit": "the median",
        "quantile": "the median",
        "log_mean": "the log of the mean",
    }
    if loss.rule == "quantile" and loss.tau not in (None, 0.5):
        return f"the {loss.tau:g} quantile of the labels"
    return f"{kinds.get(loss.rule, 'the log of the mean')} of the labels"
