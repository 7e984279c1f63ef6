"""Receipts of sparse runs: `certify` writes one from a model, `verify` replays the data and confirms each number."""

from __future__ import annotations

from ftprl.receipt.certificate import SparseCertificate
from ftprl.receipt.certify import certify
from ftprl.receipt.document import read, write
from ftprl.receipt.verify import Check, Verdict, verify

__all__ = ["Check", "SparseCertificate", "Verdict", "certify", "read", "verify", "write"]
