"""Running sums of a game, and the certificate that follows from them at any round."""

from ftprl.bounds.certificate import Certificate, History
from ftprl.bounds.certify import Bounds, certify
from ftprl.bounds.delays import Delays, count_delays
from ftprl.bounds.ledger import Ledger

__all__ = ["Bounds", "Certificate", "Delays", "History", "Ledger", "certify", "count_delays"]
