"""Matrices as arrays: each operation against the matrix written out."""

import math

import numpy as np
import pytest

from ftprl import psd
from ftprl.errors import InvalidInput

N = 4
SHAPES = ("scalar", "diagonal", "full")


def make(shape: str, rng: np.random.Generator, rank: int = N) -> np.ndarray:
    B = rng.normal(size=(N, rank))
    return {"scalar": np.array(1.7), "diagonal": rng.uniform(0.1, 3, size=N), "full": B @ B.T}[shape]


@pytest.mark.parametrize("shape", SHAPES)
def test_against_the_matrix_written_out(shape: str, rng: np.random.Generator) -> None:
    Q, x = make(shape, rng), rng.normal(size=N)
    M = psd.dense(Q, N)
    assert M.shape == (N, N)
    np.testing.assert_allclose(psd.apply(Q, x), M @ x)
    assert psd.quad(Q, x) == pytest.approx(x @ M @ x)
    assert psd.between(Q, x, x[::-1]) == pytest.approx(x @ M @ x[::-1])
    np.testing.assert_allclose(psd.diagonal(Q, N), np.diagonal(M))
    assert psd.largest(Q) == pytest.approx(np.linalg.eigvalsh(M)[-1])
    np.testing.assert_allclose(psd.solve(Q, x), np.linalg.solve(M, x))
    assert psd.dual_quad(Q, x) == pytest.approx(x @ np.linalg.solve(M, x))


@pytest.mark.parametrize("left", SHAPES)
@pytest.mark.parametrize("right", SHAPES)
def test_add(left: str, right: str, rng: np.random.Generator) -> None:
    P, Q = make(left, rng), make(right, rng)
    kept = P.copy(), Q.copy()
    total = psd.add(P, Q)
    assert total.ndim == max(P.ndim, Q.ndim)
    np.testing.assert_allclose(psd.dense(total, N), psd.dense(P, N) + psd.dense(Q, N))
    np.testing.assert_array_equal(P, kept[0])
    np.testing.assert_array_equal(Q, kept[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("diagonal", [True, False])
def test_congruence(shape: str, diagonal: bool, rng: np.random.Generator) -> None:
    Q = make(shape, rng)
    B = rng.normal(size=N) if diagonal else rng.normal(size=(N, N))
    out = psd.congruence(Q, B)
    full = np.diag(B) if diagonal else B
    np.testing.assert_allclose(psd.dense(out, N), full.T @ psd.dense(Q, N) @ full, atol=1e-12)
    if out.ndim == 2:
        np.testing.assert_array_equal(out, out.T)
    assert out.ndim == (max(Q.ndim, 1) if diagonal else 2)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_singular(rank: int, rng: np.random.Generator) -> None:
    Q = make("full", rng, rank)
    g = rng.normal(size=N)
    np.testing.assert_allclose(psd.solve(Q, g), np.linalg.pinv(Q, hermitian=True) @ g, atol=1e-7)
    inside = Q @ g
    assert psd.dual_quad(Q, inside) == pytest.approx(g @ Q @ g, rel=1e-7, abs=1e-12)
    assert psd.dual_quad(Q, g) == math.inf
    assert psd.dual_quad(Q, np.zeros(N)) == 0.0


def test_singular_diagonal() -> None:
    Q = np.array([4.0, 0.0])
    np.testing.assert_array_equal(psd.solve(Q, np.array([2.0, 5.0])), [0.5, 0.0])
    assert psd.dual_quad(Q, np.array([2.0, 0.0])) == 1.0
    assert psd.dual_quad(Q, np.array([2.0, 5e-300])) == math.inf
    assert psd.dual_quad(psd.zero(), np.zeros(2)) == 0.0
    assert psd.dual_quad(psd.zero(), np.ones(2)) == math.inf


def test_eigh_cleans_what_is_rounding(rng: np.random.Generator) -> None:
    Q = make("full", rng, 2)
    w, V = psd.eigh(Q)
    assert np.count_nonzero(w) == 2
    np.testing.assert_allclose((V * w) @ V.T, Q, atol=1e-12)


def test_root(rng: np.random.Generator) -> None:
    for rank in (1, 4):
        Q = make("full", rng, rank)
        R = psd.root(Q)
        np.testing.assert_array_equal(R, R.T)
        np.testing.assert_allclose(R @ R, Q, atol=1e-12)
        assert np.linalg.eigvalsh(R)[0] >= -1e-7


def test_largest_of_a_negative_rounding_is_zero() -> None:
    assert psd.largest(np.array([[-1e-20, 0.0], [0.0, -1e-20]])) == 0.0


def test_as_psd_takes_what_is_psd(rng: np.random.Generator) -> None:
    assert psd.as_psd(2, dim=3).shape == ()
    np.testing.assert_array_equal(psd.as_psd([1, 0, 2], dim=3), [1.0, 0.0, 2.0])
    Q = make("full", rng, 1)
    Q[0, 1] *= 1 + 1e-14
    out = psd.as_psd(Q, dim=N)
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(out, Q, rtol=1e-12)


@pytest.mark.parametrize(
    ("Q", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "-1"),
        ([[1.0, 0.5], [0.0, 1.0]], "0.5"),
        ([1.0, -1e-300], "-1e-300"),
        (-2.0, "-2"),
        ([1.0, 2.0, 3.0], "(3,)"),
        (np.ones((2, 3)), "(2, 3)"),
        (np.ones((2, 2, 2)), "(2, 2, 2)"),
        ([1.0, math.nan], "nan"),
        ([[math.inf, 0], [0, 1]], "inf"),
        ("no", "'no'"),
    ],
)
def test_as_psd_refuses(Q: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"^Q needs ") as caught:
        psd.as_psd(Q, dim=2)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("w", [0.0, 2.0, [1.0, 5e-324], [0.0, 1.0], [3.0, 0.0]])
def test_positive(w: float | list[float]) -> None:
    assert psd.positive(np.array(w)) is bool(np.all(np.array(w) > 0))
