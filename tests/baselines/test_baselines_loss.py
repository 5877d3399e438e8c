"""Baselines keep the loss they were fitted with, its parameter included, and refuse files that contradict it."""

import json

import numpy as np
import pytest

from dpci import baselines
from dpci.errors import InvalidInput
from dpci.losses import HuberHinge, Logistic, Squared, declaration
from support import custom_losses
from support.baselines import BUDGET, make_rows
from support.saved import rewritten

X, Y, LABELS = make_rows()
pytestmark = pytest.mark.filterwarnings("ignore::dpci.PrivacyLeakWarning")


def functional(y=Y, **keywords):
    return baselines.functional_mechanism(X, y, **{"budget": BUDGET, "seed": 5, **keywords})


@pytest.mark.parametrize(("loss", "text"), [(HuberHinge(h=0.1), "huber hinge (h=0.1)"), (Logistic(), "logistic")])
def test_the_parameter_of_a_loss_is_kept(loss, text):
    model = baselines.non_private(X, LABELS, loss=loss, l2_strength=0.1)
    assert model.loss == declaration(loss, loss.to_core())
    assert text in model.summary()
    again = baselines.BaselineFit.from_json(model.to_json())
    assert again.loss == model.loss
    # Nothing inside a result can be changed from outside.
    model.loss["name"] = "other"
    model.privacy["constants"]["loss"]["name"] = "other"
    assert model.loss == again.loss


def test_histograms_and_the_functional_mechanism_keep_the_bound_on_targets():
    columns = [baselines.Bins(column=j, lower=-1.0, upper=1.0, count=2) for j in range(X.shape[1])]
    histogram = baselines.projected_histogram(
        X, Y, budget=BUDGET, axes=columns, l2_strength=0.1, loss=Squared(5.0), seed=1
    )
    for model in (histogram, functional(loss=Squared(5.0)), functional(target_bound=5.0)):
        assert "squared (target_bound=5)" in model.summary()
        assert model.loss["target_bounds"] == [-5.0, 5.0]


def test_the_functional_mechanism_takes_objects():
    named = functional(target_bound=2.0)
    np.testing.assert_array_equal(functional(loss=Squared(2.0)).params, named.params)
    np.testing.assert_array_equal(functional(loss=Squared(2.0), target_bound=2.0).params, named.params)
    logistic = [functional(LABELS, loss=loss).params for loss in ("logistic", Logistic())]
    np.testing.assert_array_equal(*logistic)
    with pytest.raises(InvalidInput, match=r"the target_bound of the loss, 2\.0, got target_bound=3\.0"):
        functional(loss=Squared(2.0), target_bound=3.0)
    with pytest.raises(InvalidInput, match="loss must be one of 'squared', 'logistic'"):
        functional(loss=HuberHinge())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slope_bound": 1.0}, "declaration of Squared"),
        ({"target_bounds": [-1.0, 1.0]}, "declaration of Squared"),
        ({"target_bound": -1.0}, "target_bound must be finite and > 0"),
        ({"name": "magic"}, r"loss\.name must be one of 'custom'"),
        ({"name": None}, r"loss\.name must be one of 'custom'"),
    ],
)
def test_files_that_contradict_the_loss_are_refused(change, message):
    values = json.loads(functional(loss=Squared(5.0)).to_json())
    values["loss"].update(change)
    with pytest.raises(InvalidInput, match=message):
        baselines.BaselineFit.from_json(rewritten(values))
    del values["loss"]["name"]
    with pytest.raises(InvalidInput, match="every field of its schema"):
        baselines.BaselineFit.from_json(rewritten(values))


def test_a_custom_loss_survives_a_file():
    loss = custom_losses.logistic()
    model = baselines.non_private(X, LABELS, loss=loss, l2_strength=0.1)
    assert baselines.BaselineFit.from_json(model.to_json()).loss == model.loss
