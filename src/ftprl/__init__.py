"""Linear models and online decisions without a learning rate to tune, with a certificate of their regret."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ftprl.version import __version__ as __version__

if TYPE_CHECKING:
    from ftprl import adversaries, baselines, data, losses, receipt, schemes, sets
    from ftprl.bandit import TwoPointGame
    from ftprl.bounds import Certificate, Ledger
    from ftprl.errors import BadFormat, BadModel, FtprlError, FtprlWarning, InvalidInput, Unsupported
    from ftprl.estimators import FTPRLClassifier, FTPRLRegressor
    from ftprl.game import Game, best_in_hindsight, play
    from ftprl.learner import FTPRL, CoinBetting, Composite, Preconditioned, SoloFTRL, StronglyAdaptive
    from ftprl.linear import Model, load
    from ftprl.online import OnlineClassifier, OnlineRegressor
    from ftprl.posthoc import best_bound
    from ftprl.schemes import john
    from ftprl.training.api import train
    from ftprl.training.live import ProgressBar
    from ftprl.training.run import Run

# The module of each public name. A name is imported on first use, so that `import ftprl` stays cheap.
_NAMES = {
    "ftprl.bandit": ("TwoPointGame",),
    "ftprl.bounds": ("Certificate", "Ledger"),
    "ftprl.errors": ("BadFormat", "BadModel", "FtprlError", "FtprlWarning", "InvalidInput", "Unsupported"),
    "ftprl.estimators": ("FTPRLClassifier", "FTPRLRegressor"),
    "ftprl.game": ("Game", "best_in_hindsight", "play"),
    "ftprl.learner": ("CoinBetting", "Composite", "FTPRL", "Preconditioned", "SoloFTRL", "StronglyAdaptive"),
    "ftprl.linear": ("Model", "load"),
    "ftprl.online": ("OnlineClassifier", "OnlineRegressor"),
    "ftprl.posthoc": ("best_bound",),
    "ftprl.schemes": ("john",),
    "ftprl.training": ("ProgressBar", "Run", "train"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
_MODULES = ("adversaries", "baselines", "data", "losses", "receipt", "schemes", "sets")

__all__ = [
    "BadFormat",
    "BadModel",
    "Certificate",
    "CoinBetting",
    "Composite",
    "FTPRL",
    "FTPRLClassifier",
    "FTPRLRegressor",
    "FtprlError",
    "FtprlWarning",
    "Game",
    "InvalidInput",
    "Ledger",
    "Model",
    "OnlineClassifier",
    "OnlineRegressor",
    "Preconditioned",
    "ProgressBar",
    "Run",
    "SoloFTRL",
    "StronglyAdaptive",
    "TwoPointGame",
    "Unsupported",
    "adversaries",
    "baselines",
    "best_bound",
    "best_in_hindsight",
    "data",
    "john",
    "load",
    "losses",
    "play",
    "receipt",
    "schemes",
    "sets",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name or module on first use, so that `import ftprl` stays cheap."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"ftprl.{name}")
    raise AttributeError(f"module 'ftprl' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
