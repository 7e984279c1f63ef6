"""From the sums of a receipt to its floor curves: what no fixed weights of a given length can be below.

For every u, by convexity, the loss of a scale minus that of u is at most A - S·u, with A the sum of g·x (and of the row
terms where steps are implicit) and S = g_{1:t}. By the dual norm of S / unit, S·u is at least -length |S / unit|, so

    loss(u)  >=  loss of the scale - A - length |S / unit|.

Neither a bounded set nor the absence of penalties is needed: S sums gradients of the loss alone.

With several classes of which some never came, u has weights for the n classes that came alone: what a model gives to
the others is added to S of these in equal parts, and `unseen_loss` is taken off the start (docs/classes.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from ftprl.linear.spec import Spec
from ftprl.receipt.ledger import Certifiable, StreamLedger
from ftprl.receipt.rounding import EPSILON, OPERATIONS, SECOND_ORDER, VALUE_PER_UNIT, hidden_by_rounding
from ftprl.runlog.floor import NORMS, FloorCurve, Norm


@final
@dataclass(frozen=True, slots=True)
class FloorLine:
    """One scale's line: the total loss at length 0, and its slope in each norm; rounding is already taken off."""

    scale: float
    start: float
    slopes: tuple[tuple[Norm, float], ...]

    def slope(self, norm: Norm) -> float:
        """How much of the loss is lost per unit of length; not a number where the norm was not computed."""
        return dict(self.slopes).get(norm, math.nan)

    def to_dict(self) -> dict[str, float]:
        """As JSON values."""
        return {"scale": self.scale, "start": self.start, **{f"slope_{name}": a for name, a in self.slopes}}


@final
@dataclass(frozen=True, slots=True)
class FloorLines:
    """The lines of all scales, and what lengths and losses are measured in."""

    unit: float
    least: float | None
    lines: tuple[FloorLine, ...]

    def curve(self, norm: Norm, loss: float, weight: float) -> FloorCurve:
        """The curve of one norm, for a run with this total loss."""
        lines = tuple((line.start, line.slope(norm)) for line in self.lines)
        return FloorCurve(norm, loss, weight, self.unit, lines, self.least)


NO_FLOOR = FloorLines(1.0, None, ())


def floor_lines(engine: Certifiable, sums: StreamLedger) -> FloorLines:
    """The lines of every scale from the sums over its coordinates."""
    spec, unit = engine.spec, unit_of_length(engine.spec, engine.label_unit)
    least = None if spec.scalar_loss().link == "log" else 0.0
    return FloorLines(unit, least, tuple(_line(engine, k, sums, unit) for k in range(len(spec.scales))))


def unit_of_length(spec: Spec, label_unit: float) -> float:
    """What a length is divided by: the unit of the labels where weights are in it, so that it does not matter."""
    loss = spec.scalar_loss()
    in_unit = loss.predicts_labels and label_unit > 0.0
    return label_unit if in_unit else 1.0


def unseen_loss(engine: Certifiable, k: int, weight: float) -> float:
    """How much lower the line of a scale starts where some classes never came, at most.

    With m the probability that the scale gave to these in a row, it is the sum of h(m) + m ln((N - n) / n), where h is
    the entropy of m and 1 - m: at most the weight of the rows times this of the mean m, as it is concave.
    """
    to_come = engine.classes_to_come
    if not to_come or not weight > 0.0:
        return 0.0
    seen = engine.spec.classes - to_come
    mean = most = to_come / engine.spec.classes  # with this mean it is largest
    if engine.spec.intercept:  # S of the intercept is the sum of the probabilities of one of them
        rounded = 1.0 + SECOND_ORDER * EPSILON * (engine.progress.rows + OPERATIONS)
        mean = min(to_come * float(engine.intercept_columns[-1, 2, k]) * rounded / weight, most)
    entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean) if mean > 0.0 else 0.0
    return weight * (entropy + mean * math.log(to_come / seen))


def _line(engine: Certifiable, k: int, sums: StreamLedger, unit: float) -> FloorLine:
    totals, rows, size = engine.sums_of(k), engine.row_sums(k), engine.rounding_sums(k)
    depth = engine.progress.rows + float(sums.count[k]) + OPERATIONS
    lost = SECOND_ORDER * EPSILON * 2.0 * depth * (size.linear_size + rows.sizes)
    norms = {
        "1": float(sums.S_largest[k]),
        "2": math.sqrt(float(sums.S_squares[k])),
        "inf": float(sums.S_sizes[k]),
    }
    slopes = tuple(
        (norm, unit * (norms[norm] + _slope_rounding(engine, k, sums, norm, norms[norm])))
        for norm in NORMS
        if norms[norm] == norms[norm]
    )
    start = rows.scale_loss - totals.linear - rows.terms - lost - unseen_loss(engine, k, rows.weight)
    return FloorLine(engine.spec.scales[k], start, slopes)


def _slope_rounding(engine: Certifiable, k: int, sums: StreamLedger, norm: Norm, value: float) -> float:
    """What rounding can have hidden of |S / unit|: docs/receipt.md."""
    rows, count, spec = engine.progress.rows, float(sums.count[k]), engine.spec
    spread = {"1": 1.0, "2": math.sqrt(count), "inf": count}[norm]  # the longest sum of |weight| unit of length 1
    gradients = VALUE_PER_UNIT * engine.rounding_sums(k).slopes * spread
    if not spec.scalar_loss().has_units:  # R is sqrt(G)
        hidden = hidden_by_rounding(rows, spec.float64)
        wide = math.sqrt(count) if norm == "inf" else 1.0
        gradients = min(gradients, math.sqrt(rows * hidden * float(sums.G[k])) * wide)
    if engine.classes_to_come:  # their S is added to that of each class that came
        gradients *= spec.classes / max(spec.classes - engine.classes_to_come, 1)
    return SECOND_ORDER * EPSILON * ((count + OPERATIONS) * value + (rows + OPERATIONS) * gradients)
