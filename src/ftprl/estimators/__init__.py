"""Estimators in the form of scikit-learn, over the same trainer as `ftprl.train`; needs the extra `ftprl[sklearn]`."""

try:
    import sklearn as _sklearn  # noqa: F401  # without it the error should say what to install
except ImportError as missing:
    raise ImportError("the estimators need scikit-learn; pip install 'ftprl[sklearn]'") from missing

from ftprl.estimators.classifier import FTPRLClassifier
from ftprl.estimators.regressor import FTPRLRegressor

__all__ = ["FTPRLClassifier", "FTPRLRegressor"]
