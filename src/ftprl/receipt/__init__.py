"""Receipts of training runs: how good the predictions were, proved, and checked by learning the data once more.

`ledger` and `certificate` compute the numbers, `provenance` and `recorder` keep what a run adds to its model,
`document` is the JSON file, `replay`, `audit` and `verify` check it. For games and schemes see `ftprl.bounds`.
"""

from __future__ import annotations

from ftprl.receipt.certificate import StreamCertificate
from ftprl.receipt.certify import NotProved, certify_model
from ftprl.receipt.checks import Check
from ftprl.receipt.document import make_receipt, read_receipt, write_receipt
from ftprl.receipt.verify import Verdict, verify_receipt

__all__ = [
    "Check",
    "NotProved",
    "StreamCertificate",
    "Verdict",
    "certify_model",
    "make_receipt",
    "read_receipt",
    "verify_receipt",
    "write_receipt",
]
