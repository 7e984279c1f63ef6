"""Learners: FTPRL, a change of coordinates around any learner, and the base class that baselines derive from."""

from ftprl.learner.base import Learner, LearnerState, gradient, starting_point
from ftprl.learner.composite import Composite
from ftprl.learner.ftprl import FTPRL
from ftprl.learner.intervals import Interval, StronglyAdaptive
from ftprl.learner.preconditioned import Preconditioned, PreconditionedState
from ftprl.learner.solo import CoinBetting, SoloFTRL
from ftprl.learner.state import State
from ftprl.learner.tickets import Tickets

__all__ = [
    "FTPRL",
    "CoinBetting",
    "Composite",
    "Interval",
    "Learner",
    "LearnerState",
    "Preconditioned",
    "PreconditionedState",
    "SoloFTRL",
    "State",
    "StronglyAdaptive",
    "Tickets",
    "gradient",
    "starting_point",
]
