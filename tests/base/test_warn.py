"""A warning points at the nearest line outside of the package, through what calls its estimators."""

import inspect

import pytest

from dpci.base.warn import warn


@pytest.mark.parametrize("module", ["dpci.room.file", "sklearn.base", "joblib.parallel", "dpci_of_another"])
def test_a_warning_points_at_the_first_line_outside(module):
    inner = {"__name__": "dpci.inner", "warn": warn}
    exec("def give():\n    warn(UserWarning('said'))", inner)  # a function of another module
    outer = {"__name__": module, "give": inner["give"]}
    exec(compile("def call():\n    give()", "outer.py", "exec"), outer)  # as above
    with pytest.warns(UserWarning, match="said") as caught:
        outer["call"]()
    line = inspect.currentframe().f_lineno - 1
    passed = not module.startswith("dpci_")
    assert (caught[0].filename, caught[0].lineno) == ((__file__, line) if passed else ("outer.py", 2))
