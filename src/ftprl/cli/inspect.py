"""`ftprl inspect`: the settings, the loss and the weights of a model."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftprl.cli.parameters import argument, command, flag, option
from ftprl.terminal import cut, table, wrapped

# A description of each expert of the mixture whose name is not a learning-rate scale.
_EXPERTS = {
    "scores": "combines the scores of all scales and of the coin",
    "columns": "combines them with the columns of frequent features",
    "drift": "combines them with a constant that follows the labels; predictions leave it out",
    "coin": "coin betting, no learning rate",
    "offset": "predicts from the labels alone",
    "majority": "predicts the class that most labels had",
}
_BASELINE = "from the labels before each row"


@command
@argument("model", "Model or checkpoint", type=Path)
@option("--top", help="Number of largest weights to show [default: 10]", type=int)
@option("--match", help="Pattern that the names of shown features match, such as 'city=*'", metavar="GLOB")
@option(
    "--row",
    help="Row to explain: print what each of its features adds to the score. A line in the format of the training data,"
    " a CSV line with the model's columns, or a JSON object",
)
@option("--export", help="File to write all weights to, by name: .csv or .parquet", type=Path)
@flag("--json", "as_json", help="Print one line of JSON instead of a table")
def inspect(
    model: Path, top: int | None, match: str | None, row: str | None, export: Path | None, as_json: bool
) -> None:
    """Show the settings, the loss and the largest weights of a model."""
    from ftprl.data.files import shown
    from ftprl.errors import InvalidInput
    from ftprl.linear.model import Model
    from ftprl.runlog.events import line
    from ftprl.training.summary import summary_of

    if top is not None and top < 0:
        raise InvalidInput(f"--top needs a number of at least 0, got {top}; pass one.")
    other = "--row" if row is not None else "--export" if export is not None else None
    for name, value in (("--top", top), ("--match", match)):
        if value is not None and other is not None:
            raise InvalidInput(f"{name} is for the largest weights, got {other} as well; drop one.")
    if as_json and other == "--export":
        raise InvalidInput("--json is for what is printed, got --export alone; drop one.")
    top = 10 if top is None else top
    loaded = Model.load(model)
    if export is not None:
        from ftprl.linear.weights import export as write

        print(f"{write(loaded, export)} weights; wrote {export}", file=sys.stderr)
    if row is not None:
        explanation = loaded.explain(row)
        print(line(explanation.to_dict()) if as_json else str(explanation))
    elif export is None:
        facts = summary_of(loaded, str(model), top, match)
        print(line(facts) if as_json else "\n".join(_table(facts)))
        if match is not None and top > 0 and not facts["largest"] and not as_json:
            print(f"\nno feature with a weight has a name that matches {shown(match)!r}")


def _table(facts: dict[str, Any]) -> list[str]:
    """Return the lines of the table."""
    from ftprl.cli.column_table import kind_lines
    from ftprl.cli.live import model_settings, named, setting
    from ftprl.cli.spelling import as_typed
    from ftprl.data.files import shown
    from ftprl.runlog.rows import as_order, checked, measured, name_of_check

    spec, reading, history = facts["spec"], facts["reading"], facts["history"]
    lines = [
        *wrapped(
            f"{'file':<14} {shown(facts['file'])}, {facts['bytes']} bytes, sha256 {facts['sha256'][:16]}...", 0, 15
        ),
        *named(
            "model",
            f"{spec['loss']} loss, {' '.join(f'{k}={setting(v)}' for k, v in model_settings(spec).items())}",
            14,
        ),
        *wrapped(f"{'table':<14} {spec['dim']} cells, {facts['occupied']} in use, {_nonzero(facts)}", 0, 15),
        *_classes(facts),
    ]
    if reading:
        lines.append(f"{'read as':<14} {reading.get('format')}, hash seed {reading.get('seed')}")
    if facts["positive"] is not None:
        lines += named("positive", f"{shown(facts['positive'])}: predictions are its probability", 14)
    columns = reading.get("columns") or {}
    lines += kind_lines({name: columns[name] for name in sorted(columns, key=_by_number)}, 14, 20)
    lines += _sampled(columns, reading.get("sampled") or {})
    if columns:
        lines.append(f"{'missing':<14} {reading.get('missing', 'ignore')}")
    lines += _combined(reading)
    if history:
        lines.append(f"{'rows':<14} {history['rows']}, {history['bad_rows']} bad rows skipped")
        if (delay := history.get("delay")) is not None:
            after = f"{delay} row{'s'[: delay != 1]} after their row"
            lines.append(f"{'labels':<14} arrived {after}; losses are those of the predictions at the row")
        lines.append(f"{'order':<14} {as_order(history.get('order'))}")
        total = facts["progressive"]
        if history["progressive"][2]:
            first = ", in the first pass" if _has_later_passes(facts) else ""
            rows = f"{history['progressive'][2]:,} rows{first}, each predicted before it was learned"
            lines += named("progressive", f"{rows}: {measured(spec['loss'], *total.values())}", 14)
        if (drawn := facts["sample"]) is not None:
            said = f"{drawn.pop('rows'):,} rows, drawn at random from those of the last run"
            lines += named("learned last", f"{said}: {measured(spec['loss'], *drawn.values())}", 14)
        if facts["holdout"] is not None:
            means = measured(spec["loss"], *facts["holdout"].values())
            lines += named("held out", f"{means}, over {history['holdout'][2]} rows", 14)
        if facts["check"] is not None:
            lines += named(name_of_check(facts["check"]), checked(spec["loss"], facts["check"]), 14)
        for text, *options in history.get("cautions", {}).values():
            lines += named("warning", as_typed(text, tuple(options)), 14)
    if facts["compact"]:
        lines.append(f"{'compact':<14} only what predictions need: it cannot be trained further or certified")
    if facts["unfinished"]:
        lines.append(f"{'checkpoint':<14} of a run after {facts['unfinished']['rows']} rows; continue it with --resume")
    lines += _names(facts["names"]) + _bounds(facts["bounds"])
    lines += _mixture(facts)
    return lines + _weights(facts["largest"])


def _combined(reading: Mapping[str, Any]) -> list[str]:
    """Return lines on features that are made of several words or columns."""
    from ftprl.data.files import shown
    from ftprl.data.options import GRAMS, as_passed

    typed = [f"--{name.replace('_', '-')} {as_passed(reading[name])}" for name in GRAMS if reading.get(name)]
    pairs = ", ".join(":".join(map(shown, terms)) for terms in reading.get("interactions") or ())
    lines = [f"{'n-grams':<14} {' '.join(typed)}"] if typed else []
    return lines + ([f"{'interactions':<14} {pairs}"] if pairs else [])


def _classes(facts: dict[str, Any]) -> list[str]:
    """Return the intercept; with several classes, their labels and the intercept of each."""
    from ftprl.data.files import shown
    from ftprl.linear.classes import shown_label

    if facts["classes"] is None:
        return [f"{'intercept':<14} {facts['intercept']:.6g}"]
    names = [shown(shown_label(label)) for label in facts["classes"]]
    pairs = [f"{name} {own:.4g}" for name, own in zip(names, facts["intercept"], strict=True)]
    more = facts["spec"]["classes"] - len(names)
    open_ = f"; {more} more may come" if more else ""
    classes = wrapped(f"{'classes':<14} {len(names)}: {', '.join(names)}{open_}", 0, 15)
    return [*classes, *wrapped(f"{'intercepts':<14} {', '.join(pairs)}", 0, 15)]


def _weights(largest: list[dict[str, Any]]) -> list[str]:
    """Return the largest weights, with each feature at its unit, and the coefficients of its value; names are
    escaped.
    """
    from ftprl.data.files import shown

    if not largest:
        return []
    has_labels = largest[0]["label"] is not None
    numbers = (f"{'weight*unit':>12}", f"{'weight':>12}", f"{'rows':>10}", f"{'cell':>10}")
    rows = [(*numbers, *([" class"] if has_labels else []), " feature")]
    for entry in largest:
        seen = "-" if entry["seen"] is None else f"{entry['seen']:.0f}"
        weights = (f"{entry['unit_weight']:.6g}", f"{entry['weight']:.6g}")
        label = [cut(f" {shown(entry['label'])}", 25)] if has_labels else []
        rows.append((*weights, seen, f"{entry['cell']}", *label, f" {shown(entry['name'])}"))
    return ["", *table(rows, range(4), drop=(3, 2), least=16, gap=" ")]


def _names(names: dict[str, Any] | None) -> list[str]:
    """Return a line on how many features have names, and whether the memory for names was full."""
    if names is None:
        return []
    text = f"{names['count']} features, and about {names['collisions']} more share their cells (hash collisions)"
    text += f"; {names['bytes']} of at most {names['budget']} bytes"
    full = [f"full at row {names['full_row']}"] if names["full_row"] is not None else []
    if names["products_full_row"] is not None:
        full.append(f"the quarter for interactions full at row {names['products_full_row']}")
    if full:
        text += f", {', '.join(full)}: {names['unnamed']} cells have no name (--names)"
    return wrapped(f"{'names':<14} {text}", 0, 15)


def _bounds(bounds: dict[str, int | None] | None) -> list[str]:
    """Return a line on how many weights have bounds by name."""
    if bounds is None:
        return []
    shared = "" if bounds["shared"] is None else f", {bounds['shared']} of them in a cell with other names"
    return [f"{'bounds':<14} {bounds['cells']} weights have bounds by name{shared}"]


def _sampled(columns: Mapping[str, str], sampled: Mapping[str, list[float]]) -> list[str]:
    """What the model keeps of the sample: where buckets begin, and from when the trend of a date counts."""
    from ftprl.data.kinds import KIND

    return [KIND[columns[name]].about(name, numbers) for name, numbers in sampled.items() if name in columns]


def _nonzero(facts: dict[str, Any]) -> str:
    """Return the number of nonzero weights, with a note if there are several scales."""
    scales = "" if facts["mixture"] is None else " in at least one scale"
    return f"{facts['nonzero']} with a nonzero weight{scales}"


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts C2 before C10."""
    return [(int(part[:18]), part) if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _mixture(facts: dict[str, Any]) -> list[str]:
    """Return the scales, their weights and losses beside the baseline's, and a note if the grid may be too short."""
    if facts["mixture"] is None:
        return []
    names, weights, losses = (facts["mixture"][key] for key in ("names", "weights", "losses"))
    again = " over all passes: later ones meet rows that were learned before" if _has_later_passes(facts) else ""
    rows = [(f"{'expert':>14}", "mixture weight", f"{'mean loss':>14}", again)]
    for name, share, loss in zip(names, weights, losses, strict=True):
        what = f" {_EXPERTS[name]}" if name in _EXPERTS else ""
        rows.append((name, f"{share:.6g}", _mean(loss, facts["mixture_weight"]), what))
    if math.isfinite(facts["baseline_loss"]):
        mean = _mean(facts["baseline_loss"], facts["mixture_weight"])
        rows.append(("baseline", "", mean, f" {_BASELINE}"))
    lines = ["", *table(rows, range(3), drop=(3,), least=30, gap=" ")]
    scales, dropped = facts["spec"]["scale"], facts["spec"].get("retired", ())
    if dropped:
        lines.append(f"{'dropped':>14} {', '.join(f'{h:g}' for h in dropped)}")
    best = min(range(len(scales)), key=losses.__getitem__)
    every = sorted((*scales, *dropped))
    if scales[best] in (every[0], every[-1]):
        end, other = ("smallest", "smaller") if scales[best] == every[0] else ("largest", "larger")
        lines.append(f"note: the best scale, {scales[best]:g}, is the {end}; {other} ones may be better (--scale)")
    return lines


def _has_later_passes(facts: dict[str, Any]) -> bool:
    """Return True if the experts' losses include rows that were learned before they were predicted."""
    first = facts["history"]["progressive"][1] if facts["history"] else 0.0
    return bool(0.0 < first < facts["mixture_weight"] * (1.0 - 1e-9))


def _mean(loss: float, weight: float) -> str:
    """Return a mean loss in few digits."""
    from ftprl.runlog.yardstick import digits

    return digits(loss / weight if weight else 0.0)
