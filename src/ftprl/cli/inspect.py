"""`ftprl inspect`: the settings, the loss and the weights of a model."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any

import typer


def inspect(
    model: Annotated[Path, typer.Argument(help="Model or checkpoint")],
    top: Annotated[int, typer.Option(help="Number of largest weights to show")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of a table")] = False,
) -> None:
    """Show a model's settings, its size, its loss beside the baseline's, and its largest weights by cell."""
    from ftprl.errors import InvalidInput
    from ftprl.runlog.events import line
    from ftprl.training.summary import summary

    if top < 0:
        raise InvalidInput(f"--top needs a number of at least 0, got {top}; pass one.")
    facts = summary(model, top)
    print(line(facts) if as_json else "\n".join(_table(facts)))


def _table(facts: dict[str, Any]) -> list[str]:
    from ftprl.cli.live import model_settings, setting
    from ftprl.data.files import shown
    from ftprl.losses import SCALAR_LOSSES
    from ftprl.runlog.yardstick import compared

    spec, reading, history = facts["spec"], facts["reading"], facts["history"]
    lines = [
        f"{'file':<14} {shown(facts['file'])}, {facts['bytes']} bytes, sha256 {facts['sha256'][:16]}...",
        f"{'model':<14} {spec['loss']}, {' '.join(f'{k}={setting(v)}' for k, v in model_settings(spec).items())}",
        f"{'table':<14} {spec['dim']} cells, {facts['occupied']} occupied, {_nonzero(facts)}",
        f"{'intercept':<14} {facts['intercept']:.6g}",
    ]
    if reading:
        lines.append(f"{'read as':<14} {reading.get('format')}, hash seed {reading.get('seed')}")
    for kind in ("label", "weight", "categorical", "numeric", "text", "ignore"):
        names = [shown(name) for name, k in (reading.get("columns") or {}).items() if k == kind]
        names.sort(key=_by_number)
        if names:
            lines.append(f"{kind:<14} {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
    if history:
        lines.append(f"{'rows':<14} {history['rows']}, {history['bad_rows']} bad ones left out")
        rmse = SCALAR_LOSSES[spec["loss"]].rmse
        for name in ("progressive", "holdout"):
            if history[name][2]:
                means = compared(*facts[name].values(), rmse=rmse)
                lines.append(f"{name:<14} mean loss {means}, over {history[name][2]} rows")
    if facts["unfinished"]:
        lines.append(f"{'checkpoint':<14} of a run after {facts['unfinished']['rows']} rows; continue it with --resume")
    lines += _mixture(facts)
    if facts["largest"]:
        lines += ["", f"{'cell':>14} {'weight':>14}"]
        lines += [f"{entry['cell']:>14} {entry['weight']:>14.6g}" for entry in facts["largest"]]
    return lines


def _nonzero(facts: dict[str, Any]) -> str:
    """How many weights are not 0, and which are meant, of several scales."""
    scales = "" if facts["mixture"] is None else " in some scale; those below are of the leading scale"
    return f"{facts['nonzero']} weights not 0{scales}"


def _by_number(name: str) -> list[tuple[int, str]]:
    """C2 before C10: numbers in names count as numbers."""
    return [(int(part[:18]), part) if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _mixture(facts: dict[str, Any]) -> list[str]:
    """The scales, their weights and losses beside the baseline's, and whether the grid may be too short."""
    if facts["mixture"] is None:
        return []
    names, weights, losses = (facts["mixture"][key] for key in ("names", "weights", "losses"))
    lines = ["", f"{'scale':>14} {'mixture weight':>14} {'mean loss':>14}"]
    for name, share, loss in zip(names, weights, losses, strict=True):
        lines.append(f"{name:>14} {share:>14.6g} {_mean(loss, facts['mixture_weight']):>14}")
    if math.isfinite(facts["baseline_loss"]):
        lines.append(f"{'baseline':>14} {'':>14} {_mean(facts['baseline_loss'], facts['weight']):>14}")
    scales = facts["spec"]["scale"]
    if facts["spec"]["retired"]:
        lines.append(f"{'retired':>14} {', '.join(f'{h:g}' for h in facts['spec']['retired'])}")
    best = min(range(len(scales)), key=losses.__getitem__)
    every = sorted((*scales, *facts["spec"]["retired"]))
    if scales[best] in (every[0], every[-1]):
        end, other = ("smallest", "smaller") if scales[best] == every[0] else ("largest", "larger")
        lines.append(f"note: the best scale, {scales[best]:g}, is the {end} one; {other} ones may be better (--scale)")
    return lines


def _mean(loss: float, weight: float) -> str:
    from ftprl.runlog.yardstick import digits

    return digits(loss / weight if weight else 0.0)
