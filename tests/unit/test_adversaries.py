"""The instances: seeds, restarts, and their documented properties."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from ftprl import FTPRL, adversaries, play
from ftprl.adversaries import Instance
from ftprl.errors import InvalidInput
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box, Ellipsoid, Simplex

CUBE = Box(-1, 1, dim=3)
SEEDED: dict[str, Callable[[int], Instance]] = {
    "heavy tail": lambda seed: adversaries.heavy_tail(5, 40, seed=seed),
    "poor ellipsoid": lambda seed: adversaries.poor_ellipsoid(3, 40, seed=seed),
    "gaussian": lambda seed: adversaries.gaussian(CUBE, 40, seed=seed, decades=2, density=0.7),
}
UNSEEDED: dict[str, Callable[[int], Instance]] = {
    "bad class": lambda seed: adversaries.bad_class(27),
    "signs": lambda seed: adversaries.sign_adversary(CUBE, 40),
}


def stream(instance: Instance) -> np.ndarray:
    x = instance.start + 0.01
    return np.array([np.append(g, value) for value, g in (f(x) for f in instance.losses())])


@pytest.mark.parametrize("make", [*SEEDED.values(), *UNSEEDED.values()], ids=[*SEEDED, *UNSEEDED])
def test_streams_restart_and_repeat(make: Callable[[int], Instance]) -> None:
    instance = make(3)
    first = stream(instance)
    half = list(itertools.islice(instance.losses(), 5))
    assert len(half) == 5
    np.testing.assert_array_equal(stream(instance), first)
    np.testing.assert_array_equal(stream(make(3)), first)
    assert len(first) == instance.rounds
    assert instance.feasible.contains(instance.start)
    assert np.isfinite(first).all()


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
def test_seeds_differ(make: Callable[[int], Instance]) -> None:
    assert np.any(stream(make(0)) != stream(make(1)))


@pytest.mark.parametrize("make", [*SEEDED.values(), *UNSEEDED.values()], ids=[*SEEDED, *UNSEEDED])
def test_losses_are_convex_with_subgradients(make: Callable[[int], Instance], rng: np.random.Generator) -> None:
    instance = make(0)
    F = instance.feasible
    for f in itertools.islice(instance.losses(), 0, None, 7):
        x, y = (F.start() + 0.5 * (F.vertex(g) - F.start()) for g in rng.normal(size=(2, F.dim)))
        (fx, gx), (fy, _) = f(x), f(y)
        assert fy >= fx + gx @ (y - x) - 1e-12


def test_heavy_tail_frequencies() -> None:
    rows = np.array(list(adversaries.heavy_tail_rows(4, 4000, alpha=1.0, drift=0.5, seed=1)))
    assert set(np.unique(rows)) == {-1.0, 0.0, 1.0}
    np.testing.assert_allclose((rows != 0).mean(axis=0), 1 / np.arange(1, 5), atol=0.03)
    lean = rows.sum(axis=0) / np.abs(rows).sum(axis=0)
    np.testing.assert_allclose(np.abs(lean), 0.5, atol=0.08)


def test_bad_class_separates() -> None:
    instance = adversaries.bad_class(1000)
    assert instance.feasible.dim == 11
    assert instance.rounds == 1100
    regret = {}
    for scheme in (Diagonal(), CoordinateConstant()):
        game = play(FTPRL(instance.feasible, scheme, start=instance.start), instance.losses())
        regret[type(scheme)] = game.certificate(best_loss=-10 * 10 / 2).true_regret
    assert regret[Diagonal] == pytest.approx(20.6, abs=0.1)
    assert regret[CoordinateConstant] == pytest.approx(76.9, abs=0.1)


def test_poor_ellipsoid() -> None:
    instance = adversaries.poor_ellipsoid(4, 20, condition=50.0)
    F = instance.feasible
    assert isinstance(F, Ellipsoid)
    assert np.linalg.cond(F.A) == pytest.approx(50.0)
    hats = stream(instance)[:, :4] @ np.linalg.inv(F.A)
    np.testing.assert_allclose(np.linalg.norm(hats, axis=1), 1.0)


def test_gaussian_density_and_scales() -> None:
    plain = stream(adversaries.gaussian(CUBE, 2000, density=0.25))[:, :3]
    np.testing.assert_allclose((plain != 0).mean(axis=0), 0.25, atol=0.04)
    np.testing.assert_allclose(plain[plain != 0].std(), 1.0, atol=0.1)
    sizes = np.abs(stream(adversaries.gaussian(Box(-1, 1, dim=50), 50, decades=3))[:, :50]).mean(axis=0)
    assert sizes.max() / sizes.min() > 1e3


def test_sign_adversary_pushes_back() -> None:
    F = Simplex(3)
    f = next(iter(adversaries.sign_adversary(F, 5).losses()))
    value, g = f(np.array([0.5, 0.5, 0.0]))
    np.testing.assert_array_equal(g, [1.0, 1.0, -1.0])
    assert value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: adversaries.heavy_tail(0, 5), "got 0;"),
        (lambda: adversaries.heavy_tail(5, 0), "got 0;"),
        (lambda: adversaries.heavy_tail(5, 2.5), "got 2.5;"),  # type: ignore[arg-type]
        (lambda: adversaries.heavy_tail(5, 5, alpha=0), "got 0;"),
        (lambda: adversaries.heavy_tail(5, 5, alpha=float("nan")), "got nan;"),
        (lambda: adversaries.heavy_tail(5, 5, drift=1.5), "got 1.5;"),
        (lambda: adversaries.heavy_tail(5, 5, seed=-1), "-1"),
        (lambda: adversaries.bad_class(0), "got 0;"),
        (lambda: adversaries.poor_ellipsoid(3, 5, condition=0.5), "got 0.5;"),
        (lambda: adversaries.poor_ellipsoid(3, 5, condition=float("inf")), "got inf;"),
        (lambda: adversaries.gaussian(CUBE, -1), "got -1;"),
        (lambda: adversaries.gaussian(CUBE, 5, density=2.0), "2.0"),
        (lambda: adversaries.sign_adversary(CUBE, 0), "got 0;"),
    ],
)
def test_bad_arguments(make: Callable[[], Instance], message: str) -> None:
    """Bad arguments raise when the instance is made, not in its first round."""
    with pytest.raises(InvalidInput) as caught:
        make()
    assert message in str(caught.value)
