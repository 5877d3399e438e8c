"""Model inversion: guesses against brute force, levels in every coding, and what is refused."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

import dpci
from dpci.audit import model_inversion
from dpci.data.arrays import NamedRows
from dpci.errors import InvalidInput, PrivacyLeakWarning
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


class Linear:
    """A model that is no fit of dpci."""

    def __init__(self, params, intercept=0.0):
        self.params, self.intercept = np.asarray(params, dtype=float), intercept

    def predict(self, X):
        return np.asarray(X) @ self.params + self.intercept


def patients(seed=1, n=300, on=1.0):
    """Two plain columns, two 0/1 columns of an attribute with three levels, and noisy targets."""
    rng = np.random.default_rng(seed)
    levels = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    indicators = np.zeros((n, 2))
    indicators[levels == 1, 0] = indicators[levels == 2, 1] = on
    X = np.column_stack([rng.uniform(-1, 1, size=(n, 2)), indicators])
    params = np.array([0.4, -0.2, -0.3 / on, -0.8 / on])
    return X, X @ params + rng.normal(scale=0.3, size=n), levels, params


PRIOR = {"common": 0.5, 2: 0.3, 3: 0.2}


def brute_force(model, X, y, choices, prior, variance):
    """The guess of every record by the definition: a normal density for each level."""
    guesses = []
    for x, target in zip(X, y, strict=True):
        weights = []
        for (columns, values), share in zip(choices, prior, strict=True):
            candidate = x.copy()
            candidate[list(columns)] = values
            weights.append(share * stats.norm.pdf(target, model.predict(candidate[None])[0], math.sqrt(variance)))
        guesses.append(int(np.argmax(weights)))
    return np.array(guesses)


@pytest.mark.parametrize("on", [1.0, 1 / math.sqrt(8)])
def test_guesses_are_those_of_the_definition(on):
    X, y, levels, params = patients(on=on)
    found = model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=on)
    choices = [((2, 3), (0.0, 0.0)), ((2, 3), (on, 0.0)), ((2, 3), (0.0, on))]
    expected = brute_force(Linear(params), X, y, choices, PRIOR.values(), 0.09)
    np.testing.assert_array_equal(found.guesses, expected)
    np.testing.assert_array_equal(found.truth, levels)
    share = np.mean(expected == levels)
    assert found.accuracy == share
    assert found.standard_error == pytest.approx(math.sqrt(share * (1 - share) / 300))
    assert found.prior_accuracy == np.mean(levels == 0)
    assert found.accuracy > found.prior_accuracy + 3 * found.standard_error
    assert found.levels == ("common", 2, 3)
    assert found.n_samples == 300
    assert found.private is False
    assert "NOT PRIVATE" in found.summary()
    assert repr(found) == found.summary()


def test_all_levels_may_have_columns():
    X, y, levels, params = patients()
    full = np.column_stack([X[:, :2], levels == 0, X[:, 2:]]).astype(float)
    model = Linear([params[0], params[1], 0.0, params[2], params[3]])
    found = model_inversion(
        model, full, y, column=[2, 3, 4], prior={2: 0.5, 3: 0.3, 4: 0.2}, residual_variance=0.09, on=1.0
    )
    reference = model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=1.0)
    np.testing.assert_array_equal(found.guesses, reference.guesses)


def test_a_coded_column_and_a_model_of_scikit_learn():
    X, y, levels, _ = patients()
    coded = np.column_stack([X[:, :2], levels * 0.25])
    model = LinearRegression().fit(coded, y)
    prior = {0.25: 0.3, 0.0: 0.5, 0.5: 0.2}
    found = model_inversion(model, coded, y, column=2, prior=prior, residual_variance=0.1)
    choices = [((2,), (value,)) for value in prior]
    np.testing.assert_array_equal(found.guesses, brute_force(model, coded, y, choices, prior.values(), 0.1))
    np.testing.assert_array_equal(found.truth, np.array([1, 0, 2])[levels])


def test_names_of_a_schema():
    X, y, _, params = patients()
    names = ("age", "height", "vkorc1=A/G", "vkorc1=A/A")
    prior = {"G/G": 0.5, "A/G": 0.3, "A/A": 0.2}
    expected = model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=1.0)
    frame = NamedRows(X, names)
    for column, shares in (("vkorc1", prior), (names[2:], dict(zip((None, *names[2:]), prior.values(), strict=True)))):
        found = model_inversion(Linear(params), frame, y, column=column, prior=shares, residual_variance=0.09, on=1.0)
        np.testing.assert_array_equal(found.guesses, expected.guesses)
    # Without a frame, the fit may know the names.
    model = Linear(params)
    model.names = (*names, "intercept")
    found = model_inversion(model, X, y, column="vkorc1", prior=prior, residual_variance=0.09, on=1.0)
    np.testing.assert_array_equal(found.guesses, expected.guesses)
    assert found.levels == tuple(prior)


def test_a_private_fit():
    X, y, _, _ = patients(n=3_000)
    names = ("age", "height", "vkorc1=A/G", "vkorc1=A/A")
    rows, targets = X / 2, np.clip(y / 3, -1.0, 1.0)
    keywords = {"l2_strength": 0.001, "loss": "squared", "radius": 3.0, "intercept": False, "moments": "none"}
    ways = {"mechanism": "output", "seed": 1, **keywords}
    fit = dpci.fit(NamedRows(rows, names), targets, **assembled(budget=dpci.PureDP(1_000.0), **ways))
    prior = {"G/G": 0.5, "A/G": 0.3, "A/A": 0.2}
    found = model_inversion(fit, rows, targets, column="vkorc1", prior=prior, residual_variance=0.01, on=0.5)
    by_hand = model_inversion(
        Linear(fit.params), rows, targets, column=[2, 3], prior=dict(zip((None, 2, 3), (0.5, 0.3, 0.2), strict=True)),
        residual_variance=0.01, on=0.5,
    )  # fmt: skip
    np.testing.assert_array_equal(found.guesses, by_hand.guesses)
    assert found.accuracy > found.prior_accuracy + 5 * found.standard_error
    # Nothing but noise: nothing but what the prior knows, at best.
    noise = dpci.fit(rows, targets, **assembled(budget=dpci.PureDP(0.001), **ways))
    lost = model_inversion(noise, rows, targets, column=[2, 3], prior=PRIOR, residual_variance=0.01, on=0.5)
    assert lost.accuracy < found.accuracy - 5 * found.standard_error


def test_zero_priors_are_never_guessed():
    X, y, levels, params = patients()
    keep = levels != 1
    prior = {"common": 0.6, 2: 0.0, 3: 0.4}
    found = model_inversion(Linear(params), X, y, column=[2, 3], prior=prior, residual_variance=1e-300, on=1.0)
    assert set(found.guesses) <= {0, 2}
    # The attacker may be sure: then the model tells nothing more.
    sure = model_inversion(
        Linear(params), X[keep], y[keep], column=[2, 3], prior={None: 0.0, 2: 0.0, 3: 1}, residual_variance=1.0, on=1
    )
    assert set(sure.guesses) == {2}
    assert sure.accuracy == sure.prior_accuracy


def test_a_model_without_the_attribute_leaves_the_prior():
    X, y, _, params = patients()
    blind = Linear([params[0], params[1], 0.0, 0.0])
    found = model_inversion(
        blind, X, y, column=[2, 3], prior={3: 0.2, "common": 0.4, 2: 0.4}, residual_variance=0.09, on=1.0
    )
    # Of equal scores the first.
    assert set(found.guesses) == {1}
    assert found.accuracy == found.prior_accuracy


def test_order_and_unit_do_not_matter():
    X, y, _, params = patients()
    first = model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=1.0)
    for order in itertools.permutations(PRIOR):
        prior = {level: PRIOR[level] for level in order}
        found = model_inversion(Linear(params), X, y, column=[3, 2], prior=prior, residual_variance=0.09, on=1.0)
        assert found.accuracy == first.accuracy
    scaled = model_inversion(
        Linear(9 * params, 5), X, 9 * y + 5, column=[2, 3], prior=PRIOR, residual_variance=81 * 0.09, on=1
    )
    np.testing.assert_array_equal(scaled.guesses, first.guesses)


@pytest.mark.parametrize("on", [1.0, 1 / math.sqrt(8)])
def test_a_guess_does_not_depend_on_the_other_records(on):
    X, y, levels, params = patients(on=on)
    ways = {"column": [2, 3], "prior": PRIOR, "residual_variance": 0.09, "on": on}
    together = model_inversion(Linear(params), X, y, **ways)
    alone = [model_inversion(Linear(params), X[i : i + 1], y[i : i + 1], **ways) for i in range(len(y))]
    np.testing.assert_array_equal([found.guesses[0] for found in alone], together.guesses)
    np.testing.assert_array_equal([found.truth[0] for found in alone], levels)
    # Nor on whether any record has its indicators set.
    np.testing.assert_array_equal(
        model_inversion(Linear(params), X[levels == 0], y[levels == 0], **ways).guesses, together.guesses[levels == 0]
    )


def test_indicators_hold_what_they_are_said_to():
    X, y, _, params = patients(on=0.5)
    for on, shown in ((None, "on must be given with indicator columns"), (1.0, r"one of .* got \[.*0.5.*\] in row")):
        with pytest.raises(InvalidInput, match=shown):
            model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=on)


def test_it_warns():
    X, y, _, params = patients(n=10)
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=1.0)


class Classifier:
    classes = (0, 1)

    def predict(self, X):
        return np.zeros(len(X))


class Texts:
    def predict(self, X):
        return ["high"] * len(X)


class Short:
    def predict(self, X):
        return np.zeros(len(X) - 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"residual_variance": 0.0}, "residual_variance must be finite and > 0"),
        ({"residual_variance": math.nan}, "residual_variance"),
        ({"prior": {}}, "prior must be a mapping"),
        ({"prior": [0.5, 0.5]}, "prior must be a mapping"),
        ({"prior": {None: 0.5, 2: 0.3, 3: 0.3}}, "prior must sum to 1, got 1.1"),
        ({"prior": {None: 1.2, 2: -0.2, 3: 0.0}}, r"prior\[2\] must be finite and >= 0"),
        ({"prior": {None: math.nan, 2: 0.5, 3: 0.5}}, "prior"),
        ({"prior": {None: 0.5, 2: 0.5}}, "a key for every column, got no key for 3"),
        ({"prior": {0: 0.5, 1: 0.1, 2: 0.2, 3: 0.2}}, "one key without a column"),
        ({"prior": {2: 0.5, 3: 0.5}}, r"must have a level of the prior, .*, got \[0.0, 0.0\] in row"),
        ({"column": []}, "at least one"),
        ({"column": [2, 2], "prior": {2: 1.0}}, "different columns"),
        ({"column": [2, 9]}, "column must be an index below 4"),
        ({"column": "age"}, "column must be an index"),
        ({"column": True}, "column must be an index"),
        ({"column": -1, "prior": {0: 1}}, "column must be an index"),
        ({"column": 2, "prior": {"a": 1}}, "levels of a coded column must be finite numbers, got 'a'"),
        ({"column": 2, "prior": {0: 1}}, r"must have a level of the prior, one of \[\[0.0\]\], got \[1.0\]"),
        ({"column": [0, 1], "prior": {0: 0.5, 1: 0.5}}, "must have a level of the prior"),
        ({"on": None}, "on must be given with indicator columns"),
        ({"on": 0.0}, "on must be finite and > 0, got on=0.0"),
        ({"on": math.nan}, "on must be finite"),
        ({"on": "1"}, "on must be"),
        ({"column": 2, "prior": {0: 0.5, 1: 0.5}, "on": 1.0}, "on must be None unless column names indicator columns"),
        ({"result": Classifier()}, r"requires a regression, got a model of the classes \(0, 1\)"),
        ({"result": Texts()}, "must predict numbers"),
        ({"result": Short()}, "a number for each row"),
        ({"result": Linear([math.inf, 0, 0, 0])}, "predictions must be finite"),
        ({"y": [1.0]}, "equally many rows"),
        ({"X": np.zeros((0, 4)), "y": []}, "at least one"),
    ],
)
def test_refused(change, message):
    X, y, _, params = patients(n=20)
    given = {"result": Linear(params), "X": X, "y": y, "column": [2, 3], "prior": PRIOR, "residual_variance": 0.09}
    given |= change
    if isinstance(given["column"], list):
        given = {"on": 1.0, **given}
    result, X, y = given.pop("result"), given.pop("X"), given.pop("y")
    with pytest.raises(InvalidInput, match=message), np.errstate(invalid="ignore"):
        model_inversion(result, X, y, **given)


@pytest.mark.parametrize("where", ["X", "y"])
def test_nan_is_refused(where):
    X, y, _, params = patients(n=20)
    {"X": X, "y": y}[where][3] = math.nan
    with pytest.raises(InvalidInput, match=f"{where} must be finite"):
        model_inversion(Linear(params), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.09, on=1.0)


def test_a_tiny_variance_leaves_the_nearest_level():
    """The quotient by a subnormal variance is infinite for every level; the comparison must not be."""
    X, _, levels, params = patients(n=50)
    clean = X @ params
    for variance in (1e-9, 1e-307, 1e-320):
        found = model_inversion(
            Linear(params), X, clean, column=[2, 3], prior=PRIOR, residual_variance=variance, on=1.0
        )
        np.testing.assert_array_equal(found.guesses, levels)


def test_something_without_predictions_is_refused():
    X, y, *_ = patients(n=10)
    with pytest.raises(
        InvalidInput, match=r"must have a method predict, got object .for a tuning, pass its attribute result."
    ):
        model_inversion(object(), X, y, column=[2, 3], prior=PRIOR, residual_variance=0.1, on=1.0)
