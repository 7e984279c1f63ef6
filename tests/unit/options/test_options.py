"""The table of options: the command line, `train`, `Spec`, the readers and the docs agree with it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl import data
from ftprl.cli.app import run
from ftprl.cli.train import train as train_command
from ftprl.linear import Spec
from ftprl.losses import LOSSES
from ftprl.options import BY_NAME, COMMAND, COMMON, GROUPS, TABLE, Option, names
from ftprl.options.checks import check_together
from ftprl.training.run_settings import RunSettings

DOCS = Path(__file__).resolve().parents[3] / "docs"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_train_has_every_option_in_order_and_none_is_set() -> None:
    _, y, *parameters = inspect.signature(ftprl.train).parameters.values()
    assert (y.name, y.default) == ("y", None)
    assert [parameter.name for parameter in parameters] == [option.name for option in TABLE]
    assert all(parameter.kind is parameter.KEYWORD_ONLY and parameter.default is None for parameter in parameters)


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_help_of_train_has_a_line_for_each_option(option: Option) -> None:
    assert squeezed(f"- `{option.name}`: {option.line()}") in squeezed(inspect.getdoc(ftprl.train) or "")


def test_every_option_of_train_has_a_default() -> None:
    assert [option.name for option in TABLE if option.default is None] == []


def test_the_command_has_every_option_in_order() -> None:
    data, *parameters = [parameter.name for parameter in train_command.params]
    assert data == "data"
    assert parameters == [*(option.name for option in COMMAND), "as_json", "quiet"]


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([command, "--help"]) == 0
    return capsys.readouterr().out


def test_help_of_the_command_has_groups(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("train", capsys)
    titles = ["\nCommon options:\n", *(f"\n{group.capitalize()} options:\n" for group in GROUPS)]
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
    ordered = [*COMMON, *(option.name for option in COMMAND if option.name not in COMMON)]
    begun = {line.split()[0].rstrip(","): text.index(f"\n{line}") for line in text.splitlines() if line[:3] == "  -"}
    positions = [begun[BY_NAME[name].short or BY_NAME[name].typed] for name in ordered]
    assert positions == sorted(positions)
    for option in COMMAND:
        line = option.line(lambda name: ", ".join(LOSSES) if name == "losses" else BY_NAME[name].typed)
        assert squeezed(line) in squeezed(text)


def test_the_help_begins_with_the_dozen_options_that_people_use(capsys: pytest.CaptureFixture[str]) -> None:
    first = help_of("train", capsys).split("Common options:\n")[1].split("\n\n")[0]
    assert len(COMMON) == 12
    assert len(re.findall("^  -", first, re.MULTILINE)) == 12


# Settings of a model that `train` derives from others.
NO_OPTION = {"dim", "beta", "share", "stack", "level", "coin", "dense", "lower", "upper"}


def test_spec_has_the_options_of_the_model() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(Spec)}
    # Dropped scales are a result, not an option; an option may give the labels of classes.
    own = set(names("model")) - {"bits", "admit", "classes"}
    assert own == set(fields) - {"retired", "retired_row", "dropped_experts", "classes", *NO_OPTION}
    for name in own - {"scale", "bounds"}:
        assert BY_NAME[name].default in (str(fields[name]), f"{fields[name]:g}" if fields[name] == 0 else "")
    assert fields["dim"] == 2**22 == 2 ** int(BY_NAME["bits"].default or "")


def test_the_scale_is_auto_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a\n-1 | b\n")
    assert BY_NAME["scale"].default == "auto"
    assert ftprl.train(tmp_path / "a.vw", bits=3).model.engine.spec == Spec(dim=8, scale="auto", coin=True, dense=True)


def test_the_readers_have_the_options_of_the_data() -> None:
    parameters = inspect.signature(data.open).parameters
    assert set(names("data")) <= set(parameters)
    rest = set(parameters) - set(names("data"))
    own = {"data", "y", "dim", "seed", "intercept", "loss", "dtype", "labelled", "block_size", "names"}
    assert rest == own | {"columns", "other_columns", "order", "sampled", "features", "namespaces"}
    for name in ("header", "on_bad_row", "max_row"):
        assert BY_NAME[name].default == str(parameters[name].default)
    for name in set(names("data")) - {"header", "on_bad_row", "max_row"}:
        assert parameters[name].default in (None, ())


def test_the_options_of_a_run() -> None:
    fields = {name: getattr(RunSettings(), name) for name in inspect.signature(RunSettings).parameters}
    assert set(fields) <= set(names("run"))
    assert len(COMMAND) <= 52
    assert BY_NAME["passes"].default == str(fields["passes"])
    assert BY_NAME["every"].default == f"{RunSettings().every.seconds:g}s"


def test_every_option_reads_well() -> None:
    for option in COMMAND:
        for text in filter(None, (option.help, option.switch_help)):
            assert text[0].isupper(), option.name
            assert not text.removesuffix("...").endswith("."), option.name
        assert option.group in GROUPS


def test_the_docs_have_the_table() -> None:
    page = runpy.run_path(str(DOCS.parent / "scripts" / "options_page.py"))
    assert (DOCS / "options.md").read_text().endswith(page["tables"]()), "run python scripts/options_page.py"


# For each option, a value that differs from the default.
USED: dict[str, Any] = {"bounds": ("x",), "passes": 2, "calibrate": "platt", "engine": "ray"}
PAIRS = [(option, other) for option in TABLE for other in option.excludes]


@pytest.mark.parametrize(("option", "other"), PAIRS, ids=lambda value: getattr(value, "name", value))
def test_options_that_exclude_each_other(option: Option, other: str) -> None:
    name = option.name
    needed = (*option.requires, *BY_NAME[other].requires)
    values = {used: USED.get(used, 1) for used in (name, other, *needed)}
    with pytest.raises(ftprl.InvalidInput, match=f"^{name}= .*; ") as error:
        check_together(values)
    assert set(error.value.options) == {name, other}
    check_together({**values, name: option.off})
    check_together({**values, other: BY_NAME[other].off})
    assert name not in BY_NAME[other].excludes, "one sentence for a pair"


@pytest.mark.parametrize("option", [option for option in TABLE if option.requires], ids=lambda option: option.name)
def test_options_that_need_another(option: Option) -> None:
    for other in option.requires:
        with pytest.raises(ftprl.InvalidInput, match=f"^{option.name}= .*{other}") as error:
            check_together({option.name: 1, other: BY_NAME[other].off})
        assert set(error.value.options) == {option.name, other}
        check_together({option.name: 1, other: USED.get(other, 1)})


PASSED: dict[str, Any] = {"bounds": ["x=0:1"], "calibrate": "platt", "admit": 1, "delay": 5, "passes": 2, "every": 5}
PASSED |= {"order": "random", "predictions": "p.txt"}
REFUSED = [({name, other}, name) for name, other in ((option.name, other) for option, other in PAIRS)]
REFUSED += [({option.name}, option.name) for option in TABLE if option.requires]


@pytest.mark.parametrize(("used", "name"), REFUSED, ids=[" ".join(sorted(used)) for used, _ in REFUSED])
def test_what_does_not_go_together_is_refused_in_python_and_on_the_command_line(
    used: set[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.vw").write_text("1 | x y\n-1 | y\n" * 9)
    values = {one: PASSED.get(one, True) for one in sorted(used)}
    with pytest.raises(ftprl.InvalidInput, match=f"^{name}= ") as error:
        ftprl.train("a.vw", bits=4, **values)
    assert {name} <= set(error.value.options)
    typed = ["train", "a.vw", "-o", "m", "-q", "--bits", "4"]
    for one, value in values.items():
        spelled = BY_NAME[one].typed
        typed += [spelled] if value is True else [spelled, *(value if isinstance(value, list) else [str(value)])]
    assert run(typed) == 2
    assert capsys.readouterr().err.startswith(f"ftprl: {BY_NAME[name].typed} ")
    assert not Path("m").exists()


def test_every_option_that_is_named_is_one() -> None:
    for option in TABLE:
        assert {*option.excludes, *option.requires} <= set(BY_NAME)


ADDED = """
import inspect, re, runpy, sys
from pathlib import Path
from types import ModuleType

root, page = Path(sys.argv[1]), Path(sys.argv[1], "docs/architecture.md").read_text()
blocks = re.findall(r'^```python title="in (\\w+) of ([^"]+)"\\n(.*?)^```$', page, re.DOTALL | re.MULTILINE)
modules = {}
for owner, path, text in blocks:
    source = (root / path).read_text()
    place = source.index('\\n\\n', source.index(f"class {owner}(")) + 2  # below its docstring
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    module = modules[name] = ModuleType(name)
    if name.endswith("run_settings"):
        import ftprl.options.option
        sys.modules["ftprl.options.table"] = modules["ftprl.options.table"]
        del sys.modules["ftprl.options"], sys.modules["ftprl.options.keywords"], sys.modules["ftprl.options.checks"]
        import ftprl.options
        sys.modules[name] = module
    else:
        import ftprl.options.checks, ftprl.options.keywords
    exec(compile(source[:place] + text + source[place:], path, "exec"), module.__dict__)

import ftprl
from ftprl.cli.app import run
from ftprl.options.checks import check_together
from ftprl.training.run_settings import RunSettings

assert "patience: int | None = None" in str(inspect.signature(ftprl.train))
assert "- `patience`: Number of passes without" in ftprl.train.__doc__
assert RunSettings.of({**dict.fromkeys(RunSettings._fields), "patience": 3}, None, receipt=False).patience == 3
assert "| `--patience` | `patience=` |" in runpy.run_path(str(root / "scripts/options_page.py"))["tables"]()
Path("a.vw").write_text("1 | a\\n-1 | b\\n" * 9)
assert run(["train", "--help"]) == 0
assert run(["train", "a.vw", "-o", "m", "-q", "--patience", "2"]) == 0
assert run(["train", "a.vw", "-o", "m", "-q", "--patience", "0"]) == 2
assert run(["train", "a.vw", "-o", "m", "-q", "--patience", "2", "--receipt"]) == 2
"""


def test_an_option_is_added_in_two_files_and_what_reads_it(tmp_path: Path) -> None:
    """With the example of docs/architecture.md the command line, Python, the docs, the settings and the checks have
    an option.
    """
    done = subprocess.run(
        [sys.executable, "-c", ADDED, str(DOCS.parent)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--patience INT" in done.stdout
    assert done.stderr.splitlines() == [
        "ftprl: --patience needs a whole number from 1 to 100, got 0; pass one.",
        "ftprl: --patience compares passes, which a receipt does not, got both; drop one.",
    ]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"l1": float("nan")}, "needs finite numbers, got l1=nan"),
    ({"passes": 0}, "needs a whole number of at least 1, got 0"),
    ({"holdout": 1}, "needs a whole number from 2 to 2**53, or 0 for none, got 1"),
    ({"every": "soon", "checkpoint": "c"}, "needs a number of rows or a time such as 30s, 5m or 1h, got 'soon'"),
    ({"bits": 40}, "needs a whole number from 1 to 32, got 40"),
    ({"seed": -1}, "needs a whole number from 0 to 2**64 - 1, got -1"),
    ({"output": "missing/m"}, "needs a folder that can be written"),
    ({"threads": -1}, "needs a whole number from 0 to 1024, got -1"),
    ({"admit": 0}, "needs a whole number from 1 to 254, got 0"),
]


@pytest.mark.parametrize(("options", "why"), WRONG, ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_an_error_names_the_option_as_it_was_typed(
    options: dict[str, Any],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.vw").write_text("1 | a\n-1 | b\n")
    name = next(iter(options))
    with pytest.raises(ftprl.InvalidInput) as error:
        ftprl.train("a.vw", **options)
    assert str(error.value).startswith(f"{name}= {why}")
    typed = [text for key, value in ({"output": "m"} | options).items() for text in (f"--{key}", str(value))]
    assert run(["train", "a.vw", "-q", *typed]) == 2
    assert capsys.readouterr().err.startswith(f"ftprl: --{name} {why}")
