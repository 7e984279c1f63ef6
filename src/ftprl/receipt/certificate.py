"""The certificate of a training stream: its regret against fixed weights, and bounds on it, to print or as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine
from ftprl.linear.mixture import rates_of
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals
from ftprl.receipt import ledger
from ftprl.receipt.caveats import Comparison, notes_of, offset_in_words
from ftprl.receipt.cell_groups import CellGroups
from ftprl.receipt.floor import NO_FLOOR, FloorLines, floor_lines
from ftprl.receipt.ledger import Certifiable, Comparator, Slots, StreamLedger
from ftprl.receipt.rounding import rounding_bound
from ftprl.runlog.floor import FloorCurve, Norm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ftprl.linear.model import Model


Vector = NDArray[np.float64]
Json = dict[str, Any]


@final
@dataclass(frozen=True, eq=False)
class StreamCertificate:
    """How much more the predictions of a stream lost, at most, than fixed weights would have; proved, not estimated.

    regret <= tight <= bound <= theorem up to `rounding`.
    With several scales the numbers are those of one scale, each with `excess` = loss(mixture) - loss(scale) added;
    post_hoc and the ratio are that scale's own. With labels in any unit `excess` is there with one scale as well: what
    labels beyond the range of those before cost, to which predictions are cut. `drift`, what rounding cost the learner,
    is part of every bound.
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
    post_hoc: Mapping[str, float | None]
    ratio: float | None
    shared: Mapping[str, float]
    rounding: float
    drift: float
    scales: tuple[Mapping[str, float], ...]
    coordinates: tuple[Mapping[str, Any], ...] = ()
    coordinates_by: str = "rows"
    named: tuple[Mapping[str, Any], ...] = ()  # the same by columns or namespaces, where all names are known
    exact: Mapping[str, Any] | None = None
    caveats: tuple[str, ...] = ()
    floors: FloorLines = NO_FLOOR
    norm: Norm = "2"
    length: float | None = None  # of the fixed weights in units of features; None for a box or where classes never came
    baseline: Mapping[str, float | None] = field(default_factory=dict)
    rates: Mapping[str, Any] | None = None
    points: tuple[Mapping[str, float], ...] = ()
    loss_name: str = ""
    offset: str = ""  # what fixed weights are added to, in words
    confidence: Mapping[str, Any] | None = None  # of rows to come; None where no run recorded it
    order: str | None = None  # of the rows of the latest run: "random" or "given"
    check: Mapping[str, Any] | None = None  # how the model predicted while it did not learn, as JSON values
    drawn: Mapping[str, float | None] | None = None  # losses of the rows learned last, drawn from more than may wait
    runs: int = 1
    first_pass: Mapping[str, float | None] | None = None  # its losses, where later passes learned the same rows again

    @property
    def true_regret(self) -> float | None:
        """At most this much above the loss of the best fixed weights of the box; None unless these were computed."""
        return None if self.exact is None else float(self.exact["true_regret"])

    @property
    def gain(self) -> float | None:
        """How many times smaller the best bound is with per-coordinate learning rates than with a single one."""
        const, diagonal = self.post_hoc["const"], self.post_hoc["diagonal"]
        return const / diagonal if const is not None and diagonal else None

    def __repr__(self) -> str:
        return f"StreamCertificate(rounds={self.rounds}, regret={self.regret:.6g}, bound={self.bound:.6g})"

    def to_dict(self) -> Json:
        """Numbers, strings and lists, ready for JSON: the keys of `ftprl.Certificate` that a stream has, and more."""
        names = (
            "rounds regret true_regret tight bound theorem ratio weight loss scale excess gain rounding drift"
            " coordinates_by"
        )
        out: Json = {name: _json_number(getattr(self, name)) for name in names.split()}
        out |= {"family": "diagonal", "solver_gap": 0.0, "caveats": list(self.caveats)}
        out["comparator"] = {name: value for name, value in asdict(self.comparison).items() if value is not None}
        out["post_hoc"] = {name: _json_number(value) for name, value in self.post_hoc.items()}
        out["shared"] = dict(self.shared)
        out["scales"] = [dict(row) for row in self.scales]
        out["coordinates"] = [dict(row) for row in self.coordinates]
        if self.named:
            out["named"] = [dict(row) for row in self.named]
        out["exact"] = None if self.exact is None else dict(self.exact)
        out["baseline"] = {name: _json_number(value) for name, value in self.baseline.items()}
        out["rates"] = None if self.rates is None else dict(self.rates)
        out["confidence"] = None if self.confidence is None else dict(self.confidence)
        out |= {"order": self.order, "check": None if self.check is None else dict(self.check)}
        out["drawn"] = None if self.drawn is None else dict(self.drawn)
        if self.first_pass is not None:
            out["first_pass"] = dict(self.first_pass)
        return out | {"floor": self._floor_to_dict()}

    def _floor_to_dict(self) -> Json:
        curve = self.curve.to_dict()
        named = {name: curve[name] for name in ("norm", "unit", "least", "beaten_length", "informative_length")}
        lines, points = [line.to_dict() for line in self.floors.lines], [dict(point) for point in self.points]
        return {**named, "length": self.length, "lines": lines, "points": points}

    def brief(self) -> Json:
        """The numbers that an event of a run has: docs/events.md."""
        names = ("weight", "loss", "scale", "excess", "regret", "tight", "bound", "theorem", "gain", "ratio")
        out = {"rows": self.rounds, **{name: _json_number(getattr(self, name)) for name in names}}
        out |= {
            "post_hoc": _json_number(self.post_hoc["diagonal"] or None),
            "const": _json_number(self.post_hoc["const"] or None),
        }
        return out | {"shared": dict(self.shared)}

    def __str__(self) -> str:
        from ftprl.receipt.printed import certificate_text

        return certificate_text(self)

    def _repr_html_(self) -> str:
        """As a notebook shows it: the questions with their answers, and the regret under its bound."""
        from ftprl.draw.card import card
        from ftprl.receipt.printed import four_answers

        rows: list[tuple[str, str]] = list(four_answers(self))
        rows += [
            ("total loss", f"{self.loss:.6g}"),
            ("regret", f"at most {self.regret:.6g}, bound {self.bound:.6g}"),
        ]
        return card(f"Certificate of {self.rounds:,} rows", rows, " ".join(self.caveats))

    @property
    def latest(self) -> Json:
        """What is known of the latest run besides its numbers."""
        return {"order": self.order, "check": self.check, "drawn": self.drawn, "runs": self.runs}

    @property
    def curve(self) -> FloorCurve:
        """The floor: the loss per row that no fixed weights of a length can be below."""
        return self.floors.curve(self.norm, self.loss, self.weight)

    def floor(self, length: float) -> float:
        """A loss per row that no fixed weights up to this length, in units of their features, can be below.

        The length is the root of the sum of (weight times unit)², the intercept included; with `norm` "1" or "inf" it
        is their sum, or the largest of them.
        """
        return self.curve.at(length)

    @property
    def beaten_length(self) -> float | None:
        """Up to this length every fixed weight vector is provably no better than the run; None where not even 0 is."""
        return self.curve.beaten_length

    def plot(self) -> Figure:
        """The floor under the run's own loss, as a Matplotlib figure."""
        from ftprl import draw
        from ftprl.runlog.plots import floor

        return draw.figure([floor(self.curve, points=self.points, own=self.length)])

    def with_exact(self, exact: Mapping[str, Any]) -> StreamCertificate:
        """The same certificate with the true regret."""
        return replace(self, exact=exact)

    def with_points(self, points: Iterable[Mapping[str, float]]) -> StreamCertificate:
        """The same certificate with the best fixed weights of some lengths."""
        return replace(self, points=tuple(points))

    def with_latest(self, model: Model) -> StreamCertificate:
        """Return the certificate with the losses of the first pass, and what the latest run tells of rows to come."""
        progressive, expected, history = model.progressive, model.confidence, model.history
        first = {"rows": progressive.rows, **against_baseline(progressive)}
        drawn = None if "sample" not in history else LossTotals(*history["sample"])
        return replace(
            self,
            first_pass=first if progressive.rows < self.rounds else None,
            confidence=None if expected is None else expected.to_dict(),
            order=history.get("order", {}).get("order"),
            check=history.get("check"),
            runs=len((model.provenance or {}).get("runs", ())) or 1,
            drawn=None if drawn is None else {"rows": drawn.rows, **against_baseline(drawn)},
        )

    def with_norm(self, norm: Norm) -> StreamCertificate:
        """The same certificate with lengths in another norm."""
        return replace(self, norm=norm)


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def own_certificate(engine: Certifiable, *, grouped: bool = True, **more: Any) -> StreamCertificate:
    """The certificate against the model's own weights, those of the leading scale."""
    own = ledger.own_weights(engine)
    return certificate_against(engine, own, Comparison("weights"), grouped=grouped, **more)


def box_certificate(engine: Certifiable, radius: float, **more: Any) -> StreamCertificate:
    """The certificate against every u of the box |u_i| <= radius / unit_i (and within the bounds)."""
    return certificate_against(engine, ledger.box(radius), Comparison("box", radius=radius), **more)


@np.errstate(over="ignore", invalid="ignore")  # of a forged model; `not_finite` says so
def certificate_against(
    engine: Certifiable,
    comparator: Comparator,
    comparison: Comparison,
    *,
    slots: Slots | None = None,
    grouped: bool = True,
    cells: CellGroups | None = None,
) -> StreamCertificate:
    """The certificate of all rows that an engine learned, by the scale with the smallest bound.

    `cells` says which column or namespace each cell belongs to.
    """
    slots = engine.touched() if slots is None else slots
    sums = ledger.stream_ledger(engine, comparator, slots)
    if not grouped:
        return _assembled(engine, sums, comparison, [])
    parts = ledger.stream_ledger(engine, comparator, slots, grouped=_smallest(engine, sums)[1], cells=cells)
    return replace(_assembled(engine, sums, comparison, parts.groups), named=tuple(parts.named))


@np.errstate(over="ignore", invalid="ignore")
def running_certificate(engine: Engine, slots: Slots | None = None, *, grouped: bool = False) -> StreamCertificate:
    """The certificate against an engine's own weights, fast, during a run; with groups of coordinates if `grouped`."""
    sums = ledger.own_stream_ledger(engine, slots)
    groups = ledger.own_groups(engine, _smallest(engine, sums)[1]) if grouped else []
    return _assembled(engine, sums, Comparison("weights"), groups)


def _smallest(engine: Certifiable, sums: StreamLedger) -> tuple[list[dict[str, float]], int]:
    """The numbers of every scale, and the number of the one with the smallest bound."""
    rows = [scale_numbers(engine, k, sums) for k in range(len(engine.spec.scales))]
    return rows, min(range(len(rows)), key=lambda j: rows[j]["bound"])


def _assembled(
    engine: Certifiable, sums: StreamLedger, comparison: Comparison, groups: list[Json]
) -> StreamCertificate:
    spec, progress = engine.spec, engine.progress
    rows, k = _smallest(engine, sums)
    own, learned = rows[k], engine.row_sums(k)
    post = best_bounds(spec, sums, k)
    rounding, drift = rounding_of(engine, k, sums), engine.rounding_sums(k).drift
    best, floors = post["diagonal"] or None, floor_lines(engine, sums)
    counted = own["theorem"] - own["excess"] - drift
    return StreamCertificate(
        progress.rows,
        learned.weight,
        learned.prediction_loss,
        replace(comparison, nonzero=None if comparison.kind == "box" else sums.nonzero),
        spec.scales[k],
        own["excess"],
        own["regret"],
        own["tight"],
        own["bound"],
        own["theorem"],
        post,
        None if best is None else counted / best,
        {"regret": own["regret"] + float(sums.Su[k]), "bound": own["bound"] - float(sums.penalty[k])},
        rounding,
        drift,
        tuple(rows),
        tuple(groups),
        "rows" if engine.counts_rows else "gradients",
        (),
        None,
        notes_of(
            spec,
            spec.scales[k],
            regret=own["regret"],
            loss=learned.prediction_loss,
            to_come=engine.classes_to_come,
        ),
        floors,
        # These weights have classes that the fixed weights of the floor have not, where some never came.
        length=None
        if comparison.kind == "box" or engine.classes_to_come
        else 0.5 * math.sqrt(float(sums.D2[k])) / floors.unit,
        baseline=against_baseline(progress),
        rates=rates_of(engine.state, spec, progress),
        loss_name=spec.loss,
        offset=offset_in_words(spec.scalar_loss()) if spec.scalar_loss().has_offset else "",
    )


def against_baseline(progress: LossTotals) -> dict[str, float | None]:
    """The total loss of all rows, the baseline's, and the least possible; None where no baseline is known."""
    known = math.isfinite(progress.baseline)
    baseline = progress.baseline if known else None
    least = progress.least if known else None
    return {"loss": progress.loss, "weight": progress.weight, "baseline": baseline, "least": least}


def best_bounds(spec: Spec, sums: StreamLedger, k: int) -> dict[str, float | None]:
    """The best bounds in hindsight; known where R is sqrt(G), which is so with the log loss alone."""
    if spec.scalar_loss().has_units:
        return {"const": None, "diagonal": None, "full": None}
    const = math.sqrt(2.0 * float(sums.D2[k]) * float(sums.G[k]))
    return {"const": const, "diagonal": math.sqrt(2.0) * float(sums.DR[k]), "full": None}


def scale_numbers(engine: Certifiable, k: int, sums: StreamLedger) -> dict[str, float]:
    """The numbers of one scale, with what the mixture lost to it."""
    totals, rows, spec = engine.sums_of(k), engine.row_sums(k), engine.spec
    excess = rows.prediction_loss - rows.scale_loss
    r = float(sums.penalty[k]) + 0.5 * totals.proximal + engine.rounding_sums(k).drift + rows.terms
    regret = totals.linear - float(sums.Su[k]) + rows.terms
    return {
        "scale": spec.scales[k],
        "loss": rows.scale_loss,
        "excess": excess,
        "regret": regret + excess,
        "tight": regret + float(sums.lead[k]) + excess,
        "bound": r + 0.5 * totals.stability + excess,
        "theorem": r + totals.stability + excess,
    }


def rounding_of(engine: Certifiable, k: int, sums: StreamLedger) -> float:
    """How far the numbers of a scale can be from exact ones, at most."""
    totals, error, spec = engine.sums_of(k), engine.rounding_sums(k), engine.spec
    numbers = (float(a[k]) for a in (sums.size, sums.reach, sums.DR))
    size, reach, DR = numbers
    if spec.scalar_loss().has_units:
        DR = math.inf  # R is not sqrt(G)
    return rounding_bound(
        rows=engine.progress.rows,
        coordinates=float(sums.count[k]),
        float64=spec.float64,
        linear=error.linear_size,
        step=error.step_size,
        slopes=error.slopes,
        positive=abs(totals.proximal) + totals.stability,
        size=size,
        reach=reach,
        DR=DR,
        losses=engine.row_sums(k).sizes,
    )
