"""Parts of a certificate by column or namespace: they add up, and `verify` recomputes each."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ftprl import data, receipt
from ftprl.cli.app import run as command
from ftprl.linear import Model
from ftprl.receipt.cell_groups import group_of
from ftprl.receipt.document import digest
from ftprl.training import train


@pytest.fixture
def table(tmp_path: Path) -> Path:
    data.clicks.generate(1200, seed=3, path=tmp_path / "c.csv")
    return tmp_path / "c.csv"


def certified(path: Path, out: Path, **options: Any) -> tuple[Model, Any]:
    model = train(path, bits=14, receipt=True, output=out, **options).model
    return model, receipt.certify_model(model)


@pytest.mark.parametrize("options", [{}, {"scale": 0.1}, {"loss": "squared"}])
def test_parts_by_name_and_by_frequency_have_the_same_sums(
    table: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    _, certificate = certified(table, tmp_path / "m", label="click", **options)
    named, seen = certificate.named, certificate.coordinates
    assert {"I1", "C1", "(intercept)"} <= {group["name"] for group in named}
    assert sum(group["count"] for group in named) == sum(group["count"] for group in seen)
    for name in ("regret", "bound"):
        total = math.fsum(group[name] for group in seen)
        assert math.fsum(group[name] for group in named) == pytest.approx(total, rel=1e-9, abs=1e-9)
    path = tmp_path / "r"
    receipt.write_receipt(path, receipt.make_receipt(Model.load(tmp_path / "m"), certificate))
    verdict = receipt.verify_receipt(path, table)
    assert verdict.confirmed
    assert sum(check.name.startswith("certificate.named") for check in verdict.checks) >= 4 * len(named)


def test_a_forged_part_is_refused(table: Path, tmp_path: Path) -> None:
    model, certificate = certified(table, tmp_path / "m", label="click")
    for change in ("regret", "name", "count"):
        stated = receipt.make_receipt(model, certificate)
        entry = stated["certificate"]["named"][3]
        entry[change] = "C99" if change == "name" else entry[change] + 1
        stated["sha256"] = digest(stated)
        receipt.write_receipt(tmp_path / "r", stated)
        verdict = receipt.verify_receipt(tmp_path / "r", table)
        assert [check.name for check in verdict.checks if not check.ok] == [f"certificate.named.3.{change}"]


@pytest.mark.parametrize("column", ["price\u00a0net", "\x1b[31mred", "a\ttab", "\u202eright to left", "x" * 300])
def test_columns_with_any_character_are_verified_and_shown_with_escapes(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(f"user,{column},y\n" + "ann,1,1\nbob,2,0\neve,3,1\n" * 20)
    model, certificate = certified(path, tmp_path / "m", label="y")
    assert column[:200] in {group["name"] for group in certificate.named}
    stated = receipt.make_receipt(model, certificate)
    receipt.write_receipt(tmp_path / "r", stated)
    assert receipt.verify_receipt(tmp_path / "r", path).confirmed
    place = [group["name"] for group in certificate.named].index("user")
    stated["certificate"]["named"][place]["name"] = column[:200]
    stated["sha256"] = digest(stated)
    receipt.write_receipt(tmp_path / "forged", stated)
    assert command(["verify", str(tmp_path / "forged"), str(path)]) != 0
    assert command(["certify", str(tmp_path / "m")]) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).replace("\n", "").isprintable()


def test_namespaces_and_products(tmp_path: Path) -> None:
    path = tmp_path / "d.vw"
    path.write_text("1 |user ann |ad x:2 | plain\n-1 |user bob |ad y\n" * 40)
    model, certificate = certified(path, tmp_path / "m", interactions="user:ad", ngrams=2)
    counts = {group["name"]: group["count"] for group in certificate.named}
    assert counts == {"(default)": 1, "(intercept)": 1, "ad": 2, "user": 2, "user*ad": 2}
    receipt.write_receipt(tmp_path / "r", receipt.make_receipt(model, certificate))
    assert receipt.verify_receipt(tmp_path / "r", path).confirmed


def test_a_model_without_all_names_has_no_such_parts(table: Path, tmp_path: Path) -> None:
    for names in (0, 2000):
        model, certificate = certified(table, tmp_path / "m", label="click", names=names)
        assert certificate.named == ()
        assert "named" not in certificate.to_dict()
        receipt.write_receipt(tmp_path / "r", receipt.make_receipt(model, certificate))
        assert receipt.verify_receipt(tmp_path / "r", table).confirmed


def test_certify_shows_them(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certified(table, tmp_path / "m", label="click")
    assert command(["certify", str(tmp_path / "m")]) == 0
    printed = capsys.readouterr().out
    assert "by column or namespace" in printed
    assert "others, in --json" in printed
    assert command(["certify", str(tmp_path / "m"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["named"]) > 20


@pytest.mark.parametrize(
    ("name", "columns", "group"),
    [
        ("city=Oslo", ["city"], "city"),
        ("city", ["city"], "city"),
        ("a=b=c", ["a", "a=b"], "a=b"),
        ("when hour of week=Mon 3", ["when"], "when"),
        ("age<2.5", ["age"], "age"),
        ("city is missing", ["city"], "city"),
        ("body~ fr", ["body"], "body"),
        ("body=free ^ prize", ["body"], "body"),
        ("tags.0", ["tags"], "tags"),
        ("other=1", ["city"], "other"),
        ("news^sport", None, "news"),
        ("free ^ prize", None, "(default)"),
        ("^x", None, "(default)"),
    ],
)
def test_the_group_of_a_name(name: str, columns: list[str] | None, group: str) -> None:
    assert group_of(name, columns) == group


def test_the_group_of_a_product() -> None:
    assert group_of("user=a*b*ad=7", ["user", "ad"], products=True) == "user"
    assert group_of("a^x*b^y", None, products=True) == "a*b"
