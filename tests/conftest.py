"""Settings of all tests: the examples of Hypothesis, threads of linear algebra, and the handling of Ctrl-C."""

import os
import signal

from hypothesis import HealthCheck, settings

# Tests run in several processes: with further threads in each, small products of matrices wait for a free core, which
# takes up to ten times as long as the product. NumPy reads this when it is imported, after this file.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Equal examples in every run, and no failure because other work slows the machine down.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


def pytest_configure() -> None:
    """Handle Ctrl-C as a process in a terminal does, even if a background shell has set the signal to be ignored.

    Python installs no handler for an ignored signal, and child processes would ignore it, too.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
