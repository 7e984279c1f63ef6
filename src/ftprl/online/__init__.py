"""A classifier and a regressor that learn one dict at a time, with River's methods but without River."""

from ftprl.online.classifier import OnlineClassifier
from ftprl.online.regressor import OnlineRegressor

__all__ = ["OnlineClassifier", "OnlineRegressor"]
