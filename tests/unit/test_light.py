"""The light `dataclass` against the one of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest

from ftprl import light


def _classes(decorator: Any) -> tuple[Any, Any, Any]:
    @decorator(frozen=True, slots=True)
    class Frozen:
        """Frozen."""

        a: int
        b: float = 2.0
        c: list[int] = field(default_factory=list)
        d: int = field(default=3, compare=False)
        e: str = field(default="e", init=False, repr=False)
        f: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

        def twice(self) -> int:
            return 2 * self.a

    @decorator(slots=True, eq=False)
    class Plain:
        """Plain."""

        a: int
        b: int = 1

        def __post_init__(self) -> None:
            self.b += 1

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        """Named."""

        a: int = 1
        b: int

    return Frozen, Plain, Named


STANDARD, LIGHT = _classes(dataclasses.dataclass), _classes(light.dataclass)


@light.dataclass(frozen=True, slots=True)
class Saved:
    """A class that pickle finds by its name."""

    a: int
    b: str = "b"


def test_fields_signature_and_representation_are_those_of_the_standard_decorator() -> None:
    for ours, theirs in zip(LIGHT, STANDARD, strict=True):
        assert [one.name for one in fields(ours)] == [one.name for one in fields(theirs)]
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
        assert ours.__slots__ == theirs.__slots__
        assert ours.__doc__ == theirs.__doc__
    assert repr(LIGHT[0](1, c=[4])) == repr(STANDARD[0](1, c=[4]))
    assert repr(LIGHT[2](b=2)) == repr(STANDARD[2](b=2))


def test_objects_are_equal_and_hashed_by_the_fields_that_are_compared() -> None:
    frozen, plain, named = LIGHT
    assert frozen(1, d=5) == frozen(1, d=6)
    assert frozen(1) != frozen(2)
    assert frozen(1) != STANDARD[0](1)
    assert plain(1) != plain(1)
    assert hash(named(b=2)) == hash(named(a=1, b=2)) == hash(STANDARD[2](b=2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(frozen(1))  # it has a list


def test_defaults_are_made_anew_and_post_init_is_called() -> None:
    frozen, plain, _ = LIGHT
    assert frozen(1).c is not frozen(1).c
    assert (frozen(1).e, frozen(1).f, frozen(4).twice()) == ("e", {}, 8)
    assert plain(1, 5).b == 6


def test_a_frozen_object_cannot_be_changed_and_a_plain_one_can() -> None:
    frozen, plain, _ = LIGHT
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        frozen(1).a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del frozen(1).a
    changed = plain(1)
    changed.a = 3
    assert changed.a == 3


def test_replace_asdict_copy_and_pickle() -> None:
    frozen = LIGHT[0]
    assert replace(frozen(1), a=2) == frozen(2)
    assert asdict(LIGHT[2](b=3)) == {"a": 1, "b": 3}
    assert copy.copy(frozen(1)) == frozen(1)
    assert pickle.loads(pickle.dumps(Saved(5))) == Saved(5)


def test_a_class_below_a_frozen_one_may_have_attributes_of_its_own() -> None:
    class Below(Saved):
        pass

    below = Below(1)
    below.other = 2  # type: ignore[attr-defined]
    assert below.other == 2  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        below.a = 3  # type: ignore[misc]


def test_a_missing_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"Frozen\.__init__\(\) missing 1 required positional argument: 'a'"):
        LIGHT[0]()
