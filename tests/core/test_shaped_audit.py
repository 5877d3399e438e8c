"""A black-box audit of noise in the shape of rows: below its claim, and above it with half the noise."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/shaped_audit.md, which has the other notions and relations."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("shaped_audit")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize(("notion", "relation"), [("pure", "replace_one"), ("approx", "add_remove")])
def test_releases_stay_below_their_claim_and_half_the_noise_does_not(bench, notion, relation):
    """Bounds at confidence 1 - 1e-6."""
    claim, found, half = bench.audited(notion, relation, 10_000, seed=140)
    assert 0.1 * claim < found <= claim
    assert half > 1.3 * claim
