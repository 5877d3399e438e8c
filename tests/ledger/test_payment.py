"""No release can forget to pay: read off the source, and from the object that sees to it."""

import ast
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dpci
from dpci.data.rows import Source
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Till, _Silence


def _calls(node, wanted):
    """Calls in a tree by the name of what is called."""
    names = [(call, ast.unparse(call.func)) for call in ast.walk(node) if isinstance(call, ast.Call)]
    return [call for call, name in names if re.fullmatch(wanted, name)]


def _calls_of_hooks(function):
    """Calls in what a function declares as the hooks of its kind: functions in it, by name, and lambdas."""
    (kind,) = _calls(function, "Kind")
    hooks = {keyword.arg: keyword.value for keyword in kind.keywords}
    inside = {each.name: each for each in ast.walk(function) if isinstance(each, ast.FunctionDef)}
    named = {hook: inside.get(ast.unparse(value), value) for hook, value in hooks.items()}
    return {hook: set(_calls(body, ".*")) for hook, body in named.items()}


_RELEASES = r"_core\.(fit_many|release\w*)|newton_release|fit_rows|_released|_matrix|(stage|gaps)\.release\w*"


def test_every_home_of_a_release_pays_before_it():
    """Read off the source: whoever looks at data in order to release them does it in a hook of ``run``."""
    package = Path(dpci.__file__).parent
    releases, homes = 0, set()
    for file in package.glob("**/*.py"):
        source = file.read_text(encoding="utf-8")
        if not re.search(
            r"_core\.(fit_many|release)|newton_release|fit_rows|_released|\bKind\(|(stage|gaps)\.release", source
        ):
            continue
        tree = ast.parse(source)
        for function in tree.body:
            if not isinstance(function, ast.FunctionDef):
                continue
            hooks = _calls_of_hooks(function) if _calls(function, "Kind") else {}
            if function.name not in {
                "fit_rows",
                "newton_release",
                "_released",
                "_matrix",
                "release_counts",  # in ``release_groups``, see below
                "release_groups",  # has a payment of its own, see below
            }:  # are called by them alone, with rows that they have read
                for call in _calls(function, _RELEASES):
                    assert call in hooks.get("release", ()), f"{function.name} in {file.name}, line {call.lineno}"
                    releases += 1
            if hooks:
                homes.add(function.name)
                assert len(_calls(function, "run")) == 1
                assert not _calls(function, r"read|till\.read|describe|as_features|as_partitions|.*prepare")
    assert releases == 13
    assert homes == {
        *("release_fit", "release_tuned", "tune_by_rule", "report"),  # the first also of several classes
        *("functional_mechanism", "projected_histogram", "release_matrix"),
        *("release_schema", "_release_with_bounds"),
    }


def test_all_access_to_the_data_is_enclosed_by_the_till():
    """Read off the source: ``run`` looks at the data, and lets others look, where the release is paid."""
    tree = ast.parse((Path(dpci.__file__).parent / "ledger" / "run.py").read_text(encoding="utf-8"))
    (function,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "run")
    (block,) = (each for each in ast.walk(function) if isinstance(each, ast.With))
    assert ast.unparse(block.items[0].context_expr) == "Till(payment, kind, source)"
    inside = [call for statement in block.body for call in _calls(statement, ".*")]
    order = ["check_index_beside", "source.prepare", "kind.arrange", "till.read", "kind.release"]
    assert [name for name in (ast.unparse(call.func) for call in inside) if name in order] == order
    for name in order:
        assert all(call in inside for call in _calls(function, re.escape(name)))
    (method,) = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "read")
    # Rows are read, calibrated by name and checked before the spend is written.
    wanted = ["read", "kind.by_name", "check_as_released", "self._pay"]
    found = {ast.unparse(call.func): call.lineno for call in _calls(method, "|".join(map(re.escape, wanted)))}
    assert sorted(found, key=found.get) == wanted


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
    kind = Kind(choices=None, resolve=lambda *_: None, release=lambda *_: None)
    with pytest.raises(RuntimeError, match="a release must be settled"), Till(payment, kind, Source([[0.0]], [0.0])):
        pass


def test_a_release_says_where_it_read_classes_from_private_rows():
    X, y = [[0.1], [-0.1]] * 20, [0, 1] * 20
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 1.0, "mechanism": dpci.ObjectivePerturbation(moments="none")}
    with pytest.warns(dpci.PrivacyLeakWarning, match="the classes were inferred from y") as told:
        dpci.fit(X, y, **keywords)
    assert [each.filename for each in told] == [__file__]
    # With a seed nothing is private anyway, and one warning says so.
    with pytest.warns(dpci.SeededNoiseWarning) as told:
        dpci.fit(X, y, seed=1, **keywords)
    assert [each.category for each in told] == [dpci.SeededNoiseWarning]


def test_warnings_are_silent_while_any_of_overlapping_releases_runs():
    with warnings.catch_warnings(record=True, action="always") as told, ThreadPoolExecutor(1) as pool:
        pool.submit(_Silence.begin).result()
        for change in (_Silence.begin, lambda: pool.submit(_Silence.end).result()):
            change()
            warnings.warn("a fact about the data", stacklevel=1)
        assert told == []
        _Silence.end()
        warnings.warn("of released values", stacklevel=1)
        assert [str(each.message) for each in told] == ["of released values"]
