"""Refusals of a study, and their words: numbers, configurations, rows, missing packages; and its progress bar."""

import sys

import numpy as np
import pytest

import dpci
from dpci import simulate
from dpci.errors import DpciError, InvalidInput
from support.keywords import assembled
from support.studies import SMALL, SOFT_LABELS, assert_same_bits, coverage, make_rows


@pytest.fixture(scope="module")
def rows():
    return make_rows()


REFUSED = {
    "no replicates": ({"n_replicates": 0}, "n_replicates must be at least 1, got n_replicates=0"),
    "float replicates": ({"n_replicates": 10.0}, "n_replicates must be an integer"),
    "negative variability": ({"n_variability": -1}, "n_variability must be at least 0"),
    "one draw": ({"n_variability": 1}, "n_variability must be 0 or at least 2"),
    "level": ({"level": 1.0}, "level must be > 0 and < 1, got level=1.0"),
    "no seed": ({"seed": None}, r"seed must be an integer in \[0, 2\*\*64\), got seed=None"),
    "negative seed": ({"seed": -1}, "seed must be None or an integer"),
    "progress": ({"progress": 1}, "progress must be True or False"),
    "threads": ({"n_threads": 0}, "n_threads must be at least 1"),
    "parallel": ({"parallel": "dask"}, "parallel must be one of 'joblib', got parallel='dask'"),
    "checkpoint": ({"checkpoint": 3}, "checkpoint must be None or a path, got checkpoint=3"),
    "moments": ({"moments": "none"}, "coverage requires released moments, got moments='none'"),
    "budget": ({"budget": 1.0}, "budget must be"),
    "configs text": ({"configs": "objective"}, "configs must be a sequence of dictionaries"),
    "configs mapping": ({"configs": {"mechanism": "output"}}, "configs must be a sequence of dictionaries"),
    "configs number": ({"configs": 3}, "configs must be a sequence of dictionaries"),
    "configs of text": ({"configs": ["output"]}, r"got configs\[0\]='output'"),
    "configs empty": ({"configs": []}, "configs must hold at least one dictionary, got none"),
    "configs unknown": ({"configs": [{}, {"lambda": 1.0}]}, r"got 'lambda' in configs\[1\]"),
    "configs shared": ({"configs": [{"rows": 2.0}]}, r"common to all, got 'rows' in configs\[0\]"),
    "configs moments": ({"configs": [{}, {"moments": "none"}]}, "coverage requires released moments"),
    "configs many": ({"configs": [{}] * 256}, "at most 255 configurations, got 256"),
    "regularisation": ({"l2_strength": 1e-9}, "l2_strength"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_refusals(rows, case):
    keywords, message = REFUSED[case]
    with pytest.raises((InvalidInput, dpci.RegularizationTooSmall), match=message):
        simulate.coverage(*rows, **assembled(**{**SMALL, **keywords}))


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_a_ball_that_binds_the_target_is_refused_by_its_radius(rows):
    length = np.linalg.norm(simulate.coverage(*rows, **{**SMALL, "n_variability": 0}).target)
    for keywords in ({"radius": 0.5 * length}, {"configs": [{}, {"radius": 0.5 * length}]}):
        with pytest.raises(InvalidInput, match=rf"radius that does not bind.* got radius={0.5 * length:.6f}"):
            simulate.coverage(*rows, **assembled(**{**SMALL, **keywords}))


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_rows_are_checked_as_in_a_fit(rows):
    X, y = rows
    for bad, error, message in (
        (np.full_like(X, np.nan), InvalidInput, "X must be finite"),
        (3 * X, dpci.RowNormViolation, "Euclidean norm"),
        (X[:, 0], InvalidInput, "X must be two-dimensional"),
        (X[:0], InvalidInput, "y must have one entry"),
    ):
        with pytest.raises(error, match=message):
            simulate.coverage(bad, y, **SMALL)
    with pytest.raises(InvalidInput, match="at least one row"):
        simulate.coverage(X[:0], y[:0], classes=(0, 1), **SMALL)


def test_losses_with_other_targets_are_refused(rows):
    with pytest.raises(InvalidInput, match=r"same target_bounds, got None in configs\[0\] and \(0.0, 1.0\)"):
        simulate.coverage(*rows, configs=[{}, {"loss": SOFT_LABELS}], **SMALL)


@pytest.mark.parametrize("function", [simulate.coverage, simulate.variability])
def test_keywords_are_those_of_a_fit(rows, function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'lambda_'"):
        function(*rows, budget=SMALL["budget"], l2_strength=0.1, lambda_=1.0)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing required keyword-only argument: 'budget'"):
        function(*rows, l2_strength=0.1)
    with pytest.raises(InvalidInput, match="n_variability must be at least"):
        function(*rows, budget=SMALL["budget"], l2_strength=0.1, n_variability=-1)


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("package", "keywords"), [("joblib", {"parallel": "joblib"}), ("tqdm.auto", {"progress": True})]
)
def test_optional_packages_are_named(rows, monkeypatch, package, keywords):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DpciError, match=f"needs {package.split('.')[0]}"):
        simulate.coverage(*rows, **SMALL, **keywords)


def test_to_frame_names_pandas(rows, monkeypatch):
    study = coverage(*rows)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DpciError, match="to_frame needs pandas"):
        study.to_frame()


def test_progress(rows, capsys):
    assert_same_bits(coverage(*rows, progress=True), coverage(*rows))
    assert "64/64" in capsys.readouterr().err
