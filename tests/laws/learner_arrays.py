"""The arrays of a model by the names of its file, of a compiled learner and of its twin alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from ftprl.linear import Engine, Spec
from ftprl.linear.engine import learner_of
from ftprl.receipt.replay import Replay
from oracles.classes_twin import ClassesTwin
from oracles.learner_twin import LearnerTwin
from oracles.losses_twin import KINKED
from oracles.mixture_twin import Mixture
from oracles.newton_twin import Columns, Newton

Arrays = dict[str, np.ndarray]
PARTS = ("mixture.", "newton_", "columns.", "coin.", "labels.odds")
LETTER = {"scores": "A", "columns": "B", "drift": "D"}
MOST_COLUMNS = 64
WINDOWS = ("mixture.block", "mixture.windows")  # kept where scales may be dropped: of more than four
ONE_EACH = ("w", "totals", "octave", "without")  # arrays of the mixture with a number for each expert


def engine_without_coin_input(spec: Spec) -> Engine:
    """Return an engine whose Newton experts do not see the score of the coin, as in the prototype."""
    engine = Engine(spec)
    engine._core = learner_of(spec, False, 0, spec.dim, coin_input=False)
    return engine


def arrays_of(engine: Engine) -> Arrays:
    """Return views of the mixture, the Newton experts, columns, coin and odds of an engine; no cells."""
    return {name: a for name, a in engine.saved_arrays.items() if name.startswith(PARTS)}


def arrays_of_twin(twin: LearnerTwin | ClassesTwin) -> Arrays:
    """Return the same arrays of a twin."""
    if isinstance(twin, ClassesTwin):
        return _of_classes(twin)
    made: Arrays = {} if twin.mixture is None else _of_mixture(twin.mixture)
    for name, e in twin.experts.newtons.items():
        made |= _of_newton(name, e)
        if twin.loss in KINKED:
            made[f"newton_{LETTER[name]}.loss"] = np.array([e.steps, e.mean_loss])
    if twin.experts.columns is not None:
        made |= _of_columns(twin.experts.columns)
    if twin.experts.coin is not None:
        coin = twin.experts.coin
        made["coin.intercept"] = np.array([coin.theta, coin.sizes, coin.won, 0.0, coin.bound])
    if twin.loss == "logistic" and twin.mixture is not None:
        made["labels.odds"] = np.array(twin.labels.odds)
    return made


def _of_classes(twin: ClassesTwin) -> Arrays:
    made: Arrays = {} if not twin.spec.several else _of_mixture(twin.mixture)
    for name, e in twin.newtons.items():
        made |= _of_newton(name, e)
    if "drift" in twin.newtons:
        made |= {"newton_D.bias": twin.bias, "newton_D.var": twin.var}
    if twin.table is not None:
        made |= _of_columns(twin.table)
        made["columns.W"] = np.array([own.u for own in twin.classes])
        made["columns.Q"] = np.array([own.P for own in twin.classes])
    return made


def _of_mixture(m: Mixture) -> Arrays:
    o = m.octaves
    own: dict[str, Any] = {"w": m.w, "totals": m.totals, "facts": m.facts, "octave": o.octave, "without": o.without}
    own |= {"octave_loss": o.octave_loss, "block": o.block, "windows": o.windows}
    return {f"mixture.{name}": np.array(a) for name, a in own.items()}


def _of_newton(name: str, e: Newton) -> Arrays:
    return {f"newton_{LETTER[name]}.u": e.u, f"newton_{LETTER[name]}.P": e.P}


def _of_columns(columns: Columns) -> Arrays:
    table = [[i, *numbers] for i, numbers in columns.table.items()]
    return {
        "columns.facts": columns.facts,
        "columns.table": np.array(table, np.float64).reshape(-1, 5),
        "columns.rows": np.array([float(columns.rows)]),
    }


def arrays_of_replay(replay: Replay) -> Arrays:
    """Return the same arrays of a replay, without the space for columns and entries of the table to come."""
    made = {name: np.asarray(a) for name, a in replay.arrays.all.items() if name.startswith(PARTS)}
    if "columns.sizes" not in made:
        return made
    used, entries = made.pop("columns.sizes").astype(int).tolist()
    made["columns.facts"], made["columns.table"] = made["columns.facts"][:used], made["columns.table"][:entries]
    if "columns.W" in made:
        made["columns.W"] = made["columns.W"][:, : 1 + used]
        made["columns.Q"] = made["columns.Q"][:, : 1 + used, : 1 + used]
        return made
    inputs = len(made["newton_B.u"]) - MOST_COLUMNS + used
    made["newton_B.u"], made["newton_B.P"] = made["newton_B.u"][:inputs], made["newton_B.P"][:inputs, :inputs]
    return made


def assert_arrays(
    engine: Engine, other: LearnerTwin | ClassesTwin | Replay, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Compare the arrays of an engine with those of a twin or a replay; without a tolerance to the bit."""
    is_replay = isinstance(other, Replay)
    expected, own = arrays_of_replay(other) if is_replay else arrays_of_twin(other), arrays_of(engine)
    few_scales = len(engine.spec.scales) <= 4
    for name, theirs in expected.items():
        if few_scales and name in WINDOWS:
            continue
        if theirs.size == 0 and name not in own:  # no columns yet
            continue
        ours = own[name]
        if name.removeprefix("mixture.") in ONE_EACH:
            ours = ours[..., : theirs.shape[-1]]
        if is_replay and name in ("columns.facts", "columns.table"):  # a replay knows cells, not slots
            ours, theirs = ours[:, 1:], theirs[:, 1:]
        if rtol or atol:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
