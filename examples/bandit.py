"""No gradients: a recipe of three ingredients is tuned from two tastings a day, near what is served."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, TwoPointGame
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Simplex

rng = np.random.default_rng(5)
days = 800
ideal = np.array([0.5, 0.3, 0.2]) + 0.03 * rng.normal(size=(days, 3))  # what guests like differs from day to day


def dislike(x, day):
    """How far the shares are from what guests like today: convex, and of slope at most 1."""
    return float(np.linalg.norm(x - ideal[day]))


middle = np.full(3, 1 / 3)
best = min(sum(dislike(u, day) for day in range(days)) for u in [ideal.mean(axis=0), np.median(ideal, axis=0)])
curves = []
for seed in range(8):
    shares = Simplex(3)  # contains everything within 0.4 of equal shares
    game = TwoPointGame(
        FTPRL(shares, CoordinateConstant(2**0.5)), step=0.02, lipschitz=1.0, center=middle, inner=0.4, seed=seed
    )
    losses = []
    for day in range(days):
        losses.append(game.total_loss)
        first, second = game.points
        game.observe(dislike(first, day), dislike(second, day))
    curves.append(np.array(losses))

certificate = game.certificate(best_loss=best)
print(certificate)
print(f"served at last: {np.round(game.x, 2)}; mean regret of 8 draws {np.mean([c[-1] for c in curves]) - best:.1f}")
assert certificate.in_expectation
assert np.mean([c[-1] for c in curves]) - best < certificate.bound

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
fixed = np.cumsum([dislike(middle, day) for day in range(days)])
for k, curve in enumerate(curves):
    ax.plot(curve, "C0-", linewidth=0.8, label=None if k else "two tastings a day, eight draws")
ax.plot(fixed, "k--", label="equal shares every day")
ax.set(title="Dislike without a gradient", xlabel="day", ylabel="total dislike")
ax.legend(frameon=False)
fig.savefig("bandit.svg")
