"""A page of a run that was never written to a file."""

from __future__ import annotations

from pathlib import Path

import ftprl
from ftprl.data import clicks
from ftprl.report import page
from ftprl.runlog import events


def test_events_in_memory_make_the_page_of_their_file(tmp_path: Path) -> None:
    clicks.generate(300, seed=1, path=tmp_path / "c.csv")
    result = tmp_path / "run.jsonl"
    run = ftprl.train(tmp_path / "c.csv", label="click", bits=12, receipt=True, events=result)
    made = page(run.events, "a run")
    assert made == page(events.read_events(result), "a run")
    assert "nothing to mix" not in made, "eight scales were learned"
