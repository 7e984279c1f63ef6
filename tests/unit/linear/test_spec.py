"""The frozen description of a linear model."""

import json
import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from ftprl.errors import InvalidInput
from ftprl.linear import Spec
from ftprl.linear.spec import AUTO
from ftprl.losses import SCALAR_LOSSES


def test_defaults() -> None:
    s = Spec()
    assert (s.loss, s.dim, s.scale, s.beta, s.l1, s.l2, s.seed, s.tau) == ("logistic", 2**22, 0.1, 1.0, 0, 0, 0, 0.5)
    assert (s.lower, s.upper, s.intercept, s.float64, s.bounded) == (-math.inf, math.inf, True, False, False)


def test_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Spec().dim = 3  # type: ignore[misc]


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_every_loss(loss: str) -> None:
    s = Spec(loss=loss, tau=0.25)
    assert s.scalar_loss().name == loss
    assert loss != "quantile" or s.scalar_loss().value(0.0, 1.0) == 0.25


@pytest.mark.parametrize(
    "s",
    [
        Spec(),
        Spec("squared", 1, 2, 0, 1, 3, -1, 1, False, 2**64 - 1, True, 0.9),
        Spec(lower=0, dim=2**32),
        Spec(upper=0.0),
        Spec(scale="auto"),
        Spec(scale=(0.1, 0.2), beta=1, dropped_experts=("drift", "coin"), retired=(0.01, 0.4)),
        Spec("hinge", scale=[1, 2, 3], bounds={"x": (0, None)}),
    ],
)
def test_survives_json(s: Spec) -> None:
    text = json.dumps(s.to_dict(), allow_nan=False)
    assert Spec.from_dict(json.loads(text)) == s


def test_one_scale_or_several() -> None:
    assert Spec().scales == (0.1,)
    assert (Spec().several, Spec().stacked, Spec().beta) == (False, False, 1.0)
    auto = Spec(scale="auto")
    assert auto.scale == auto.scales == AUTO
    assert (auto.several, auto.stacked, auto.beta) == (True, True, 0.3)
    assert Spec(scale="auto", beta=1).beta == 1.0
    assert Spec(scale=(0.5,)) == Spec(scale=0.5)
    assert Spec(scale=np.array([1, 2])).scales == (1.0, 2.0)  # type: ignore[arg-type]
    assert Spec("squared", scale="auto").stacked
    assert not Spec("squared", scale=0.1).stacked
    assert not Spec(scale="auto", bounds={"x": (0, None)}).stacked
    assert not {"retired", "coin", "classes"} & Spec().to_dict().keys()


def test_numbers_become_plain() -> None:
    s = Spec(scale=1, l1=2, lower=-1)
    assert all(type(v) is float for v in (s.scale, s.l1, s.lower))
    assert s.bounded


def test_from_dict_takes_defaults_and_refuses_strangers() -> None:
    assert Spec.from_dict({"dim": 7}) == Spec(dim=7)
    with pytest.raises(InvalidInput, match="no field 'bits'; it has beta, bounds, calibrate, classes, coin, dense, "):
        Spec.from_dict({"bits": 7})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "cubic"}, "loss= needs a known name, got 'cubic'; use one of logistic, "),
        *(
            ({"loss": typed}, f"loss= needs a known name, got {typed!r}; did you mean {meant}")
            for meant, names in {
                "squared?": ("mse", "rmse", "l2", "squared_error"),
                "absolute?": ("mae", "l1"),
                "logistic?": ("log", "log_loss", "logloss", "binary", "logisitc"),
                "logistic or, for several classes, softmax?": ("cross_entropy",),
            }.items()
            for typed in names
        ),
        ({"dim": 0}, "dim= needs a whole number of at least 1, got 0; "),
        ({"dim": 2**32 + 1}, "dim= needs at most 2**32 cells, got 4294967297; "),
        ({"dim": 1.5}, "got 1.5; "),
        ({"scale": 0}, "scale= needs a finite number above 0, got 0.0; "),
        ({"scale": 1e31}, "scale= needs at most 1e30, got 1e+31; "),
        ({"beta": -1}, "beta= needs a finite number of at least 0, got -1.0; "),
        ({"l1": math.nan}, "l1= needs finite numbers, got l1=nan; "),
        ({"l2": "x"}, "l2= needs numbers, got 'x'; "),
        ({"lower": math.nan}, "lower= needs a number or infinity, got nan; "),
        (
            {"lower": 1, "upper": 0},
            "lower= needs to be at most upper=, with a number between, got lower=1.0 and upper=0.0; ",
        ),
        ({"lower": math.inf}, "got lower=inf"),
        ({"upper": -math.inf}, "upper=-inf; "),
        ({"upper": -1e31}, "upper= needs at most 1e30"),
        ({"intercept": 1}, "intercept= needs True or False, got 1; "),
        ({"float64": "yes"}, "float64= needs True or False, got 'yes'; "),
        ({"seed": -1}, "seed= needs a whole number from 0 to 2**64 - 1, got -1; "),
        ({"seed": True}, "got True; "),
        ({"tau": 1.0}, "tau needs a number above 0 and below 1, got 1.0; "),
        ({"scale": "best"}, "scale= needs a number, several, or 'auto', got 'best'; "),
        ({"scale": (2.0, 1.0)}, "scale= needs up to 16 numbers in increasing order, got 2, 1; "),
        ({"scale": (1.0, 1.0)}, "in increasing order, got 1, 1; "),
        ({"scale": ()}, "scale= needs up to 16 numbers"),
        ({"scale": tuple(range(1, 18))}, "16, ...; pass fewer."),
        ({"scale": (0.0, 1.0)}, "scale= needs a finite number above 0, got 0.0; "),
        ({"scale": (1.0, "x")}, "scale= needs numbers, got 'x'; "),
        ({"scale": [[1.0, 2.0]]}, "scale= needs a single number"),
        ({"scale": "auto", "retired": (0.02,)}, "retired= needs other scales than those in use, got (0.02,); "),
        ({"retired": (0.2,)}, "retired= needs several scales that stayed, got (0.2,) with one; "),
        ({"scale": "auto", "retired": 3}, "retired= needs the scales that left, got 3; "),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Spec(**options)
    assert message in str(caught.value)
