"""Parameters of estimators: declared and described once, and shown with every class."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import dpci.sklearn
from dpci.sklearn.docstrings import merged
from dpci.sklearn.parameters import CommonParameters

KINDS = [getattr(dpci.sklearn, name) for name in dpci.sklearn.__all__]
KINDS = [kind for kind in KINDS if issubclass(kind, CommonParameters)]
ENTRY = re.compile(r"^(\w+) : .+\n    [A-Z\"(]", re.MULTILINE)


def section(kind, heading):
    return re.split(r"\n(?=\w+\n-+\n)", inspect.getdoc(kind).partition(f"{heading}\n{'-' * len(heading)}\n")[2])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_each_parameter_is_described_with_each_class(kind):
    parameters = inspect.signature(kind).parameters
    assert ENTRY.findall(section(kind, "Parameters")) == list(parameters)
    assert all(parameter.annotation is not parameter.empty for parameter in parameters.values())
    attributes = {"coef_", "intercept_", "n_features_in_", "feature_names_in_", "result_"}
    assert attributes <= set(ENTRY.findall(section(kind, "Attributes")))
    assert not hasattr(kind(), "result_")


@pytest.mark.parametrize("kind", KINDS)
def test_type_checkers_know_all_arguments_of_the_constructor(kind):
    """A data class with a base class that has no type information would take any argument, as far as mypy knows."""
    typed = next(
        base for base in kind.__mro__ if "__init__" in vars(base) and base.__module__ == CommonParameters.__module__
    )
    assert all(base is object or base.__module__ == CommonParameters.__module__ for base in typed.__mro__)


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_are_not_compared_and_shown_as_scikit_learn_does(kind):
    assert kind() != kind()
    assert hash(kind()) is not None
    assert repr(kind(epsilon=2.0)).startswith(f"{kind.__name__}(epsilon=2.0")
    assert kind.__repr__ is BaseEstimator.__repr__


def test_a_later_description_replaces_an_earlier_one():
    base = "Base.\n\nParameters\n----------\na : int\n    One.\nb : int\n    Two.\n\n    More."
    own = "Parameters\n----------\nc : int\n    Three.\na : float\n    Own."
    text = f"Line.\n\nText.\n\n{own}\n\nExamples\n--------\n>>> 1\n"
    parameters = "Parameters\n----------\na : float\n    Own.\nb : int\n    Two.\n\n    More.\nc : int\n    Three."
    attributes = "Attributes\n----------\nd_ : int\n    Four."
    found = merged([base, attributes, text])
    assert found == f"Line.\n\nText.\n\n{parameters}\n\n{attributes}\n\nExamples\n--------\n>>> 1\n"


@pytest.mark.parametrize("name", ["C", "penalty", "n_jobs", "random_state", "max_iter", "budget"])
def test_parameters_of_scikit_learn_are_answered_by_those_of_the_estimator(name):
    with pytest.raises(TypeError, match=rf"^PrivateLogisticRegression\(\) got .* '{name}': pass "):
        dpci.sklearn.PrivateLogisticRegression(**{name: 1})


def test_the_second_label_in_order_is_the_positive_one():
    with pytest.raises(dpci.InvalidInput, match="to model 'high', pass y == 'high'"):
        dpci.sklearn.PrivateLogisticRegression(classes=("low", "high")).fit(np.zeros((4, 1)), ["low", "high"] * 2)
