"""Rows of a replay learned by compiled code of its own (src/core/replay), into the arrays of the replay.

It has the bits of the NumPy form in `replay`, which stays as what it is compared with, and as `ftprl verify --numpy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl._core import CompiledReplay
from ftprl.linear.spec import Spec
from ftprl.receipt.label_replay import LabelFacts

Vector = NDArray[np.float64]
# As in src/core/replay/replay.hpp.
LABELS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "low", "high", "psi", "kappa", "outliers"),
)
_SHARES = {"auto": -1.0, "capped": -2.0}


def settings_of(spec: Spec) -> dict[str, Any]:
    """The settings as the compiled replay takes them."""
    names = (
        "loss",
        "tau",
        "beta",
        "l1",
        "l2",
        "lower",
        "upper",
        "intercept",
        "float64",
        "stacked",
        "level",
        "coin",
        "dense",
    )
    share = _SHARES[spec.share] if isinstance(spec.share, str) else spec.share
    return {**{name: getattr(spec, name) for name in names}, "share": share, "scales": list(spec.scales)}


def compiled(spec: Spec, arrays: Mapping[str, Any]) -> CompiledReplay:
    """A learner that writes into these arrays."""
    return CompiledReplay(settings_of(spec), dict(arrays))


def label_numbers(facts: LabelFacts) -> Vector:
    """What is known of the labels, as numbers."""
    return np.array([getattr(facts, name) for name in LABELS])


def set_label_numbers(facts: LabelFacts, numbers: Vector) -> None:
    """Write the numbers about the labels back into the replay."""
    for name, value in zip(LABELS, numbers.tolist(), strict=True):
        setattr(facts, name, value)
