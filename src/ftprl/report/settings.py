"""The settings of a run, each with a short description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ftprl.data.kinds import KINDS
from ftprl.runlog.reader import RunLog

_DESCRIPTIONS = {
    "version": "version of ftprl",
    "format": "format of the data",
    "files": "",
    "labels": "how labels were read",
    "loss": "loss function",
    "dim": "number of weights (cells of the hashed table)",
    "scale": "learning-rate scales; several are learned side by side",
    "beta": "initial regularisation strength",
    "l1": "L1 penalty: sparse weights",
    "l2": "L2 penalty",
    "lower": "lower bound of every weight",
    "upper": "upper bound of every weight",
    "bounds": "bounds of weights by the names of their features",
    "intercept": "whether an intercept is learned",
    "seed": "seed of the feature hash",
    "float64": "double precision",
    "tau": "the quantile that quantile loss predicts",
    "coin": "a coin-betting expert",
    "dense": "an expert sees frequent features as columns",
    "calibrate": "how probabilities are calibrated",
    "retired": "scales that were dropped",
    "retired_row": "row after which they were dropped",
    "dropped_experts": "experts that were dropped on the way",
    "missing": "what a missing value of a column becomes",
    "passes": "passes over the data",
    "holdout_every": "every N-th row is held out",
    "receipt": "whether a receipt was kept",
    "keeps_best_pass": "whether the number of passes is chosen by the held-out loss",
    "delay": "rows after which a label arrives",
    "order": "order in which the rows were learned",
    "order_seed": "seed of the random order",
    "waiting": "rows that wait at most, to be learned last in random order",
    "admit": "rows with a feature before it is learned",
}
_COLUMNS = (*KINDS[1:], "ignore")
_HIDDEN = ("event", "rows", "pass", "seconds", "spec", "data", "columns", "profile")


def settings(log: RunLog) -> list[tuple[str, str, str]]:
    """Return name, value and description of each setting."""
    first = log.settings
    data = first.get("data") if isinstance(first.get("data"), Mapping) else {}
    spec = first.get("spec") if isinstance(first.get("spec"), Mapping) else {}
    assert isinstance(data, Mapping)
    assert isinstance(spec, Mapping)
    values = {**{k: v for k, v in data.items() if k != "intercept"}, **spec, **first}
    rows = [(str(k), _value(v), _DESCRIPTIONS.get(str(k), "")) for k, v in values.items() if k not in _HIDDEN]
    order = list(_DESCRIPTIONS)
    rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    at = next((i for i, row in enumerate(rows) if row[0] == "loss"), len(rows))
    return rows[:at] + _columns(data.get("columns"), data.get("profile")) + rows[at:]


def _columns(columns: Any, profile: Any) -> list[tuple[str, str, str]]:
    """Return the settings of the columns."""
    if not isinstance(columns, Mapping):
        return []
    if isinstance(profile, list) and profile:
        return [_profiled(column) for column in profile if isinstance(column, Mapping)]
    rows = []
    for kind in dict.fromkeys((*_COLUMNS, *map(str, columns.values()))):
        names = [str(name) for name, k in columns.items() if str(k) == kind]
        if names:
            rows.append((kind, ", ".join(names), f"{len(names)} column{'s'[: len(names) > 1]}"))
    return rows


def _profiled(column: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a column's name, its kind with an example, and what the first rows show about it."""
    counts = f"{_value(column.get('distinct'))} distinct, {_value(column.get('missing'))} missing in the first rows"
    features = f"; features: {column['features']}" if column.get("features") not in (None, "-") else ""
    advice = f"; {column['advice']}" if column.get("advice") else ""
    return f"column {column.get('name')}", f"{column.get('kind')}: {column.get('example')}", counts + features + advice


def _value(value: Any) -> str:
    """Return a setting's value as text.

    >>> _value([1, 2.5]), _value(1_000_000), _value(True)
    ('1, 2.5', '1,000,000', 'yes')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, Mapping):
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) < 10**15 else str(value)
