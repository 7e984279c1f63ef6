"""What a certificate is about, and the notes that its numbers need, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ftprl.linear.spec import Spec
from ftprl.losses import ScalarLoss


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


def notes_of(spec: Spec, scale: float, *, regret: float, loss: float, to_come: int = 0) -> tuple[str, ...]:
    """Return what the numbers do not say by themselves; `to_come` classes of those that there may be never came."""
    notes, loss_function = [], spec.scalar_loss()
    if regret > loss >= 0.0 and loss_function.link != "log":  # with a log link losses may be below 0
        notes.append(
            "not informative: the regret stated here is above the total loss, which no regret can be. Use a smaller"
            " --radius, or --radius R --exact DATA"
        )
    if loss_function.has_offset:
        offset = offset_in_words(loss_function)
        notes.append(
            f"fixed weights are compared on top of {offset} up to each row, as the predictions of this run are"
        )
    if to_come:
        notes.append(
            f"the floor is about models of the {spec.classes - to_come} classes that came; regret and bounds compare"
            f" with weights for all {spec.classes} that there may be (--classes)"
        )
    elif spec.classes:
        notes.append(
            f"fixed weights are those of all {spec.classes} classes that there may be (--classes), and their length is"
            " over all classes"
        )
    if loss_function.rule == "log_mean":
        notes.append("losses here are divided by the mean of the labels up to their row")
    if len(spec.scales) > 1:
        notes.append(
            f"regret and bounds are those of scale {scale:g}, the one with the smallest bound, plus the line `mixing`"
        )
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
