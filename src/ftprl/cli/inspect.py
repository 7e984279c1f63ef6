"""`ftprl inspect`: what a model is and what it has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def inspect(
    model: Annotated[Path, typer.Argument(help="A model or a checkpoint.")],
    top: Annotated[int, typer.Option(help="How many of the largest weights.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON instead of a table.")] = False,
) -> None:
    """Show a model's settings, its size, and its largest weights by cell."""
    from ftprl.errors import InvalidInput
    from ftprl.runlog.events import line
    from ftprl.training.summary import summary

    if top < 0:
        raise InvalidInput(f"--top needs a number of at least 0, got {top}; pass one.")
    told = summary(model, top)
    print(line(told) if as_json else "\n".join(_table(told)))


def _table(told: dict[str, Any]) -> list[str]:
    from ftprl.data.files import shown

    spec, reading, history = told["spec"], told["reading"], told["history"]
    lines = [
        f"{'file':<14} {shown(told['file'])}, {told['bytes']} bytes, sha256 {told['sha256'][:16]}...",
        f"{'model':<14} {spec['loss']}, {' '.join(f'{k}={v}' for k, v in spec.items() if k not in ('loss', 'dim'))}",
        f"{'table':<14} {spec['dim']} cells, {told['occupied']} occupied, {told['nonzero']} weights not 0",
        f"{'intercept':<14} {told['intercept']:.6g}",
    ]
    if reading:
        lines.append(f"{'read as':<14} {reading.get('format')}, hash seed {reading.get('seed')}")
    for kind in ("label", "weight", "categorical", "numeric", "text", "ignore"):
        names = [shown(name) for name, k in (reading.get("columns") or {}).items() if k == kind]
        if names:
            lines.append(f"{kind:<14} {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
    if history:
        lines.append(f"{'rows':<14} {history['rows']}, {history['bad_rows']} bad ones left out")
        for name in ("progressive", "holdout"):
            loss, weight, rows = history[name]
            if rows:
                lines.append(f"{name:<14} mean loss {loss / weight:.6f} over {rows} rows")
    if told["unfinished"]:
        lines.append(f"{'checkpoint':<14} of a run after {told['unfinished']['rows']} rows; go on with --resume")
    lines += _mixture(told)
    if told["largest"]:
        lines += ["", f"{'cell':>14} {'weight':>14}"]
        lines += [f"{entry['cell']:>14} {entry['weight']:>14.6g}" for entry in told["largest"]]
    return lines


def _mixture(told: dict[str, Any]) -> list[str]:
    """The scales, their weights and losses, and whether the grid may be too short."""
    if told["mixture"] is None:
        return []
    names, weights, losses = (told["mixture"][key] for key in ("names", "weights", "losses"))
    lines = ["", f"{'scale':>14} {'weight':>14} {'mean loss':>14}"]
    for name, share, loss in zip(names, weights, losses, strict=True):
        lines.append(f"{name:>14} {share:>14.6g} {loss / told['weight'] if told['weight'] else 0.0:>14.6f}")
    scales = told["spec"]["scale"]
    if told["spec"]["retired"]:
        lines.append(f"{'retired':>14} {', '.join(f'{h:g}' for h in told['spec']['retired'])}")
    best = min(range(len(scales)), key=losses.__getitem__)
    every = sorted((*scales, *told["spec"]["retired"]))
    if scales[best] in (every[0], every[-1]):
        lines.append(f"note: the best scale, {scales[best]:g}, is at an end of the grid; add more beyond it")
    return lines
