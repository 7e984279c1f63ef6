"""The tables of src/core/readers/unicode.hpp, made from Python's own: `python tests/oracles/unicode_twin.py > FILE`."""

import unicodedata

VERSION = "14.0.0"  # that of Python 3.11; the tables stay when Python moves on, so that words keep their hashes


def is_word(c: int) -> bool:
    return chr(c).isalnum() or c == 0x5F


def lower(c: int) -> int:
    """Return the simple lower case, one character to one; the first if Python has two."""
    return ord(chr(c).lower()[0])


def word_ranges() -> list[tuple[int, int]]:
    """Return first and last of each run of word characters from 0x80 on."""
    ranges: list[tuple[int, int]] = []
    for c in range(0x80, 0x110000):
        if is_word(c):
            if ranges and ranges[-1][1] == c - 1:
                ranges[-1] = (ranges[-1][0], c)
            else:
                ranges.append((c, c))
    return ranges


def lower_ranges() -> list[tuple[int, int, int, int]]:
    """Return first, last, step and shift of each run of letters whose lower case is another letter."""
    runs: list[tuple[int, int, int, int]] = []
    for c in range(0x80, 0x110000):
        shift = lower(c) - c
        if shift == 0:
            continue
        if runs:
            first, last, step, before = runs[-1]
            if before == shift and c - last in (1, 2) and (first == last or c - last == step):
                runs[-1] = (first, c, c - last, shift)
                continue
        runs.append((c, c, 1, shift))
    return runs


def fill(items: list[str]) -> str:
    """Return the items in lines of at most 118 characters."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 1 > 118:
            lines.append(line)
            line = "   "
        line += " " + item
    return "\n".join([*lines, line])


def header() -> str:
    """The whole file."""
    words = fill([f"{{{a:#x}, {b:#x}}}," for a, b in word_ranges()])
    lowers = fill([f"{{{a:#x}, {b:#x}, {s}, {d}}}," for a, b, s, d in lower_ranges()])
    return f"""// Made by tests/oracles/unicode_twin.py from Unicode {VERSION}; the twin test compares the two.
#pragma once

#include <cstdint>

// clang-format off
namespace ftprl::detail {{

struct WordRange {{
    std::uint32_t first, last;
}};

// Letters and digits from U+0080 on.
inline constexpr WordRange WORDS[] = {{
{words}
}};

struct LowerRange {{
    std::uint32_t first, last, step;
    std::int32_t shift;
}};

// Letters from U+0080 on whose lower case is another one.
inline constexpr LowerRange LOWERS[] = {{
{lowers}
}};

}}  // namespace ftprl::detail
"""


if __name__ == "__main__":
    assert unicodedata.unidata_version == VERSION
    print(header(), end="")
