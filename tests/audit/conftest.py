"""The scripts of benches that make audits, which tests run for fewer releases."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench(request):
    """Return the script that a file of tests names as BENCH."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module(request.module.BENCH)
    finally:
        sys.path.remove(folder)
