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


# As many runs as half the noise needs to be found; 200,000 are in docs/evidence/shaped_audit.md.
@pytest.mark.parametrize(
    ("notion", "relation", "n_runs"), [("pure", "replace_one", 4_000), ("approx", "add_remove", 2_000)]
)
def test_releases_stay_below_their_claim_and_half_the_noise_does_not(bench, notion, relation, n_runs):
    """Bounds at confidence 1 - 1e-6."""
    claim, found, half = bench.audited(notion, relation, n_runs, seed=140)
    assert found <= claim
    assert half > 1.1 * claim
