"""What is kept between two rows: how far a run has come, and what its model had read before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, final

from ftprl.confidence import RunMonitor
from ftprl.data import Position, Source
from ftprl.errors import InvalidInput
from ftprl.linear.engine import Engine
from ftprl.linear.frozen import FrozenCheck, LossMoments
from ftprl.linear.model import Vector
from ftprl.linear.refusal import RowRefused
from ftprl.linear.totals import LossTotals
from ftprl.training.label_blocks import LabelBlocks

NO_LOSS = LossTotals(0.0, 0.0, 0, baseline=0.0)
ExpertWeights = list[float]  # as `Engine.expert_weights`
_NEGATIVE, _POSITIVE = 1, 2


@final
class TrainingHistory(NamedTuple):
    """What a model has read in all its runs: rows (each counted once, not once a pass), bad rows and losses.

    `monitor` has the numbers of the `RunMonitor`. `delay` is after how many rows labels arrived in the last run that
    had late ones; None without. `order` is that of the rows of the last run, and `check` says how the model predicts
    while it does not learn. `sample` is the loss of the rows that a run learned last, if they are a random draw from
    more rows than may wait. `cautions` are the warnings of the runs:
    for what each is about its text and the options that it names.
    """

    rows: int = 0
    bad_rows: int = 0
    progressive: LossTotals = NO_LOSS
    holdout: LossTotals = NO_LOSS
    monitor: tuple[float, ...] = ()
    delay: int | None = None
    order: Mapping[str, Any] | None = None
    check: FrozenCheck | None = None
    sample: LossTotals | None = None
    cautions: Mapping[str, list[str]] = MappingProxyType({})

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progressive": self.progressive.to_list(),
            "holdout": self.holdout.to_list(),
            **({"monitor": list(self.monitor)} if self.monitor else {}),
            **({} if self.delay is None else {"delay": self.delay}),
            **({} if self.order is None else {"order": dict(self.order)}),
            **({} if self.check is None else {"check": self.check.to_dict()}),
            **({} if self.sample is None else {"sample": self.sample.to_list()}),
            **({"cautions": dict(self.cautions)} if self.cautions else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingHistory:
        """The history that `to_dict` wrote; an empty one for a model that was not made by `train`."""
        if not values:
            return cls()
        progressive, holdout = LossTotals.from_list(values["progressive"]), LossTotals.from_list(values["holdout"])
        monitor = tuple(map(float, values.get("monitor", ())))
        check, sample = values.get("check"), values.get("sample")
        return cls(
            int(values["rows"]),
            int(values["bad_rows"]),
            progressive,
            holdout,
            monitor,
            values.get("delay"),
            values.get("order"),
            None if check is None else FrozenCheck.from_dict(check),
            None if sample is None else LossTotals.from_list(sample),
            values.get("cautions", {}),
        )


@final
@dataclass(slots=True, eq=False)
class RunState:
    """How far a run has come: all that a checkpoint keeps besides the model.

    `run_start` and `pass_start` are the engine's loss totals at the start of the run and of the present pass,
    `first_pass` those at the end of the first pass once it is over. `holdout` are the totals of held-out rows.
    `refused_rows` were read but could not be learned, the first for the reason `first_refusal`. `classes` has bit 0
    set once a label was negative and bit 1 once one was positive. `rows` counts the rows of all passes, `position` is
    where the next one stands. `data_digest` is that of the data of a whole pass. `reviews` has the loss of the held-out
    rows at the end of each pass, where the best number of passes is chosen, and `chosen` the weights of the
    experts at the end of the best one so far. `relearn_passes` is the number of passes in which all rows are learned
    in the end; 0 until it is known. `monitor` sees each row of the first pass; if the
    rows before it were learned by an earlier version, without one, it is not saved: it `is_partial`. `arrived` are the
    totals of rows as they were predicted when they arrived, where they are learned later; those of the engine else.
    `pass_rows` is `rows` at the start of the present pass. `compared` adds up the losses of the rows that the
    `check` is compared with, and `quarter` are the totals at the start of the last quarter of the rows in random order;
    `has_overflowed` if there were more rows than may wait. `blocks` sees the labels of the first pass, and
    `data_cautions` are the warnings that the first rows gave rise to.
    """

    run_start: LossTotals
    pass_start: LossTotals
    holdout: LossTotals
    position: Position
    monitor: RunMonitor
    is_partial: bool = False
    passes_done: int = 0
    rows: int = 0
    refused_rows: int = 0
    first_refusal: str | None = None
    classes: int = 0
    first_pass: LossTotals | None = None
    data_digest: Any = None
    reviews: list[LossTotals] = field(default_factory=list)
    chosen: ExpertWeights | None = None
    relearn_passes: int = 0
    arrived: LossTotals | None = None
    pass_rows: int = 0
    compared: LossMoments = field(default_factory=LossMoments)
    check: FrozenCheck | None = None
    quarter: LossTotals | None = None
    has_overflowed: bool = False
    blocks: LabelBlocks = field(default_factory=LabelBlocks)
    data_cautions: dict[str, list[str]] = field(default_factory=dict)

    def totals(self, engine: Engine) -> LossTotals:
        """The loss of all rows, each as it was predicted when it arrived."""
        return engine.progress if self.arrived is None else self.arrived

    def advance(self, rows: int, position: Position) -> None:
        """Some more rows were read."""
        self.rows += rows
        self.position = position

    def refuse(self, refusal: RowRefused) -> None:
        """A row was left out because it cannot be learned."""
        self.refused_rows += 1
        self.first_refusal = self.first_refusal or str(refusal)

    def see_labels(self, y: Vector) -> None:
        """Remember which classes there are."""
        if self.classes != _NEGATIVE | _POSITIVE:
            self.classes |= _NEGATIVE * bool((y < 0.0).any()) | _POSITIVE * bool((y > 0.0).any())
        if self.passes_done == 0:
            self.blocks.see(y)

    @property
    def only_class(self) -> int | None:
        """1 or -1 when every label so far has been of that class."""
        return {_NEGATIVE: -1, _POSITIVE: 1}.get(self.classes)

    def end_pass(self, totals: LossTotals, source: Source) -> None:
        """The data was read to its end, at these totals of the engine; another pass begins at its start."""
        self.passes_done += 1
        digest = source.digest()
        if self.first_pass is not None and digest != self.data_digest:
            raise InvalidInput(
                f"passes= needs data that stays as it is, got other data in pass {self.passes_done} than in the first;"
                " train again.",
                option="passes",
            )
        self.data_digest = digest
        self.position = source.start
        self.pass_rows = self.rows
        self.pass_start = totals
        self.first_pass = self.first_pass or totals

    def start_another_pass(self, holdout: LossTotals) -> None:
        """Count held-out and refused rows from anew, so that in the end each is counted once."""
        self.holdout, self.refused_rows = holdout, 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, under the names of the model file."""
        return {
            "began": self.run_start.to_list(),
            "pass_began": self.pass_start.to_list(),
            "held": self.holdout.to_list(),
            "passed": self.passes_done,
            "rows": self.rows,
            "refused": self.refused_rows,
            "refusal": self.first_refusal,
            "classes": self.classes,
            "position": self.position.to_dict(),
            "progressive": None if self.first_pass is None else self.first_pass.to_list(),
            "digest": self.data_digest,
            "reviews": [totals.to_list() for totals in self.reviews],
            "chosen": self.chosen,
            "relearn": self.relearn_passes,
            **({} if self.arrived is None else {"arrived": self.arrived.to_list()}),
            "pass_rows": self.pass_rows,
            "compared": list(self.compared.sums),
            **({} if self.check is None else {"check": self.check.to_dict()}),
            **({} if self.quarter is None else {"quarter": self.quarter.to_list(), "overflowed": self.has_overflowed}),
            "blocks": self.blocks.to_list(),
            "cautions": self.data_cautions,
            **({} if self.is_partial else {"monitor": self.monitor.numbers}),
            **({"residuals": residuals} if (residuals := self.monitor.residual_numbers) else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: Source, monitor: RunMonitor) -> RunState:
        """The state that `to_dict` wrote, of a run over this source."""
        first_pass = values["progressive"]
        rows, pass_rows = int(values["rows"]), int(values.get("pass_rows", 0))
        if pass_rows > rows:
            raise ValueError(f"{pass_rows} rows at the start of the pass, of {rows}")
        monitor.restore(values.get("monitor", ()))
        monitor.restore_residuals(values.get("residuals", ()))
        return cls(
            run_start=LossTotals.from_list(values["began"]),
            pass_start=LossTotals.from_list(values["pass_began"]),
            holdout=LossTotals.from_list(values["held"]),
            passes_done=int(values["passed"]),
            rows=rows,
            refused_rows=int(values["refused"]),
            first_refusal=None if values["refusal"] is None else str(values["refusal"]),
            classes=int(values["classes"]),
            position=source.position(values["position"]),
            monitor=monitor,
            is_partial="monitor" not in values,
            first_pass=None if first_pass is None else LossTotals.from_list(first_pass),
            data_digest=values["digest"],
            reviews=[LossTotals.from_list(entry) for entry in values.get("reviews", ())],
            chosen=values.get("chosen"),
            relearn_passes=int(values.get("relearn", 0)),
            arrived=None if values.get("arrived") is None else LossTotals.from_list(values["arrived"]),
            pass_rows=pass_rows,
            compared=LossMoments(tuple(map(float, values["compared"]))) if "compared" in values else LossMoments(),
            check=None if values.get("check") is None else FrozenCheck.from_dict(values["check"]),
            quarter=None if values.get("quarter") is None else LossTotals.from_list(values["quarter"]),
            has_overflowed=bool(values.get("overflowed")),
            blocks=LabelBlocks(values.get("blocks", ())),
            data_cautions=dict(values.get("cautions", {})),
        )
