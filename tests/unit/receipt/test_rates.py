"""The answer about learning rates: what is guaranteed, computed by the recorder and once more by the auditor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear import Spec
from ftprl.linear.mixture import experts_of, rates_of
from ftprl.receipt.audit_floor import audited_rates
from ftprl.receipt.replay import Replay

ROWS = 300


def settings(loss: str) -> Spec:
    more: dict[str, Any] = {"classes": 3} if loss == "softmax" else {"coin": True}
    return Spec(loss=loss, dim=64, scale="auto", dense=True, **more)


def learned(loss: str, weights: tuple[float, ...] = (1.0,)) -> Replay:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(ROWS, 3))
    label = (x[:, 0] > 0).astype(float) + (x[:, 1] > 0.5)
    y = {"softmax": label, "squared": x[:, 0]}.get(loss, np.where(label > 0, 1.0, -1.0))
    ends = np.arange(0, 3 * ROWS + 1, 3)
    batch = Batch(ends, np.tile(np.arange(3, dtype=np.uint32), ROWS), x.ravel(), y, rng.choice(weights, ROWS))
    replay = Replay(settings(loss), retire=True, known=3 if loss == "softmax" else 0)
    replay.learn(batch)
    return replay


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 1.0, 4.0)], ids=str)
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
def test_recorder_and_auditor_agree_and_the_guarantee_holds(loss: str, weights: tuple[float, ...]) -> None:
    replay = learned(loss, weights)
    stated, audited = rates_of(replay.state, replay.spec, replay.progress), audited_rates(replay)
    assert stated is not None
    assert audited is not None
    assert stated["guaranteed"] == (None if loss == "squared" else pytest.approx(audited["guaranteed"], rel=1e-12))
    assert {**stated, "guaranteed": None} == {**audited, "guaranteed": None}
    if loss != "squared":
        assert stated["mixture"] - stated["loss"] <= stated["guaranteed"]


@pytest.mark.parametrize(("loss", "others"), [("logistic", 3.5), ("softmax", 2.25)])
def test_the_guarantee_is_that_of_the_weights_at_the_start(loss: str, others: float) -> None:
    """ln(1/π) + 1 with weights of 1; each row that weighs 4 makes it ln(1/π) + 3 ln n + 4."""
    for weights, largest in (((1.0,), 1.0), ((1.0, 4.0), 4.0)):
        replay = learned(loss, weights)
        stated = audited_rates(replay)
        assert stated is not None
        prior = {h: 2 / (1 + (math.log(h / 0.2) / 1.5) ** 2) for h in replay.spec.scales}
        own = prior[stated["scale"]] / (sum(prior.values()) + others)
        expected = -math.log(own) + (largest - 1) * math.log(len(experts_of(replay.spec))) + largest
        assert stated["guaranteed"] == pytest.approx(expected, rel=1e-12)


def test_experts_and_scales_that_were_dropped_count_as_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dropped leaves its weight to the others: the guarantee stays as it was."""
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 256)
    whole = learned("logistic")
    for dropped in (["coin"], ["columns", "drift"]):
        monkeypatch.setattr(
            "ftprl.receipt.replay.dropped_experts", lambda state, names, t, own=dropped: own if t == 256 else []
        )
        monkeypatch.setattr("ftprl.receipt.replay.kept_scales", lambda state, scales, t: 1 if t == 256 else None)
        replay = learned("logistic")
        assert replay.spec.dropped_experts == tuple(dropped)
        assert len(replay.spec.scales) == 4
        stated, audited = rates_of(replay.state, replay.spec, replay.progress), audited_rates(replay)
        assert stated is not None
        assert audited is not None
        assert stated["guaranteed"] == pytest.approx(audited["guaranteed"], rel=1e-12)
        before = audited_rates(whole)
        assert before is not None
        assert before["scale"] == audited["scale"]
        assert audited["guaranteed"] == pytest.approx(before["guaranteed"], rel=1e-12)
        assert (stated["dropped"], stated["dropped_row"]) == ([0.02, 3.6, 10.0, 29.0], 256)
