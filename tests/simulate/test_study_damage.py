"""Damaged and crafted checkpoints: each is refused or gives the right numbers, and none runs code."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from dpci.errors import InvalidInput
from dpci.simulate.checkpoint import Checkpoint


@pytest.fixture
def small(tmp_path):
    """A checkpoint of few numbers, what it should give, and what an empty one gives."""
    path = tmp_path / "small.npz"
    checkpoint = Checkpoint(path, {"study": "test", "configs": [{"l2_strength": "0.2"}] * 2})
    rng = np.random.default_rng(42)
    outcomes = {"coverage": [tuple(rng.normal(size=(5, 2)) for _ in range(3)) for _ in range(2)]}
    nothing = {"coverage": [(np.empty((0, 2)),) * 3] * 2}
    checkpoint.save(outcomes)
    return checkpoint, outcomes, nothing


def is_refused_or_right(small, content):
    checkpoint, outcomes, nothing = small
    checkpoint.path.write_bytes(content)
    try:
        found = checkpoint.load(nothing)
    except InvalidInput as error:
        assert str(error).startswith("checkpoint must be")  # noqa: PT017  # either outcome is right
        return True
    for ours, theirs in zip(found["coverage"], outcomes["coverage"], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return False


def test_a_truncated_file_is_refused(small):
    content = small[0].path.read_bytes()
    assert not is_refused_or_right(small, content)
    assert all(is_refused_or_right(small, content[:cut]) for cut in range(0, len(content), 7))


def test_flipped_bits_are_refused_or_do_not_matter(small):
    content = small[0].path.read_bytes()
    refused = 0
    for position in range(0, len(content), 3):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position // 3 % 8)
        refused += is_refused_or_right(small, bytes(flipped))
    # Checksums leave out dates and the like.
    assert refused > len(content) / 3 / 2


def array_file(shape):
    """An array file whose header claims a shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode() + bytes(80)


def archive(small, compression=zipfile.ZIP_STORED, **members):
    """The checkpoint written by other means, with other members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(small[0].path) as source, zipfile.ZipFile(buffer, "w", compression) as target:
        for name in source.namelist():
            target.writestr(name, members.get(name.removesuffix(".npy"), source.read(name)))
    return buffer.getvalue()


def damaged_lzma(small):
    content = bytearray(archive(small, zipfile.ZIP_LZMA))
    content[60] ^= 0xFF
    return bytes(content)


def as_member(array, **keywords):
    buffer = io.BytesIO()
    np.save(buffer, array, **keywords)
    return buffer.getvalue()


def with_header(small, text):
    return archive(small, header=as_member(np.array(text)))


class Bomb:
    """Reading it runs code."""

    def __reduce__(self):
        return (os._exit, (1,))


CRAFTED = {
    "pickle": lambda _: pickle.dumps(Bomb()),
    "array alone": lambda _: as_member(np.ones(3)),
    "pickled header": lambda small: archive(small, header=as_member(np.array(Bomb(), dtype=object))),
    "pickled array": lambda small: archive(small, coverage_0_lower=as_member(np.array([[Bomb()] * 2] * 5))),
    "damaged lzma": damaged_lzma,
    "open bracket": lambda small: archive(small, coverage_0_params=array_file("(5, 2")),
    "petabytes": lambda small: archive(small, coverage_0_params=array_file("(99999999999999, 2), }")),
    "negative": lambda small: archive(small, coverage_0_params=array_file("(-5, 2), }")),
    "no rows": lambda small: archive(small, coverage_0_params=as_member(np.array(1.0))),
    "fewer of one": lambda small: archive(
        small, **{f"coverage_1_{part}": as_member(np.ones((4, 2))) for part in ("params", "lower", "upper")}
    ),
    "deep header": lambda small: with_header(small, "[" * 10**5),
    "no identity": lambda small: with_header(small, '{"format": 1}'),
    "odd identity": lambda small: with_header(small, '{"format": 1, "identity": [null]}'),
    "bytes": lambda small: with_header(small, b"\xff"),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_a_file_of_something_else_is_refused(small, case):
    assert is_refused_or_right(small, CRAFTED[case](small))


def test_a_file_rewritten_by_other_means_is_read(small):
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        assert not is_refused_or_right(small, archive(small, compression))
