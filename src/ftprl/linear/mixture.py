"""Several scales in one table: their weights in the mixture, and which of them a long run can do without."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals

Vector = NDArray[np.float64]
State = Mapping[str, Vector]
Cells = NDArray[np.float32] | NDArray[np.float64]

WINDOW = 4  # the scales that stay
FIRST_ROW = 2**17  # earlier, a stream may still change its mind: docs/scales.md
TOLERANCE = 1.001
FIRST_COIN_ROW = 2**14
COIN_TOLERANCE = 0.01
_LARGEST_GAP = 1  # of `hedge`
_USUAL_SCALE, _USUAL_WIDTH = 0.2, 1.5  # of the weights at the start: src/core/learners/multi_scale.cpp
_FIRST_MIXTURE = 0.5  # of the weight with which held-out rows start, that of the mixture of the first pass
LATEST = 2  # the row of `windows` with the sums at the last power of two


@final
class Mixture(NamedTuple):
    """The experts of a mixture: a name, a weight and a total loss each.

    The scales come first, then the stack, the offset, which is the prediction from the labels alone (docs/labels.md),
    and last the coin (docs/scales.md).
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    losses: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return self._asdict()


def experts_of(spec: Spec) -> tuple[str, ...]:
    """The names of the experts of a mixture.

    >>> experts_of(Spec(loss="squared", scale=(0.1, 1.0)))
    ('0.1', '1', 'stack', 'offset')
    """
    loss = spec.scalar_loss()
    offset, majority = spec.several and loss.has_offset, spec.several and loss.rule == "classes"
    others = {"stack": spec.stacked, "offset": offset, "majority": majority, "coin": spec.coin}
    return (*(f"{h:g}" for h in spec.scales), *(name for name, present in others.items() if present))


def mixture_of(state: State, spec: Spec) -> Mixture | None:
    """The mixture that the arrays of an engine describe; None when there is nothing to mix."""
    names = experts_of(spec)
    n = len(names)
    if n == 1:
        return None
    return Mixture(names, tuple(state["w"][:n].tolist()), tuple(state["totals"][:n].tolist()))


def leader_of(state: State, count: int) -> int:
    """The scale with the smallest total loss, the first of equals.

    Not the one with the largest weight: where the stack has nearly all of it, the weights of the scales are noise.
    """
    return int(np.argmin(state["totals"][:count]))


def rates_of(state: State, spec: Spec, progress: LossTotals) -> dict[str, Any] | None:
    """What choosing another learning rate could have saved: the best scale with its loss; None with one scale.

    `guaranteed` is how much more than each scale the mixture loses at most, whatever the rows; None for other losses
    than the log loss, whose guarantee is known afterwards only (docs/scales.md, docs/labels.md). Nothing is known of
    the scales that were `dropped` after row `dropped_row`.
    """
    if not spec.several:
        return None
    k = leader_of(state, len(spec.scales))
    own: dict[str, Any] = {"scale": spec.scales[k], "loss": float(state["totals"][k]), "mixture": progress.loss}
    own |= {"dropped": list(spec.retired), "dropped_row": spec.retired_row}
    return own | {"guaranteed": _guaranteed(state, spec, progress.rows, spec.scales[k])}


def _guaranteed(state: State, spec: Spec, rows: int, scale: float) -> float | None:
    """The proved excess of the mixture over a scale, with the log loss."""
    if spec.scalar_loss().has_units:
        return None
    handed = 1.0 + math.log(max(1.0, rows / 1024))
    experts = len(experts_of(spec)) + len(spec.retired) + spec.coin_retired
    # A row that weighs more than all before it makes the weights more equal, as if they had begun so.
    largest, first = float(state["facts"][0]), _first_weight(spec, scale)
    return -math.log(first) + (largest - 1.0) * math.log(experts) + largest * handed


def _first_weight(spec: Spec, scale: float) -> float:
    """The weight that a scale had before the first row: docs/scales.md."""
    scales = [*spec.scales, *spec.retired]
    has_coin = spec.coin or spec.coin_retired
    others = float(spec.stacked + has_coin)
    if not has_coin:
        return 1.0 / (len(scales) + others)
    weights = {h: 2.0 / (1.0 + (math.log(h / _USUAL_SCALE) / _USUAL_WIDTH) ** 2) for h in scales}
    return weights[scale] / (math.fsum(weights.values()) + others)


def restart(state: State, experts: int, part: float, *, is_log_loss: bool) -> None:
    """Where held-out rows start from: half of it the mixture as it is, as one expert more, and half each expert.

    The weight of each expert is as after `part` of its total loss, without any share. One scale has no experts and
    mixes nothing.
    """
    if experts == 0:
        return
    # The loss that lowers a weight by a factor of e: the largest weight of a row, or what AdaHedge came to.
    heat = float(state["facts"][0]) if is_log_loss else float(state["hedge"][_LARGEST_GAP]) / math.log(experts)
    first = state["w"][:experts].tolist()
    totals = [part * total for total in state["totals"][:experts].tolist()]
    own = [math.exp((min(totals) - total) / heat) for total in totals] if heat > 0.0 else first  # none differed so far
    own = [weight / math.fsum(own) for weight in own]
    half = _FIRST_MIXTURE
    state["first"][:experts], state["first_part"][...] = first, half
    state["weighed"][:experts] = [(1.0 - half) * weight for weight in own]
    state["w"][:experts] = [half * a + (1.0 - half) * b for a, b in zip(first, own, strict=True)]


def next_review(rows: int, *, coin: bool = False) -> int:
    """The next number of rows learned at which it is decided whether scales, or the coin, are dropped.

    >>> next_review(5), next_review(2**17), next_review(5, coin=True)
    (131072, 262144, 16384)
    """
    return max(min(FIRST_ROW, FIRST_COIN_ROW) if coin else FIRST_ROW, 1 << rows.bit_length())


def is_review(rows: int) -> bool:
    """Whether it is decided now: at powers of two, from `FIRST_ROW` on."""
    return rows >= FIRST_ROW and rows & (rows - 1) == 0


def has_lost(mixture: Mixture, rows: int) -> bool:
    """Whether the coin, the last expert, can be dropped now: its loss is more than 1 % above that of the best expert.

    >>> has_lost(Mixture(("0.1", "1", "coin"), (0.5, 0.5, 0.0), (10.0, 9.0, 9.2)), 2**14)
    True
    """
    if rows < FIRST_COIN_ROW or rows & (rows - 1) != 0:
        return False
    best = min(mixture.losses[:-1])
    return mixture.losses[-1] - best > COIN_TOLERANCE * abs(best)


def window_of(state: State, count: int, rows: int) -> int | None:
    """The first of four neighbouring scales that do as well as all of them, or None.

    Over the last three quarters of the rows up to the last power of two, in blocks of 1024, following the best scale of
    the window block by block must cost at most 1.001 times what following the best of all scales does.
    """
    if count <= WINDOW or rows < FIRST_ROW:
        return None
    *sums, everything = state["windows"][LATEST].tolist()
    least = min(sums)
    return sums.index(least) if least <= TOLERANCE * everything else None


def move(old: State, new: State, first: int, before: int, count: int) -> None:
    """Carry the state of a mixture of `before` scales over to one with `count` of them, from number `first` on."""
    others = range(before, len(old["u"]))  # columns of the stack that are no scales
    columns = [*range(first, first + count), *others]
    new["P"][...], new["u"][...] = old["P"][np.ix_(columns, columns)], old["u"][columns]
    for name in new.keys() & {"facts", "hedge", "labels"}:
        new[name][...] = old[name]
    kept = [*range(first, first + count), *range(before, len(old["w"]))]
    for name in new.keys() & {"w", "totals", "seen"}:
        new[name][...] = old[name][kept]
    total, kept_experts = np.add.accumulate(new["w"])[-1], len(kept)  # a sum in order, whatever NumPy's version
    # Those that stay may have had no weight at all: then they begin anew with equal weights.
    new["w"][:kept_experts] = new["w"][:kept_experts] / total if total > 0 else 1.0 / kept_experts
