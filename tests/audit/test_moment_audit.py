"""Audits of moment matrices: no release shows more than its claim, and half the noise, or rows as people, show more."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHES = str(Path(__file__).parents[2] / "benches")


@pytest.fixture(scope="module")
def scripts():
    """Return the scripts that make docs/evidence/moment_audit.md and person_moment_audit.md."""
    sys.path.insert(0, BENCHES)
    try:
        yield [importlib.import_module(name) for name in ("moment_audit", "person_moment_audit")]
    finally:
        sys.path.remove(BENCHES)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("rows", "residuals"), [("ball", False), ("blocks", True)])
def test_gaussian_noise_keeps_its_claim_and_half_of_it_does_not(scripts, neighbors, rows, residuals):
    bench, _ = scripts
    found, half = bench.Case("gdp", neighbors, rows, residuals).audited(10_000, seed=10**6)
    assert 0.5 < found <= bench.CLAIMS["gdp"] < half


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_residual_moments_of_persons_keep_their_claim_and_rows_as_people_do_not(scripts, neighbors):
    bench, of_persons = scripts
    case = of_persons.PersonCase("gdp", neighbors, "ball", residuals=True, n_equal=10)
    found, half = case.audited(5000, seed=10**6)
    rows_as_people = bench.Case("gdp", neighbors, "ball", residuals=True, n_equal=10).audited(5000, seed=10**6)
    assert 0.4 < found <= bench.CLAIMS["gdp"] < min(half, *rows_as_people)
