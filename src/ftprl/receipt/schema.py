"""What each field of a receipt may be: type, range and length, checked when it is read."""

from __future__ import annotations

from ftprl.linear.content import CHECK, SHARED
from ftprl.schema import class_label, either, fields, listed, nothing, number, one_of, sha256, text, whole

_MAYBE = either(nothing, number())
_COMPARATOR = fields(
    {"kind": one_of("weights", "box", "model")}, {"radius": number(0.0), "sha256": sha256, "nonzero": whole()}
)
_SCALE = fields(dict.fromkeys(["scale", "loss", "excess", "regret", "tight", "bound", "theorem"], number()))
_GROUP = fields(
    {"seen_from": _MAYBE, "seen_to": _MAYBE, "count": whole()}
    | dict.fromkeys(("regret", "bound"), number())
    | {"post_hoc": _MAYBE}
)
_NAMED = fields(
    {"name": class_label(200), "count": whole()} | dict.fromkeys(("regret", "bound"), number()) | {"post_hoc": _MAYBE}
)
_EXACT = fields(dict.fromkeys(["best_loss", "best_loss_at_least", "true_regret", "true_regret_at_least"], number()))
_LINE = fields(dict.fromkeys(["scale", "start", "slope_1", "slope_2", "slope_inf"], number()))
_POINT = fields(dict.fromkeys(["length", "loss", "at_least"], number()))
_FLOOR = fields(
    {
        "norm": one_of("1", "2", "inf"),
        "unit": number(0.0),
        **dict.fromkeys(["least", "length", "beaten_length", "informative_length"], _MAYBE),
        "lines": listed(_LINE, 16, 1),
        "points": listed(_POINT, 20),
    }
)
_RATES = fields(
    {
        **dict.fromkeys(["scale", "loss", "mixture"], number()),
        "guaranteed": _MAYBE,
        "dropped": listed(number(0.0), 16),
        "dropped_row": whole(),
    }
)
_INTERVAL = fields(
    {
        **dict.fromkeys(["mean", "lower", "cut_off"], number()),
        "upper": _MAYBE,
        "level": number(0.0),
        "bound": _MAYBE,
        **dict.fromkeys(["rows", "cut_rows"], whole()),
    }
)
_DRIFT = fields({"row": either(nothing, whole(1)), "false_alarm": number(0.0)})
_CONFIDENCE = fields(
    {"loss": _INTERVAL},
    {"drift": _DRIFT, **dict.fromkeys(["improvement", "calibration", "error_rate"], _INTERVAL)},
)
_LOSSES = {"loss": number(), "weight": number(0.0), "baseline": _MAYBE, "least": _MAYBE}
CERTIFICATE = fields(
    {
        "baseline": fields(_LOSSES),
        "floor": _FLOOR,
        "rates": either(nothing, _RATES),
        "rounds": whole(),
        "weight": number(0.0),
        **dict.fromkeys(
            ["loss", "scale", "excess", "regret", "tight", "bound", "theorem", "rounding", "drift", "solver_gap"],
            number(),
        ),
        **dict.fromkeys(["true_regret", "ratio", "gain"], _MAYBE),
        "coordinates_by": one_of("rows", "gradients"),
        "family": one_of("diagonal"),
        "caveats": listed(text(), 10),
        "comparator": _COMPARATOR,
        "post_hoc": fields(dict.fromkeys(("const", "diagonal", "full"), _MAYBE)),
        "shared": SHARED,
        "scales": listed(_SCALE, 16, 1),
        "coordinates": listed(_GROUP, 200),
        "exact": either(nothing, _EXACT),
    },
    {
        "confidence": either(nothing, _CONFIDENCE),
        "check": either(nothing, CHECK),
        "drawn": either(nothing, fields({"rows": whole(), **_LOSSES})),
        "first_pass": fields({"rows": whole(), **_LOSSES}),
        "named": listed(_NAMED, 200),
        "order": either(nothing, one_of("random", "given")),
    },
)
CALIBRATION = either(nothing, listed(listed(number(0.0), 3, 3), 20, 20))
