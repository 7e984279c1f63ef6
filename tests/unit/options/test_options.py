"""One table of options: the command line, `train`, `Spec`, the readers and the docs agree with it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl import data
from ftprl.cli.app import run
from ftprl.cli.train import train as train_command
from ftprl.linear import Spec
from ftprl.losses import LOSSES
from ftprl.options import BY_NAME, COMMAND, GROUPS, TRAIN, Option, names
from ftprl.training.options import RUN, RunOptions

DOCS = Path(__file__).resolve().parents[3] / "docs"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_train_has_every_option_in_order_and_none_is_set() -> None:
    _, y, *parameters = inspect.signature(ftprl.train).parameters.values()
    assert (y.name, y.default) == ("y", None)
    assert [parameter.name for parameter in parameters] == [option.name for option in TRAIN]
    assert all(parameter.kind is parameter.KEYWORD_ONLY and parameter.default is None for parameter in parameters)


@pytest.mark.parametrize("option", TRAIN, ids=lambda option: option.name)
def test_help_of_train_has_a_line_for_each_option(option: Option) -> None:
    assert squeezed(f"- `{option.name}`: {option.line()}") in squeezed(inspect.getdoc(ftprl.train) or "")


def test_every_option_of_train_has_a_default() -> None:
    assert [option.name for option in TRAIN if option.default is None] == []


def test_the_command_has_every_option_in_order() -> None:
    _, *parameters = inspect.signature(train_command).parameters
    known = [name if name in BY_NAME else name.removeprefix("no_") for name in parameters]
    assert known == [option.name for option in COMMAND]


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([command, "--help"]) == 0
    return capsys.readouterr().out


def test_help_of_the_command_has_groups(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("train", capsys)
    titles = [f"\n{group.capitalize()} options:\n" for group in GROUPS]
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
    positions = [text.index(f"\n  {spelling} ") for spelling in spellings(text)]
    assert positions == sorted(positions)
    for option in COMMAND:
        line = option.line(lambda name: ", ".join(LOSSES) if name == "losses" else BY_NAME[name].typed)
        assert squeezed(line) in squeezed(text)


def spellings(text: str) -> list[str]:
    """The options in the order of the table, each as it begins its line."""
    begun = {line.split()[0] for line in text.splitlines() if re.match("  -", line)}
    known = [[f"{s}{end}" for s in (option.short, option.typed) for end in (",", "")] for option in COMMAND]
    return [next(s for s in some if s in begun) for some in known]


def test_spec_has_the_options_of_the_model() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(Spec)}
    # What was dropped is a result, no option; of classes an option may give the labels.
    assert set(names("Spec")) == set(fields) - {"retired", "coin_retired", "classes"}
    for name in set(names("Spec")) - {"scale", "beta", "dim", "lower", "upper", "bounds", "coin", "dense"}:
        assert BY_NAME[name].default in (str(fields[name]), f"{fields[name]:g}" if fields[name] == 0 else "")
    assert BY_NAME["dim"].default == "2^22"
    assert fields["dim"] == 2**22 == 2 ** int(BY_NAME["bits"].default or "")
    assert (BY_NAME["lower"].default, fields["lower"]) == ("none", -float("inf"))
    assert (BY_NAME["upper"].default, fields["upper"]) == ("none", float("inf"))
    for name in ("coin", "dense"):  # a spec has them where it says so, as files of earlier versions do not
        assert (BY_NAME[name].default, fields[name]) == ("True", False)
    assert BY_NAME["beta"].default == f"{Spec(scale='auto').beta}; {Spec().beta:g} with a single scale"


def test_the_scale_is_auto_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a\n-1 | b\n")
    assert BY_NAME["scale"].default == "auto"
    assert ftprl.train(tmp_path / "a.vw", dim=8).model.engine.spec == Spec(dim=8, scale="auto", coin=True, dense=True)


def test_the_readers_have_the_options_of_the_data() -> None:
    parameters = inspect.signature(data.open).parameters
    assert set(names("open")) <= set(parameters)
    rest = set(parameters) - set(names("open"))
    own = {"data", "y", "dim", "seed", "intercept", "loss", "dtype", "labelled", "block_size", "names"}
    assert rest == own | {"columns", "other_columns", "order", "sampled"}
    for name in ("header", "on_bad_row", "max_row"):
        assert BY_NAME[name].default == str(parameters[name].default)
    for name in set(names("open")) - {"header", "on_bad_row", "max_row"}:
        assert parameters[name].default in (None, ())


def test_the_options_of_a_run() -> None:
    fields = {name: getattr(RunOptions(), name) for name in RUN}
    assert set(fields) <= set(names("train"))
    for name in ("passes", "retire"):
        assert BY_NAME[name].default == str(fields[name])
    assert BY_NAME["every"].default == f"{RunOptions().every.seconds:g}s"


def test_every_option_reads_well() -> None:
    for option in COMMAND:
        for text in filter(None, (option.help, option.switch_help)):
            assert text[0].isupper(), option.name
            assert not text.removesuffix("...").endswith("."), option.name
        assert option.group in GROUPS


def described(option: Option) -> str:
    """The help of an option; that of a switch as it is on the command line, and what it is in Python."""
    if option.switch_help is None:
        return option.line().replace(BY_NAME["loss"].line(), option.line(lambda _: ", ".join(LOSSES)))
    if option.metavar:  # takes a value on the command line too
        return option.switch_help
    return f"{option.switch_help} (`{option.name}={not option.typed.startswith('--no-')}`)"


def tables() -> str:
    """The tables of docs/options.md."""
    lines: list[str] = []
    for group in GROUPS:
        lines += [f"## {group.capitalize()}", "", "| command line | Python | |", "|---|---|---|"]
        for option in (option for option in BY_NAME.values() if option.group == group):
            typed = "" if option.name == "listener" else f"`{(option.switch or option.typed).replace('/', '` `')}`"
            python = "" if option.home == "cli" else f"`{option.name}=`"
            line = described(option).replace("|", "\\|")
            lines.append(f"| {typed} | {python} | {line} |")
        lines.append("")
    return "\n".join(lines)


def test_the_docs_have_the_table() -> None:
    assert tables() in (DOCS / "options.md").read_text()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"beta": -1.0}, "needs a finite number of at least 0, got -1.0"),
    ({"l1": float("nan")}, "needs finite numbers, got l1=nan"),
    ({"passes": 0}, "needs a whole number of at least 1, got 0"),
    ({"holdout": 1}, "needs a whole number from 2 to 2**53, or 0 for none, got 1"),
    ({"every": "soon", "checkpoint": "c"}, "needs a number of rows or a time such as 30s, 5m or 1h, got 'soon'"),
    ({"bits": 40}, "needs a whole number from 1 to 32, got 40"),
    ({"seed": -1}, "needs a whole number from 0 to 2**64 - 1, got -1"),
    ({"output": "missing/m"}, "needs a folder that can be written"),
    ({"threads": -1}, "needs a whole number from 0 to 1024, got -1"),
    ({"lower": 2.0, "upper": 1.0}, "needs to be at most"),
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
