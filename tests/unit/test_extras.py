"""Optional packages: the usual commands import none of them, and a missing one is one line that names its extra."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ftprl.errors import MissingExtra
from ftprl.extras import extra_imports

OPTIONAL = ("clarabel", "matplotlib", "onnx", "piqp", "ray", "scipy", "sklearn")
COMMANDS = """
import json, sys
import numpy as np
import ftprl
from ftprl.cli.app import run as command

def run(line):
    assert command(line.split()) == 0, line

run("generate clicks --rows 300 --seed 1 -o clicks.csv")
run("train clicks.csv --label click -o clicks.ftprl --receipt --quiet --events run.jsonl")
run("predict clicks.ftprl clicks.csv -o probabilities.txt")
run("certify clicks.ftprl -o clicks.receipt")
run("verify clicks.receipt clicks.csv --model clicks.ftprl")
run("evaluate clicks.ftprl clicks.csv")
run("inspect clicks.ftprl")
rows = np.eye(4)
model = ftprl.train(rows, np.array([0, 1, 0, 1])).model
model.predict(rows)
online = ftprl.OnlineClassifier()
online.learn_one({"a": 1.0}, True)
online.predict_proba_one({"a": 1.0})
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_usual_commands_import_no_optional_package(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", COMMANDS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout.splitlines()[-1]))
    assert "ftprl" in loaded
    assert loaded & {*OPTIONAL, "pandas", "polars"} == set()


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("clarabel", "solving a convex program needs clarabel; pip install 'ftprl[games]'"),
        ("matplotlib", "drawing needs matplotlib; pip install 'ftprl[plot]'"),
        ("onnx", "export to ONNX needs onnx; pip install 'ftprl[onnx]'"),
        ("piqp", "solving a quadratic program needs piqp; pip install 'ftprl[games]'"),
        ("ray", "engine=ray needs ray; pip install 'ftprl[ray]'"),
        ("scipy", "optimization needs scipy; pip install 'ftprl[games]'"),
        ("sklearn", "this estimator needs scikit-learn; pip install 'ftprl[sklearn]'"),
    ],
)
def test_a_missing_package_is_one_line_with_its_extra(package: str, message: str) -> None:
    with pytest.raises(MissingExtra) as error, extra_imports:
        raise ModuleNotFoundError(f"No module named '{package}.part'", name=f"{package}.part")
    assert str(error.value) == message
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extra = message.partition("[")[2].partition("]")[0]
    name = message.partition(" needs ")[2].partition(";")[0]
    assert any(line.startswith(f"{name}>=") for line in project["optional-dependencies"][extra])
    assert extra in project["optional-dependencies"]["all"][0]


def test_other_errors_of_an_import_pass() -> None:
    with pytest.raises(ModuleNotFoundError, match="elsewhere"), extra_imports:
        raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")
    with pytest.raises(ImportError, match="broken"), extra_imports:
        raise ImportError("broken", name="scipy")


WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import numpy as np
import ftprl
from ftprl.errors import MissingExtra

def told(act):
    try:
        act()
    except MissingExtra as missing:
        print(missing)

run = ftprl.train(np.eye(4), np.array([0, 1, 0, 1]), receipt=True)
told(lambda: run.plot())
told(lambda: ftprl.FTPRLClassifier())
told(lambda: ftprl.receipt.certify_model(run.model, exact=(np.eye(4), np.array([0, 1, 0, 1]))))
told(lambda: ftprl.sets.Polytope(np.array([[1.0, 0], [0, 1], [-1, -1]]), np.ones(3)))
"""


def test_what_needs_an_extra_names_it_where_none_is_installed() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert [line.partition("; ")[2] for line in run.stdout.splitlines()] == [
        "pip install 'ftprl[plot]'",
        "pip install 'ftprl[sklearn]'",
        "pip install 'ftprl[games]'",
        "pip install 'ftprl[games]'",
    ]
