"""The feature hash in plain Python; src/core/support/hash.hpp has the reasons for its form."""

import math

MASK = (1 << 64) - 1
K0 = math.isqrt(2 << 128) & MASK  # the first 64 fractional bits of sqrt(2)
K1 = math.isqrt(3 << 128) & MASK  # and of sqrt(3)


def fold(a: int, b: int) -> int:
    product = a * b
    return (product >> 64) ^ (product & MASK)


def mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def feature_hash(data: bytes, seed: int = 0) -> int:
    h = mix(seed + K0 & MASK)
    for first in range(0, len(data), 8):
        block = data[first : first + 8].ljust(8, b"\0")
        h = fold(h ^ int.from_bytes(block, "little"), K1)
    return mix(h ^ len(data))
