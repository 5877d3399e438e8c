"""Level totals of a joint release: sensitivity by brute force, and the noise in the entries that they tell."""

import numpy as np
import pytest
from scipy import special

import dpci
from dpci import _core
from dpci.released.calibration import off_lattice, sealed_of_fit
from dpci.released.model import record_of
from dpci.rows import Blocks, core_rows
from support.core import specified

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning", "ignore::dpci.CommonLevelWarning")

# A number, three levels of one category, two of another, and the constant.
ROWS, SCALE = Blocks([0.7], groups=[([1, 2, 3], 0.5), ([4, 5], 0.4)]), 0.7
REACH = np.array([0.7, 0.5, 0.5, 0.5, 0.4, 0.4])
N, EPSILON = 50, 2.0


def spec(neighbors="replace_one", **changed):
    choices = {"mechanism": "objective", "split": (0.5, 0.25, 0.25), "moments": "levels", "neighbors": neighbors}
    choices |= {"loss": _core.Loss("logistic"), "budget": _core.Budget.pure(EPSILON)}
    choices |= {"n_samples": N, "n_columns": 6, "intercept": SCALE, "row_norm": core_rows(ROWS)}
    return specified(_core.Spec, **{**choices, **changed})


def cells(x):
    """Parts of a record of weight 1 in each cell of each block."""
    u = x[:6] / REACH
    number, groups = u[0], [u[1:4] ** 2, u[4:6] ** 2]
    return [
        np.array([(1 - number) ** 2 / 4, (1 - number**2) / 2, (1 + number) ** 2 / 4]),
        *(np.append(squares, 1.0 - squares.sum()) for squares in groups),
    ]


LOSSES = [_core.Loss("logistic"), _core.Loss("smooth_hinge", 0.5), _core.Loss("huber_hinge", 2.0), _core.Loss("probit")]


def loss_of(step, params, old, new, loss=LOSSES[0]):
    """Greatest logarithm of a ratio of the densities of what two tables release that differ in one record: its rows."""
    hessian, cov, totals = np.zeros((7, 7)), np.zeros((7, 7)), [np.zeros(3), np.zeros(4), np.zeros(3)]
    for sign, record in ((1.0, old), (-1.0, new)):
        if record is None:
            continue
        gradient = np.zeros(7)
        for x, y in record:
            _, slope, curvature = (part[0] for part in loss.evaluate(np.array([x @ params]), np.array([y])))
            part = sign / (N * len(record))
            gradient += slope * x / len(record)
            hessian += part * curvature * np.outer(x, x)
            totals = [t + part * curvature * c for t, c in zip(totals, cells(x), strict=True)]
        cov += sign / N * np.outer(gradient, gradient)
    nuclear = lambda matrix: np.abs(np.linalg.eigvalsh(matrix)).sum()  # noqa: E731
    gauge = max(np.abs(t).sum() for t in totals)
    return nuclear(hessian) / step.hessian_scale + nuclear(cov) / step.scale + gauge / step.levels_scale


def random_record(rng):
    """A record anywhere in the blocks, half of the time in a corner."""
    x = np.append(rng.uniform(-0.7, 0.7), np.zeros(5))
    for columns, bound in ROWS.groups:
        part = rng.dirichlet(np.ones(len(columns) + 1))[:-1] if rng.random() < 0.5 else np.eye(len(columns))[0]
        x[list(columns)] = bound * rng.permutation(part) * rng.choice([-1.0, 1.0])
    if rng.random() < 0.5:
        x[0] = rng.choice([-0.7, 0.7])
    return np.append(x, SCALE), rng.choice([-1.0, 1.0])


@pytest.mark.parametrize("rows", [1, 3], ids=["rows", "persons"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_no_pair_of_neighbours_loses_more_than_the_moments_cost(loss, neighbors, rows):
    rng = np.random.default_rng(1)
    for size in (0.0, 0.5, 3.0):
        params = size * rng.standard_normal(7)
        radius = 1.0 + np.linalg.norm(params)
        own = spec(neighbors, loss=loss, radius=radius, persons=rows > 1)
        (step,) = _core.moment_steps(own, own.plan()["row_norm"] * np.linalg.norm(params))
        for _ in range(60):
            old, new = ([random_record(rng) for _ in range(rows)] for _ in range(2))
            new = new if neighbors == "replace_one" else None
            assert loss_of(step, params, old, new, loss) <= step.cost * (1.0 + 1e-9)


@pytest.mark.parametrize("rows", [1, 3], ids=["rows", "persons"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: loss.name)
def test_a_pair_of_neighbours_loses_all_that_the_moments_cost(loss, neighbors, rows):
    """Rows at a right angle that share no cell of the number, both where the weighted sum is greatest.

    That of probit is at the greatest margin, which two such rows cannot both have.
    """
    radius = 20.0
    own = spec(neighbors, loss=loss, radius=radius, persons=rows > 1)
    (step,) = _core.moment_steps(own, own.plan()["row_norm"] * radius)
    hessian, levels = step.scale / step.hessian_scale, step.scale / step.levels_scale / own.plan()["row_norm"] ** 2
    margins = np.linspace(-8.0, 8.0, 64_001)
    _, slopes, curvatures = loss.evaluate(margins, np.ones_like(margins))
    margin = margins[np.argmax((hessian + levels) * curvatures + slopes**2)]
    one = np.array([0.7, 0.5, 0.0, 0.0, 0.4, 0.0, SCALE])
    other = np.array([-0.7, 0.0, 0.5, 0.0, 0.0, 0.4, SCALE])
    params = margin * (one / (one @ one) + other / (other @ other))
    new = [(other, 1.0)] * rows if neighbors == "replace_one" else None
    assert loss_of(step, params, [(one, 1.0)] * rows, new, loss) >= 0.99 * step.cost


def test_entries_have_the_noise_of_their_part():
    """Over 1,500 releases a variance has a relative standard error of at most .06: a limit of .35 is nearly six."""
    rng = np.random.default_rng(2)
    size = 400
    x = np.array([random_record(rng)[0] for _ in range(size)])
    y = np.where(rng.random(size) < 0.4, 1.0, -1.0)
    own = spec(n_samples=size, budget=_core.Budget.pure(40.0))
    records = _core.Records(np.ascontiguousarray(x[:, :6]), y)
    errors = []
    for seed in range(1500):
        fit = _core.release(own, records, on_violation="error", n_threads=1, seed=seed)
        step = fit["steps"][1]
        p = special.expit(x @ fit["params"])
        exact = (x * (p * (1 - p))[:, None]).T @ x / size + np.eye(7)
        errors.append((fit["hessian"] - exact) / step.levels_scale)
        ratio = step.hessian_scale / step.levels_scale
    found = np.var(np.array(errors), axis=0)
    # In units of the scale of the totals, of which ten cells of three blocks have the gamma law of an eleventh number.
    of_cell = lambda k: 11.0 * 12.0 * 2.0 / ((k + 1.0) * (k + 2.0))  # noqa: E731
    number, three, two = of_cell(3), of_cell(4), of_cell(3)
    expected = np.full((7, 7), 8.0 / 2.0 * ratio**2)
    shares = 1.0 / np.array([3 * number, 4 * three, 3 * two])
    diagonal = [3 * number * REACH[0] ** 4, *3 * [three * REACH[1] ** 4], *2 * [two * REACH[4] ** 4]]
    np.fill_diagonal(expected, [*diagonal, SCALE**4 / shares.sum()])
    expected[0, 6] = expected[6, 0] = 2 * number * (REACH[0] * SCALE) ** 2
    np.testing.assert_allclose(found, expected, rtol=0.35)


def test_totals_are_sealed_finer_than_the_other_entries():
    """A category of 60 levels, whose totals have far less noise than the matrix: of the seal they have next to none."""
    rows = Blocks([0.7], groups=[(range(1, 61), 0.2)])
    X, y = np.zeros((400, 61)), np.tile([-1, 1], 200)
    X[np.arange(400), 1 + np.arange(400) % 60] = 0.2
    record = record_of(levels_of(X, y, rows, mechanism=dpci.ObjectivePerturbation(moments="levels")))
    (seal,) = (seal for seal in record.seals if seal.release == "hessian")
    of_category = record.steps[1].levels_scale * np.sqrt(2.0 * 65.0 * 66.0 / (62.0 * 63.0))
    assert seal.std_dev / _core.FINER_LEVELS < 0.02 * 0.2**2 * of_category
    finer = np.ones_like(record.hessian)
    np.fill_diagonal(finer, _core.FINER_LEVELS)
    finer[0, -1] = finer[-1, 0] = _core.FINER_LEVELS
    data = record.hessian - record.l2_strength * np.eye(62)
    steps = data * finer / seal.lattice
    # λ is added to the diagonal, with a rounding of half a unit in its last place.
    assert (np.abs(steps - np.rint(steps)) <= 256.0 * 2.0**-53 / seal.lattice * np.eye(62)).all()
    assert (np.mod(np.diag(data) / seal.lattice, 1.0) != 0.0).mean() > 0.9
    assert off_lattice(sealed_of_fit(record)) is None


def levels_of(X, y, rows=ROWS, **changed):
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "rows": rows, "classes": (-1, 1), "seed": 1}
    return dpci.fit(X, y, **{**keywords, **changed})


def test_what_level_totals_need_is_said():
    X, y = np.zeros((60, 6)), np.tile([-1, 1], 30)
    levels = dpci.ObjectivePerturbation(moments="levels")
    assert record_of(levels_of(X, y, mechanism=levels)).steps[1].levels_scale > 0.0
    assert record_of(levels_of(X, y)).steps[1].levels_scale is None
    for changed, got in [
        ({"budget": dpci.ZCDP(0.5)}, "another budget"),
        ({"rows": 2.0}, "rows in a ball"),
        ({"rows": dpci.rows.Within(ROWS, intercept=False)}, "no intercept"),
        ({"mechanism": dpci.ObjectivePerturbation(moments="levels", projection="floor")}, "a projection"),
        ({"mechanism": dpci.OutputPerturbation(moments="levels")}, "output"),
    ]:
        said = rf"moments=\"levels\" requires PureDP.*got .*{got}.*moments=\"joint\""
        with pytest.raises(dpci.DpciError, match=said):
            levels_of(X, y, **{"mechanism": levels, **changed})
