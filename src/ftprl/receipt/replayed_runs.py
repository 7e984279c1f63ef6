"""The runs of a receipt learned again: its numbers compared at the milestones and after the last row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import ReplayedBaseline, ReplayedIntervals
from ftprl.data import Batch
from ftprl.data.source import BatchDigest
from ftprl.linear.classes import ClassTable
from ftprl.linear.frozen import FrozenCheck, LossMoments
from ftprl.linear.spec import Spec
from ftprl.receipt.audit import Audit, Comparator
from ftprl.receipt.audit_tail import AuditedTail
from ftprl.receipt.caveats import notes_of, offset_in_words
from ftprl.receipt.cell_groups import CellGroups
from ftprl.receipt.checks import Check, compare
from ftprl.receipt.document import Document
from ftprl.receipt.learned_data import LearnedData, Part
from ftprl.receipt.ledger import Certifiable
from ftprl.receipt.printed import four_answers
from ftprl.receipt.provenance import Provenance, is_milestone
from ftprl.receipt.replay import Replay
from ftprl.receipt.row_order import KeyedRows, ReplayedSample
from ftprl.receipt.soundness import broken_link, cut_gradients
from ftprl.runlog.answers import Answer
from ftprl.runlog.floor import FloorCurve

Vector = NDArray[np.float64]
ABSOLUTE = 2.0**-40  # of the sums that are subtracted, for numbers that are small differences of large ones
OF_THE_LOSS = 1e-6  # and no more than this of the total loss, however large what was subtracted
DIFFERENCES = {
    "regret",
    "tight",
    "bound",
    "theorem",
    "excess",
    "drift",
    "start",
}
EXACT = 1e-6  # of the total loss, for what an optimiser computed
INTERVAL = 1e-11  # of the largest number of an interval: the core takes exponentials to 13 digits
EXACT_LENGTH = 1e-4  # likewise, of a length, and of what is proved at it


@final
class Recomputed(NamedTuple):
    """What the questions about a run are answered from once it was replayed."""

    loss_name: str
    baseline: Mapping[str, float | None]
    first_pass: Mapping[str, float | None] | None
    rates: Mapping[str, Any] | None
    curve: FloorCurve
    offset: str
    confidence: Mapping[str, Any] | None
    latest: Mapping[str, Any]


@final
class Replaying:
    """The replay of all runs, compared with the receipt at its milestones and at the end."""

    def __init__(
        self,
        stated: Document,
        provenance: Provenance,
        learned: LearnedData,
        replay: Replay,
        rows: int | None,
        listener: Callable[[int], None] | None,
    ) -> None:
        self.stated, self.provenance, self.learned, self.rows = stated, provenance, learned, rows
        self.listener = listener or (lambda read: None)
        loss = replay.spec.scalar_loss()
        self.replay, self.confidence = replay, ReplayedIntervals(loss.name, replay.spec.classes)
        self.tail = AuditedTail(loss)
        self.baseline = ReplayedBaseline(loss.baseline, loss.name, loss.tau or 0.5, replay.spec.classes)
        self.classes = _class_table(stated, replay.spec)
        self.first_pass = dict.fromkeys(("rows", "loss", "weight", "baseline", "least"), 0.0)  # of all runs
        self.read = 0  # rows, in all passes
        self.rows_before = 0  # of the data of earlier runs
        self.runs: list[dict[str, Any]] = []  # as they were replayed
        self.milestones = list(provenance.milestones)  # that are still to come
        self.stops = self._expected_milestones()
        self.checks: list[Check] = []
        self.answers: list[Answer] = []
        self.left_out = 0  # rows of a pass that cannot be learned
        self.digests = BatchDigest()
        self.is_first_pass = True
        self.drawn: dict[str, float] | None = None  # of the rows learned last in the latest run
        self.check: dict[str, Any] | None = None  # how the model predicted while it did not learn, in the latest run
        self.sample: ReplayedSample | None = None
        self.compared = np.empty(0), np.empty(0)  # losses above the least and weights of the rows learned before it

    @property
    def whole(self) -> bool:
        """Whether every run was replayed to its end."""
        return len(self.runs) == len(self.provenance.runs)

    def run(self, comparator: Comparator) -> list[Check]:
        """Replay all rows that were asked for; every check that was made."""
        for number in range(len(self.provenance.runs)):
            if not self._run(number):
                return self.checks
        left = [Check(f"milestones.{entry['read']}", "a row that was read", None, False) for entry in self.milestones]
        return self.checks + left + self._check_end(comparator)

    def _expected_milestones(self) -> list[int]:
        """The numbers of rows of the first run after which a receipt has to have a certificate."""
        rows = self.provenance.runs[0]["rows"] if self.provenance.runs else 0
        return [2**k for k in range(rows.bit_length()) if is_milestone(2**k)]

    def _run(self, number: int) -> bool:
        """Replay one run; False when the last row that was asked for is in it."""
        run, began, bad = self.provenance.runs[number], self.read, 0
        self.replay.retire = True
        self.check = self.drawn = None
        order = run["order"]
        if self.runs and self.runs[-1]["order"]["order"] != order["order"]:  # the intervals begin anew
            self.confidence = ReplayedIntervals(self.replay.loss.name, self.replay.spec.classes)
            self.tail = AuditedTail(self.replay.loss)
        self.sample = ReplayedSample(order["order_seed"]) if order["order"] == "given" else None
        self.digests = BatchDigest()
        passes = 0
        for number_of_pass in range(run["passes"]):
            passes, self.left_out, self.is_first_pass = number_of_pass + 1, 0, number_of_pass == 0
            before = self._totals()
            for part in self.learned.in_order(number, self.rows_before, self._arrive):
                if not self._learn_part(part):
                    return False
            if number_of_pass == 0:
                after = self._totals()
                self.first_pass = {name: own + after[name] - before[name] for name, own in self.first_pass.items()}
            bad = self.left_out + self.learned.sources[number].bad_rows
            if (self.read - began) * run["passes"] != passes * run["rows"]:
                break  # other data, or other passes: there is no need to learn it all
        self._predict_sample()
        if self.check is not None and self.tail.is_heavy:
            self.check["upper"] = None
        self.rows_before += (self.read - began) // run["passes"]
        replayed = {**run, "passes": passes, "rows": self.read - began, "bad_rows": bad}
        if run["batches"] is not None:
            replayed["batches"] = self.digests.result()
        self.runs.append(replayed)
        return True

    def _arrive(self, batch: Batch, unfit: NDArray[np.bool_]) -> tuple[Batch, NDArray[np.bool_]]:
        """Note rows in the order of the data; returns them with numbers of classes as labels, and which are left out.

        Rows of a class too many are left out with those that cannot be learned.
        """
        run = self.provenance.runs[len(self.runs)]
        if self.is_first_pass and run["batches"] is not None:
            self.digests.update(batch)
        if self.classes is not None and not run["skip"]:
            batch = self.classes.numbered(batch, batch.label_texts)
        elif self.classes is not None:
            y = self.classes.numbers(batch.y, batch.label_texts)
            beyond = y >= self.classes.most
            batch, unfit = batch.replaced(y=np.where(beyond, np.nan, y)), unfit | beyond
        self.left_out += int(unfit.sum())
        if run["order"]["order"] == "random":
            self.replay.meet_names(batch)
        return batch, unfit

    def _learn_part(self, part: Part) -> bool:
        """Replay rows; in the first pass the last rows of the data are predicted on the way."""
        if self.is_first_pass and (rows := part.checked) is not None:
            moments = LossMoments()
            moments.add(*self.compared)
            losses, guessed = self.replay.score(rows), self._guessed(rows.y)
            if len(self.compared[0]):  # not all of those were held out
                self.check = FrozenCheck.of_last_rows(losses, guessed, rows.weight, moments).to_dict()
        before, is_last = self._totals(), part.stage in ("last", "drawn") and len(part.batch) > 0
        if is_last and self.is_first_pass:
            self.confidence = ReplayedIntervals(self.replay.loss.name, self.replay.spec.classes)
        more = self._learn(part.batch)
        if part.stage == "compared":
            self.compared = self.latest
        if part.stage == "drawn" and is_last and self.is_first_pass:
            drawn = {name: own - before[name] for name, own in self._totals().items()}
            self.drawn = drawn if drawn["rows"] > 0.0 else None
        return more

    def _predict_sample(self) -> None:
        """Predict some of the rows that were learned in the order of the data once more."""
        known = None if self.sample is None else self.sample.result()
        if known is not None:
            (rows, came), losses = known, self.replay.score(known[0])
            self.check = FrozenCheck.of_learned_rows(losses, came[:, 0], came[:, 1:], rows.weight).to_dict()

    def _guessed(self, y: Vector) -> Vector:
        """Return the loss of the baseline and the least possible loss of some rows, which it does not learn."""
        numbers = np.empty((len(y), 2))
        self.baseline.predict(y, numbers)
        return numbers

    def _learn(self, batch: Batch) -> bool:
        """Replay rows up to each milestone; False at the last row that was asked for."""
        at = 0
        parts = [(np.empty(0), np.empty(0))]
        while at < len(batch):
            count = len(batch) - at
            if self.stops:
                count = min(count, self.stops[0] - self.read)
            if self.rows is not None:
                count = min(count, self.rows - self.read)
                if count <= 0:
                    return False
            some = batch[at : at + count]
            losses, predictions = self.replay.learn(some)
            met = (some.weight > 0) & (some.y == some.y)
            y, weight = some.y[met], some.weight[met]
            guessed = np.empty(len(y))
            least = self._guessed(y)[:, 1]
            self.baseline.learn(y, weight, guessed)
            parts.append((losses - least, weight))
            if self.is_first_pass:
                self.confidence.add(losses, guessed, predictions, y, weight)
                self.tail.add(losses, y)
                if self.sample is not None:
                    numbers = np.column_stack([losses, guessed, least])
                    self.sample.see(KeyedRows.of(some).where(met).batch, numbers)
            at, self.read = at + count, self.read + count
            if self.stops and self.read >= self.stops[0]:
                self.stops = [row for row in self.stops if row > self.read]
                self._check_milestone()
            self.listener(self.read)
        above_least, weights = zip(*parts, strict=True)
        self.latest = np.concatenate(above_least), np.concatenate(weights)
        return True

    def _check_milestone(self) -> None:
        stated = self.milestones.pop(0) if self.milestones else None
        audit = Audit(self.replay, Comparator())
        brief = {"read": self.read, **audit.brief()}
        self.checks += compare(f"milestones.{self.read}", stated, brief, _tolerances(audit))

    def _check_end(self, comparator: Comparator) -> list[Check]:
        """All that can be checked when every row was replayed."""
        stated = self.stated["certificate"]
        spec, learned = self.replay.spec, self.learned
        cells = CellGroups.of_data(learned.sources, learned.reading, spec.dim) if "named" in stated else None
        audit = Audit(self.replay, comparator, cells=cells)
        recomputed, tolerances = audit.certificate(), _tolerances(audit)
        if isinstance(stated.get("exact"), Mapping) and comparator.radius is not None:
            recomputed |= self._exact(self.replay, stated["exact"], comparator.radius)
        if stated["floor"]["points"]:
            recomputed["floor"]["points"] = self._points(self.replay, stated["floor"]["points"], audit.curve())
        numbers = {name: recomputed[name] for name in ("regret", "loss")}
        to_come = self.replay.classes_to_come
        recomputed["caveats"] = list(notes_of(spec, recomputed["scale"], **numbers, to_come=to_come))
        totals = self._totals()
        recomputed["baseline"] = _known({name: value for name, value in totals.items() if name != "rows"})
        if self.first_pass["rows"] < totals["rows"]:
            recomputed["first_pass"] = {**_known(self.first_pass), "rows": int(self.first_pass["rows"])}
        drawn = None if self.drawn is None else {**_known(self.drawn), "rows": int(self.drawn["rows"])}
        recomputed |= {"order": self.runs[-1]["order"]["order"], "check": self.check, "drawn": drawn}
        checks = compare("certificate", {**stated, "confidence": None}, {**recomputed, "confidence": None}, tolerances)
        checks += self._check_confidence(stated.get("confidence"))
        loss = self.replay.spec.scalar_loss()
        self.answers = four_answers(
            Recomputed(
                loss.name,
                recomputed["baseline"],
                recomputed.get("first_pass"),
                recomputed["rates"],
                audit.curve(),
                offset_in_words(loss) if loss.has_offset else "",
                None if stated.get("confidence") is None else self._expected(),
                {**recomputed, "runs": len(self.runs)},
            )
        )
        units = [float(c.unit.max(initial=0.0)) for c in self.replay.coordinates()]
        cut = cut_gradients(self.replay, max(units, default=0.0))
        checks.append(Check("certificate: no gradient was cut", cut, None, cut is None))
        checks.append(Check("certificate: each bound holds", broken_link(stated), None, broken_link(stated) is None))
        bins = self.replay.calibration
        checks += compare("calibration", self.stated["calibration"], None if bins is None else bins.tolist(), {})
        checks += compare("runs", self.stated["runs"], self.runs, {})
        if self.classes is not None:
            checks += compare("classes", self.stated["classes"], list(self.classes.labels), {})
        if self.replay.spec.several or "dropped_experts" in self.stated:
            dropped = list(self.replay.spec.dropped_experts)
            checks += compare("dropped_experts", self.stated.get("dropped_experts"), dropped, {})
        return checks + compare("retired", self.stated["retired"], list(self.replay.spec.retired), {})

    def _totals(self) -> dict[str, float]:
        """The rows so far, their loss, and that of predicting each label from those before it alone."""
        loss, weight, rows = self.replay.tallies[:3].tolist()
        baseline = {"baseline": self.baseline.total, "least": self.baseline.least}
        return {"rows": rows, "loss": loss, "weight": weight, **baseline}

    def _check_confidence(self, stated: Mapping[str, Any] | None) -> list[Check]:
        """Compare the intervals for rows to come; a receipt may leave them out."""
        if stated is None:
            return []
        recomputed, checks = self._expected() or {}, []
        for name in sorted({*stated, *recomputed}):
            entry = recomputed.get(name)
            size = entry["bound"] if isinstance(entry, Mapping) and "bound" in entry else 0.0
            near = dict.fromkeys(("mean", "lower", "upper", "cut_off"), INTERVAL * size)
            checks += compare(f"certificate.confidence.{name}", stated.get(name), entry, near)
        return checks

    def _expected(self) -> dict[str, Any] | None:
        """Return the intervals for rows to come; rows in random order cannot show a drift."""
        numbers = self.tail.stated(self.confidence.to_dict())
        if numbers is not None and self.runs[-1]["order"]["order"] == "random":
            del numbers["drift"]
        return numbers

    def _exact(self, replay: Certifiable, stated: Mapping[str, Any], radius: float) -> dict[str, Any]:
        """The best fixed weights computed once more; the stated losses stand if they are as near as it gets.

        What is stated of the regret has to follow from them.
        """
        from ftprl.receipt.exact import best_of

        solved, loss = best_of(replay, self.learned, radius, self.classes), replay.row_sums(0).prediction_loss
        near = EXACT * max(abs(loss), 1.0)
        best, least = (
            stated[name] if _is_near(stated.get(name), solved[name], near) else solved[name]
            for name in ("best_loss", "best_loss_at_least")
        )
        exact = {"best_loss": best, "best_loss_at_least": least}
        exact |= {"true_regret": loss - least, "true_regret_at_least": loss - best}
        return {"exact": exact, "true_regret": exact["true_regret"]}

    def _points(self, replay: Certifiable, stated: list[dict[str, float]], curve: FloorCurve) -> list[dict[str, float]]:
        """The best fixed weights of some lengths once more; those stated stand if they are as near as it gets."""
        from ftprl.receipt.exact_lengths import points_of

        solved, total = points_of(replay, self.learned, curve, self.classes), replay.row_sums(0).prediction_loss
        near = {"length": EXACT_LENGTH, "loss": EXACT, "at_least": EXACT_LENGTH}
        size = {"length": 1.0, "loss": abs(total), "at_least": abs(total)}
        agree = len(stated) == len(solved) and all(
            abs(a[name] - b[name]) <= near[name] * max(size[name], 1.0)
            for a, b in zip(stated, solved, strict=True)
            for name in near
        )
        return stated if agree and all(a["at_least"] <= a["loss"] for a in stated) else solved


def _known(totals: Mapping[str, float]) -> dict[str, float | None]:
    """The baseline is None where it is not known."""
    return {name: value if math.isfinite(value) else None for name, value in totals.items()}


def _is_near(stated: Any, value: float, near: float) -> bool:
    return type(stated) in (int, float) and abs(stated - value) <= near


def _tolerances(audit: Audit) -> dict[str, float]:
    """What may differ, by name, besides the relative tolerance: the last digits of differences of large sums."""
    numbers = audit.certificate()
    slack = min(ABSOLUTE * audit.size, OF_THE_LOSS * audit.loss_size)
    best = numbers["post_hoc"]["diagonal"]
    slopes = [line[f"slope_{numbers['floor']['norm']}"] for line in numbers["floor"]["lines"]]
    lengths = slack / min((a for a in slopes if a > 0.0), default=math.inf)
    tolerances = dict.fromkeys(DIFFERENCES, slack) | {"ratio": slack / best if best else 0.0}
    return tolerances | dict.fromkeys(("beaten_length", "informative_length"), lengths)


def _class_table(stated: Document, spec: Spec) -> ClassTable | None:
    """The numbers of the classes; those that were not declared are found in the data, in the same order."""
    if not spec.classes:
        return None
    labels = [label if isinstance(label, str) else float(label) for label in stated["classes"]]
    return ClassTable(spec.classes, labels if stated["declared_classes"] else ())
