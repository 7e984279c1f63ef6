"""One engine in several threads: learning, predicting, saving and dropping scales beside each other.

Memory errors end the process, so what could crash runs in a process of its own.
"""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec

ROWS, FEATURES, DIM = 400, 20, 2**14
SCALES = ("one", "eight")

PREAMBLE = """
import sys, threading, time
import numpy as np
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.spec import AUTO

def arrays(rows=400, features=20, dim=2**14, seed=0):
    rng = np.random.default_rng(seed)
    indices = rng.permuted(np.tile(np.arange(dim, dtype=np.uint32), (2, 1)), axis=1)[0]
    indices = np.resize(indices, rows * features)
    indptr = np.arange(rows + 1, dtype=np.int64) * features
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    return [indptr, indices, rng.random(rows * features).astype(np.float32), y, np.ones(rows)]

def together(*works):
    wrong = []
    def run(work):
        try:
            work()
        except BaseException as error:
            wrong.append(error)
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if wrong: raise wrong[0]

scale = {"one": 0.1, "eight": AUTO}[sys.argv[1]]
"""


def run(script: str, scales: str, *more: str) -> str:
    """Run a script in a separate process; return its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + script, scales, *more], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def rows(seed: int = 0, count: int = ROWS) -> Batch:
    rng = np.random.default_rng(seed)
    indices = np.concatenate([rng.choice(DIM, FEATURES, replace=False) for _ in range(count)]).astype(np.uint32)
    y = np.where(rng.random(count) < 0.5, 1.0, -1.0)
    indptr = np.arange(count + 1, dtype=np.int64) * FEATURES
    return Batch(indptr, indices, np.ones(len(indices), np.float32), y, np.ones(count))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("receipt", ["receipt", ""])
def test_two_threads_that_learn(scales: str, receipt: str) -> None:
    """Each call is learned as a whole: threads with equal batches give the bits of one thread; buffers may grow."""
    script = """
def engine(): return Engine(Spec(dim=2**14, scale=scale), receipt=bool(sys.argv[2]))
batch, shared, alone = Batch(*arrays(2000)), engine(), engine()
def learn():
    for _ in range(20): shared.learn(batch)
together(learn, learn, learn)
for _ in range(60): alone.learn(batch)
assert (shared.cells == alone.cells).all() and shared.progress == alone.progress
growing = [Batch(*arrays(rows, 10 + rows // 50)) for rows in range(100, 1600, 100)]
for _ in range(5):
    fresh = engine()
    def grow():
        for batch in growing: fresh.learn(batch)
    together(grow, grow)
    assert fresh.progress.rows == 2 * sum(map(len, growing)) == fresh.baseline_state[3]
"""
    run(script, scales, receipt)


@pytest.mark.parametrize(("scales", "loss"), [("one", "logistic"), ("eight", "poisson")])
def test_arrays_changed_while_they_are_learned_or_scored(scales: str, loss: str) -> None:
    """A change during learning is refused or learned, never half checked: no crash, and only finite numbers."""
    script = """
BAD = {"indptr": 2**62, "indices": 2**32 - 1, "values": np.nan, "y": -2e9, "weight": -1.0}
parts = arrays()
if sys.argv[2] == "poisson": parts[3][:] = 3.0
engine, batch = Engine(Spec(dim=2**14, scale=scale, loss=sys.argv[2]), receipt=True), Batch(*parts)
for target, wrong in zip(parts, BAD.values()):
    good, bad, end = target.copy(), target.copy(), time.monotonic() + 0.4
    bad[::3] = wrong
    def change():
        while time.monotonic() < end:
            np.copyto(target, bad); np.copyto(target, good)
    def use(work):
        while time.monotonic() < end:
            try: work(batch)
            except InvalidInput: pass
    together(change, lambda: use(engine.learn), lambda: use(engine.score))
    target[:] = good
    engine.learn(batch)
    assert np.isfinite(engine.cells).all() and np.isfinite(engine.score(batch)).all()
"""
    run(script, scales, loss)


@pytest.mark.parametrize("scales", SCALES)
def test_a_long_batch_that_is_changed(scales: str) -> None:
    """A changed batch is copied in parts, and gives the bits of one that is not copied."""
    script = """
parts = arrays(150_000, 4)
one, other = (Engine(Spec(dim=2**14, scale=scale), receipt=True) for _ in range(2))
scores, twin = np.empty((2, 150_000))
one.learn(Batch(*parts), scores=scores)
other.learn(Batch(*parts).replaced(is_private=True), scores=twin)
assert (one.cells == other.cells).all() and (scores == twin).all() and one.progress == other.progress
assert (one.score(Batch(*parts)) == other.score(Batch(*parts).replaced(is_private=True))).all()
end = time.monotonic() + 1.5
good = parts[1].copy()
def change():
    while time.monotonic() < end:
        parts[1][:] = 2**32 - 1; parts[1][:] = good
def learn():
    while time.monotonic() < end:
        try: one.learn(Batch(*parts))
        except InvalidInput: pass
together(change, learn)
assert np.isfinite(one.cells).all()
"""
    run(script, scales)


def test_slots_changed_while_cells_are_taken() -> None:
    script = """
engine, end = Engine(Spec(dim=2**14, scale=scale), receipt=True), time.monotonic() + 0.7
engine.learn(Batch(*arrays()))
slots = np.arange(2**14, dtype=np.uint32)
def change():
    while time.monotonic() < end:
        slots[::2] = 2**32 - 1; slots[::2] = 5
def take():
    while time.monotonic() < end:
        for work in (engine.take, engine.take_gradients, engine.own_sums):
            try: work(np.sort(slots) if work == engine.own_sums else slots)
            except InvalidInput: pass
together(change, take, take)
"""
    run(script, "eight")


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("receipt", ["receipt", ""])
def test_saving_while_learning(scales: str, receipt: str, tmp_path: Path) -> None:
    """Every saved file loads, and is a state between two batches: its rows are a multiple of a batch."""
    script = """
model = Model(Engine(Spec(dim=2**14, scale=scale), receipt=bool(sys.argv[2])))
batches = [Batch(*arrays(seed=k)) for k in range(8)]
done = threading.Event()
def learn():
    k = 0
    while not done.is_set():
        model.engine.learn(batches[k % 8]); k += 1
def save():
    for k in range(12):
        model.save(f"{sys.argv[3]}/{k}.ftprl")
    done.set()
together(learn, save)
for k in range(12):
    saved = Model.load(f"{sys.argv[3]}/{k}.ftprl")
    assert saved.engine.progress.rows % 400 == 0
    assert saved.engine.progress.weight == saved.engine.progress.rows == saved.engine.baseline_state[3]
"""
    run(script, scales, receipt, str(tmp_path))


@pytest.mark.parametrize("receipt", ["receipt", ""])
def test_everything_while_scales_are_dropped(receipt: str, tmp_path: Path) -> None:
    script = """
batches = [Batch(*arrays(seed=k)) for k in range(8)]
for trial in range(8):
    model = Model(Engine(Spec(dim=2**14, scale=scale), receipt=bool(sys.argv[2])))
    engine = model.engine
    def learn():
        for batch in batches: engine.learn(batch)
    def drop():
        time.sleep(0.002 * trial); engine.keep_scales(2)
    def read():
        for batch in batches:
            assert np.isfinite(engine.score(batch)).all()
            cells, parts, weights = engine.cells, engine.parts, engine.weights()
            assert len(weights) == 2**14 and engine.mixture is not None
            twin = engine.copy()
            assert twin.spec.scales == Model(twin).engine.spec.scales and len(twin.touched()) >= 0
            if sys.argv[2]: engine.own_sums(), engine.own_groups(0), engine.sums, engine.rounding_sums(0)
    def save():
        for k in range(4):
            model.save(f"{sys.argv[3]}/{k}.ftprl"); Model.load(f"{sys.argv[3]}/{k}.ftprl")
    together(learn, drop, read, save)
    assert len(engine.spec.scales) == 4
"""
    run(script, "eight", receipt, str(tmp_path))


def test_predictions_beside_learning_see_the_state_between_two_batches() -> None:
    """One row per batch moves one weight of all features: a prediction of many rows has one value throughout."""
    engine = Engine(Spec(loss="squared", dim=64, scale=0.1, intercept=False))
    asked = Batch.from_rows([{k: 1.0} for k in range(64)] * 20)
    done, seen = threading.Event(), set()

    def learn() -> None:
        for k in range(300):
            engine.learn(Batch.from_rows([dict.fromkeys(range(64), 1.0)] * 50, [float(k % 7)] * 50))
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    while not done.is_set():
        scores = engine.score(asked)
        assert (scores == scores[0]).all()
        seen.add(float(scores[0]))
    thread.join()
    assert len(seen) > 1


def test_several_threads_predict_at_once() -> None:
    """Two predictions are inside `unchanged` together; a thread that wants to learn waits for them."""
    engine, both = Engine(Spec(dim=64)), threading.Barrier(2, timeout=30)
    learned = threading.Event()

    def read() -> None:
        with engine.unchanged():
            both.wait()
            engine.score(rows_of_64())
            assert not learned.is_set()
            both.wait()

    def learn() -> None:
        engine.learn(rows_of_64())
        learned.set()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    writer = threading.Thread(target=learn)
    with engine.unchanged():
        writer.start()
        assert not learned.wait(0.05)
    for thread in (*readers, writer):
        thread.join(30)
    assert learned.is_set()


def rows_of_64() -> Batch:
    return Batch.from_rows([{1: 1.0}], [1.0])


def test_a_waiting_learner_comes_before_later_predictions() -> None:
    """Two threads that predict without a break do not block a third from learning."""
    engine, stop = Engine(Spec(dim=64)), threading.Event()
    asked = Batch.from_rows([{k: 1.0} for k in range(64)] * 200)

    def predict() -> None:
        while not stop.is_set():
            engine.score(asked)

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            engine.learn(rows_of_64())
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert engine.progress.rows == 50


def test_learning_while_the_same_thread_keeps_the_state_unchanged_is_refused() -> None:
    engine = Engine(Spec(dim=64))
    with engine.unchanged(), pytest.raises(RuntimeError, match="unchanged"):
        engine.learn(rows_of_64())
    assert engine.learn(rows_of_64()).rows == 1


def test_a_refused_batch_gives_the_lock_back() -> None:
    engine = Engine(Spec(dim=64))
    with pytest.raises(InvalidInput):
        engine.learn(Batch.from_rows([{70: 1.0}], [1.0]))
    thread = threading.Thread(target=engine.learn, args=(rows_of_64(),), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_which_batches_are_private() -> None:
    """Arrays made by ftprl are not copied; a caller's arrays are, also after cutting."""
    made = Batch.from_rows([{0: 1.0}, {1: 2.0}], [1, -1])
    passed = rows(count=3)
    assert made.is_private
    assert made[:1].is_private
    assert made.private() is made
    assert not passed.is_private
    assert not passed[:2].is_private
    copied = passed.private()
    assert copied.is_private
    assert not np.shares_memory(copied.indices, passed.indices)


def test_a_block_that_ends_where_it_did_not_begin_is_an_error() -> None:
    """A block at the end of memory once caused a segmentation fault."""
    engine = Engine(Spec(dim=4))
    with pytest.raises(RuntimeError, match="needs to end in the thread that began it"):
        engine.unchanged().__exit__(None, None, None)
    engine.learn(Batch.from_rows([{0: 1.0}], y=[1]))
