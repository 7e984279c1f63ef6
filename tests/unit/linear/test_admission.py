"""Admission of rare features against a dictionary of counts, through runs, checkpoints and model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data
from ftprl.data import Batch
from ftprl.errors import BadModel, FtprlError, InvalidInput
from ftprl.linear import Model
from ftprl.linear.admission import Admission
from ftprl.runlog.events import Event
from ftprl.training import train

DIM = 12
ROWS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, DIM - 1), st.sampled_from([1.0, 1.0, 1.0, 2.5]), max_size=4),
        st.sampled_from([1.0, -1.0, np.nan]),
        st.sampled_from([0.0, 1.0]),
    ),
    min_size=1,
    max_size=30,
)


def batch_of(rows: list[tuple[dict[int, float], float, float]]) -> Batch:
    return Batch.from_rows([row for row, _, _ in rows], y=[y for _, y, _ in rows], weight=[w for _, _, w in rows])


def kept_of(batch: Batch) -> list[list[int]]:
    return [batch.indices[a:b].tolist() for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)]


@given(ROWS, st.integers(1, 4), st.integers(1, 30))
def test_counts_are_those_of_a_dictionary(rows: list[Any], after: int, cut: int) -> None:
    seen, admitted, wanted = dict[int, int](), set[int](), []
    for row, y, weight in rows:
        kept = []
        for slot, value in row.items():
            if weight > 0 and y == y and slot not in admitted:
                if value != 1.0 or seen.get(slot, 0) >= after:
                    admitted.add(slot)
                seen[slot] = seen.get(slot, 0) + 1
            if slot in admitted:
                kept.append(slot)
        wanted.append(kept)
    rule, actual = Admission(after, DIM), []
    for part in batch_of(rows).cut(cut):
        actual += kept_of(rule.admitted(part))
    assert actual == wanted
    again = Admission.from_bytes(rule.to_bytes(), DIM)
    assert kept_of(again.admitted(batch_of(rows), is_fixed=True)) == kept_of(
        rule.admitted(batch_of(rows), is_fixed=True)
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    data.clicks.generate(3000, seed=4, path=tmp_path / "log.vw")
    return tmp_path / "log.vw"


def test_neither_threads_nor_blocks_nor_kills_matter(log: Path, tmp_path: Path) -> None:
    actual, whole = set(), train(log, bits=16)
    for threads, block_size in ((0, 5000), (2, 1 << 20)):
        source = data.open(log, dim=2**16, block_size=block_size)
        run = train(source, admit=2, threads=threads, passes=2, names=0)
        actual.add(run.model.to_bytes())
    assert len(actual) == 1
    assert run.model.occupied < 0.6 * whole.model.occupied

    def listener(event: Event) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= 1400:
            raise KeyboardInterrupt

    saved = {"checkpoint": tmp_path / "c", "every": 700}
    with pytest.raises(KeyboardInterrupt):
        train(log, bits=16, admit=2, passes=2, names=0, listener=listener, **saved)
    assert train(log, resume=tmp_path / "c", **saved).model.to_bytes() in actual


def test_a_rare_feature_takes_no_cell(tmp_path: Path) -> None:
    lines = [f"{1 if i % 3 else -1} | often rare{i}" for i in range(100)]
    (tmp_path / "a.vw").write_text("\n".join(lines) + "\n")
    run = train(tmp_path / "a.vw", bits=16, admit=1, output=tmp_path / "m")
    assert run.model.occupied == 1
    model = Model.load(tmp_path / "m")
    assert model.admission is not None
    assert model.admission.after == 1
    (tmp_path / "b.vw").write_text("1 | rare7 new\n1 | new\n")
    more = train(tmp_path / "b.vw", resume=tmp_path / "m")  # counts go on
    assert more.model.occupied == 3


def test_what_is_refused(log: Path, tmp_path: Path) -> None:
    for rows in (0, 255, "often", True):
        with pytest.raises(InvalidInput, match=r"admit= needs a whole number from 1 to 254"):
            train(log, bits=10, admit=rows)
    with pytest.raises(InvalidInput, match=r"admit= leaves features out that a receipt counts"):
        train(log, bits=10, admit=1, receipt=True)
    train(log, bits=10, output=tmp_path / "m")
    with pytest.raises(InvalidInput, match=r"admit= needs to be what the model was trained with"):
        train(log, resume=tmp_path / "m", admit=1)


def test_a_forged_state_is_refused() -> None:
    good = Admission(3, DIM).to_bytes()
    head, _, rest = good.partition(b"\n")
    for body in (
        b"",
        good[:-3],
        head,
        b"[]\n" + rest,
        good.replace(b'"after": 3', b'"after": "x"'),
        good.replace(b'"after": 3', b'"after": 300'),
        b"\n" + rest,
    ):
        with pytest.raises(BadModel, match="expected the admission of features"):
            Admission.from_bytes(body, DIM)
    with pytest.raises(FtprlError):
        Admission.from_bytes(good, DIM + 1)
