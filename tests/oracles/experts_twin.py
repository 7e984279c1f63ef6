"""The experts of a learner beside its scales: Newton experts, offset and coin; what they say, and how they learn."""

from __future__ import annotations

from typing import NamedTuple

from ftprl.linear.spec import Spec
from oracles.cells_twin import Vector
from oracles.coin_twin import Coin
from oracles.labels_twin import Labels
from oracles.losses_twin import KINKED, LOG_LINK, MARGIN, PINBALL, cut, newton_slope, sides, slope, value
from oracles.newton_twin import Columns, Newton

INPUT_CUT, HEAVY = 8.0, 2.0**10
GAIN = {"hinge": 4.0}  # of the scores of Newton experts


class Said(NamedTuple):
    """What a row says before its label."""

    scores: list[float]  # of the scales
    coin: float
    f: dict[str, float]  # scores of the Newton experts, by name
    inputs: dict[str, list[float]]  # theirs, in the unit of the labels
    experts: list[float]  # scores of all experts, cut to the range of the labels


def expert_names(spec: Spec) -> list[str]:
    """Return the names of the experts of a model, the scales first."""
    newtons = {"scores": spec.stacked, "columns": spec.dense, "drift": spec.stacked}
    alone = "majority" if spec.loss in MARGIN else "offset"
    others = {**newtons, alone: not spec.classes, "coin": spec.coin}
    return [f"{h:g}" for h in spec.scales] + [name for name, is_there in others.items() if is_there]


class Experts:
    """The experts of a model, and what is known of its labels."""

    def __init__(self, spec: Spec, labels: Labels, coin_input: bool) -> None:
        self.loss, self.tau, self.labels, self.intercept = spec.loss, labels.tau, labels, spec.intercept
        self.coin = Coin(spec.dim, "f8" if spec.float64 else "f4", spec.intercept) if spec.coin else None
        self.columns = Columns() if spec.dense else None
        self.newtons: dict[str, Newton] = {}
        K = len(spec.scales)
        self.coin_input = spec.coin and coin_input
        v = K + self.coin_input
        if spec.stacked:
            self.newtons["scores"] = Newton(K, v)
            if spec.dense:
                self.newtons["columns"] = Newton(K, v + 1, constant=v)
            self.newtons["drift"] = Newton(K, K + 1, constant=K, drifts=True)

    # ---- before the label ----

    def coin_score(self, slots: Vector, v: Vector, *, learns: bool) -> float:
        if self.coin is None:
            return 0.0
        bets = self.coin.bets(slots, v, learns=learns)
        if self.loss == "logistic":
            return bets + (self.coin.own_bet + self.base) if self.intercept else bets
        return self.labels.m + self.labels.unit * (bets + self.coin.own_bet)

    @property
    def base(self) -> float:
        """What the labels alone predict."""
        return self.labels.base if self.intercept or self.loss != "logistic" else 0.0

    def columns_of(self, slots: Vector, v: Vector) -> list[float]:
        return self.columns.inputs(slots, v) if self.columns else [1.0]

    def say(self, scores: list[float], coin: float, columns: list[float]) -> Said:
        """Return what all experts say of a row."""
        L = self.labels
        v = [self._input(s) for s in scores]
        with_coin = [*v, self._input(coin)] if self.coin_input else v
        inputs = {"scores": with_coin, "columns": [*with_coin, *columns], "drift": [*v, 1.0]}
        inputs, f = {name: inputs[name] for name in self.newtons}, {}
        for name, e in self.newtons.items():
            own, shared = e.score(inputs[name])
            f[name] = L.m + own if e.constant is None else (L.m + own) + L.unit * shared
        gain = GAIN.get(self.loss, 1.0)
        experts = [cut(s, L.lo, L.hi) for s in [*scores, *(gain * a for a in f.values())]] + [self.base]
        return Said(scores, coin, f, inputs, experts + ([cut(coin, L.lo, L.hi)] if self.coin else []))

    def _input(self, score: float) -> float:
        if self.loss in (*MARGIN, "logistic"):
            return cut(score, -INPUT_CUT, INPUT_CUT)
        return cut(score, self.labels.lo, self.labels.hi) - self.labels.m

    # ---- after it ----

    def learn_newtons(self, said: Said, unit: float, lo: float, hi: float, y: float, c: float) -> None:
        """Step from the score of each expert; `unit` was that of the labels before, [lo, hi] is the hull of ranges."""
        L, c = self.labels, min(c, HEAVY)
        ratio = unit / L.unit
        for name, e in self.newtons.items():
            f, x = said.f[name], said.inputs[name]
            at = len(x) if e.constant is None else e.constant
            x = [a / L.unit for a in x[:at]] + [ratio * a for a in x[at:]]
            if self.loss in KINKED:
                e.steps += c
                e.mean_loss += (c / e.steps) * (value(self.loss, cut(f, lo, hi), y, self.tau) - e.mean_loss)
            f = cut(f, lo, hi) if self.loss in LOG_LINK else f
            kink = (f - y, L.unit, *sides(self.loss, self.tau)) if self.loss in PINBALL else ()
            e.learn(x, c, *newton_slope(L, f, y, e.mean_loss), kink)

    def learn_coin(self, score: float, y: float, c: float, *, teaches: bool) -> None:
        """Bet on the slope at the coin's score; a row that teaches only its label leaves its largest values."""
        if self.coin is None:
            return
        at = slope("hinge", score, y, self.tau) if self.loss == "hinge" else 0.0
        if teaches and self.loss != "hinge":
            at = newton_slope(self.labels, score, y, 1.0)[0]
        self.coin.learn(c * at if teaches else 0.0)

    def learn_columns(self, slots: Vector, v: Vector, t: int) -> None:
        if self.columns is not None:
            self.columns.learn(slots, v, t, [self.newtons["columns"]])

    # ---- experts that leave ----

    def drop(self, name: str, scales: int) -> None:
        """Drop an expert; of the coin, what the others know of it as well."""
        self.newtons.pop(name, None)
        if name == "columns":
            self.columns = None
        if name == "coin":
            for e in (e for n, e in self.newtons.items() if n != "drift" and self.coin_input):
                e.drop(scales)
            self.coin, self.coin_input = None, False

    def keep_scales(self, first: int, count: int, before: int) -> None:
        """Go on with the inputs of `count` scales from number `first` on."""
        for e in self.newtons.values():
            e.drop(first + count, before - first - count)
            e.drop(0, first)
