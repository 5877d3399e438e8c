"""Draws and their error bounds, and what the low bits of numbers would tell without the seal."""

import math

import numpy as np
import pytest

import dpci
from dpci import _core, audit
from dpci.audit.cases import FitCase
from dpci.audit.catalogue import rows
from dpci.losses import HuberHinge
from support.exact_noise import ELEMENTARY, LAWS, distances, worst_error
from support.keywords import assembled
from support.low_bits import excludes, in_textbook_support, textbook_laplace

DIMS = (1, 2, 3, 6)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", LAWS)
def test_no_draw_is_further_from_the_ideal_one_than_its_bound(name, dim):
    n = {1: 600, 2: 300, 3: 150, 6: 50}[dim]
    found = distances(name, dim, n, seed=dim)
    assert found.shape == (n, 2)
    # The bound holds up to the tail; for its own size, too, no draw is beyond it, and the worst are not far below.
    assert found[:, 0].max() < 1.0
    assert 0.005 < found[:, 1].max() < 1.0


def test_the_bound_holds_where_a_dimension_is_great():
    assert distances("spherical_laplace", 2000, 1, seed=9).max() < 1.0


def test_bounds_do_not_grow_with_the_length_of_a_sum():
    """Relative to a tail bound of the order of the noise, ten million numbers cost no more digits than ten."""
    for name, power in [("gaussian", 0.5), ("spherical_laplace", 1.0)]:
        small, great = (_core.Testing.bounded_noise(name, 0, dim, 1.0, 1)[1] for dim in (10**4, 10**7))
        assert great < 1.05 * small * 1000.0**power


def test_bounds_follow_the_scale():
    for name in LAWS:
        bounds = [_core.Testing.bounded_noise(name, 0, 5, scale, 1)[1] for scale in (1.0, 1e-12, 1e12)]
        np.testing.assert_allclose(bounds[1:], [1e-12 * bounds[0], 1e12 * bounds[0]], rtol=1e-12)


@pytest.mark.parametrize("name", ["cos", "log", "log1p", "sin"])
def test_elementary_functions_err_by_less_than_assumed(name):
    assert worst_error(name, 26_000) < 0.75 * ELEMENTARY


def test_discrete_draws_are_whole_and_of_both_signs():
    for name in ("laplace", "gaussian"):
        draws = _core.Testing.discrete_noise(name, 1000, 3, 1)
        assert {type(k) for k in draws} == {int}
        assert min(draws) < 0 < max(draws)
        with pytest.raises(ValueError, match="from 1 to"):
            _core.Testing.discrete_noise(name, 1, 0, 1)
    # Beyond 64 bits nothing is lost.
    assert max(_core.Testing.discrete_noise("laplace", 20_000, 2**60, 1)) > 2**63


CONFIDENCE = 1.0 - 1e-6
N_RUNS = 4000
KEYWORDS = {"loss": HuberHinge(h=0.5), "l2_strength": 50.0}


def shown(first, second):
    """The epsilon that the answers of an attack on two data sets show."""
    answers = [iter(answer) for answer in (first, second)]
    return audit.epsilon_lower_bound(next, *answers, n_runs=len(first), confidence=CONFIDENCE).value


def textbook(value, seed):
    rng = np.random.default_rng(seed)
    return [textbook_laplace(value, 1.0, rng) for _ in range(N_RUNS)]


def released(neighbor, mechanism, budget):
    """Parameters whose minimiser is 0.02 for the first neighbour and 0 for the second, and the scale of their noise."""
    case = FitCase(
        name="one record", budget=budget, neighbors="replace_one", first=rows([1.0]), second=rows([0.0]),
        keywords=assembled(**KEYWORDS, mechanism=mechanism, moments="none"),
    )  # fmt: skip
    data = (case.first, case.second)[neighbor]
    return case.outputs(data, n_runs=N_RUNS, seed=7 + neighbor)[:, 0].tolist(), case.spec.noise_scale


def test_uniforms_of_a_grid_name_the_data():
    """The true value is never excluded, the other often; so the claim of epsilon = 1 is worth nothing."""
    for value, other in ((0.0, 1.0), (1.0, 0.0)):
        outputs = textbook(value, 1)
        assert all(in_textbook_support(y, value, 1.0) for y in outputs)
        assert sum(not in_textbook_support(y, other, 1.0) for y in outputs) > 0.1 * N_RUNS
    found = [[float(in_textbook_support(y, 1.0, 1.0)) for y in textbook(value, 2)] for value in (1.0, 0.0)]
    assert shown(*found) > 4.0


@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_the_precision_of_a_sum_names_the_data(noise):
    """Noise of any sampler, numpy's here: what is excluded, is so with certainty."""
    draw = getattr(np.random.default_rng(3), noise)
    with_one, without = (value + draw(size=N_RUNS) for value in (1.0, 0.0))
    assert not any(excludes(y, 1.0) for y in with_one.tolist())
    assert sum(excludes(y, 1.0) for y in without.tolist()) > 0.2 * N_RUNS
    assert shown(*([float(excludes(y, 1.0)) for y in outputs.tolist()] for outputs in (without, with_one))) > 3.0


@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, 0.01)], ids=str)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_sealed_values_tell_nothing(mechanism, budget):
    """The same attacks, and every other on the last digits: values are multiples of one number that is public."""
    minimum = 0.02
    outputs, scales = zip(*(released(neighbor, mechanism, budget) for neighbor in (0, 1)), strict=True)
    excluded = [[float(excludes(y, minimum)) for y in values] for values in outputs]
    assert shown(*excluded) < 0.5
    assert shown(*excluded[::-1]) < 0.5
    supported = [[float(in_textbook_support(y, minimum, scales[0])) for y in values] for values in outputs]
    assert shown(*supported) < 0.5
    # How many binary digits a value has after the point does not depend on the data.
    digits = [[float(_digits(y)) for y in values] for values in outputs]
    assert shown(*digits) < 0.5


def _digits(value):
    denominator = value.as_integer_ratio()[1]
    return math.log2(denominator)
