"""Every option of training in one table: type, help and default, for the command line, Python and the docs.

No heavy module is imported here, because the command line reads the table before anything else is loaded.
"""

from __future__ import annotations

from typing import Any

from ftprl.options.option import Group, Option, Reader
from ftprl.options.table import (
    DataOptions,
    LearningOptions,
    ModelOptions,
    OutputOptions,
    RunOptions,
    TrainOptions,
)

__all__ = ["BY_NAME", "COMMAND", "COMMON", "GROUPS", "TABLE", "Option", "TrainOptions", "names"]

GROUPS: dict[Group, Any] = {
    "data": DataOptions,
    "model": ModelOptions,
    "learning": LearningOptions,
    "run": RunOptions,
    "output": OutputOptions,
}
TABLE = tuple(
    hint.__metadata__[0]._replace(name=name, type=hint.__origin__, group=group)
    for group, options in GROUPS.items()
    for name, hint in options.__annotations__.items()
)
BY_NAME: dict[str, Option] = {option.name: option for option in TABLE}
COMMAND = tuple(option for option in TABLE if option.name != "listener")  # the options of `ftprl train`

# The most used options, which come first in the help of `ftprl train`.
COMMON = (
    *("output", "label", "loss", "positive", "ignore", "text", "interactions", "bits", "passes"),
    *("receipt", "checkpoint", "events"),
)


def names(reader: Reader) -> tuple[str, ...]:
    """Return the names of the options read by the data, the model or the run."""
    return tuple(option.name for option in TABLE if option.reader == reader)
