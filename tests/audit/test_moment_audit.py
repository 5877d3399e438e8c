"""An audit of moment matrices: no release shows more than its claim, and half the noise shows more."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/moment_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("moment_audit")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("rows", "residuals"), [("ball", False), ("blocks", True)])
def test_gaussian_noise_keeps_its_claim_and_half_of_it_does_not(bench, neighbors, rows, residuals):
    found, half = bench.Case("gdp", neighbors, rows, residuals).audited(10_000, seed=10**6)
    assert 0.5 < found <= bench.CLAIMS["gdp"] < half
