"""`Option`: the name, group, help and default of one option of training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, final

Group = Literal["data", "model", "learning", "run", "output"]
Home = Literal["Spec", "open", "train", "cli"]


@final
class Option(NamedTuple):
    """One option; in `help`, `{name}` stands for another option, spelled as the reader would type it.

    `home` says what takes it: a field of `Spec`, an argument of `ftprl.data.open`, `train` itself, or the command
    line alone. `default` is what is shown; None is "not set". A switch has a spelling of its own on the command
    line, such as `--no-header` for `header=False`, and may have a `switch_help` that fits it.

    >>> from ftprl.options import BY_NAME
    >>> BY_NAME["beta"].typed, BY_NAME["header"].typed
    ('--beta', '--no-header')
    >>> print(BY_NAME["every"].line())
    Checkpoint interval: rows such as 100000, or a time such as 30s, 5m or 1h; needs `checkpoint` [default: 30s]
    """

    name: str
    group: Group
    home: Home
    metavar: str
    help: str
    default: str | None = None
    switch: str | None = None
    switch_help: str | None = None
    short: str | None = None

    @property
    def typed(self) -> str:
        """As it is typed on the command line."""
        return (self.switch or "--" + self.name.replace("_", "-")).split("/")[0]

    def line(self, spelled: Callable[[str], str] | None = None) -> str:
        """The help text with the default, for Python unless another spelling of options is passed."""
        text = self.help if spelled is None else self.switch_help or self.help
        text = re.sub(r"\{(\w+)\}", lambda match: (spelled or _in_python)(match[1]), text)
        shown = self.default if spelled is None or self.switch_help is None else None
        return text + (f" [default: {shown}]" if shown is not None else "")


def _in_python(name: str) -> str:
    return "a name in `ftprl.losses.LOSSES`" if name == "losses" else f"`{name}`"
