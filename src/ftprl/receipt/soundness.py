"""Whether the numbers of a certificate can be true: finite, and each bound above what it bounds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ftprl.receipt.certificate import StreamCertificate


def broken_link(numbers: Mapping[str, Any]) -> str | None:
    """Which number of a certificate is above one that bounds it, beyond rounding; None where the chain holds."""
    pairs = [*itertools.pairwise(("regret", "tight", "bound", "theorem")), ("true_regret", "regret")]
    slack = float(numbers["rounding"])
    for low, high in pairs:
        a, b = numbers[low], numbers[high]
        if a is not None and b is not None and not a <= b + slack:
            return f"{low} {a:.12g} is above {high} {b:.12g} by more than rounding, {slack:.3g}"
    return None


def not_finite(certificate: StreamCertificate) -> str | None:
    """Which number is infinite or NaN, as no rows make them; None where all are finite."""
    numbers = certificate.brief() | {"rounding": certificate.rounding, "drift": certificate.drift}
    wrong = (name for name, a in numbers.items() if isinstance(a, float) and not abs(a) <= 1e300)
    return next((f"{name} is not a finite number" for name in wrong), None)
