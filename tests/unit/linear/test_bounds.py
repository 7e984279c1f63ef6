"""Bounds by name: their spelling, the names that a pattern matches, and that every weight keeps its bounds."""

from __future__ import annotations

import fnmatch
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ftprl
from ftprl import data as readers
from ftprl._core import BoundTable, NewNames
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.bounds import fits, parse_bounds
from laws.strategies import law

INF = float("inf")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()),
        ({}, ()),
        ({"a": (0, None)}, (("a", 0.0, INF),)),
        ({3: (None, 2)}, (("3", -INF, 2.0),)),
        ("a=0:", (("a", 0.0, INF),)),
        (["a=b=-1:1", "c*=:0"], (("a=b", -1.0, 1.0), ("c*", -INF, 0.0))),
        ([["a", None, 1]], (("a", -INF, 1.0),)),
        ({"a": (2, 2)}, (("a", 2.0, 2.0),)),
        (["a=:"], (("a", -INF, INF),)),
    ],
)
def test_forms(value: Any, expected: Any) -> None:
    assert parse_bounds(value) == expected
    assert Spec(bounds=value).bounds == expected
    assert Spec.from_dict(Spec(bounds=value).to_dict()) == Spec(bounds=value)


@pytest.mark.parametrize(
    "value",
    [
        *("a", "a=", "a=1", "=0:1", "a=x:", "a=0:1:2", "a=2:1", "a=nan:", "a=inf:"),
        *({"": (0, 1)}, {"a": 1}, {"a": (0,)}, {"a": (0, 1, 2)}, {"a": ("0", 1)}, {True: (0, 1)}, {"a": (0, 1e31)}),
        *(5, [3], [("a", 1)], {"a\n": (0, 1)}, {"a" * 401: (0, 1)}),
    ],
)
def test_bad_forms(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^bounds= needs") as error:
        Spec(bounds=value)
    assert "\n" not in str(error.value)


def packed(names: list[tuple[str, bool]]) -> NewNames:
    """Return new names, one per row, whose hashes are their positions."""
    texts = [name.encode() for name, _ in names]
    head = struct.pack("<Q", len(names) | 1 << 63)
    entries = [
        struct.pack("<QII", i, i, len(text) | (1 << 31 if product else 0))
        for i, (text, (_, product)) in enumerate(zip(texts, names, strict=True))
    ]
    return NewNames.unpack(head + b"".join(entries) + b"".join(texts))


def fitting(pattern: str, names: list[tuple[str, bool]]) -> list[bool]:
    """Return the names that a pattern matches, by the compiled table."""
    table = BoundTable(1 << 16, -INF, INF, [(pattern, 0.0, 1.0)])
    actual = table.add(packed(names), 0, len(names))
    assert actual is not None
    rows, slots, seen, ends = actual
    assert slots.tolist() == rows.tolist()
    assert not seen.any()
    assert ends.tolist() == [0.0, 1.0] * len(rows)
    assert table.matches == [len(rows)]
    return np.isin(np.arange(len(names)), rows).tolist()


LETTERS = "ab-!]^[*?=é"


@law(200)
@given(
    pattern=st.text(LETTERS, min_size=1, max_size=8),
    names=st.lists(st.tuples(st.text("ab-!]^=é", max_size=6), st.booleans()), max_size=8),
)
@example(pattern="[!a]", names=[("b", False), ("a", False), ("é", False)])
@example(pattern="[]-a]*", names=[("]", False), ("^b", False)])
@example(pattern="a**b", names=[("ab", False), ("aéb", True)])
@example(pattern="[b-a]", names=[("a", False)])
@example(
    pattern="city", names=[("city", False), ("city=a", False), ("city=a", True), ("city^b", False), ("cityb", False)]
)
def test_patterns_are_those_of_fnmatch(pattern: str, names: list[tuple[str, bool]]) -> None:
    assert fitting(pattern, names) == [fits(pattern, name, product) for name, product in names]
    if any(mark in pattern for mark in "*?["):
        assert fitting(pattern, names) == [fnmatch.fnmatchcase(name, pattern) for name, _ in names]


def test_names_that_share_a_cell_get_the_intersection() -> None:
    names = packed([("a", False), ("b", False), ("c", False), ("d", False)])
    table = BoundTable(2, -5.0, INF, [("a", 0.0, INF), ("c", -1.0, 2.0), ("d", 3.0, 4.0)])
    assert [part.tolist() for part in table.add(names, 0, 3) or ()] == [[0, 2], [0, 0], [0, 1], [0.0, INF, 0.0, 2.0]]
    assert [part.tolist() for part in table.bounded] == [[0], [0.0, 2.0]]
    assert [part.tolist() for part in table.add(names, 0, 3) or ()] == [[], [], [], []]  # met again
    again = table.copy()
    assert [part.tolist() for part in table.add(names, 3, 4) or ()] == [[0], [1], [1], [3.0, 4.0]]
    clash = packed([("a", False), ("b", False), ("c", False), ("e", False), ("d", False)])  # d in the cell of a and c
    assert again.add(clash, 4, 5) is None
    assert again.refused == (b"d", 0, 0.0, 2.0, 3.0, 4.0)


def rows_of(count: int, seed: int, *, labels: tuple[float, ...] = (-1.0, 1.0)) -> list[str]:
    """Return VW lines with a few features, some frequent and some rare."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        names = [f"f{k}:{rng.normal():.3g}" for k in rng.choice(12, rng.integers(1, 6), replace=False)]
        lines.append(f"{rng.choice(labels):g} |n {' '.join(names)} once{i // 3} |m g{rng.integers(4)}")
    return lines


BOUNDS: Mapping[str | int, tuple[float | None, float | None]] = {
    "n^f1*": (0, None),
    "n^f2": (-0.02, 0.01),
    "m": (None, 0.0),
    "n^once?": (-0.002, 0.001),
}


def expected_limits(spec: Spec, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = np.full(len(names), spec.lower), np.full(len(names), spec.upper)
    for i, name in enumerate(names):
        for pattern, low, high in spec.bounds:
            if fits(pattern, name, False):
                lower[i], upper[i] = max(lower[i], low), min(upper[i], high)
    return lower, upper


LOSSES = ["logistic", "squared", "hinge", "absolute", "poisson", "quantile"]


@pytest.mark.parametrize("scale", [0.5, "auto"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_weight_keeps_to_its_bounds(tmp_path: Path, loss: str, scale: Any) -> None:
    path = tmp_path / "rows.vw"
    labels = (-1.0, 1.0) if loss in ("logistic", "hinge") else (0.0, 1.0, 3.0)
    path.write_text("\n".join(rows_of(300, 3, labels=labels)) + "\n")
    run = ftprl.train(path, loss=loss, scale=scale, bounds={**BOUNDS, "*": (None, 0.7)})
    engine, names = run.model.engine, run.model.names
    assert names is not None
    assert not engine.spec.stacked
    assert not engine.spec.coin
    assert not engine.spec.dense
    texts = names.all()
    lower, upper = expected_limits(engine.spec, texts)
    slots = names.cells()
    assert len(np.unique(slots)) == len(slots)
    for k in range(len(engine.spec.scales)):
        weights = engine.weights(k)[slots]
        assert (lower <= weights).all()
        assert (weights <= upper).all()
        np.testing.assert_array_equal(engine.weights_at(slots, k), weights)
    np.testing.assert_array_equal(np.array(engine.limits_at(slots)), [lower, upper])
    free = ftprl.train(path, loss=loss, scale=scale)
    assert (free.model.engine.weights()[slots] < lower).any()  # or the bounds would test nothing
    assert run.model.shared_bounds == (np.count_nonzero((lower > -INF) | (upper < 0.7)), 0)


def test_bounds_of_numbers_are_those_of_names() -> None:
    """Bounds of an array, by the numbers of columns, equal the bounds of all weights."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.choice([-1.0, 1.0], 200)
    all_of_them = ftprl.train(X, y, bounds={"*": (0.0, 0.05)}, scale=0.3).model
    for bounds in ({"*": (0, 0.05)}, {"[0-4]": (0, None), "?": (None, 0.05)}, dict.fromkeys(range(5), (0, 0.05))):
        model = ftprl.train(X, y, bounds=bounds, scale=0.3).model
        for name, tensor in all_of_them.engine.saved_arrays.items():
            np.testing.assert_array_equal(tensor, model.engine.saved_arrays[name])
        np.testing.assert_array_equal(model.engine.cells, all_of_them.engine.cells)
    some = ftprl.train(X, y, bounds={1: (0.01, 0.02)}, scale=0.3).model
    assert 0.01 <= some.weights()[1] <= 0.02
    assert some.engine.limits_at(np.arange(5))[0].tolist() == [-INF, 0.01, -INF, -INF, -INF]


def learned(path: Path, **more: Any) -> Model:
    return ftprl.train(path, bounds=BOUNDS, **more).model


@pytest.mark.parametrize("bits", [4, 7, 18])
@pytest.mark.parametrize("scale", [0.4, "auto"])
def test_batches_threads_resumption_and_files_do_not_matter(tmp_path: Path, bits: int, scale: Any) -> None:
    """Batches, threads and resumption do not matter, also if shared cells get tighter bounds during a run."""
    path, lines = tmp_path / "rows.vw", rows_of(400, 5)
    path.write_text("\n".join(lines) + "\n")
    shuffled = learned(path, bits=bits, scale=scale, receipt=True).state_digest()
    model = learned(path, bits=bits, scale=scale, receipt=True, order="given")
    state = model.state_digest()
    assert shuffled != state
    cells, shared = model.shared_bounds
    assert (shared or 0) > 0 if bits < 10 else shared == 0
    assert cells > 0
    for threads in (0, 2):
        for order, digest in (("random", shuffled), ("given", state)):
            again = learned(path, bits=bits, scale=scale, receipt=True, threads=threads, order=order)
            assert again.state_digest() == digest
    engine = Engine(model.engine.spec, receipt=True)
    engine.bounds.is_named = True
    for rows, _ in readers.open(path, dim=2**bits, names="all").read():
        for batch in rows.cut(7):
            engine.learn(batch)
    assert Model(engine, model.reading).state_digest() == state
    first, second, saved = (tmp_path / name for name in ("a.vw", "b.vw", "m.ftprl"))
    first.write_text("\n".join(lines[:150]) + "\n")
    second.write_text("\n".join(lines[150:]) + "\n")
    ftprl.train(first, bounds=BOUNDS, bits=bits, scale=scale, receipt=True, order="given", output=saved)
    resumed = ftprl.train(second, resume=saved).model
    assert resumed.state_digest() == state
    again = Model.from_bytes(resumed.to_bytes())
    assert again.state_digest() == state
    assert again.engine.spec == model.engine.spec
    batch = next(iter(readers.open(path, dim=2**bits).batches()))
    scores = model.engine.score(batch)
    for other in (again, again.compact(), Model.from_bytes(again.compact().to_bytes())):
        np.testing.assert_array_equal(other.engine.score(batch), scores)
    np.testing.assert_array_equal(model.engine.copy().score(batch), scores)


def test_the_cache_keeps_the_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(rows_of(300, 6)) + "\n")
    state = learned(path, bits=12).state_digest()
    for _ in range(2):
        assert learned(path, bits=12, cache=tmp_path / "rows.batches").state_digest() == state


def test_rows_that_are_refused_still_tell_their_names(tmp_path: Path) -> None:
    """A bounded name in a row that cannot be learned is still bounded: the parser does not report it again."""
    lines = ["1 |n a:1", "7 |n f1:1 f2:1", "1 |n f1:-1 b:1", "-1 |n f1:1 f2:1"] * 20
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    model = ftprl.train(path, bounds=BOUNDS, on_bad_row="skip", scale=0.5).model
    assert model.shared_bounds == (2, 0)


def test_what_leaves_no_weight_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(rows_of(50, 1)) + "\n")
    with pytest.raises(InvalidInput, match=r"bounds= leaves no weight for 'n\^f1', whose patterns ask for at least 1"):
        ftprl.train(path, bounds={"n^f1": (1, None), "n^f*": (None, 0)})
    with pytest.raises(InvalidInput, match=r"leaves no weight for 'n\^f1', whose patterns ask for at least 1 and"):
        ftprl.train(path, bounds={"n^f1": (1, None), "*": (None, 0.5)})
    with pytest.raises(InvalidInput, match=r"shares cell \d+ with a name that has bounds .* use more bits="):
        ftprl.train(path, bounds={"n^f?": (1, None), "n^once*": (None, 0)}, bits=3)


def test_a_source_without_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(rows_of(50, 1)) + "\n")
    for names in (False, True):
        with pytest.raises(InvalidInput, match='open the data with names="all"'):
            ftprl.train(readers.open(path, names=names), bounds=BOUNDS)
    assert ftprl.train(readers.open(path, names="all"), bounds=BOUNDS).model.shared_bounds[0] > 0


def test_a_resumed_model_keeps_its_bounds(tmp_path: Path) -> None:
    path, saved = tmp_path / "rows.vw", tmp_path / "m.ftprl"
    path.write_text("\n".join(rows_of(50, 1)) + "\n")
    ftprl.train(path, bounds=BOUNDS, output=saved)
    ftprl.train(path, bounds=BOUNDS, resume=saved)
    with pytest.raises(InvalidInput, match="bounds= needs to be what the model was trained with"):
        ftprl.train(path, bounds={"x": (0, 1)}, resume=saved)


def test_late_labels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(rows_of(50, 1)) + "\n")
    with pytest.raises(InvalidInput, match="delay= learns rows in another order than bounds= expects"):
        ftprl.train(path, bounds=BOUNDS, delay=3)


def test_no_more_than_65535_ranges() -> None:
    count = 4096
    engine = Engine(Spec(dim=2**17, bounds={str(i): (0, i + 1) for i in range(count)}))
    engine.learn(Batch.from_rows([dict.fromkeys(range(count), 1.0)], y=[1]))
    assert engine.limits_at(np.array([7]))[1].tolist() == [8.0]
    many = np.arange(70_000)
    with pytest.raises(InvalidInput, match="at most 65535 different ranges"):
        engine.put_bounds(many, np.column_stack([np.zeros(len(many)), 1.0 + many]))
