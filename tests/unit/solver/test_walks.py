"""The range of each coordinate of a polyhedron by walks between corners: proved and exact."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from ftprl.sets import Polytope
from ftprl.solver import axis_bounds, linear, simplex

Rng = np.random.Generator
Made = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]


def _random(rng: Rng, n: int) -> Made:
    m = int(rng.integers(1, 4 * n))
    C = np.vstack((rng.normal(size=(m, n)), np.eye(n), -np.eye(n)))
    return C, np.concatenate((rng.uniform(0.3, 1.5, m), rng.choice([1.0, 2.0], 2 * n))), None, None


def _thin(rng: Rng, n: int) -> Made:
    """A set with sides from 1e-9 to 1e3."""
    C, d, _, _ = _random(rng, n)
    return C / 10.0 ** rng.uniform(-9, 3, n), d, None, None


def _needle(rng: Rng, n: int) -> Made:
    """A set that is thin along rotated directions, over four decades."""
    C, d, _, _ = _random(rng, n)
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return C @ (turn / 10.0 ** rng.uniform(-2, 2, n)[:, None]), d, None, None


def _degenerate(rng: Rng, n: int) -> Made:
    """A set in which many more than n rows meet in every corner, some of them repeated."""
    V = rng.integers(-1, 2, size=(3 * n, n)).astype(float)
    V = V[np.abs(V).sum(axis=1) > 0]
    d = np.concatenate((np.abs(V).sum(axis=1), 2 * np.abs(V[:5]).sum(axis=1), np.ones(2 * n)))
    return np.vstack((V, 2 * V[:5], np.eye(n), -np.eye(n))), d, None, None


def _hypersimplex(rng: Rng, n: int) -> Made:
    """The set 0 <= x <= 1 with a fixed sum, in which every corner is degenerate."""
    C = np.vstack((np.eye(n), -np.eye(n)))
    return C, np.repeat([1.0, 0.0], n), np.ones((1, n)), np.array([float(n // 2)])


def _flat(rng: Rng, n: int) -> Made:
    C, d, _, _ = _random(rng, n)
    return C, d, rng.normal(size=(2, n)), np.zeros(2)


KINDS: dict[str, Callable[[Rng, int], Made]] = {
    "random": _random,
    "thin": _thin,
    "needle": _needle,
    "degenerate": _degenerate,
    "hypersimplex": _hypersimplex,
    "flat": _flat,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_walks_agree_with_a_program_for_each_end(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends by walks equal HiGHS's up to the multipliers' gaps, or lie inside."""
    rng = np.random.default_rng(seed)
    P = Polytope(*KINDS[kind](rng, int(rng.integers(10, 22))))
    conic = P.conic()
    low, high = axis_bounds(conic)
    monkeypatch.setattr(linear, "WALK_DIM", 1000)
    lower, upper = axis_bounds(conic)
    wide = upper - lower
    loose = 1e-2 if kind == "needle" else 1e-9  # HiGHS's tolerance, where corners are sharp
    np.testing.assert_allclose((low - lower) / wide, 0.0, atol=loose)
    np.testing.assert_allclose((high - upper) / wide, 0.0, atol=loose)
    assert np.all(low >= lower - 1e-9 * wide)  # what is proved is never looser
    assert np.all(high <= upper + 1e-9 * wide)


def _exact_solution(rows: np.ndarray, right: np.ndarray) -> list[Fraction]:
    """Return the solution of rows·x = right in rational numbers."""
    n = len(right)
    M = [[Fraction(v) for v in (*row, b)] for row, b in zip(rows.tolist(), right.tolist(), strict=True)]
    for c in range(n):
        p = max(range(c, n), key=lambda q: abs(M[q][c]))
        M[c], M[p] = M[p], M[c]
        M[c] = [v / M[c][c] for v in M[c]]
        for q in range(n):
            if q != c and M[q][c]:
                f = M[q][c]
                M[q] = [a - f * b for a, b in zip(M[q], M[c], strict=True)]
    return [row[n] for row in M]


@pytest.mark.parametrize("seed", range(4))
def test_ends_of_a_needle_are_proved(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reported range contains the exact point where the rows of an end meet, and is hardly wider."""
    arrived: dict[tuple[int, float], np.ndarray] = {}
    right = simplex.Corners.solve_end

    def kept(self: simplex.Corners, goal: tuple[int, float], on: np.ndarray) -> object:
        arrived[goal] = on.copy()
        return right(self, goal, on)

    monkeypatch.setattr(simplex.Corners, "solve_end", kept)
    conic = Polytope(*_needle(np.random.default_rng(seed), 10)).conic()
    low, high = axis_bounds(conic)
    G, h = conic.rows
    for (i, sign), on in arrived.items():
        exact, bound = _exact_solution(G[on], h[on])[i], low[i] if sign > 0 else high[i]
        over = float((exact - Fraction(float(bound))) * Fraction(sign))
        assert over + 1e-15 * abs(bound) >= 0.0
        assert over <= 1e-8 * (high[i] - low[i])
    assert len(arrived) > 10


def test_an_unbounded_side_is_infinite() -> None:
    """A walk that meets no row finds no end; HiGHS finds none either, and other ends are still found."""
    n = 12
    C = np.vstack((-np.eye(n), np.eye(n)[1:]))
    low, high = axis_bounds(Polytope(C, np.ones(2 * n - 1)).conic())
    np.testing.assert_allclose(low, -1.0, atol=1e-12)
    assert np.isinf(high[0])
    np.testing.assert_allclose(high[1:], 1.0, atol=1e-12)


def test_a_walk_that_is_given_up_goes_to_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one pivot nearly all walks fail, and with a new inverse at every pivot none: the ends are equal."""
    conic = Polytope(*_random(np.random.default_rng(5), 12)).conic()
    low, high = axis_bounds(conic)
    for name, value in (("_PIVOTS", 0), ("_FRESH", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(simplex, name, value)
            lower, upper = axis_bounds(conic)
        np.testing.assert_allclose(low, lower, atol=1e-9)
        np.testing.assert_allclose(high, upper, atol=1e-9)
