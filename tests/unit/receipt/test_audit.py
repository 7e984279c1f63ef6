"""verify detects faults in the modules that compute a certificate, because it recomputes every number."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.receipt import certificate, certify, certify_model, ledger, make_receipt, verify_receipt, write_receipt
from ftprl.receipt.document import digest

Patch = Callable[[pytest.MonkeyPatch], None]
COMPARED = {"own weights": {}, "box": {"radius": 0.7}, "other model": {"other": "other"}}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A contradiction of the theorem is not even certified; here verify itself must detect it.
    monkeypatch.setattr(certify, "broken_link", lambda numbers: None)
    rng = np.random.default_rng(3)
    rows = [f"{rng.choice([-1, 1])} | a{rng.integers(5)} b:{rng.normal():.3f}\n" for _ in range(20)]
    Path("log.vw").write_text("".join(rows))


def scaled(name: str, factor: float) -> Patch:
    """Return a patch that multiplies one number of every scale."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = certificate.scale_numbers

        def wrong(*arguments: Any) -> dict[str, float]:
            numbers = right(*arguments)
            return {**numbers, name: numbers[name] * factor}

        monkeypatch.setattr(certificate, "scale_numbers", wrong)

    return plant


def without_stability(monkeypatch: pytest.MonkeyPatch) -> None:
    right = certificate.scale_numbers

    def wrong(engine: Any, k: int, sums: Any) -> dict[str, float]:
        numbers, stability = right(engine, k, sums), engine.sums_of(k).stability
        return {**numbers, "bound": numbers["bound"] - 0.5 * stability, "theorem": numbers["theorem"] - stability}

    monkeypatch.setattr(certificate, "scale_numbers", wrong)


def excess_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = certificate.scale_numbers

    def wrong(*arguments: Any) -> dict[str, float]:
        numbers = right(*arguments)
        signs = {name: numbers[name] - 2 * numbers["excess"] for name in ("regret", "tight", "bound", "theorem")}
        return {**numbers, **signs, "excess": -numbers["excess"]}

    monkeypatch.setattr(certificate, "scale_numbers", wrong)


def ledger_changed(**change: Callable[[Any], Any]) -> Patch:
    """Return a patch that changes sums of the ledger, for every comparator."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = ledger.stream_ledger

        def wrong(*arguments: Any, **more: Any) -> Any:
            sums = right(*arguments, **more)
            return replace(sums, **{name: by(getattr(sums, name)) for name, by in change.items()})

        monkeypatch.setattr(ledger, "stream_ledger", wrong)

    return plant


def no_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "rounding_of", lambda *arguments: 0.0)


def floor_changed(change: Callable[[Any], Any]) -> Patch:
    """Return a patch that changes the lines of the floor."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = certificate.floor_lines

        def wrong(*arguments: Any) -> Any:
            lines = right(*arguments)
            return replace(lines, lines=tuple(change(line) for line in lines.lines))

        monkeypatch.setattr(certificate, "floor_lines", wrong)

    return plant


def steeper(norm: str, factor: float) -> Callable[[Any], Any]:
    return lambda line: replace(line, slopes=tuple((n, a * factor if n == norm else a) for n, a in line.slopes))


def other_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    right = certificate.floor_lines
    monkeypatch.setattr(certificate, "floor_lines", lambda *arguments: replace(right(*arguments), unit=2.0))


def other_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    right = certificate.against_baseline

    def wrong(progress: Any) -> dict[str, Any]:
        numbers = right(progress)
        return {**numbers, "baseline": numbers["baseline"] * (1 + 1e-6)}

    monkeypatch.setattr(certificate, "against_baseline", wrong)


def groups_of_half_the_regret(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**group, "regret": 0.5 * group["regret"]} for group in groups]


FAULTS: dict[str, Patch] = {
    "bound a tenth smaller": scaled("bound", 0.9),
    "regret a millionth smaller": scaled("regret", 1 - 1e-6),
    "tight a tenth smaller": scaled("tight", 0.9),
    "theorem a tenth smaller": scaled("theorem", 0.9),
    "no stability": without_stability,
    "no penalty": ledger_changed(penalty=lambda a: 0.0 * a),
    "S·u of the other sign": ledger_changed(Su=lambda a: -a),
    "no lead": ledger_changed(lead=lambda a: 0.0 * a - 1.0),
    "best bound in hindsight": ledger_changed(DR=lambda a: 1.5 * a),
    "best bound of one rate": ledger_changed(G=lambda a: 2.0 * a),
    "widths": ledger_changed(D2=lambda a: 2.0 * a),
    "groups": ledger_changed(groups=groups_of_half_the_regret),
    "rounding 0": no_rounding,
    "floor a millionth higher": floor_changed(lambda line: replace(line, start=line.start * (1 + 1e-6))),
    "floor that falls less, norm 1": floor_changed(steeper("1", 1 - 1e-6)),
    "floor that falls less, norm 2": floor_changed(steeper("2", 1 - 1e-6)),
    "floor that falls less, norm inf": floor_changed(steeper("inf", 1 - 1e-6)),
    "sum of squares of S": ledger_changed(S_squares=lambda a: 0.99 * a),
    "unit of lengths": other_unit,
    "baseline": other_baseline,
    "reach": ledger_changed(reach=lambda a: 0.0 * a, DR=lambda a: 1.0001 * a),
}


def verified(scale: Any, compared: dict[str, Any]) -> ftprl.receipt.Verdict:
    ftprl.train("log.vw", bits=6, scale=0.5, output="other")
    model = ftprl.train("log.vw", bits=6, scale=scale, receipt=True).model
    write_receipt("r.json", make_receipt(model, certify_model(model, **compared)))
    return verify_receipt("r.json", "log.vw", other=compared.get("other"))


@pytest.mark.parametrize(
    ("compared", "scale"), [(name, (0.1, (0.05, 0.4, 2.0))[i % 2]) for i, name in enumerate(COMPARED)]
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_certificate_is_found(
    fault: str, scale: Any, compared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verified(scale, COMPARED[compared]).confirmed
    FAULTS[fault](monkeypatch)
    assert not verified(scale, COMPARED[compared]).confirmed


@pytest.mark.parametrize("compared", COMPARED)
def test_an_excess_of_the_other_sign_is_found(compared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    excess_subtracted(monkeypatch)
    assert not verified((0.05, 0.4, 2.0), COMPARED[compared]).confirmed


def test_the_answer_about_learning_rates_is_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = certificate.rates_of
    for name in ("scale", "loss", "mixture", "guaranteed"):
        with monkeypatch.context() as patch:

            def wrong(*arguments: Any, name: str = name) -> Any:
                rates = right(*arguments)
                return None if rates is None else {**rates, name: rates[name] * (1 - 1e-6)}

            patch.setattr(certificate, "rates_of", wrong)
            refused = {one.name for one in verified((0.05, 0.4, 2.0), {}).refused}
            assert f"certificate.rates.{name}" in refused


def test_the_points_of_the_floor_are_recomputed() -> None:
    model = ftprl.train("log.vw", bits=6, receipt=True).model
    right = certify_model(model, exact="log.vw")
    assert right.points
    for name in ("length", "loss", "at_least"):
        points = [{**point, name: point[name] + 0.01} for point in right.points]
        write_receipt("r.json", make_receipt(model, right.with_points(points)))
        refused = {one.name for one in verify_receipt("r.json", "log.vw").refused}
        assert f"certificate.floor.points.0.{name}" in refused


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_a_wide_box_does_not_widen_what_may_differ(scale: Any) -> None:
    """With a box this wide the subtracted sums are 1e18 times the loss, but those of the floor are not."""
    model = ftprl.train("log.vw", bits=8, scale=scale, receipt=True, order="given").model
    made = make_receipt(model, certify_model(model, radius=1e20))
    write_receipt("r.json", made)
    assert verify_receipt("r.json", "log.vw").confirmed
    loss = made["certificate"]["loss"]
    for name in ("excess", "drift"):
        forged = copy.deepcopy(made)
        forged["certificate"][name] += 1e-4 * loss
        write_receipt("r.json", {**forged, "sha256": digest(forged)})
        assert [one.name for one in verify_receipt("r.json", "log.vw").refused] == [f"certificate.{name}"]
    made["certificate"]["floor"]["lines"][0]["start"] += 1e-4 * loss
    write_receipt("r.json", {**made, "sha256": digest(made)})
    assert [one.name for one in verify_receipt("r.json", "log.vw").refused] == ["certificate.floor.lines.0.start"]
