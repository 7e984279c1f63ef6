"""What each field of a receipt and of a model's provenance may be: type, range and length, checked when it is read.

A `Shape` is a function that returns what is wrong with a value, or None. Files are written by anybody: what passes can
be printed, compared and replayed without a surprise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from ftprl.errors import InvalidInput

Shape = Callable[[Any], str | None]

MOST_RUNS = 100_000
MOST_FILES = 100_000  # of a run
MOST_PASSES = 10_000
MOST_ROWS = 2**53
MOST_COLUMNS = 100_000
_HEX = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,40}")


def whole(least: int = 0, most: int = MOST_ROWS) -> Shape:
    """A whole number within limits."""
    return lambda a: None if type(a) is int and least <= a <= most else f"a whole number from {least} to {most}"


def number(least: float = -math.inf) -> Shape:
    """A finite number."""

    def check(a: Any) -> str | None:
        sound = type(a) in (int, float) and abs(a) <= 1e300 and a >= least
        return None if sound else "a finite number" + ("" if least == -math.inf else f" of at least {least:g}")

    return check


def flag(a: Any) -> str | None:
    """True or False."""
    return None if type(a) is bool else "true or false"


def text(most: int = 400) -> Shape:
    """A printable text."""

    def check(a: Any) -> str | None:
        return (
            None if isinstance(a, str) and len(a) <= most and a.isprintable() else f"a printable text of at most {most}"
        )

    return check


def name(a: Any) -> str | None:
    """A name out of a data file, which may hold any character; whoever prints it escapes it."""
    return None if isinstance(a, str) and len(a) <= 100_000 else "a text"


def sha256(a: Any) -> str | None:
    """A digest."""
    return None if isinstance(a, str) and _HEX.fullmatch(a) else "64 hexadecimal digits"


def version(a: Any) -> str | None:
    """The number of a version."""
    return None if isinstance(a, str) and _VERSION.fullmatch(a) else "the number of a version"


def one_of(*values: Any) -> Shape:
    """One of some values."""
    return lambda a: (
        None if any(type(a) is type(b) and a == b for b in values) else f"one of {', '.join(map(str, values))}"
    )


def either(*shapes: Shape) -> Shape:
    """Whatever fits one of several shapes."""

    def check(a: Any) -> str | None:
        wrong = [shape(a) for shape in shapes]
        return None if None in wrong else " or ".join(str(one) for one in wrong)

    return check


nothing = one_of(None)


def listed(shape: Shape, most: int, least: int = 0) -> Shape:
    """A list of one kind of entry."""

    def check(a: Any) -> str | None:
        if not isinstance(a, list) or not least <= len(a) <= most:
            return f"a list of {least} to {most}"
        return next((f"{i}: {wrong}" for i, one in enumerate(a) if (wrong := shape(one)) is not None), None)

    return check


def fields(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Names and values, no other names."""
    known = {**required, **(optional or {})}

    def check(a: Any) -> str | None:
        if not isinstance(a, Mapping) or not set(required) <= set(a) <= set(known):
            return f"the fields {', '.join(sorted(required))}"
        return next((f"{key}: {wrong}" for key, one in a.items() if (wrong := known[key](one)) is not None), None)

    return check


def mapping(shape: Shape, most: int) -> Shape:
    """Any names, with values of one kind."""

    def check(a: Any) -> str | None:
        if not isinstance(a, Mapping) or len(a) > most or not all(isinstance(key, str) for key in a):
            return f"at most {most} names with values"
        return next((wrong for one in a.values() if (wrong := shape(one)) is not None), None)

    return check


def check_shape(value: Any, shape: Shape) -> None:
    """Refuse a value of another shape."""
    if (wrong := shape(value)) is not None:
        raise InvalidInput(f"something else than {wrong}")


_MAYBE = either(nothing, number())
_FILE = fields({"bytes": whole(), "sha256": sha256})
_ROWS = fields({"rows": whole(), "sha256": sha256})

RUN = fields(
    {
        "files": either(nothing, listed(_FILE, MOST_FILES, 1)),
        "batches": either(nothing, _ROWS),
        "passes": whole(1, MOST_PASSES),
        "holdout": either(nothing, whole(2)),
        "retire": flag,
        "skip": flag,
        "rows": whole(),
        "bad_rows": whole(),
    }
)
_SHARED = fields({"regret": number(), "bound": number()})
MILESTONE = fields(
    {
        "read": whole(1),
        "rows": whole(),
        "weight": number(0.0),
        "shared": _SHARED,
        **dict.fromkeys(["loss", "scale", "excess", "regret", "tight", "bound", "theorem"], number()),
        **dict.fromkeys(["gain", "ratio", "post_hoc", "const"], _MAYBE),
    }
)
PROVENANCE = {
    "runs": listed(RUN, MOST_RUNS),
    "milestones": listed(MILESTONE, 1000),
    "unit_values": flag,
}
_COMPARATOR = fields(
    {"kind": one_of("weights", "box", "model")}, {"radius": number(0.0), "sha256": sha256, "nonzero": whole()}
)
_SCALE = fields(dict.fromkeys(["scale", "loss", "excess", "regret", "tight", "bound", "theorem"], number()))
_GROUP = fields(
    {"seen_from": _MAYBE, "seen_to": _MAYBE, "count": whole()}
    | dict.fromkeys(("regret", "bound", "post_hoc"), number())
)
_EXACT = fields(dict.fromkeys(["best_loss", "best_loss_at_least", "true_regret", "true_regret_at_least"], number()))
CERTIFICATE = fields(
    {
        "rounds": whole(),
        "weight": number(0.0),
        **dict.fromkeys(
            ["loss", "scale", "excess", "regret", "tight", "bound", "theorem", "rounding", "solver_gap"], number()
        ),
        **dict.fromkeys(["true_regret", "worst_case", "closed_form", "closed_form_strong", "ratio", "gain"], _MAYBE),
        **dict.fromkeys(("proven_ratio", "proven_regret_ratio"), _MAYBE),
        "ratio_of": one_of("theorem", "worst_case"),
        "coordinates_by": one_of("rows", "gradients"),
        "family": one_of("diagonal"),
        "caveats": listed(text(), 10),
        "comparator": _COMPARATOR,
        "post_hoc": fields(dict.fromkeys(("const", "diagonal", "full"), _MAYBE)),
        "shared": _SHARED,
        "scales": listed(_SCALE, 16, 1),
        "coordinates": listed(_GROUP, 200),
        "exact": either(nothing, _EXACT),
    }
)
READING = fields(
    {"dim": whole(1, 2**32), "dtype": text(20), "format": text(20), "intercept": flag, "loss": text(40)}
    | {"positive": either(nothing, name), "seed": whole(0, 2**64)},
    {
        "columns": mapping(text(20), MOST_COLUMNS),
        "header": either(nothing, flag),
        "quote": either(nothing, name),
        "sep": either(nothing, name),
    },
)
SPEC = mapping(either(nothing, flag, number(), text(40), listed(number(), 16)), 40)
CALIBRATION = either(nothing, listed(listed(number(0.0), 3, 3), 20, 20))
