"""Damaged files: nothing that is saved and read back comes back with other contents."""

import functools
import json

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from support import per_instance, tuning
from support.baselines import BUDGET
from support.saved import rewritten
from support.small_fits import X, Y, fit

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")

AXES = [dpci.baselines.Bins(column, 2, -1.0, 1.0) for column in range(X.shape[1])]
SAVED = {
    "fit": fit,
    "fit, ball": lambda: fit(budget=dpci.PureDP(1.0), radius=1.0),
    "report": lambda: per_instance.report(*per_instance.make_rows()),
    "tuning": tuning.tune,
    "tuning, model": lambda: tuning.tune(selection_share=1.0),
    "functional": lambda: dpci.baselines.functional_mechanism(
        X, Y, budget=BUDGET, loss="logistic", classes=(0, 1), seed=1
    ),
    "histogram": lambda: dpci.baselines.projected_histogram(
        X, Y, budget=BUDGET, axes=AXES, l2_strength=0.1, loss="logistic", classes=(0, 1), seed=1
    ),
}


@functools.cache
def saved(kind):
    result = SAVED[kind]()
    text = result.to_json()
    assert type(result).from_json(text).to_json() == text
    return type(result), text


def reads_as_something_else(kind, damaged):
    """Whether a damaged file is read, and not as what was saved."""
    read, text = saved(kind)
    try:
        return read.from_json(bytes(damaged)).to_json() != text
    except InvalidInput:
        return False


@pytest.mark.parametrize("kind", SAVED)
def test_flipped_bits_and_changed_bytes_are_found(kind):
    text = saved(kind)[1].encode()
    rng = np.random.default_rng(20)
    for at in rng.choice(len(text), size=min(len(text), 400), replace=False):
        for changed in (text[at] ^ (1 << int(rng.integers(8))), int(rng.integers(256)), ord(str(rng.integers(10)))):
            damaged = bytearray(text)
            damaged[at] = changed
            assert not reads_as_something_else(kind, damaged), (at, text[at], changed)


def test_every_digit_counts():
    text = saved("fit")[1].encode()
    digits = [at for at, byte in enumerate(text) if chr(byte).isdigit()]
    for at in digits:
        damaged = bytearray(text)
        damaged[at] = ord("0") + (text[at] - ord("0") + 1) % 10
        assert not reads_as_something_else("fit", damaged), at


@pytest.mark.parametrize("kind", SAVED)
def test_lost_and_moved_blocks_are_found(kind):
    text = saved(kind)[1].encode()
    rng = np.random.default_rng(21)
    for _ in range(150):
        start, end = sorted(rng.integers(0, len(text) + 1, size=2))
        zeros = b"0" * int(end - start)
        for damaged in (text[:start], text[:start] + text[end:], text[:start] + zeros + text[end:]):
            assert not reads_as_something_else(kind, damaged)


def test_the_message_is_plain_and_layout_does_not_count():
    read, text = saved("fit")
    values = json.loads(text)
    again = json.dumps(dict(reversed(values.items())), indent=2)
    assert read.from_json(again).to_json() == text
    rule = r"a saved fit must match its hash, got different contents \(the file is damaged or was edited\)"
    for change in ({"params": [0.0] * len(values["params"])}, {"checksum": "sha256:0"}, {"checksum": None}):
        with pytest.raises(InvalidInput, match=rule):
            read.from_json(json.dumps({**values, **change}))
    del values["checksum"]
    with pytest.raises(InvalidInput, match=rule):
        read.from_json(json.dumps(values))


def test_a_damaged_part_of_a_document_is_found():
    read, text = saved("report")
    values = json.loads(text)
    values["fit"]["params"][0] += 1.0
    with pytest.raises(InvalidInput, match="a saved report must match its hash"):
        read.from_json(json.dumps(values))
    assert read.from_json(rewritten(values)).result.params[0] != read.from_json(text).result.params[0]
