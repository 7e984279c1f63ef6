"""Set three prices inside limits and a common budget; demand answers each day, and the receipt is drawn."""

import numpy as np

from ftprl import FTPRL, Game
from ftprl.schemes import Diagonal
from ftprl.sets import Box, Halfspace, Intersection

rng = np.random.default_rng(3)
limits = Intersection(Halfspace([1.0, 1.0, 1.0], 12.0), Box([1.0, 2.0, 3.0], [5.0, 6.0, 9.0]))
target, sensitivity = np.array([4.0, 3.5, 8.0]), np.array([1.0, 0.3, 2.0])

game = Game(FTPRL(limits, Diagonal()), history=5)
for _ in range(500):
    wish = target + rng.normal(scale=0.5, size=3)
    miss = game.x - wish
    game.observe(sensitivity * miss, loss=0.5 * sensitivity @ miss**2)

receipt = game.certificate()
receipt.plot().savefig("pricing.png")
print(receipt)
print("\nprices now:", np.round(game.x, 2), "- picture: pricing.png")
