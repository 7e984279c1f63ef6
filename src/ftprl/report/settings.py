"""The settings of a run, each with a word about what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ftprl.runlog.reader import Told

_WORDS = {
    "version": "of ftprl",
    "format": "of the data",
    "files": "",
    "labels": "how they were read",
    "loss": "what a wrong prediction costs",
    "dim": "cells in the table",
    "scale": "learning scales, side by side if several",
    "beta": "of the scheme",
    "l1": "pushes small weights to zero",
    "l2": "keeps weights small",
    "lower": "no weight below",
    "upper": "no weight above",
    "intercept": "a weight for every row",
    "seed": "of the feature hash",
    "float64": "cells of double precision",
    "tau": "which quantile, for that loss",
    "share": "handed round among the scales",
    "stack": "a further expert that combines the scales",
    "retired": "scales that were there at first",
    "passes": "over the data",
    "holdout_every": "every N-th row is never learned",
    "retire": "hopeless scales leave",
    "receipt": "kept",
}
_COLUMNS = ("label", "weight", "categorical", "numeric", "text", "ignore")
_HIDDEN = ("event", "rows", "pass", "seconds", "spec", "data", "columns")


def settings(told: Told) -> list[tuple[str, str, str]]:
    """Name, value and meaning."""
    begin = told.settings
    data = begin.get("data") if isinstance(begin.get("data"), Mapping) else {}
    spec = begin.get("spec") if isinstance(begin.get("spec"), Mapping) else {}
    assert isinstance(data, Mapping)
    assert isinstance(spec, Mapping)
    chosen = {**{k: v for k, v in data.items() if k != "intercept"}, **spec, **begin}
    rows = [(str(k), _value(v), _WORDS.get(str(k), "")) for k, v in chosen.items() if k not in _HIDDEN]
    order = list(_WORDS)
    rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    at = next((i for i, row in enumerate(rows) if row[0] == "loss"), len(rows))
    return rows[:at] + _columns(data.get("columns")) + rows[at:]


def _columns(columns: Any) -> list[tuple[str, str, str]]:
    if not isinstance(columns, Mapping):
        return []
    found = []
    for kind in dict.fromkeys((*_COLUMNS, *map(str, columns.values()))):
        names = [str(name) for name, k in columns.items() if str(k) == kind]
        if names:
            found.append((kind, ", ".join(names), f"{len(names)} column{'s'[: len(names) > 1]}"))
    return found


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) < 10**15 else str(value)
