"""Sums over all coordinates against fixed weights u, for every scale at once: what a certificate is computed from.

Penalties are on weights times the unit of their feature: here l1 is l1 times the unit, l2 is l2 times its square. For
every u that the learner could have played, with q = S - z and the sums k of sigma x² and stab of g² / (Q + l2),

    sum g·x - S·u  <=  ½ ((Q + l2)·u² - 2 q·u + k) + l1 |u|₁ + ½ stab.

With other losses than the log loss the row terms are added to both sides, and Q is divided by kappa, the unit of the
weights (docs/labels.md). With several classes a coordinate is a feature of one class; those that may come are one
coordinate that counts for each of them (docs/classes.md).

Coordinates are taken some thousands at a time, in the order of their cells, so that the numbers are the same bits
however the rows were cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.linear.engine import Engine
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.receipt.cell_groups import INTERCEPT, CellGroups, add_shares, listed

Vector = NDArray[np.float64]
Slots = NDArray[np.integer[Any]]

_AT_ONCE = 1 << 14  # coordinates at a time: their arrays stay in the cache
SMALLEST = 1e-300  # weights up to this, where float64 underflows, count as 0
_COUNT = 8  # of the terms of a ledger: how many coordinates
_RAREST = -20  # below 2^-19 all sums of squared slopes are one group


class Certifiable(Protocol):
    """What a certificate is computed from: an `Engine`, or the `Replay` of one."""

    @property
    def spec(self) -> Spec: ...
    @property
    def receipt(self) -> bool: ...
    @property
    def intercept_columns(self) -> Vector: ...
    @property
    def copies(self) -> Vector: ...
    @property
    def classes_to_come(self) -> int: ...
    @property
    def state(self) -> Mapping[str, Vector]: ...
    @property
    def progress(self) -> LossTotals: ...
    @property
    def leader(self) -> int: ...
    @property
    def counts_rows(self) -> bool: ...
    @property
    def label_unit(self) -> float: ...
    def sums_of(self, scale: int | None = None) -> RegretSums: ...
    def rounding_sums(self, scale: int) -> RoundingSums: ...
    def row_sums(self, scale: int) -> RowSums: ...
    def touched(self) -> Slots: ...
    def parts_at(self, slots: Slots) -> Mapping[str, Any]: ...
    def limits_at(self, slots: Slots) -> tuple[Vector, Vector]: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoordinateBlock:
    """Some coordinates, one per row, with one column per scale. `free` marks the intercept: no penalty, no bounds."""

    slots: Slots | None  # None for the intercept
    z: Vector
    R: Vector
    S: Vector
    unit: Vector  # of the feature; one column
    kappa: Vector  # of the weights; one column
    seen: Vector  # rows, or G / unit² where they are not counted
    spec: Spec
    limits: tuple[Vector, Vector]  # of each weight; one column
    copies: Vector | None = None  # how many classes each stands for; one column
    columns: int = 1  # of classes: so many coordinates in a row are of one feature
    missing: float = 0.0  # classes to come, which the last column stands for, for each class that came

    @property
    def free(self) -> bool:
        return self.slots is None

    @property
    def l1(self) -> Vector:
        """Of each weight: the penalty is on weights times the unit of their feature."""
        return np.asarray((0.0 if self.free else self.spec.l1) * self.unit)

    @property
    def l2(self) -> Vector:
        """The L2 penalty of each squared weight."""
        return np.asarray((0.0 if self.free else self.spec.l2) * (self.unit * self.unit))

    def over_unit(self, a: Vector | float) -> Vector:
        """a / unit, and 0 for a feature that was 0 in every row and has no unit."""
        none = np.zeros(np.broadcast_shapes(np.shape(a), self.unit.shape))
        return np.asarray(np.divide(a, self.unit, out=none, where=self.unit > 0))

    def pull(self) -> Vector:
        """S / unit: the summed gradients as if features were measured in their units.

        Those of classes that never came are added, in equal parts, to the classes that came (docs/classes.md).
        """
        pull = self.over_unit(self.S)
        if self.missing:
            by_class = pull.reshape(-1, self.columns, pull.shape[1])
            by_class[:, :-1] += self.missing * by_class[:, -1:]
            by_class[:, -1] = 0.0
        return pull

    def hold(self) -> Vector:
        """Q + l2 of each scale, with Q = M (beta M + R) / (h kappa)."""
        scaled = self.unit * (self.spec.beta * self.unit + self.R)
        over_kappa = np.divide(1.0, self.kappa, out=np.zeros_like(self.kappa), where=self.kappa > 0)
        return np.asarray(scaled / np.array(self.spec.scales) * over_kappa + self.l2)

    def play(self) -> Vector:
        """clip(-sgn(z)(|z| - l1)_+ / (Q + l2)), and clip(0) where Q + l2 = 0."""
        h = np.array(self.spec.scales)
        pull = np.copysign(np.maximum(np.abs(self.z) - self.l1, 0.0), -self.z) * h * self.kappa
        den = self.unit * (self.spec.beta * self.unit + self.R) + h * self.l2 * self.kappa
        x = np.divide(pull, den, out=np.zeros_like(pull), where=den > 0)
        return np.asarray(np.clip(x, *self.limits))


Comparator = Callable[
    [CoordinateBlock], tuple[Vector, Vector]
]  # u, one column for all scales or one per scale, and the widths D of its box


def coordinate_blocks(engine: Certifiable, slots: Slots | None = None) -> Iterator[CoordinateBlock]:
    """All coordinates that were ever learned, and last the intercept; `slots` are cells that may have been."""
    spec, K = engine.spec, len(engine.spec.scales)
    slots = engine.touched() if slots is None else slots
    copies = engine.copies
    C, at_once = len(copies), max(1, _AT_ONCE // len(copies))
    of_classes = copies[:, None] if spec.classes else None
    missing = engine.classes_to_come / (C - 1) if engine.classes_to_come and C > 1 else 0.0
    for at in range(0, len(slots), at_once):
        own = slots[at : at + at_once]
        parts = engine.parts_at(own)
        met = parts["count" if engine.counts_rows else "unit"] > 0
        own = own[met]
        numbers = {**parts, "kappa": parts.get("kappa", np.ones(len(met)))}
        z, R, S = (numbers[name][met].astype(np.float64).reshape(len(own) * C, K) for name in "zRS")
        M, kappa = (np.repeat(numbers[name][met].astype(np.float64), C)[:, None] for name in ("unit", "kappa"))
        with np.errstate(over="ignore"):
            counted = np.repeat(parts["count"][met].astype(np.float64), C)[:, None] if engine.counts_rows else None
            often = (R / M) ** 2 if counted is None else counted
        lower, upper = (np.repeat(ends, C)[:, None] for ends in engine.limits_at(own))
        many = None if of_classes is None else np.tile(of_classes, (len(own), 1))
        yield CoordinateBlock(np.repeat(own, C), z, R, S, M, kappa, often, spec, (lower, upper), many, C, missing)
    if spec.intercept:
        one, cell = np.ones((C, 1)), engine.intercept_columns
        z, R, S, kappa = (cell[:, part] for part in range(4))
        rows = one * engine.progress.rows
        free = (-np.inf * one, np.inf * one)
        yield CoordinateBlock(None, z, R, S, one, kappa[:, :1], rows, spec, free, of_classes, C, missing)


def own_weights(engine: Certifiable) -> Comparator:
    """The weights of the leading scale, in the smallest box around 0 that contains them."""
    k = engine.leader

    def choose(b: CoordinateBlock) -> tuple[Vector, Vector]:
        u = b.play()[:, k : k + 1]
        return u, 2.0 * np.abs(u)

    return choose


def fixed_weights(weights: Vector, bias: float) -> Comparator:
    """Weights that are passed in, in the smallest box around 0 that contains them."""

    def choose(b: CoordinateBlock) -> tuple[Vector, Vector]:
        u = np.full((len(b.z), 1), bias) if b.slots is None else weights[b.slots, None]
        low, high = b.limits
        if ((u < low) | (u > high)).any():
            worst = int(np.argmax(np.maximum(low - u, u - high)))
            raise InvalidInput(
                f"a comparator needs weights within the model's bounds {low.flat[worst]:g} to {high.flat[worst]:g}, got"
                f" {u.flat[worst]:g}; compare with a model of the same bounds."
            )
        return u, 2.0 * np.abs(u)

    return choose


def box(radius: float) -> Comparator:
    """The best point, for each scale, of the box |u| <= radius / unit within the model's bounds."""

    def choose(b: CoordinateBlock) -> tuple[Vector, Vector]:
        lower, upper = b.limits
        side = b.over_unit(radius)
        low, high = np.maximum(-side, lower), np.minimum(side, upper)
        nothing = b.unit == 0
        low[nothing] = high[nothing] = np.clip(0.0, lower, upper)[nothing]  # its weight decides nothing
        if (low > high).any():
            worst = int(np.argmax(low - high))
            raise InvalidInput(
                f"radius needs a box that meets the model's bounds {lower.flat[worst]:g} to {upper.flat[worst]:g}, got"
                f" {radius:g}; widen it."
            )
        middle = np.clip(0.0, low, high)
        return np.where(b.S > 0, low, np.where(b.S < 0, high, middle)), high - low

    return choose


@final
@dataclass(slots=True, eq=False)
class StreamLedger:
    """The sums over all coordinates against one comparator u, one number per scale."""

    Su: Vector  # S·u
    penalty: Vector  # ½ (Q + l2)·u² - q·u + l1 |u|₁
    lead: Vector  # H(u) - H(x), with x the weights that would be played next
    DR: Vector  # D·sqrt(G); this and the next say nothing where R is not sqrt(G), with other losses than the log loss
    G: Vector  # the sum of all G / unit²: of the gradients as if features were measured in their units
    D2: Vector  # the sum of (D unit)², likewise
    size: Vector  # of all terms of S·u, the penalty and the lead: what rounding is relative to
    reach: Vector  # |u|·unit
    count: Vector  # of coordinates
    S_squares: Vector  # the sum of (S / unit)²: of the summed gradients as if features were measured in their units
    S_sizes: Vector  # the sum of |S / unit|
    S_largest: Vector  # the largest |S / unit|
    nonzero: int | None  # coordinates of u that are not 0, of the first scale
    groups: list[dict[str, Any]]  # of coordinates by how often they were seen
    named: list[dict[str, Any]]  # by their columns or namespaces


def stream_ledger(
    engine: Certifiable,
    comparator: Comparator,
    slots: Slots | None = None,
    *,
    grouped: int | None = None,
    cells: CellGroups | None = None,
) -> StreamLedger:
    """The sums over all coordinates; with `grouped` also by how often they were seen, for the scale of that number.

    With `cells` these are also by the columns or namespaces of the coordinates.
    """
    if not engine.receipt:
        raise InvalidInput("a certificate needs a model trained with --receipt, got one without; train it again.")
    sums, largest = np.zeros((11, len(engine.spec.scales))), np.zeros(len(engine.spec.scales))
    groups: dict[int | None, Vector] = {}
    named: dict[str, Vector] = {}
    nonzero = 0
    for b in coordinate_blocks(engine, slots):
        u, D = comparator(b)
        nonzero += int(np.count_nonzero(np.abs(u[:, 0]) > SMALLEST))
        terms = _counted_terms(b, u, D)
        sums += [np.add.reduce(np.broadcast_to(a, b.z.shape), axis=0) for a in terms]
        largest = np.maximum(largest, np.abs(b.pull()).max(axis=0, initial=0.0))
        if grouped is not None:
            _group(groups, b, grouped, terms)
            if cells is not None:
                labels = [INTERCEPT] * len(b.z) if b.slots is None else cells(b.slots)
                add_shares(named, labels, np.stack(_shares(b, grouped, terms), axis=1))
    by_name = listed(named, has_units=engine.spec.scalar_loss().has_units)
    return _ledger_of(np.vstack([sums, largest]), nonzero, _in_order(groups, engine.spec), by_name)


def _ledger_of(
    sums: Vector,
    nonzero: int | None,
    groups: list[dict[str, Any]],
    named_groups: list[dict[str, Any]],
) -> StreamLedger:
    names = [name for name in StreamLedger.__slots__ if name not in ("nonzero", "groups", "named")]
    named: dict[str, Any] = dict(zip(names, sums, strict=True))
    return StreamLedger(**named, nonzero=nonzero, groups=groups, named=named_groups)


def own_stream_ledger(engine: Engine, slots: Slots | None = None) -> StreamLedger:
    """As `stream_ledger` against the engine's own weights, by the compiled core, which knows `S_squares` alone of S."""
    if not engine.receipt:
        raise InvalidInput("a certificate needs a model trained with --receipt, got one without; train it again.")
    sums = engine.own_sums(slots)
    for b in coordinate_blocks(engine, np.empty(0, np.intp)):
        terms = _counted_terms(b, *own_weights(engine)(b))[: len(sums)]
        sums += [np.add.reduce(np.broadcast_to(a, b.z.shape), axis=0) for a in terms]
    unknown = np.full((2, sums.shape[1]), np.nan)
    return _ledger_of(np.vstack([sums, unknown]), None, [], [])


def own_groups(engine: Engine, scale: int) -> list[dict[str, Any]]:
    """The groups of `stream_ledger` against the engine's own weights, by the compiled core."""
    groups: dict[int | None, Vector] = {}
    for b in coordinate_blocks(engine, np.empty(0, np.intp)):
        _group(groups, b, scale, _counted_terms(b, *own_weights(engine)(b)))
    sums_of_groups = engine.own_groups(scale)
    sums_of_groups[:, 3] *= np.sqrt(2.0)
    met = np.flatnonzero(sums_of_groups[:, 0]).tolist()
    return _in_order(groups | {j + _RAREST: sums_of_groups[j] for j in met}, engine.spec)


def _counted_terms(b: CoordinateBlock, u: Vector, D: Vector) -> list[Vector]:
    """The same, each as often as there are classes that it stands for."""
    terms = _terms(b, u, D)
    return terms if b.copies is None else [np.asarray(a * b.copies) for a in terms]


def _terms(b: CoordinateBlock, u: Vector, D: Vector) -> list[Vector]:
    """What `StreamLedger` adds up, a row a coordinate."""
    hold, absolute = b.hold(), b.l1 * np.abs(u)
    Su, half = b.S * u, 0.5 * hold * u * u
    zu, x = b.z * u, b.play()
    half_x, absolute_x = 0.5 * hold * x, b.l1 * np.abs(x)
    lead = (half + zu + absolute) - ((half_x + b.z) * x + absolute_x)
    slopes, sides = b.over_unit(b.R), D * b.unit
    size = np.abs(Su) + np.abs(zu) + half + absolute + (np.abs(half_x) + np.abs(b.z)) * np.abs(x) + absolute_x
    penalty, pull = half - (Su - zu) + absolute, b.pull()
    lengths = [np.abs(u) * b.unit, np.ones_like(b.z), pull * pull, np.abs(pull)]
    return [Su, penalty, lead, D * b.R, slopes * slopes, sides * sides, size, *lengths]


def _shares(b: CoordinateBlock, k: int, terms: list[Vector]) -> list[Vector]:
    """What each coordinate adds to the regret, the bound and the best bound, by one scale."""
    return [np.broadcast_to(a, b.z.shape)[:, k] for a in (-terms[0], terms[1], np.sqrt(2.0) * terms[3])]


def _group(groups: dict[int | None, Vector], b: CoordinateBlock, k: int, terms: list[Vector]) -> None:
    shares, counts = _shares(b, k, terms), np.broadcast_to(terms[_COUNT], b.z.shape)[:, k]
    if b.slots is None:
        groups[None] = np.array([np.add.reduce(a) for a in (counts, *shares)])
        return
    level = np.maximum(np.frexp(b.seen[:, 0])[1] - 1, _RAREST)  # the whole part of log2
    level[b.seen[:, 0] == 0] = _RAREST
    for j in np.unique(level).tolist():
        own = level == j
        add = np.array([np.add.reduce(a[own]) for a in (counts, *shares)])
        groups[j] = groups.get(j, np.zeros(4)) + add


def _in_order(groups: dict[int | None, Vector], spec: Spec) -> list[dict[str, Any]]:
    ordered = [*sorted(j for j in groups if j is not None), *([None] if None in groups else [])]
    listed = []
    for j in ordered:
        count, *shares = groups[j].tolist()
        limits = (None, None) if j is None else (0.0 if j == _RAREST else 2.0**j, 2.0 ** (j + 1))
        named: dict[str, Any] = dict(zip(("regret", "bound", "post_hoc"), shares, strict=True))
        if spec.scalar_loss().has_units:  # R counts gradients in the unit of the labels, which moves
            named["post_hoc"] = None
        listed.append({"seen_from": limits[0], "seen_to": limits[1], "count": int(count), **named})
    return listed
