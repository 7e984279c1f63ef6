"""A model of rounds over servers (docs/guide-measurements.md): the cost of each part, and all together.

`Costs` has the seconds of each stage of a round, of a call from one process to another, and of a byte on its way.
`simulate` plays rounds with them: every reader, server and the mixer does one thing at a time, in the order in which it
was asked; whatever is sent arrives after a delay, over links of a given speed; and if all share a machine, no more run
at once than it has cores. `benchmarks/cluster.py` measures the costs and compares with runs.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

BLOCK = 4096  # rows of a round that one reader numbers, scores and adds up


class Costs(NamedTuple):
    """Seconds and bytes, by row unless it says otherwise."""

    read: float  # by a worker: read, parse, hash, and into the object store
    prepare: float  # by a reader: number the features
    score: float  # by a reader
    add_up: float  # by a reader: sums of gradients
    play: float  # by the servers: weights
    step: float  # by the servers
    chain: float  # by the mixer
    keep: float  # by the mixer: names, progress, whatever is no part of a round
    announced: float  # bytes, reader to server
    plays: float  # bytes, server to reader
    scores: float  # bytes, reader to mixer
    slopes: float  # bytes, mixer to reader
    sums: float  # bytes, reader to server
    rows_kept: float  # bytes of the rows of a block, which the reader keeps in the object store
    submit: float  # seconds for the mixer to ask for something
    serve: float  # seconds of the process that is asked, besides what it does
    result: float  # seconds of each further result
    hop: float  # seconds from the end of a task to the start of the next one, in another process, that needs it
    small_hop: float  # the same for what goes with the message itself, past the object stores: scores and slopes
    background: float  # seconds of processors elsewhere (Ray's own) for each call
    far_hop: float  # seconds more if the next task is on another node
    far_background: float  # seconds of processors more for each thing that is sent to another node
    store: float  # seconds per byte into an object store and out of it
    move: float  # seconds per byte of processors between the object stores of two nodes


class Layout(NamedTuple):
    """Which node each reader and server is on; the mixer is on node 0."""

    readers: tuple[int, ...]
    servers: tuple[int, ...]

    @classmethod
    def spread(cls, workers: int, servers: int, nodes: int | None = None) -> Layout:
        """One after the other over the nodes; without `nodes` each has a node of its own."""
        if nodes is None:
            return cls(tuple(range(1, 1 + workers)), tuple(range(1 + workers, 1 + workers + servers)))
        return cls(tuple(n % nodes for n in range(workers)), tuple(n % nodes for n in range(servers)))


@dataclass(eq=False)
class Task:
    """Something that takes time at a place."""

    place: Any
    seconds: float
    on_core: bool = True
    delay: float = 0.0  # until those that wait for it may begin
    waits_for: int = 0
    ready: float = 0.0
    end: float = -1.0
    followers: list[Task] = field(default_factory=list)


class Machines:
    """Places that do one task at a time, first come, first served, on so many cores (None: as many as are wanted)."""

    def __init__(self, cores: int | None) -> None:
        self.cores = cores
        self.tasks: list[Task] = []
        self.busy: dict[Any, float] = defaultdict(float)

    def add(
        self, place: Any, seconds: float, after: Iterable[Task] = (), *, on_core: bool = True, delay: float = 0.0
    ) -> Task:
        """A task that begins when others have ended."""
        task = Task(place, seconds, on_core, delay)
        for one in after:
            one.followers.append(task)
            task.waits_for += 1
        self.tasks.append(task)
        return task

    def run(self) -> float:
        """The time at which the last task ends."""
        number, now = 0, 0.0
        events: list[tuple[float, int, str, Task]] = []
        queues: dict[Any, deque[Task]] = defaultdict(deque)
        taken: set[Any] = set()
        waiting: deque[Task] = deque()  # for a core
        used = 0

        def push(time: float, kind: str, task: Task) -> None:
            nonlocal number
            number += 1
            heapq.heappush(events, (time, number, kind, task))

        def begin(task: Task) -> None:
            nonlocal used
            if task.on_core and self.cores is not None:
                if used == self.cores:
                    waiting.append(task)
                    return
                used += 1
            self.busy[task.place] += task.seconds
            push(now + task.seconds, "end", task)

        for task in self.tasks:
            if not task.waits_for:
                push(0.0, "ready", task)
        while events:
            now, _, kind, task = heapq.heappop(events)
            if kind == "ready":
                if task.place in taken:
                    queues[task.place].append(task)
                else:
                    taken.add(task.place)
                    begin(task)
                continue
            task.end = now
            if task.on_core and self.cores is not None:
                used -= 1
                if waiting:
                    begin(waiting.popleft())
            if queues[task.place]:
                begin(queues[task.place].popleft())
            else:
                taken.discard(task.place)
            for follower in task.followers:
                follower.ready = max(follower.ready, now + task.delay)
                follower.waits_for -= 1
                if not follower.waits_for:
                    push(follower.ready, "ready", follower)
        return now


class Simulated(NamedTuple):
    """Rows per second, and the part of the time that each kind of place is busy."""

    rate: float
    busy: dict[str, float]

    @property
    def limit(self) -> str:
        """What is busiest, or the length of a round if nothing is busy most of the time."""
        name = max(self.busy, key=lambda one: self.busy[one])
        return name if self.busy[name] > 0.8 else "the length of a round"


def simulate(
    costs: Costs,
    layout: Layout,
    *,
    round_rows: int,
    link: float | None = None,
    cores: int | None = None,
    rounds: int = 6,
    parsing: bool = True,
) -> Simulated:
    """Play some rounds; `link` is the speed of each node's network in bytes per second, either way."""
    machines = Machines(cores)
    sent = Network(machines, costs, link)
    blocks = [min(BLOCK, round_rows - first) for first in range(0, round_rows, BLOCK)]
    workers, servers = len(layout.readers), len(layout.servers)
    before: list[Task] = []  # what the next round waits for
    earlier: list[Task] = []  # the end of the round before that: workers parse one round ahead
    number = 0
    for _ in range(rounds):
        submit = [machines.add("mixer", costs.keep * round_rows / 2, before)]
        prepared, announced = [], []
        for rows in blocks:
            reader = number % workers
            number += 1
            ready = [machines.add(("worker", reader), costs.read * rows, earlier)] if parsing else []
            submit.append(machines.add("mixer", costs.submit, submit[-1:]))
            sent.background(layout.readers[reader], submit[-1])
            seconds = costs.prepare * rows + costs.serve + costs.result * servers
            seconds += costs.store * (costs.rows_kept + costs.announced) * rows
            prepared.append(
                (reader, rows, machines.add(("reader", reader), seconds, [submit[-1], *ready], delay=costs.hop))
            )
        for reader, rows, task in prepared:
            size = costs.announced * rows / servers
            announced.append([sent.to(task, layout.readers[reader], node, size) for node in layout.servers])
        plays = []
        for server, node in enumerate(layout.servers):
            submit.append(machines.add("mixer", costs.submit, submit[-1:]))
            sent.background(node, submit[-1])
            seconds = costs.play * round_rows / servers + costs.serve + costs.result * (len(blocks) - 1)
            seconds += costs.store * costs.plays * round_rows / servers
            after = [submit[-1], *(block[server] for block in announced)]
            plays.append(machines.add(("server", server), seconds, after, delay=costs.hop))
        chained: list[Task] = []
        summed = []
        scored = []
        for reader, rows, task in prepared:
            submit.append(machines.add("mixer", costs.submit, submit[-1:]))
            sent.background(layout.readers[reader], submit[-1])
            size = costs.plays * rows / servers
            came = [
                sent.to(play, node, layout.readers[reader], size)
                for play, node in zip(plays, layout.servers, strict=True)
            ]
            seconds = costs.score * rows + costs.serve
            task = machines.add(("reader", reader), seconds, [submit[-1], *came], delay=costs.small_hop)
            scored.append(sent.at_once(task, layout.readers[reader], 0, costs.scores * rows))
        for (reader, rows, _), task in zip(prepared, scored, strict=True):
            seconds = costs.chain * rows + costs.submit
            chained.append(machines.add("mixer", seconds, [task, *submit[-1:], *chained[-1:]], delay=costs.small_hop))
            sent.background(layout.readers[reader], chained[-1])
            slopes = sent.at_once(chained[-1], 0, layout.readers[reader], costs.slopes * rows)
            seconds = costs.add_up * rows + costs.serve + costs.result * (servers - 1) + costs.store * costs.sums * rows
            task = machines.add(("reader", reader), seconds, [slopes], delay=costs.hop)
            size = costs.sums * rows / servers
            summed.append([sent.to(task, layout.readers[reader], node, size) for node in layout.servers])
        asked = chained[-1:]
        stepped = []
        for server, node in enumerate(layout.servers):
            asked.append(machines.add("mixer", costs.submit, asked[-1:]))
            sent.background(node, asked[-1])
            seconds = costs.step * round_rows / servers + costs.serve
            after = [asked[-1], *(block[server] for block in summed)]
            stepped.append(machines.add(("server", server), seconds, after, delay=costs.hop))
        earlier = before
        before = [machines.add("mixer", costs.keep * round_rows / 2, [*stepped, asked[-1]])]
    total = machines.run()
    busy: dict[str, float] = {}
    for place, seconds in machines.busy.items():
        kind = place if isinstance(place, str) else place[0]
        busy[kind] = max(busy.get(kind, 0.0), seconds / total)
    if cores is not None:
        on_core = sum(task.seconds for task in machines.tasks if task.on_core)
        busy["cores"] = on_core / (cores * total)
    return Simulated(rounds * round_rows / total, busy)


class Network:
    """What goes from one node to another."""

    def __init__(self, machines: Machines, costs: Costs, link: float | None) -> None:
        self._machines, self._costs, self._link = machines, costs, link

    def to(self, task: Task, start: int, end: int, size: float) -> Task:
        """What arrives at a node of that which a task has sent."""
        if start == end:
            return task
        seconds = self._costs.far_background / 2 + self._costs.move / 2 * size
        last = self._machines.add(("store", start), seconds, [task], delay=self._costs.far_hop)
        return self._machines.add(("store", end), seconds, self._over(last, start, end, size))

    def at_once(self, task: Task, start: int, end: int, size: float) -> Task:
        """The same for what goes with the message itself."""
        if start == end or self._link is None:
            return task
        return self._machines.add(("arrival", end, id(task)), 0.0, self._over(task, start, end, size), on_core=False)

    def _over(self, task: Task, start: int, end: int, size: float) -> list[Task]:
        """What goes over the links of both nodes, at the same time: it arrives in small pieces."""
        if self._link is None:
            return [task]
        ways = (("link", "out", start), ("link", "in", end))
        return [self._machines.add(way, size / self._link, [task], on_core=False) for way in ways]

    def background(self, node: int, task: Task) -> None:
        """What Ray itself does for a call."""
        self._machines.add(("ray", node), self._costs.background, [task])


def bytes_per_row(costs: Costs) -> float:
    """All bytes of a row in a round."""
    return sum(_kinds(costs))


def _kinds(costs: Costs) -> Sequence[float]:
    return costs.announced, costs.plays, costs.scores, costs.slopes, costs.sums
