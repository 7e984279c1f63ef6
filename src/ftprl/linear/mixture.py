"""The experts of a mixture: their names and weights, and which of them a long run can do without."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import NEWTONS, OTHER_PRIORS
from ftprl.linear.spec import DROPPABLE, Spec
from ftprl.linear.totals import LossTotals

Vector = NDArray[np.float64]
State = Mapping[str, Vector]
Cells = NDArray[np.float32] | NDArray[np.float64]

WINDOW = 4  # the scales that stay
FIRST_ROW = 2**17  # earlier, a stream may still change its mind: docs/scales.md
TOLERANCE = 1.001
FIRST_DROP_ROW = 2**14  # of experts that are no scales
BEHIND = 0.01  # of the loss of the best other expert: an expert whose loss is larger by more is dropped
NEEDED = 0.001  # of the loss of the mixture: an expert is dropped if the mixture without it loses less than this more
_LARGEST_GAP, _LARGEST_WEIGHT = 1, 3  # of `facts`
_LATEST_OCTAVE = 1  # the row of `octave` and `without` with the sums at the last power of two
_USUAL_SCALE, _USUAL_WIDTH = 0.2, 1.5  # of the scales that start with the largest weights
_FIRST_MIXTURE = 0.5  # of the weight with which held-out rows start, that of the mixture of the first pass
LATEST = 2  # the row of `windows` with the sums at the last power of two


@final
class NewtonKind(NamedTuple):
    """An entry of the list of Newton experts in the core: src/core/learn/experts.cpp."""

    name: str
    letter: str  # in the names of its arrays
    first_weight: float
    sees_columns: bool
    drifts: bool  # whether its constant does: predictions leave such an expert out
    may_go: bool


NEWTON_KINDS = tuple(NewtonKind(*entry) for entry in NEWTONS)
_OFFSET, _COIN = OTHER_PRIORS
_FIRST_WEIGHTS = {kind.name: kind.first_weight for kind in NEWTON_KINDS}
_FIRST_WEIGHTS |= {"offset": _OFFSET, "majority": _OFFSET, "coin": _COIN}


@final
class Mixture(NamedTuple):
    """The experts of a mixture: a name, a weight and a total loss each.

    The scales come first, then the Newton experts (`scores`, `columns` and `drift`), the offset, which predicts from
    the labels alone (docs/labels.md), and last the coin (docs/scales.md).
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    losses: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return self._asdict()


def experts_of(spec: Spec) -> tuple[str, ...]:
    """Return the names of the experts of a mixture that were not dropped, in the order of their weights.

    >>> experts_of(Spec(loss="squared", scale=(0.1, 1.0)))
    ('0.1', '1', 'scores', 'drift', 'offset')
    """
    loss = spec.scalar_loss()
    of_labels = spec.several and not loss.has_classes
    present = {
        **{kind.name: spec.stacked and (spec.dense or not kind.sees_columns) for kind in NEWTON_KINDS},
        "offset": of_labels and loss.rule != "classes",
        "majority": of_labels and loss.rule == "classes",
        "coin": spec.coin,
    }
    others = (name for name, is_present in present.items() if is_present and name not in spec.dropped_experts)
    return (*(f"{h:g}" for h in spec.scales), *others)


def mixture_of(state: State, spec: Spec) -> Mixture | None:
    """Return the mixture that the arrays of an engine describe; None when there is nothing to mix."""
    names = experts_of(spec)
    n = len(names)
    if n == 1:
        return None
    return Mixture(names, tuple(state["w"][:n].tolist()), tuple(state["totals"][:n].tolist()))


def leader_of(state: State, count: int) -> int:
    """The scale with the smallest total loss, the first of equals.

    Not the one with the largest weight: where another expert has nearly all of it, the weights of scales are noise.
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
    """Return the proved excess of the mixture over a scale: a number for the log loss and for classes.

    A dropped expert leaves its weight to the others, so that the bound holds for these as before.
    """
    if spec.scalar_loss().has_units:
        return None
    start = replace(spec, dropped_experts=(), coin=spec.coin or "coin" in spec.dropped_experts)
    others = experts_of(start)[len(spec.scales) :]
    scales = {h: _first_weight(h) for h in (*spec.scales, *spec.retired)}
    whole = math.fsum(scales.values()) + math.fsum(_FIRST_WEIGHTS[name] for name in others)
    largest = float(state["facts"][_LARGEST_WEIGHT])
    # A row that weighs more than all before it makes the weights more equal, as if they had begun so.
    own = (largest - 1.0) * math.log(len(scales) + len(others)) - math.log(scales[scale] / whole)
    return own + largest * (1.0 + math.log(max(1.0, rows / 1024)))


def _first_weight(scale: float) -> float:
    """Return the weight of a scale before the first row, not yet divided by that of all experts: docs/scales.md."""
    return 2.0 / (1.0 + (math.log(scale / _USUAL_SCALE) / _USUAL_WIDTH) ** 2)


def restart(state: State, experts: int, part: float, *, is_log_loss: bool) -> None:
    """Where held-out rows start from: half of it the mixture as it is, as one expert more, and half each expert.

    The weight of each expert is as after `part` of its total loss, without any share. One scale has no experts and
    mixes nothing.
    """
    if experts == 0:
        return
    # The loss that lowers a weight by a factor of e: the largest weight of a row, or what AdaHedge came to.
    facts = state["facts"].tolist()
    heat = facts[_LARGEST_WEIGHT] if is_log_loss else facts[_LARGEST_GAP] / math.log(experts)
    first = state["w"][:experts].tolist()
    totals = [part * total for total in state["totals"][:experts].tolist()]
    own = [math.exp((min(totals) - total) / heat) for total in totals] if heat > 0.0 else first  # none differed so far
    own = [weight / math.fsum(own) for weight in own]
    half = _FIRST_MIXTURE
    state["first"][:experts], state["first_part"][...] = first, half
    state["weighed"][:experts] = [(1.0 - half) * weight for weight in own]
    state["w"][:experts] = [half * a + (1.0 - half) * b for a, b in zip(first, own, strict=True)]


def may_drop(spec: Spec) -> bool:
    """Return whether a long run may drop scales or other experts of this mixture."""
    return len(spec.scales) > WINDOW or _may_drop_experts(spec)


def _may_drop_experts(spec: Spec) -> bool:
    return not set(DROPPABLE).isdisjoint(experts_of(spec))


def next_review(rows: int, spec: Spec) -> int:
    """Return the next number of learned rows at which it is decided whether scales or other experts are dropped.

    >>> next_review(5, Spec(scale=(0.1, 1.0))), next_review(2**14, Spec(scale=(0.1, 1.0))), next_review(5, Spec())
    (16384, 32768, 131072)
    """
    first = min(FIRST_ROW, FIRST_DROP_ROW) if _may_drop_experts(spec) else FIRST_ROW
    return max(first, 1 << rows.bit_length())


def is_review(rows: int) -> bool:
    """Return whether scales may be dropped now: at powers of two, from `FIRST_ROW` on."""
    return rows >= FIRST_ROW and rows & (rows - 1) == 0


def losers_of(state: State, spec: Spec, rows: int) -> tuple[str, ...]:
    """Return the names of the experts that a run drops after this number of rows, at powers of two."""
    if rows < FIRST_DROP_ROW or rows & (rows - 1) != 0:
        return ()
    names = experts_of(spec)
    octave, without = (state[name][_LATEST_OCTAVE, : len(names)].tolist() for name in ("octave", "without"))
    return losers(names, octave, without, float(state["octave_loss"][_LATEST_OCTAVE]))


def losers(names: Sequence[str], octave: Sequence[float], without: Sequence[float], mixture: float) -> tuple[str, ...]:
    """Return the names of the experts to drop, by their losses over the rows since the last power of two.

    `octave` has the loss of each expert, `without` that of the mixture without it, and `mixture` is the loss of the
    mixture. All experts that are more than 1 % behind the best other one are dropped, or else the first one without
    which the mixture would have lost less than 0.1 % more.

    >>> losers(("0.1", "1", "columns", "coin"), (10.0, 9.0, 8.0, 8.5), (0.0, 0.0, 9.5, 8.2), 8.0)
    ('coin',)
    >>> losers(("0.1", "1", "columns", "coin"), (10.0, 9.0, 8.0, 8.05), (0.0, 0.0, 9.5, 8.001), 8.0)
    ('coin',)
    """
    places = {name: names.index(name) for name in DROPPABLE if name in names}
    best = {j: min(loss for i, loss in enumerate(octave) if i != j) for j in places.values()}
    behind = tuple(name for name, j in places.items() if octave[j] - best[j] > BEHIND * abs(best[j]))
    most = mixture + NEEDED * abs(mixture) if mixture < 0.0 else (1.0 + NEEDED) * mixture
    return behind or tuple(name for name, j in places.items() if without[j] < most)[:1]


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
