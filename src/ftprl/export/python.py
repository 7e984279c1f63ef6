"""A scorer of one file in plain Python, without dependencies: the template `scorer.py` filled in with a model."""

from __future__ import annotations

import base64
import json
import os
import zlib
from importlib import resources

import numpy as np

from ftprl.atomic import replacing
from ftprl.data.options import as_passed
from ftprl.errors import InvalidInput
from ftprl.export.numbers import score_numbers
from ftprl.linear.model import Model

_SETTINGS = "SETTINGS = {}  # as JSON: how rows are read and scores are mixed\n"
_CELLS = 'CELLS = ""  # the cells and their weights, packed\n'


def python_source(model: Model) -> str:
    """The text of a Python module with `score` and `predict`, whose scores are the model's to the bit.

    >>> from ftprl.linear import Engine, Spec
    >>> source = python_source(Model(Engine(Spec(dim=4))))
    >>> own = {"__name__": "scorer"}
    >>> exec(source, own)
    >>> own["predict"]({2: 1.0})
    0.5
    """
    for name in ("ngrams", "char_ngrams"):
        if model.reading.get(name):
            raise InvalidInput(
                f"a scorer in Python makes no n-grams, got a model with {name}={as_passed(model.reading[name]):.60};"
                " export it to ONNX, which takes the cells of a row instead of its text.",
                option=name,
            )
    numbers = score_numbers(model)
    packed = numbers.cells.astype("<u4").tobytes() + np.ascontiguousarray(numbers.weights, "<f8").tobytes()
    cells = base64.b85encode(zlib.compress(packed, 9)).decode()
    settings = json.dumps(numbers.settings, allow_nan=False)
    template = resources.files("ftprl.export").joinpath("scorer.py").read_text(encoding="utf-8")
    template = template.replace(_SETTINGS, f"SETTINGS = json.loads({settings!r})\n", 1)
    return template.replace(_CELLS, f"CELLS = {cells!r}\n", 1)


def write_python(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the scorer of a model, atomically."""
    with replacing(path) as out:
        out.write(python_source(model).encode())
