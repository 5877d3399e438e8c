"""Audits of multinomial fits: below the claim, and above it with half the noise or a person's rows taken for people."""

import dataclasses
import importlib
import sys
from pathlib import Path

import pytest

import dpci


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/multinomial_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("multinomial_audit")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize(("mechanism", "noise"), [("objective", 0.5), ("output", 0.25)])
def test_too_little_noise_is_found(bench, mechanism, noise):
    """In twice the dimensions so few runs find a quarter of the noise."""
    case = bench.Case(mechanism, dpci.PureDP(2.0), "add_remove")
    claimed, broken = (case.bound(2000, noise=one, first_seed=10**6) for one in (1.0, noise))
    assert 0.4 < claimed <= 2.0 < broken <= 2.0 / noise


@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.ApproxDP(4.0, 0.01)])
def test_the_noise_that_is_halved_is_half_of_that_of_the_claim(bench, budget):
    case = bench.Case("objective", budget, "add_remove")
    claimed, halved = (case.with_noise(share).noise_scale for share in (1.0, 0.5))
    assert halved == pytest.approx(0.5 * claimed, rel=1e-9)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_person_of_ten_rows(bench, mechanism):
    case = bench.Case(mechanism, dpci.PureDP(2.0), "add_remove", unit="person")
    protected, alone = (
        dataclasses.replace(case, unit=unit).bound(1000, first_seed=10**6) for unit in ("person", "rows")
    )
    assert 0.2 < protected <= 2.0
    assert alone > 3.0


def test_the_density_is_that_of_the_releases(bench):
    """The mean ratio of the densities of both data sets, over releases on the other one, is 1."""
    case = bench.Case("objective", dpci.PureDP(0.5), "replace_one")
    spec = case.specification(case.budget)
    drawn = case.params(spec, 1.0, range(200))
    ratio = case.log_density(spec, drawn, -1.0) - case.log_density(spec, drawn, 1.0)
    assert abs(float((2.718281828459045**ratio).mean()) - 1.0) < 0.25
    assert float(abs(ratio).max()) <= 0.5
