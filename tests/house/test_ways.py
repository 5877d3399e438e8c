"""Ways of values through the files of the package: whoever follows a fit to its page meets few of them."""

import warnings

import pytest

import house_figures

# Files, and times that the way comes back to one. The numbers shrink.
MOST = {
    "a fit to its page": (16, 155),
    "a fit to its summary": (11, 125),
    "X into a fit": (6, 15),
    "y into a matrix": (8, 20),
}


@pytest.fixture(scope="module")
def ways():
    with warnings.catch_warnings(action="ignore"):
        return {name: (files, returns) for name, files, returns, _ in house_figures.journeys()}


def test_every_way_has_a_limit(ways):
    assert set(ways) == set(MOST)


@pytest.mark.parametrize("way", MOST)
def test_a_way_visits_few_files_and_returns_to_few(ways, way):
    (files, returns), (most_files, most_returns) = ways[way], MOST[way]
    assert 3 < files <= most_files
    assert returns <= most_returns
