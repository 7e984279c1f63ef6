"""The obvious twin of rounds of several rows with the log loss, a number at a time: docs/rounds.md, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ftprl.data import Batch
from ftprl.linear.spec import Spec
from ftprl.receipt.expert_replay import Additions
from ftprl.receipt.mixture_replay import Mixing
from oracles.linear_twin import CUT


@dataclass
class Coordinate:
    """What is learned of a feature: z, R and S for each scale, its unit and how often it was met."""

    scales: int
    z: list[float] = field(default_factory=list)
    R: list[float] = field(default_factory=list)
    S: list[float] = field(default_factory=list)
    unit: float = 0.0
    count: float = 0.0

    def __post_init__(self) -> None:
        self.z, self.R, self.S = ([0.0] * self.scales for _ in range(3))


class ReferenceRounds:
    """Learns rows in rounds of `round_rows`, which grow by `growth` (0: none do), in blocks, with hot coordinates."""

    def __init__(self, spec: Spec, *, round_rows: int, growth: int = 64, block: int = 4096, has_hot: bool = True):
        self.spec, self.round_rows, self.growth, self.block, self.has_hot = spec, round_rows, growth, block, has_hot
        self.kind = np.float64 if spec.float64 else np.float32
        self.K = len(spec.scales)
        self.loss = spec.scalar_loss()
        self.cells: dict[int, Coordinate] = {}
        self.base = Coordinate(self.K, unit=1.0)
        self.mixing = Mixing(spec, Additions(None, None)) if self.K > 1 else None
        self.hot: set[int] = set()
        self.t, self.total_loss, self.weight = 0, 0.0, 0.0
        self.sums = [[0.0] * self.K for _ in range(3)]
        self.scores: list[float] = []
        self.losses: list[float] = []

    def fl(self, value: float) -> float:
        """Rounded to what a cell holds."""
        return float(self.kind(value))

    # ---- one coordinate ----

    def cell(self, slot: int) -> Coordinate:
        return self.cells.setdefault(slot, Coordinate(self.K))

    def raise_unit(self, own: Coordinate, n: int, largest: float, squares: float) -> None:
        if self.K == 1:
            own.unit = max(own.unit, self.fl(largest))
            return
        own.count = self.fl(own.count + n)
        s = own.unit
        if largest > s:
            mean = s * s + (squares - n * (s * s)) / own.count
            own.unit = self.fl(max(s, math.sqrt(max(0.0, mean)), largest / 16.0))

    def strength(self, own: Coordinate, k: int, R: float, *, free: bool) -> float:
        """h (Q + l2 unit²)"""
        l2 = 0.0 if free else self.spec.l2
        return own.unit * (self.spec.beta * own.unit + R) + self.spec.scales[k] * l2 * (own.unit * own.unit)

    def play(self, own: Coordinate, k: int, *, free: bool = False, rounded: bool = False) -> float:
        strength = self.strength(own, k, own.R[k], free=free)
        l1 = 0.0 if free else self.spec.l1
        pull = max(abs(own.z[k]) - l1 * own.unit, 0.0)
        x = math.copysign(pull, -own.z[k]) * self.spec.scales[k] / strength if strength > 0 else 0.0
        if rounded:
            most = float(np.finfo(self.kind).max)
            x = self.fl(min(max(x, -most), most))
        return x if free else min(max(x, self.spec.lower), self.spec.upper)

    def step(self, own: Coordinate, k: int, g: float, x: float, *, free: bool = False) -> list[float]:
        """One step; what it adds to the three sums of a receipt."""
        kind: Any = np.float64 if free else self.kind
        g = min(max(g, -CUT[kind]), CUT[kind])
        R = max(float(kind(math.sqrt(own.R[k] * own.R[k] + g * g))), own.R[k])
        sigma = own.unit * (R - own.R[k]) * (1.0 / self.spec.scales[k])
        most = float(np.finfo(kind).max)
        own.z[k] = float(kind(min(max(own.z[k] + (g - sigma * x), -most), most)))
        own.R[k], own.S[k] = R, own.S[k] + g
        strength = self.strength(own, k, R, free=free)
        return [g * x, sigma * x * x, g * (g * self.spec.scales[k] / strength) if strength > 0 else 0.0]

    # ---- rows ----

    def learn(self, batch: Batch) -> None:
        """Learn all rows; the last round ends with them."""
        waiting: list[tuple[list[tuple[int, float]], float, float]] = []
        rows: list[Any] = []
        learned = 0
        for r in range(len(batch)):
            entries = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
            pairs = list(
                zip(batch.indices[entries].tolist(), batch.values[entries].astype(float).tolist(), strict=True)
            )
            rows.append((pairs, float(batch.y[r]), float(batch.weight[r])))
        size = self.size()
        for row in rows:
            waiting.append(row)
            learned += self.learns(row)
            if (self.t + learned) % size == 0 and self.learns(row):
                self.round(waiting)
                waiting, learned, size = [], 0, self.size()
        behind = len(waiting)
        while behind and not self.learns(waiting[behind - 1]):
            behind -= 1
        if behind:
            self.round(waiting[:behind])
        for row in waiting[behind:]:
            self.single(row)

    def size(self) -> int:
        most = self.round_rows if self.growth == 0 else min(self.round_rows, self.t // self.growth)
        return 1 if most < 2 else 1 << (most.bit_length() - 1)

    @staticmethod
    def learns(row: Any) -> bool:
        return row[1] == row[1] and row[2] > 0.0

    def round(self, rows: list[Any]) -> None:
        learned = [row for row in rows if self.learns(row)]
        if len(learned) == 1:
            for row in rows:
                self.single(row)
            self.hot = {slot for slot, _ in learned[0][0]}
            return
        blocks = [learned[at : at + self.block] for at in range(0, len(learned), self.block)]
        met: dict[int, list[float]] = {}
        for block in blocks:
            squares: dict[int, float] = {}
            for pairs, _, _ in block:
                for slot, v in pairs:
                    own = met.setdefault(slot, [0, 0.0, 0.0])
                    own[0], own[1] = own[0] + 1, max(own[1], abs(v))
                    squares[slot] = squares.get(slot, 0.0) + v * v
            for slot, value in squares.items():
                met[slot][2] += value
        hot = self.hot if self.has_hot else set()
        cold = [slot for slot in met if slot not in hot]
        for slot in cold:
            n, largest, squares_of = met[slot]
            self.raise_unit(self.cell(slot), int(n), largest, squares_of)
        x = {
            slot: [self.play(self.cell(slot), k, rounded=True) for k in range(self.K)]
            for slot in {slot for pairs, _, _ in rows for slot, _ in pairs} - hot
        }
        g = {slot: [0.0] * self.K for slot in cold}
        part = {slot: [0.0] * self.K for slot in cold}
        count = 0
        for row in rows:
            slopes = self.chain(row, x, hot)
            if slopes is None:
                continue
            for slot, v in row[0]:
                if slot in part:
                    most = CUT[self.kind]
                    for k in range(self.K):
                        part[slot][k] += min(max(slopes[k] * v, -most), most)
            count += 1
            if count % self.block == 0 or count == len(learned):
                for slot in cold:
                    g[slot] = [a + b for a, b in zip(g[slot], part[slot], strict=True)]
                    part[slot] = [0.0] * self.K
        self.end_round(cold, x, g)
        self.hot = {slot for slot, (n, _, _) in met.items() if 2 * n >= len(learned)}

    def end_round(self, cold: list[int], x: dict[int, list[float]], g: dict[int, list[float]]) -> None:
        """One step for each cold coordinate, and the sums of the receipt in the order of the shards."""
        shards = [[[0.0] * self.K for _ in range(3)] for _ in range(64)]
        for slot in cold:
            to = shards[(slot * 0x9E3779B1 % 2**32) >> 26]
            for k in range(self.K):
                for j, value in enumerate(self.step(self.cell(slot), k, g[slot][k], x[slot][k])):
                    to[j][k] += value
        for j in range(3):
            for k in range(self.K):
                whole = 0.0
                for shard in shards:
                    whole += shard[j][k]
                self.sums[j][k] += whole

    def chain(self, row: Any, x: dict[int, list[float]], hot: set[int]) -> list[float] | None:
        """One row of a round; its slopes if it is learned."""
        pairs, y, weight = row
        lanes = [[0.0] * self.K for _ in range(4)]
        for p, (slot, v) in enumerate(pairs):
            for k in range(self.K):
                lanes[p % 4][k] += (0.0 if slot in hot else x[slot][k]) * v
        scores = [(a + b) + (c + d) for a, b, c, d in zip(*lanes, strict=True)]
        warm = [(slot, v) for slot, v in pairs if slot in hot]
        plays = []
        for slot, v in warm:
            if self.learns(row):
                self.raise_unit(self.cell(slot), 1, abs(v), v * v)
            plays.append([self.play(self.cell(slot), k) for k in range(self.K)])
            scores = [score + own * v for score, own in zip(scores, plays[-1], strict=True)]
        slopes = self.mix(scores, y, weight, self.learns(row))
        if slopes is None:
            return None
        for k in range(self.K):
            own = [0.0, 0.0, 0.0]
            for (slot, v), played in zip(warm, plays, strict=True):
                own = [a + b for a, b in zip(own, self.step(self.cell(slot), k, slopes[k] * v, played[k]), strict=True)]
            self.learn_base(k, slopes[k], own)
        return slopes

    def single(self, row: Any) -> None:
        """A row by itself, as without rounds."""
        pairs, y, weight = row
        if self.learns(row):
            for slot, v in pairs:
                self.raise_unit(self.cell(slot), 1, abs(v), v * v)
        plays = [[self.play(self.cell(slot), k) for k in range(self.K)] for slot, _ in pairs]
        products = [[own * v for own in played] for played, (_, v) in zip(plays, pairs, strict=True)]
        scores = [_total([product[k] for product in products]) for k in range(self.K)]
        slopes = self.mix(scores, y, weight, self.learns(row))
        if slopes is None:
            return
        for k in range(self.K):
            terms = [
                self.step(self.cell(slot), k, slopes[k] * v, played[k])
                for (slot, v), played in zip(pairs, plays, strict=True)
            ]
            self.learn_base(k, slopes[k], [_total([term[j] for term in terms]) for j in range(3)])

    def learn_base(self, k: int, slope: float, sums: list[float]) -> None:
        """The intercept's step, behind the others of its row."""
        own = [0.0, 0.0, 0.0]
        if self.spec.intercept:
            own = self.step(self.base, k, slope, self.played_base[k], free=True)
        for j in range(3):
            self.sums[j][k] += sums[j] + own[j]

    def mix(self, scores: list[float], y: float, weight: float, learns: bool) -> list[float] | None:
        """From the scores without the intercept to the prediction; the slopes of a row that is learned."""
        self.played_base = [self.play(self.base, k, free=True) if self.spec.intercept else 0.0 for k in range(self.K)]
        scores = [a + b for a, b in zip(scores, self.played_base, strict=True)]
        self.t += learns
        if self.mixing is None:
            score, value = scores[0], self.loss.value(scores[0], y) if y == y else y
        else:
            score, value = self.mixing.learn(scores, y, weight, self.t) if learns else self.mixing.predict(scores, y)
        self.scores.append(score)
        self.losses.append(value)
        if not learns:
            return None
        self.total_loss, self.weight = self.total_loss + weight * value, self.weight + weight
        return [weight * self.loss.slope(score, y) for score in scores]


def _total(terms: list[float]) -> float:
    lanes = [0.0] * 4
    for p, term in enumerate(terms):
        lanes[p % 4] += term
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
