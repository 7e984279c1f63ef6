"""What all tests share: the examples of Hypothesis, threads of linear algebra, and how the process answers Ctrl-C."""

import os
import signal

from hypothesis import HealthCheck, settings

# Tests run in several processes: with further threads in each, small products of matrices wait for a free core, which
# takes up to ten times as long as the product. NumPy reads this when it is imported, after this file.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run, and no failure because other work slows the machine down.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


def pytest_configure() -> None:
    """Answer Ctrl-C as a terminal's process does, also where a shell in the background has the signal ignored.

    Python installs no handler for an ignored signal, and child processes would ignore it, too.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
