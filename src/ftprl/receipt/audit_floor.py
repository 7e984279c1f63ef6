"""The floor and the answers of a certificate once more, from a replay: what `verify` compares a receipt with.

As in `audit`, nothing here calls the modules that made the numbers. The formulas are in docs/receipt.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from ftprl.linear.mixture import experts_of
from ftprl.receipt.replay import Replay
from ftprl.receipt.replay_arrays import FACTS, FIRST_WEIGHTS

E = 2.0**-53


@final
@dataclass(frozen=True, slots=True)
class DualSums:
    """Of one scale: the largest |S / unit|, the sums of its squares and sizes, G in units, and the coordinates."""

    largest: float
    squares: float
    sizes: float
    G: float
    count: float


def audited_floor(replay: Replay, sums: list[DualSums], norm: str, length: float | None) -> dict[str, Any]:
    """The floor as a certificate states it; `length` is that of the fixed weights, before it is put into units."""
    loss = replay.spec.scalar_loss()
    unit = 1.0
    if loss.predicts_labels and replay.label_unit > 0.0:
        unit = replay.label_unit
    lines = [_line(replay, k, own, unit) for k, own in enumerate(sums)]
    least = None if loss.link == "log" else 0.0
    total = replay.row_sums(0).prediction_loss
    weight = replay.row_sums(0).weight
    return {
        "norm": norm,
        "unit": unit,
        "least": least,
        "length": None if length is None else length / unit,
        "lines": lines,
        "beaten_length": _last_above(lines, norm, total),
        "informative_length": None if least is None else _last_above(lines, norm, least * weight),
        "points": [],
    }


def _line(replay: Replay, k: int, own: DualSums, unit: float) -> dict[str, float]:
    rows, error, n, m = replay.row_sums(k), replay.rounding_sums(k), float(replay.tallies[2]), own.count
    rounded = 2.02 * E * (n + m + 64) * (error.linear_size + rows.sizes)
    rounded += _of_classes_to_come(replay, k)
    line = {"scale": replay.spec.scales[k], "start": rows.scale_loss - rows.terms - replay.sums_of(k).linear - rounded}
    # Of weights with length 1 the sum of |weight| unit is at most `reach`; |S / unit| is off by (n + 64) times this.
    for norm, dual, reach in (("1", own.largest, 1.0), ("2", math.sqrt(own.squares), m**0.5), ("inf", own.sizes, m)):
        gradients = 16.0 * (1 + 2.0**-20) * error.slopes * reach
        if not replay.spec.scalar_loss().has_units:
            stalled = math.exp(min(n * (2.0**-51 if replay.spec.float64 else 2.0**-22), 700.0))
            by_R = math.sqrt(n * min(stalled, max(n, 1.0)) * own.G * (m if norm == "inf" else 1.0))
            gradients = min(gradients, by_R)
        if replay.classes_to_come:
            gradients *= replay.spec.classes / max(replay.known, 1)
        line[f"slope_{norm}"] = unit * (dual + 1.01 * E * ((m + 64) * dual + (n + 64) * gradients))
    return line


def _of_classes_to_come(replay: Replay, k: int) -> float:
    """Fixed weights of the n classes that came, of N, may lose so much less than those of all N."""
    N, n, weight = replay.spec.classes, replay.known, replay.row_sums(k).weight
    if not replay.classes_to_come or not weight > 0.0:
        return 0.0
    given = weight * (N - n) / N  # to classes that never came, in sum over the rows; at most that of equal parts
    if replay.spec.intercept:
        S = float(replay.intercept_columns[n, 2, k])
        given = min(given, (N - n) * S * (1.0 + 2.02 * E * (float(replay.tallies[2]) + 64)))
    parts = [a * math.log(weight / a) for a in (given, weight - given) if a > 0.0]
    return math.fsum(parts) + given * math.log((N - n) / n)


def _last_above(lines: list[dict[str, float]], norm: str, level: float) -> float | None:
    """The largest length at which a line is not below a level; None where there is none, or no end to it."""
    ends = []
    for line in lines:
        height, slope = line["start"] - level, line[f"slope_{norm}"]
        if height >= 0.0:
            ends.append(height / slope if slope > 0.0 else math.inf)
    longest = max(ends, default=math.inf)
    return longest if math.isfinite(longest) else None


def audited_rates(replay: Replay) -> dict[str, Any] | None:
    """Return the best scale with its loss, and what the mixture is guaranteed to lose at most to it."""
    spec, state = replay.spec, replay.state
    if not spec.several:
        return None
    totals = state["totals"].tolist()[: len(spec.scales)]
    k, T, promised = totals.index(min(totals)), float(replay.tallies[2]), None
    if not spec.scalar_loss().has_units:
        prior = [2.0 / (1.0 + (math.log(h / 0.2) / 1.5) ** 2) for h in (*spec.scales, *spec.retired)]
        prior += [FIRST_WEIGHTS.get(name, 1.0) for name in (*experts_of(spec)[len(totals) :], *spec.dropped_experts)]
        heaviest = float(state["facts"][FACTS.index("largest_weight")])
        promised = heaviest * (1.0 + (math.log(T / 1024) if T > 1024 else 0.0))
        promised += math.log(sum(prior) / prior[k]) + (heaviest - 1.0) * math.log(len(prior))
    dropped = {"dropped": list(spec.retired), "dropped_row": spec.retired_row}
    numbers = {"scale": spec.scales[k], "loss": totals[k], "mixture": float(replay.tallies[0])}
    return numbers | dropped | {"guaranteed": promised}
