"""Minimisers on a ball, against the normal equations, and rows at their bound to the last bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, special
from scipy.sparse import csr_array

import dpci
from dpci import lowlevel
from dpci.losses import Custom, HuberHinge, Logistic, SmoothHinge, SoftLogistic, Squared

STRENGTH = 0.01


def pseudo_huber(u, y):
    return np.hypot(1.0, u - y) - 1.0, (u - y) / np.hypot(1.0, u - y), np.hypot(1.0, u - y) ** -3


def fenced(part, bound):
    """One part of the pseudo-Huber loss, which must not be asked about predictors beyond the bound."""

    def evaluate(u, y):
        assert np.abs(u).max() <= bound * (1.0 + 1e-12)
        return pseudo_huber(u, y)[part]

    return evaluate


def custom(bound):
    """The pseudo-Huber loss on the predictors up to ``bound``, which is the radius for rows of norm 1."""
    parts = [fenced(part, bound) for part in range(3)]
    return Custom(*parts, slope_bound=1.0, curvature_bound=1.0, target_bounds=(-1.0, 1.0), predictor_bound=bound)


LOSSES = {
    "logistic": lambda _: Logistic(),
    "huber_hinge": lambda _: HuberHinge(h=0.5),
    "smooth_hinge": lambda _: SmoothHinge(s=0.3),
    "soft_logistic": lambda _: SoftLogistic(),
    "squared": lambda _: Squared(),
    "custom": custom,
}
by_loss = pytest.mark.parametrize("name", LOSSES)


def rows(name, seed, n=200, d=5):
    """Rows of norm at most 1 and targets that depend on them, of the kind that the loss takes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1.0, 0.05, d)
    X /= np.linalg.norm(X, axis=1, keepdims=True) / rng.uniform(0.2, 1.0, (n, 1))
    score = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    if name == "soft_logistic":
        return X, special.expit(2.0 * score)
    return X, np.clip(score, -1.0, 1.0) if name in ("squared", "custom") else np.where(score > 0.0, 1.0, -1.0)


def minimize(name, data, radius, **keywords):
    loss = LOSSES[name](radius)
    options = {"l2_strength": STRENGTH, "radius": radius, "tolerance": 1e-9, **keywords}
    return lowlevel.minimize_erm(*data, loss=loss, **options)


@pytest.mark.parametrize("intercept", [None, 0.7])
@pytest.mark.parametrize("radius", [None, 0.3, 100.0])
@pytest.mark.parametrize("d", [1, 14, 60, 401])
def test_squared_equals_the_normal_equations(d, radius, intercept):
    """One pass up to 400 parameters, the general solvers above."""
    X, y = rows("squared", 5, n=500 if d > 400 else 3000, d=d)
    full = X if intercept is None else np.column_stack([X, np.full(len(X), intercept)])
    values, vectors = np.linalg.eigh(2.0 * full.T @ full / len(y) + STRENGTH * np.eye(full.shape[1]))
    rhs = vectors.T @ (2.0 * full.T @ y / len(y))
    point = lambda nu: vectors @ (rhs / (values + nu))  # noqa: E731
    nu = 0.0
    if radius is not None and np.linalg.norm(point(0.0)) > radius:
        nu = optimize.brentq(lambda nu: np.linalg.norm(point(nu)) / radius - 1.0, 0.0, 1e4, xtol=1e-15)
    assert (nu > 0.0) == (radius == 0.3)
    for is_sparse in (False, True):
        found = lowlevel.minimize_erm(
            csr_array(X) if is_sparse else X, y, loss=Squared(), l2_strength=STRENGTH, radius=radius,
            intercept=intercept or False,
        )  # fmt: skip
        np.testing.assert_allclose(found.params, point(nu), rtol=0, atol=1e-10)


@by_loss
def test_same_bits_for_any_number_of_threads(name):
    data = rows(name, 6, n=30_000, d=6)
    params = [minimize(name, data, 0.3, n_threads=threads).params for threads in (1, 2, 3)]
    np.testing.assert_array_equal(params[0], params[1])
    np.testing.assert_array_equal(params[0], params[2])


def test_what_does_not_go_together_is_refused():
    data = rows("logistic", 7)
    for keywords in ({"solver": "newton"}, {"solver": "lbfgs"}):
        with pytest.raises(dpci.DpciError, match="solver must be"):
            minimize("logistic", data, 0.5, **keywords)
    with pytest.raises(dpci.DpciError, match="solver must be"):
        lowlevel.minimize_erm(*data, l2_strength=STRENGTH, solver="ball")


def test_a_solver_without_steps_left_is_refined():
    data = rows("logistic", 7)
    few, many = (minimize("logistic", data, 0.5, max_iterations=steps) for steps in (1, 100))
    np.testing.assert_allclose(few.params, many.params, rtol=0, atol=few.certificate + many.certificate)


LEAST = float(np.nextafter(0.0, 1.0))
REALS = st.floats(-1e150, 1e150)


def exact_square(row):
    return sum((Fraction(float(v)) ** 2 for v in row), start=Fraction(0))


def longer(rows, bound):
    """How many rows are longer than the bound, in exact arithmetic where 64 bits cannot tell."""
    bound = np.longdouble(bound)
    extended = np.asarray(rows).astype(np.longdouble) / bound
    squares = np.sum(extended * extended, axis=1)
    # A sum of d squares with 64 bits errs by less than (d + 3)·2⁻⁶³; subnormal quotients do not matter beside 1.
    error = (rows.shape[1] + 3.0) * np.longdouble(2.0) ** -63
    certain = np.flatnonzero(squares > 1.0 + error)
    unsure = np.flatnonzero(~(squares < 1.0 - error) & ~(squares > 1.0 + error))
    return len(certain) + sum(exact_square(rows[i]) > Fraction(float(bound)) ** 2 for i in unsure)


def rows_near(rng, n, dim, bound):
    """Rows whose norm differs from the bound by a few units in the last place."""
    X = rng.standard_normal((n, dim))
    X *= bound / np.linalg.norm(X, axis=1, keepdims=True)
    return X * (1.0 + rng.integers(-4, 5, (n, 1)) * 2.0**-52)


def adversarial(rng, n, dim, bound):
    """One great entry and many tiny ones: what a plain sum of squares loses."""
    X = bound * 2.0 ** -rng.uniform(20, 60, (n, dim)) * rng.standard_normal((n, dim))
    X[:, 0] = bound * (1.0 - rng.integers(0, 3, n) * 2.0**-53)
    return X


@pytest.mark.parametrize("dim", [1, 2, 7, 40])
@pytest.mark.parametrize("bound", [1.0, 0.3, 1e100, 1e-100, 1e-300])
def test_millions_of_rows_stay_within_the_bound(dim, bound):
    rng = np.random.default_rng(dim)
    n = 100_000 // (1 + dim // 8)
    for make in (rows_near, adversarial):
        X = make(rng, n, dim, bound)
        for rows in (X, sparse.csr_array(X)):
            used = lowlevel.checked_rows(rows, rows=bound)
            assert longer(used, bound) == 0
            # What rounding or tiny entries put above the bound loses no more than the room for them.
            np.testing.assert_allclose(used, X, rtol=1e-9, atol=2 * LEAST)
        clipped = lowlevel.checked_rows(X * rng.choice([1.0, 2.0, 1e9], (n, 1)), rows=dpci.rows.Clipped(bound))
        assert longer(clipped, bound) == 0


def test_the_filter_of_the_test_above_finds_long_rows():
    rows = np.array([[1.0, 0.0], [1.0, 2.0**-60], [1.0 + 2.0**-52, 0.0], [0.6, 0.8], [0.5, 0.5]])
    assert longer(rows, 1.0) == sum(exact_square(row) > 1 for row in rows) == 3


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.lists(REALS, min_size=3, max_size=3), min_size=1, max_size=5),
    st.one_of(st.floats(LEAST, 1e-290), st.floats(1e-290, 1e290), st.sampled_from([LEAST, 1.0, 1e-310, 3 * LEAST])),
)
def test_clipped_rows_stay_within_any_bound(rows, bound):
    X = np.array(rows)
    try:
        used = lowlevel.checked_rows(X, rows=dpci.rows.Clipped(bound))
    except dpci.InvalidInput as error:
        assert "1e150" in str(error)  # noqa: PT017 - the entries may be legal or not
        return
    square = Fraction(bound) ** 2
    assert all(exact_square(row) <= square for row in used)


@pytest.mark.parametrize("bound", [1.0, 0.1, 1e-310, 5 * LEAST])
def test_the_intercept_counts_in_the_bound_of_the_whole_row(bound):
    rng = np.random.default_rng(0)
    X = rows_near(rng, 1000, 3, 1.0) * bound
    for scale in (1.0, 0.37, bound):
        used = lowlevel.checked_rows(X, rows=dpci.rows.Clipped(bound), intercept=scale or False)
        assert np.all(used[:, -1] == scale)
        assert longer(used[:, :-1], bound) == 0


def test_rows_a_rounding_above_the_bound():
    # 1 + 1e-16 is 1 in f64; the next number is above it. Both are within the room for rounding and are scaled below 1.
    used = lowlevel.checked_rows([[1.0 + 1e-16], [1.0 + 2.0**-52], [1.0 + 9e-10]], rows=1.0)
    assert np.all(used <= 1.0)
    np.testing.assert_allclose(used, 1.0, rtol=1e-14)
    with pytest.raises(dpci.RowNormViolation, match=r"row_norm=1, got 1\.00000000"):
        lowlevel.checked_rows([[1.0 + 2e-9]], rows=1.0)
    subnormal = lowlevel.checked_rows([[LEAST, LEAST]], rows=dpci.rows.Clipped(LEAST))
    assert exact_square(subnormal[0]) <= Fraction(LEAST) ** 2
    with pytest.raises(dpci.RowNormViolation):
        lowlevel.checked_rows([[1e140, 1e140]], rows=1.0)
    with pytest.raises(dpci.InvalidInput, match="1e150"):
        lowlevel.checked_rows([[1e160]], rows=dpci.rows.Clipped(1.0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_are_refused(bad):
    for bounds in (1.0, dpci.rows.Clipped(1.0)):
        for position in range(9):
            X = np.zeros((20, 9))
            X[17, position] = bad
            for rows in (X, sparse.csr_array(X)):
                with pytest.raises(dpci.InvalidInput, match=f"row 17, column {position}|index"):
                    lowlevel.checked_rows(rows, rows=bounds)


def test_other_layouts_are_checked_as_their_numbers():
    rng = np.random.default_rng(4)
    X = rows_near(rng, 500, 6, 1.0)
    expected = lowlevel.checked_rows(np.ascontiguousarray(X[::2, ::3]), rows=1.0)
    np.testing.assert_array_equal(lowlevel.checked_rows(X[::2, ::3], rows=1.0), expected)
    np.testing.assert_array_equal(
        lowlevel.checked_rows(np.asfortranarray(X), rows=1.0), lowlevel.checked_rows(X, rows=1.0)
    )
    single = X.astype(np.float32)
    used = lowlevel.checked_rows(single, rows=dpci.rows.Clipped(1.0))
    assert longer(used, 1.0) == 0
    np.testing.assert_allclose(used, single, rtol=1e-6)
