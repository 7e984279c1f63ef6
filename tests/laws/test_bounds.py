"""The laws of bounds by name: kernels equal their replay, and predictions are monotone in a feature with a sign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data as readers
from ftprl._core import use_instruction_set
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.spec import AUTO
from ftprl.losses import SCALAR_LOSSES
from ftprl.receipt.audit import Audit, Comparator
from ftprl.receipt.certificate import own_certificate, running_certificate
from ftprl.receipt.certify import certify_model
from ftprl.receipt.replay import Replay
from laws.label_streams import KERNELS
from laws.strategies import SEEDS, law

BOUNDS = {"up": (0, None), "down": (None, 0), "n^x*": (-0.03, 0.02), "n^*1": (0.01, 0.05)}


def labels_of(loss: str, rng: np.random.Generator, score: np.ndarray) -> np.ndarray:
    kind = SCALAR_LOSSES[loss].labels
    if kind == "signs":
        return np.where(score > 0, 1.0, -1.0)
    return np.abs(score) + 0.1 if kind == "positive" else np.round(np.abs(score)) if kind == "nonnegative" else score


def stream(loss: str, seed: int, rows: int = 120) -> str:
    """Return VW text with labels that follow two features against their required signs, and other features."""
    rng = np.random.default_rng(seed)
    up, down = rng.normal(size=(2, rows))
    y = labels_of(loss, rng, rng.normal(size=rows) - rng.uniform(-1, 1) * up + rng.uniform(-1, 1) * down)
    lines = []
    for i in range(rows):
        others = " ".join(f"x{k}:{rng.normal():.4g}" for k in rng.choice(15, rng.integers(0, 5), replace=False))
        weight = rng.choice([0.5, 1.0, 2.0])
        lines.append(f"{y[i]:.5g} {weight} | up:{up[i]:.5g} down:{down[i]:.5g} |n {others}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bounds")


def batches(folder: Path, loss: str, seed: int, spec: Spec) -> list[Any]:
    path = folder / f"{loss}{seed}.vw"
    path.write_text(stream(loss, seed))
    dtype = "float64" if spec.float64 else "float32"
    source = readers.open(path, dim=spec.dim, loss=loss, dtype=dtype, names="all")
    return [batch for batch, _ in source.read()]


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
@law(4)
@given(
    seed=SEEDS,
    scale=st.sampled_from([0.3, (0.1, 1.0, 7.0), AUTO]),
    dim=st.sampled_from([8, 12, 64, 2**18]),
    float64=st.booleans(),
    l1=st.sampled_from([0.0, 0.5]),
    l2=st.sampled_from([0.0, 0.1]),
    upper=st.sampled_from([np.inf, 0.04]),
)
def test_kernels_equal_their_replay(
    folder: Path, loss: str, seed: int, scale: Any, dim: int, float64: bool, l1: float, l2: float, upper: float
) -> None:
    """The kernels and the replay agree to the bit in all state and in the receipt's sums; bounds hold for every
    weight.
    """
    own = {"up": (0, None), "n^x1?": (0.001, None), "n^x*": (-0.03, 0.02)}  # in any cell that they share
    spec = Spec(loss=loss, scale=scale, dim=dim, float64=float64, l1=l1, l2=l2, upper=upper, bounds=own)
    rows = batches(folder, loss, seed, spec)
    twin = Replay(spec, retire=False)
    for batch in rows:
        twin.learn(batch)
    for name in KERNELS:
        use_instruction_set(name)
        engine = Engine(spec, receipt=True)
        for batch in rows:
            for part in batch.cut(17):
                engine.learn(part)
        slots = engine.touched()
        lower, upper_ends = engine.limits_at(slots)
        for k in range(len(spec.scales)):
            weights = engine.weights(k)[slots]
            assert (lower <= weights).all()
            assert (weights <= upper_ends).all()
            np.testing.assert_allclose(twin.weights(slots, k)[0], weights, rtol=1e-12, atol=1e-300)
            assert twin.sums_of(k) == engine.sums_of(k)
        np.testing.assert_array_equal(twin.limits_at(slots), (lower, upper_ends))
        np.testing.assert_array_equal(twin.tallies, engine.tallies[:3])
        parts, theirs = engine.parts_at(slots), twin.parts_at(slots)
        for part in ("z", "R", "S", "unit"):
            np.testing.assert_array_equal(theirs[part].reshape(len(slots), -1), parts[part].reshape(len(slots), -1))
        certificate = certify_model(Model(engine))
        assert certificate.regret <= certificate.bound + certificate.rounding
    use_instruction_set("")


@law(12)
@given(
    seed=SEEDS,
    loss=st.sampled_from(["softmax", "ovr"]),
    scale=st.sampled_from([0.3, (0.1, 1.0, 7.0), AUTO]),
    dim=st.sampled_from([8, 12, 64, 2**18]),
    float64=st.booleans(),
    l1=st.sampled_from([0.0, 0.5]),
    known=st.sampled_from([0, 5]),
)
def test_classes_keep_to_their_bounds(
    folder: Path, seed: int, loss: str, scale: Any, dim: int, float64: bool, l1: float, known: int
) -> None:
    """The weights of every class keep their bounds and equal the replay's, also if names share cells."""
    own = {"up": (0, None), "n^x1?": (0.001, None), "n^x*": (-0.03, 0.02)}
    spec = Spec(loss=loss, scale=scale, dim=dim, float64=float64, l1=l1, bounds=own, classes=5)
    assert not spec.stacked
    rows = [
        batch.replaced(y=np.minimum(np.floor(np.abs(batch.y)), 3.0)) for batch in batches(folder, "squared", seed, spec)
    ]
    receipt = loss == "softmax"  # the other has none, and no replay
    twin = Replay(spec, retire=False, known=known if receipt else 5)
    for batch in rows if receipt else []:
        twin.learn(batch)
    actual = []
    for name in KERNELS:
        use_instruction_set(name)
        engine = Engine(spec, receipt=receipt, classes=known)
        for batch in rows:
            for part in batch.cut(17):
                engine.learn(part)
        slots = engine.touched()
        limits = engine.limits_at(slots)
        for k in range(len(spec.scales)):
            weights = engine.weights(k)[:, slots]
            assert (limits[0] <= weights).all()
            assert (weights <= limits[1]).all()
            if receipt:
                np.testing.assert_allclose(twin.weights(slots, k), weights, rtol=1e-12, atol=1e-300)
                assert (twin.sums_of(k), twin.rounding_sums(k)) == (engine.sums_of(k), engine.rounding_sums(k))
        actual.append((engine.cells.tobytes(), engine.score(rows[0]).tobytes()))
        if receipt:
            np.testing.assert_array_equal(twin.limits_at(slots), limits)
            for certificate in (own_certificate(engine), running_certificate(engine, grouped=True)):
                assert certificate.regret <= certificate.bound + certificate.rounding
                assert certificate.bound == pytest.approx(Audit(twin, Comparator()).certificate()["bound"], rel=1e-9)
    use_instruction_set("")
    assert len(set(actual)) == 1


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
@law(6)
@given(seed=SEEDS, scale=st.sampled_from([0.3, 20.0, (0.1, 1.0, 7.0), AUTO]), passes=st.sampled_from([1, 2]))
def test_predictions_are_monotone(folder: Path, loss: str, seed: int, scale: Any, passes: int) -> None:
    """Scores and means are monotone in a feature whose weight has a sign, whatever the row's other features are."""
    spec = Spec(loss=loss, scale=scale, dim=2**18, bounds=BOUNDS)
    rows = batches(folder, loss, seed, spec)
    engine = Engine(spec)
    for _ in range(passes):
        for batch in rows:
            engine.learn(batch)
    path, rng = folder / "probe.vw", np.random.default_rng(seed)
    values = np.sort(rng.normal(scale=rng.choice([1.0, 100.0]), size=25))
    model = Model(engine, {"format": "vw", "dim": spec.dim, "seed": 0, "loss": loss})
    for name, sign in (("up", 1.0), ("down", -1.0)):
        for others in ("", "|n x1:1 x3:-2", "|n x0:5 x7:0.1 x11:3"):
            path.write_text("".join(f"| {name}:{v:.17g} {others}\n" for v in values))
            for raw in (True, False):
                scores = sign * model.predict(path, raw=raw)
                slack = 1e-12 * (1.0 + np.abs(scores).max())
                assert (np.diff(scores) >= -slack).all()
