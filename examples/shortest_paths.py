"""Online shortest paths: a way to work every morning, through roads whose delays are only known in the evening."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game
from ftprl.schemes import CoordinateConstant
from ftprl.sets import FlowPolytope

rng = np.random.default_rng(4)
size, days = 5, 600
corners = [(i, j) for i in range(size) for j in range(size)]
edges = [((i, j), (i + 1, j)) for i, j in corners if i + 1 < size]
edges += [((i, j), (i, j + 1)) for i, j in corners if j + 1 < size]
roads = FlowPolytope(edges, source=(0, 0), target=(size - 1, size - 1))  # 70 paths, 40 edges

usual = rng.uniform(1.0, 3.0, size=roads.dim)
works = np.where(rng.random(roads.dim) < 0.25, 2.5, 0.0)  # road works that begin on day 200
game = Game(FTPRL(roads, CoordinateConstant(c=2**0.5, center=True)))
spent, total_loss = [], 0.0
costs = usual + rng.exponential(0.7, size=(days, roads.dim)) + np.outer(np.arange(days) >= 200, works)
for cost in costs:
    path = roads.sample(game.x, rng)  # one path, drawn so that edge e is used with probability x[e]
    total_loss += cost[path].sum()
    spent.append(cost @ game.x)
    game.observe(cost)

made = game.certificate()
print(f"{roads}: {total_loss / days:.2f} minutes a day on the drawn paths, {np.mean(spent):.2f} expected")
print(f"best fixed path in hindsight: {costs.sum(axis=0) @ roads.vertex(costs.sum(axis=0)) / days:.2f}")
print(f"regret {made.regret:.1f}, at most {made.bound:.1f}; largest gap of a step {made.solver_gap:.1e}")
assert made.regret <= made.bound

best = [cost @ roads.vertex(costs[:200].mean(axis=0)) for cost in costs]
fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
window = np.ones(25) / 25
for name, series, style in (
    ("FTPRL, mixture of paths", spent, "C0-"),
    ("best path of the first 200 days", best, "k--"),
):
    ax.plot(np.arange(12, days - 12), np.convolve(series, window, "valid"), style, label=name)
ax.axvline(200, color="C7", linewidth=0.8)
ax.set(title="Minutes to work, mean of 25 days", xlabel="day", ylabel="minutes")
ax.legend(frameon=False)
fig.savefig("shortest_paths.svg")
