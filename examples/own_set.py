"""A set of your own: non-decreasing probabilities, learned from one noisy answer at a time."""

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from ftprl import FTPRL, Game, Unsupported
from ftprl.schemes import Diagonal
from ftprl.sets import ConvexSet


class Stairs(ConvexSet):
    """{x : 0 <= x_1 <= x_2 <= ... <= 1}; the rest (diameter, gaps, bounds) comes from ConvexSet."""

    def __init__(self, steps):
        self.steps = steps

    @property
    def dim(self):
        return self.steps

    def argmin(self, H, z, near):
        if H.ndim == 2:
            raise Unsupported("Stairs takes numbers and diagonals; use a Polytope for full matrices.")
        if not H.any():
            return self.vertex(z)
        weights = np.broadcast_to(H, z.shape)
        target = np.divide(-z, weights, out=near.copy(), where=weights > 0)
        return np.clip(isotonic_regression(target, weights=np.maximum(weights, 1e-12)).x, 0.0, 1.0)

    def vertex(self, g):
        tails = np.append(np.cumsum(g[::-1])[::-1], 0.0)  # the corners are (0,..,0,1,..,1)
        return (np.arange(self.steps) >= tails.argmin()).astype(float)

    def widths(self):
        return np.ones(self.steps)

    def contains(self, x, atol=1e-9):
        return bool(np.all(np.diff(x) >= -atol) and x[0] >= -atol and x[-1] <= 1 + atol)


rng = np.random.default_rng(0)
truth = np.sort(rng.beta(0.6, 0.6, size=15))  # the probability that a dose works
game, answers, mean = Game(FTPRL(Stairs(15), Diagonal(2**0.5))), np.zeros((2, 15)), np.zeros(15)
for _ in range(3000):
    worked = rng.random() < truth[dose := rng.integers(15)]
    answers[:, dose] += worked, 1
    mean += game.x / 3000
    game.observe(2 * (game.x - worked) * (np.arange(15) == dose), loss=(game.x[dose] - worked) ** 2)

print(game.certificate())
assert np.abs(mean - truth).max() < 0.15
ax = Figure(figsize=(7, 4), layout="constrained").subplots()
ax.plot(truth, "k--", label="truth")
ax.plot(answers[0] / answers[1], "C1x", label="plain frequencies")
ax.step(range(15), mean, "C0-", where="mid", label="mean of the plays, never falling")
ax.set(title="Probabilities that must not fall with the dose", xlabel="dose", ylabel="probability that it works")
ax.legend(frameon=False)
ax.figure.savefig("own_set.svg")
