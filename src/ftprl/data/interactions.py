"""Interactions of columns or namespaces as options: `user:ad`, `a:b:c`, `*:*`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ftprl.data.files import shown
from ftprl.data.protocol import BESIDE
from ftprl.errors import InvalidInput

Interactions = tuple[tuple[str, ...], ...]
ANY = "*"
MOST_TERMS = 4  # of one interaction
MOST = 64  # interactions, and so at most as many distinct terms as the core takes


def parse(requested: Any) -> Interactions:
    """Interactions as typed, `user:ad`, or as lists of columns, whose names may have a colon.

    >>> parse(["user:ad", ["a", "b:c"]])
    (('user', 'ad'), ('a', 'b:c'))
    """
    every = [requested] if isinstance(requested, str) else list(requested or ())
    parsed: list[tuple[str, ...]] = []
    for one in every:
        terms = tuple(one.split(":")) if isinstance(one, str) else tuple(str(term) for term in one)
        if not 2 <= len(terms) <= MOST_TERMS or not all(terms):
            raise InvalidInput(
                f"interactions= needs 2 to {MOST_TERMS} columns or namespaces with colons between them, such as"
                f" user:ad, got {shown(':'.join(terms))!r}; pass those."
            )
        if not any(sorted(terms) == sorted(other) for other in parsed):  # the order of factors does not matter
            parsed.append(terms)
    if len({term for terms in parsed for term in terms}) > MOST:
        raise InvalidInput(f"interactions= needs at most {MOST} distinct names, got more; use * for all.")
    return tuple(parsed)


def checked(interactions: Interactions, kinds: Any) -> Interactions:
    """The same, if they name columns that have features; `kinds` is None where any name may come."""
    if kinds is None:
        return interactions
    from ftprl.data.tables import nearest  # only where there are columns

    columns = [name for name, kind in kinds.items() if kind not in (*BESIDE, "ignore")]
    for term in (term for terms in interactions for term in terms):
        if term != ANY and term not in columns:
            raise InvalidInput(
                f"interactions= needs columns with features, got {shown(term)!r}; {nearest(term, columns)}"
            )
    return interactions


def as_bytes(interactions: Interactions) -> list[list[bytes]]:
    """As the core takes them."""
    return [[term.encode("utf-8", "backslashreplace") for term in terms] for terms in interactions]


def as_lists(interactions: Iterable[Sequence[str]]) -> dict[str, Any]:
    """As a setting that is kept with a model; nothing where there are none."""
    kept = [list(terms) for terms in interactions]
    return {"interactions": kept} if kept else {}
