"""Run experiments one after another or in several processes, and report progress."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

from ftprl.errors import FtprlError
from ftprl.paper.base import Check, Outcome, Statement, Verdict
from ftprl.paper.picture import Picture, picture
from ftprl.paper.registry import find

Listener = Callable[["ExperimentProgress"], None]


@final
@dataclass(frozen=True)
class Result:
    """The result of one statement: the outcome of its experiment, and how long it took."""

    statement: Statement
    outcome: Outcome
    seconds: float
    full: bool = False
    error: str = ""  # the error that ended the experiment before its verdict
    picture: Picture | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of the outcome."""
        return self.outcome.verdict

    @property
    def red(self) -> bool:
        """Return True if the verdict is not what a correct library finds."""
        wrong = self.verdict is not self.statement.expected or not all(check.ok for check in self.outcome.instead)
        return bool(self.error) or wrong

    @property
    def number(self) -> Check | None:
        """Return the check behind the verdict: the first that is not met as stated, or else the first of all."""
        checks = self.outcome.stated
        return next((check for check in checks if not check.ok), checks[0] if checks else None)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        s = self.statement
        texts = {key: getattr(s, key) for key in ("name", "title", "place", "claim", "instance", "measured", "code")}
        return {
            **texts,
            "tests": s.tests,
            "correction": s.correction,
            "expected": s.expected.value,
            "verdict": self.verdict.value,
            "red": self.red,
            "error": self.error,
            "stated": [check.to_dict() for check in self.outcome.stated],
            "corrected": [check.to_dict() for check in self.outcome.corrected],
            "instead": [check.to_dict() for check in self.outcome.instead],
            "remark": self.outcome.remark,
            "numbers": list(self.outcome.numbers),
            "full": self.full,
            "seconds": self.seconds,
        }


@final
@dataclass(frozen=True)
class ExperimentProgress:
    """A progress report: a step of a statement, or its `result`."""

    name: str
    text: str
    done: int
    total: int
    result: Result | None = None


def run_one(statement: Statement, full: bool, step: Callable[[str], None], drawn: bool = False) -> Result:
    """Run one experiment in this process; an error makes it red, and the others continue."""
    began = time.perf_counter()
    error = ""
    try:
        outcome = statement.run(full, step)
    except Exception as problem:  # any error belongs on the page
        outcome, error = Outcome(()), f"{type(problem).__name__}: {problem}"
    seconds = time.perf_counter() - began
    if drawn:
        step("drawing")
    return Result(statement, outcome, seconds, full, error, picture(statement.name, outcome.panels) if drawn else None)


def run(
    statements: Sequence[Statement],
    *,
    full: bool = False,
    drawn: bool = False,
    workers: int = 1,
    on_progress: Listener = lambda progress: None,
) -> list[Result]:
    """Run all statements and return their results in order; with several workers, each in its own process."""
    one_by_one = workers < 2 or len(statements) < 2
    how = (statements, full, drawn, on_progress)
    finished = _here(*how) if one_by_one else _spread(*how, workers)
    results: dict[str, Result] = {}
    for result in finished:
        results[result.statement.name] = result
        name = result.statement.name
        on_progress(ExperimentProgress(name, result.verdict.value, len(results), len(statements), result))
    return [results[s.name] for s in statements]


def _here(statements: Sequence[Statement], full: bool, drawn: bool, on_progress: Listener) -> Iterator[Result]:
    """Yield the results of statements run in this process."""
    for done, s in enumerate(statements):

        def step(text: str, name: str = s.name, done: int = done) -> None:
            """Report a step."""
            on_progress(ExperimentProgress(name, text, done, len(statements)))

        yield run_one(s, full, step, drawn)


_steps: Any = None  # the queue on which a worker reports its steps


def _attach(queue: Any) -> None:
    """Connect a worker to the queue of steps."""
    global _steps
    _steps = queue
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends a worker silently


def _work(name: str, full: bool, drawn: bool) -> tuple[Outcome, float, str, Picture | None]:
    """Run one statement in a worker."""
    made = run_one(find(name), full, lambda text: _steps.put((name, text)), drawn)
    return made.outcome, made.seconds, made.error, made.picture


def _spread(
    statements: Sequence[Statement], full: bool, drawn: bool, on_progress: Listener, workers: int
) -> Iterator[Result]:
    """Yield the results of statements run in several processes."""
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # a fork would share the threads of linear algebra
    queue = context.SimpleQueue()
    pool = ProcessPoolExecutor(min(workers, len(statements)), context, _attach, (queue,))
    futures = {pool.submit(_work, s.name, full, drawn): s for s in statements}
    pending = set(futures)
    try:
        while pending:
            ready, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
            while not queue.empty():
                name, text = queue.get()
                on_progress(
                    ExperimentProgress(name, text, len(statements) - len(pending) - len(ready), len(statements))
                )
            for future in ready:
                outcome, seconds, error, made = future.result()
                yield Result(futures[future], outcome, seconds, full, error, made)
    except BrokenProcessPool:
        raise FtprlError("a process ended in the middle of an experiment; run with --jobs 1 to see which.") from None
    finally:
        pool.shutdown(wait=not pending, cancel_futures=True)
        del pool, queue
        gc.collect()  # the queues' semaphores go now: a command exits without a final collection
