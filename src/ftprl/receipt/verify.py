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
from ftprl.receipt.audit_floor import Replayed
from ftprl.receipt.certify import other_model
from ftprl.receipt.checks import Check, checked, compare
from ftprl.receipt.class_replay import ClassReplay
from ftprl.receipt.digest import digest_of_file
from ftprl.receipt.document import Document, canonical, digest, read_receipt, spec_to_dict
from ftprl.receipt.learned_data import LearnedData
from ftprl.receipt.printed import answer_lines
from ftprl.receipt.provenance import Provenance
from ftprl.receipt.replay import Replay
from ftprl.receipt.replayed_runs import Replaying
from ftprl.runlog.answers import Answer
from ftprl.runlog.floor import Norm

Vector = NDArray[np.float64]
WEIGHTS = 1e-6  # of a weight, or of 1: for weights of another machine
SHOWN = 5  # failed checks that are printed


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
    numpy: bool = False,
) -> Verdict:
    """Learn the data of a receipt again and confirm or refuse each of its numbers; with `rows` the first rows only.

    The certificates on the way, at powers of two of the rows read (of 16 beyond 4096), are what the first rows are
    checked by. `other` is the model that the receipt compares with, where it names one. `model` is the one that the
    receipt should be about: its learned state has to be that of the receipt, and what the replay learned.
    `listener` is called with the number of rows replayed so far. With `numpy` nothing compiled takes part but readers.
    """
    stated = read_receipt(receipt)
    if rows is not None:
        check.dimension("rows", rows)
    checks = list(_check_header(stated))
    spec = _spec(stated)
    provenance = Provenance.from_dict({key: stated[key] for key in PROVENANCE})
    claimed = None if model is None else Model.load(model)
    if claimed is not None:
        checks.append(checked("model.state_sha256", stated["model"]["state_sha256"], claimed.state_digest()))
    comparator = _comparator(stated["certificate"], other, spec)
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
    replay: Replayed = _class_replay(stated, spec) if spec.classes else Replay(spec, retire=False, numpy=numpy)
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


def _class_replay(stated: Document, spec: Spec) -> ClassReplay:
    labels, declared = stated.get("classes"), stated.get("declared_classes")
    if labels is None or declared is None or len(labels) > spec.classes or (declared and len(labels) < spec.classes):
        raise InvalidInput("a receipt of several classes needs their labels, got others; make it again.")
    return ClassReplay(spec, retire=False, known=spec.classes if declared else 0)


def _check_classes(model: Model, replay: ClassReplay) -> list[Check]:
    """As `_check_model`, for each class."""
    slots, engine, checks = replay.touched(), model.engine, []
    if engine.classes != replay.known:
        return [Check("model.classes", engine.classes, replay.known, False)]
    for k, h in enumerate(replay.spec.scales):
        theirs, ours = model.weights(k), np.zeros((replay.known, engine.spec.dim))
        ours[:, slots] = replay.weights(slots, k)
        theirs[:, np.setdiff1d(engine.touched(), slots)] += math.inf
        checks.append(_check_learned(f"model.weights of scale {h:g}", theirs, ours))
    arrays = engine.saved_arrays
    pairs = {"mixture": (np.asarray(arrays["mixture.w"]), replay.state["w"])}
    if replay.spec.stacked:
        pairs["stack"] = np.asarray(arrays["mixture.u"]), replay.state["u"]
    dense = replay.mixing.dense
    if dense is not None:
        n = sum(dense.counts[[0, 2]].astype(int).tolist()) if dense.started else 0
        theirs = np.asarray(arrays.get("dense.class_u", np.zeros((replay.columns, 0))))
        pairs["dense columns"] = theirs, np.ascontiguousarray(dense.u[:n].T)
    return checks + [_check_learned(f"model.{name}", *pair) for name, pair in pairs.items()]


def _check_model(model: Model, replay: Replayed) -> list[Check]:
    """Whether a model has the weights that the replay learned, scale by scale, and mixes them as it does."""
    scales = (model.engine.spec.scales, replay.spec.scales)
    if scales[0] != scales[1]:
        return [Check("model.scales", list(scales[0]), list(scales[1]), False)]
    if isinstance(replay, ClassReplay):
        return _check_classes(model, replay)
    slots, checks = replay.touched(), []
    for k, h in enumerate(scales[0]):
        theirs, ours = model.weights(k), np.zeros(model.engine.spec.dim)
        ours[slots] = replay.weights(slots, k)
        theirs[np.setdiff1d(model.engine.touched(), slots)] += math.inf  # learned by the model alone
        checks.append(_check_learned(f"model.weights of scale {h:g}", theirs, ours))
    return checks + [_check_learned(f"model.{name}", *pair) for name, pair in _mixed(model, replay).items()]


def _check_learned(name: str, theirs: Vector, ours: Vector) -> Check:
    if theirs.shape != ours.shape:
        return Check(name, "as learned", f"{theirs.size} numbers for {ours.size}", False)
    wrong = int((~(np.abs(theirs - ours) <= WEIGHTS * (np.abs(ours) + 1.0))).sum())
    return Check(name, "as learned", f"{wrong} others", wrong == 0)


def _mixed(model: Model, replay: Replay) -> dict[str, tuple[Vector, Vector]]:
    """What a mixture of several scales has learned besides their weights: by name, in the model and in the replay."""
    if replay.mixing is None:
        return {}
    engine, arrays, own = model.engine, model.engine.saved_arrays, replay.additions.arrays()
    state = dict(replay.state)
    if "column_counts" in own and replay.additions.columns is not None and replay.additions.columns.started:
        n = sum(own["column_counts"][[0, 2]].astype(int).tolist())
        state["u"] = own["dense_u"][:n]
    none: Vector = np.zeros(0)
    pairs = {"mixture": (np.asarray(arrays["mixture.w"]), state["w"])}
    if replay.spec.stacked:
        pairs["stack"] = np.asarray(arrays.get("dense.u", arrays.get("mixture.u", none))), state["u"]
    if replay.spec.coin or engine.spec.coin:
        slots = replay.touched()
        theirs = engine.parts_at(slots)["coin"].astype(float) if engine.spec.coin else none
        pairs["coin"] = theirs, replay.parts_at(slots)["coin"].astype(float) if replay.spec.coin else none
        base = np.asarray(arrays.get("coin.intercept", none))
        size = 5 if replay.spec.scalar_loss().has_units else 7  # these count no labels
        pairs["coin's intercept"] = base, np.asarray(own.get("coin_base", none), float)[:size]
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


def _comparator(stated: Mapping[str, Any], other: str | os.PathLike[str] | None, spec: Spec) -> Comparator:
    """The fixed weights that a receipt names: its own, a box, or those of another model."""
    named = stated.get("comparator")
    kind = named.get("kind") if isinstance(named, Mapping) else None
    norm: Norm = stated["floor"]["norm"]
    if kind == "model":
        if other is None:
            raise InvalidInput("the receipt compares with another model, got none; name it with --against.")
        if spec.classes:
            raise InvalidInput("a receipt of several classes compares with no other model, got one; make it again.")
        model = other_model(spec, other)
        return Comparator(None, model.weights(), model.engine.bias(), model.file_digest, norm)
    if other is not None:
        raise InvalidInput("the receipt compares with no other model, got one; drop --against.")
    if kind == "box":
        assert isinstance(named, Mapping)
        return Comparator(check.positive("the receipt's radius", named.get("radius", 0.0)), norm=norm)
    return Comparator(norm=norm)
