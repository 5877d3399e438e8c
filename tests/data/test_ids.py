"""Ids of persons: which are one person, in memory and in parts, and which are none."""

import datetime as dt
import json
import traceback
from decimal import Decimal

import numpy as np
import pytest

from dpci.cli.main import main
from dpci.data.persons import check_in_one_group, numbered, tagged
from dpci.errors import InvalidInput


def test_ids_of_two_types_are_refused():
    for bad in ([1, "1"], [1, True], [1, 1.0], [b"a", "a"]):
        with pytest.raises(InvalidInput, match="ids of one type"):
            numbered(bad, 2)
    with pytest.raises(InvalidInput, match=r"whose values tell them apart, .* got the type tuple"):
        numbered([(1,), (2,)], 2)
    with pytest.raises(InvalidInput, match="can be hashed"):
        numbered([np.zeros(2), np.ones(2)], 2)
    assert numbered(np.array([5, 2**62, 5]), 3).tolist() == [0, 1, 0]


class _Id:
    """An id of another library, which fails where it is compared, hashed or stripped."""

    def __init__(self, name, fails):
        self.name, self.fails = name, fails

    def __eq__(self, other):
        if self.fails == "equal":
            raise RuntimeError(self.name)
        return self.name == other.name

    def __hash__(self):
        if self.fails == "hash":
            raise KeyError(self.name)
        return hash(self.name)


@pytest.mark.parametrize("fails", ["equal", "hash"])
def test_what_ids_of_another_library_raise_names_no_id(fails):
    ids = [_Id(f"secret {k}", fails) for k in range(3)]
    for find in (lambda: numbered(ids, 3), lambda: tagged(ids, 3, None, bytes(32))):
        with pytest.raises(InvalidInput, match="which raises") as caught:
            find()
        assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_a_text_of_another_class_is_a_text():
    class Text(str):
        __slots__ = ()

        def strip(self, *_):
            raise RuntimeError(str(self))

    assert numbered([Text("a "), Text("a"), Text("b")], 3).tolist() == [0, 0, 1]


@pytest.mark.parametrize("gap", [None, float("nan"), np.float64("nan"), np.datetime64("NaT", "D"), Decimal("sNaN")])
@pytest.mark.parametrize("known", ["a", 7, dt.date(2020, 1, 1)])
def test_a_gap_in_a_column_of_objects_is_told_from_ids_of_two_types(gap, known):
    for ids in ([known, gap], [gap, gap]):
        with pytest.raises(InvalidInput, match=r"an id in every row, .* \(leave such rows out\)"):
            numbered(ids, 2)


TEXTS = ["p1", "p1 ", " p1", "7", "7.0", "-0", "0", "P1", "07"]


@pytest.mark.parametrize("kind", [list, np.array, lambda texts: np.array(texts, dtype=object)])
def test_texts_are_compared_as_categories_are(kind):
    """Two ids of one person would be two persons: what a program adds to a text does not make another id."""
    assert numbered(kind(TEXTS), len(TEXTS)).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 4]
    found = tagged(kind(TEXTS), len(TEXTS), None, bytes(32))
    assert found.numbers.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 4]
    for k, text in enumerate(TEXTS):
        alone = tagged(kind([text]), 1, None, bytes(32))
        assert alone.kind == found.kind
        assert (alone.tags[0] == found.for_core[1][k]).all()
    with pytest.raises(InvalidInput, match="must have an id in every row"):
        numbered(kind(["p1", "  "]), 2)
    assert numbered(np.array([2**64 - 1, 0], dtype=np.uint64), 2).tolist() == [1, 0]
    assert numbered(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), 2).tolist() == [1, 0]
    assert numbered(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), 2).dtype == np.int64
    assert numbered(np.array([-(2**63), 2**63 - 1]), 2).tolist() == [0, 1]
    assert numbered(np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), 2).tolist() == [1, 0]
    assert numbered(np.array([-(2**63), 2**63 - 1]), 2).tolist() == [0, 1]
    assert numbered(np.array([True, False, True]), 3).tolist() == [1, 0, 1]
    assert numbered(np.ma.array([3, 3]), 2).tolist() == [0, 0]
    with pytest.raises(InvalidInput, match="an id in every row"):
        numbered(np.ma.array([3, 3], mask=[True, False]), 2)


# One name as two systems write it: "é" as one character, and as a letter with a mark.
FORMS = ("Zoe\u0301", "Zo\u00e9")


def test_two_normal_forms_of_unicode_are_one_person():
    ids = [*FORMS, "Zoe", f" {FORMS[0]} "]
    for given in (ids, np.array(ids), np.array(ids, dtype=object)):
        assert numbered(given, 4).tolist() == [0, 0, 1, 0]
    tags = [tagged([form], 1, None, bytes(32)).tags for form in FORMS]
    assert (tags[0] == tags[1]).all()
    with pytest.raises(InvalidInput, match="persons must have all of their rows in one group"):
        check_in_one_group([np.array([form]) for form in FORMS])


def test_two_normal_forms_of_unicode_are_one_person_in_a_file(tmp_path, capsys):
    lines = [f"{k / 40},{'yes' if k % 3 else 'no'},{FORMS[k % 2]}{k // 2}" for k in range(40)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["age,ill,id", *lines]), encoding="utf-8")
    (tmp_path / "schema.toml").write_text(
        'persons = "id"\n[target]\ncolumn = "ill"\nnegative = ["no"]\npositive = ["yes"]\n'
        '[[columns]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 1\n'
    )
    for more in ([], ["--chunk-rows", "10"]):
        model = tmp_path / f"model{len(more)}.json"
        arguments = ["fit", str(path), "--schema", str(tmp_path / "schema.toml"), "--persons", "id", "--epsilon", "9"]
        assert main([*arguments, "--l2-strength", "0.5", "--output", str(model), *more]) == 0, capsys.readouterr().err
        assert json.loads(model.read_text())["n_samples"] == 20
