"""What a certificate is about, and the notes that its numbers need, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

from ftprl.linear.spec import Spec
from ftprl.losses import ScalarLoss

_COARSE = "its float32 cells no longer count its smallest gradients; train with --float64"
_NO_WORST_CASE = "no worst case and no closed form: "

# The wordings of each note: the present one first, then those of earlier receipts. `verify` accepts any of them, so
# that a new wording does not refuse the receipts of before; add one in front and leave the others as they are.
WORDINGS: dict[str, tuple[str, ...]] = {
    "not_informative": (
        (
            "not informative: the regret stated here is above the total loss, which no regret can be. Use a smaller"
            " --radius, or --radius R --exact DATA"
        ),
    ),
    "offset": (
        "fixed weights are compared on top of {offset} up to each row, as the predictions of this run are",
        "what fixed weights predict is added to {offset} up to each row, as with the predictions of this run",
    ),
    "classes": (
        (
            "fixed weights are those of all {classes} classes that there may be (--classes), and their length is over"
            " all classes"
        ),
        "weights are of all {classes} classes that there may be (--classes), and a length is over all of them",
    ),
    "divided": ("losses here are divided by the mean of the labels up to their row",),
    "scale": ("regret and bounds are those of scale {scale}, the one with the smallest bound, plus the line `mixing`",),
    "no_fixed_unit": (_NO_WORST_CASE + "these are of gradients in a fixed unit; only logistic loss has one",),
    "no_box": (_NO_WORST_CASE + "they hold for a box of weights; pass one with --radius",),
    "no_bounds": (
        _NO_WORST_CASE + "it was trained without --lower and --upper, so that its weights may leave the box",
    ),
    "own_bounds": (_NO_WORST_CASE + "some weights have bounds of their own",),
    "intercept": (_NO_WORST_CASE + "the intercept has no bounds; train with --no-intercept",),
    "regularised": (_NO_WORST_CASE + "beta={beta}, l1={l1} and l2={l2} are not all 0",),
    "values": (_NO_WORST_CASE + "not every |value| was 1",),
    "other_box": (_NO_WORST_CASE + "the box of radius {radius} is not the bounds {lower} to {upper}",),
    "coarse": (_NO_WORST_CASE + _COARSE,),
    "no_form_values": ("no closed form: not every |value| was 1",),
    "no_form_coarse": (f"no closed form: {_COARSE}",),
}


@final
class Note(NamedTuple):
    """A remark on the numbers of a certificate: what it means, and the values in its text.

    >>> str(Note("classes", {"classes": "3"}))[:38]
    'fixed weights are those of all 3 class'
    """

    key: str
    values: Mapping[str, str] = {}

    @property
    def wordings(self) -> tuple[str, ...]:
        """Its text in all wordings, the present one first."""
        return tuple(text.format(**self.values) for text in WORDINGS[self.key])

    def __str__(self) -> str:
        return self.wordings[0]


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


def no_worst_case(spec: Spec, units: tuple[float, float], comparison: Comparison) -> Note | None:
    """Why the worst case is no bound for this run; None where it is one."""
    if spec.scalar_loss().has_units:
        return Note("no_fixed_unit")
    if comparison.kind != "box":
        return Note("no_box")
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return Note("no_bounds")
    if spec.bounds:
        return Note("own_bounds")
    if spec.intercept:
        return Note("intercept")
    if spec.beta != 0.0 or spec.l1 != 0.0 or spec.l2 != 0.0:
        return Note("regularised", {"beta": f"{spec.beta:g}", "l1": f"{spec.l1:g}", "l2": f"{spec.l2:g}"})
    low, high = units
    if low < high or (high and high != 1.0):
        return Note("values")
    if not spec.upper == -spec.lower == comparison.radius:
        values = {"radius": f"{comparison.radius:g}", "lower": f"{spec.lower:g}", "upper": f"{spec.upper:g}"}
        return Note("other_box", values)
    return None


def notes_of(
    spec: Spec,
    scale: float,
    units: tuple[float, float],
    comparison: Comparison,
    unit_values: bool,
    forms: Mapping[str, float | None],
    *,
    regret: float,
    loss: float,
) -> tuple[Note, ...]:
    """What the numbers do not say by themselves."""
    notes, loss_function = [], spec.scalar_loss()
    if regret > loss >= 0.0 and loss_function.link != "log":  # with a log link losses may be below 0
        notes.append(Note("not_informative"))
    if loss_function.has_offset:
        notes.append(Note("offset", {"offset": offset_in_words(loss_function)}))
    if spec.classes:
        notes.append(Note("classes", {"classes": f"{spec.classes}"}))
    if loss_function.rule == "log_mean":
        notes.append(Note("divided"))
    if len(spec.scales) > 1:
        notes.append(Note("scale", {"scale": f"{scale:g}"}))
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return tuple(notes)  # most runs: docs/receipt-reference.md says when there is a worst case
    if (reason := no_worst_case(spec, units, comparison)) is not None:
        notes.append(reason)
    elif forms.get("worst_case") is None:
        notes.append(Note("coarse"))
    elif not unit_values:
        notes.append(Note("no_form_values"))
    elif forms.get("closed_form") is None:
        notes.append(Note("no_form_coarse"))
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
