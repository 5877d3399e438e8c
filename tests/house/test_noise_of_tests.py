"""The noise of tests: releases without a seed have the same in every run, and say what they say outside of tests."""

import numpy as np
import pytest

import dpci
from support import noise

X, Y = np.linspace(-1.0, 1.0, 60)[:, None], np.tile([0, 1], 30)


def release():
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "classes": (0, 1)}
    return dpci.fit(X, Y, **keywords)


def test_it_repeats_itself_in_another_run_and_never_within_one():
    first, second = release(), release()
    assert first.private
    assert not np.array_equal(first.params, second.params)
    noise.start(entropy=False)
    assert release().to_json() == first.to_json()


@pytest.mark.entropy
def test_a_test_may_ask_for_the_noise_of_the_operating_system():
    first = release()
    noise.start(entropy=True)
    assert not np.array_equal(release().params, first.params)
