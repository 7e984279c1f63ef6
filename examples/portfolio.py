"""Shares of four assets on the simplex, no single share above 60%: one exact step a day, and a receipt."""

import numpy as np

from ftprl import FTPRL, Game
from ftprl.schemes import CoordinateConstant
from ftprl.sets import CappedSimplex

rng = np.random.default_rng(7)
growth = np.exp(rng.normal([4e-4, 2e-4, 0.0, -2e-4], [0.01, 0.02, 0.005, 0.015], size=(1000, 4)))

game = Game(FTPRL(CappedSimplex(4, cap=0.6), CoordinateConstant(center=True)))
for today in growth:
    wealth = today @ game.x
    game.observe(-today / wealth, loss=-np.log(wealth))  # the loss is minus the log of the day's growth

receipt = game.certificate()
print(receipt)
print(f"\nlog wealth is within {receipt.regret:.4f} of the best fixed mix, as it stands after {receipt.rounds} days")
