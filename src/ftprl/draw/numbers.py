"""Short numbers for axes: 200k, 1.5M, 0.05."""

from __future__ import annotations

import math

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def short(value: float) -> str:
    """Return a number with a suffix for thousands, millions and so on.

    >>> short(200_000), short(1_500_000), short(0.05), short(-2e-7), short(0)
    ('200k', '1.5M', '0.05', '-2e-7', '0')
    """
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if 1e3 <= size < 1e15:
        unit, letter = next((unit, letter) for unit, letter in _UNITS if size >= unit)
        return f"{value / unit:.4g}{letter}"
    mantissa, _, power = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(power)}" if power else mantissa
