"""The record of one option, from which the command line, Python and the documentation are made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, final

Group = Literal["data", "model", "learning", "run", "output"]
Reader = Literal["data", "model", "run"]

# Types that several options share.
Path = str | os.PathLike[str]
Columns = str | int | Sequence[str | int]
Grams = int | str | Sequence[str] | Mapping[str, Any]
Interactions = str | Sequence[str] | Sequence[Sequence[str]]
Bounds = Mapping[str | int, tuple[float | None, float | None]] | Sequence[str]
Scale = float | Sequence[float] | str

_PLACEHOLDERS: dict[Any, str] = {
    int | None: "INT",
    float | None: "FLOAT",
    Path | None: "PATH",
    str | int | None: "COL",
    Columns | None: "COL",
}


@final
class Rule(NamedTuple):
    """The rule for an option's values: the expected values in words, a test, and a remedy for other values."""

    wanted: str
    fits: Callable[[Any], bool]
    remedy: str = "pass one"


def whole(least: int, most: int | None = None, remedy: str = "pass one", wanted: str = "") -> Rule:
    """Return the rule for whole numbers in a range; a bool is not accepted."""
    wanted = wanted or f"a whole number {f'of at least {least}' if most is None else f'from {least} to {most}'}"
    return Rule(wanted, lambda value: _is_whole(value) and least <= value <= (value if most is None else most), remedy)


def one_of(*words: str, wanted: str = "") -> Rule:
    """Return the rule for one of some words."""
    return Rule(
        wanted or " or ".join(words), lambda value: isinstance(value, str) and value in words, "pass one of them"
    )


def _is_whole(value: Any) -> bool:
    """Return True for an integer that is no bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


SWITCH = Rule("True or False", lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"))


@final
class Option(NamedTuple):
    """One option of training; in `help`, `{name}` stands for another option, spelled as the reader would type it.

    `default` is the text that is shown; None means "not set". A switch has its own spelling on the command line, such
    as `--no-header` for `header=False`, and a `switch_help` for it. `rule` checks values. `excludes` maps options that
    cannot be combined with this one to an error message, `requires` those that must be; an option with the value `off`
    counts as not used. `name`, `type` and `group` follow from the place of the entry in the table.

    >>> from ftprl.options import BY_NAME
    >>> BY_NAME["l1"].typed, BY_NAME["header"].typed
    ('--l1', '--no-header')
    >>> print(BY_NAME["every"].line())
    Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h; needs `checkpoint` [default: 30s]
    """

    help: str
    default: str | None = None
    metavar: str = ""
    switch: str | None = None
    switch_help: str | None = None
    short: str | None = None
    rule: Rule | None = None
    excludes: Mapping[str, str] = {}
    requires: Mapping[str, str] = {}
    off: Any = None
    name: str = ""
    type: Any = None
    group: Group = "data"

    @property
    def reader(self) -> Reader:
        """Return the part that reads the option: the data, the model or the run."""
        return "model" if self.group == "learning" else "run" if self.group == "output" else self.group

    @property
    def is_switch(self) -> bool:
        """Return True if the option has no value on the command line."""
        return bool(self.type == bool | None)

    def is_used(self, value: Any) -> bool:
        """Return True if passing this value differs from leaving the option out."""
        return value is not None and not (self.is_switch and not value) and (self.off is None or value != self.off)

    @property
    def placeholder(self) -> str:
        """Return the placeholder of the value in the help of the command line."""
        return self.metavar or _PLACEHOLDERS.get(self.type, "TEXT")

    @property
    def typed(self) -> str:
        """Return the option as it is typed on the command line."""
        return (self.switch or "--" + self.name.replace("_", "-")).split("/")[0]

    def line(self, spelled: Callable[[str], str] | None = None) -> str:
        """Return the help text with the default, for Python unless another spelling of options is passed."""
        text = self.help if spelled is None else self.switch_help or self.help
        text = re.sub(r"\{(\w+)\}", lambda match: (spelled or _in_python)(match[1]), text)
        shown = self.default if spelled is None or self.switch_help is None else None
        return text + (f" [default: {shown}]" if shown is not None else "")


def _in_python(name: str) -> str:
    """Return an option's name as it is written in Python."""
    return "a name in `ftprl.losses.LOSSES`" if name == "losses" else f"`{name}`"
