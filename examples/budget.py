"""A budget on a capped simplex: six channels, none above 40%, with returns that diminish and one that fades."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Game, best_in_hindsight
from ftprl.schemes import CoordinateConstant
from ftprl.sets import CappedSimplex

rng = np.random.default_rng(2)
days, names = 600, ["search", "video", "radio", "mail", "events", "print"]
worth = np.tile([5.0, 4.0, 2.0, 1.5, 1.0, 0.5], (days, 1))
worth[200:, 1] = 1.0  # video fades on day 200
worth *= np.exp(rng.normal(scale=0.4, size=worth.shape))


def revenue(w):
    """What a day's shares earn: w log(1 + 4x) a channel, as a loss with its gradient."""
    return lambda x: (-float(w @ np.log1p(4 * x)), -4 * w / (1 + 4 * x))


shares = CappedSimplex(6, cap=0.4)
game, played = Game(FTPRL(shares, CoordinateConstant(2**0.5, center=True))), []
losses = [revenue(w) for w in worth]
for loss in losses:
    played.append(game.x)
    value, g = loss(game.x)
    game.observe(g, loss=value)

best = best_in_hindsight(shares, losses)
certificate = game.certificate(best_loss=best.lower)
earned = -best.value - certificate.true_regret
print(certificate)
print(f"\nearned {earned:.0f}; the best fixed split, known in hindsight, {-best.value:.0f}")
assert np.max(played) <= 0.4 + 1e-9
assert certificate.true_regret <= certificate.bound

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for name, series, style in zip(names, np.array(played).T, ("-", "--", "-.", ":", "-", "--"), strict=True):
    ax.plot(series, style, label=name)
ax.axhline(0.4, color="black", linewidth=0.8)
ax.annotate("cap", (days, 0.4), (0, 3), textcoords="offset points", ha="right")
ax.set(title="Shares of a budget; video fades on day 200", xlabel="day", ylabel="share", ylim=(0, 0.44))
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
fig.savefig("budget.svg")
