"""Estimators in the form of scikit-learn, over the same trainer as `ftprl.train`; needs the extra `ftprl[sklearn]`."""

from ftprl.extras import extra_imports

with extra_imports:
    import sklearn as _sklearn  # noqa: F401  # without it the error should say what to install

from ftprl.estimators.classifier import FTPRLClassifier
from ftprl.estimators.regressor import FTPRLRegressor

__all__ = ["FTPRLClassifier", "FTPRLRegressor"]
