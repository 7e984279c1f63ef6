"""A stream whose best choice changes: copies of a learner that start anew, mixed so that no interval costs much."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game, StronglyAdaptive
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Simplex

rng = np.random.default_rng(2)
rounds, changes = 2400, (900, 1500, 1800)
mean = np.full((rounds, 3), 0.7)  # three suppliers; the cheap one changes
for supplier, (a, b) in zip((0, 2, 1, 0), zip((0, *changes), (*changes, rounds), strict=True), strict=True):
    mean[a:b, supplier] = 0.2
costs = np.clip(mean + rng.normal(scale=0.1, size=mean.shape), 0.0, 1.0)

base = FTPRL(Simplex(3), CoordinateConstant(2**0.5, center=True))
learners = {"one learner": base, "mixture of copies": StronglyAdaptive(base, limit=1.0)}
losses = {}
for name, learner in learners.items():
    game = Game(learner)
    losses[name] = np.zeros(rounds)
    for t, cost in enumerate(costs):
        losses[name][t] = cost @ game.x
        game.observe(cost)
    print(f"{name}: mean cost {losses[name].mean():.3f}; the best fixed supplier's is {costs.mean(axis=0).min():.3f}")
assert losses["mixture of copies"].sum() < losses["one learner"].sum()

mixture = learners["mixture of copies"]
for a, b in zip((0, *changes), (*changes, rounds), strict=True):
    part = mixture.interval(game.state, a + 1, b)
    print(f"rounds {a + 1} to {b}: regret at most {part.tight:.0f} as measured, {part.bound:.0f} as proved")
    assert part.regret <= part.tight <= part.bound

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for (name, loss), style in zip(losses.items(), ("C1-.", "C0-"), strict=True):
    ax.plot(np.cumsum(loss - mean.min(axis=1)), style, label=name)
for change in changes:
    ax.axvline(change, color="C7", linewidth=0.8)
ax.set(title="Cost above the cheapest supplier of the moment", xlabel="round", ylabel="total")
ax.legend(frameon=False)
fig.savefig("changing.svg")
