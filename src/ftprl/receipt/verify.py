"""Whether a receipt is true: its digest, its data, and each of its numbers, recomputed by a replay of the data."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl.data.files import shown
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.linear.content import PROVENANCE
from ftprl.receipt.audit import Comparator
from ftprl.receipt.certify import other_model
from ftprl.receipt.checks import Check, checked, compare
from ftprl.receipt.digest import digest_of_file
from ftprl.receipt.document import OPTIONAL, Document, canonical, digest, facts_of, read_receipt, spec_to_dict
from ftprl.receipt.learned_data import LearnedData
from ftprl.receipt.printed import answer_lines
from ftprl.receipt.provenance import Provenance
from ftprl.receipt.replay import Replay
from ftprl.receipt.replayed_runs import Replaying
from ftprl.runlog.answers import Answer

Vector = NDArray[np.float64]
WEIGHTS = 1e-6  # of a weight, or of 1: for weights of another machine
SHOWN = 5  # failed checks that are printed
_LEARNED = {  # by the experts, besides the cells; in the model file and in the replay
    "mixture": "mixture.w",
    "scores": "newton_A.u",
    "columns": "newton_B.u",
    "columns of classes": "columns.W",
    "drift": "newton_D.u",
    "drift of classes": "newton_D.bias",
    "coin's intercept": "coin.intercept",
}


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Every check, and how many rows were replayed; `whole` is False when only the first rows were.

    A partial check does not judge the receipt's own numbers, which are those after the last row. In `answers`
    are the four questions about the run with their answers, from the numbers that were recomputed.
    """

    checks: tuple[Check, ...]
    rows: int
    whole: bool
    answers: tuple[Answer, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether every row was replayed and all is as the receipt states it."""
        return self.whole and not self.refused

    @property
    def refused(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(one for one in self.checks if not one.ok)

    @property
    def status(self) -> str:
        """ "confirmed", "refused", or "partial": nothing wrong in the first rows, the others were not checked."""
        return "refused" if self.refused else "confirmed" if self.whole else "partial"

    def __str__(self) -> str:
        good, rows = len(self.checks) - len(self.refused), f"{self.rows} row{'s'[: self.rows != 1]}"
        compared = any(one.name.startswith("model.") for one in self.checks)
        heads = {
            "confirmed": f"confirmed: all {good} numbers of the receipt, recomputed from {rows}"
            + ("; the model file agrees with them" if compared else "; no model was compared (--model)"),
            "refused": f"REFUSED: {len(self.refused)} of {len(self.checks)} numbers, {rows} replayed",
            "partial": f"PARTIAL CHECK, no verdict: {good} numbers about the first {rows} and the files hold; the"
            " certificate itself is about all rows and was not checked",
        }
        lines = answer_lines(self.answers) if self.confirmed else [str(one) for one in self.refused[:SHOWN]]
        more = len(self.refused) - SHOWN
        return "\n".join([*lines, *([f"... and {more} more (--json has all)"] if more > 0 else []), heads[self.status]])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        refused = [{"name": one.name, "stated": one.stated, "recomputed": one.recomputed} for one in self.refused]
        numbers = {"checks": len(self.checks), "rows": self.rows, "whole": self.whole}
        answers = [one._asdict() for one in self.answers] if self.confirmed else []
        return {"status": self.status, "confirmed": self.confirmed, **numbers, "refused": refused, "answers": answers}


def verify_receipt(
    receipt: str | os.PathLike[str],
    data: Any,
    *,
    rows: int | None = None,
    other: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    listener: Callable[[int], None] | None = None,
) -> Verdict:
    """Learn the data of a receipt again and confirm or refuse each of its numbers; with `rows` the first rows only.

    The certificates on the way, at powers of two of the rows read (of 16 beyond 4096), are what the first rows are
    checked by. `other` is the model that the receipt compares with, where it names one. `model` is the one that the
    receipt should be about: its learned state has to be that of the receipt, and what the replay learned.
    `listener` is called with the number of rows replayed so far.
    """
    stated = read_receipt(receipt)
    if rows is not None:
        check.dimension("rows", rows)
    checks = list(_check_header(stated))
    spec = _spec(stated)
    provenance = Provenance.from_dict({key: stated[key] for key in PROVENANCE})
    claimed = None if model is None else Model.load(model)
    if claimed is not None:
        checks += _check_facts(stated, facts_of(claimed))
    comparator = _comparator(stated, other, spec)
    try:
        has_names = "named" in stated["certificate"]
        learned = LearnedData(data, provenance.runs, stated["reading"], spec, names=has_names)
    except (TypeError, AttributeError, ValueError) as error:
        if isinstance(error, FtprlError):
            raise
        message = shown(" ".join(str(error).split()))[:120]
        raise BadFormat(f"{os.fspath(receipt)}: expected how data is read, got {message}; make it again.") from None
    for own in learned.sources:
        checks += compare("reading", stated["reading"], _as_read(own.to_dict(), stated["reading"]), {})
    digests = list(_check_digests(learned))
    checks += digests
    if any(not one.ok for one in digests):  # other files: what they would give says nothing about the receipt
        return Verdict(tuple(checks), 0, False)
    replay = Replay(spec, retire=False, known=_first_classes(stated, spec))
    replaying = Replaying(stated, provenance, learned, replay, rows, listener)
    try:
        checks += replaying.run(comparator)
    except FtprlError as error:  # the rows are not those that were learned
        checks.append(Check("replay", "rows that can be read", str(error), False))
    if claimed is not None and replaying.whole:
        checks += _check_model(claimed, replaying.replay)
    return Verdict(tuple(checks), replaying.read, replaying.whole, tuple(replaying.answers))


def _check_header(stated: Document) -> Iterator[Check]:
    """What can be checked without the data."""
    yield checked("sha256", stated["sha256"], digest(stated))
    for name in ("dim", "seed", "loss"):
        yield checked(f"reading.{name}", stated["reading"][name], stated["spec"].get(name))


def _check_facts(stated: Document, facts: Document) -> Iterator[Check]:
    """Compare a model with what the receipt says of it; what differs is named by its field, after the digest."""
    names = (facts.keys() | (stated.keys() & {*OPTIONAL})) - {"model", "calibration"}
    for name in ("model", *sorted(names)):
        field = "model" if name == "model" else f"model.{name}"
        differ = [one for one in compare(field, stated.get(name), facts.get(name), {}) if not one.ok]
        yield from differ or [Check(field, None, None, True)]


def _first_classes(stated: Document, spec: Spec) -> int:
    """How many classes were known before the first row."""
    if not spec.classes:
        return 0
    labels, declared = stated.get("classes"), stated.get("declared_classes")
    if labels is None or declared is None or len(labels) > spec.classes or (declared and len(labels) < spec.classes):
        raise InvalidInput("a receipt of several classes needs their labels, got others; make it again.")
    return spec.classes if declared else 0


def _check_model(model: Model, replay: Replay) -> list[Check]:
    """Whether a model has the weights that the replay learned, scale by scale, and mixes them as it does."""
    engine, slots, scales = model.engine, replay.touched(), replay.spec.scales
    if engine.spec.scales != scales:
        return [Check("model.scales", list(engine.spec.scales), list(scales), False)]
    if engine.classes != replay.known:
        return [Check("model.classes", engine.classes, replay.known, False)]
    checks, alone = [], np.setdiff1d(engine.touched(), slots)  # learned by the model alone
    for k, h in enumerate(scales):
        theirs = model.weights(k).reshape(-1, engine.spec.dim)
        ours = np.zeros((replay.known or 1, engine.spec.dim))
        ours[:, slots] = replay.weights(slots, k)
        theirs[:, alone] += math.inf
        checks.append(_check_learned(f"model.weights of scale {h:g}", theirs, ours))
    return checks + [_check_learned(f"model.{name}", *pair) for name, pair in _mixed(model, replay).items()]


def _check_learned(name: str, theirs: Vector, ours: Vector) -> Check:
    if theirs.shape != ours.shape:
        return Check(name, "as learned", f"{theirs.size} numbers for {ours.size}", False)
    wrong = int((~(np.abs(theirs - ours) <= WEIGHTS * (np.abs(ours) + 1.0))).sum())
    return Check(name, "as learned", f"{wrong} others", wrong == 0)


def _mixed(model: Model, replay: Replay) -> dict[str, tuple[Vector, Vector]]:
    """Return what a mixture learned besides the weights of its scales: by name, in the model and in the replay."""
    engine, theirs, ours, none = model.engine, model.engine.saved_arrays, replay.arrays, np.zeros(0)
    pairs: dict[str, tuple[Vector, Vector]] = {}
    for name, array in _LEARNED.items():
        if array in ours or ("mixture.w" in ours and array in theirs):
            own = ours.in_use(array) if array in ours else none
            pairs[name] = np.asarray(theirs.get(array, none)), own
    if "coin" in ours or engine.spec.coin:
        slots = replay.touched()
        coin = engine.parts_at(slots)["coin"].astype(float) if engine.spec.coin else none
        pairs["coin"] = coin, replay.parts_at(slots)["coin"].astype(float) if "coin" in ours else none
    return pairs


def _spec(stated: Document) -> Spec:
    try:
        spec = Spec.from_dict(stated["spec"])
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a receipt needs a spec that can be learned, got {error}; make it again.") from None
    if canonical(spec_to_dict(spec)) != canonical(stated["spec"]):
        raise InvalidInput("a receipt needs its spec in full, got other fields; make it again.")
    return spec


def _as_read(actual: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read, except for what a file's extension decides about separators."""
    if actual.get("format") != stated.get("format"):
        actual = {**actual, **{name: stated[name] for name in ("format", "sep", "quote") if name in stated}}
    return dict(actual)


def _check_digests(learned: LearnedData) -> Iterator[Check]:
    for number, (files, run) in enumerate(zip(learned.files, learned.runs, strict=True)):
        for i, file in enumerate(files if run["files"] is not None else ()):
            yield from compare(f"runs.{number}.files.{i}", run["files"][i], digest_of_file(file), {})


def _comparator(stated: Document, other: str | os.PathLike[str] | None, spec: Spec) -> Comparator:
    """The fixed weights that a receipt names: its own, a box, or those of another model."""
    named, norm = stated["certificate"]["comparator"], stated["certificate"]["floor"]["norm"]
    kind = named["kind"]
    if kind == "model":
        if other is None:
            raise InvalidInput("the receipt compares with another model, got none; name it with --against.")
        if spec.classes:
            raise InvalidInput("a receipt of several classes compares with no other model, got one; make it again.")
        model = other_model(spec, stated["reading"], other)
        return Comparator(None, model.weights(), model.bias(), model.file_digest, norm)
    if other is not None:
        raise InvalidInput("the receipt compares with no other model, got one; drop --against.")
    if kind == "box":
        return Comparator(check.positive("the receipt's radius", named.get("radius", 0.0)), norm=norm)
    return Comparator(norm=norm)
