"""Schemes: rules by which the regularisation Q_t adapts to the gradients."""

from ftprl.schemes.base import ClosedForm, Scheme, SchemeState
from ftprl.schemes.best_bound import BestBound
from ftprl.schemes.centred import CentredBestBound
from ftprl.schemes.constant import BlockConstant, CoordinateConstant
from ftprl.schemes.diagonal import Diagonal
from ftprl.schemes.ellipsoid import john
from ftprl.schemes.fixed import Fixed
from ftprl.schemes.full import Full, Sketch

__all__ = [
    "BestBound",
    "BlockConstant",
    "CentredBestBound",
    "ClosedForm",
    "CoordinateConstant",
    "Diagonal",
    "Fixed",
    "Full",
    "Scheme",
    "SchemeState",
    "Sketch",
    "john",
]
