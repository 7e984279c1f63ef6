"""A long thin ellipsoid, where measuring each direction in its own unit first cuts the regret more than tenfold."""

import numpy as np
from matplotlib.figure import Figure

from ftprl import FTPRL, Preconditioned, play
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Ellipsoid, L2Ball

rng = np.random.default_rng(0)
days, n = 1500, 5
# One long direction and four short ones, rotated: a plan that may move far along one line only.
rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
A = np.array([1.0, 100.0, 100.0, 100.0, 100.0])[:, None] * rotation
hats = rng.choice((-1.0, 1.0), size=(days, n))  # in the ellipsoid's own units every direction matters alike
hats[:, 0] = 1.0  # and along the long one there is something to learn
gradients = hats @ A

direct = play(FTPRL(Ellipsoid(A), CoordinateConstant()), gradients, history=25).certificate()
scaled = play(Preconditioned(A, FTPRL(L2Ball(n), CoordinateConstant())), gradients, history=25).certificate()

for name, made in (("global rate", direct), ("FTPRL-Scale", scaled)):
    print(f"{name:<12} regret {made.regret:8.1f}   bound {made.bound:9.1f}   worst case {made.worst_case:9.1f}")
gain = direct.regret / scaled.regret
print(f"scaling reduces the regret by {gain:.0f}x, and the bound by {direct.worst_case / scaled.worst_case:.0f}x")
assert gain > 10

fig = Figure(figsize=(7, 4), layout="constrained")
ax = fig.subplots()
for name, made, style in (("global rate", direct, "C1"), ("FTPRL-Scale", scaled, "C0")):
    ax.plot(made.history.rounds, made.history.series["bound"], style + "--", label=f"{name}: bound")
    ax.plot(made.history.rounds, made.history.series["regret"], style + "-", label=f"{name}: regret")
ax.set(title="An ellipsoid with one long axis and four short ones", xlabel="round", ylabel="loss units", yscale="log")
ax.legend(frameon=False)
fig.savefig("ellipsoid.svg")
