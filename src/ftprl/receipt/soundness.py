"""Whether the numbers of a certificate can be true: finite, and each bound above what it bounds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ftprl.receipt.certificate import StreamCertificate
from ftprl.receipt.ledger import Certifiable

_LARGEST_GRADIENT = 2.0**96  # of cells of float32; those of float64 have room for all rows that are learned
_VALUE_PER_UNIT = 16.0 * (1 + 2.0**-20)  # no |value| is more units than this


def broken_link(numbers: Mapping[str, Any]) -> str | None:
    """Which number of a certificate is above one that bounds it, beyond rounding; None where the chain holds."""
    pairs = [*itertools.pairwise(("regret", "tight", "bound", "theorem")), ("true_regret_at_least", "regret")]
    slack, known = float(numbers["rounding"]), {**numbers, **(numbers["exact"] or {})}
    for low, high in pairs:
        a, b = known.get(low), known[high]
        if a is not None and b is not None and not a <= b + slack:
            return f"{low} {a:.12g} is above {high} {b:.12g} by more than rounding, {slack:.3g}"
    return None


def not_finite(certificate: StreamCertificate) -> str | None:
    """Which number is infinite or NaN, as no rows make them; None where all are finite."""
    numbers = certificate.brief() | {"rounding": certificate.rounding, "drift": certificate.drift}
    wrong = (name for name, a in numbers.items() if isinstance(a, float) and not abs(a) <= 1e300)
    return next((f"{name} is not a finite number" for name in wrong), None)


def cut_gradients(engine: Certifiable, largest_unit: float) -> str | None:
    """Say that gradients may have been so large that cells cut them, for which no theorem holds; None if none was.

    `largest_unit` is that of all features, at least the 1 of the intercept.
    """
    slopes = max(engine.rounding_sums(k).slopes for k in range(len(engine.spec.scales)))
    largest = _VALUE_PER_UNIT * max(largest_unit, 1.0) * slopes
    if engine.spec.float64 or largest <= _LARGEST_GRADIENT:
        return None
    return f"gradients up to {largest:.3g} may be beyond the range of a cell; rescale values, labels or weights"
