"""A fit of rows in parts is the fit of the rows in memory, for every mechanism, loss, storage and partition."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, lowlevel
from dpci.data.parts import Describe, PartRules, SumOver
from dpci.data.rows import Source, as_partitions
from dpci.errors import InvalidInput, MomentNoiseWarning, PrivacyLeakWarning, SeededNoiseWarning
from dpci.rows import Ball
from support.keywords import assembled
from support.parts import CountingChunks, assert_same_fit, cut, make_rows

pytestmark = [pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")]

N, D = 3000, 5
X, Y, REALS = make_rows(N, D)
SOFT = (REALS + 1) / 2
BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(1.0, 1e-6)}
SETTINGS = {"budget": BUDGETS["pure"], "l2_strength": 0.05, "seed": 3}


def _sigmoid(u):
    return 0.5 * (1.0 + np.tanh(0.5 * u))


def soft_value(u, y):
    return np.logaddexp(0.0, u) - y * u


def soft_slope(u, y):
    return _sigmoid(u) - y


def soft_curvature(u, _y):
    return _sigmoid(u) * _sigmoid(-u)


CUSTOM = dpci.losses.Custom(
    soft_value, soft_slope, soft_curvature, slope_bound=1.0, curvature_bound=0.25, target_bounds=(0.0, 1.0)
)
LOSSES = {
    "logistic": ("logistic", Y, {}), "huber": ("huber_hinge", Y, {}), "smooth": ("smooth_hinge", Y, {}),
    "squared": ("squared", REALS, {"radius": 1.0}), "soft": ("soft_logistic", SOFT, {}), "custom": (CUSTOM, SOFT, {}),
}  # fmt: skip


def in_parts(X, y, n_parts=7, **keywords):
    return dpci.fit(dpci.Chunks(cut(X, y, n_parts)), **assembled(**{**SETTINGS, **keywords}))


def in_memory(X, y, **keywords):
    return dpci.fit(X, y, **assembled(**{**SETTINGS, **keywords}))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("notion", BUDGETS)
def test_every_mechanism(notion, mechanism, loss):
    # Up to 32 parameters both use Newton's method, whose last step leaves nothing for the seal's lattice to tell apart.
    name, targets, keywords = LOSSES[loss]
    keywords = {"budget": BUDGETS[notion], "mechanism": mechanism, "loss": name, **keywords}
    ours, theirs = in_parts(X, targets, **keywords), in_memory(X, targets, **keywords)
    assert_same_fit(ours, theirs)
    if loss != "squared":
        np.testing.assert_allclose(ours.conf_int(), theirs.conf_int(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize(
    "keywords",
    [
        {"rows": dpci.rows.Clipped(0.5)},
        {"neighbors": dpci.AddRemove(2500)},
        {"neighbors": dpci.AddRemove(2500), "budget": BUDGETS["approx"], "intercept": False},
        {"calibration": "paper"},
        {"moments": "none"},
        {"radius": 0.5},
        {"mechanism": dpci.ObjectivePerturbation(variant="cms11")},
    ],
    ids=str,
)
def test_every_setting_and_number_of_parts(keywords, n_parts):
    assert_same_fit(in_parts(X, Y, n_parts, **keywords), in_memory(X, Y, **keywords))


def sparse_rows(n, d):
    rng = np.random.default_rng(4)
    rows = rng.uniform(-0.1, 0.1, size=(n, d)) * (rng.random((n, d)) < 0.1)
    return rows, rows[:, 0] + 0.02 * rng.normal(size=n) > 0


@pytest.mark.parametrize("d", [20, 30])
def test_sparse_and_mixed_chunks(d):
    rows, labels = sparse_rows(N, d)
    csr = scipy.sparse.csr_array(rows)
    assert_same_fit(in_parts(csr, labels), in_memory(csr, labels))
    mixed = [(x if k % 2 else scipy.sparse.csc_array(x), y) for k, (x, y) in enumerate(cut(rows, labels, 7))]
    assert_same_fit(dpci.fit(dpci.Chunks(mixed), **SETTINGS), in_memory(rows, labels))


def test_chunks_in_single_precision():
    rows = (0.9 * X).astype(np.float32)
    expected = in_memory(rows, Y)
    assert_same_fit(in_parts(rows, Y), expected)
    mixed = [(x if k % 2 else x.astype(np.float64), y) for k, (x, y) in enumerate(cut(rows, Y, 7))]
    assert_same_fit(dpci.fit(dpci.Chunks(mixed), **SETTINGS), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [5, 100])
def test_unsealed_minimisers_agree_to_the_last_digits(d, sparse, loss):
    # Above 32 parameters a fit in memory is minimised by another method; both are within the tolerance that the seal
    # hides, but its lattice may tell them apart. The minimisers themselves must not differ.
    rows, classes, reals = make_rows(4000, d, seed=1)
    name, _, keywords = LOSSES[loss]
    targets = {"squared": reals, "soft": (reals + 1) / 2, "custom": (reals + 1) / 2}.get(loss, 2.0 * classes - 1.0)
    table = scipy.sparse.csr_array(rows) if sparse else rows
    keywords = {"l2_strength": 0.02, "loss": name, "intercept": 1.0, "tolerance": 1e-11, **keywords}
    if loss == "custom":
        keywords["tolerance"] = 1e-10  # its slopes have no more digits than f64
    chunks = dpci.Chunks(cut(table, targets, 7))
    ours = lowlevel.minimize_erm(chunks, **keywords)
    theirs = lowlevel.minimize_erm(table, targets, **keywords)
    assert max(ours.certificate, theirs.certificate) <= keywords["tolerance"]
    distance = np.linalg.norm(ours.params - theirs.params)
    assert distance <= ours.certificate + theirs.certificate
    assert distance <= 1e-10
    common = {key: keywords[key] for key in ("l2_strength", "loss", "intercept")}
    for ours_matrix, theirs_matrix in zip(
        lowlevel.hessian_and_gradient_cov(chunks, None, ours.params, **common),
        lowlevel.hessian_and_gradient_cov(table, targets, ours.params, **common),
        strict=True,
    ):
        np.testing.assert_allclose(ours_matrix, theirs_matrix, rtol=0, atol=1e-14)


def test_digits_beyond_double_precision():
    # The tolerance is below the rounding of f64 gradients: both refine in doubled precision.
    targets = 2.0 * Y - 1.0
    keywords = {"l2_strength": 1e-5, "tolerance": 1e-13}
    chunks = CountingChunks(cut(X, targets, 7))
    ours = lowlevel.minimize_erm(chunks, **keywords)
    assert "doubled_gradient" in chunks.passes
    theirs = lowlevel.minimize_erm(X, targets, **keywords)
    assert np.linalg.norm(ours.params - theirs.params) <= 2e-13


@pytest.mark.parametrize(("loss", "most"), [("logistic", 6), ("huber_hinge", 8), ("smooth_hinge", 9), ("squared", 3)])
def test_few_passes(loss, most):
    name, targets, keywords = LOSSES[{"huber_hinge": "huber", "smooth_hinge": "smooth"}.get(loss, loss)]
    chunks = CountingChunks(cut(X, targets, 3))
    dpci.fit(chunks, **assembled(**SETTINGS, loss=name, **keywords))
    assert len(chunks.passes) <= most, chunks.passes
    rows, classes, _ = make_rows(4000, 100)
    chunks = CountingChunks(cut(rows, classes, 3))
    dpci.fit(chunks, **SETTINGS)
    assert len(chunks.passes) <= 6, chunks.passes


def test_the_order_of_parts_and_nothing_else_decides_the_bits():
    ours = dpci.threads(1)(in_parts)(X, Y)
    again = dpci.threads(2)(in_parts)(X, Y)
    np.testing.assert_array_equal(ours.params, again.params)
    np.testing.assert_array_equal(ours.hessian, again.hessian)


def test_work_and_sums_are_picklable():
    rules = PartRules(
        loss=dpci.losses.Logistic(), classes=(0, 1), rows=Ball(1.0), intercept=1.0, treatment="error", n_threads=None
    )
    point, key = np.linspace(-0.3, 0.4, D + 1), bytes(range(32))
    whole = None
    for request in [
        _core.Request("risk", point, key),
        _core.Request("risk_and_hessian", point, key),
        _core.Request("moments", point, key),
        _core.Request("doubled_gradient", np.repeat(point, 2), key),
        _core.Request("lengths", np.empty(0), key),
    ]:
        work = pickle.loads(pickle.dumps(SumOver(request, rules)))
        assert (work.request.name, work.request.point.tolist()) == (request.name, request.point.tolist())
        assert work.request.__getnewargs__()[2] == key
        parts = [pickle.loads(pickle.dumps(work(x, y))) for x, y in cut(X, Y, 3)]
        total = parts[0]
        for part in parts[1:]:
            total = total.merge(part)
        assert total.n_rows == N
        direct = SumOver(request, rules)(X, Y)
        assert total.__getnewargs__()[2] == direct.__getnewargs__()[2], "the fingerprint"
        if whole is not None:
            with pytest.raises(InvalidInput, match="sums must answer the same request to be added"):
                whole.merge(total)
        whole = total
    assert pickle.loads(pickle.dumps(Describe(rules)))(X, Y).n_rows == N
    with pytest.raises(InvalidInput, match="a request for sums must be one of the documented names"):
        _core.Request("rows", point, key)
    with pytest.raises(InvalidInput, match="sums must be the numbers that dpci wrote"):
        _core.Sums(3, 3, 0, np.ones(3))


class Elsewhere:
    """A source of another library: two parts, finished in the other order, merged in order."""

    names = ("a", "b", "c", "d", "e")

    def reduce(self, work):
        second = work(X[1000:], Y[1000:])
        return work(X[:1000], Y[:1000]).merge(second)


def test_any_source_with_the_protocol_will_do():
    result = dpci.fit(Elsewhere(), **SETTINGS)
    assert result.names == ("a", "b", "c", "d", "e", "intercept")
    np.testing.assert_allclose(result.params, in_memory(X, Y).params, rtol=0, atol=1e-10)


def test_sources_that_answer_something_else():
    class Empty:
        names = None

        def reduce(self, _work):
            return None

    with pytest.raises(InvalidInput, match="at least one row, got a source without parts"):
        dpci.fit(Empty(), **SETTINGS)
    # No sums at all.
    rules = PartRules.unbounded(dpci.losses.Logistic(), None, None)
    lengths = _core.Request("lengths", np.empty(0), bytes(32))
    sums = SumOver(lengths, rules)(X, 2 * Y - 1)
    facts = {"loss": _core.Loss("logistic"), "l2_strength": 0.1, "intercept": None, "n_threads": 1}
    parts = partial(SimpleNamespace, first=(lengths, sums), n_columns=D)
    with pytest.raises(TypeError):
        _core.hessian_and_gradient_cov(parts(evaluate=lambda _: 3), np.zeros(D), **facts)
    # The sums of another request.
    with pytest.raises(InvalidInput, match="the sums of a pass must answer its request"):
        _core.hessian_and_gradient_cov(parts(evaluate=lambda _: sums), np.zeros(D), **facts)


def test_targets_come_with_the_parts_alone():
    chunks = dpci.Chunks(cut(X, Y, 2))
    assert as_partitions(Source(chunks)) is chunks
    with pytest.raises(InvalidInput, match="y must be None if X holds the targets, got X of type Chunks and y"):
        dpci.fit(chunks, Y, **SETTINGS)
    with pytest.raises(InvalidInput, match="y must be given unless X holds the targets, got y=None and X of type nd"):
        dpci.fit(X, **SETTINGS)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"reduce": X[:, 0], "names": X[:, 1]})
    assert dpci.fit(frame, Y, **SETTINGS).names == ("reduce", "names", "intercept")


def test_the_hinge_needs_its_rows():
    chunks = CountingChunks(cut(X, Y, 2))
    with pytest.raises(InvalidInput, match="the hinge requires all rows in memory, got rows in parts"):
        dpci.fit(chunks, **assembled(**{**SETTINGS, "loss": "hinge", "mechanism": "output", "moments": "none"}))
    assert chunks.passes == []


@pytest.mark.parametrize(
    "call",
    [
        lambda chunks: dpci.simulate.coverage(chunks, Y, budget=BUDGETS["pure"], l2_strength=0.1),
        lambda chunks: dpci.tuning.tune(chunks, Y, budget=BUDGETS["pure"], candidates=[{"l2_strength": 0.1}]),
        lambda chunks: dpci.per_instance.report(chunks, Y, budget=BUDGETS["approx"], l2_strength=0.1, n_public=N),
        lambda chunks: dpci.baselines.functional_mechanism(chunks, Y, budget=BUDGETS["pure"]),
        lambda chunks: dpci.utility.curve(chunks, Y, at=BUDGETS["approx"], l2_strength=0.1),
        lambda chunks: lowlevel.erm_value_and_gradient(chunks, Y, np.zeros(D), l2_strength=0.1),
        lambda chunks: in_memory(X, Y).predict(chunks),
    ],
)
@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_other_functions_ask_for_an_array(call):
    with pytest.raises(InvalidInput, match=r"this function requires rows in one array, got rows in parts"):
        call(dpci.Chunks(cut(X, Y, 2)))


def test_warnings_point_at_the_caller():
    with pytest.warns(SeededNoiseWarning) as caught:
        in_parts(X, Y)
    assert {warning.category for warning in caught} <= {SeededNoiseWarning, MomentNoiseWarning}
    with pytest.warns(SeededNoiseWarning) as caught:
        dpci.fit(dpci.Chunks(cut(X, Y, 2)), **SETTINGS)
    assert caught[0].filename == __file__
    assert not [warning for warning in caught if warning.category is PrivacyLeakWarning]
