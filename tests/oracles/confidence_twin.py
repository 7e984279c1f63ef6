"""Confidence sequences row by row, as the formulas are written: slow, and independent of the core."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

BETS = 0.8 * 0.5 ** np.arange(24)
PRIOR = 1.0 / (1.0 + np.maximum(np.arange(24) - 8, 0)) ** 2
PRIOR = PRIOR / PRIOR.sum()


def log_wealth(s: float, v: float, doublings: int = 0) -> float:
    """Return ln of the mixture over bets of exp(bet s - psi(bet) v), with deviations in units of 2^doublings.

    The bets are fixed before the first row; bets that would be above 0.8 now are dropped.
    """
    terms = []
    for bet, prior in zip(BETS, PRIOR, strict=True):
        now = bet * 2.0**doublings
        if now <= BETS[0]:
            terms.append(math.log(prior) + now * s - (-math.log1p(-now) - now) * v)
    return float(np.logaddexp.reduce(terms))


def largest_deviation(v: float, threshold: float, doublings: int = 0) -> float:
    """Return the deviation at which the mixture reaches e^threshold."""
    high = 1.0
    while log_wealth(high, v, doublings) < threshold:
        high *= 2.0
    return float(brentq(lambda s: log_wealth(s, v, doublings) - threshold, 0.0, high, xtol=1e-12))


class SequenceTwin:
    """One confidence sequence that stores all rows, each with its guess."""

    def __init__(self, bound: float, is_signed: bool, grows: bool, error_probability: float) -> None:
        self.bound, self.is_signed, self.grows, self.error = bound, is_signed, grows, error_probability
        self.rows: list[tuple[float, float, float]] = []  # of this epoch: number, weight, guess
        self.heaviest = self.guess = 0.0
        self.doublings = 0
        self.epoch = self.cuts = self.cut_rows = 0
        self.before = np.zeros(4)  # weight, total, lower, upper of the epochs before

    def add(self, x: float, weight: float) -> None:
        if weight > self.heaviest:
            more = math.ceil(math.log2(weight / self.heaviest)) if self.rows else 99
            if self.doublings + more <= 8:
                self.doublings, self.heaviest = self.doublings + more, self.heaviest * 2.0**more
            else:
                self._end_epoch()
                self.heaviest, self.rows = weight, []
        low = -self.bound if self.is_signed else 0.0
        kept = min(max(x, low), self.bound)
        self.rows.append((kept, weight, self.guess))
        if kept != x:
            self.cuts, self.cut_rows = self.cuts + 1, self.cut_rows + 1
        n = len(self.rows)
        if n % 256 == 0 or (n < 256 and n.bit_count() == 1):
            numbers, weights, _ = np.array(self.rows).T
            reach = (0.25 if self.is_signed else 1.0) * self.bound
            mean = float((numbers * weights).sum() / weights.sum())
            self.guess = min(max(mean, -reach if self.is_signed else 0.0), reach)
        if self.grows and self.cuts > 2 + n / 1000:
            self._end_epoch()
            self.rows, self.bound = [], 4 * self.bound

    def _end_epoch(self) -> None:
        if self.rows:
            self.before = self.before + self._now()
            self.epoch, self.cuts, self.doublings = self.epoch + 1, 0, 0

    def _now(self) -> np.ndarray:
        numbers, weights, guesses = np.array(self.rows).T
        c = self.bound * (1.25 if self.is_signed else 1.0) * self.heaviest
        v = float((((numbers - guesses) * weights / c) ** 2).sum())
        part = 0.75 if self.epoch == 0 else 0.25 * 0.5**self.epoch
        far = c * largest_deviation(v, math.log(2.0 / (self.error * part)), self.doublings)
        total, weight = float((numbers * weights).sum()), float(weights.sum())
        low = (-self.bound if self.is_signed else 0.0) * weight
        return np.array([weight, total, max(total - far, low), min(total + far, self.bound * weight)])

    def interval(self) -> tuple[float, float, float]:
        """Return the mean and both ends."""
        weight, total, lower, upper = self.before + (self._now() if self.rows else 0.0)
        return total / weight, lower / weight, upper / weight
