"""Baselines where records are persons or have weights: their limits, whole records that change, payment and records."""

import pickle

import numpy as np
import pytest
from scipy import optimize

import dpci
from dpci import _core, baselines
from support.baselines import WEIGHTS, coefficient_distance, worst_pair
from support.core import specified

N, D, STRENGTH = 600, 3, 0.1
rng = np.random.default_rng(4)
X = rng.choice([-0.5, 0.0, 0.5], (N, D))
Y = np.clip(X @ [0.8, -0.4, 0.0] + 0.3 * rng.choice([-1.0, 0.0, 1.0], N), -1.0, 1.0)
# Persons with 1, 2, 4, 8 rows anywhere in the table, so that shares have few digits.
WHOSE = rng.permutation(np.concatenate([np.repeat(np.arange(40) + 40 * k, 2**k) for k in range(4)]))
SHARES = rng.choice([0.0, 0.25, 0.5, 1.0], N)
HUGE = {"budget": dpci.PureDP(1e9), "seed": 1}
AXES = [baselines.Levels((j,), (-0.5, 0.0, 0.5)) for j in range(D)]

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

UNITS = {
    "persons": {"persons": WHOSE},
    "max_rows": {"persons": dpci.Persons(WHOSE, max_rows=4)},
    "weights": {"weights": dpci.Weights(3.0 * SHARES, bound=3.0)},
    "both": {"persons": WHOSE, "weights": dpci.Weights(3.0 * SHARES, bound=3.0)},
}


def shares_of(unit):
    """How much each row counts over the greatest weight, and how many records there are."""
    n_rows = np.bincount(WHOSE)
    if unit == "weights":
        return SHARES, N
    shares = 1.0 / n_rows[WHOSE]
    if unit == "max_rows":
        earlier = np.array([np.sum(WHOSE[:i] == whose) for i, whose in enumerate(WHOSE)])
        shares = np.where(earlier < 4, 0.25, 0.0)
    return (shares * SHARES if unit == "both" else shares), len(n_rows)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_limit_of_the_functional_mechanism(unit, loss):
    y = Y if loss == "squared" else np.where(Y > 0, 1.0, -1.0)
    classes = {} if loss == "squared" else {"classes": (-1.0, 1.0)}
    keywords = {"loss": loss, "l2_strength": STRENGTH, "rows": dpci.rows.Within(intercept=False), **classes, **HUGE}
    found = baselines.functional_mechanism(X, y, **keywords, **UNITS[unit])
    shares, n_records = shares_of(unit)
    divisor = n_records / (UNITS[unit]["weights"].bound if "weights" in UNITS[unit] else 1.0)
    q, k = WEIGHTS[loss]
    left = q * X.T @ (shares[:, None] * X) + 0.5 * divisor * STRENGTH * np.eye(D)
    np.testing.assert_allclose(found.params, np.linalg.solve(left, 0.5 * k * X.T @ (shares * y)), atol=1e-6)
    assert found.n_samples == n_records


@pytest.mark.parametrize("unit", UNITS)
def test_the_limit_of_the_histogram(unit):
    """The levels are the rows, and the bins of the target hold what moves to their centres."""
    keywords = {"axes": AXES, "l2_strength": STRENGTH, "target_bins": 5, "intercept": False, **HUGE}
    y = np.clip(Y + 0.03, -1.0, 1.0)  # on no edge of a bin
    found = baselines.projected_histogram(X, y, **keywords, **UNITS[unit])
    shares, n_records = shares_of(unit)
    centres = np.clip(np.floor((y + 1.0) / 0.4), 0, 4) * 0.4 - 0.8
    mean = shares / shares.sum()
    left = 2.0 * X.T @ (mean[:, None] * X) + STRENGTH * np.eye(D)
    np.testing.assert_allclose(found.params, np.linalg.solve(left, 2.0 * X.T @ (mean * centres)), atol=1e-6)
    assert found.n_samples == n_records


@pytest.mark.parametrize("unit", UNITS)
def test_the_minimiser_without_noise(unit):
    y = np.where(Y > 0, 1, -1)
    keywords = {"loss": "logistic", "l2_strength": STRENGTH, "classes": (-1, 1)}
    found = baselines.non_private(X, y, **keywords, **UNITS[unit])
    shares, n_records = shares_of(unit)
    divisor = n_records / (UNITS[unit]["weights"].bound if "weights" in UNITS[unit] else 1.0)
    Z = np.column_stack([X, np.ones(N)])

    def risk(theta):
        return shares @ np.logaddexp(0.0, -y * (Z @ theta)) / divisor + 0.5 * STRENGTH * theta @ theta

    expected = optimize.minimize(risk, np.zeros(D + 1), tol=1e-14).x
    np.testing.assert_allclose(found.params, expected, atol=1e-6)
    assert found.n_samples == n_records


def wholes(draw, count, d, kind):
    """Quadratic and linear coefficients, (count, d, d) and (count, d), of records of up to five rows."""
    most = 1 if kind == "weights" else 5
    n_rows = draw.integers(1, most + 1, count)[:, None]
    shares = {"persons": 1.0 / n_rows, "max_rows": 0.2}.get(kind, draw.uniform(size=(count, 1)))
    shares = np.where(np.arange(most) < n_rows, shares, 0.0)
    rows = draw.normal(size=(count, most, d))
    rows *= draw.uniform(size=(count, most, 1)) ** (1.0 / d) / np.linalg.norm(rows, axis=2, keepdims=True)
    y = draw.choice([-1.0, 1.0], (count, most))
    return np.einsum("nm,nmi,nmj->nij", shares, rows, rows), np.einsum("nm,nmi->ni", shares * y, rows)


def functional_spec(d, loss, counts, budget):
    return specified(
        _core.FunctionalSpec, n_samples=4, n_columns=d, polynomial=loss, l2_strength=0.0,
        budget=dpci.budgets.core_budget(budget), **counts,
    )  # fmt: skip


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("kind", ["persons", "max_rows", "weights"])
def test_no_record_moves_coefficients_further_than_is_paid_for_and_one_does_nearly(loss, kind):
    q, k = WEIGHTS[loss]
    for d in (2, 4):
        draw = np.random.default_rng(d)
        claims = []
        for budget in (dpci.PureDP(1.0), dpci.ZCDP(0.5)):
            persons = {"persons": dpci.Persons(np.arange(4), max_rows=5 if kind == "max_rows" else None)}
            counts = {"weights": dpci.Weights(np.ones(4), bound=1.0)} if kind == "weights" else persons
            said = baselines.functional_mechanism(
                np.zeros((4, d)), [-1.0, 1.0, -1.0, 1.0], loss=loss, budget=budget,
                rows=dpci.rows.Within(intercept=False), seed=1, **counts,
            )  # fmt: skip
            claims.append(said.privacy["steps"][0]["sensitivity"])
        gram, cross = (
            ours - theirs for ours, theirs in zip(*(wholes(draw, 2000, d, kind) for _ in range(2)), strict=True)
        )
        assert (q * np.abs(gram).sum(axis=(1, 2)) + k * np.abs(cross).sum(axis=1)).max() <= claims[0]
        assert ((gram**2).sum(axis=(1, 2)) + (cross**2).sum(axis=1)).max() <= claims[1] ** 2
        # A record whose rows are all alike, of full weight, is one row.
        assert worst_pair(d, loss) >= 0.95 * claims[0]
        x, z = np.eye(d)[0], np.eye(d)[0] * 0.5 + np.eye(d)[1] * np.sqrt(0.75)
        assert coefficient_distance(x, 1.0, z, -1.0, loss)[1] >= 0.95 * claims[1]


@pytest.mark.parametrize("kind", ["persons", "max_rows", "weights", "both"])
def test_no_record_moves_counts_further_than_is_paid_for_and_one_does(kind):
    draw = np.random.default_rng(3)
    budget = dpci.budgets.core_budget(dpci.PureDP(1e9))
    loss = dpci.losses.Squared().to_core()
    spec = specified(
        _core.HistogramSpec, axes=[([0], [0.0, 1.0, 2.0])], n_columns=1, targets=[-0.5, 0.5], loss=loss, budget=budget,
        persons=kind != "weights", max_rows=3 if kind == "max_rows" else None,
        **{"weight_bound": 2.0, "weight_total": 2.0} if kind in {"weights", "both"} else {},
    )  # fmt: skip
    greatest = 0.0
    for trial in range(200):
        n_rows = 1 if kind == "weights" else int(draw.integers(1, 9))
        alike = trial % 2 == 0

        def rows(extreme, n_rows=n_rows, alike=alike):
            cells = np.full(n_rows, extreme) if alike else draw.integers(0, 3, n_rows)
            weights = np.full(n_rows, 2.0) if alike else draw.uniform(0.0, 2.0, n_rows)
            return cells.astype(float), weights

        counts = []
        for extreme in (0, 2):
            cells, weights = rows(extreme)
            owners = np.concatenate([np.zeros(n_rows, np.int64), np.ones(5, np.int64)])
            given = {} if kind == "weights" else {"persons": owners}
            if kind in {"weights", "both"}:
                given["weights"] = np.concatenate([weights, np.full(5, 1.3)])
            x = np.concatenate([cells, [0.0, 1.0, 2.0, 1.0, 1.0]])[:, None]
            y = np.full(len(x), 0.5)
            found = _core.release(spec, _core.Records(x, y, **given), on_violation="clip", n_threads=1, seed=1)
            counts.append(found["counts"])
        moved = np.abs(counts[0] - counts[1])
        assert moved.sum() <= 2.0 + 1e-6
        assert np.linalg.norm(moved) <= np.sqrt(2.0) + 1e-6
        greatest = max(greatest, moved.sum())
    assert greatest >= 1.9


def test_rows_and_choices_of_another_unit_are_refused():
    keywords = {"loss": dpci.losses.Squared().to_core(), "budget": dpci.budgets.core_budget(dpci.PureDP(1.0))}
    spec = specified(
        _core.HistogramSpec, axes=[([0], [0.0, 1.0])], n_columns=1, targets=[0.0], persons=True, **keywords
    )
    x, y = np.ones((4, 1)), np.zeros(4)
    with pytest.raises(dpci.InvalidInput, match="unit of privacy of the mechanism, a person, got a row"):
        _core.release(spec, _core.Records(x, y), on_violation="clip", n_threads=1, seed=1)
    spec = functional_spec(1, "squared", {"weight_bound": 1.0, "weight_total": 4.0}, dpci.PureDP(1.0))
    with pytest.raises(dpci.InvalidInput, match="must have the weights of the mechanism"):
        _core.release(spec, _core.Records(x, y), on_violation="error", n_threads=1, seed=1)


def test_records_and_ledgers_say_whom_they_protect():
    for release in (
        lambda **k: baselines.functional_mechanism(X, Y, **k),
        lambda **k: baselines.projected_histogram(X, Y, axes=AXES, l2_strength=STRENGTH, **k),
    ):
        ledger = dpci.Ledger(dpci.PureDP(3.0))
        found = release(budget=dpci.PureDP(2.0), ledger=ledger, **UNITS["both"])
        assert [entry.unit for entry in ledger.history] == ["person"]
        assert found.privacy["unit"] == "person"
        assert found.privacy["constants"]["persons"] == {"max_rows": None}
        assert found.privacy["constants"]["weights"]["bound"] == 3.0
        assert "one person replaced" in found.summary()
        assert pickle.loads(pickle.dumps(found)).to_json() == found.to_json()
        plain = release(budget=dpci.PureDP(2.0))
        # Files of rows are those of earlier versions.
        assert '"persons"' not in plain.to_json().split('"steps"')[0]
        assert baselines.BaselineFit.from_json(plain.to_json()).privacy["unit"] == "row"
        with pytest.raises(dpci.InvalidInput, match="bound="):
            release(budget=dpci.PureDP(2.0), weights=SHARES)
        with pytest.raises(dpci.InvalidInput, match="persons must have ids"):
            release(budget=dpci.PureDP(2.0), persons=dpci.Persons(max_rows=2))
