"""Several classes: progressive log loss beside Vowpal Wabbit's --oaa and scikit-learn's SGDClassifier, and times.

Run: python benchmarks/classes.py [losses|times]. The peers have their best learning rate in hindsight, of 7 each; for
SGD features are divided by their standard deviation in hindsight as well. Needs vowpalwabbit and scikit-learn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import ftprl
from ftprl.data import Batch
from ftprl.linear import Engine, Spec

RATES = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONSTANTS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
LEAST = 1e-15  # no probability is taken for smaller


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def covertype_like(rows: int = 8_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten numbers of different sizes, 4 + 40 indicators, 7 classes of very different frequency, as forests have."""
    rng = np.random.default_rng(seed)
    sizes = np.array([2800, 150, 15, 250, 50, 2000, 200, 220, 140, 1800.0])
    numbers = rng.gamma(4.0, sizes / 4.0, (rows, 10))
    area, soil = (
        rng.choice(4, rows, p=[0.45, 0.05, 0.44, 0.06]),
        rng.choice(40, rows, p=rng.dirichlet(np.full(40, 0.5))),
    )
    X = np.hstack([numbers, np.eye(4)[area], np.eye(40)[soil]])
    scaled = np.hstack([(numbers / sizes - 1.0) * 2.0, X[:, 10:]])
    W = rng.normal(size=(54, 7)) * np.r_[np.full(10, 0.9), np.full(44, 0.7)][:, None]
    scores = scaled @ W + np.log([0.36, 0.48, 0.06, 0.005, 0.016, 0.03, 0.035]) + rng.gumbel(size=(rows, 7))
    return X, scores.argmax(axis=1)


def topics(rows: int = 3_000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Short texts as counts of 400 words, 12 topics."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(400, 0.08), 12)
    y = rng.choice(12, rows, p=rng.dirichlet(np.full(12, 3.0)))
    return np.array([rng.multinomial(rng.integers(4, 16), words[k]) for k in y], float), y


def rare(rows: int = 5_000, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Six classes, of which three have one row in 200 each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 15)) * rng.uniform(0.1, 10.0, 15)
    W = rng.normal(size=(15, 6)) / np.abs(X).mean(axis=0)[:, None] * 0.7
    return X, (X @ W + np.r_[0.0, 0.0, 0.0, -6.0, -6.0, -6.0] + rng.gumbel(size=(rows, 6))).argmax(axis=1)


def late(rows: int = 5_000, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Eight classes, a new one every 500 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 20))
    scores = X @ rng.normal(size=(20, 8)) * 0.5 + rng.gumbel(size=(rows, 8))
    scores[np.arange(8)[None, :] * 500 > np.arange(rows)[:, None]] = -np.inf
    return X, scores.argmax(axis=1)


def in_order(rows: int = 3_000, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Five classes, all rows of one behind those of another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 10))
    y = (X @ rng.normal(size=(10, 5)) + rng.gumbel(size=(rows, 5))).argmax(axis=1)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def drift(rows: int = 5_000, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Four classes whose weights change after half of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 12))
    half = np.arange(rows) < rows // 2
    scores = np.where(half[:, None], X @ rng.normal(size=(12, 4)), X @ rng.normal(size=(12, 4)))
    return X, (scores + rng.gumbel(size=(rows, 4))).argmax(axis=1)


def mixed(classes: int, seed: int, rows: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    """Six numbers of different sizes and means, two categories of 12 and 30 values; each class half as frequent."""
    rng = np.random.default_rng(seed)
    sizes, means = 10.0 ** rng.uniform(-2, 3, 6), rng.uniform(-3, 3, 6)
    z = rng.normal(size=(rows, 6))
    colour, place = (rng.choice(n, rows, p=rng.dirichlet(np.ones(n))) for n in (12, 30))
    X = np.hstack([(z + means) * sizes, np.eye(12)[colour], np.eye(30)[place]])
    W = rng.normal(size=(48, classes)) * np.r_[np.full(6, 0.8), np.full(42, 1.0)][:, None]
    scores = np.hstack([z, X[:, 6:]]) @ W - np.log(2.0) * np.arange(classes) + rng.gumbel(size=(rows, classes))
    return X, scores.argmax(axis=1)


STREAMS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    **{f.__name__: f for f in (digits, covertype_like, topics, rare, late, in_order, drift)},
    **{f"covertype_like, seed {seed}": partial(covertype_like, 4_000, seed) for seed in (11, 12)},
    **{f"mixed, {n} classes": partial(mixed, n, 20 + n) for n in (3, 4, 5, 7)},
}


def of_vw(X: np.ndarray, y: np.ndarray, classes: int, rate: float) -> float:
    """Its own progressive predictions: the probabilities of --probabilities, which it scales to sum 1."""
    from vowpalwabbit import Workspace

    vw = Workspace(f"--oaa {classes} --loss_function logistic --probabilities -l {rate} --quiet -b 18")
    total = 0.0
    for row, label in zip(X, y.tolist(), strict=True):
        text = " ".join(f"{j}:{v:.6g}" for j, v in enumerate(row.tolist()) if v)
        example = vw.example(f"{label + 1} | {text}")
        chances = np.array(vw.predict(example))
        total -= np.log(max(chances[label] / chances.sum(), LEAST))
        vw.learn(example)
        vw.finish_example(example)
    vw.finish()
    return float(total / len(y))


def of_sgd(X: np.ndarray, y: np.ndarray, classes: int) -> float:
    """The best of all constants: the steps of SGDClassifier with log loss, no penalty and a constant rate."""
    X = np.hstack([X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0), np.ones((len(X), 1))])
    rates, known = np.array(CONSTANTS)[:, None], np.arange(classes)
    W, total = np.zeros((len(CONSTANTS), classes, X.shape[1])), np.zeros(len(CONSTANTS))
    for row, label in zip(X, y.tolist(), strict=True):
        chances = 0.5 * (1.0 + np.tanh(0.5 * np.clip(W @ row, -700, 700)))
        total -= np.log(np.maximum(chances[:, label] / np.maximum(chances.sum(axis=1), 1e-300), LEAST))
        W -= ((chances - (known == label)) * rates)[:, :, None] * row
    return float(total.min() / len(y))


def losses(names: list[str]) -> None:
    print(
        "| stream | rows | classes | softmax | without stack | ovr | best -oaa (-l) | best SGD | softmax / best peer |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names or STREAMS:
        X, y = STREAMS[name]()
        classes = int(y.max()) + 1
        own = [
            ftprl.train(X, y, order="given", classes=list(range(classes)), **options).progressive_loss
            for options in ({"loss": "softmax"}, {"loss": "softmax", "stack": False}, {"loss": "ovr"})
        ]
        vw, rate = min((of_vw(X, y, classes, rate), rate) for rate in RATES)
        sgd = of_sgd(X, y, classes)
        numbers = [f"{value:.4f}" for value in own]
        print(
            f"| {name} | {len(y)} | {classes} | {' | '.join(numbers)} | {vw:.4f} ({rate:g}) | {sgd:.4f} |"
            f" {own[0] / min(vw, sgd):.3f} |",
            flush=True,
        )


def times() -> None:
    """Seconds of `Engine.learn` alone: 39 features a row, one class against ten."""
    rng = np.random.default_rng(0)
    rows, size, dim = 20_000, 39, 2**18
    indices = (rng.zipf(1.3, (rows, size)) % 5000 * 39 + np.arange(size)).astype(np.uint32) % dim
    indptr = np.arange(0, rows * size + 1, size)
    for values in (np.ones(rows * size, np.float32),):
        for scale in ("auto", 0.1):
            fastest = {}
            for classes in (1, 10):
                y = rng.integers(0, classes, rows).astype(float) if classes > 1 else rng.choice([-1.0, 1.0], rows)
                batch = Batch(indptr, indices.reshape(-1), values, y, np.ones(rows)).private()
                loss = {"loss": "softmax", "classes": classes} if classes > 1 else {}
                best = np.inf
                for _ in range(5):
                    engine = Engine(Spec(dim=dim, scale=scale, **loss), classes=classes if classes > 1 else 0)
                    began = time.perf_counter()
                    engine.learn(batch)
                    best = min(best, time.perf_counter() - began)
                fastest[classes] = best
            print(
                f"scale={scale}: one {fastest[1]:.3f} s, ten {fastest[10]:.3f} s, ratio {fastest[10] / fastest[1]:.1f}"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["times"]:
        times()
    else:
        losses(sys.argv[2:] if sys.argv[1:2] == ["losses"] else sys.argv[1:])
