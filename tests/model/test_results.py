"""Content of a result: predictions, intervals, contrasts, summaries, plots, and the same after a round trip."""

import copy
import json
import pickle

import numpy as np
import pytest

import dpci
from dpci.losses import HuberHinge
from support.fits import PURE, SETTINGS, make_rows
from support.keywords import assembled


@pytest.fixture(scope="module")
def rows():
    return make_rows()


def fit(rows, **keywords):
    return dpci.fit(*rows, **assembled(**{**SETTINGS, **keywords}))


def test_predict_proba(rows):
    result = fit(rows)
    proba = result.predict_proba(rows[0])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(proba[:, 1] > 0.5, result.predict(rows[0]) == 1)
    with pytest.raises(dpci.InvalidInput, match="logistic"):
        fit(rows, loss="huber_hinge").predict_proba(rows[0])


def test_contrasts(rows):
    result = fit(rows)
    plain = result.conf_int(level=0.9)
    one = result.conf_int(level=0.9, contrast=[0, 1, 0, 0])
    assert np.asarray(one).shape == (1, 2)
    np.testing.assert_allclose(np.asarray(one)[0], np.asarray(plain)[1])
    np.testing.assert_allclose(np.asarray(result.conf_int(level=0.9, contrast=np.eye(4)[:2])), np.asarray(plain)[:2])
    wide = result.conf_int(level=0.9, contrast=np.array([[2, 0, 0, 0]]))
    np.testing.assert_allclose(wide.length, 2 * plain.length[0])


def test_monte_carlo_agrees_with_exact(rows):
    result = fit(rows)
    exact = result.conf_int(level=0.9)
    drawn = result.conf_int(level=0.9, method="monte_carlo", n_draws=200_000, seed=3)
    np.testing.assert_allclose(np.asarray(drawn), np.asarray(exact), atol=0.02 * exact.length.max())
    again = result.conf_int(level=0.9, method="monte_carlo", n_draws=200_000, seed=3)
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(again))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_intervals_and_pvalues_agree(rows, mechanism):
    result = fit(rows, mechanism=mechanism)
    # An interval at level 1 - p just reaches zero.
    for i, p in enumerate(result.pvalues):
        if 1e-8 < p < 1:
            bounds = np.asarray(result.conf_int(level=1 - p))[i]
            assert np.abs(bounds).min() < 1e-6 * np.abs(bounds).max()
    np.testing.assert_allclose(result.std_errors**2, np.diag(result.cov))


def test_without_moments(rows):
    result = fit(rows, moments="none")
    assert result.hessian is None
    assert result.gradient_cov is None
    assert result.spent == PURE
    assert "No intervals" in result.summary()
    for ask in (result.conf_int, lambda: result.cov, lambda: result.std_errors, lambda: result.pvalues, result.plot):
        with pytest.raises(dpci.InvalidInput, match="moments='none'"):
            ask()
    assert dpci.PrivateFit.from_json(result.to_json()).hessian is None


def test_round_trips(rows):
    result = fit(rows, split=(0.6, 0.2, 0.2), classes=(0, 1), loss=HuberHinge(0.3))
    text = result.to_json()
    assert json.loads(text)["schema_version"] == 1
    for other in (dpci.PrivateFit.from_json(text), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(other.params, result.params)
        np.testing.assert_array_equal(other.hessian, result.hessian)
        np.testing.assert_array_equal(np.asarray(other.conf_int()), np.asarray(result.conf_int()))
        assert other.privacy == result.privacy
        assert other.summary() == result.summary()
        assert other.to_json() == text
        assert not other.private
        assert not other.params.flags.writeable


def test_seeded_fits_say_so(rows):
    with pytest.warns(dpci.SeededNoiseWarning, match="NOT PRIVATE"):
        seeded = fit(rows)
    assert not seeded.private
    assert seeded.summary().startswith("NOT PRIVATE (seeded)")
    assert "NOT PRIVATE (seeded)" in repr(seeded)
    assert not seeded.privacy["private"]
    released = fit(rows, seed=None, classes=(0, 1))
    assert released.private
    assert "NOT PRIVATE" not in released.summary()
    assert not np.array_equal(released.params, fit(rows, seed=None, classes=(0, 1)).params)


def test_summary_has_what_a_reader_needs(rows):
    text = fit(rows).summary(level=0.9, full=True)
    wanted = [
        "90% confidence",
        "std error",
        "objective perturbation",
        "epsilon=2",
        "one record replaced",
        "2,000",
        "0.02",
    ]
    for part in [*wanted, "coefficients", "moments", "population", "not the unregularised"]:
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 100


def test_plot(rows, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    axes = fit(rows).plot(level=0.9)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x0", "x1", "x2", "intercept"]
    axes.figure.savefig(tmp_path / "forest.png")
    given = plt.subplots()[1]
    assert fit(rows).plot(ax=given) is given
    plt.close("all")


def test_plot_without_matplotlib(rows, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(dpci.DpciError, match=r"dpci\[plot\]"):
        fit(rows).plot()
