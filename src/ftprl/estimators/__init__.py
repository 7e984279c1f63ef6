"""Estimators in the form of scikit-learn, over the same trainer as `ftprl.train`; needs the extra `ftprl[sklearn]`."""

from ftprl.estimators.classifier import FTPRLClassifier
from ftprl.estimators.regressor import FTPRLRegressor

__all__ = ["FTPRLClassifier", "FTPRLRegressor"]
