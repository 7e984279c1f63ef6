"""Show options of the table as keywords of functions and classes, in `help` and in editors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from ftprl.options import BY_NAME, GROUPS
from ftprl.options.option import SWITCH

_F = TypeVar("_F", bound=Callable[..., Any])


def has_keywords(keywords: Mapping[str, Any]) -> Callable[[_F], _F]:
    """Give a function with `**options` a signature that shows these keywords with their defaults.

    >>> @has_keywords({"bits": 22, "l1": None})
    ... def show(data, **options): ...
    >>> print(inspect.signature(show))
    (data, *, bits: int | None = 22, l1: float | None = None)
    """

    def decorate(function: _F) -> _F:
        """Set the signature of one function."""
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        own += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=BY_NAME[name].type if name in BY_NAME else inspect.Parameter.empty,
            )
            for name, default in keywords.items()
        ]
        function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return function

    return decorate


def complete(caller: str, keywords: Mapping[str, Any], passed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every keyword, passed or default; raise TypeError for an unknown keyword.

    >>> complete("train", {"bits": None, "l1": None}, {"bit": 3})
    Traceback (most recent call last):
    TypeError: train() got an unexpected keyword argument 'bit'; did you mean bits=?
    """
    for name in passed:
        if name not in keywords:
            close = get_close_matches(name, list(keywords), 1, cutoff=0.7)
            hint = f"; did you mean {close[0]}=?" if close else ""
            raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}{hint}")
    return {**keywords, **{name: _plain(name, value) for name, value in passed.items()}}


def _plain(name: str, value: Any) -> Any:
    """Return a NumPy bool of a switch as a Python bool, and any other value unchanged."""
    is_switch = name in BY_NAME and BY_NAME[name].is_switch and value is not None
    return bool(value) if is_switch and SWITCH.fits(value) else value


def of_class(defaults: Mapping[str, Any], *, without: str, **own: Any) -> dict[str, Any]:
    """Return the parameters of an estimator class and their defaults, without one option that its losses do not
    have.

    >>> of_class({"tau": None, "l1": None}, without="tau", loss="logistic")
    {'l1': None, 'loss': 'logistic'}
    """
    return {**{name: value for name, value in defaults.items() if name != without}, **own}


def lines() -> str:
    """Return a list of all options of `train` by group, for its docstring."""
    text = []
    for group in GROUPS:
        text += [f"    {group.capitalize()} options:", ""]
        text += [f"    - `{entry.name}`: {entry.line()}" for entry in BY_NAME.values() if entry.group == group]
        text.append("")
    return "\n".join(text)
