"""A trained model: an engine with what is needed to read data as it was read, saved to and loaded from one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import HASH_VERSION
from ftprl.data import Batch
from ftprl.data.streams import shown
from ftprl.errors import BadModel, FtprlError, InvalidInput
from ftprl.linear import file
from ftprl.linear.engine import Engine
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]


@final
class Model:
    """An `Engine` and `reading`, the settings of the data's reader, as plain JSON values.

    >>> model = Model(Engine(Spec(loss="squared", dim=4)))
    >>> model.engine.learn(Batch.from_rows([{0: 1.0}], y=[1])).rows
    1
    >>> model.occupied
    1
    """

    def __init__(self, engine: Engine, reading: Mapping[str, Any] | None = None) -> None:
        self.engine = engine
        self.reading = dict(reading or {})

    def __repr__(self) -> str:
        return f"Model({self.engine.spec.loss}, {self.occupied} of {self.engine.spec.dim} cells)"

    @property
    def occupied(self) -> int:
        """How many cells have been touched."""
        return int(np.count_nonzero(self.engine.cells.any(axis=1)))

    def weights(self) -> Vector:
        """The point played in each cell."""
        return self.engine.weights()

    def predict(self, batch: Batch, *, raw: bool = False) -> Vector:
        """A mean or probability a row; with `raw` the score."""
        scores = self.engine.score(batch)
        if raw:
            return scores
        loss = self.engine.spec.loss
        if loss == "logistic":
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))
        return np.asarray(np.exp(np.clip(scores, -60.0, 60.0))) if loss == "poisson" else scores

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the model, atomically; returns its digest. Only touched cells are kept when they are under half."""
        cells = self.engine.cells
        tensors: file.Tensors = {"intercept": self.engine.intercept, "tallies": self.engine.tallies}
        slots = np.flatnonzero(cells.any(axis=1))
        if 2 * len(slots) < len(cells):
            tensors |= {"cells": cells[slots], "slots": slots.astype(np.uint32)}
        else:
            tensors["cells"] = cells
        content = {
            "hash_version": HASH_VERSION,
            "reading": self.reading,
            "receipt": self.engine.receipt,
            "spec": self.engine.spec.to_dict(),
        }
        return file.write(path, content, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model that `save` wrote: learning goes on from it bit for bit."""
        content, tensors = file.read(path)
        name = os.fspath(path)
        try:
            if content["hash_version"] != HASH_VERSION:
                found = f"{content['hash_version']!r:.40}"
                raise BadModel(f"{name}: expected feature hash {HASH_VERSION}, got {found}; use its own ftprl.")
            if not (isinstance(content["spec"], dict) and isinstance(content["reading"], dict)):
                raise BadModel(f"{name}: expected a spec and settings for reading, got something else; train it again.")
            if not isinstance(content["receipt"], bool):
                raise BadModel(f"{name}: expected receipt true or false, got something else; train it again.")
            engine = Engine(Spec.from_dict(content["spec"]), receipt=content["receipt"])
            _restore(engine, tensors)
            return cls(engine, content["reading"])
        except BadModel:
            raise
        except (FtprlError, KeyError, TypeError, ValueError, IndexError, OverflowError) as wrong:
            raise BadModel(f"{name}: expected a whole model, got {shown(str(wrong))[:200]}; train it again.") from None


def _restore(engine: Engine, tensors: file.Tensors) -> None:
    for target, key in ((engine.intercept, "intercept"), (engine.tallies, "tallies")):
        if tensors[key].shape != target.shape or tensors[key].dtype != target.dtype:
            raise InvalidInput(f"{key} of shape {tensors[key].shape}")
        target[...] = tensors[key]
    _check_cells(engine.intercept[None, :])
    cells, stored = engine.cells, tensors["cells"]
    slots = tensors.get("slots")
    rows = len(cells) if slots is None else len(slots)
    if stored.dtype != cells.dtype or stored.shape != (rows, cells.shape[1]):
        raise InvalidInput(f"cells of shape {stored.shape}")
    _check_cells(stored)
    if slots is None:
        cells[...] = stored
    else:
        if slots.dtype != np.uint32 or (rows and int(slots.max()) >= len(cells)):
            raise InvalidInput("slots outside the table")
        if (slots[1:] <= slots[:-1]).any():
            raise InvalidInput("slots that do not rise")
        cells[slots] = stored


def _check_cells(cells: NDArray[Any]) -> None:
    """Learning makes finite numbers only, and no negative root of G or largest value."""
    if not (np.isfinite(cells).all() and (cells[:, 1:3] >= 0).all()):
        raise InvalidInput("cells that no learning makes")
