"""How much memory the names of features may take."""

from __future__ import annotations

from ftprl.errors import InvalidInput

BUDGET = 64_000_000  # bytes, unless another is asked for
LARGEST_BUDGET = 2**40
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_budget(value: object) -> int:
    """A number of bytes: 64000000, "64MB", "1GB"; 0 or False for no names.

    >>> parse_budget("64MB"), parse_budget(1000), parse_budget(False)
    (64000000, 1000, 0)
    """
    text = str(value).strip().upper().replace(" ", "")
    digits = text.rstrip("KMGIB")
    try:
        size = float(digits) * _UNITS[text[len(digits) :]] if value is not True else -1.0
    except (ValueError, KeyError):
        size = 0.0 if value is False else -1.0
    if not 0 <= size <= LARGEST_BUDGET:
        raise InvalidInput(f"names= needs a size such as 64MB or 1GB, or 0 for no names, got {value!r:.40}; pass one.")
    return int(size)
