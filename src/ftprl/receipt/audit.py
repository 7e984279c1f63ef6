"""The certificate once more, from the state of a replay alone: what `verify` compares a receipt with.

Nothing here calls `ledger` or `certificate`, which made the numbers that are checked: the formulas are written out a
second time, as docs/receipt.md has them, so that a fault in one of the two does not confirm itself. With
H(v) = ½ (Q + l2) v² + z v + l1 |v| for each coordinate,

    regret   = sum g·x - S·u                  tight   = regret + H(u) - min H
    r        = H(u) - S·u + ½ sum sigma x²    bound   = r + ½ sum g² / (Q + l2)
    theorem  = r + sum g² / (Q + l2)

and with other losses than the log loss the row terms in each of them, and Q divided by kappa.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec
from ftprl.receipt.audit_floor import DualSums, audited_floor, audited_rates
from ftprl.receipt.coordinates import Coordinates, hold_of, played
from ftprl.receipt.replay import Replay
from ftprl.runlog.floor import FloorCurve, Norm

Vector = NDArray[np.float64]
_SMALLEST = 1e-300  # weights up to this, where float64 underflows, count as 0
_FEWEST = 2.0**-19  # coordinates seen less often are one group


@final
@dataclass(frozen=True, slots=True)
class Comparator:
    """Fixed weights u: a box of this radius, weights with their intercept, or, with neither, the model's own."""

    radius: float | None = None
    weights: Vector | None = None
    bias: float = 0.0
    sha256: str | None = None  # of the model that the weights are from
    norm: Norm = "2"  # of the lengths of the floor


@final
@dataclass(slots=True, eq=False)
class _Scale:
    """Sums over all coordinates for one scale."""

    Su: list[float] = field(default_factory=list)
    Hu: list[float] = field(default_factory=list)
    Hx: list[float] = field(default_factory=list)
    DR: list[float] = field(default_factory=list)
    G: list[float] = field(default_factory=list)
    D2: list[float] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    reach: list[float] = field(default_factory=list)
    count: list[float] = field(default_factory=list)
    pull: list[float] = field(default_factory=list)
    pull2: list[float] = field(default_factory=list)
    largest: float = 0.0


@final
class Audit:
    """The numbers of a replayed stream against one comparator, for every scale."""

    def __init__(
        self,
        replay: Replay,
        comparator: Comparator,
        *,
        cells: Callable[[NDArray[np.intp]], list[str]] | None = None,
    ) -> None:
        self._replay, self._comparator = replay, comparator
        self._scales = [_Scale() for _ in replay.spec.scales]
        self._groups: list[dict[float | None, list[float]]] = [{} for _ in replay.spec.scales]
        self._cells = cells  # which column or namespace a cell belongs to
        self._named: list[dict[str, list[float]]] = [{} for _ in replay.spec.scales]
        self._nonzero = 0
        for c in replay.coordinates():
            self._add(c)

    def _add(self, c: Coordinates) -> None:
        spec, hold = self._replay.spec, hold_of(c, self._replay.spec)
        l1 = c.penalties(spec)[0]
        low, high = (np.full((len(c.z), 1), side * math.inf) for side in (-1.0, 1.0))
        if c.slots is not None:
            low, high = (ends[:, None] for ends in self._replay.limits_at(c.slots))
        x = played(c, spec, low, high)
        u, D = self._weights_and_widths(c, x, low, high)
        H_u = 0.5 * hold * u**2 + c.z * u + l1 * np.abs(u)
        H_x = 0.5 * hold * x**2 + c.z * x + l1 * np.abs(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            counted = np.where(c.unit > 0, (c.R / c.unit) ** 2, 0.0)
            pull = np.abs(_of_classes_seen(np.where(c.unit > 0, c.S / c.unit, 0.0), self._replay))
        terms = {
            "Su": c.S * u,
            "Hu": H_u,
            "Hx": H_x,
            "DR": D * c.R,
            "G": counted,
            "D2": (D * c.unit) ** 2 + 0.0 * c.R,
            "size": _sizes(c, u, hold, l1) + np.abs(c.S * u) + _sizes(c, x, hold, l1),
            "reach": np.abs(u) * c.unit + 0.0 * c.R,
            "count": np.ones_like(c.z),
            "pull": pull,
            "pull2": pull**2,
        }
        terms = {name: values * c.copies for name, values in terms.items()}
        H_u = H_u * c.copies
        totals = {name: _sums(values.T).tolist() for name, values in terms.items()}
        for k, sums in enumerate(self._scales):
            sums.largest = max(sums.largest, float(pull[:, k].max(initial=0.0)))
            for name, own in totals.items():
                getattr(sums, name).append(own[k])
        self._add_groups(c, counted, np.stack([-terms["Su"], H_u - terms["Su"], math.sqrt(2.0) * terms["DR"]]))
        if self._cells is not None:
            labels = ["(intercept)"] * len(c.z) if c.slots is None else self._cells(c.slots)
            self._add_named(labels, np.stack([-terms["Su"], H_u - terms["Su"], math.sqrt(2.0) * terms["DR"]]))
        self._nonzero += int(np.count_nonzero(np.abs(u[:, 0]) > _SMALLEST))

    def _weights_and_widths(self, c: Coordinates, x: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        comparator = self._comparator
        if comparator.radius is not None:
            with np.errstate(divide="ignore"):
                side = np.where(c.unit > 0, comparator.radius / c.unit, 0.0)
            bottom, top = np.maximum(-side, low), np.minimum(side, high)
            nothing = np.minimum(np.maximum(0.0, low), high)  # for a feature that was always 0
            bottom, top = (np.where(c.unit > 0, a, nothing) for a in (bottom, top))
            middle = np.minimum(np.maximum(0.0, bottom), top)
            u = np.where(c.S > 0, bottom, np.where(c.S < 0, top, middle))
            return u, top - bottom
        if comparator.weights is not None:
            u = np.array([[comparator.bias]]) if c.slots is None else comparator.weights[c.slots][:, None]
        else:
            u = x[:, [self._replay.leader]]
        return u, 2.0 * np.abs(u)

    def _add_groups(self, c: Coordinates, counted: Vector, shares: Vector) -> None:
        """Coordinates by how often they were seen: in rows, or with one scale by what their gradients add up to."""
        if c.slots is None:
            for k, groups in enumerate(self._groups):
                groups[None] = [float(c.copies.sum()), *shares[:, :, k].sum(axis=1).tolist()]
            return
        seen = c.rows if c.rows is not None else counted[:, 0]
        levels = np.floor(np.log2(np.maximum(seen, _FEWEST / 2)))
        for level in np.unique(levels).tolist():
            own = levels == level
            sums = _sums(shares[:, own].transpose(0, 2, 1))
            for k, groups in enumerate(self._groups):
                add = [float(c.copies[own].sum()), *sums[:, k].tolist()]
                groups[level] = [a + b for a, b in zip(groups.get(level, [0.0] * 4), add, strict=True)]

    def _add_named(self, labels: list[str], shares: Vector) -> None:
        """Coordinates by their columns or namespaces."""
        rows: dict[str, list[int]] = {}
        for row, label in enumerate(labels):
            rows.setdefault(label, []).append(row)
        for label, own in rows.items():
            sums = _sums(shares[:, own].transpose(0, 2, 1))
            for k, groups in enumerate(self._named):
                add = [float(len(own)), *sums[:, k].tolist()]
                groups[label] = [a + b for a, b in zip(groups.get(label, [0.0] * 4), add, strict=True)]

    # ---- from sums to numbers ----

    def _of(self, k: int, name: str) -> float:
        return math.fsum(getattr(self._scales[k], name))

    def _row(self, k: int) -> dict[str, float]:
        """The numbers of one scale, `excess` included."""
        replay, spec = self._replay, self._replay.spec
        rows = replay.row_sums(k)
        totals, Su, H = replay.sums_of(k), self._of(k, "Su"), self._of(k, "Hu")
        regret, r = totals.linear - Su, H - Su + 0.5 * totals.proximal + replay.rounding_sums(k).drift
        regret, r = regret + rows.terms, r + rows.terms
        numbers = {
            "regret": regret,
            "tight": regret + (H - self._of(k, "Hx")),
            "bound": r + 0.5 * totals.stability,
            "theorem": r + totals.stability,
        }
        excess = rows.prediction_loss - rows.scale_loss
        return {"scale": spec.scales[k], "loss": rows.scale_loss, "excess": excess} | {
            a: b + excess for a, b in numbers.items()
        }

    @property
    def size(self) -> float:
        """How large the sums are whose differences the numbers are: what rounding is relative to."""
        totals = [self._replay.sums_of(k) for k in range(len(self._scales))]
        sums = [abs(t.linear) + abs(t.proximal) + t.stability + self._of(k, "size") for k, t in enumerate(totals)]
        return max(sums) + max(self._replay.row_sums(k).sizes for k in range(len(totals)))

    @property
    def loss_size(self) -> float:
        """How large the total loss is; one that may be below 0 counts as at least 1 per row."""
        rows = self._replay.row_sums(0)
        return max(abs(rows.prediction_loss), rows.weight if self._replay.loss.link == "log" else 0.0)

    def brief(self) -> dict[str, Any]:
        """The numbers that a milestone has."""
        whole = self.certificate()
        names = ["weight", "loss", "scale", "excess", "regret", "tight", "bound", "theorem", "gain", "ratio", "shared"]
        numbers = {name: whole[name] for name in names}
        post = whole["post_hoc"]
        return {
            "rows": whole["rounds"],
            **numbers,
            "post_hoc": post["diagonal"] or None,
            "const": post["const"] or None,
        }

    def certificate(self) -> dict[str, Any]:
        """All numbers of a certificate; what it says in words is not among them."""
        replay, spec = self._replay, self._replay.spec
        rows = [self._row(k) for k in range(len(spec.scales))]
        k = min(range(len(rows)), key=lambda j: rows[j]["bound"])
        own, drift, rounding = rows[k], replay.rounding_sums(k).drift, self._rounding(k)
        diagonal, const, learned = self._best(k, "diagonal"), self._best(k, "const"), replay.row_sums(k)
        Su, H = self._of(k, "Su"), self._of(k, "Hu")
        return {
            **{name: value for name, value in own.items() if name != "loss"},
            "rounds": int(replay.tallies[2]),
            "weight": learned.weight,
            "loss": learned.prediction_loss,
            "true_regret": None,
            "exact": None,
            "post_hoc": {"const": const, "diagonal": diagonal, "full": None},
            "gain": const / diagonal if const is not None and diagonal else None,
            "ratio": (own["theorem"] - own["excess"] - drift) / diagonal if diagonal else None,
            "shared": {"regret": own["regret"] + Su, "bound": own["bound"] - (H - Su)},
            "rounding": rounding,
            "drift": drift,
            "scales": rows,
            "coordinates": _listed(self._groups[k], spec),
            **({} if self._cells is None else {"named": _by_name(self._named[k], spec)}),
            "coordinates_by": "rows" if self._replay.counts_rows else "gradients",
            "comparator": self._compared_with(),
            "family": "diagonal",
            "solver_gap": 0.0,
            "rates": audited_rates(replay),
            "floor": self._floor(k),
        }

    def _floor(self, scale: int) -> dict[str, Any]:
        """The floor; the length of the fixed weights is half that of the box around them, of the scale compared."""
        names = ("pull2", "pull", "G", "count")
        sums = [DualSums(own.largest, *(self._of(k, name) for name in names)) for k, own in enumerate(self._scales)]
        none = self._comparator.radius is not None or self._replay.classes_to_come > 0
        length = None if none else 0.5 * math.sqrt(self._of(scale, "D2"))
        return audited_floor(self._replay, sums, self._comparator.norm, length)

    def curve(self) -> FloorCurve:
        """The floor as a curve: what lengths are chosen by."""
        rows, floor = self._replay.row_sums(0), self.certificate()["floor"]
        lines = tuple((line["start"], line[f"slope_{floor['norm']}"]) for line in floor["lines"])
        return FloorCurve(
            self._comparator.norm, rows.prediction_loss, rows.weight, floor["unit"], lines, floor["least"]
        )

    def _best(self, k: int, family: str) -> float | None:
        """The best bound in hindsight, which is known with the log loss alone."""
        if self._replay.spec.scalar_loss().has_units:
            return None
        if family == "diagonal":
            return math.sqrt(2.0) * self._of(k, "DR")
        return math.sqrt(2.0 * self._of(k, "D2") * self._of(k, "G"))

    def _compared_with(self) -> dict[str, Any]:
        if self._comparator.radius is not None:
            return {"kind": "box", "radius": self._comparator.radius}
        own = {"kind": "weights"} if self._comparator.weights is None else {"kind": "model"}
        named = {} if self._comparator.sha256 is None else {"sha256": self._comparator.sha256}
        return {**own, **named, "nonzero": self._nonzero}

    def _rounding(self, k: int) -> float:
        """The bound that docs/receipt.md derives, term by term, in units of 2^-53."""
        totals, error = self._replay.sums_of(k), self._replay.rounding_sums(k)
        n, m = float(self._replay.tallies[2]), self._of(k, "count")
        over_rows = error.linear_size + abs(totals.proximal) + totals.stability + self._replay.row_sums(k).sizes
        stalled = min(math.exp(min(n * (2.0**-51 if self._replay.spec.float64 else 2.0**-22), 700.0)), max(n, 1.0))
        by_slopes = 16.0 * (1 + 2.0**-20) * error.slopes * self._of(k, "reach")
        spec = self._replay.spec
        of_R = math.inf if spec.scalar_loss().has_units else math.sqrt(n * stalled) * self._of(k, "DR")
        of_S = min(by_slopes, of_R)
        units = (n + m + 64) * over_rows + (m + 64) * self._of(k, "size") + (n + 64) * of_S
        steps = error.step_size + 3.0 * error.linear_size + 2.0 * (abs(totals.proximal) + totals.stability)
        return 1.01 * 2.0**-53 * (units + (80 + (n + m + 64) * 2.0**-22) * steps)


def _of_classes_seen(pull: Vector, replay: Replay) -> Vector:
    """The pull on fixed weights of the classes that came: they share what was given to the others."""
    n, to_come = replay.known, replay.classes_to_come
    if not (n and to_come):
        return pull
    split = pull.reshape(len(pull) // (n + 1), n + 1, -1)
    shared = split[:, :n] + to_come / n * split[:, n:]
    return np.concatenate([shared, 0.0 * split[:, n:]], axis=1).reshape(pull.shape)


def _sums(values: Vector) -> Vector:
    """Sums along the last axis: NumPy adds numbers that are next to each other in pairs, with few roundings."""
    return np.asarray(np.ascontiguousarray(values).sum(axis=-1))


def _sizes(c: Coordinates, v: Vector, hold: Vector, l1: Vector) -> Vector:
    """The sizes of the terms of H(v)."""
    return np.asarray(0.5 * hold * v**2 + np.abs(c.z * v) + l1 * np.abs(v))


def _by_name(groups: dict[str, list[float]], spec: Spec) -> list[dict[str, Any]]:
    """The groups of coordinates by name: the 199 with most cells, and the others as one."""
    ordered = sorted(groups, key=lambda name: (-groups[name][0], name))
    shares = {name: groups[name] for name in ordered[:199]}
    if len(ordered) > 199:
        shares["(others)"] = [
            math.fsum(column) for column in zip(*(groups[name] for name in ordered[199:]), strict=True)
        ]
    listed = []
    for name in sorted(shares):
        count, regret, bound, post_hoc = shares[name]
        best = None if spec.scalar_loss().has_units else post_hoc
        listed.append({"name": name[:200], "count": int(count), "regret": regret, "bound": bound, "post_hoc": best})
    return listed


def _listed(groups: dict[float | None, list[float]], spec: Spec) -> list[dict[str, Any]]:
    """The groups of coordinates as a certificate lists them: the rarest first, the intercept last."""
    listed = []
    for level in sorted(groups, key=lambda level: math.inf if level is None else level):
        count, regret, bound, post_hoc = groups[level]
        limits: tuple[float | None, float | None] = (None, None)
        if level is not None:
            limits = (2.0**level if 2.0**level >= _FEWEST else 0.0, 2.0 ** (level + 1.0))
        names = {"seen_from": limits[0], "seen_to": limits[1], "count": int(count)}
        best = None if spec.scalar_loss().has_units else post_hoc
        listed.append({**names, "regret": regret, "bound": bound, "post_hoc": best})
    return listed
