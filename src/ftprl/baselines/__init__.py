"""Other algorithms with FTPRL's interface; FTPRL's bounds do not apply to them."""

from ftprl.baselines.adagrad import AdaGrad, AdaGradDual
from ftprl.baselines.adaptive import AdaptiveDescent, PerCoordinateDescent, ProximalDescent
from ftprl.baselines.averaging import DualAveraging
from ftprl.baselines.classifiers import Arow, Classifier, ConfidenceWeighted, LearnerClassifier
from ftprl.baselines.descent import GradientDescent, LazyDescent, RestartedDescent
from ftprl.baselines.exponentiated import ExponentiatedGradient
from ftprl.baselines.newton import NewtonLeader, OnlineNewtonStep
from ftprl.baselines.perturbed import PerturbedLeader
from ftprl.baselines.proximal import Fobos, Pegasos
from ftprl.baselines.tuning import Best, best_constant

__all__ = [
    "AdaGrad",
    "AdaGradDual",
    "AdaptiveDescent",
    "Arow",
    "Best",
    "Classifier",
    "ConfidenceWeighted",
    "DualAveraging",
    "ExponentiatedGradient",
    "Fobos",
    "GradientDescent",
    "LazyDescent",
    "LearnerClassifier",
    "NewtonLeader",
    "OnlineNewtonStep",
    "Pegasos",
    "PerCoordinateDescent",
    "PerturbedLeader",
    "ProximalDescent",
    "RestartedDescent",
    "best_constant",
]
