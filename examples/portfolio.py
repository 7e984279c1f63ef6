"""A portfolio on the simplex: shares of six assets, one exact step a day, against the best fixed mix in hindsight."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game, best_in_hindsight
from ftprl.schemes import BestBound, CoordinateConstant
from ftprl.sets import Simplex

rng = np.random.default_rng(7)
names = ["steady", "lively", "calm", "twin A", "twin B", "wild"]
moves = rng.normal(2e-4, [0.006, 0.02, 0.003, 0.04, 0.04, 0.06], size=(1500, 6))
moves[:, 3] -= moves[:, 3].mean()
moves[:, 4] = -moves[:, 3]  # neither twin gains anything alone; a mix of both does, whatever happens
growth = np.exp(moves)


def log_loss(today):
    """Minus the log of the day's growth, with its gradient."""
    return lambda x: (-np.log(today @ x), -today / (today @ x))


losses = [log_loss(today) for today in growth]
best = best_in_hindsight(Simplex(6), losses)
curves = {"best fixed mix": np.log(growth @ best.x), "equal shares": np.log(growth.mean(axis=1))}
for name, scheme in (("global rate", CoordinateConstant(center=True)), ("best bound", BestBound(center=True))):
    game = Game(FTPRL(Simplex(6), scheme))
    daily = []
    for loss in losses:
        value, g = loss(game.x)
        daily.append(-value)
        game.observe(g, loss=value)
    curves[f"FTPRL, {name}"] = np.array(daily)
    certificate = game.certificate(best_loss=best.lower)
    print(f"{name}: log wealth {sum(daily):.3f}, regret {certificate.true_regret:.3f}, bound {certificate.bound:.3f}")

shares = ", ".join(f"{name} {share:.0%}" for name, share in zip(names, best.x, strict=True) if share > 0.005)
print(f"best fixed mix: log wealth {-best.value:.3f} with {shares}")

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for (name, gains), style in zip(curves.items(), ("k--", "C7:", "C0-", "C1-."), strict=True):
    ax.plot(np.cumsum(gains), style, label=name)
ax.set(title="Wealth of a portfolio of six assets", xlabel="day", ylabel="log of wealth")
ax.legend(frameon=False)
fig.savefig("portfolio.svg")
