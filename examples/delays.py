"""Prices whose sales are only known days later: gradients come with tickets, in any order, and are counted."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game
from ftprl.schemes import Diagonal
from ftprl.sets import Box

days = 1500
curves = {}
for name, wait in (("known at once", 0), ("known after up to 10 days", 10), ("known after up to 50 days", 50)):
    rng = np.random.default_rng(3)
    game = Game(FTPRL(Box(1.0, 9.0, dim=2), Diagonal(2**0.5)))
    reports, losses = [], np.zeros(days)
    for day in range(days):
        ticket, price = game.play()
        best = np.array([5.0, 3.0 + 2.0 * (day > 700)])  # the second product becomes dearer
        losses[day] = 0.5 * np.sum((price - best) ** 2)
        noise = rng.normal(scale=0.5, size=2)
        reports.append((day + int(rng.integers(0, wait + 1)), ticket, price - best + noise))
        for _, old, g in [report for report in reports if report[0] <= day]:
            game.observe(g, ticket=old)
        reports = [report for report in reports if report[0] > day]
    made = game.certificate()
    late = made.delays
    print(f"{name}: regret {made.regret:.0f}, at most {made.bound:.0f}; {late.late} reports late, {late.open} open")
    assert made.regret <= made.bound
    curves[name] = np.cumsum(losses)

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for (name, curve), style in zip(curves.items(), ("k--", "C0-", "C1-."), strict=True):
    ax.plot(curve, style, label=f"sales {name}")
ax.set(title="Loss to the best price of each day", xlabel="day", ylabel="total loss")
ax.legend(frameon=False)
fig.savefig("delays.svg")
