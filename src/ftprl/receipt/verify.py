"""Whether a receipt is true: its digest, its data, and each of its numbers, from a replay with the NumPy twin."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ftprl import check
from ftprl._core import HASH_VERSION
from ftprl.data import Batch
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from ftprl.linear import Spec
from ftprl.receipt.certificate import against_own
from ftprl.receipt.certify import compared
from ftprl.receipt.digest import BatchDigest, digest_of_file
from ftprl.receipt.document import Document, canonical, digest, spec_to_dict
from ftprl.receipt.document import read as read_document
from ftprl.receipt.provenance import Provenance, asks_for_units, is_told
from ftprl.receipt.replay import Replay
from ftprl.receipt.stream import Runs

RELATIVE = 1e-9  # the twin has the core's bits where both use one C library; elsewhere its last digits may differ
ABSOLUTE = 1e-12  # of the total loss, for numbers that are small differences of large ones
DIFFERENCES = {"regret", "tight", "bound", "theorem", "excess", "worst_case"}
EXACT = 1e-6  # of the total loss, for what an optimiser found


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One number, or one fact: what the receipt says and what was found."""

    name: str
    stated: Any
    found: Any
    ok: bool

    def __str__(self) -> str:
        return f"{'confirmed' if self.ok else 'REFUSED'}  {self.name}: {_short(self.stated)}" + (
            "" if self.ok else f", found {_short(self.found)}"
        )


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """Every check, and how many rows were replayed; `whole` is False when only a prefix of the rows was."""

    checks: tuple[Check, ...]
    rows: int
    whole: bool

    @property
    def confirmed(self) -> bool:
        """Whether all is as the receipt says."""
        return all(one.ok for one in self.checks)

    @property
    def refused(self) -> tuple[Check, ...]:
        """What is not."""
        return tuple(one for one in self.checks if not one.ok)

    def __str__(self) -> str:
        good = sum(one.ok for one in self.checks)
        of = "" if self.whole else ", a prefix: what comes behind it was not looked at"
        lines = [str(one) for one in self.refused]
        head = "confirmed" if self.confirmed else f"REFUSED: {len(self.refused)} of {len(self.checks)} statements"
        return "\n".join([*lines, f"{head} ({good} confirmed, {self.rows} rows replayed{of})"])

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        refused = [{"name": one.name, "stated": one.stated, "found": one.found} for one in self.refused]
        return {
            "confirmed": self.confirmed,
            "checks": len(self.checks),
            "rows": self.rows,
            "whole": self.whole,
            "refused": refused,
        }


def verify(
    receipt: str | os.PathLike[str],
    data: Any,
    *,
    rows: int | None = None,
    other: str | os.PathLike[str] | None = None,
    listener: Callable[[int], None] | None = None,
) -> Verdict:
    """Replay the data of a receipt and confirm or refuse each of its numbers; with `rows` a prefix only.

    The numbers on the way, at powers of two of the rows read (of 16 beyond 4096), are what a prefix is held
    against. `other` is the model
    that the receipt compares with, where it names one. `listener` hears the rows replayed so far.
    """
    made = read_document(receipt)
    if rows is not None:
        check.dimension("rows", rows)
    checks = list(_papers(made))
    spec = _spec(made)
    record = Provenance.from_dict({key: made[key] for key in ("stream", "trail", "unit_values")})
    comparator = _comparator(made["certificate"], other)
    try:
        runs = Runs(data, record.stream, made["reading"], spec)
    except (TypeError, AttributeError, ValueError) as wrong:
        if isinstance(wrong, FtprlError):
            raise
        told = " ".join(str(wrong).split())[:120]
        raise BadFormat(f"{os.fspath(receipt)}: expected how data is read, got {told}; make it again.") from None
    for own in runs.sources:
        checks += _compare("reading", made["reading"], _as_read(own.to_dict(), made["reading"]), 0.0)
    checks += _digests(runs)
    replay = _Replaying(made, record, runs, spec, rows, listener)
    try:
        checks += replay.run(*comparator)
    except FtprlError as wrong:  # the rows are not those that were learned
        checks.append(Check("replay", "rows that can be read", str(wrong), False))
    return Verdict(tuple(checks), replay.read, replay.whole)


def _papers(made: Document) -> Iterator[Check]:
    """What can be told without the data."""
    from ftprl.version import __version__

    found = digest(made)
    yield Check("sha256", made["sha256"], found, made["sha256"] == found)
    yield Check("version", made["version"], __version__, made["version"] == __version__)
    yield Check("hash_version", made["hash_version"], HASH_VERSION, made["hash_version"] == HASH_VERSION)
    for name in ("dim", "seed", "loss"):
        told = made["reading"].get(name, made["spec"].get(name))
        yield Check(f"reading.{name}", told, made["spec"].get(name), told == made["spec"].get(name))


def _spec(made: Document) -> Spec:
    try:
        spec = Spec.from_dict(made["spec"])
    except (TypeError, ValueError) as wrong:
        raise InvalidInput(f"a receipt needs a spec that can be learned, got {wrong}; make it again.") from None
    if canonical(spec_to_dict(spec)) != canonical(made["spec"]):
        raise InvalidInput("a receipt needs its spec in full, got other fields; make it again.")
    return spec


def _as_read(found: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """How files are read, but for what their own suffix says of separators."""
    if found.get("format") != stated.get("format"):
        found = {**found, **{name: stated[name] for name in ("format", "sep", "quote") if name in stated}}
    return dict(found)


def _digests(runs: Runs) -> Iterator[Check]:
    for number, (files, run) in enumerate(zip(runs.files, runs.stream, strict=True)):
        for i, file in enumerate(files if run["files"] is not None else ()):
            yield from _compare(f"stream.{number}.files.{i}", run["files"][i], digest_of_file(file), 0.0)


@final
class _Replaying:
    """The replay of all runs, with the numbers on the way."""

    def __init__(
        self,
        made: Document,
        record: Provenance,
        runs: Runs,
        spec: Spec,
        rows: int | None,
        listener: Callable[[int], None] | None,
    ) -> None:
        self.made, self.record, self.runs, self.rows = made, record, runs, rows
        self.listener = listener or (lambda read: None)
        self.twin = Replay(spec, retire=False)
        self.read, self.met = 0, 0
        self.unit_values = asks_for_units(spec)
        self.found: list[dict[str, Any]] = []  # the runs as they were replayed

    @property
    def whole(self) -> bool:
        return len(self.found) == len(self.record.stream)

    def run(self, radius: float | None, other: str | os.PathLike[str] | None) -> list[Check]:
        checks: list[Check] = []
        trail = list(self.record.trail)
        stops = self._stops()
        for number in range(len(self.record.stream)):
            if not self._run(number, trail, stops, checks):
                return checks
        checks += [Check(f"trail.{entry['read']}", "a row that was read", None, False) for entry in trail]
        return checks + self._whole(radius, other)

    def _stops(self) -> list[int]:
        """Where the trail has to have an entry, of the rows of each run."""
        stops, before = [], 0
        for run in self.record.stream:
            stops += [before + 2**k for k in range(run["rows"].bit_length()) if is_told(2**k) and 2**k <= run["rows"]]
            before += run["rows"]
        return stops

    def _run(self, number: int, trail: list[Any], stops: list[int], checks: list[Check]) -> bool:
        """One run; False when the prefix that was asked for ends in it."""
        run, began, bad = self.record.stream[number], self.read, 0
        self.twin.retire = run["retire"]
        digests = BatchDigest()
        for number_of_pass in range(run["passes"]):
            bad = 0
            for batch, unfit in self.runs.batches(number, self.met):
                if number_of_pass == 0 and run["batches"] is not None:
                    digests.update(batch)
                bad += unfit
                self.unit_values = self.unit_values and bool(((np.abs(batch.values) == 1) | (batch.values == 0)).all())
                if not self._rows(batch, trail, stops, checks):
                    return False
            bad += self.runs.sources[number].bad_rows
        self.met += (self.read - began) // run["passes"]
        found = {**run, "rows": self.read - began, "bad_rows": bad}
        if run["batches"] is not None:
            found["batches"] = digests.result()
        self.found.append(found)
        return True

    def _rows(self, batch: Batch, trail: list[Any], stops: list[int], checks: list[Check]) -> bool:
        at = 0
        while at < len(batch):
            ahead = len(batch) - at
            if stops:
                ahead = min(ahead, stops[0] - self.read)
            if self.rows is not None:
                ahead = min(ahead, self.rows - self.read)
                if ahead == 0:
                    return False
            self.twin.learn(batch[at : at + ahead])
            at, self.read = at + ahead, self.read + ahead
            if stops and self.read == stops[0]:
                stops.pop(0)
                stated = trail.pop(0) if trail else None
                found = {"read": self.read, **against_own(self.twin, grouped=False).brief()}
                checks += _compare(f"trail.{self.read}", stated, found, self._slack())
            self.listener(self.read)
        return True

    def _slack(self) -> float:
        return ABSOLUTE * abs(self.twin.progress.loss)

    def _whole(self, radius: float | None, other: str | os.PathLike[str] | None) -> list[Check]:
        """All that can be told when every row was replayed."""
        stated, slack = self.made["certificate"], self._slack()
        record = Provenance(self.record.stream, (), self.unit_values)
        found = compared(self.twin, record, radius, other)
        if isinstance(stated.get("exact"), Mapping) and radius is not None:
            found = found.with_exact(self._exact(stated["exact"], radius))
        bins = self.twin.calibration
        checks = _compare("certificate", stated, _plain(found.to_dict()), slack)
        checks += _compare("calibration", self.made["calibration"], None if bins is None else bins.tolist(), slack)
        checks += _compare("stream", self.made["stream"], self.found, 0.0)
        checks += _compare("unit_values", self.made["unit_values"], self.unit_values, 0.0)
        return checks + _compare("retired", self.made["retired"], list(self.twin.spec.retired), 0.0)

    def _exact(self, stated: Mapping[str, Any], radius: float) -> dict[str, Any]:
        """The best fixed weights looked for once more; the losses stated stand if they are as near as it gets.

        What is stated of the regret has to follow from them.
        """
        from ftprl.receipt.exact import best_of, regrets

        found = best_of(self.twin, self.runs, radius)
        near = EXACT * max(abs(self.twin.progress.loss), 1.0)
        for name in ("best_loss", "best_loss_at_least"):
            if isinstance(stated.get(name), int | float) and abs(stated[name] - found[name]) <= near:
                found[name] = stated[name]
        return regrets(self.twin.progress.loss, found["best_loss"], found["best_loss_at_least"])


def _comparator(
    stated: Mapping[str, Any], other: str | os.PathLike[str] | None
) -> tuple[float | None, str | os.PathLike[str] | None]:
    """The radius or the other model that a receipt names."""
    told = stated.get("comparator")
    kind = told.get("kind") if isinstance(told, Mapping) else None
    if kind == "model":
        if other is None:
            raise InvalidInput("the receipt compares with another model, got none; name it with --against.")
        return None, other
    if other is not None:
        raise InvalidInput("the receipt compares with no other model, got one; drop --against.")
    if kind == "box":
        assert isinstance(told, Mapping)
        return check.positive("the receipt's radius", told.get("radius", 0.0)), None
    return None, None


def _plain(value: Any) -> Any:
    """As a reader of JSON gets it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def _compare(name: str, stated: Any, found: Any, slack: float) -> list[Check]:
    """Each leaf of what is stated against what was found."""
    if isinstance(stated, Mapping) and isinstance(found, Mapping):
        keys = sorted({*stated, *found})
        return [c for k in keys for c in _compare(f"{name}.{k}", stated.get(k), found.get(k), slack)]
    if _is_list(stated) and _is_list(found) and len(stated) == len(found):
        return [c for i in range(len(found)) for c in _compare(f"{name}.{i}", stated[i], found[i], slack)]
    return [Check(name, stated, found, _same(stated, found, slack if name.split(".")[-1] in DIFFERENCES else 0.0))]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(stated: Any, found: Any, slack: float) -> bool:
    if type(found) is float and type(stated) in (int, float):
        return bool(abs(stated - found) <= RELATIVE * abs(found) + slack)
    return type(stated) is type(found) and bool(stated == found)


def _short(value: Any) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
