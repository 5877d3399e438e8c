"""The made-up table of people for the tests of a file."""

import pytest

from support.people import make_people


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    make_people(folder)
    return folder
