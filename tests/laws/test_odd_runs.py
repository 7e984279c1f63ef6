"""Odd labels from end to end, for every loss: trained with a receipt, certified, verified and predicted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ftprl.cli.app import run
from ftprl.losses import SCALAR_LOSSES

Vector = np.ndarray
ROWS = 1300
NUMBER_LOSSES = tuple(name for name, loss in SCALAR_LOSSES.items() if loss.labels not in ("signs", "classes"))
CLASS_LOSSES = tuple(name for name, loss in SCALAR_LOSSES.items() if loss.labels == "signs")
SCALES = {"one scale": ["--scale", "0.3"], "eight scales": []}
CELLS = {"float32": [], "float64": ["--float64"]}
row = np.arange(1, ROWS + 1)

# Each stream as a function of labels of about 1, all positive, and of the row numbers, which begin with 1.
NUMBERS: dict[str, Callable[[Vector], Vector]] = {
    "as they are": lambda y: y,
    "constant": lambda y: np.full(ROWS, 7.3),
    "constant and tiny": lambda y: np.full(ROWS, 1e-150),
    "row 2 times 1e6": lambda y: np.where(row == 2, 1e6 * y, y),
    "row 1000 times 1e6": lambda y: np.where(row == 1000, 1e6 * y, y),
    "row 1 of 1e30": lambda y: np.where(row == 1, 1e30, y),
    "times 1000 at half": lambda y: np.where(row > ROWS // 2, 1000.0 * y, y),
    "a thousandth at half": lambda y: np.where(row > ROWS // 2, 0.001 * y, y),
    "all zeros": lambda y: np.zeros(ROWS),
    "zeros at first": lambda y: np.where(row > 700, y, 0.0),
    "from 1e-150 to 1e30": lambda y: y * 10.0 ** np.linspace(-150.0, 29.0, ROWS),
    "from 1e30 to 1e-150": lambda y: y * 10.0 ** np.linspace(29.0, -150.0, ROWS),
    "1e-150 to 1e30 in any order": lambda y: 10.0 ** np.random.default_rng(3).uniform(-150.0, 30.0, ROWS),
}
CLASSES: dict[str, Callable[[Vector], Vector]] = {
    "as they are": lambda y: np.where(y > 1.0, 1.0, -1.0),
    "positive alone": lambda y: np.ones(ROWS),
    "negative alone": lambda y: -np.ones(ROWS),
    "row 2 the only positive": lambda y: np.where(row == 2, 1.0, -1.0),
    "row 1000 the only positive": lambda y: np.where(row == 1000, 1.0, -1.0),
    "sorted": lambda y: np.where(row > ROWS // 2, 1.0, -1.0),
    "against the features at half": lambda y: np.where((y > 1.0) == (row > ROWS // 2), 1.0, -1.0),
}
WEIGHTS: dict[str, Callable[[], Vector]] = {
    "weights 1": lambda: np.ones(ROWS),
    "every third weight 0": lambda: np.where(row % 3 == 0, 0.0, 1.0),
    "weights from 1e-30 to 1e6": lambda: 10.0 ** np.random.default_rng(4).uniform(-30.0, 6.0, ROWS),
}


def streams_of(loss: str) -> dict[str, Callable[[Vector], Vector]]:
    if loss in CLASS_LOSSES:
        return CLASSES
    zeros = ("all zeros", "zeros at first") if loss == "gamma" else ()  # refused, below
    return {name: make for name, make in NUMBERS.items() if name not in zeros}


def rows_of(loss: str, stream: str, weights: str) -> tuple[Vector, Vector, Vector]:
    """Return three numbers per row, the labels and the weights of a stream; every other number may be negative."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((ROWS, 3)).round(3)
    y = np.exp(0.3 * x.sum(axis=1) + 0.1 * rng.standard_normal(ROWS))
    y = {**NUMBERS, **(CLASSES if loss in CLASS_LOSSES else {})}[stream](y)
    if loss in NUMBER_LOSSES and SCALAR_LOSSES[loss].labels == "numbers":
        y = np.where(row % 5 == 0, -y, y) if stream not in ("constant", "constant and tiny") else y
    return x, y, WEIGHTS[weights]()


def confirmed(folder: Path, rows: tuple[Vector, Vector, Vector], options: list[str]) -> Vector:
    """Train with a receipt, certify, verify against the data, and predict; return the predictions."""
    data, model, receipt, out = (str(folder / name) for name in ("d.vw", "m.ftprl", "r.json", "p.txt"))
    lines = (
        f"{y:.17g} {c:.17g} | a:{a} b:{b} c:{d}\n"
        for (a, b, d), y, c in zip(*(part.tolist() for part in rows), strict=True)
    )
    Path(data).write_text("".join(lines))
    assert run(["train", data, "-o", model, "--receipt", "--bits", "6", "-q", *options]) == 0
    assert run(["certify", model, "-o", receipt]) == 0
    assert run(["verify", receipt, data, "--model", model, "-q"]) == 0
    assert run(["predict", model, data, "-o", out]) == 0
    json.loads(Path(receipt).read_text(), parse_constant=lambda name: pytest.fail(f"{name} in the receipt"))
    return np.loadtxt(out)


def check(loss: str, stream: str, weights: str, options: list[str], folder: Path) -> None:
    rows = rows_of(loss, stream, weights)
    predicted = confirmed(folder, rows, ["--loss", loss, *options])
    assert predicted.shape == (ROWS,)
    assert np.isfinite(predicted).all()
    _, y, c = rows
    if loss not in NUMBER_LOSSES or not (c > 0).all():
        return
    low, high = float(np.min(y)), float(np.max(y))
    if loss == "poisson":
        low, high = 0.0, max(high, 1.0 / (ROWS + 1))  # the mean before any count is above 0: 1/(t+1)
    if loss in ("poisson", "gamma"):
        low, high = (float(np.clip(end, np.exp(-60.0), np.exp(60.0))) for end in (low, high))  # scores are cut to ±60
        low = 0.0 if loss == "poisson" else low
    slack = 1e-9 * max(abs(low), abs(high))
    assert (predicted >= low - slack).all()
    assert (predicted <= high + slack).all()


SHORT = ("1e-150 to 1e30 in any order", "row 1000 the only positive")


@pytest.mark.parametrize("loss", [*NUMBER_LOSSES, *CLASS_LOSSES])
def test_an_odd_run_is_confirmed(loss: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One odd stream per loss, with rows of weight 0; the slow sweep has all streams."""
    check(loss, next(name for name in SHORT if name in streams_of(loss)), "every third weight 0", [], tmp_path)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(
    ("loss", "stream"), [(loss, name) for loss in (*NUMBER_LOSSES, *CLASS_LOSSES) for name in streams_of(loss)]
)
def test_every_odd_run_is_confirmed(
    loss: str, stream: str, scales: str, cells: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for weights in WEIGHTS if stream in ("as they are", *SHORT) else ("weights 1",):
        (folder := tmp_path / weights).mkdir()
        check(loss, stream, weights, [*SCALES[scales], *CELLS[cells]], folder)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("loss", [*NUMBER_LOSSES, *CLASS_LOSSES])
def test_rows_that_all_have_weight_0_are_refused_in_one_line(
    loss: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, model = tmp_path / "d.vw", tmp_path / "m.ftprl"
    data.write_text("1 0 | a:1\n1 0 | a:2\n")
    assert run(["train", str(data), "-o", str(model), "--receipt", "--bits", "6", "-q", "--loss", loss]) == 2
    assert len(capfd.readouterr().err.strip().splitlines()) == 1
    assert not model.exists()


REFUSED = [
    ("squared", "1e31"), ("absolute", "-1e31"), ("quantile", "1e300"), ("huber", "1e31"), ("poisson", "1e31"),
    ("gamma", "1e31"), ("poisson", "-1"), ("gamma", "0"), ("gamma", "-1"), ("squared", "inf"), ("hinge", "2"),
    ("squared_hinge", "3"), ("logistic", "2"),
]  # fmt: skip


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("loss", "label"), REFUSED)
def test_a_label_that_a_loss_cannot_have_is_refused_in_one_line(
    loss: str, label: str, scales: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "d.vw"
    data.write_text(f"1 | a:1\n1 | a:2\n{label} | a:1\n")
    model = tmp_path / "m.ftprl"
    assert run(["train", str(data), "-o", str(model), "--receipt", "--bits", "6", "-q", "--loss", loss,
                *SCALES[scales]]) == 2  # fmt: skip
    errors = capfd.readouterr().err.strip().splitlines()
    assert len(errors) == 1
    assert "label" in errors[0]
    assert not model.exists()


# ---- several classes ----

NAMED: dict[str, Callable[[], Vector]] = {
    "as they are": lambda: 1 + np.random.default_rng(5).integers(0, 3, ROWS),
    "a single class": lambda: np.full(ROWS, 2),
    "row 2 of another class": lambda: np.where(row == 2, 3, 1),
    "row 1000 of another class": lambda: np.where(row == 1000, 3, 1),
    "sorted": lambda: 1 + (row > ROWS // 3) + (row > 2 * ROWS // 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("stream", NAMED)
def test_every_odd_run_of_several_classes_is_confirmed(
    stream: str, scales: str, cells: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(2).standard_normal((ROWS, 3)).round(3)
    for weights in WEIGHTS:
        (folder := tmp_path / weights).mkdir()
        options = ["--loss", "softmax", "--classes", "3", *SCALES[scales], *CELLS[cells]]
        predicted = confirmed(folder, (x, NAMED[stream]().astype(np.float64), WEIGHTS[weights]()), options)
        assert len(predicted) == ROWS
        assert np.isfinite(predicted).all()
    assert "Traceback" not in capfd.readouterr().err
