"""How good predictions are, of any system, on rows with labels: read, compared, and measured."""

from ftprl.evaluation.compare import Comparison, compare_predictions
from ftprl.evaluation.predictions import PredictionFile, Predictor

__all__ = ["Comparison", "PredictionFile", "Predictor", "compare_predictions"]
