"""No release can forget to pay: read off the source, and from the object that sees to it."""

import ast
import re
import warnings
from pathlib import Path

import pytest

import dpci
from dpci.ledger.payment import Payment, _Silence


def _calls(node, wanted):
    """Calls in a tree by the name of what is called."""
    names = [(call, ast.unparse(call.func)) for call in ast.walk(node) if isinstance(call, ast.Call)]
    return [call for call, name in names if re.fullmatch(wanted, name)]


def test_every_home_of_a_release_pays_before_it():
    """Read off the source: whoever looks at data in order to release them does it where the release is paid."""
    package = Path(dpci.__file__).parent
    releases, homes = 0, set()
    for file in package.glob("**/*.py"):
        source = file.read_text(encoding="utf-8")
        if not re.search(r"_core\.(fit|release_)|fit_rows|_released|payment\.release", source):
            continue
        for function in ast.walk(ast.parse(source)):
            if not isinstance(function, ast.FunctionDef):
                continue
            paid = [
                inside
                for block in ast.walk(function)
                if isinstance(block, ast.With)
                and ast.unparse(block.items[0].context_expr).startswith("payment.release(")
                for inside in ast.walk(block)
            ]
            if function.name not in {
                "fit_rows",
                "_released",
                "release_counts",  # in ``release_groups``, see below
            }:  # are called by them alone, with rows that they have read
                for call in _calls(function, r"_core\.(fit|fit_parts|release_\w+)|fit_rows|_released"):
                    assert call in paid, f"{file.name}, line {call.lineno}"
                    releases += 1
            if paid:
                homes.add(function.name)
                looks = r"read|till\.read|describe|as_features|as_partitions|prepare"
                for call in _calls(function, looks):
                    assert call in paid, f"{file.name}, line {call.lineno}"
    assert releases == 9
    assert homes == {
        *("release_fit", "release_tuned", "tune_by_rule", "report"),  # the first also of several classes
        *("functional_mechanism", "projected_histogram", "release_matrix"),
    }


def test_many_fits_are_paid_before_they_are_released():
    """Read off the source: many tables have one payment, written when all of them were checked."""
    source = (Path(dpci.__file__).parent / "model" / "fit_many.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    (settled,) = _calls(tree, r"payment\.settle")
    (released,) = _calls(tree, r"_core\.fit_many")
    (counted,) = _calls(tree, r"count")
    assert settled.lineno < counted.lineno < released.lineno


def test_a_release_that_was_not_settled_is_a_defect():
    budget = dpci.PureDP(0.1)
    payment = Payment.due("a test", dpci.Ledger(budget), budget=budget, neighbors="replace_one", seed=None)
    with (
        pytest.raises(RuntimeError, match="a release must be settled"),
        payment.release([[0.0]], [0.0], None, lambda *_: None),
    ):
        pass


def test_a_release_says_where_it_read_classes_from_private_rows():
    X, y = [[0.1], [-0.1]] * 20, [0, 1] * 20
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 1.0, "moments": "none"}
    with pytest.warns(dpci.PrivacyLeakWarning, match="the classes were inferred from y") as told:
        dpci.fit(X, y, **keywords)
    assert [each.filename for each in told] == [__file__]
    # With a seed nothing is private anyway, and one warning says so.
    with pytest.warns(dpci.SeededNoiseWarning) as told:
        dpci.fit(X, y, seed=1, **keywords)
    assert [each.category for each in told] == [dpci.SeededNoiseWarning]


def test_warnings_are_silent_while_any_of_overlapping_releases_runs():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for change in (_Silence.begin, _Silence.begin, _Silence.end):
            change()
            warnings.warn("a fact about the data", stacklevel=1)
        assert told == []
        _Silence.end()
        warnings.warn("of released values", stacklevel=1)
        assert [str(each.message) for each in told] == ["of released values"]
