"""A loss in words, beside its baseline: the loss of predicting each row from the labels before it alone."""

from __future__ import annotations

import math

_LEAST_IMPROVEMENT = 1e-6  # percent: below it the difference of two losses has too few digits for a deviance


def compared(
    loss: float, baseline: float | None, improvement: float | None, *, rmse: bool = False, deviance: bool = False
) -> str:
    """Return a mean loss, the baseline's, and by how much it is better; without a baseline the loss alone.

    With `rmse` (squared loss, ½(s - y)²) each mean is followed by its root mean squared error, with `deviance` (Poisson
    and gamma loss) by its mean deviance.

    >>> compared(0.45, 0.5, 10.0)
    '0.450000, baseline 0.500000, 10.0 % better'
    >>> compared(2.0, 8.0, 75.0, rmse=True)
    '2.000000 (RMSE 2), baseline 8.000000 (RMSE 4), 75.0 % better'
    >>> compared(-3.0, -2.5, 50.0, deviance=True)
    '-3.000000 (deviance 1), baseline -2.500000 (deviance 2), 50.0 % better'
    """
    beside = deviances(loss, baseline, improvement) if deviance else None
    text = _mean(loss, rmse, None if beside is None else beside[0])
    if baseline is None or not math.isfinite(baseline):
        return text
    text += f", baseline {_mean(baseline, rmse, None if beside is None else beside[1])}"
    return text if improvement is None or not math.isfinite(improvement) else f"{text}, {better(improvement)}"


def worse_than_baseline(loss: float, baseline: float) -> str:
    """Return a warning that a mean loss is above the baseline's, and what to do about it.

    >>> print(worse_than_baseline(3.5, 0.7)[:66])
    the mean loss, 3.500000, is above the baseline's, 0.700000: so far
    """
    return (
        f"the mean loss, {digits(loss)}, is above the baseline's, {digits(baseline)}: so far the features predict no"
        " better than the labels alone; check label= and loss=, leave out columns whose values are all different with"
        " ignore=, leave scale= at its default, or train on more rows"
    )


def better(improvement: float) -> str:
    """Return an improvement in percent as words.

    >>> better(12.345), better(-3.0)
    ('12.3 % better', '3.0 % worse')
    """
    return f"{abs(improvement):.1f} % {'worse' if improvement < 0.0 else 'better'}"


def root_mean_square(loss: float) -> float:
    """Return the root mean squared error of a mean squared loss ½(s - y)²; NaN for a negative number.

    >>> root_mean_square(2.0)
    2.0
    """
    return math.sqrt(2.0 * loss) if loss >= 0.0 else math.nan


def deviances(loss: float, baseline: float | None, improvement: float | None) -> tuple[float, float] | None:
    """Return the mean deviances of a model with Poisson or gamma loss and of its baseline; None if unknown.

    A deviance is twice the excess over the least loss of any predictions. The improvement is a percentage of the
    possible gain, so the least loss follows from the three numbers, unless the improvement is 0.

    >>> deviances(-3.0, -2.5, 50.0)
    (1.0, 2.0)
    """
    if baseline is None or improvement is None or not math.isfinite(baseline) or not math.isfinite(improvement):
        return None
    if abs(improvement) < _LEAST_IMPROVEMENT:
        return None
    gained = baseline - loss
    possible = 100.0 * gained / improvement
    return 2.0 * (possible - gained), 2.0 * possible


def digits(loss: float) -> str:
    """Return a mean loss in at most ten characters.

    >>> digits(0.503782), digits(-606.659156), digits(4488273.32), digits(13730440.0)
    ('0.503782', '-606.6592', '4488273', '1.373e+07')
    """
    size = abs(loss)
    return f"{loss:.6f}" if size < 1e2 else f"{loss:.7g}" if size < 1e7 else f"{loss:.4g}"


def _mean(loss: float, rmse: bool, deviance: float | None) -> str:
    """Return a mean loss, followed by its RMSE or deviance if there is one."""
    if deviance is not None:
        return f"{digits(loss)} (deviance {deviance:.6g})"
    return f"{digits(loss)} (RMSE {root_mean_square(loss):.6g})" if rmse else digits(loss)
