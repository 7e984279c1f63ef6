"""What the JSON part of a model file may be, field by field: settings, history, the state of a run, its provenance.

`Model.load` checks it before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftprl.confidence.layout import MONITOR_NUMBERS, RESIDUAL_NUMBERS, TAIL_NUMBERS
from ftprl.data.kinds import KINDS
from ftprl.linear.bounds import MOST as MOST_BOUNDS
from ftprl.linear.spec import DROPPABLE
from ftprl.losses import LOSSES
from ftprl.schema import (
    Shape,
    character,
    class_label,
    either,
    fields,
    flag,
    json_value,
    listed,
    mapping,
    name,
    nothing,
    number,
    one_of,
    row,
    sha256,
    text,
    whole,
)

MOST_RUNS = 100_000
MOST_FILES = 100_000  # of a run
MOST_PASSES = 10_000  # of a run with a receipt
MOST_REVIEWS = 10_000  # passes that are compared on held-out rows
MOST_COLUMNS = 100_000
MOST_LABEL = 1000  # characters in the name of a class
_64_BIT = whole(0, 2**64 - 1)
_LOSS = one_of(*LOSSES)
_PARAMETER = number(0.0)
_FILE_FORMATS = (
    "vw",
    "libsvm",
    "csv",
    "tsv",
    "arrays",
    "frame",
    "records",
    "parquet",
    "arrow",
    "orc",
    "jsonl",
)  # whose positions are known; a class of a user has its own

SPEC = fields(
    {},
    {
        "loss": _LOSS,
        "dim": whole(1, 2**32),
        "scale": either(_PARAMETER, listed(_PARAMETER, 16, 2)),
        **dict.fromkeys(("beta", "l1", "l2", "tau"), _PARAMETER),
        **dict.fromkeys(("lower", "upper"), either(nothing, number())),
        "bounds": listed(row(text(), *[either(nothing, number())] * 2), MOST_BOUNDS),
        **dict.fromkeys(("intercept", "float64", "coin", "dense"), flag),
        "dropped_experts": listed(one_of(*DROPPABLE), len(DROPPABLE)),
        "seed": _64_BIT,
        "retired": listed(_PARAMETER, 16),
        "retired_row": whole(),
        "classes": whole(0, 10_000),
        "calibrate": one_of("none", "platt", "isotonic"),
    },
)
_READING: dict[str, Shape] = {
    "dim": whole(1, 2**32),
    "dtype": one_of("float32", "float64"),
    "format": text(40),
    "intercept": flag,
    "loss": _LOSS,
    "positive": either(nothing, name),
    "seed": _64_BIT,
}
_TABLE: dict[str, Shape] = {
    "interactions": listed(listed(name, 4, 2), 4096),
    "ngrams": mapping(whole(2, 8), MOST_COLUMNS),
    "skips": mapping(whole(1, 8), MOST_COLUMNS),
    "char_ngrams": mapping(listed(whole(1, 16), 2, 2), MOST_COLUMNS),
    "columns": either(nothing, mapping(one_of(*KINDS), MOST_COLUMNS)),
    "missing": one_of("indicator", "ignore"),
    "order": either(nothing, listed(name, MOST_COLUMNS)),
    "sampled": either(nothing, mapping(listed(number(), 1001, 1), MOST_COLUMNS)),
    "features": whole(),
    "header": either(nothing, flag),
    "other_columns": flag,
    "quote": either(nothing, character),
    "sep": either(nothing, character),
}
READING = fields({}, {**_READING, **_TABLE})
READING_OF_RECEIPT = fields(_READING, _TABLE)  # written by `train`, which knows all of it

_WEIGHT = number(0.0)
# Loss, weight and rows, then the loss of the baseline and the least possible loss, where they are known.
_TOTALS = either(row(number(), _WEIGHT, whole()), row(number(), _WEIGHT, whole(), number(), number()))
ORDER = either(  # of the rows of a run
    fields({"order": one_of("given"), "order_seed": _64_BIT}),
    fields({"order": one_of("random"), "order_seed": _64_BIT, "waiting": whole(1, 2**40)}),
)
CHECK = fields(  # of `ftprl.linear.frozen.FrozenCheck`
    {
        "kind": one_of("last", "again"),
        "rows": whole(1),
        **dict.fromkeys(("loss", "baseline", "progressive", "least", "above_progressive", "above_baseline"), number()),
        "improvement": either(number(), nothing),
        "alarms": listed(one_of("changed", "worse", "forgotten"), 3),
    },
    dict.fromkeys(("lower", "upper"), either(number(), nothing)),
)
_MONITOR = listed(number(), MONITOR_NUMBERS + TAIL_NUMBERS, MONITOR_NUMBERS)  # of `ftprl.confidence.RunMonitor`
CAUTIONS = mapping(listed(text(10_000), 10, 1), 20)  # of a run, by what they are about: text and options
MOST_BLOCKS = 10_000  # classes of `ftprl.training.label_blocks`
HISTORY = either(
    fields({}),
    fields(
        {"rows": whole(), "bad_rows": whole(), "progressive": _TOTALS, "holdout": _TOTALS},
        {
            "monitor": _MONITOR,
            "delay": whole(),  # if labels were late
            "order": ORDER,
            "check": CHECK,
            "sample": _TOTALS,
            "cautions": CAUTIONS,
        },
    ),
)

# ---- the state of an unfinished run, in a checkpoint ----

_ROW_DIGEST = listed(_64_BIT, 3, 3)
_ROW_POSITION = fields({"rows": whole()})
_JOB_POSITION = fields(
    {
        **dict.fromkeys(("file", "part", "offset", "line", "skip", "rows", "bad"), whole()),
        "negative": one_of(-1.0, 0.0, 1.0, -1, 0, 1),
        "first_bad": either(nothing, name),
        **dict.fromkeys(("digest", "end"), either(nothing, _ROW_DIGEST)),
    }
)
_TEXT_FINGERPRINT = listed(row(whole(), sha256), MOST_FILES)
_ROWS_FINGERPRINT = fields({"rows": whole(), "sha256": sha256})
_OWN = json_value()
_EXPERTS = listed(number(), 20)


def checkpoint_shape(format: Any) -> Shape:
    """The state of a run over data of this format; positions of a format that is not built in may be anything."""
    known = format in _FILE_FORMATS
    digest = either(listed(_64_BIT, 2, 2), _ROW_DIGEST) if known else _OWN
    state = fields(
        {
            **dict.fromkeys(("began", "pass_began", "held"), _TOTALS),
            **dict.fromkeys(("passed", "rows", "refused"), whole()),
            "refusal": either(nothing, name),
            "classes": whole(0, 3),
            "position": either(_ROW_POSITION, _JOB_POSITION) if known else _OWN,
            "progressive": either(nothing, _TOTALS),
        },
        {
            "digest": either(nothing, digest),
            "reviews": listed(_TOTALS, MOST_REVIEWS),
            "monitor": _MONITOR,
            "residuals": listed(number(), RESIDUAL_NUMBERS),
            "chosen": either(nothing, _EXPERTS),
            "relearn": whole(0, MOST_REVIEWS),
            "arrived": either(nothing, _TOTALS),
            "pass_rows": whole(),
            "compared": listed(number(), 6, 6),
            "check": CHECK,
            "quarter": _TOTALS,
            "overflowed": flag,
            "blocks": either(nothing, listed(row(number(), whole(1)), MOST_BLOCKS)),
            "cautions": CAUTIONS,
        },
    )
    return fields(
        {
            "holdout": either(nothing, whole(2)),
            "passes": whole(1),
            "fingerprint": either(nothing, _TEXT_FINGERPRINT, _ROWS_FINGERPRINT) if known else _OWN,
            "on_bad_row": one_of("raise", "skip"),
            "state": state,
        },
        {
            "delay": either(nothing, whole(0, 2**53)),
            "order": one_of("given", "random"),
            "waiting": whole(1, 2**40),
            "order_seed": _64_BIT,
            "predictions": either(nothing, fields({"bytes": whole(), "crc32": whole(0, 2**32 - 1)})),
        },
    )


def content_shape(content: Mapping[str, Any]) -> Shape:
    """The content of a model file; the format of its data decides what its checkpoint may be."""
    reading = content.get("reading")
    format = reading.get("format") if isinstance(reading, Mapping) else None
    return fields(
        {"hash_version": whole(), "reading": READING, "receipt": flag, "spec": SPEC},
        {
            "classes": listed(either(number(), class_label(MOST_LABEL)), 10_000),
            "compact": flag,
            "declared_classes": flag,
            "history": HISTORY,
            "names": fields(
                {
                    "budget": whole(0, 2**40),
                    "full_row": either(nothing, whole(1)),
                    "products": fields({"bytes": whole(0, 2**38), "full_row": either(nothing, whole(1))}),
                }
            ),
            "run": either(nothing, checkpoint_shape(format)),
        },
    )


# ---- what a receipt keeps besides the cells ----

_MAYBE = either(nothing, number())
_FILE = fields({"bytes": whole(), "sha256": sha256})
RUN = fields(
    {
        "files": either(nothing, listed(_FILE, MOST_FILES, 1)),
        "batches": either(nothing, _ROWS_FINGERPRINT),
        "passes": whole(1, MOST_PASSES),
        "holdout": either(nothing, whole(2)),
        "skip": flag,
        "rows": whole(),
        "bad_rows": whole(),
        "order": ORDER,
    }
)
SHARED = fields({"regret": number(), "bound": number()})
MILESTONE = fields(
    {
        "read": whole(1),
        "rows": whole(),
        "weight": _WEIGHT,
        "shared": SHARED,
        **dict.fromkeys(["loss", "scale", "excess", "regret", "tight", "bound", "theorem"], number()),
        **dict.fromkeys(["gain", "ratio", "post_hoc", "const"], _MAYBE),
    }
)
PROVENANCE = {
    "runs": listed(RUN, MOST_RUNS),
    "milestones": listed(MILESTONE, 1000),
}
