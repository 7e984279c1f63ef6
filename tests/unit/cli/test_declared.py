"""What is read without Typer is what Typer reads."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl.cli.predict
import ftprl.cli.train
from ftprl.cli.app import run
from ftprl.cli.declared import arguments_of
from ftprl.cli.full import call

COMMANDS: dict[str, Callable[..., Any]] = {"train": ftprl.cli.train.train, "predict": ftprl.cli.predict.predict}


def read_by_typer(name: str, typed: list[str]) -> dict[str, Any]:
    """The keywords with which Typer calls a command."""
    heard: list[dict[str, Any]] = []
    command = COMMANDS[name]
    # A function with the same parameters, which only writes them down.
    parameters = inspect.signature(command).parameters
    code = f"def {name}({_declaration(parameters)}):\n    heard.append(dict(locals()))\n"
    made: dict[str, Any] = {"heard": heard, "defaults": {n: p.default for n, p in parameters.items()}}
    exec(code, made)
    made[name].__annotations__ = dict(command.__annotations__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"ftprl.cli.{name}.{name}", made[name])
        call([name, *typed])
    return heard[0]


def _declaration(parameters: Any) -> str:
    words, is_keyword = [], False
    for name, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            words.append("*")
            is_keyword = True
        has_default = parameter.default is not parameter.empty
        words.append(f"{name}=defaults[{name!r}]" if has_default else name)
    return ", ".join(words)


TYPED = {
    "train": (
        "a.vw -o m",
        "a.vw b.vw --output=m -q --json --bits 10 --scale 0.1 --no-names",
        "-o m a.csv --label y --ignore a,b --ignore c --numeric d --sep tab --no-header --l1 1e-3 --seed 7",
        "- -o m --receipt --holdout 10 --passes 3 --events e.jsonl --cache c --bound a*=0: --interactions a:b",
        "a.vw -o - --no-receipt --tau .5 --loss quantile --lower=-1 --upper 1 --names 64MB",
        "a=b.vw -o m=n --label= --checkpoint c --every 30s --resume r --threads 2",
    ),
    "predict": ("m a.vw", "m a.vw b.vw -o p --raw --format vw", "m - --append -o p.csv --probabilities --max-row 5"),
}


@pytest.mark.parametrize(("name", "typed"), [(name, typed) for name in TYPED for typed in TYPED[name]])
def test_the_short_way_reads_what_typer_reads(name: str, typed: str) -> None:
    actual = arguments_of(COMMANDS[name], typed.split())
    expected = read_by_typer(name, typed.split())
    if "--lower=-1" in typed:
        assert actual is None  # a value that begins with a hyphen is left to Typer
    else:
        assert actual == expected
        assert {key: type(value) for key, value in actual.items()} == {k: type(v) for k, v in expected.items()}


WORDS = st.sampled_from(
    [
        *("a.vw", "b", "-", "", "-o", "m", "--output", "--bits", "10", "ten", "--bits=9", "-q", "--json", "--json=1"),
        *("--ignore", "a,b", "--scale", "0.1", "--help", "--", "--lab", "--label", "y", "-om", "-qo", "--receipt"),
        *("-1", "--no-receipt", "--l1", "1_0", " 5", "nan", "--tau", "--every", "--no-header", "--header", "--raw"),
    ]
)


@given(st.sampled_from(sorted(COMMANDS)), st.lists(WORDS, max_size=7))
def test_whatever_is_typed_is_read_alike_or_left_to_typer(name: str, typed: list[str]) -> None:
    actual = arguments_of(COMMANDS[name], typed)
    if actual is not None:
        assert repr(actual) == repr({key: read_by_typer(name, typed)[key] for key in actual})


@pytest.mark.parametrize("typed", ["--bits ten", "--no-such", "--bits", "--help", "--", "-o", "--json=1", "-q -q"])
def test_what_does_not_fit_is_left_to_typer(typed: str) -> None:
    assert arguments_of(COMMANDS["train"], ["a.vw", "-o", "m", *typed.split()]) is None
    assert arguments_of(COMMANDS["train"], ["a.vw"]) is None  # without an output
    assert arguments_of(COMMANDS["predict"], ["m"]) is None  # without data


def test_commands_can_be_called_in_turn_on_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.vw").write_text("1 | a b\n-1 | c a\n" * 20)
    model, data = str(tmp_path / "m"), str(tmp_path / "a.vw")
    for options in ([], ["--lower=-1", "--upper=1"], []):
        assert run(["train", data, "-o", model, "-q", "--bits", "8", *options]) == 0
        assert run(["train", "--help"]) == 0
    assert run(["train", data, "-o", model, "--bits", "ten"]) == 2
    assert "--bits" in capsys.readouterr().err


def test_a_command_as_it_is_mostly_typed_imports_neither_typer_nor_other_readers(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a b\n-1 | c a\n" * 20)
    code = (
        "import sys; from ftprl.cli.app import run\n"
        f"assert run(['train', {str(tmp_path / 'a.vw')!r}, '-o', {str(tmp_path / 'm')!r}, '-q', '--bits', '8']) == 0\n"
        "unused = {'typer', 'pyarrow', 'ftprl.data.frame_source', 'ftprl.data.batches', 'ftprl.data.memory'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
