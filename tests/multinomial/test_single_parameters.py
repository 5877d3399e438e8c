"""Notes on intervals of single parameters: noise leaves it open, by released values alone."""

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci.multinomial.result import fit_of
from dpci.report.summary import TRUSTED_COVERAGE, mean_coverage

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.SeededNoiseWarning")
NOTE = "They hold on average over the parameters."


def fitted(budget, seed=1, **asked):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.6, 0.6, (8_000, 2))
    y = (np.column_stack([np.zeros(8_000), X @ [2.0, -1.0], X @ [-1.0, 1.0]]) + rng.gumbel(size=(8_000, 3))).argmax(
        axis=1
    )
    return dpci.multinomial.fit(X, y, classes=range(3), budget=budget, l2_strength=0.02, seed=seed, **asked)


def test_the_coverage_is_that_of_a_normal_error_with_a_greater_variance():
    fit = fit_of(fitted(dpci.ZCDP(0.3), mechanism="output"))
    law = fit._error_law()
    spread, covered = law.spread, mean_coverage(law)
    assert 0.05 < spread < 1.0
    half = 0.5 * fit.conf_int().length
    expected = 2.0 * stats.norm.cdf(half / (fit.std_errors * np.sqrt(1.0 + spread))) - 1.0
    assert covered == pytest.approx(expected.mean(), abs=1e-6)
    # That much was made of the mixture of all ratios, whose intervals cover .95.
    assert covered < 0.95 < (2.0 * stats.norm.cdf(half / fit.std_errors) - 1.0).mean()


@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.PureDP(4.0)])
def test_a_fit_whose_matrices_are_noisy_says_so(budget):
    result = fitted(budget)
    covered = mean_coverage(fit_of(result)._error_law())
    assert covered < TRUSTED_COVERAGE
    (note,) = [note for note in result.privacy["interval_notes"] if NOTE in note]
    assert f"covers in {covered:.1%} of repetitions" in note
    for shown in (result.summary(full=True), result.to_html()):
        assert NOTE in " ".join(shown.split())


@pytest.mark.parametrize("budget", [dpci.ZCDP(1e8), dpci.PureDP(1e7)])
def test_a_fit_without_noise_says_nothing(budget):
    result = fitted(budget)
    law = fit_of(result)._error_law()
    assert law.spread < 0.01
    assert mean_coverage(law) > 0.949
    assert not any(NOTE in note for note in result.privacy["interval_notes"])
    assert NOTE not in " ".join(result.summary().split())
