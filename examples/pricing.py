"""Prices in a box while demand drifts: per-product learning rates follow what a global rate cannot."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box

rng = np.random.default_rng(3)
days = 500
limits = Box([1.0, 2.0, 3.0], [5.0, 6.0, 9.0])
weight = np.array([0.02, 1.0, 30.0])  # three products that sell in very different numbers
turn = np.linspace(0, [2 * np.pi, np.pi, 3 * np.pi], days)
ideal = np.array([3.0, 4.0, 6.0]) + np.array([1.2, 1.5, 2.0]) * np.sin(turn)  # the price that would have been best
ideal += 0.1 * rng.normal(size=ideal.shape)


def run(scheme):
    """Revenue p (a - b p) loses b (p - ideal)² against the day's best price."""
    game, prices = Game(FTPRL(limits, scheme)), []
    for best in ideal:
        prices.append(game.x)
        miss = game.x - best
        game.observe(2 * weight * miss, loss=weight @ miss**2)
    fixed = float((weight * (ideal.mean(axis=0) - ideal) ** 2).sum())  # the mean is the best fixed price of each
    return game.certificate(best_loss=fixed), np.array(prices)


common, slow = run(CoordinateConstant(2**0.5))
own, prices = run(Diagonal(2**0.5))
for name, certificate, played in (("global rate", common, slow), ("per-product rates", own, prices)):
    off = np.abs(played - ideal).mean(axis=0)
    print(f"{name:<17} mean error {off.round(2)}; regret {certificate.true_regret:.0f}, bound {certificate.bound:.0f}")
print("a regret below 0 beats every fixed price: the learner follows the drift")
assert own.true_regret <= own.bound
assert own.worst_case < common.worst_case
assert np.abs(prices[:, 0] - ideal[:, 0]).mean() < np.abs(slow[:, 0] - ideal[:, 0]).mean() / 2

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for i, colour in enumerate(("C0", "C1", "C2")):
    ax.plot(ideal[:, i], color=colour, alpha=0.35, label=None if i else "best price of the day")
    ax.plot(slow[:, i], ":", color=colour, linewidth=1.8, label=None if i else "played, global rate")
    ax.plot(prices[:, i], color=colour, linewidth=1.6, label=None if i else "played, per-product rates")
ax.set(title="Three prices in a box while demand drifts", xlabel="day", ylabel="price")
ax.legend(frameon=False)
fig.savefig("pricing.svg")
