"""The warnings of a run: the command line prints them, Python warns, and the model keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ftprl.data.files import shown
from ftprl.data.kinds import FEATURES
from ftprl.data.options import JSON_LINES, RECORDS
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.runlog.rows import Caution, cautions_of
from ftprl.runlog.yardstick import worse_than_baseline

if TYPE_CHECKING:
    from ftprl.training.context import RunContext

_MOST = 20  # that a model keeps
_DECIMAL = re.compile(r"[-+]?\d*\.\d+(e[-+]?\d+)?", re.IGNORECASE)


def of_columns(data: Mapping[str, Any]) -> Iterator[Caution]:
    """Warn of columns that look like identifiers or text, by the description of a source."""
    profile = data["profile"]
    for column in profile:
        if column["advice"] is not None:
            yield Caution(f"column {column['name']}", column["advice"], ("ignore", "text"))
    values = [column["name"] for column in profile if _DECIMAL.fullmatch(column["name"])]
    if values and data["format"] in ("csv", "tsv"):
        text = f"the columns have names such as {shown(values[0])[:40]!r}: if the first row is data, pass header=False"
        yield Caution("column names", text, ("header",))
    kinds = {column["kind"] for column in profile}
    # Dicts and JSON lines may have other keys later.
    if kinds and not kinds & set(FEATURES) and data["format"] not in (JSON_LINES, RECORDS):
        yield Caution(
            "features", "no feature columns left: the model predicts from the labels alone; check ignore=", ("ignore",)
        )


def of_run(run: RunContext) -> Iterator[Caution]:
    """Warn of what a run that is over has found."""
    state, model, progressive = run.state, run.model, run.progressive
    spec, bad = model.spec, run.bad_rows
    if bad:
        first = shown(run.source.first_bad or state.first_refusal or "")[:400]
        yield Caution("bad rows", f"left out {bad} bad row{'s'[: bad > 1]}; the first: {first}", ("classes",))
    yield from _of_bounds(model)
    is_binary = spec.scalar_loss().binary
    if is_binary and state.only_class is not None:
        text = f"every label was {state.only_class}; check the labels, and positive="
        yield Caution("one class", text, ("positive",))
    if (is_binary or spec.classes > 0) and state.blocks.are_sorted:
        yield Caution(
            "sorted",
            "the rows are sorted by class, and after many of one class the model predicts that class for all; train"
            " with order=random",
            ("order",),
        )
    drift = None if run.is_random else state.monitor.drift
    if drift is not None and drift.alarm:
        chance = f"(probability of a false alarm {100.0 * drift.false_alarm:g} %)"
        yield Caution("drift", f"drift: {drift.text()} {chance}")
    yield from cautions_of(spec.loss, None if state.check is None else state.check.to_dict())
    yield from of_loss(progressive)  # the last one: the model is of no use


def of_loss(progressive: LossTotals) -> Iterator[Caution]:
    """Warn of a loss above that of the baseline."""
    if progressive.above_baseline:
        text = worse_than_baseline(progressive.mean, progressive.baseline_mean)
        yield Caution("above baseline", text, ("label", "loss", "ignore", "scale"))


def few_classes(model: Model) -> Iterator[Caution]:
    """Warn of classes that were expected and never came: each was given a probability in every row."""
    most, known = model.spec.classes, len(model.classes or ())
    if 1 < known < most:
        text = f"{known} classes were met, and up to {most} were expected; if these are all, classes={known} predicts"
        yield Caution("few classes", f"{text} better", ("classes",))


def of_known_data(provenance: Mapping[str, Any] | None, files: Sequence[str]) -> Iterator[Caution]:
    """Warn of data of the last run that an earlier one had, by the digests that a model keeps for its receipt."""
    *before, last = [_digests(one) for one in (provenance or {}).get("runs", ())] or [[]]
    known = {digest for one in before for digest in one}
    again = [number for number, digest in enumerate(last) if digest in known]
    if again:
        names = [shown(files[number]) for number in again[:3]] if len(files) == len(last) else ["the data"]
        more = f" and {len(again) - 3} more" if len(again) > 3 else ""
        text = f"{', '.join(names)}{more}: an earlier run learned the same data, whose rows now count twice"
        yield Caution("known data", f"{text}; pass new rows with resume=", ("resume",))


def _digests(run: Mapping[str, Any]) -> list[str]:
    """The digests of the files of a run, or of its rows."""
    return [str(entry["sha256"]) for entry in (run["files"] if run["files"] is not None else [run["batches"]])]


def kept(before: Mapping[str, list[str]], found: Iterable[Caution], *, judges: bool) -> dict[str, list[str]]:
    """The warnings that a model keeps: those of its last run, and of the runs before one with too few rows to judge."""
    some = {} if judges else dict(before)
    return dict(list({**some, **{one.kind: [shown(one.text), *one.options] for one in found}}.items())[-_MOST:])


def _of_bounds(model: Model) -> Iterator[Caution]:
    """Warn of bounds that no feature has, and of those that a shared cell has of another name."""
    if model.engine.bounds is None:
        return
    unused = [name for name, count in model.engine.bounds.matches.items() if not count]
    if unused:
        some = ", ".join(repr(name[:60]) for name in unused[:5]) + (", ..." if len(unused) > 5 else "")
        yield Caution(
            "bounds", f"bounds= {some} fits no feature of the data; ftprl inspect shows their names", ("bounds",)
        )
    cells, shared = model.shared_bounds
    if shared:
        yield Caution(
            "shared bounds",
            f"{shared} of {cells} weights with bounds are shared by several names, which all have the bounds; use more"
            " bits= for fewer",
            ("bits",),
        )
