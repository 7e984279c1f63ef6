"""A model as an ONNX graph, the whole mixture, for ONNX Runtime and others; needs the package onnx."""

from __future__ import annotations

import os
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.atomic import replacing
from ftprl.export.numbers import ScoreNumbers, score_numbers
from ftprl.extras import extra_imports
from ftprl.linear.model import Model

MOST_COLUMNS = 1 << 16  # of a model whose rows are one array; others take cells and values
_OPSET, _ML_OPSET = 17, 3
_CUT = 8.0  # of columns
_LOWEST_LOG = -8.0  # of probabilities, as Newton experts see them
_CLAMP = 60.0


def write_onnx(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as an ONNX file, atomically.

    A model of arrays or libsvm files with at most 65536 columns has the input `X`, float32, (rows, columns). Others
    have `cells`, int64, and `values`, float32, both (rows, entries): the cells of the features of each row, filled
    up with entries of value 0. The outputs are `score` and `prediction` (a probability, or the mean of the label), of
    shape (rows,); with several classes (rows, classes), the logarithms of the probabilities and the probabilities of
    the classes in the order of `Model.classes`.
    """
    with replacing(path) as out:
        out.write(onnx_bytes(model))


def onnx_bytes(model: Model) -> bytes:
    """The same as bytes."""
    with extra_imports:
        import onnx
    numbers = score_numbers(model)
    graph = _Graph(onnx.helper, onnx.TensorProto)
    scores, values_of = _scores(graph, numbers)
    if numbers.settings["link"] == "classes":
        logs = _log_chances(graph, numbers.settings, scores, values_of)
        graph.output("score", logs, "classes")
        graph.output("prediction", graph.node("Softmax", logs, axis=1), "classes")
        return _finished(onnx, graph)
    score = _calibrated(graph, numbers.settings["calibration"], _mixture(graph, numbers.settings, scores, values_of))
    graph.output("score", score)
    graph.output("prediction", _mean(graph, numbers.settings["link"], score))
    return _finished(onnx, graph)


def _finished(onnx: Any, graph: _Graph) -> bytes:
    made = graph.model(onnx)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


@final
class _Graph:
    """Nodes in their order; every number between is float64."""

    def __init__(self, helper: Any, types: Any) -> None:
        self._helper, self._types = helper, types
        self._nodes: list[Any] = []
        self._constants: dict[bytes, str] = {}
        self._initializers: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, type: str, shape: list[str | int]) -> str:
        self._inputs.append(self._helper.make_tensor_value_info(name, getattr(self._types, type), shape))
        return name

    def output(self, name: str, source: str, *columns: str) -> None:
        self._nodes.append(self._helper.make_node("Identity", [source], [name]))
        self._outputs.append(self._helper.make_tensor_value_info(name, self._types.DOUBLE, ["rows", *columns]))

    def constant(self, value: Any, dtype: type = np.float64) -> str:
        array: NDArray[Any] = np.asarray(value, dtype)
        key = array.dtype.str.encode() + str(array.shape).encode() + array.tobytes()
        if key not in self._constants:
            name = self._constants[key] = f"constant{len(self._constants)}"
            kind = self._types.DOUBLE if array.dtype == np.float64 else self._types.INT64
            self._initializers.append(self._helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True))
        return self._constants[key]

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"value{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def wide(self, source: str) -> str:
        return self.node("Cast", source, to=self._types.DOUBLE)

    def cut(self, source: str, low: float, high: float) -> str:
        return self.node("Clip", source, self.constant(low), self.constant(high))

    def column(self, source: str, number: int) -> str:
        """One column of a matrix, as a vector."""
        return self.node("Gather", source, self.constant(number, np.int64), axis=1)

    def total(self, source: str) -> str:
        """The sum of each row."""
        return self.node("ReduceSum", source, self.constant([1], np.int64), keepdims=0)

    def model(self, onnx: Any) -> Any:
        from ftprl.version import __version__

        graph = self._helper.make_graph(self._nodes, "ftprl", self._inputs, self._outputs, self._initializers)
        opsets = [self._helper.make_opsetid("", _OPSET), self._helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        return self._helper.make_model(
            graph, producer_name="ftprl", producer_version=__version__, opset_imports=opsets, ir_version=8
        )


def _scores(g: _Graph, numbers: ScoreNumbers) -> tuple[str, Any]:
    """The scores of the scales and the coin without what mixes them, (rows, scales); and the values of a cell."""
    s, weights = numbers.settings, numbers.weights
    unit, shift = np.ones(len(s["intercepts"])), np.array(s["intercepts"])
    if s["link"] != "classes":
        unit[s["scales"] :] = s["unit"]  # the coin's
        shift = shift * unit + s["offset"]
    idle, weights = np.array(s["idle"]) * unit, weights * unit
    if s["kind"] == "numbers" and s["dim"] <= MOST_COLUMNS:
        return _dense_scores(g, numbers.cells, weights, idle, shift, s["dim"])
    return _sparse_scores(g, numbers.cells, weights, idle, shift)


def _dense_scores(
    g: _Graph, cells: NDArray[np.uint32], weights: Any, idle: Any, shift: Any, dim: int
) -> tuple[str, Any]:
    X = g.wide(g.input("X", "FLOAT", ["rows", dim]))
    if idle.any():  # columns that were never learned have a weight, too
        every = np.tile(idle, (dim, 1))
        every[cells] = weights
        product = g.node("MatMul", X, g.constant(every))
    else:
        some = g.node("Gather", X, g.constant(cells, np.int64), axis=1)
        product = g.node("MatMul", some, g.constant(weights))
    return g.node("Add", product, g.constant(shift)), lambda cells: g.node("Gather", X, cells, axis=1)


def _sparse_scores(g: _Graph, cells: NDArray[np.uint32], weights: Any, idle: Any, shift: Any) -> tuple[str, Any]:
    cell_input = g.input("cells", "INT64", ["rows", "entries"])
    values = g.wide(g.input("values", "FLOAT", ["rows", "entries"]))
    table = np.vstack([idle, weights])
    at = g.node(
        "LabelEncoder",
        cell_input,
        domain="ai.onnx.ml",
        keys_int64s=[*cells.tolist(), -1],
        values_int64s=[*range(1, len(cells) + 1), 0],
        default_int64=0,
    )
    gathered = g.node("Gather", g.constant(table), at, axis=0)  # rows, entries, scales
    products = g.node("Mul", gathered, g.node("Unsqueeze", values, g.constant([2], np.int64)))

    def values_of(cells: str) -> str:
        is_cell = g.wide(g.node("Equal", g.node("Unsqueeze", cell_input, g.constant([2], np.int64)), cells))
        return g.total(g.node("Mul", g.node("Unsqueeze", values, g.constant([2], np.int64)), is_cell))

    return g.node("Add", g.total(products), g.constant(shift)), values_of


def _mixture(g: _Graph, s: dict[str, Any], scores: str, values_of: Any) -> str:
    """The score of the mixture of what all experts say."""
    low, high, centre = s["seen"]
    seen = g.node("Sub", g.cut(scores, low, high), g.constant(centre))
    said = []
    for expert in s["experts"]:
        if "u" in expert:
            f = g.node("Add", g.node("MatMul", seen, g.constant(_matrix(expert["u"]))), g.constant(s["offset"]))
            if expert["columns"]:
                own = _columns_score(g, s, expert["columns"], values_of)
                f = g.node("Add", f, g.node("Mul", own, g.constant(s["unit"])))
            said.append(g.cut(g.node("Mul", f, g.constant(s["gain"])), *s["range"]))
        else:
            own = g.node("Gather", scores, g.constant([expert.get("score", 0)], np.int64), axis=1)
            said.append(g.cut(own, *([expert["says"]] * 2 if "says" in expert else s["range"])))
    experts = g.node("Concat", *said, axis=1)
    if s["mixes_odds"]:
        return _mixed_odds(g, s, experts) if len(said) > 1 else g.column(experts, 0)
    return g.total(g.node("Mul", experts, g.constant([expert["weight"] for expert in s["experts"]])))


def _matrix(numbers: list[Any]) -> NDArray[np.float64]:
    """Return coefficients as a matrix with a column for each output."""
    return np.atleast_2d(np.array(numbers)).T


def _columns_score(g: _Graph, s: dict[str, Any], own: list[Any], values_of: Any) -> str:
    """The score of a constant and the columns, (rows, outputs)."""
    constant, coefficients = np.split(_matrix(own), [1])
    if not s["dense"]:
        return g.constant(constant)
    cells, means, deviations = zip(*s["dense"], strict=True)
    distance = g.node("Sub", values_of(g.constant(cells, np.int64)), g.constant(means))
    x = g.cut(g.node("Div", distance, g.constant(deviations)), -_CUT, _CUT)
    return g.node("Add", g.node("MatMul", x, g.constant(coefficients)), g.constant(constant))


def _as_column(g: _Graph, vector: str) -> str:
    return g.node("Unsqueeze", vector, g.constant([1], np.int64))


def _log_weights(s: dict[str, Any]) -> NDArray[np.float64]:
    """The logarithms of the weights of the experts."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log([expert["weight"] for expert in s["experts"]]), -1e300)


def _mixed_odds(g: _Graph, s: dict[str, Any], odds: str) -> str:
    """The log-odds of the mixed probability: ln sum w e^-loss for both labels."""
    logs = _log_weights(s)
    one = g.constant(1.0)
    tail = g.node("Log", g.node("Add", one, g.node("Exp", g.node("Neg", g.node("Abs", odds)))))
    none = g.constant(0.0)
    sides = []
    for side in (odds, g.node("Neg", odds)):  # minus the loss of a positive label, of a negative one
        loss = g.node("Add", g.node("Max", g.node("Neg", side), none), tail)
        sides.append(g.node("ReduceLogSumExp", g.node("Sub", g.constant(logs), loss), axes=[1], keepdims=0))
    return g.node("Sub", sides[0], sides[1])


def _log_softmax(g: _Graph, numbers: str, logs_of_copies: str) -> str:
    """ln of the softmax over the classes, (rows, classes, experts); some stand for several classes."""
    total = g.node("ReduceLogSumExp", g.node("Add", numbers, logs_of_copies), axes=[1], keepdims=1)
    return g.node("Sub", numbers, total)


def _log_chances(g: _Graph, s: dict[str, Any], scores: str, values_of: Any) -> str:
    """The logarithms of the mixed probabilities of the classes that are known."""
    count, columns, known = s["scales"], len(s["copies"]), len(s["class_labels"])
    t = g.node("Reshape", scores, g.constant([-1, columns, count], np.int64))
    if s["one_vs_rest"]:
        tail = g.node("Log", g.node("Add", g.constant(1.0), g.node("Exp", g.node("Neg", g.node("Abs", t)))))
        t = g.node("Sub", g.node("Min", t, g.constant(0.0)), tail)
    copies = g.constant(np.log(np.array(s["copies"]))[:, None])
    logs = _log_softmax(g, t, copies)
    seen, said = g.node("Max", logs, g.constant(_LOWEST_LOG)), []
    for expert in s["experts"]:
        if "score" in expert:
            said.append(g.node("Gather", logs, g.constant([expert["score"]], np.int64), axis=2))
            continue
        f = g.node("MatMul", seen, g.constant(_matrix(expert["u"])))
        if expert["columns"]:
            own = _columns_score(g, s, expert["columns"], values_of)
            f = g.node("Add", f, g.node("Unsqueeze", own, g.constant([2], np.int64)))
        said.append(_log_softmax(g, f, copies))
    weighted = g.node("Add", g.node("Concat", *said, axis=2), g.constant(_log_weights(s)))
    mixed = g.node("ReduceLogSumExp", weighted, axes=[2], keepdims=0)
    return g.node("Slice", mixed, *(g.constant([at], np.int64) for at in (0, known, 1)))


def _calibrated(g: _Graph, map: dict[str, Any] | None, score: str) -> str:
    """The calibrated log-odds: a slope on each side of 0, or pieces that are linear with slope 1 outside of them."""
    if map is None:
        return score
    none = g.constant(0.0)
    if "shift" in map:
        above = g.node("Mul", g.node("Max", score, none), g.constant(map["above"]))
        below = g.node("Mul", g.node("Min", score, none), g.constant(map["below"]))
        return g.node("Add", g.node("Add", above, below), g.constant(map["shift"]))
    x, odds = np.array(map["before"]), np.array(map["after"])
    into = g.node("Max", g.node("Sub", _as_column(g, score), g.constant(x[:-1])), none)
    segments = g.node("Mul", g.node("Min", into, g.constant(np.diff(x))), g.constant(np.diff(odds) / np.diff(x)))
    outside = g.node("Sub", score, g.cut(score, x[0], x[-1]))
    return g.node("Add", g.node("Add", g.total(segments), g.constant(odds[0])), outside)


def _mean(g: _Graph, link: str, score: str) -> str:
    if link == "logit":
        return g.node("Sigmoid", score)
    return g.node("Exp", g.cut(score, -_CLAMP, _CLAMP)) if link == "log" else score
