"""`Run`: the result of `train`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ftprl.errors import InvalidInput
from ftprl.linear.frozen import FrozenCheck
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.runlog import rows as rows_of
from ftprl.runlog.events import Event
from ftprl.runlog.rows import Caution
from ftprl.runlog.yardstick import root_mean_square
from ftprl.training.progress import loss_fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ftprl.confidence import ResidualSummary, RunConfidence
    from ftprl.receipt.certificate import StreamCertificate


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """A finished run: its model, its events, and the losses of its rows before they were learned.

    With several passes `reviews` has the loss of the held-out rows at the end of each that was compared, `best_pass` is
    the number of the one with the smallest, and `holdout` is its loss; the model learned all rows in so many passes.
    Without held-out rows the last pass is kept.
    `bad_rows` were left out, the first for the reason `first_bad`. `failed_checkpoints` could not be written, the first
    for the reason `checkpoint_error`. `only_class` is 1 or -1 when every label of a
    loss with two classes was of that class. `path` is where the model was saved. `confidence` is what to expect of rows
    to come: intervals that hold at every row at once, and the drift alarm; None when no row was learned. `residuals` is
    how far labels were from their predictions in the first pass, where labels are numbers. `order` is that of the rows,
    and `check` how the saved model predicts rows, as it does not learn then: the last ones before any was learned, or
    some that it has learned. `drawn` is the loss of the rows that were learned last, where these are a random draw from
    more rows than may wait. `cautions` are the warnings: `warnings` has their texts.
    """

    model: Model
    events: tuple[Event, ...]
    progressive: LossTotals
    holdout: LossTotals | None
    reviews: tuple[LossTotals, ...]
    best_pass: int | None
    rows: int
    bad_rows: int
    first_bad: str | None
    only_class: int | None
    failed_checkpoints: int
    checkpoint_error: str | None
    seconds: float
    path: str | None
    confidence: RunConfidence | None
    residuals: ResidualSummary | None
    order: Mapping[str, Any]
    check: FrozenCheck | None
    drawn: LossTotals | None
    cautions: tuple[Caution, ...]

    @property
    def warnings(self) -> list[str]:
        """What the command line prints as warnings, and Python warns of; the model keeps them."""
        return [caution.text for caution in self.cautions]

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of a table as the first rows show them: name, kind, example, distinct, missing, features, advice.

        `advice` is None, or what may be better for a column, such as leaving out one that looks like an identifier.
        """
        return next((event["data"]["profile"] for event in self.events if "data" in event), [])

    @property
    def certificate(self) -> StreamCertificate:
        """The certificate of all rows the model ever learned, against its own weights; needs `receipt=True`."""
        from ftprl.receipt.cell_groups import CellGroups
        from ftprl.receipt.certificate import own_certificate

        certificate = own_certificate(self.model.engine, cells=CellGroups.of_model(self.model))
        return certificate.with_latest(self.model)

    @property
    def progressive_loss(self) -> float:
        """The mean loss of the first pass, each row before it was learned."""
        return self.progressive.mean

    @property
    def baseline(self) -> float:
        """The mean loss of the same rows when each is predicted from the labels before it alone; NaN when not known."""
        return self.progressive.baseline_mean

    @property
    def improvement(self) -> float:
        """How much better than the baseline, in percent of what can be gained at all."""
        return self.progressive.improvement

    @property
    def rmse(self) -> float | None:
        """The root mean squared error of the first pass, each row before it was learned; None but for squared loss."""
        return root_mean_square(self.progressive_loss) if self.model.spec.scalar_loss().rmse else None

    @property
    def deviance(self) -> float | None:
        """The mean deviance of the first pass, each row before it was learned; None but for Poisson and gamma loss."""
        totals = self.progressive
        has_deviance = self.model.spec.scalar_loss().has_deviance and totals.weight > 0.0
        return 2.0 * (totals.loss - totals.least) / totals.weight if has_deviance else None

    def plot(self) -> Figure:
        """The progressive loss and, where a receipt was kept, the regret under its bounds, as a Matplotlib figure."""
        from ftprl import draw
        from ftprl.runlog import plots
        from ftprl.runlog.reader import RunLog

        log = RunLog.from_events(self.events)
        panels = [panel for panel in (plots.loss(log), plots.regret(log)) if panel is not None]
        if not panels:
            raise InvalidInput("plot needs rows with a loss, got none; train on some.")
        return draw.figure(panels)

    def __repr__(self) -> str:
        saved = "" if self.path is None else f", saved to {self.path}"
        return f"Run({self.rows} rows, loss {self.progressive_loss:.6g}, baseline {self.baseline:.6g}{saved})"

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from ftprl.draw.card import card

        rows = [("rows read", f"{self.rows:,}"), ("progressive loss", self.headline)]
        if self.check is not None:
            check = self.check.to_dict()
            rows.append((rows_of.name_of_check(check), rows_of.checked(self._loss, check)))
        if self.holdout is not None:
            rows.append(("held-out loss", self._measured(self.holdout)))
        if self.best_pass is not None:
            rows.append(("passes", self._choice()))
        if self.confidence is not None:
            drift = "" if self.confidence.drift is None else f"; {self.confidence.drift.text()}"
            goes_on = "" if self.order.get("order") == "random" else ", if the model goes on learning"
            rows.append((f"loss of rows like these{goes_on}", f"{self.confidence.loss.ends()}{drift}"))
        if self.bad_rows:
            rows.append(("bad rows left out", f"{self.bad_rows:,}, the first: {self.first_bad}"))
        rows += [("warning", text) for text in self.warnings]
        rows += [("seconds", f"{self.seconds:.2f}"), ("model", repr(self.model))]
        return card("Run", rows, "" if self.path is None else f"saved to {self.path}")

    def __str__(self) -> str:
        lines = [self.summary]
        if self.check is not None:
            lines.append(rows_of.checked(self._loss, self.check.to_dict()))
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    @property
    def summary(self) -> str:
        """How the rows were predicted, each before it was learned, with held-out and bad rows, in one line."""
        text = self.headline
        if self.holdout is not None:
            held = "last pass: held-out" if self._passes > 1 else "held-out"
            text += f"; {held} " if self.best_pass is None else f"; {self._choice()}: "
            text += self._measured(self.holdout)
            if self.drawn is not None or self.order.get("order") == "given":
                text += ", predicted in their turn by a model that went on learning"
        return text + (f"; {self.bad_rows} bad row{'s'[: self.bad_rows > 1]} left out" if self.bad_rows else "")

    @property
    def headline(self) -> str:
        """How the rows were predicted, each before it was learned, in words."""
        drawn = None if self.drawn is None else {"rows": self.drawn.rows, **loss_fields(self.drawn)}
        rows, total = self.rows // self._passes, loss_fields(self.progressive)
        text = rows_of.headline(self._loss, rows, self.order, total, drawn, self.progressive.rows)
        return f"{self._passes} passes; in the first, {text}" if self._passes > 1 else text

    @property
    def _passes(self) -> int:
        return max((event["pass"] for event in self.events if event["event"] in ("pass", "end")), default=1)

    @property
    def _loss(self) -> str:
        return self.model.spec.loss

    def _choice(self) -> str:
        how = "pass" if self.best_pass == 1 else "passes"
        return f"all rows learned in {self.best_pass} {how}, the best of {len(self.reviews)} for held-out rows"

    def _measured(self, totals: LossTotals) -> str:
        return rows_of.measured(self._loss, *loss_fields(totals).values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progressive_loss": self.progressive_loss,
            "baseline": self.baseline,
            "improvement": self.improvement,
            "rmse": self.rmse,
            "deviance": self.deviance,
            "weight": self.progressive.weight,
            "holdout_loss": None if self.holdout is None else self.holdout.mean,
            "holdout_baseline": None if self.holdout is None else self.holdout.baseline_mean,
            "holdout_improvement": None if self.holdout is None else self.holdout.improvement,
            "holdout_by_pass": [totals.mean for totals in self.reviews],
            "best_pass": self.best_pass,
            "seconds": self.seconds,
            "model": self.path,
            "failed_checkpoints": self.failed_checkpoints,
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "order": dict(self.order),
            "sample": None if self.drawn is None else {"rows": self.drawn.rows, **loss_fields(self.drawn)},
            "check": None if self.check is None else self.check.to_dict(),
            "warnings": self.warnings,
        }
