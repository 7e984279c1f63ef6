"""Running sums while a game is played, and the certificate they add up to at any moment."""

from ftprl.bounds.certificate import Certificate, History
from ftprl.bounds.certify import Bounds, certify
from ftprl.bounds.delays import Delays, count_delays
from ftprl.bounds.ledger import Ledger

__all__ = ["Bounds", "Certificate", "Delays", "History", "Ledger", "certify", "count_delays"]
