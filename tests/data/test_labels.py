"""Classes without ``classes``: public where a boolean type says them, otherwise read off the labels, and then said."""

import json
import warnings

import numpy as np
import pytest

import dpci
from dpci.baselines import Levels, functional_mechanism, non_private, projected_histogram
from dpci.data.labels import SeveralClasses, check_classes, check_several_classes, encode_labels
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, ClassTarget
from support.keywords import assembled
from support.labels import labels_of_boolean_type, labels_of_other_types
from support.saved import rewritten

RNG = np.random.default_rng(5)
N = 1000
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
Y = X[:, 0] + RNG.logistic(scale=0.1, size=N) > 0.1
PURE = dpci.PureDP(1.0)
GRID = [{"l2_strength": 0.2}]
AXES = [Levels((0,), (-0.25, 0.25)), Levels((1,), (0.0,))]

RELEASES = {
    "fit": lambda y, **given: dpci.fit(X, y, budget=PURE, l2_strength=0.2, **given),
    "output": lambda y, **given: dpci.fit(
        X, y, **assembled(budget=PURE, l2_strength=0.2, mechanism="output", loss="hinge", moments="none", **given)
    ),
    "report": lambda y, **given: dpci.per_instance.report(
        X, y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.2, n_public=N, **given
    ),
    "repeat": lambda y, **given: dpci.tuning.tune(
        X, y, budget=dpci.PureDP(2.0), candidates=GRID, validation_radius=4.0, **given
    ),
    "chosen itself": lambda y, **given: dpci.tuning.tune(
        X, y, budget=dpci.PureDP(2.0), candidates=GRID, validation_radius=4.0, selection_share=1.0, **given
    ),
    "chunks": lambda y, **given: dpci.tuning.tune(
        X, y, budget=dpci.PureDP(2.0), candidates=GRID, validation_radius=4.0, method="chunks", **given
    ),
    "public rule": lambda y, **given: dpci.tuning.tune(X, y, budget=PURE, method="public_rule", **given),
    "functional mechanism": lambda y, **given: functional_mechanism(X, y, budget=PURE, loss="logistic", **given),
    "histogram": lambda y, **given: projected_histogram(
        X, y, budget=PURE, loss="logistic", l2_strength=0.2, axes=AXES, **given
    ),
}
NEVER_PRIVATE = {
    "coverage": lambda y: dpci.simulate.coverage(
        X, y, budget=PURE, l2_strength=0.2, n_replicates=2, n_variability=0, seed=1
    ),
    "utility": lambda y: dpci.utility.curve(X, y, at=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.2),
    "oracle": lambda y: dpci.tuning.oracle_not_private(X, y, budget=PURE, candidates=GRID, n_runs=1),
    "minimiser": lambda y: non_private(X, y, loss="logistic", l2_strength=0.2),
}


def outcome(call):
    """Result of a call, and the texts of its warnings about privacy, which all point to this file."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        value = call()
    leaks = [warning for warning in caught if issubclass(warning.category, dpci.PrivacyLeakWarning)]
    assert {warning.filename for warning in leaks} <= {__file__}
    return value, [str(warning.message) for warning in leaks]


def facts_of(released):
    """The record of the guarantee behind a release, and the classes of its model."""
    model = released.result if hasattr(released, "result") else released
    selected = isinstance(model, dpci.tuning.SelectedFit)
    return released.privacy["model"] if selected else model.privacy, model.classes


def read_off(released):
    """Whether the whole saved release says that the classes were read off."""
    found = []

    def search(value):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            if name == "classes_inferred":
                found.append(each)
            elif isinstance(each, dict | list):
                search(each)

    search(json.loads(released.to_json()))
    assert len(set(found)) == 1
    return found[0]


@pytest.mark.parametrize("release", RELEASES)
def test_labels_of_no_boolean_type_are_read_off_and_that_is_said(release):
    for y, classes in labels_of_other_types(Y):
        released, leaks = outcome(lambda y=y: RELEASES[release](y))
        assert facts_of(released)[1] == classes
        (leak,) = leaks
        found = f"(negative={classes[0]!r}, positive={classes[1]!r})"
        assert leak.startswith(f"the classes were inferred from y {found}, which")
        assert read_off(released)
        condition = "the labels that occur are not secret: the classes were inferred from y"
        assert condition in facts_of(released)[0]["conditions"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_boolean_type_and_given_classes_are_public(release):
    for y in labels_of_boolean_type(Y):
        released, leaks = outcome(lambda y=y: RELEASES[release](y))
        assert (facts_of(released)[1], leaks, read_off(released)) == ((False, True), [], False)
    for y, classes in labels_of_other_types(Y):
        released, leaks = outcome(lambda y=y, classes=classes: RELEASES[release](y, classes=classes))
        assert (facts_of(released)[1], leaks, read_off(released)) == (classes, [], False)


@pytest.mark.parametrize("release", RELEASES)
def test_a_seeded_release_says_that_it_is_not_private_and_nothing_else(release):
    released, leaks = outcome(lambda: RELEASES[release](Y.astype(int), seed=1))
    assert leaks == []
    assert read_off(released)


@pytest.mark.parametrize("study", NEVER_PRIVATE)
def test_what_is_never_private_says_so_once(study):
    for y in (Y, Y.astype(int)):
        leaks = outcome(lambda y=y: NEVER_PRIVATE[study](y))[1]
        assert [text for text in leaks if "inferred from y" in text] == []
        assert len(leaks) == 1


def test_the_summary_and_the_page_say_it():
    told, _ = outcome(lambda: RELEASES["fit"](Y.astype(int)))
    silent = RELEASES["fit"](Y.astype(int), classes=(0, 1))
    histogram, _ = outcome(lambda: RELEASES["histogram"](Y.astype(int)))
    for released in (told, histogram):
        assert "positive class 1 (classes inferred from y: not private)" in released.summary()
    assert "inferred from" not in silent.summary()
    assert "they were inferred from the data" in told.to_html()
    assert "inferred from" not in silent.to_html()


def test_one_label_cannot_tell_two_data_sets_apart_unsaid():
    """Without ``classes`` a single -1 among ones is told from a single 0: certain, so it must be said."""
    single = [np.where(np.arange(N) == 0, odd, 1) for odd in (0, -1)]
    found = [outcome(lambda y=y: RELEASES["fit"](y)) for y in single]
    assert [released.classes for released, _ in found] == [(0, 1), (-1, 1)]
    assert all(leaks and released.privacy["classes_inferred"] for released, leaks in found)
    # One class alone is no error where the type or the caller says both.
    assert RELEASES["fit"](np.ones(N, dtype=bool)).classes == (False, True)
    assert RELEASES["fit"](np.ones(N), classes=(0, 1)).classes == (0, 1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(N), r"must hold two classes unless classes=\(negative, positive\) is given, got one class, 1.0"),
        ([True] * N, r"must hold two classes unless classes=\(negative, positive\) is given, got one class, True"),
        (np.where(Y, 1, np.where(X[:, 1] > 0, 0, -1)), r"y must hold two classes, got 3: -1, 0, 1"),
        (np.where(Y, "a", None), r"y must have no missing values, got None in row"),
        (np.array(["a", 1] * (N // 2), dtype=object), r"labels of one type unless classes=\(negative, positive\) is"),
    ],
    ids=["one number", "one boolean in a list", "three", "missing", "mixed"],
)
def test_labels_that_are_not_two_classes_are_refused(labels, message):
    with pytest.raises(dpci.InvalidInput, match=message):
        RELEASES["fit"](labels)


def test_rows_in_parts_read_nothing_off():
    fit = {"budget": PURE, "l2_strength": 0.2}
    halves = slice(0, 500), slice(500, N)
    for y in labels_of_boolean_type(Y):
        parts = [(X[half], y[half]) for half in halves]
        released, leaks = outcome(lambda parts=parts: dpci.fit(dpci.Chunks(parts), **fit))
        assert (released.classes, leaks, read_off(released)) == ((False, True), [], False)
    for y, classes in labels_of_other_types(Y):
        parts = [(X[half], y[half]) for half in halves]
        given, leaks = outcome(lambda parts=parts, c=classes: dpci.fit(dpci.Chunks(parts), classes=c, **fit))
        assert (given.classes, leaks, read_off(given)) == (classes, [], False)
        # Whatever the labels are: a type that is not boolean is refused, in the first part and in a later one.
        for odd in (parts, [(X[halves[0]], Y[halves[0]]), parts[1]]):
            with pytest.raises(dpci.InvalidInput, match=r"must be given for rows in parts unless y has a boolean data"):
                dpci.fit(dpci.Chunks(odd), **fit)
    # A part without rows has no labels, whatever its type.
    empty = [(X[:0], []), (X, Y), (X[:0], np.empty(0))]
    assert dpci.fit(dpci.Chunks(empty), **fit).classes == (False, True)


def test_a_saved_fit_may_have_read_off_any_two_classes():
    """A record of an object array of booleans is legal, one of real targets whose classes were read off is not."""
    told, _ = outcome(lambda: RELEASES["fit"](Y.astype(object)))
    assert dpci.PrivateFit.from_json(told.to_json()).privacy["classes_inferred"]
    real = dpci.fit(X, 0.5 * Y, budget=PURE, l2_strength=0.2, loss="soft_logistic")
    with pytest.raises(dpci.InvalidInput, match="classes_inferred must be False for real targets"):
        dpci.PrivateFit.from_json(rewritten({**json.loads(real.to_json()), "classes_inferred": True}))
    baseline = functional_mechanism(X, 0.5 * Y, budget=PURE)
    with pytest.raises(dpci.InvalidInput, match="classes_inferred must be False for real targets"):
        type(baseline).from_json(rewritten({**json.loads(baseline.to_json()), "classes_inferred": True}))


# "à" as one character, and as a letter with a mark.
ONE, TWO = "\u00e0 pied", "a\u0300 pied"


@pytest.mark.parametrize("kind", [None, object])
def test_labels_in_two_normal_forms_are_one_class(kind):
    labels = np.array([ONE, "bus", TWO, "bus"], dtype=kind)
    for classes in ((ONE, "bus"), (TWO, "bus")):
        coded = encode_labels(labels, check_classes(classes), 4)
        assert coded.values.tolist() == [-1.0, 1.0, -1.0, 1.0]
        assert coded.classes == (ONE, "bus")
    inferred = encode_labels(labels, None, 4)
    assert (inferred.classes, inferred.classes_inferred) == (("bus", ONE), True)
    several = check_several_classes([TWO, "bus", "car"])
    assert SeveralClasses(labels, several).encoded(4).values.tolist() == [0.0, 1.0, 0.0, 1.0]
    with pytest.raises(InvalidInput, match="y must hold only classes"):
        encode_labels(np.array([ONE, "a pied"], dtype=kind), (ONE, "bus"), 2)


def test_classes_and_categories_that_differ_in_their_normal_form_are_one_twice():
    for two in ([ONE, TWO], [ONE, TWO, "bus"]):
        check = check_classes if len(two) == 2 else check_several_classes
        with pytest.raises(InvalidInput, match="twice"):
            check(two)
    with pytest.raises(InvalidInput, match="categories must be distinct"):
        CategoricalColumn(name="way", categories=(ONE, TWO))
    column = CategoricalColumn(name="way", categories=(TWO, "bus"), reference=ONE)
    assert column.encode([ONE, TWO, "bus"]).tolist() == [[0.0], [0.0], [1.0]]
    with pytest.raises(InvalidInput, match="one class only"):
        ClassTarget(column="way", negative=(ONE,), positive=(TWO,))
