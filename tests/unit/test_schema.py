"""Shapes of loaded values: accepted values, and the names of mismatches."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ftprl import schema
from ftprl.errors import InvalidInput
from ftprl.schema import (
    check_shape,
    either,
    fields,
    json_value,
    listed,
    mapping,
    name,
    number,
    one_of,
    row,
    text,
    whole,
)

PERSON = fields({"name": text(5), "age": whole(0, 150)}, {"tags": listed(text(3), 2)})


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (whole(1, 3), [1, 3], [0, 4, True, 1.0, "1", None, 10**400]),
        (number(0.0), [0, 0.5, 1e300], [-1, math.nan, math.inf, 1e301, True, "0", 10**400]),
        (schema.flag, [True, False], [0, 1, None, "true"]),
        (text(3), ["", "abc", "äöü"], ["abcd", "a\n", "\x1b", "\u202e", "\ud800", 1, None]),
        (name, ["", "a\nb\x1b"], ["\ud800", 1, None, "a" * 100_001]),
        (schema.character, ["", "a", "\t"], ["ab", "\ud800", 1, None]),
        (schema.sha256, ["0" * 64], ["0" * 63, "0" * 65, "G" * 64, "A" * 64, 0]),
        (schema.version, ["0.1.0", "1.0.dev1+abc"], ["", "a b", "1\n", 1]),
        (one_of("a", 1, None), ["a", 1, None], ["b", True, 1.0, 0]),
        (either(whole(), text(2)), [1, "ab"], [1.5, "abc", None]),
        (listed(whole(), 2, 1), [[1], [1, 2]], [[], [1, 2, 3], [1, "a"], (1,), {}, None]),
        (row(whole(), text(1)), [[1, "a"]], [[1], [1, "a", 2], ["a", 1], {}]),
        (PERSON, [{"name": "a", "age": 3}, {"name": "a", "age": 3, "tags": ["x"]}], [{}, {"name": "a"}, [], None]),
        (mapping(whole(), 2), [{}, {"a": 1}], [{"a": 1, "b": 2, "c": 3}, {"a": "b"}, {"\ud800": 1}, []]),
        (json_value(2, 3), [None, 1, "a\n", [1, [2]], {"a": {"b": 1}}], [[[[1]]], [1, 2, 3, 4], math.nan, "\ud800"]),
    ],
)
def test_what_passes(shape: schema.Shape, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert shape(value) is None, value
        check_shape(value, shape)
    for value in bad:
        assert shape(value) is not None, value
        with pytest.raises(InvalidInput, match=r"^expected [ -~]{1,400}$"):
            check_shape(value, shape)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "a", "age": 200}, "age: a whole number from 0 to 150, got 200"),
        ({"name": "a"}, "age: a value, got None"),
        ({"name": "a", "age": 1, "x\n": 2}, "only the fields age, name, tags, got 'x\\n'"),
        (
            {"name": "a", "age": 1, "tags": ["x", "\x1b"]},
            "tags: 1: a printable text of at most 3 characters, got '\\x1b'",
        ),
        ({"name": "a", "age": 1, "tags": 7}, "tags: a list of 0 to 2, got 7"),
        ({"name": "a", "age": [1, 2]}, "age: a whole number from 0 to 150, got a list of 2"),
        ({"name": "a", "age": 10**400}, "age: a whole number from 0 to 150, got a whole number of 1329 bits"),
        (3, "the fields age, name, got 3"),
    ],
)
def test_a_mismatch_names_the_field(value: Any, message: str) -> None:
    assert str(PERSON(value)) == message


def test_of_several_shapes_the_one_that_fits_best_is_named() -> None:
    shape = either(one_of(None), PERSON)
    assert str(shape({"name": "a", "age": -1})) == "age: a whole number from 0 to 150, got -1"
    assert str(either(whole(0, 1), text(2))(1.5)) == (
        "a whole number from 0 to 1 or a printable text of at most 2 characters, got 1.5"
    )
