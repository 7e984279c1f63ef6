"""N-grams by enumeration: every choice of neighbouring features, as in Vowpal Wabbit, and all substrings of a word."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from oracles.hash_twin import K0, K1, MASK, feature_hash, mix


def gram_hash(hashes: Sequence[int]) -> int:
    """Return the hash of a gram from the hashes of its features."""
    gram = hashes[0]
    for other in hashes[1:]:
        gram = mix(gram + K1 & MASK) + other & MASK
    return mix(gram + len(hashes) * K0 & MASK)


def grams(count: int, words: int, skips: int) -> list[tuple[int, ...]]:
    """Return the positions of each gram's features among `count`: in order, with at most `skips` left out in
    between.
    """
    return [
        chosen
        for size in range(2, words + 1)
        for chosen in itertools.combinations(range(count), size)
        if chosen[-1] - chosen[0] - (size - 1) <= skips
    ]


def char_ngrams(word: str, shortest: int, longest: int) -> list[str]:
    """Return the character n-grams of a word between two blanks, or all of it if it is too short."""
    whole = f" {word} "
    if len(whole) < shortest:
        return [whole]
    return [whole[i : i + n] for n in range(shortest, longest + 1) for i in range(len(whole) - n + 1)]


def char_ngram_hash(group: str, characters: str, seed: int = 0) -> int:
    """Return the hash of a name in the namespace "group~"."""
    return feature_hash(characters.encode(), feature_hash(f"{group}~".encode(), seed))
