"""Training and prediction on streams larger than memory: `train` is what `ftprl train` runs."""

from __future__ import annotations

from ftprl.training.live import ProgressBar
from ftprl.training.run import Run
from ftprl.training.train import train

__all__ = ["ProgressBar", "Run", "train"]
