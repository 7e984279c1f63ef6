"""Several threads that learn the scales of a model, some each: the model is that of one thread, byte by byte."""

import itertools
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ftprl
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.spec import AUTO
from ftprl.training import threads as learning

DIM, FEATURES = 512, 300
SIXTEEN = tuple(2.0**k / 64 for k in range(16))
LOSSES = ("logistic", "hinge", "squared_hinge", "squared", "absolute", "quantile", "huber", "poisson", "gamma")
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"float64": True, "coin": True},
    {"l1": 0.1, "l2": 0.01},
    {"lower": -0.5, "upper": 0.5, "intercept": False},
    {"coin": True, "dense": True},
    {"stack": False, "share": 0.0},
)
Numbers = list[NDArray[np.float64]]


def labels(loss: str, scores: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    if loss in ("logistic", "hinge", "squared_hinge"):
        return np.where(scores + rng.normal(size=len(scores)) > 0, 1.0, -1.0)
    mean = np.exp(np.clip(scores * 0.1, -2, 2))
    if loss == "poisson":
        return rng.poisson(mean).astype(float)
    if loss == "gamma":
        return rng.gamma(2, mean) + 1e-3
    y = 100 + 7 * scores + rng.normal(size=len(scores))
    y[min(100, len(y) - 1)] = 1e6  # far from all others: the range of the labels is forgotten at a power of two
    return y


def rows(loss: str, count: int = 2200, seed: int = 0, *, long: int = 12) -> Batch:
    """Some rows without a label or weight, empty ones, columns of numbers among names."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, long, count)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    drawn = [np.sort(rng.choice(FEATURES, size, replace=False)) for size in sizes]
    indices = np.concatenate([*drawn, np.empty(0)]).astype(np.uint32)
    values = np.where(indices < 12, rng.normal(size=len(indices)) * 3, 1.0).astype(np.float32)
    weights = np.random.default_rng(5).normal(size=FEATURES)
    products = np.concatenate([[0.0], np.cumsum(values * weights[indices])])
    y = labels(loss, products[indptr[1:]] - products[indptr[:-1]], rng)
    y[rng.random(count) < 0.05] = np.nan
    weight = np.where(rng.random(count) < 0.3, rng.random(count) * 5, 1.0)
    weight[rng.random(count) < 0.05] = 0.0
    return Batch(indptr, indices, values, y, weight)


def learn(engine: Engine, batch: Batch, numbers: Numbers, **more: Any) -> None:
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    engine.learn(batch, scores=scores, losses=losses, **more)
    numbers += [scores, losses]


def content(engine: Engine) -> bytes:
    """All that is saved, and the sums of the receipt that are not."""
    return Model(engine, {}).to_bytes()


def same(one: Numbers, other: Numbers) -> bool:
    return len(one) == len(other) and all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def stream(spec: Spec, threads: int, *, receipt: bool = False, seen: bool = False) -> tuple[bytes, Numbers]:
    """Learn two batches of several thousand entries and some single rows with so many threads."""
    engine = Engine(spec, receipt=receipt, retire=False)
    engine.threads = threads
    numbers: Numbers = []
    batch = rows(spec.loss)
    learn(engine, batch, numbers)
    numbers.append(engine.score(batch[:300]))
    for row in range(3):
        learn(engine, batch[row : row + 1], numbers)
    learn(engine, rows(spec.loss, seed=1), numbers, seen=seen)
    saved = content(engine)
    numbers += [engine.weights(), engine.moves(batch[:20]), engine.copy().weights()]
    engine.threads = 1
    assert content(engine) == saved, "the cells are the same in parts and together"
    return saved, numbers


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "default")
@pytest.mark.parametrize("loss", LOSSES)
def test_two_threads_learn_what_one_does(loss: str, options: dict[str, Any]) -> None:
    spec = Spec(loss=loss, dim=DIM, scale=AUTO, **options)
    one, numbers = stream(spec, 1)
    two, others = stream(spec, 2)
    assert same(numbers, others)
    assert one == two


@pytest.mark.parametrize("loss", LOSSES)
def test_two_threads_keep_the_receipt_of_one(loss: str) -> None:
    for options in ({}, {"float64": True}, {"l1": 0.1, "l2": 0.01}):
        spec = Spec(loss=loss, dim=DIM, scale=AUTO, **options)
        assert stream(spec, 1, receipt=True)[0] == stream(spec, 2, receipt=True)[0]


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber"])
def test_rows_of_an_earlier_pass_and_levels(loss: str) -> None:
    more = {} if loss == "logistic" else {"level": True}
    spec = Spec(loss=loss, dim=DIM, scale=AUTO, coin=True, dense=True, **more)
    (one, numbers), (two, others) = (stream(spec, threads, seen=True) for threads in (1, 2))
    assert same(numbers, others)
    assert one == two


@pytest.mark.parametrize("threads", [2, 3, 4, 9])
@pytest.mark.parametrize("count", [5, 11, 16])
@pytest.mark.parametrize("loss", ["logistic", "absolute"])
def test_any_number_of_scales_and_threads(loss: str, count: int, threads: int) -> None:
    spec = Spec(loss=loss, dim=DIM, scale=SIXTEEN[:count], coin=True, dense=True)
    (one, numbers), (two, others) = (stream(spec, many) for many in (1, threads))
    assert same(numbers, others)
    assert one == two


@given(
    loss=st.sampled_from(LOSSES),
    scales=st.integers(2, 16),
    threads=st.integers(2, 4),
    options=st.sampled_from(OPTIONS),
    receipt=st.booleans(),
    cuts=st.lists(st.integers(0, 3000), max_size=4),
    seed=st.integers(0, 2**16),
    long=st.integers(8, 40),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_law_the_number_of_threads_cannot_be_seen(
    loss: str, scales: int, threads: int, options: dict[str, Any], receipt: bool, cuts: list[int], seed: int, long: int
) -> None:
    spec = Spec(loss=loss, dim=DIM, scale=SIXTEEN[:scales], **options)
    batch = rows(loss, 3000, seed, long=long)
    ends = [0, *sorted(cuts), 3000]
    actual = []
    for many in (1, threads):
        engine, numbers = Engine(spec, receipt=receipt, retire=False), Numbers()
        engine.threads = many
        for first, last in itertools.pairwise(ends):
            learn(engine, batch[first:last], numbers)
        actual.append((content(engine), numbers))
    assert same(actual[0][1], actual[1][1])
    assert actual[0][0] == actual[1][0]


def test_parts_are_used() -> None:
    """Otherwise the tests above would compare one thread with itself."""
    engine = Engine(Spec(dim=DIM, scale=AUTO), retire=False)
    before = tasks()
    engine.threads = 2
    engine.learn(rows("logistic"))
    assert tasks() == before + 1
    engine.threads = 1
    assert tasks() == before


WITHOUT_THREADS = """
import resource, sys
from pathlib import Path
import numpy as np
from ftprl.data import Batch
from ftprl.linear import Engine, Spec

rng = np.random.default_rng(0)
count = 3000
indices = rng.integers(0, 512, 4 * count).astype(np.uint32)
y = np.where(rng.random(count) < 0.4, 1.0, -1.0)
batch = Batch(np.arange(0, 4 * count + 1, 4), indices, np.ones(4 * count), y, np.ones(count))
one = Engine(Spec(dim=512, scale="auto"), retire=False)
one.learn(batch)
other = Engine(Spec(dim=512, scale="auto"), retire=False)
pages = int(Path("/proc/self/statm").read_text().split()[0])
if sys.argv[1] == "limited":  # less than the stack of a thread, far more than anything else needs
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), resource.RLIM_INFINITY))
before = len(list(Path("/proc/self/task").iterdir()))
other.threads = 2
other.learn(batch)
print(len(list(Path("/proc/self/task").iterdir())) - before)
other.threads = 1
slots = one.touched()
assert (one.take(slots) == other.take(slots)).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS, and stacks of threads as glibc makes them")
@pytest.mark.parametrize(("limit", "more"), [("limited", 0), ("free", 1)])
def test_one_thread_learns_where_no_other_can_be_started(limit: str, more: int) -> None:
    """A stack of 2 GB for each thread that is started, and 1 GB left: nothing else is refused."""
    stack = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if stack not in (resource.RLIM_INFINITY,) and stack < 1 << 31:
        pytest.skip("needs stacks of 2 GB")
    code = [sys.executable, "-c", WITHOUT_THREADS, limit]
    large = f"ulimit -S -s {(1 << 31) // 1024} && exec " + shlex.join(code)
    done = subprocess.run(
        ["sh", "-c", large],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(more)), done.stderr


def tasks() -> int:
    folder = Path("/proc/self/task")
    if not folder.is_dir():
        pytest.skip("needs the threads of a process as Linux lists them")
    return len(list(folder.iterdir()))


def test_scales_that_are_dropped() -> None:
    saved = []
    for threads in (1, 2):
        engine = Engine(Spec(dim=DIM, scale=SIXTEEN), receipt=True, retire=False)
        engine.threads = threads
        engine.learn(rows("logistic"))
        engine.keep_scales(3)
        engine.learn(rows("logistic", seed=1))
        saved.append(content(engine))
    assert saved[0] == saved[1]


def test_late_labels() -> None:
    saved = []
    for threads in (1, 2):
        engine = Engine(Spec(dim=DIM, scale=AUTO, coin=True, loss="squared"), retire=False)
        engine.threads = threads
        batch = rows("squared")
        unlabelled = batch.replaced(weight=np.zeros(len(batch)))
        arrivals, numbers = np.zeros((len(batch), engine.arrival_numbers)), np.arange(len(batch))
        scores = np.empty(len(batch))
        engine.learn_late(unlabelled, arrivals, numbers, scores=scores)
        engine.learn_late(batch, arrivals, numbers)
        saved.append((content(engine), scores.tobytes(), arrivals.tobytes()))
    assert saved[0] == saved[1]


def test_cells_that_are_put_while_they_are_in_parts() -> None:
    engine = Engine(Spec(dim=DIM, scale=AUTO), receipt=True, retire=False)
    engine.threads = 2
    engine.learn(rows("logistic"))
    other = Model.from_bytes(content(engine)).engine
    other.threads = 2
    for one in (engine, other):
        one.learn(rows("logistic", seed=1))
    assert content(engine) == content(other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_learns_by_itself() -> None:
    engines = [Engine(Spec(dim=DIM, scale=AUTO), retire=False) for _ in range(2)]
    engines[1].threads = 2
    for engine in engines:
        engine.learn(rows("logistic"))
    engines[0].learn(rows("logistic", seed=1))
    child = os.fork()
    if child == 0:  # the threads are gone; nothing may be raised from here
        engines[1].learn(rows("logistic", seed=1))
        os._exit(0 if content(engines[0]) == content(engines[1]) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_a_number_of_threads_that_cannot_be(threads: Any) -> None:
    with pytest.raises(InvalidInput, match="threads="):
        Engine(Spec(dim=DIM)).threads = threads


# ---- runs ----


def trained(data: list[Batch], threads: int, **options: Any) -> bytes:
    return ftprl.train(data, dim=DIM, threads=threads, **options).model.to_bytes()


def test_runs_with_passes_and_held_out_rows() -> None:
    data = [rows("logistic", 3000, seed) for seed in (0, 1)]
    for options in ({"passes": 2}, {"passes": 3, "holdout": 7}, {"holdout": 5, "receipt": True}):
        assert trained(data, 1, **options) == trained(data, 2, **options)


def test_a_run_in_which_scales_are_dropped() -> None:
    data = [rows("logistic", 2**16 + 500, seed, long=4) for seed in (0, 1, 2)]
    one, two = (ftprl.train(data, dim=DIM, threads=threads) for threads in (1, 2))
    assert len(one.model.engine.spec.scales) < 8, "the test needs a stream that drops scales"
    assert one.model.to_bytes() == two.model.to_bytes()


def test_a_checkpoint_is_resumed_with_another_number_of_threads(tmp_path: Path) -> None:
    data = [rows("squared", 3000, seed) for seed in range(3)]
    expected = trained(data, 1, loss="squared")
    for first, then in ((2, 1), (1, 2)):
        kept = list[bytes]()

        def keep(event: dict[str, Any], kept: list[bytes] = kept, path: Path = tmp_path / "run.ckpt") -> None:
            if event["event"] == "checkpoint" and event["rows"] == 6000:
                kept.append(path.read_bytes())

        options = {"loss": "squared", "checkpoint": tmp_path / "run.ckpt", "every": 3000, "listener": keep}
        assert trained(data, first, **options) == expected
        (tmp_path / "half.ckpt").write_bytes(kept[0])
        resumed = ftprl.train(data, resume=tmp_path / "half.ckpt", threads=then)
        assert resumed.model.to_bytes() == expected


def test_how_many_threads_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.vw").write_text("1 | a\n-1 | b\n")
    text, memory = ftprl.data.open(tmp_path / "a.vw"), ftprl.data.open([rows("logistic", 10)], dim=DIM)
    monkeypatch.setattr(learning, "processors", lambda: 2)
    assert [learning.learning_threads(threads, memory) for threads in (None, 0, 1, 2, 3)] == [2, 1, 1, 2, 3]
    assert [learning.learning_threads(threads, text) for threads in (None, 0, 1, 2, 3)] == [1, 1, 1, 1, 1]
    frame = ftprl.data.open([{"y": 0, "x": 1.0}, {"y": 1, "x": 2.0}], label="y")
    assert [learning.learning_threads(threads, frame) for threads in (None, 0, 1, 2, 3)] == [2, 1, 1, 1, 1]
    monkeypatch.setattr(learning, "processors", lambda: 8)
    assert [learning.learning_threads(threads, text) for threads in (None, 2, 4, 7)] == [1, 2, 4, 1]


def test_threads_start_when_it_is_decided_which_scales_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "processors", lambda: 2)
    monkeypatch.setattr(learning, "FIRST_ROW", 1000)
    memory = ftprl.data.open([rows("logistic", 10)], dim=DIM)
    chosen = list[int]()
    for retire in (True, False):
        engine = Engine(Spec(dim=DIM, scale=AUTO), retire=retire)
        for threads in (None, 3):
            learning.choose_threads(engine, threads, memory)
            chosen.append(engine.threads)
        engine.learn(rows("logistic"))
        learning.choose_threads(engine, None, memory)
        chosen.append(engine.threads)
    assert chosen == [1, 3, 2, 2, 3, 2]
