"""Online learning that shows its receipt: FTPRL, its regret, its bounds, and the best bound in hindsight."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftprl import adversaries, baselines, data, losses, schemes, sets
    from ftprl.bounds import Certificate, Ledger
    from ftprl.errors import BadFormat, BadModel, FtprlError, InvalidInput, Unsupported
    from ftprl.game import Game, best_in_hindsight, play
    from ftprl.learner import FTPRL, Composite, Preconditioned
    from ftprl.posthoc import best_bound
    from ftprl.schemes import john

# Where each public name lives: it is imported when it is first used, so that `import ftprl` stays cheap.
_HOMES = {
    "BadFormat": "ftprl.errors",
    "BadModel": "ftprl.errors",
    "Certificate": "ftprl.bounds",
    "Composite": "ftprl.learner",
    "FTPRL": "ftprl.learner",
    "FtprlError": "ftprl.errors",
    "Game": "ftprl.game",
    "InvalidInput": "ftprl.errors",
    "Ledger": "ftprl.bounds",
    "Preconditioned": "ftprl.learner",
    "Unsupported": "ftprl.errors",
    "best_bound": "ftprl.posthoc",
    "best_in_hindsight": "ftprl.game",
    "john": "ftprl.schemes",
    "play": "ftprl.game",
}
_ROOMS = ("adversaries", "baselines", "data", "losses", "schemes", "sets")

__all__ = [
    "BadFormat",
    "BadModel",
    "Certificate",
    "Composite",
    "FTPRL",
    "FtprlError",
    "Game",
    "InvalidInput",
    "Ledger",
    "Preconditioned",
    "Unsupported",
    "adversaries",
    "baselines",
    "best_bound",
    "best_in_hindsight",
    "data",
    "john",
    "losses",
    "play",
    "schemes",
    "sets",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"ftprl.{name}")
    if name == "__version__":
        return _version("ftprl")
    raise AttributeError(f"module 'ftprl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
