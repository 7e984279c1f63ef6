"""Training and prediction on streams larger than memory: `train` is what `ftprl train` runs."""

from __future__ import annotations

from ftprl.training.run import Run, train

__all__ = ["Run", "train"]
