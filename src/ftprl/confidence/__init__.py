"""What to expect of rows to come: intervals that hold at every row at once, and an alarm for a loss that rises."""

from ftprl.confidence.interval import MeanInterval
from ftprl.confidence.residuals import ResidualGroup, ResidualSummary
from ftprl.confidence.run import Drift, RunConfidence, RunMonitor

__all__ = ["Drift", "MeanInterval", "ResidualGroup", "ResidualSummary", "RunConfidence", "RunMonitor"]
