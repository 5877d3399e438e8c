"""Balls and blocks as objects: what they say of themselves, and what they refuse."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpci.errors import InvalidInput
from dpci.rows import Ball, Blocks, Clipped, Weighted, Within, read_ball, read_bounds, read_rows

TABLE = Blocks([1.0, 0.5, 2.0], groups=[(range(1, 4), 1.0), ([5, 7], 0.25)])


def test_a_ball_is_its_norm():
    assert Ball() == Ball(1)
    assert str(Ball(0.5)) == "ball of norm 0.5"


def test_blocks_say_which_columns_they_bound():
    assert TABLE.n_columns == 8
    assert TABLE.members == (0, 3, 3, 3, 1, 4, 2, 4)
    assert TABLE.block_bounds == (1.0, 0.5, 2.0, 1.0, 0.25)
    assert TABLE.norm == pytest.approx(np.sqrt(1 + 0.25 + 4 + 1 + 0.0625), rel=1e-15)
    assert str(TABLE) == "blocks of 8 columns, 3 bounded and 5 in 2 groups; norm 2.512"
    assert repr(TABLE) == "Blocks([1.0, 0.5, 2.0], groups=[(range(1, 4), 1.0), ([5, 7], 0.25)])"


def test_the_same_set_is_the_same_object():
    other = Blocks(np.array([1, 0.5, 2]), groups=((np.array([7, 5]), 0.25), ((3, 1, 2), 1)))
    assert other == TABLE
    assert hash(other) == hash(TABLE)
    assert len({TABLE, other, Ball(1.0)}) == 2
    # A group of one column is a bounded column.
    assert Blocks([1.0], groups=[([0], 3.0)]) == Blocks([3.0, 1.0])
    assert Blocks([1.0], groups=[([1], 3.0)]) != Blocks([3.0, 1.0])


partitions = st.lists(st.integers(0, 4), min_size=1, max_size=12)
bounds = st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=5)


@given(partitions, bounds)
def test_round_trips(members, sizes):
    columns = {block: [j for j, member in enumerate(members) if member == block] for block in set(members)}
    rows = Blocks([], groups=[(of, sizes[block]) for block, of in columns.items()])
    assert rows.n_columns == len(members)
    for j, member in enumerate(members):
        assert rows.block_bounds[rows.members[j]] == sizes[member]
        assert [rows.members[i] == rows.members[j] for i in columns[member]] == [True] * len(columns[member])
    copies = (
        Blocks.from_dict(json.loads(json.dumps(rows.to_dict()))),
        eval(repr(rows), {"Blocks": Blocks}),  # its own text
        pickle.loads(pickle.dumps(rows)),
        copy.deepcopy(rows),
    )
    assert all(each == rows for each in copies)


REFUSED = {
    "no sequence": ((1.0,), "bounds must be a sequence, got bounds=1.0"),
    "text": (("12",), "bounds must be a sequence"),
    "nothing": (([],), "at least one column, got none"),
    "zero": (([1.0, 0.0],), r"bounds\[1\] must be finite and > 0, got bounds\[1\]=0.0"),
    "infinite": (([np.inf],), r"bounds\[0\] must be finite"),
    "no number": (([True],), r"bounds\[0\] must be a real number"),
    "overflow": (([1e308] * 9,), "finite Euclidean norm"),
    "no pair": (([1.0], [[1, 2, 3]]), r"groups\[0\] must be a pair \(columns, bound\), .* got \[1, 2, 3\]"),
    "no columns": (([1.0], [([], 1.0)]), r"groups\[0\] must hold at least one column, got none"),
    "one number": (([1.0], [(1, 1.0)]), r"columns of groups\[0\] must be a sequence"),
    "fraction": (([1.0], [([1.5], 1.0)]), r"columns of groups\[0\] must be an integer"),
    "negative": (([1.0], [([-1], 1.0)]), r"columns of groups\[0\] must be at least 0"),
    "bound": (([1.0], [([1, 2], -1.0)]), r"bound of groups\[0\] must be finite and > 0"),
    "gap": (([1.0], [([2, 3], 1.0)]), r"columns from 0 to 2, as bounds has 1 .* got column 3 in groups\[0\]"),
    "twice": (([1.0], [([1, 2], 1.0), ([2, 3], 1.0)]), r"in one group, once, got column 2 again in groups\[1\]"),
    "repeated": (([1.0], [([1, 1], 1.0)]), r"got column 1 again in groups\[0\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_set_of_blocks(case):
    arguments, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message):
        Blocks(*arguments)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ([], "must have the fields 'bounds' and 'groups'"),
        ({"bounds": [1.0]}, "must have the fields 'bounds' and 'groups'"),
        ({"bounds": [1.0], "groups": [[[1, 2], 1.0]]}, r"groups\[0\] must have the fields 'columns' and 'bound'"),
        ({"bounds": [1.0], "groups": [{"columns": [1, 2], "bound": None}]}, "bound of .* must be a real number"),
    ],
)
def test_what_is_no_saved_set_of_blocks(saved, message):
    with pytest.raises(InvalidInput, match=message):
        Blocks.from_dict(saved)


def test_bounds_that_a_caller_gives():
    assert read_rows(None) == (None, "error", 1.0)
    assert read_rows("clip") == read_rows(Clipped()) == (None, "clip", 1.0)
    assert read_rows(2) == read_rows(np.float32(2.0)) == read_rows(Ball(2.0)) == (Ball(2.0), "error", 1.0)
    assert read_rows(TABLE).domain is read_rows(Clipped(TABLE)).domain is TABLE
    assert read_rows(Clipped(TABLE)).on_violation == read_rows(Clipped(3.0)).on_violation == "clip"
    assert read_ball(Clipped(3.0)) == (Ball(3.0), "clip", 1.0)
    assert read_rows(Within(intercept=False)) == (None, "error", None)
    assert read_rows(Weighted(TABLE, intercept=0.5)) == (TABLE, "weight", 0.5)
    assert repr(Clipped(2.0, intercept=0.5)) == "Clipped(Ball(norm=2.0), intercept=0.5)"
    for rows in (0.0, np.inf, "error", True, [1.0], Clipped, np.ones(1)):
        with pytest.raises(InvalidInput, match="rows must be"):
            read_rows(rows)
    for within in (0.0, "clip", True, Clipped(1.0)):
        with pytest.raises(InvalidInput, match="within must be"):
            Clipped(within)
    for constant in (0, -1.0, None, "yes"):
        with pytest.raises(InvalidInput, match="intercept must be"):
            Within(intercept=constant)
    with pytest.raises(InvalidInput, match="rows must be given without an intercept"):
        read_bounds(Within(intercept=False))
    with pytest.raises(InvalidInput, match="which takes no blocks, got rows=Blocks"):
        read_ball(Clipped(TABLE))
    with pytest.raises(InvalidInput, match="norm must be finite and > 0"):
        Ball(-1.0)
