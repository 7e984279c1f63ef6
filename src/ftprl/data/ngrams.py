"""N-grams of text columns and VW namespaces as options: `2` for all of them, `body=2` for one (docs/ngrams.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl.data.files import shown
from ftprl.errors import InvalidInput

ALL = "*"
NAMES = ("ngrams", "skips", "char_ngrams")
MOST_WORDS, MOST_SKIPS, LONGEST_CHAR_NGRAM = 8, 8, 16
_RANGES = {"ngrams": (2, MOST_WORDS), "skips": (1, MOST_SKIPS), "char_ngrams": (1, LONGEST_CHAR_NGRAM)}
_WANTED = {
    "ngrams": f"the longest n-gram, 2 to {MOST_WORDS} words, such as 2 or body=2",
    "skips": f"how many words an n-gram may skip, 1 to {MOST_SKIPS}, such as 1 or body=1",
    "char_ngrams": f"a number of characters from 1 to {LONGEST_CHAR_NGRAM}, or the least and the most, such as"
    " 3, 3-5 or body=3-5",
}

Rule = tuple[bytes, int, int, int, int]  # as the core takes it: name, words, skips, shortest and longest piece


@final
class Grams(NamedTuple):
    """What is asked for, by column or namespace; * stands for those that are not named."""

    ngrams: Mapping[str, int] = {}
    skips: Mapping[str, int] = {}
    char_ngrams: Mapping[str, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self.ngrams or self.char_ngrams)

    @property
    def names(self) -> set[str]:
        """The columns or namespaces that are named."""
        return {*self.ngrams, *self.skips, *self.char_ngrams} - {ALL}

    def rules(self, kinds: Mapping[str, str] | None) -> list[Rule]:
        """As the core takes them; without `kinds`, of a format without columns, * is left to it."""
        names = self.names | ({ALL} if kinds is None else {name for name, kind in kinds.items() if kind == "text"})
        rules: list[Rule] = []
        for name in sorted(names) if self else ():
            words, skips, characters = (_of(part, name) for part in self)
            if words or characters:
                rules.append(
                    (name.encode("utf-8", "backslashreplace"), words or 0, skips or 0, *(characters or (0, 0)))
                )
        return rules

    def to_dict(self) -> dict[str, Any]:
        """As settings that are kept with a model; nothing where there are none."""
        characters = {name: list(sizes) for name, sizes in self.char_ngrams.items()}
        kept = {"ngrams": dict(self.ngrams), "skips": dict(self.skips), "char_ngrams": characters}
        return {name: value for name, value in kept.items() if value}


NO_GRAMS = Grams()


def as_passed(sizes: Mapping[str, Any]) -> str:
    """Sizes by name as they are typed.

    >>> as_passed({"*": 2}), as_passed({"body": (3, 5), "title": [3, 3]})
    ('2', 'body=3-5,title=3')
    """
    shown_sizes = {
        name: "-".join(map(str, dict.fromkeys(size))) if isinstance(size, list | tuple) else str(size)
        for name, size in sizes.items()
    }
    return ",".join(size if name == ALL else f"{shown(name)}={size}" for name, size in shown_sizes.items())


def _of(part: Mapping[str, Any], name: str) -> Any:
    return part.get(name, part.get(ALL))


def parse(ngrams: Any = None, skips: Any = None, char_ngrams: Any = None) -> Grams:
    """The options as typed: a number for all, `body=2` for one column or namespace, several of these, or a dict.

    >>> parse(2, char_ngrams=["body=3-5"])
    Grams(ngrams={'*': 2}, skips={}, char_ngrams={'body': (3, 5)})
    """
    grams = Grams(
        {name: most for name, (_, most) in _entries("ngrams", ngrams).items()},
        {name: most for name, (_, most) in _entries("skips", skips).items()},
        _entries("char_ngrams", char_ngrams),
    )
    for name in grams.skips:
        if _of(grams.ngrams, name) is None:
            where = "" if name == ALL else f" for {shown(name)!r}"
            raise InvalidInput(
                f"skips= is for n-grams, got none{where}; pass ngrams= as well.", option=("skips", "ngrams")
            )
    return grams


def checked(grams: Grams, kinds: Mapping[str, str] | None) -> Grams:
    """The same, if they are for columns of text; `kinds` is None where there are no columns."""
    if kinds is None or not grams:
        return grams
    texts = [name for name, kind in kinds.items() if kind == "text"]
    first = next(name for name in NAMES if getattr(grams, name))
    wrong = next((name for name in sorted(grams.names) if name not in texts), None)
    if wrong is not None:
        raise InvalidInput(
            f"{first}= needs columns of text, got {shown(wrong)[:40]!r}; pass it with text= as well.",
            option=(*NAMES, "text"),
        )
    if not texts:
        raise InvalidInput(f"{first}= needs columns of text, got none; name them with text=.", option=(*NAMES, "text"))
    return grams


def _entries(option: str, requested: Any) -> dict[str, tuple[int, int]]:
    sizes_of: dict[str, tuple[int, int]] = {}
    for name, value in _pairs(option, requested):
        low, high = _numbers(value)
        least, most = _RANGES[option]
        if not least <= low <= high <= most or (option != "char_ngrams" and low != high):
            shown_value = value if name == ALL else f"{shown(name)}={value}"
            raise InvalidInput(
                f"{option}= needs {_WANTED[option]}, got {shown_value!r:.60}; choose one of those.", option=option
            )
        if sizes_of.setdefault(name, (low, high)) != (low, high):
            raise InvalidInput(
                f"{option}= needs one number for each column, got two for {shown(name)!r}; keep one.", option=option
            )
    return sizes_of


def _pairs(option: str, requested: Any) -> Iterable[tuple[str, Any]]:
    """Names and what was asked for, not yet checked."""
    if requested is None or (
        isinstance(requested, Sequence) and not isinstance(requested, str) and len(requested) == 0
    ):
        return
    if isinstance(requested, Mapping):
        yield from ((str(name), value) for name, value in requested.items())
        return
    if isinstance(requested, tuple) and len(requested) == 2 and all(isinstance(one, int) for one in requested):
        yield ALL, requested
        return
    for entry in requested if isinstance(requested, list | tuple) else [requested]:
        match = re.fullmatch(r"(.+)=([^=]*)", entry, re.DOTALL) if isinstance(entry, str) else None
        yield (ALL, entry) if match is None else (match[1], match[2])


def _numbers(value: Any) -> tuple[int, int]:
    """The least and the most; (0, 0), which nothing allows, for what is no number."""
    if isinstance(value, bool):
        return 0, 0
    if isinstance(value, int):
        return value, value
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", value)):
        return int(match[1]), int(match[2] or match[1])
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(one) is int for one in value):
        return value[0], value[1]
    return 0, 0
