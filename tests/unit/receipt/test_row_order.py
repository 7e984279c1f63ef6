"""The random order of rows in `verify`: equal to the compiled order, and no receipt of another order is confirmed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl
from ftprl._core import RowOrder
from ftprl.data import Batch
from ftprl.data.order import Stage
from ftprl.receipt import row_order
from ftprl.receipt.certify import certify_model
from ftprl.receipt.document import digest, make_receipt, read_receipt, write_receipt
from ftprl.receipt.row_order import KeyedRows, ReplayedOrder, ReplayedSample, keys_of
from ftprl.receipt.verify import Verdict, verify_receipt


def _rows(rng: np.random.Generator, rows: int, most_entries: int) -> Batch:
    """Return rows of several lengths, some without a label or a weight."""
    indptr = np.append(0, np.cumsum(rng.integers(0, most_entries + 1, rows)))
    entries = int(indptr[-1])
    y = np.where(rng.random(rows) < 0.05, np.nan, np.arange(rows, dtype=float))
    weight = np.where(rng.random(rows) < 0.05, 0.0, 1.0)
    return Batch(indptr, np.arange(entries, dtype=np.uint32), rng.random(entries, dtype=np.float32), y, weight)


def _cut(batch: Batch, cuts: list[int]) -> list[Batch]:
    """Cut the rows into several batches."""
    ends = sorted({0, len(batch), *(cut % (len(batch) + 1) for cut in cuts)})
    return [batch[start:end] for start, end in pairwise(ends)]


@given(
    rows=st.integers(0, 3000),
    waiting=st.sampled_from([1, 2, 9, 10, 37, 500, 5000]),
    megabytes=st.sampled_from([0.002, 0.05, 256.0]),
    seed=st.integers(0, 2**64 - 1),
    cuts=st.lists(st.integers(0, 3000), max_size=6),
)
def test_rows_are_learned_in_the_order_of_the_core(
    rows: int, waiting: int, megabytes: float, seed: int, cuts: list[int]
) -> None:
    batch, most = _rows(np.random.default_rng(rows), rows, 4), int(megabytes * 2**20)
    core = RowOrder(seed, waiting, most, False)
    learned: list[tuple[int, int]] = []
    checked: list[int] = []

    def take() -> None:
        while (taken := core.take(1000)) is not None:
            stage, arrays = taken
            if stage >= Stage.THIRD_QUARTER and not checked:
                checked.extend(core.checked(0, 10**6)[-1].tolist())
            learned.extend((stage, number) for number in arrays[-1].tolist())

    for part in _cut(batch, cuts):
        indptr = np.ascontiguousarray(part.indptr - part.indptr[0])
        core.add(indptr, part.indices, part.values, part.y, part.weight, part.first_row)
        take()
    core.finish()
    take()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_order, "BYTES", most)
        order, own = ReplayedOrder(seed, waiting, float64=False), []
        for part in _cut(batch, cuts[:3]):
            own += [(0, number) for number in order.add(KeyedRows.of(part)).numbers.tolist()]
        due, last = order.finish()
    own += [(0, number) for number in due.numbers.tolist()]
    ends = [last.compared_at, last.check_at, last.last_at, len(last.rows)]
    stages = 1 + np.searchsorted(ends, np.arange(len(last.rows)), side="right")
    own += zip(stages.tolist(), last.rows.numbers.tolist(), strict=True)
    assert own == learned
    assert not checked or checked == last.checked.numbers.tolist()
    assert sorted(number for _, number in own) == list(range(rows))


@given(st.integers(0, 5000), st.integers(0, 2**64 - 1))
def test_the_sample_has_the_rows_of_the_smallest_keys(rows: int, seed: int) -> None:
    sample = ReplayedSample(seed)
    batch = Batch.from_rows([[(0, 1.0)]] * rows, np.arange(rows, dtype=float))
    for part in _cut(batch, [1, 700, 2500]):
        sample.see(part, np.column_stack([part.y] * 3))
    kept = sample.result()
    assert (kept is None) == (rows < 1000)
    if kept is not None:
        smallest = np.sort(np.argsort(keys_of(seed, np.arange(rows)), kind="stable")[: ReplayedSample.MOST])
        assert kept[0].y.tolist() == smallest.tolist() == kept[1][:, 0].astype(int).tolist()


# ---- receipts ----


def _table(path: Path, rows: int = 3000) -> str:
    """Return a table that drifts, with labels of every kind."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=rows) + np.arange(rows) / 1000.0
    group = np.array(["red", "green", "blue"])[rng.integers(0, 3, rows)]
    size = np.exp(0.4 * x + 0.3 * rng.normal(size=rows))
    lines = [f"{a:.4f},{g},{s:.4f},{int(s > 1.5)},{int(s)}" for a, g, s in zip(x, group, size, strict=True)]
    path.write_text("x,group,size,large,count\n" + "\n".join(lines) + "\n")
    return str(path)


OTHERS = {"size", "large", "count", "group"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "log loss": ("large", {}),
    "one scale": ("large", {"scale": 0.2}),
    "double precision": ("large", {"float64": True, "waiting": 300}),
    "large seed": ("large", {"waiting": 300, "order_seed": 2**63}),
    "hinge": ("large", {"loss": "hinge", "waiting": 300}),
    "held out": ("large", {"holdout": 7, "waiting": 300}),
    "two passes": ("large", {"passes": 2}),
    "squared": ("size", {"loss": "squared"}),
    "squared, one scale": ("size", {"loss": "squared", "scale": 0.2, "waiting": 300}),
    "gamma": ("size", {"loss": "gamma", "waiting": 300}),
    "Poisson": ("count", {"loss": "poisson"}),
    "quantile": ("size", {"loss": "quantile", "tau": 0.8, "waiting": 300}),
    "absolute": ("size", {"loss": "absolute"}),
    "classes": ("group", {"loss": "softmax"}),
    "classes, many rows": ("group", {"loss": "softmax", "waiting": 300}),
    "given": ("large", {"order": "given"}),
    "given, squared": ("size", {"loss": "squared", "order": "given"}),
    "given, one scale": ("count", {"loss": "poisson", "scale": 0.2, "order": "given"}),
    "given, classes": ("group", {"loss": "softmax", "order": "given"}),
    "given, two passes": ("large", {"order": "given", "passes": 2}),
    "bounds": ("large", {"bounds": {"x": (0.0, 0.1)}, "waiting": 300}),
}


def _receipt(tmp_path: Path, label: str, settings: dict[str, Any]) -> tuple[str, str]:
    data, receipt = _table(tmp_path / "table.csv"), str(tmp_path / "own.receipt")
    run = ftprl.train(data, label=label, ignore=sorted(OTHERS - {label}), receipt=True, **settings)
    run.model.save(str(tmp_path / "own.ftprl"))
    write_receipt(receipt, make_receipt(run.model, certify_model(run.model)))
    return data, receipt


def _verified(data: str, receipt: str, **changes: Any) -> Verdict:
    """Return the verdict on a receipt whose order was changed, with a new digest."""
    stated = read_receipt(receipt)
    check = changes.pop("check", {})
    order = stated["runs"][-1]["order"] | changes
    stated["runs"][-1]["order"] = {name: value for name, value in order.items() if value is not None}
    stated["certificate"]["check"] |= check
    stated["sha256"] = digest(stated)
    write_receipt(receipt, stated)
    return verify_receipt(receipt, data)


@pytest.mark.parametrize("name", CASES)
def test_a_receipt_is_confirmed_with_its_check(tmp_path: Path, name: str) -> None:
    label, settings = CASES[name]
    data, receipt = _receipt(tmp_path, label, settings)
    stated = read_receipt(receipt)
    assert stated["certificate"]["check"]["kind"] == ("again" if settings.get("order") == "given" else "last")
    verdict = verify_receipt(receipt, data, model=tmp_path / "own.ftprl")
    assert verdict.confirmed, str(verdict)


@pytest.mark.parametrize(
    "changes",
    [
        {"order_seed": 1},
        {"waiting": 301},
        {"order": "given", "waiting": None},
        {"check": {"loss": 0.1}},
        {"check": {"rows": 1}},
        {"check": {"alarms": ["worse"]}},
    ],
    ids=str,
)
def test_another_order_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    data, receipt = _receipt(tmp_path, "size", {"loss": "squared", "waiting": 300})
    assert _verified(data, receipt, **changes).status == "refused"


def test_rows_in_another_order_are_refused(tmp_path: Path) -> None:
    """Data with other digests is not learned; a receipt of other files is refused by its rows."""
    data, receipt = _receipt(tmp_path, "large", {"waiting": 300})
    lines = Path(data).read_text().splitlines(keepends=True)
    Path(data).write_text("".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert verify_receipt(receipt, data).status == "refused"
