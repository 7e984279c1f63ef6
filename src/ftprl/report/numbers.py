"""Format numbers for people."""

from __future__ import annotations

import math


def count(value: float | None) -> str:
    """Format a number of rows or features.

    >>> count(1234567), count(None), count(0.25)
    ('1,234,567', '–', '0.25')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def amount(value: float | None) -> str:
    """Format a loss or a bound with four significant digits.

    >>> amount(437160.24), amount(0.48789), amount(15.25), amount(-3e-9), amount(0.0)
    ('437,160', '0.4879', '15.25', '-3e-09', '0')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0.0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(size)))}f}"


def headline(value: float | None) -> str:
    """Format a number in large letters, which have room for at most eight digits.

    >>> headline(15.25), headline(59475.2), headline(1_776_265_535.0)
    ('15.25', '59,475', '1.776e+09')
    """
    return amount(value) if value is None or not abs(value) >= 1e8 else f"{value:.4g}"


def percent(share: float) -> str:
    """Format a share in percent.

    >>> percent(0.0209), percent(0.3), percent(0.00001)
    ('2.1 %', '30 %', '0.001 %')
    """
    value = 100.0 * share
    return f"{value:.0f} %" if abs(value) >= 10 or value == 0 else f"{value:.2g} %"


def duration(seconds: float) -> str:
    """Format a duration.

    >>> duration(0.0123), duration(75.3), duration(7500)
    ('0.01 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
