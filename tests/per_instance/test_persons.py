"""Reports of persons and of weighted rows: whole persons by brute force, and bounds by an independent computation."""

import numpy as np
import pytest
from scipy import optimize, stats

import dpci
from dpci import InvalidInput, _core
from support import per_instance as ours
from support.core import specified

N_PERSONS, D = 40, 3
RNG = np.random.default_rng(5)
SIZES = RNG.integers(1, 7, N_PERSONS)
X, Y = ours.make_rows(int(SIZES.sum()), D)
IDS = RNG.permutation(np.repeat(np.arange(N_PERSONS), SIZES))
WEIGHTS = RNG.uniform(0.1, 3.0, len(X))
# Ids in the order of their first rows.
FIRSTS = list(dict.fromkeys(IDS.tolist()))
SHARP = dpci.ApproxDP(8.0, 1e-3)
RULES = {
    "mean": {},
    "three rows": {"persons": dpci.Persons(IDS, max_rows=3)},
    "weights": {"weights": dpci.Weights(WEIGHTS, bound=3.0)},
}
by_rule = pytest.mark.parametrize("rule", RULES)


def report(**keywords):
    return ours.report(X, Y, **{"persons": IDS, "n_public": N_PERSONS, **keywords})


def asked(rule):
    """Arguments of a call besides the rows."""
    return {"persons": IDS, **({"weights": WEIGHTS} if rule == "weights" else {})}


def shares(rule, ids=IDS, weights=WEIGHTS):
    """How much each row counts: weights over their bound."""
    most = RULES[rule]["persons"].max_rows if "persons" in RULES[rule] else None
    found = np.zeros(len(ids))
    for one in set(ids.tolist()):
        rows = np.flatnonzero(ids == one)
        found[rows[:most]] = 1 / (most or len(rows))
    return found * (weights / 3.0 if rule == "weights" else 1.0)


def public(made, rule):
    """Ridge and standard deviation: sums are divided by n over the bound of weights."""
    n = N_PERSONS / (3.0 if rule == "weights" else 1.0)
    return n * made.result.l2_strength, made.result.privacy["steps"][0]["scale"]


def density(made, rule, rows, labels, counts):
    """The logarithm of that of the released parameters on rows that count so."""
    ridge, std_dev = public(made, rule)
    slope, curvature = ours.derivatives("logistic", rows @ made.result.params, labels)
    noise = -(rows.T @ (counts * slope) + ridge * made.result.params)
    hessian = (rows.T * (counts * curvature)) @ rows + ridge * np.eye(D)
    return stats.norm.logpdf(noise, scale=std_dev).sum() + np.linalg.slogdet(hessian)[1]


@by_rule
def test_exact_losses_are_ratios_of_densities_without_the_person(rule):
    """Neighbours lack all rows of the person, or have more: from Gaussian densities and Jacobians."""
    made = report(budget=SHARP, **RULES[rule])
    counts = shares(rule)
    here = density(made, rule, X, Y, counts)
    inside = ours.exact_losses(
        made, X, Y, X, Y, member=True, **asked(rule), **{f"record_{k}": v for k, v in asked(rule).items()}
    ).signed
    assert inside.shape == (N_PERSONS,)
    for person, loss in zip(FIRSTS, inside, strict=True):
        others = person != IDS
        without = density(made, rule, X[others], Y[others], counts[others])
        assert loss == pytest.approx(here - without, rel=1e-8, abs=1e-10)
    assert (inside > 0.01).any()
    assert (inside < -0.01).any()
    rows, labels = ours.make_rows(9, D, seed=8)
    ids, weights = np.array([7, 7, 7, 7, 7, 2, 2, 9, 9]), np.full(9, 1.5)
    extra = {"record_weights": weights} if rule == "weights" else {}
    outside = ours.exact_losses(made, X, Y, rows, labels, member=False, record_persons=ids, **asked(rule), **extra)
    for person, loss in zip((7, 2, 9), outside.signed, strict=True):
        own = ids == person
        joined = np.append(counts, shares(rule, ids, weights)[own])
        added = density(made, rule, np.vstack([X, rows[own]]), np.append(Y, labels[own]), joined)
        assert loss == pytest.approx(here - added, rel=1e-8, abs=1e-10)


def least_trace(noisy, radius, ridge, hessian):
    """The lower bound B on the Hessian among all combinations with the ridge that has the least trace of P / B."""
    dim = len(noisy)
    lower = noisy - radius * np.eye(dim)
    least = np.linalg.eigvalsh(lower)[0]
    end = ridge / (ridge - least) if least < ridge else 1.0

    def bound(share):
        return share * lower + (1 - share) * ridge * np.eye(dim)

    end = min(1.0, end * (1 - 1e-6))
    best = optimize.minimize_scalar(
        lambda s: np.trace(np.linalg.solve(bound(s), hessian)),
        bounds=(0.0, end),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min((bound(s) for s in (0.0, best.x, end)), key=lambda b: np.trace(np.linalg.solve(b, hessian)))


def expected_bounds(made, rule):
    """eps1, eps2 and eps3 recomputed with SciPy from what the report publishes."""
    ridge, std_dev = public(made, rule)
    phi, counts = made.failure_probability, shares(rule)
    dependent = made.kind == "data_dependent"
    found = []
    for person in FIRSTS:
        own = np.flatnonzero((person == IDS) & (counts > 0))
        x, rank = X[own], min(len(own), D)
        slope, curvature = ours.derivatives("logistic", x @ made.result.params, Y[own])
        g, hessian = x.T @ (counts[own] * slope), (x.T * (counts[own] * curvature)) @ x
        norm = np.linalg.norm(g)
        p = phi / 4 if dependent else phi
        cross = std_dev * norm * 1.001 * stats.chi.isf(p, D if made.simultaneous else rank)
        log_det, eps2, eps3 = np.linalg.slogdet(np.eye(D) + hessian / ridge)[1], 0.0, 0.0
        if dependent:
            q = 1.001 * stats.chi.isf(p, D if made.simultaneous else 1)
            cross = min(cross, abs(made.gradient @ g) + made.gradient_std_dev * norm * q)
            radius = made.hessian_std_dev * 1.001 * (2 * np.sqrt(D) + 2 * np.sqrt(np.log(2 / phi)))
            ratio = np.linalg.solve(least_trace(made.hessian, radius, ridge, hessian), hessian)
            if max(np.linalg.eigvals(ratio).real) < 1:
                log_det = min(log_det, -np.linalg.slogdet(np.eye(D) - ratio)[1])
            half = made.result.budget.delta / 2
            eps2 = ours.gaussian_epsilon(norm / made.gradient_std_dev, half)
            eps3 = ours.gaussian_epsilon(np.linalg.norm(hessian) / (np.sqrt(2) * made.hessian_std_dev), half)
        found.append((log_det + norm**2 / (2 * std_dev**2) + cross / std_dev**2, eps2, eps3))
    return np.array(found).T


@by_rule
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("kind", ["data_dependent", "data_independent"])
def test_bounds_equal_an_independent_computation(rule, simultaneous, kind):
    keywords = {"shares": (0.5, 0.1, 0.4), "budget": SHARP, "failure_probability": 0.01}
    made = report(kind=kind, simultaneous=simultaneous, **keywords, **RULES[rule])
    got, expected = made(X, Y, **asked(rule)), expected_bounds(made, rule)
    np.testing.assert_allclose(got.eps1, expected[0], rtol=2e-6)
    for found, exact in zip(got[1:3], expected[1:], strict=True):
        assert (found >= exact * (1 - 1e-9)).all()
        np.testing.assert_allclose(found, exact, rtol=2e-4, atol=1e-6)
    truth = ours.exact_losses(
        made, X, Y, X, Y, member=True, **asked(rule), **{f"record_{k}": v for k, v in asked(rule).items()}
    )
    assert (truth.absolute <= got.eps1).all()


def core_bounds(made, **unit):
    """The compiled bounds of a report of rows, as those of another unit."""
    record = made.result
    return specified(
        _core.RecordBounds, loss=_core.Loss("logistic"), params=record.params, n_samples=record.n_samples,
        l2_strength=record.l2_strength, std_dev=record.privacy["steps"][0]["scale"], delta=record.budget.delta,
        derivatives=(made.gradient, made.gradient_std_dev, made.hessian, np.sqrt(2) * made.hessian_std_dev),
        failure_probability=made.failure_probability, simultaneous=made.simultaneous, bound=made.bound, **unit,
    )  # fmt: skip


@pytest.mark.parametrize("bound", ["interpolated", "paper"])
def test_persons_of_one_row_have_the_numbers_of_rows(bound):
    made = ours.report(X, Y, budget=SHARP, shares=(0.3, 0.3, 0.4), l2_strength=1.0, bound=bound)
    rows = core_bounds(made).evaluate(_core.Records(X, Y), n_threads=1)
    one = np.arange(len(X))
    persons = core_bounds(made, persons=True).evaluate(_core.Records(X, Y, persons=one), n_threads=2)
    # Two equal rows count by one half each, together as one.
    twice = np.repeat(one, 2)
    equal = core_bounds(made, persons=True, max_rows=2).evaluate(
        _core.Records(X[twice], Y[twice], persons=twice), n_threads=2
    )
    weighted = core_bounds(made, weight_bound=1.0).evaluate(_core.Records(X, Y, weights=np.ones(len(X))), n_threads=1)
    for name, by_row, by_person, by_weight in zip(("eps1", "eps2", "eps3"), rows, persons, weighted, strict=True):
        np.testing.assert_allclose(by_person, by_row, rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(by_weight, by_row, err_msg=name)
    for by_row, by_person in zip(rows[1:], equal[1:], strict=True):
        np.testing.assert_allclose(by_person, by_row, rtol=1e-9)
    # Of two rows nobody knows that they are equal: the quantile is that of a plane.
    assert (equal[0] >= rows[0] * (1 - 1e-12)).all()


def test_the_direction_of_a_person_follows_the_noise():
    """Over releases a person's bound fails no more often than is claimed; with the quantile of a row it would."""
    phi, ridge, std_dev, runs = 0.05, 1.0, 20.0, 2000
    angles = np.arange(8) * np.pi / 4
    x, y = 0.99 * np.column_stack([np.cos(angles), np.sin(angles)]), np.ones(8)

    def person(theta):
        return ours.derivatives("logistic", x @ theta, y)[0] @ x / len(x)

    failures = {"row": 0, "person": 0}
    quantiles = {"row": stats.norm.isf(phi / 2), "person": stats.chi.isf(phi, 2)}
    for b in std_dev * np.random.default_rng(0).standard_normal((runs, 2)):
        g = person(optimize.fsolve(lambda theta, b=b: person(theta) + ridge * theta + b, -b / ridge))
        for name, quantile in quantiles.items():
            failures[name] += abs(b @ g) > std_dev * np.linalg.norm(g) * quantile
    assert failures["person"] <= stats.binom.isf(1e-6, runs, phi) < failures["row"]


def test_results_depend_neither_on_threads_nor_on_the_order_of_other_rows():
    made = report(budget=SHARP)
    one = made(X, Y, persons=IDS, n_threads=1)
    two = made(X, Y, persons=[f"person {i}" for i in IDS], n_threads=2)
    order = np.argsort([FIRSTS.index(i) for i in IDS], kind="stable")
    together = made(X[order], Y[order], persons=IDS[order])
    for a, b, c in zip(one, two, together, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-12)
    nobody = made(np.empty((0, D)), [], persons=[])
    assert [part.shape for part in nobody] == [(0,)] * 4


def test_saved_reports_keep_the_unit():
    made = report(persons=dpci.Persons(IDS, max_rows=3), weights=dpci.Weights(WEIGHTS, bound=3.0))
    again = dpci.per_instance.Report.from_json(made.to_json())
    counts = {"persons": IDS, "weights": WEIGHTS}
    for a, b in zip(made(X, Y, **counts), again(X, Y, **counts), strict=True):
        np.testing.assert_array_equal(a, b)
    text = again.summary()
    assert "one person added or removed" in text
    assert "the first 3 rows of each person" in text
    assert "each person fixed beforehand" in text


def test_a_ledger_of_persons_pays():
    ledger = dpci.Ledger(dpci.ApproxDP(2.0, 1e-5), neighbors="add_remove")
    made = report(ledger=ledger, seed=None, classes=(-1, 1))
    assert ledger.history[0].unit == "person"
    assert made.private
    with pytest.raises(InvalidInput, match="row"):
        ours.report(X, Y, ledger=ledger, seed=None, classes=(-1, 1))


REFUSED = {
    "a rule alone": ({"persons": dpci.Persons(max_rows=2)}, "persons must have ids"),
    "weights alone": ({"weights": WEIGHTS}, "because it must not depend on the data, got ndarray"),
    "too few ids": ({"persons": IDS[1:]}, "persons must have one id for each of the"),
    "a large weight": ({"weights": dpci.Weights(WEIGHTS, bound=1.0)}, "weights"),
    "the published calibration": ({"calibration": "paper", "l2_strength": 1.0}, 'calibration="paper"|calibration'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    keywords, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message):
        report(**keywords)


def test_a_call_takes_what_the_report_took():
    made = report()
    with pytest.raises(InvalidInput, match="persons must be given"):
        made(X, Y)
    with pytest.raises(InvalidInput, match="weights must be None"):
        made(X, Y, persons=IDS, weights=WEIGHTS)
    with pytest.raises(InvalidInput, match=r"member must be True, False or an array of them of shape \(40,\)"):
        ours.exact_losses(made, X, Y, X, Y, member=np.ones(len(X), bool), persons=IDS, record_persons=IDS)
