"""The receipt of a sparse run: numbers that print and become JSON, from an engine and a comparator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine
from ftprl.receipt import ledger
from ftprl.receipt.ledger import Comparator, Kept, Reading, Slots

Vector = NDArray[np.float64]
Plain = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """With what the plays are compared: the model's own `weights`, a `box` of a radius, or another `model`."""

    kind: str
    radius: float | None = None
    sha256: str | None = None  # of the other model
    nonzero: int | None = None  # coordinates that are not 0

    def __str__(self) -> str:
        if self.kind == "box":
            return f"every u with |u| <= {self.radius:g} / unit"
        return "the model's own weights" if self.kind == "weights" else "the weights of another model"


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """What the closed forms depend on and the cells do not say: whether every |value| was 0 or 1."""

    unit_values: bool = False


@final
@dataclass(frozen=True, eq=False)
class SparseCertificate:
    """How far the predictions of a stream are, at most, from fixed weights; every number is proved, not estimated.

    regret <= tight <= bound <= theorem, and theorem <= worst_case <= closed_form where these are bounds. With several
    scales the numbers are those of one scale, each with `excess` = loss(mixture) - loss(scale) added; post_hoc and
    the ratio are that scale's own.
    """

    rounds: int  # rows learned
    weight: float
    loss: float
    comparison: Comparison
    scale: float
    excess: float
    regret: float
    tight: float
    bound: float
    theorem: float
    worst_case: float | None
    closed_form: float | None
    closed_form_strong: float | None
    post_hoc: Mapping[str, float | None]
    ratio: float | None
    ratio_of: str
    proven_ratio: float | None
    proven_regret_ratio: float | None
    shared: Mapping[str, float]
    rounding: float
    scales: tuple[Mapping[str, float], ...]
    coordinates: tuple[Mapping[str, Any], ...] = ()
    coordinates_by: str = "rows"
    exact: Mapping[str, Any] | None = None
    caveats: tuple[str, ...] = ()

    @property
    def true_regret(self) -> float | None:
        """Against the best fixed weights of the box, proved from above; None unless they were looked for."""
        return None if self.exact is None else float(self.exact["true_regret"])

    @property
    def gain(self) -> float | None:
        """How many times the best coordinate-constant bound is larger than the best diagonal one."""
        const, diagonal = self.post_hoc["const"], self.post_hoc["diagonal"]
        return const / diagonal if const is not None and diagonal else None

    def __repr__(self) -> str:
        return f"SparseCertificate(rounds={self.rounds}, regret={self.regret:.6g}, bound={self.bound:.6g})"

    def to_dict(self) -> Plain:
        """Plain numbers, strings and lists, ready for JSON: the keys of `Certificate`, and more."""
        kept = (
            "rounds regret true_regret tight bound theorem worst_case closed_form closed_form_strong ratio ratio_of"
            " proven_ratio proven_regret_ratio weight loss scale excess gain rounding coordinates_by"
        )
        out: Plain = {name: _plain(getattr(self, name)) for name in kept.split()}
        out |= {"family": "diagonal", "solver_gap": 0.0, "caveats": list(self.caveats)}
        out["comparator"] = {name: value for name, value in asdict(self.comparison).items() if value is not None}
        out["post_hoc"] = {name: _plain(value) for name, value in self.post_hoc.items()}
        out["shared"] = dict(self.shared)
        out["scales"] = [dict(row) for row in self.scales]
        out["coordinates"] = [dict(row) for row in self.coordinates]
        out["exact"] = None if self.exact is None else dict(self.exact)
        return out

    def brief(self) -> Plain:
        """What an event tells of it: docs/events.md."""
        names = ("weight", "loss", "scale", "excess", "regret", "tight", "bound", "theorem", "gain", "ratio")
        out = {"rows": self.rounds, **{name: _plain(getattr(self, name)) for name in names}}
        out |= {"post_hoc": _plain(self.post_hoc["diagonal"] or None), "const": _plain(self.post_hoc["const"] or None)}
        return out | {"shared": dict(self.shared)}

    def __str__(self) -> str:
        ratio = f"ratio {self.ratio_of}/best" + (", that scale alone" if self.excess else "")
        rows: list[tuple[str, float | None, str]] = [
            ("total loss", self.loss, f"of the predictions, {self.loss / (self.weight or 1.0):.6g} a row"),
            ("regret (linearised)", self.regret, f"against {self.comparison}"),
            ("true regret", self.true_regret, "at most, against the best fixed weights of the box"),
            ("tight bound", self.tight, "regret + the next play's lead"),
            ("bound", self.bound, "r + half the stability"),
            ("theorem's bound", self.theorem, "r + stability"),
            ("worst case B_R", self.worst_case, "what could be promised"),
            ("closed form", self.closed_form, "the paper's constants"),
            ("closed form, strong", self.closed_form_strong, "half the stability"),
            ("best in hindsight, const", self.post_hoc["const"], "smallest B_R of one rate for all coordinates"),
            ("best in hindsight, diagonal", self.post_hoc["diagonal"], "smallest B_R of a rate a coordinate"),
            ("gain of a rate a coordinate", self.gain, "const / diagonal"),
            (ratio, self.ratio, "" if self.proven_ratio is None else f"proved: at most {self.proven_ratio:.4g}"),
        ]
        shown = [(name, f"{value:.6g}", note) for name, value, note in rows if value is not None]
        width, digits = (max(len(row[i]) for row in shown) for i in (0, 1))
        lines = [f"after {self.rounds} row{'s' if self.rounds != 1 else ''}"]
        lines += [f"  {name:<{width}}  {value:>{digits}}  {note}".rstrip() for name, value, note in shown]
        return "\n".join([*lines, *(f"  note: {caveat}" for caveat in self.caveats)])

    def with_exact(self, exact: Mapping[str, Any]) -> SparseCertificate:
        """The same with the true regret."""
        return replace(self, exact=exact)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def against_own(engine: Kept, *, facts: Facts | None = None, grouped: bool = True) -> SparseCertificate:
    """The certificate against the model's own weights, those of the leading scale."""
    return certify(engine, ledger.own_weights(engine), Comparison("weights"), facts=facts, grouped=grouped)


def against_box(engine: Kept, radius: float, *, facts: Facts | None = None) -> SparseCertificate:
    """The certificate against every u of the box |u_i| <= radius / unit_i (and within the bounds)."""
    return certify(engine, ledger.box(radius), Comparison("box", radius=radius), facts=facts)


def certify(
    engine: Kept,
    comparator: Comparator,
    comparison: Comparison,
    *,
    facts: Facts | None = None,
    slots: Slots | None = None,
    grouped: bool = True,
) -> SparseCertificate:
    """The certificate of all rows that an engine learned, by the scale with the least bound."""
    slots = engine.touched() if slots is None else slots
    reading = ledger.read(engine, comparator, slots)
    groups = ledger.read(engine, comparator, slots, grouped=_least(engine, reading)[1]).groups if grouped else []
    return _assembled(engine, reading, comparison, facts or Facts(), groups)


def so_far(engine: Engine, slots: Slots | None = None, *, grouped: bool = False) -> SparseCertificate:
    """The certificate against an engine's own weights, fast, while a run is under way; with coordinates if grouped."""
    reading = ledger.read_own(engine, slots)
    groups = ledger.own_groups(engine, _least(engine, reading)[1]) if grouped else []
    return _assembled(engine, reading, Comparison("weights"), Facts(), groups)


def _least(engine: Kept, reading: Reading) -> tuple[list[dict[str, float]], int]:
    """The numbers of every scale, and which has the least bound."""
    rows = [_scale(engine, k, reading) for k in range(len(engine.spec.scales))]
    return rows, min(range(len(rows)), key=lambda j: rows[j]["bound"])


def _assembled(
    engine: Kept, reading: Reading, comparison: Comparison, facts: Facts, groups: list[Plain]
) -> SparseCertificate:
    spec, progress = engine.spec, engine.progress
    rows, k = _least(engine, reading)
    own = rows[k]
    post = {
        "const": math.sqrt(2.0 * float(reading.D2[k]) * float(reading.G[k])),
        "diagonal": math.sqrt(2.0) * float(reading.DR[k]),
        "full": None,
    }
    closed = _closed(engine, k, reading, comparison, facts)
    worst = closed.get("worst_case")
    of = "theorem" if worst is None else "worst_case"
    best = post["diagonal"] or None
    counted = own["theorem"] - own["excess"] if worst is None else worst - own["excess"]
    return SparseCertificate(
        progress.rows,
        progress.weight,
        progress.loss,
        replace(comparison, nonzero=None if comparison.kind == "box" else reading.nonzero),
        spec.scales[k],
        own["excess"],
        own["regret"],
        own["tight"],
        own["bound"],
        own["theorem"],
        worst,
        closed.get("closed_form"),
        closed.get("closed_form_strong"),
        post,
        None if best is None else counted / best,
        of,
        closed.get("proven_ratio"),
        closed.get("proven_regret_ratio"),
        {"regret": own["regret"] + float(reading.Su[k]), "bound": own["bound"] - float(reading.penalty[k])},
        _rounding(engine, float(reading.size[k])),
        tuple(rows),
        tuple(groups),
        "rows" if engine.counts_rows else "gradients",
        None,
        _caveats(engine, k, closed),
    )


def _scale(engine: Kept, k: int, reading: Reading) -> dict[str, float]:
    """The numbers of one scale, with what the mixture lost to it."""
    sums, spec = engine.sums_of(k), engine.spec
    own_loss = float(engine.state["totals"][k])
    excess = engine.progress.loss - own_loss
    r = float(reading.penalty[k]) + 0.5 * sums.proximal
    regret = sums.linear - float(reading.Su[k])
    return {
        "scale": spec.scales[k],
        "loss": own_loss,
        "excess": excess,
        "regret": regret + excess,
        "tight": regret + float(reading.lead[k]) + excess,
        "bound": r + 0.5 * sums.stability + excess,
        "theorem": r + sums.stability + excess,
    }


def _closed(engine: Kept, k: int, reading: Reading, comparison: Comparison, facts: Facts) -> dict[str, Any]:
    """B_R and the closed forms with their ratios, where they are bounds; otherwise the reason why not."""
    spec = engine.spec
    why = _why_not(engine, reading, comparison)
    if why is not None:
        return {"why": f"the worst case and the closed form are not bounds for this run: {why}"}
    D, h = spec.upper - spec.lower, spec.scales[k]
    c, excess = D / h, _scale(engine, k, reading)["excess"]
    DR, stability = float(reading.DR[k]), engine.sums_of(k).stability
    found: dict[str, Any] = {"worst_case": 0.5 * c * DR + stability + excess}  # ½ Q D², Q = sqrt(G) / h
    if not facts.unit_values:
        return found | {"why": "the closed form is not a bound for this run: not every |value| was 1"}
    return found | {
        "closed_form": (c / 2 + 2 / c) * DR + excess,
        "closed_form_strong": (c / 2 + 1 / c) * DR + excess,
        "proven_ratio": (c / 2 + 2 / c) / math.sqrt(2.0),
        "proven_regret_ratio": (c / 2 + 1 / c) / math.sqrt(2.0),
    }


def _why_not(engine: Kept, reading: Reading, comparison: Comparison) -> str | None:
    spec = engine.spec
    if comparison.kind != "box":
        return "they are about a box; name one with --radius"
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return "it was trained without bounds, so that plays may leave the box"
    if spec.intercept:
        return "the intercept has no bounds; train with --no-intercept"
    if spec.beta != 0.0 or spec.l1 != 0.0 or spec.l2 != 0.0:
        return f"beta={spec.beta:g}, l1={spec.l1:g} and l2={spec.l2:g} are not all 0"
    low, high = reading.units
    if low < high or (high and high != 1.0):
        return "not every |value| was 1, so that the box is not the bounds"
    if not spec.upper == -spec.lower == comparison.radius:
        return f"the box of radius {comparison.radius:g} is not the bounds {spec.lower:g} to {spec.upper:g}"
    return None


def _caveats(engine: Kept, k: int, closed: Mapping[str, Any]) -> tuple[str, ...]:
    told = []
    if len(engine.spec.scales) > 1:
        told.append(
            f"the numbers are those of scale {engine.spec.scales[k]:g}, the one with the least bound, plus what the"
            " mixture lost to it (less than 0 where it gained)"
        )
    if "why" in closed:
        told.append(str(closed["why"]))
    return tuple(told)


def _rounding(engine: Kept, size: float) -> float:
    """How far S, kept in a cell, may have drifted: a random walk of roundings over all rows, four times as long."""
    unit = 2.0**-53 if engine.spec.float64 else 2.0**-24
    return 4.0 * unit * math.sqrt(max(engine.progress.rows, 1)) * size
