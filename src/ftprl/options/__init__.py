"""Every option of training in one table: name, group, help and default, for the command line, Python and the docs.

Nothing heavy is imported here: the command line reads the table before anything else is loaded.
"""

from __future__ import annotations

from ftprl.options.option import Group, Home, Option
from ftprl.options.table import TABLE

__all__ = ["BY_NAME", "COMMAND", "GROUPS", "TRAIN", "Option", "names"]

GROUPS: tuple[Group, ...] = ("data", "model", "learning", "run", "output")
BY_NAME = {option.name: option for option in TABLE}
TRAIN = tuple(option for option in TABLE if option.home != "cli")  # the keywords of `train`
COMMAND = tuple(option for option in TABLE if option.name != "listener")  # the options of `ftprl train`


def names(home: Home) -> tuple[str, ...]:
    """The options that `home` takes."""
    return tuple(option.name for option in TABLE if option.home == home)
