"""Rewrite options in messages of the library as they are typed: `--label` for `label=`."""

from __future__ import annotations

import re

from ftprl.options import BY_NAME

# Options of commands other than `train`, as messages of the library name them and as they are typed.
_NAMES = (
    *("alpha", "by", "dim", "drift", "exact", "norm", "port", "predictions", "predictions_are", "probabilities"),
    *("radius", "rounds", "row", "rows", "threshold", "uncertainty"),
)
OF_OTHER_COMMANDS = {"path": "--output", **{name: "--" + name.replace("_", "-") for name in _NAMES}}


def as_typed(message: str, options: tuple[str, ...]) -> str:
    """Return a message with its options as they are typed on the command line; in Python they are `label=`,
    `bits=10`.

    Only the options that an error names are replaced, or one that its message begins with: the rest may be data.

    >>> as_typed("use l1= or l2=, got l1=1 and l2=0", ("l1", "l2"))
    'use --l1 or --l2, got --l1 1 and --l2 0'
    """
    first = re.match(r"(\w+)(?==| needs )", message)
    if first is not None and first[1] in BY_NAME:
        message = _replaced(f"{first[1]}={message[first.end() :].removeprefix('=')}", first[1], count=1)
    elif first is not None and first[1] in OF_OTHER_COMMANDS:
        message = OF_OTHER_COMMANDS[first[1]] + message[first.end() :].removeprefix("=")
    for name in options:
        message = _replaced(message, name)
    return message


def _of_other_command(name: str, match: re.Match[str]) -> str:
    """Return an option of another command as it is typed; an unknown one is not changed."""
    typed = OF_OTHER_COMMANDS.get(name, match[0])
    return typed + (" " if match[1] and typed != match[0] else "")


def _replaced(message: str, name: str, count: int = 0) -> str:
    """Return the message with one option as it is typed."""
    option = BY_NAME.get(name)
    if option is None:
        return re.sub(rf"(?<![\w-]){re.escape(name)}=(?=(\S)?)", lambda match: _of_other_command(name, match), message)
    value = r"(?:True|False)?" if option.switch else ""  # a switch has no value

    def typed(match: re.Match[str]) -> str:
        """Return the typed form of one match."""
        typed = option.switch.split("/")[-1] if option.switch and match[0].endswith("False") else option.typed
        return typed + (" " if message[match.end() : match.end() + 1].strip(" ,;.:") else "")

    return re.sub(rf"(?<![\w-]){name}={value}", typed, message, count=count)
