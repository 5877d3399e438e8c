"""Where every test starts: helpers on the path, global generators in one state, Ctrl-C heard, and no figures open."""

import inspect
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from dpci import _core

SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())

# None in the core of a release, where tests that ask it are skipped: `make build` builds the core for tests.
TESTING = getattr(_core, "Testing", None)

# So that test files can share what is in ``support``, and import from ``benches`` the published experiments and the
# panels of figures: importlib mode leaves both folders off.
sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benches")]

from support import noise  # noqa: E402  # found by the line above

# A shell makes what a script starts in the background deaf to Ctrl-C, which tests send to themselves and to programs.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Plots need no display, whatever the environment says.
os.environ["MPLBACKEND"] = "agg"

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:  # with the oldest scikit-learn, say, where no test needs it
    pass
else:
    # The same examples in every run, however slow the machine; fresh ones are for ``make prove`` and for fuzzing.
    settings.register_profile(
        "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("fixed")


def pytest_configure():
    """Refuse to test another instruction set than the one asked for: the core itself only takes it for a limit."""
    asked = os.environ.get("DPCI_SIMD")
    if TESTING and asked not in {None, level := TESTING.instruction_set()}:
        raise pytest.UsageError(f"DPCI_SIMD={asked} is not a level of this processor; its widest below is {level}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of slow.txt, which ``make check-fast`` leaves to ``make test``, and those that a release skips."""
    for item in items:
        if TESTING is None and "_core.Testing" in inspect.getsource(item.function):
            item.add_marker(pytest.mark.skip("the core of a release has no functions for tests"))
        if f"{item.path.relative_to(Path(__file__).parent).as_posix()}::{item.originalname}" in SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_report_header():
    """Name the instruction set of the core."""
    return f"instruction set of the core: {TESTING.instruction_set() if TESTING else 'not told by a release'}"


def pytest_runtest_setup(item):
    """Fix the noise of releases without a seed, and what other libraries draw from the global generators."""
    noise.start(entropy=item.get_closest_marker("entropy") is not None)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  # theirs is the legacy generator


def pytest_runtest_teardown():
    """Close the figures of a test: of more than twenty that are open, matplotlib warns whoever makes the next."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:  # it never is where nobody drew, nor in a test without matplotlib
        plt.close("all")
