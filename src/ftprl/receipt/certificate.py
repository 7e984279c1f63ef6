"""The certificate of a training stream: its regret against fixed weights, and bounds on it, to print or as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine
from ftprl.linear.spec import Spec
from ftprl.losses import ScalarLoss
from ftprl.receipt import ledger
from ftprl.receipt.ledger import Certifiable, Comparator, Slots, StreamLedger
from ftprl.receipt.rounding import rounding_bound

Vector = NDArray[np.float64]
Json = dict[str, Any]
_COARSE = "its float32 cells no longer count its smallest gradients; train with --float64"


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """The fixed weights u of a comparison: the model's own `weights`, all of a `box`, or those of another `model`."""

    kind: str
    radius: float | None = None
    sha256: str | None = None  # of the other model
    nonzero: int | None = None  # coordinates that are not 0

    def __str__(self) -> str:
        if self.kind == "box":
            return f"the best weights with |weight| <= {self.radius:g} / unit of the feature"
        return "the model's final weights" if self.kind == "weights" else "the weights of the other model"


@final
@dataclass(frozen=True, eq=False)
class StreamCertificate:
    """How much more the predictions of a stream lost, at most, than fixed weights would have; proved, not estimated.

    regret <= tight <= bound <= theorem up to `rounding`; theorem <= worst_case <= closed_form where these are bounds.
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
    drift: float
    scales: tuple[Mapping[str, float], ...]
    coordinates: tuple[Mapping[str, Any], ...] = ()
    coordinates_by: str = "rows"
    exact: Mapping[str, Any] | None = None
    caveats: tuple[str, ...] = ()

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
        """Numbers, strings and lists, ready for JSON: the keys of `ftprl.Certificate`, and more."""
        names = (
            "rounds regret true_regret tight bound theorem worst_case closed_form closed_form_strong ratio ratio_of"
            " proven_ratio proven_regret_ratio weight loss scale excess gain rounding drift coordinates_by"
        )
        out: Json = {name: _json_number(getattr(self, name)) for name in names.split()}
        out |= {"family": "diagonal", "solver_gap": 0.0, "caveats": list(self.caveats)}
        out["comparator"] = {name: value for name, value in asdict(self.comparison).items() if value is not None}
        out["post_hoc"] = {name: _json_number(value) for name, value in self.post_hoc.items()}
        out["shared"] = dict(self.shared)
        out["scales"] = [dict(row) for row in self.scales]
        out["coordinates"] = [dict(row) for row in self.coordinates]
        out["exact"] = None if self.exact is None else dict(self.exact)
        return out

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
        rows = [row for row in self._table() if row[1] is not None]
        cells = [
            (name, f"{value:.6g}", self._per_row(value) if in_loss else "", note) for name, value, in_loss, note in rows
        ]
        cells.insert(0, ("", "total", "per row" if self.weight == self.rounds else "per weight", ""))
        width, total, mean = (max(len(row[i]) for row in cells) for i in range(3))
        leading = " (those of its leading scale)" if self.comparison.kind == "weights" and len(self.scales) > 1 else ""
        lines = [
            f"{self.rounds} row{'s' if self.rounds != 1 else ''} learned, compared with {self.comparison}{leading}"
        ]
        lines += [f"  {a:<{width}}  {b:>{total}}  {c:>{mean}}  {d}".rstrip() for a, b, c, d in cells]
        return "\n".join([*lines, *(f"  note: {caveat}" for caveat in self.caveats)])

    def _per_row(self, value: float | None) -> str:
        return f"{(value or 0.0) / (self.weight or 1.0):.4g}"

    def _table(self) -> list[tuple[str, float | None, bool, str]]:
        """Label, number, whether it is a loss (and has a mean per row), explanation."""
        of = "theorem's bound" if self.ratio_of == "theorem" else "worst case"
        alone = f", both of scale {self.scale:g} alone" if len(self.scales) > 1 else ""
        proved = "" if self.proven_ratio is None else f"; proved to be at most {self.proven_ratio:.4g}"
        better = "; below 1: better than fixed rates could guarantee" if (self.ratio or 1.0) < 1.0 else ""
        name, what = self._excess_in_words()
        return [
            ("total loss", self.loss, True, "of the predictions, each made before its row was learned"),
            (
                "regret at most",
                self.regret,
                True,
                "total loss minus that of the fixed weights, linearised (never less)",
            ),
            ("true regret", self.true_regret, True, "the same without linearising, from the training data"),
            ("tight bound", self.tight, True, "equal to the regret where the weights are the optimum of the past rows"),
            ("bound", self.bound, True, "proved from sums of this run: the regret cannot be above it"),
            ("theorem's bound", self.theorem, True, "the weaker form of it that the paper proves"),
            (name, self.excess or None, True, f"{what}; part of the regret and the bounds"),
            ("worst case", self.worst_case, True, "guaranteed for these learning rates, whatever weights were played"),
            ("closed form", self.closed_form, True, "the paper's formula in the gradients alone"),
            ("closed form, strong", self.closed_form_strong, True, "the smaller one that the bound above implies"),
            (
                "best one-rate bound",
                self.post_hoc["const"],
                True,
                "guarantee of the best fixed learning rate, in hindsight",
            ),
            (
                "best per-coordinate bound",
                self.post_hoc["diagonal"],
                True,
                "the same with a learning rate for each feature; may be above the bound",
            ),
            ("gain", self.gain, False, "best one-rate bound / best per-coordinate bound"),
            ("ratio", self.ratio, False, f"{of} / best per-coordinate bound{alone}{proved}{better}"),
        ]

    def _excess_in_words(self) -> tuple[str, str]:
        """A name for `excess`, and what it is."""
        if len(self.scales) > 1:
            return "mixing", f"loss of the mixture minus that of scale {self.scale:g} alone"
        return "new range", "loss from labels beyond the range of those before, to which predictions are cut"

    def with_exact(self, exact: Mapping[str, Any]) -> StreamCertificate:
        """The same certificate with the true regret."""
        return replace(self, exact=exact)


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def own_certificate(engine: Certifiable, *, unit_values: bool = False, grouped: bool = True) -> StreamCertificate:
    """The certificate against the model's own weights, those of the leading scale."""
    own = ledger.own_weights(engine)
    return certificate_against(engine, own, Comparison("weights"), unit_values=unit_values, grouped=grouped)


def box_certificate(engine: Certifiable, radius: float, *, unit_values: bool = False) -> StreamCertificate:
    """The certificate against every u of the box |u_i| <= radius / unit_i (and within the bounds)."""
    return certificate_against(engine, ledger.box(radius), Comparison("box", radius=radius), unit_values=unit_values)


@np.errstate(over="ignore", invalid="ignore")  # of a forged model; `not_finite` says so
def certificate_against(
    engine: Certifiable,
    comparator: Comparator,
    comparison: Comparison,
    *,
    unit_values: bool = False,
    slots: Slots | None = None,
    grouped: bool = True,
) -> StreamCertificate:
    """The certificate of all rows that an engine learned, by the scale with the smallest bound.

    `unit_values` says that every |value| was 0 or 1: only then is the closed form a bound.
    """
    slots = engine.touched() if slots is None else slots
    sums = ledger.stream_ledger(engine, comparator, slots)
    groups = []
    if grouped:
        groups = ledger.stream_ledger(engine, comparator, slots, grouped=_smallest(engine, sums)[1]).groups
    return _assembled(engine, sums, comparison, unit_values, groups)


@np.errstate(over="ignore", invalid="ignore")
def running_certificate(engine: Engine, slots: Slots | None = None, *, grouped: bool = False) -> StreamCertificate:
    """The certificate against an engine's own weights, fast, during a run; with groups of coordinates if `grouped`."""
    sums = ledger.own_stream_ledger(engine, slots)
    groups = ledger.own_groups(engine, _smallest(engine, sums)[1]) if grouped else []
    return _assembled(engine, sums, Comparison("weights"), False, groups)


def _smallest(engine: Certifiable, sums: StreamLedger) -> tuple[list[dict[str, float]], int]:
    """The numbers of every scale, and the number of the one with the smallest bound."""
    rows = [scale_numbers(engine, k, sums) for k in range(len(engine.spec.scales))]
    return rows, min(range(len(rows)), key=lambda j: rows[j]["bound"])


def _assembled(
    engine: Certifiable, sums: StreamLedger, comparison: Comparison, unit_values: bool, groups: list[Json]
) -> StreamCertificate:
    spec, progress = engine.spec, engine.progress
    rows, k = _smallest(engine, sums)
    own, learned = rows[k], engine.row_sums(k)
    post = best_bounds(spec, sums, k)
    rounding, drift = rounding_of(engine, k, sums), engine.rounding_sums(k).drift
    closed = holding(closed_forms(engine, k, sums, comparison, unit_values), own["theorem"], rounding)
    worst = closed.get("worst_case")
    best = post["diagonal"] or None
    counted = (own["theorem"] if worst is None else worst) - own["excess"] - drift
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
        worst,
        closed.get("closed_form"),
        closed.get("closed_form_strong"),
        post,
        None if best is None else counted / best,
        "theorem" if worst is None else "worst_case",
        closed.get("proven_ratio"),
        closed.get("proven_regret_ratio"),
        {"regret": own["regret"] + float(sums.Su[k]), "bound": own["bound"] - float(sums.penalty[k])},
        rounding,
        drift,
        tuple(rows),
        tuple(groups),
        "rows" if engine.counts_rows else "gradients",
        None,
        caveats_of(
            spec,
            spec.scales[k],
            sums.units,
            comparison,
            unit_values,
            closed,
            regret=own["regret"],
            loss=learned.prediction_loss,
        ),
    )


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


def closed_forms(
    engine: Certifiable, k: int, sums: StreamLedger, comparison: Comparison, unit_values: bool
) -> dict[str, float]:
    """B_R and the closed forms with their ratios, where they are bounds."""
    spec = engine.spec
    if no_worst_case(spec, sums.units, comparison) is not None:
        return {}
    D, h = spec.upper - spec.lower, spec.scales[k]
    c, more = D / h, scale_numbers(engine, k, sums)["excess"] + engine.rounding_sums(k).drift
    DR, stability = float(sums.DR[k]), engine.sums_of(k).stability
    forms = {"worst_case": 0.5 * c * DR + stability + more}  # ½ Q D², Q = sqrt(G) / h
    if not unit_values:
        return forms
    return forms | {
        "closed_form": (c / 2 + 2 / c) * DR + more,
        "closed_form_strong": (c / 2 + 1 / c) * DR + more,
        "proven_ratio": (c / 2 + 2 / c) / math.sqrt(2.0),
        "proven_regret_ratio": (c / 2 + 1 / c) / math.sqrt(2.0),
    }


def holding(forms: Mapping[str, float], theorem: float, rounding: float) -> dict[str, float]:
    """The forms that are bounds in the arithmetic that was used: float32 cells may not count the smallest gradients."""
    worst, closed = forms.get("worst_case"), forms.get("closed_form")
    if worst is None or theorem > worst + rounding:
        return {}
    if closed is not None and worst > closed + rounding:
        return {"worst_case": worst}
    return dict(forms)


def no_worst_case(spec: Spec, units: tuple[float, float], comparison: Comparison) -> str | None:
    """Why the worst case is no bound for this run; None where it is one."""
    if spec.scalar_loss().has_units:
        return "these are of gradients in a fixed unit; only logistic loss has one"
    if comparison.kind != "box":
        return "they hold for a box of weights; pass one with --radius"
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return "it was trained without --lower and --upper, so that its weights may leave the box"
    if spec.intercept:
        return "the intercept has no bounds; train with --no-intercept"
    if spec.beta != 0.0 or spec.l1 != 0.0 or spec.l2 != 0.0:
        return f"beta={spec.beta:g}, l1={spec.l1:g} and l2={spec.l2:g} are not all 0"
    low, high = units
    if low < high or (high and high != 1.0):
        return "not every |value| was 1"
    if not spec.upper == -spec.lower == comparison.radius:
        return f"the box of radius {comparison.radius:g} is not the bounds {spec.lower:g} to {spec.upper:g}"
    return None


def caveats_of(
    spec: Spec,
    scale: float,
    units: tuple[float, float],
    comparison: Comparison,
    unit_values: bool,
    forms: Mapping[str, float | None],
    *,
    regret: float,
    loss: float,
) -> tuple[str, ...]:
    """What the numbers do not say by themselves, in words."""
    notes = []
    if regret > loss >= 0.0 and spec.scalar_loss().link != "log":  # with a log link losses may be below 0
        notes.append(
            "not informative: the regret stated here is above the total loss, which no regret can be. Use a smaller"
            " --radius, or --radius R --exact DATA"
        )
    loss_function = spec.scalar_loss()
    if loss_function.has_offset:
        notes.append(
            f"what fixed weights predict is added to {offset_in_words(loss_function)} up to each row, as with the"
            " predictions of this run"
        )
    if loss_function.rule == "log_mean":
        notes.append("losses here are divided by the mean of the labels up to their row")
    if len(spec.scales) > 1:
        notes.append(
            f"regret and bounds are those of scale {scale:g}, the one with the smallest bound, plus the line `mixing`"
        )
    if not (math.isfinite(spec.lower) and math.isfinite(spec.upper)):
        return tuple(notes)  # most runs: docs/receipt.md says when there is a worst case
    if (reason := no_worst_case(spec, units, comparison)) is not None:
        notes.append(f"no worst case and no closed form: {reason}")
    elif forms.get("worst_case") is None:
        notes.append(f"no worst case and no closed form: {_COARSE}")
    elif not unit_values:
        notes.append("no closed form: not every |value| was 1")
    elif forms.get("closed_form") is None:
        notes.append(f"no closed form: {_COARSE}")
    return tuple(notes)


def offset_in_words(loss: ScalarLoss) -> str:
    """What scores are counted from: docs/labels.md.

    >>> offset_in_words(Spec(loss="squared").scalar_loss())
    'the mean of the labels'
    """
    kinds = {"mean": "the mean", "median_of_unit": "the median", "log_mean": "the log of the mean"}
    if loss.rule == "quantile":
        return f"the {loss.tau or 0.5:g} quantile of the labels"
    return f"{kinds.get(loss.rule, 'the log of the mean')} of the labels"


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
