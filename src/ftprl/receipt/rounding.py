"""How far rounding can have moved the numbers of a certificate: a proof, derived in docs/receipt.md.

With e = 2^-53, n rows and m coordinates, all sums are float64 sums of at most n + m numbers each, one after another or
fewer, so that a sum is off by at most (n + m) e times the sum of the sizes of its terms. S of a coordinate is off by at
most n e times the sum of its |g|, which is at most 16 |slope| unit summed over the rows, and, since R counts every g,
at most sqrt(n k) R, where k is what rounding R n times can have hidden. What z lost in a cell is counted: it is the
`drift`, which is part of the bounds, but for a part of second order that the sizes of the steps bound.
"""

from __future__ import annotations

import math

EPSILON = 2.0**-53
OPERATIONS = 64  # roundings of a term, at most: each formula has less than half as many
LOST = 16  # what rounding z to a float32 lost, squared: at most 2^-49 of the size of a step
SECOND_ORDER = 1.01  # products of roundings
VALUE_PER_UNIT = 16.0 * (1 + 2.0**-20)  # no |value| is more units than this, with one scale or with several


def hidden_by_rounding(rows: int, float64: bool) -> float:
    """By which factor the sum of g² of a coordinate can be above R², since R was rounded once a row."""
    return min(math.exp(min(rows * (2.0**-51 if float64 else 2.0**-22), 700.0)), max(rows, 1))


def rounding_bound(
    *,
    rows: int,
    coordinates: float,
    float64: bool,
    linear: float,
    step: float,
    slopes: float,
    positive: float,
    size: float,
    reach: float,
    DR: float,
    losses: float,
) -> float:
    """The largest possible difference between stated and exact numbers of one scale.

    `linear`, `step` and `slopes` are the sums of RoundingSums, `positive` those without signs (sigma x², g² / Q); the
    sizes of all steps are at most step + 3 linear + 2 positive.
    `size`, `reach` and `DR` are of the ledger, and `losses` are the total losses of which the excess is the difference.
    """
    depth = rows + coordinates + OPERATIONS
    gradients = min(VALUE_PER_UNIT * slopes * reach, math.sqrt(rows * hidden_by_rounding(rows, float64)) * DR)
    sums = depth * (linear + positive + losses) + (coordinates + OPERATIONS) * size
    steps = (OPERATIONS + LOST + depth * 2.0**-22) * (step + 3.0 * linear + 2.0 * positive)
    return SECOND_ORDER * EPSILON * (sums + steps + (rows + OPERATIONS) * gradients)
