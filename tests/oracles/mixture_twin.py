"""The mixture of experts: Bayes' rule for the log loss and classes, AdaHedge and caution for other losses.

Scalars are Python floats and their functions those of the C library; sums run upwards from 0.
"""

from __future__ import annotations

import math

from oracles.cells_twin import upwards
from oracles.dropping_twin import Octaves, is_power
from oracles.losses_twin import MARGIN, cut, least, value

Floats = list[float]
SHARE, LEAST_CHANCE, LEAST_GAP, ONLY_ONE = 2.0**-10, 2.0**-900, 2.0**-30, 2.0**-20
CAUTION, SURE_GAP = 24.0, 4.0  # two classes: the odds of the majority without a lead; when a lead begins to count less
PRIORS = {"drift": 0.25, "offset": 0.25, "majority": 0.25}  # of experts other than scales; 1 for others


def prior(names: list[str], scales: tuple[float, ...]) -> Floats:
    """Return the weights at the start: more for scales near 0.2."""
    own = [2.0 / (1.0 + (math.log(h / 0.2) / 1.5) ** 2) for h in scales]
    return normal(own + [PRIORS.get(name, 1.0) for name in names[len(scales) :]])


def normal(w: Floats) -> Floats:
    """Return weights divided by their sum; equal ones if all are 0."""
    whole = upwards(w)
    return [a / whole if whole > 0.0 else 1.0 / len(w) for a in w]


def mixed(w: Floats, losses: Floats) -> float:
    """Return -ln sum w e^-l over the experts that have a weight."""
    own = [(a, b) for a, b in zip(w, losses, strict=True) if a > 0.0]
    low = min(b for _, b in own)
    return low - math.log(upwards(a * math.exp(low - b) for a, b in own))


def mean(w: Floats, experts: Floats) -> float:
    return float(upwards(a * e for a, e in zip(w, experts, strict=True)))


class Mixture:
    """The weights of the experts with these names, the scales first, and what they follow from."""

    def __init__(self, loss: str, tau: float, names: list[str], scales: tuple[float, ...]) -> None:
        self.loss, self.tau, self.names = loss, tau, names
        self.C = self.D = self.paid = self.lead = self.lead_gap = 0.0
        self.largest = 1.0  # weight of a row
        self._set(prior(names, scales), self._trust())
        self.totals, self.octaves = [0.0] * len(names), Octaves(names, len(scales))

    @property
    def facts(self) -> Floats:
        """The numbers that a model file has, in its order."""
        return [self.C, self.D, self.paid, self.largest, self.lead, self.lead_gap]

    def awake(self) -> Floats:
        """Return the weights of all predictions but progressive ones: drift is left out."""
        whole = upwards(a for a, name in zip(self.w, self.names, strict=True) if name != "drift")
        if "drift" not in self.names:
            return self.w
        return [0.0 if name == "drift" else a / whole for a, name in zip(self.w, self.names, strict=True)]

    def keep(self, kept: list[int], scales: int) -> None:
        """Go on with these experts."""
        self.names, self.totals = [self.names[j] for j in kept], [self.totals[j] for j in kept]
        self.w = normal([self.w[j] for j in kept])
        self.octaves.keep(kept, scales)

    # ---- log loss and classes: Bayes' rule ----

    def admit(self, c: float) -> None:
        """Lower the rate where a row weighs more than all before it: none may count more than 1."""
        if c > self.largest:
            self.w = normal([a ** (self.largest / c) for a in self.w])
            self.largest = c

    def learn_chances(self, losses: Floats, chances: Floats, c: float, t: int) -> float:
        """Return the loss of the mixture in row t, and learn from the chances that the experts gave the label."""
        self.admit(c)
        w, n = self.w, len(self.w)
        total = mean(w, chances)
        is_direct = total >= LEAST_CHANCE
        loss = -math.log(total) if is_direct else mixed(w, losses)
        without = []
        for j in range(n):
            rest = (total - w[j] * chances[j]) / (1.0 - w[j]) if is_direct and 1.0 - w[j] >= ONLY_ONE else 0.0
            without.append(-math.log(rest) if rest > LEAST_CHANCE else _least_other(losses, j))
        self.totals = [a + c * b for a, b in zip(self.totals, losses, strict=True)]
        self.octaves.count(losses, loss, without, c, t)
        rate, low = c / self.largest, min(losses)
        powers = chances if is_direct and rate == 1.0 else [math.exp(rate * (low - b)) for b in losses]
        new = [a * b for a, b in zip(w, powers, strict=True)]
        whole, a = upwards(new), min(SHARE, 1.0 / (t + 1.0))
        self.w = [(1.0 - a) * (b / whole) + a / n for b in new]
        return loss

    # ---- other losses: AdaHedge ----

    def learn_scores(self, experts: Floats, p: float, y: float, known: float, c: float, t: int) -> float:
        """Return the loss of the prediction p in row t, and learn; `known` is the label within the known range."""
        self.largest, at = max(self.largest, c), least(self.loss, y)
        values, own = [self._value(e, y) for e in experts], self._value(p, y)
        losses, without = [a - at for a in values], []
        for j, w in enumerate(self.w):
            rest = (p - w * experts[j]) / (1.0 - w) if 1.0 - w >= ONLY_ONE else math.nan
            without.append(self._value(rest, y) - at if rest == rest else _least_other(losses, j))
        self.totals = [a + c * b for a, b in zip(self.totals, values, strict=True)]
        self.octaves.count(losses, own - at, without, c, t)
        if t > 1:
            part, within = self._trust(), self.within()
            q = mean(within, experts) if self.loss in MARGIN else p
            within = self.hedge(within, experts, q, y, known, c, t)
            if self.loss in MARGIN:
                self._follow_lead(part, c * (values[self.names.index("majority")] - self._value(q, y)))
            self._set(within, self._trust())
        if t >= 16 and is_power(t):
            self.paid = 0.0
        return own

    def _value(self, s: float, y: float) -> float:
        return value(self.loss, s, y, self.tau)

    def hedge(self, w: Floats, experts: Floats, p: float, y: float, known: float, c: float, t: int) -> Floats:
        n = len(w)
        losses, ln = [c * self._value(e, known) for e in experts], math.log(n)
        own, low = c * self._value(p, known), min(losses)
        self.paid += c * abs(self._value(p, y))
        if self.D == 0.0:
            if own - low > LEAST_GAP * self.paid:
                self.C = self.D = own - low
            return w
        D, powers = self.D, [((low - b) / self.D) * ln for b in losses]
        new = [a * math.exp(b) for a, b in zip(w, powers, strict=True)]
        whole = upwards(new)
        self.C = max(self.C + (own - (low - math.log(whole) * D / ln)), 0.0)
        new = [a / whole for a in new]
        if self.C > D:  # from the weights before the row: those after it, at too large a rate, may be 0
            ratio = D / self.C
            new = normal([a**ratio * math.exp(ratio * b) for a, b in zip(w, powers, strict=True)])
            self.D = self.C
        a = min(SHARE, 1.0 / (t + 1.0))
        return [(1.0 - a) * b + a / n for b in new]

    # ---- two classes: the mixture is trusted as far as it has lost less than the majority ----

    def _rate(self) -> float:
        return 1.0 / max(1.0, self.lead_gap / SURE_GAP)

    def _trust(self) -> float:
        return 1.0 / (1.0 + CAUTION * math.exp(-self._rate() * self.lead)) if self.loss in MARGIN else 1.0

    def within(self) -> Floats:
        """Return the weights of the mixture without the part of the majority above it."""
        if self.loss not in MARGIN:
            return self.w
        part, at = self._trust(), self.names.index("majority")
        return normal([max(a - (1.0 - part) * (j == at), 2.0**-1000) for j, a in enumerate(self.w)])

    def _set(self, w: Floats, part: float) -> None:
        self.w = [part * a for a in w]
        if self.loss in MARGIN:
            self.w[self.names.index("majority")] += 1.0 - part

    def _follow_lead(self, part: float, gain: float) -> None:
        rate = self._rate()
        x = cut(rate * gain, -32.0, 32.0)
        self.lead_gap += max((math.log((1.0 - part) + part * math.exp(x)) - part * x) / rate, 0.0)
        self.lead = max(self.lead + gain, 0.0)


def _least_other(losses: Floats, j: int) -> float:
    return min(losses[:j] + losses[j + 1 :])
