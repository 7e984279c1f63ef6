"""The flow polytope: paths through a network without cycles, and their mixtures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets.base import Frozen, Quantity
from ftprl.sets.oracle import OracleSet
from ftprl.solver import Conic, Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class FlowPolytope(Frozen, OracleSet):
    """The mixtures of paths from `source` to `target`; coordinate e is the share of paths that use `edges[e]`.

    The edges are pairs (from, to) of a directed graph without cycles; their costs may be negative.

    >>> roads = FlowPolytope([("home", "a"), ("home", "b"), ("a", "work"), ("b", "work")], "home", "work")
    >>> roads.vertex(np.array([1.0, 2.0, 3.0, 1.0]))
    array([0., 1., 0., 1.])
    """

    def __init__(self, edges: Iterable[tuple[Hashable, Hashable]], source: Hashable, target: Hashable) -> None:
        self.edges = tuple(_pair(k, edge) for k, edge in enumerate(edges))
        self.source, self.target = source, target
        order = _sorted_nodes(self.edges)
        for name, node in (("source", source), ("target", target)):
            if node not in order:
                raise InvalidInput(f"{name} needs a node of the edges, got {node!r}; pass one that an edge has.")
        self._tail = np.array([order[a] for a, _ in self.edges])
        self._head = np.array([order[b] for _, b in self.edges])
        self._nodes, self._from, self._to = len(order), order[source], order[target]
        self._into, self._onward = self._count_paths()
        self._paths = self._into[self._to]
        if source == target or not self._paths:
            raise InvalidInput(f"FlowPolytope needs a path from {source!r} to {target!r}, got none; add its edges.")

    def __repr__(self) -> str:
        return f"FlowPolytope(edges={self.dim}, from {self.source!r} to {self.target!r})"

    @property
    def dim(self) -> int:
        """Return the number of edges."""
        return len(self.edges)

    @cached_property
    def _leaving(self) -> list[list[tuple[int, int]]]:
        """Return the edges that leave each node as pairs (edge, head), in topological order of the nodes."""
        out: list[list[tuple[int, int]]] = [[] for _ in range(self._nodes)]
        for e, (a, b) in enumerate(zip(self._tail.tolist(), self._head.tolist(), strict=True)):
            out[a].append((e, b))
        return out

    def _count_paths(self) -> tuple[list[int], list[int]]:
        """Return the number of paths from the source to each node, and from each node to the target, as integers."""
        into, onward = [0] * self._nodes, [0] * self._nodes
        into[self._from] = onward[self._to] = 1
        for a in range(self._nodes):
            for _, b in self._leaving[a]:
                into[b] += into[a]
        for a in reversed(range(self._nodes)):
            onward[a] += sum(onward[b] for _, b in self._leaving[a])
        return into, onward

    @cached_property
    def _share(self) -> list[int]:
        """Return the number of paths through each edge."""
        ends = zip(self._tail.tolist(), self._head.tolist(), strict=True)
        return [self._into[a] * self._onward[b] for a, b in ends]

    def vertex(self, g: Vector) -> Vector:
        """Return the cheapest path for the edge costs g."""
        x = np.zeros(self.dim)
        x[self._extreme_path(g)] = 1.0
        return x

    def _extreme_path(self, cost: Vector) -> list[int]:
        """Return the edges of a cheapest path, found node by node from the target."""
        costs = cost.tolist()
        best: list[float] = [0.0] * self._nodes
        choice: list[tuple[int, int]] = [(-1, -1)] * self._nodes
        for a in reversed(range(self._from, self._to)):
            least = None
            for e, b in self._leaving[a]:
                if b <= self._to and self._onward[b]:
                    value = costs[e] + best[b]
                    if least is None or value < least:
                        least, choice[a] = value, (e, b)
            best[a] = least or 0.0
        path, node = [], self._from
        while node != self._to:
            e, node = choice[node]
            path.append(e)
        return path

    def sample(self, x: Vector, rng: np.random.Generator) -> list[int]:
        """Return a random path, as edge numbers, that uses each edge e with probability x[e].

        >>> FlowPolytope([(0, 1), (1, 2)], 0, 2).sample(np.ones(2), np.random.default_rng(0))
        [0, 1]
        """
        flow = np.maximum(check.vector("x", x, self.dim), 0.0)
        path, node = [], self._from
        while node != self._to:
            out = [(e, b) for e, b in self._leaving[node] if self._onward[b]]
            weights = np.array([flow[e] for e, _ in out])
            total = float(weights.sum())
            e, node = out[int(rng.choice(len(out), p=weights / total if total else None))]
            path.append(e)
        return path

    def widths(self) -> Vector:
        """Return 1 for each edge that some paths use and others do not, else 0."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(np.array([1.0 if 0 < k < self._paths else 0.0 for k in self._share]))

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the range of each edge: 0 to 1, 1 if every path uses it, 0 if no path does."""
        low = np.array([1.0 if k == self._paths else 0.0 for k in self._share])
        return low, np.array([1.0 if k else 0.0 for k in self._share])

    def start(self) -> Vector:
        """Return the mixture that gives every path an equal share.

        >>> FlowPolytope([("a", "b"), ("a", "c"), ("b", "c")], "a", "c").start()
        array([0.5, 0.5, 0.5])
        """
        return np.array([k / self._paths for k in self._share])

    def tangent(self, g: Vector) -> Vector:
        """Return the projection of g on the differences of flows."""
        live = g * (self._widths > 0)
        return np.asarray(live - self._row_space @ live)

    @cached_property
    def _row_space(self) -> Vector:
        rows = np.vstack((self._conic.A * (self._widths > 0), np.diag(self._widths == 0).astype(np.float64)))
        return np.asarray(np.linalg.pinv(rows) @ rows)

    def sq_diameter(self, Q: PSD) -> float:
        """Return the largest weight of the edges used by exactly one of two paths: exact except for a full Q."""
        if Q.ndim == 0:
            return float(Q) * self._widest
        if Q.ndim == 1:
            return self._furthest_paths(Q)
        hidden = np.eye(self.dim) - self._row_space
        return min(super().sq_diameter(Q), psd.largest(hidden @ Q @ hidden) * self._widest)

    @cached_property
    def _widest(self) -> float:
        return self._furthest_paths(np.ones(self.dim))

    def _furthest_paths(self, weight: Vector) -> float:
        """Return the largest weight, over pairs of paths, of the edges in exactly one of them.

        `far[a, b]` is that maximum for two paths that are at the nodes a and b; the path at the earlier node moves on.
        From a common node both move on, along one edge (which then adds nothing) or along two.
        """
        far = np.full((self._nodes, self._nodes), -np.inf)
        far[self._to, self._to] = 0.0
        for a in reversed(range(self._from, self._to)):
            out = [(float(weight[e]), b) for e, b in self._leaving[a] if self._onward[b] and b <= self._to]
            for w, b in out:
                np.maximum(far[a, a + 1 :], w + far[b, a + 1 :], out=far[a, a + 1 :])
            for k, (w, b) in enumerate(out):
                far[a, a] = max([far[a, a], far[b, b], *(w + v + far[b, c] for v, c in out[:k])])
            far[:, a] = far[a]
        return float(far[self._from, self._from])

    def diameter(self) -> float:
        """Return the square root of the number of edges in which two paths differ most."""
        return float(np.sqrt(self._widest))

    def is_exact(self, what: Quantity) -> bool:
        """Return True for every quantity except `sq_diameter` of a full matrix."""
        return what != "full"

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x + l1·|x|₁: no flow is negative, so l1 adds to the cost of every edge."""
        return self.minimise(H, z + l1, near)

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if no flow is negative, flow is conserved at each node, and 1 leaves the source."""
        return self.violation(x) <= 2 * atol

    def violation(self, x: Vector) -> float:
        """Return the size of the most negative flow or of the largest error at a node."""
        conic = self._conic
        unused = np.array([k == 0 for k in self._share])
        off = float(np.abs(conic.A @ x - conic.b).max())
        return max(-float(x.min()), off, float(np.abs(x[unused]).max(initial=0.0)))

    def conic(self) -> Conic:
        """Return one row per edge and an equality for every node except the target."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        A = np.zeros((self._nodes, self.dim))
        A[self._tail, np.arange(self.dim)] += 1.0
        A[self._head, np.arange(self.dim)] -= 1.0
        b = np.zeros(self._nodes)
        b[self._from] = 1.0
        keep = np.arange(self._nodes) != self._to
        keep &= np.array([bool(i and k) for i, k in zip(self._into, self._onward, strict=True)])
        used = np.array([k > 0 for k in self._share])
        C = np.vstack((-np.eye(self.dim), np.eye(self.dim)[~used]))  # an edge of no path carries nothing
        return Conic.polyhedron(self.dim, (C, np.zeros(len(C))), (A[keep] * used, b[keep]))


def _pair(k: int, edge: Any) -> tuple[Hashable, Hashable]:
    """Return the k-th edge as a pair of different nodes, or raise InvalidInput."""
    pair = tuple(edge) if isinstance(edge, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(node, Hashable) for node in pair) or pair[0] == pair[1]:
        raise InvalidInput(f"edges[{k}] needs two different nodes (from, to), got {edge!r}; pass such a pair.")
    return pair


def _sorted_nodes(edges: tuple[tuple[Hashable, Hashable], ...]) -> dict[Hashable, int]:
    """Return the position of each node in a topological order.

    Raises InvalidInput if there are no edges or the graph has a cycle.
    """
    if not edges:
        raise InvalidInput("edges needs at least one pair (from, to), got none; pass the edges of the network.")
    sorter: TopologicalSorter[Hashable] = TopologicalSorter()
    for a, b in edges:
        sorter.add(b, a)
    try:
        return {node: k for k, node in enumerate(sorter.static_order())}
    except CycleError as error:
        shown = " -> ".join(map(str, error.args[1]))[:60]
        raise InvalidInput(f"edges needs a network without cycles, got {shown}; drop one of these edges.") from None
