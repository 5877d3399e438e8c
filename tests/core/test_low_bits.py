"""The last digits of released numbers: on the textbook's noise attacks name the data, on sealed values they do not.

Bounds on epsilon hold with confidence 1 - 1e-6.
"""

import math

import numpy as np
import pytest

import dpci
from dpci import audit
from dpci.audit.cases import FitCase
from dpci.audit.catalogue import rows
from dpci.losses import HuberHinge
from support.keywords import assembled
from support.low_bits import excludes, in_textbook_support, textbook_laplace

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
        name="one record",
        budget=budget,
        neighbors="replace_one",
        first=rows([1.0]),
        second=rows([0.0]),
        keywords=assembled(**KEYWORDS, mechanism=mechanism, moments="none"),
    )
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
    """Whatever sampler the noise comes from, numpy's here: what is excluded, is so with certainty."""
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
