"""The example configuration of a cluster is valid for `ray up`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ftprl[ray]'")
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "cluster.yaml"


def test_ray_takes_the_example() -> None:
    jsonschema, yaml = pytest.importorskip("jsonschema"), pytest.importorskip("yaml")
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    example = yaml.safe_load(EXAMPLE.read_text())
    jsonschema.validate(example, schema)
    starts = [*example["head_start_ray_commands"], *example["worker_start_ray_commands"]]
    assert all("RAY_AUTH_MODE=token" in command for command in starts if " start " in command)
