"""The parameters of a command as plain records, and the short way from what was typed to the call of the command.

Importing Typer and describing some seventy options to it takes as long as learning 100,000 rows. What most users type
needs neither: known options, each at most once, with values that do not begin with a hyphen. Whatever else is typed
(help, an unknown option, a value that does not fit) is left to Typer, which reads the same records.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from ftprl.options import BY_NAME


@final
class Declared:
    """An argument, or an option with its spellings; `details` are passed on to Typer.

    An option of `ftprl.options` has its name there; its help is put together only when Typer asks for it.
    """

    __slots__ = ("details", "name", "spellings")

    def __init__(self, *spellings: str, name: str | None = None, **details: Any) -> None:
        self.spellings, self.name, self.details = spellings, name, details

    @property
    def is_argument(self) -> bool:
        """Whether it is known by its place, not by a name."""
        return not self.spellings


def argument(help: str) -> Declared:
    """An argument of a command, with its help."""
    return Declared(help=help)


def option(name: str) -> Declared:
    """An option of `ftprl.options` as the option of a command."""
    entry = BY_NAME[name]
    return Declared(entry.switch or entry.typed, *([entry.short] if entry.short else []), name=name)


_VALUES: dict[Any, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    int | None: int,
    float | None: float,
    Path: Path,
    Path | None: Path,
}
_LISTS = (list[str], list[str] | None)
_FLAGS = (bool, bool | None)


def arguments_of(command: Callable[..., Any], typed: Sequence[str]) -> dict[str, Any] | None:
    """The keywords for a call of a command; None where Typer has to read what was typed.

    >>> from typing import Annotated
    >>> Bits = Annotated[int | None, option("bits")]
    >>> def count(data: Annotated[list[str], argument("Files")], bits: Bits = None): ...
    >>> arguments_of(count, ["a.vw", "--bits", "10", "b.vw"])
    {'bits': 10, 'data': ['a.vw', 'b.vw']}
    >>> arguments_of(count, ["a.vw", "--bits", "ten"]) is arguments_of(count, ["--help"]) is None
    True
    """
    parameters = {name: hint for name, hint in command.__annotations__.items() if name != "return"}
    values = dict(zip(reversed(parameters), reversed(command.__defaults__ or ()), strict=False))
    values |= command.__kwdefaults__ or {}
    read = _read(parameters, typed)
    if read is None:
        return None
    options, words = read
    arguments = [name for name, hint in parameters.items() if hint.__metadata__[0].is_argument]
    for name in arguments[:-1]:
        if not words:
            return None
        options[name] = _VALUES[parameters[name].__origin__](words.pop(0))
    if arguments:
        options[arguments[-1]] = words
    values |= options
    is_whole = len(values) == len(parameters) and (not arguments or bool(words))
    return values if is_whole else None


def _read(parameters: Mapping[str, Any], typed: Sequence[str]) -> tuple[dict[str, Any], list[str]] | None:
    """The options that were typed, and all other words; None where Typer has to read them."""
    spelled = {
        spelling: (name, hint.__origin__, part == 0)
        for name, hint in parameters.items()
        for spellings in hint.__metadata__[0].spellings
        for part, spelling in enumerate(spellings.split("/"))
    }
    options: dict[str, Any] = {}
    words: list[str] = []
    rest = iter(typed)
    for word in rest:
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        spelling, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if spelling not in spelled:
            return None
        name, kind, is_on = spelled[spelling]
        if kind in _FLAGS:
            if equals or name in options:
                return None
            options[name] = is_on
            continue
        if not equals:
            value = next(rest, "--")
        if value.startswith("-") and value != "-":
            return None
        if kind in _LISTS:
            options.setdefault(name, []).append(value)
        elif name in options or kind not in _VALUES:
            return None
        else:
            try:
                options[name] = _VALUES[kind](value)
            except ValueError:
                return None
    return options, words
