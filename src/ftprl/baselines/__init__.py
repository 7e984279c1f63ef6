"""What people would use instead, behind the same interface: no bound of FTPRL's applies to them."""

from ftprl.baselines.adagrad import AdaGrad
from ftprl.baselines.descent import GradientDescent

__all__ = ["AdaGrad", "GradientDescent"]
