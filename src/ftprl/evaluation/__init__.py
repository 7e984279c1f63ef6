"""Measure and compare predictions of any system on rows with labels."""

from ftprl.evaluation.classes import ClassEvaluation, ClassMetrics, evaluate_classes
from ftprl.evaluation.compare import Comparison, compare_predictions
from ftprl.evaluation.evaluate import Evaluation, evaluate_predictions
from ftprl.evaluation.moments import Metric
from ftprl.evaluation.predictions import PredictionFile, Predictor

__all__ = [
    "ClassEvaluation",
    "ClassMetrics",
    "Comparison",
    "Evaluation",
    "Metric",
    "PredictionFile",
    "Predictor",
    "compare_predictions",
    "evaluate_classes",
    "evaluate_predictions",
]
