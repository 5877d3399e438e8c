"""Experiments on utility and on per-instance bounds, repeated: their data, what is drawn, and what reports say."""

import dataclasses
import functools
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import dpci
from dpci import _core
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from papers import catalogue
from papers.catalogue import EXPERIMENTS
from papers.command import main, render
from papers.finding import Finding, Repeats
from papers.li import measure as utility_measure
from papers.li.measure import LOSSES, Case, Span, measure
from papers.redberg import bounds as per_instance_bounds
from papers.redberg import experiments as per_instance
from papers.redberg import setup as per_instance_setup
from papers.redberg.bounds import tight_cost
from papers.rows import DataSet, credit_default, separable_classes, soft_labels, wide_classes
from papers.sources import Sources
from support.experiments import FEW, sample_rows, shrink_per_instance, shrink_utility
from support.reproduced import refused
from support.seal import left_of

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_utility(monkeypatch)


@functools.cache
def few(name: str) -> Finding:
    """The finding of an experiment in small, made once."""
    return EXPERIMENTS["li"][name](Sources(), FEW)


# Rows.


def test_wide_rows_look_like_pictures() -> None:
    X, y = wide_classes(np.random.default_rng(3), 400, 300)
    assert X.shape == (400, 300)
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() <= 1.0
    np.testing.assert_allclose(norms, 1.0, atol=1e-12)
    assert X.min() == 0.0
    # Symmetric about 0 before it was cut there; the entries of a row are not independent, so the margin is wide.
    assert abs(np.mean(X == 0.0) - 0.5) < 0.05
    assert set(y) == {-1.0, 1.0}
    # Twenty factors carry most of the spread of 300 columns (of independent ones, a fifth).
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    assert values[:20].sum() > 0.5 * values.sum()


@pytest.mark.skipif(
    _files.find(CATALOGUE["adult"].files["train"]) is None, reason="adult is neither in DPCI_DATA nor in the cache"
)
def test_adult_has_the_columns_of_the_paper() -> None:
    X, y = Sources().all_columns("adult", 10_000)
    # 104 as in the paper's table 1, and the column of ones.
    assert X.shape == (10_000, 105)
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert set(y) == {-1.0, 1.0}


# Real losses.

SPAN = Span("short", (0.5, 1.0, 2.0), (1.0,))


def case(loss: str, mechanism: utility_measure.Mechanism, span: Span = SPAN, n: int = 400) -> Case:
    X, y = sample_rows(n)
    return Case(DataSet("sample", X, y, LOSSES[loss]), loss, mechanism, span)


@pytest.mark.parametrize("mechanism", utility_measure.MECHANISMS)
def test_real_losses_are_those_of_the_perturbed_minimisers(mechanism: utility_measure.Mechanism) -> None:
    wanted = case("LR", mechanism)
    X, y = wanted.data.X, wanted.data.y
    found = measure(wanted, wanted.span.measured, FEW)
    for column, whole in enumerate(SPAN.epsilons):
        epsilon, delta = left_of(whole), left_of(1e-6)
        if mechanism == "paper":
            ridge = 0.01 + 0.5 / epsilon
            sigma = math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
        else:
            # The delta of the noise, from the profile: one_signed, add/remove.
            ridge = 0.01 + 0.5 / left_of(0.5)
            sigma = tight_sigma(epsilon, ridge)
        spec_noise = noise_of(wanted, FEW)

        def objective(w, ridge=ridge, sigma=sigma, noise=spec_noise):
            return np.mean(np.logaddexp(0.0, -y * (X @ w))) + (ridge / 2.0 * (w @ w) + sigma * (noise @ w)) / len(X)

        params = minimize(objective, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
        # BFGS with numerical gradients ends about 1e-6 from the minimiser.
        assert found.real[0, column] == pytest.approx(np.mean(np.logaddexp(0.0, -y * (X @ params))), abs=1e-5)
    # The measuring point itself is no prediction.
    np.testing.assert_allclose(found.predicted[1.0, "newton"][:, 1], found.real[:, 1], atol=1e-7)
    assert found.errors(1.0, "newton").shape == (2, 2)


def noise_of(wanted: Case, run: Repeats):
    curve = utility_measure._curve(wanted, 1.0, run)
    return _core.Utility.draw_noise(curve.path.spec(1.0), run.seed, 0)


def tight_sigma(epsilon: float, ridge: float) -> float:
    """Least sigma with delta_G(epsilon - log(1 + t/ridge); 1/sigma) = 1e-6 for the coefficients alone."""
    from dpci.lowlevel import gaussian_mu  # noqa: PLC0415

    return 1.0 / gaussian_mu(epsilon - math.log1p(0.25 / ridge), left_of(1e-6))


@pytest.mark.parametrize("mechanism", utility_measure.MECHANISMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_first_order_is_the_tangent_of_real_losses(mechanism: utility_measure.Mechanism, loss: str) -> None:
    h = 1e-3
    near = Span("near", (1.0 - h, 1.0, 1.0 + h), (1.0,))
    found = measure(case(loss, mechanism, near), (1.0,), FEW)
    tangent = found.predicted[1.0, "first_order"]
    slope, secant = ((losses[:, 2] - losses[:, 0]) / (2 * h) for losses in (tangent, found.real))
    # The sign of the derivative is what the paper's Eq. 6 has wrong.
    np.testing.assert_allclose(slope, secant, rtol=1e-3)


# Predictions.


def test_two_steps_have_a_twentieth_of_the_first_order_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_utility(monkeypatch, n=2_000)
    run = Repeats(n_repeats=3, n_threads=1)
    found = [
        (wanted.mechanism, measure(wanted, wanted.span.measured, run))
        for wanted in utility_measure.cases(Sources(), run, wide=False)
        if wanted.data.title == "Adult"
    ]
    for mechanism in utility_measure.MECHANISMS:
        ratios = [losses.ratios(at).ravel() for name, losses in found if name == mechanism for at in losses.points]
        assert np.median(np.concatenate(ratios)) <= 1 / 20


# What is shown.


@pytest.mark.usefixtures("small")
def test_curves_hold_what_was_measured() -> None:
    finding = few("curves")
    cells = finding.report.data["cells"]
    assert len(cells) == 3 * 2 * 2 * 2
    assert len(finding.report.rows) == 3 * len(cells)
    wanted = next(one for one in utility_measure.cases(Sources(), FEW, wide=True) if one.data.title == "Wide")
    losses = measure(wanted, wanted.span.measured, FEW)
    cell = next(one for one in cells if one["rows"] == "Wide")
    assert cell["real"] == losses.real.mean(axis=0).tolist()
    at = wanted.span.measured[0]
    assert cell["predicted"][0]["mean_error"] == float(losses.errors(at, "first_order").mean())
    # Lambda + 2t/epsilon at the least epsilon under the tight mechanism, Lambda alone under the paper's.
    strengths = {(one["loss"], one["mechanism"], one["range"][0]): one["l2_strength"] * one["n"] for one in cells}
    assert strengths["LR", "paper", "0"] == pytest.approx(0.01)
    assert strengths["LR", "tight", "0"] == pytest.approx(0.01 + 0.5 / left_of(0.05))
    assert strengths["SVM", "tight", "1"] == pytest.approx(0.01 + 1.0 / left_of(0.1))
    figure = finding.draw()
    assert len(figure.axes) == 6 * 2
    # In each range real losses, and two lines and a dot for each measuring point; a line between the ranges.
    assert {len(ax.lines) for ax in figure.axes} == {2 * (1 + 3 * 3) + 1}
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), cells[0]["real"])


@pytest.mark.usefixtures("small")
def test_measuring_points_and_sizes_are_laid_out_by_line() -> None:
    finding = few("measuring_points")
    n_epsilons = sum(len(span.epsilons) for span in utility_measure.SPANS.values())
    assert len(finding.report.rows) == 2 * n_epsilons
    assert finding.report.header[3::2] == ["Adult-LR", "Adult-SVM", "KDD-LR", "KDD-SVM"]
    cell = finding.report.data["cells"][0]
    assert finding.report.rows[0][3] == f"{cell['predicted'][0]['mean_error']:.1e}"
    finding_sizes = few("sizes")
    assert [row[2] for row in finding_sizes.report.rows] == ["150", "300"] * 4
    for found in (finding, finding_sizes):
        assert len(found.draw().axes) == 4
        assert {len(ax.lines) for ax in found.draw().axes} == {8}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", EXPERIMENTS["li"])
def test_reports_repeat_and_say_what_they_are(name: str) -> None:
    first = few(name).report
    again, other = (
        EXPERIMENTS["li"][name](Sources(), dataclasses.replace(FEW, **change)).report
        for change in ({"n_threads": 2}, {"seed": 1})
    )
    assert first.data["cells"] == again.data["cells"]
    assert first.data["cells"] != other.data["cells"]
    text = render(first, "text")
    for part in (
        "NOT PRIVATE",
        "Li et al.",
        "seed",
        "run time",
        "repeats",
        "Differs from the paper",
        "two steps, paper",
    ):
        assert part in text
    assert not re.search(r"\bnan\b|\binf\b", text)


# The command line.


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("smith",), "argument PAPER: invalid choice: 'smith'"),
        (("wu", "sizes", "--table", "3"), "unrecognized arguments: --table 3"),
        (("wu", "curves"), "argument experiment: invalid choice: 'curves'"),
        (("li", "sizes", "--replicates", "9"), "unrecognized arguments: --replicates 9"),
        (("wang", "--table", "3", "bounds"), "unrecognized arguments: bounds"),
        (("wang", "--table", "3", "--repeats", "3"), "unrecognized arguments: --repeats 3"),
        (("li", "bounds"), "argument experiment: invalid choice: 'bounds'"),
        (("redberg", "--output", "all.png"), "a drawing requires one experiment of rotation, regularisation, bounds"),
        (("redberg", "--repeats", "0"), "argument --repeats: must be at least 1, got 0"),
        (("redberg", "--seed", "-1"), "argument --seed: must be an integer in [0, 2**64), got -1"),
        (("redberg", "--threads", "0"), "argument --threads: must be at least 1, got 0"),
        (("redberg", "--format", "html"), "argument --format: invalid choice: 'html'"),
        (("redberg", "--output", "no/such/folder.txt"), "--output must name a file that can be written"),
    ],
)
def test_wrong_usage(
    argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    never = {name: lambda *_: pytest.fail("an experiment was run") for name in ("rotation", "regularisation", "bounds")}
    monkeypatch.setattr(
        catalogue,
        "EXPERIMENTS",
        {"redberg": never, **{paper: dict.fromkeys(EXPERIMENTS[paper], never["bounds"]) for paper in ("wu", "li")}},
    )
    assert message in refused(capsys, *argv)


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_an_experiment_is_drawn(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"rotation{suffix}"
    argv = ["redberg", "rotation", "--repeats", "2", "--format", "json"]
    assert main([*argv, "--output", str(path)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rotation"]["paper"] == "redberg"
    assert captured.err == f"wrote {path}\n"
    assert path.read_bytes().startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix])


@pytest.mark.usefixtures("small")
def test_all_experiments_of_a_paper_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "li.md"
    argv = ["li", "--repeats", "1", "--threads", "1", "--format", "markdown", "--progress"]
    assert main([*argv, "--output", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    for line in ("li curves", "1/24 Adult, n=300", "li measuring_points", "li sizes"):
        assert line in captured.err
    text = path.read_text("utf-8")
    assert text.count("\n## ") + text.startswith("## ") == 3
    assert text.count("NOT PRIVATE") == 3


def test_the_help_names_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    text = re.sub(r"[^\w.&,()-]+", " ", capsys.readouterr().out)
    for part in (
        "Wu et al.",
        "scalings",
        "Redberg & Wang (2021)",
        "Wang, Kifer & Lee (2019)",
        "Li et al.",
        "rotation",
        "measuring_points",
    ):
        assert part in text


needs_credit = pytest.mark.skipif(
    _files.find(CATALOGUE["credit_default"].files["train"]) is None,
    reason="credit_default is neither in DPCI_DATA nor in the cache",
)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_per_instance(monkeypatch)


# Rows.


def test_separable_points_fill_the_disc_outside_the_strip() -> None:
    X, y = separable_classes(np.random.default_rng(1), 2_000, 0.4)
    assert X.shape == (2_000, 2)
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert (y * X[:, 0]).min() >= 0.2
    assert np.linalg.norm(X, axis=1).max() > 0.99
    assert (y * X[:, 0]).min() < 0.21
    # A fair coin: 2,000 tosses are further than 5 deviations from a half with probability 6e-7.
    assert abs(np.mean(y > 0) - 0.5) < 5 * 0.5 / math.sqrt(2_000)


def test_soft_labels_lie_in_their_bounds() -> None:
    X, y = soft_labels(np.random.default_rng(1), 500, 7)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-12)
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert (y.min(), y.max()) == (0.0, 1.0)
    # A linear function of the rows.
    design = np.column_stack([X, np.ones(500)])
    np.testing.assert_allclose(design @ np.linalg.lstsq(design, y)[0], y, atol=1e-10)


@needs_credit
def test_credit_rows_have_the_columns_of_the_paper() -> None:
    X, y = credit_default(Sources())
    assert X.shape == (30_000, 21)
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() <= 1.0
    np.testing.assert_allclose(norms, 1.0, atol=1e-12)
    assert np.sum(y == 1.0) == 6_636


# Rotation.


def log_density(X, y, params, sigma, ridge):
    """Log density of Gaussian objective perturbation, its Jacobian by central differences of the noise."""

    def noise(theta):
        return (X * (y / (1.0 + np.exp(y * (X @ theta))))[:, None]).sum(axis=0) - ridge * theta

    step = 1e-5
    steps = step * np.eye(len(params))
    jacobian = np.array([(noise(params + h) - noise(params - h)) / (2.0 * step) for h in steps])
    return -np.sum(noise(params) ** 2) / (2.0 * sigma**2) + np.linalg.slogdet(jacobian)[1]


@pytest.mark.parametrize("angle", per_instance.ROTATIONS.values())
def test_rotated_losses_are_ratios_of_densities(angle: float) -> None:
    X, y = separable_classes(np.random.default_rng(5), 60, 0.4)
    fitted = minimize(lambda w: np.sum(np.logaddexp(0.0, -y * (X @ w))) + w @ w / 2.0, np.zeros(2)).x
    c, s = math.cos(angle), math.sin(angle)
    params = np.array([[c, -s], [s, c]]) @ fitted
    found = per_instance.rotated_losses(X, y, params, 5.0)
    kept = np.arange(60)
    whole = log_density(X, y, params, 5.0, 1.0)
    exact = [abs(whole - log_density(X[kept != i], y[kept != i], params, 5.0, 1.0)) for i in range(60)]
    # Differences of the noise over 1e-5 leave an error of about 1e-9.
    np.testing.assert_allclose(found, exact, atol=2e-8)


def test_rotation_shows_the_losses_of_the_turned_minimiser() -> None:
    finding = per_instance.rotation(Sources(), FEW)
    points = {(one["omega"], one["points"]): one for one in finding.report.data["points"]}
    assert points["0", "correct"]["n_points"] == points["pi", "misclassified"]["n_points"] == 200
    assert points["pi/4", "correct"]["n_points"] + points["pi/4", "misclassified"]["n_points"] == 200
    assert ("0", "misclassified") not in points
    # Under the paper's sigma the median loss is greater where the points are misclassified.
    assert points["pi/4", "misclassified"]["losses"]["paper"][1] > points["pi/4", "correct"]["losses"]["paper"][1]
    assert points["pi", "all"]["losses"]["paper"][1] > 10 * points["0", "all"]["losses"]["paper"][1]
    # sigma of Kifer, Smith & Thakurta, from their formula.
    epsilon, delta = left_of(1.0), left_of(1e-6)
    sigma = math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    X, y = separable_classes(FEW.generator("rotation"), 200, 0.4)
    plain = dpci.lowlevel.minimize_erm(X, y, l2_strength=1 / 200).params
    expected = np.quantile(per_instance.rotated_losses(X, y, plain, sigma), (0.0, 0.5, 1.0))
    np.testing.assert_allclose(points["0", "all"]["losses"]["paper"], expected, rtol=1e-9)
    figure = finding.draw()
    assert len(figure.axes) == 4
    assert sum(len(part.get_offsets()) for part in figure.axes[0].collections) == 200


# Regularisation.


@pytest.mark.usefixtures("small_bounds")
def test_regularisation_goes_from_theorem_5_to_algorithm_2() -> None:
    finding = per_instance.regularisation(Sources(), FEW)
    cells = finding.report.data["cells"]
    assert len(cells) == 2 * 2 * 3
    ridges = [cell["Lambda"] for cell in cells if cell["rows"] == "soft labels" and cell["epsilon_1"] == 0.2]
    # 2t/epsilon with t=1/4; twice sigma_3 (2 sqrt d + 2 sqrt(log 2/phi)), sigma_3 of the analytic Gaussian mechanism.
    sigma = 0.25 / math.sqrt(2.0) / dpci.lowlevel.gaussian_mu(left_of(0.1), left_of(1e-6))
    # A thousandth more, for the noise of the seals.
    radius = 1.001 * sigma * (2.0 * math.sqrt(4.0) + 2.0 * math.sqrt(math.log(2e6)))
    assert (ridges[0], ridges[-1]) == pytest.approx((0.5 / left_of(0.2), 2.0 * radius), rel=1e-6)
    # Losses from the rows.
    X, y = sample_rows()
    cell = next(one for one in cells if one["rows"] == "credit default" and one["epsilon_1"] == 1.0)

    def mean_loss(params):
        return np.mean(np.logaddexp(0.0, -y * (X @ params)))

    ridge = cell["Lambda"] / 4_000

    def gradient(w):
        return ridge * w - X.T @ (y / (1.0 + np.exp(y * (X @ w)))) / len(y)

    plain = minimize(lambda w: mean_loss(w) + ridge * (w @ w) / 2.0, np.zeros(5), jac=gradient, tol=1e-10).x
    assert cell["losses"]["no noise"] == [pytest.approx(mean_loss(plain), abs=1e-8)]
    assert cell["accuracies"]["no noise"] == [pytest.approx(np.mean((X @ plain > 0) == (y > 0)), abs=1e-3)]
    released = dpci.fit(
        X, y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=cell["Lambda"] / 4_000,
        mechanism=dpci.ObjectivePerturbation(calibration="paper", moments="none"), neighbors=dpci.AddRemove(4_000),
        rows=dpci.rows.Within(intercept=False), seed=FEW.seeds()[1],
    )  # fmt: skip
    assert cell["losses"]["paper"][1] == pytest.approx(mean_loss(released.params), abs=1e-12)
    # Soft labels have no accuracy.
    assert cells[0]["accuracies"] is None
    assert {row[-1] for row in finding.report.rows if row[0] == "soft labels"} == {"-"}
    figure = finding.draw()
    assert len(figure.axes) == 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["no noise", "paper", "tight"]


# Bounds.


@pytest.mark.parametrize("soft", [False, True])
def test_what_the_papers_releases_cost_together(soft: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    shrink_per_instance(monkeypatch)
    data = per_instance_setup.data_sets(Sources(), FEW)[0 if soft else 1]
    ridge = 250.0
    epsilon = tight_cost(data, ridge, FEW, 1e-6)
    # sigma_1 of Kifer et al., the others by the analytic Gaussian mechanism; the sum over corners for add/remove.
    part, delta_part = left_of(0.2), left_of(1e-6)
    A = part / math.sqrt(8 * math.log(2 / delta_part) + 4 * part)
    mu = math.hypot(*(dpci.lowlevel.gaussian_mu(left_of(share), delta_part) for share in (0.7, 0.1)))
    # The seals of the three releases, at (1, 3e-6) together, add what they spend.
    left = epsilon - math.log1p(0.25 / ridge) - 1e-3

    def delta(ratio):
        return dpci.lowlevel.gaussian_delta(left, ratio)

    total = 2.0 * delta(math.hypot(A, mu)) if soft else delta(math.hypot(A, mu)) + delta(mu)
    assert total + 3e-9 == pytest.approx(1e-6, rel=1e-3)
    assert 0.65 < epsilon < 0.8


@pytest.mark.usefixtures("small_bounds")
def test_bounds_are_compared_record_by_record() -> None:
    finding = per_instance_bounds.bounds(Sources(), FEW)
    cells = finding.report.data["cells"]
    assert len(cells) == 2 * 8
    assert all(cell["broken"] == 0 for cell in cells)
    for cell in cells:
        assert cell["true_quartiles"] == sorted(cell["true_quartiles"])
        assert cell["ratio_quartiles"][0] >= 1.0
        if cell["method"].startswith("independent"):
            assert cell["total_quartiles"] == cell["bound_quartiles"]
        else:
            assert cell["total_quartiles"][1] > cell["bound_quartiles"][1]
    # The numbers of one report, again.
    X, y = sample_rows()
    cell = next(one for one in cells if (one["rows"], one["method"]) == ("credit default", "independent, tight"))
    found = []
    for seed in FEW.seeds():
        report = dpci.per_instance.report(
            X, y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=cell["Lambda"] / 4_000, n_public=4_000,
            kind="data_independent", rows=dpci.rows.Within(intercept=False), seed=seed,
        )  # fmt: skip
        found.append(np.quantile(report(X, y).eps1, (0.25, 0.5, 0.75)))
    np.testing.assert_allclose(cell["bound_quartiles"], np.mean(found, axis=0), rtol=1e-12)
    figure = finding.draw()
    assert len(figure.axes) == 6
    # Three reports in the last panel: bounds, truths, the total of the dependent one, the worst case.
    assert len(figure.axes[5].lines) == 3 + 3 + 1 + 1
    # One colour for a report in all panels, and a solid, a dashed and a dotted line for what is said of it.
    assert len(figure.legends[0].get_texts()) == 5 + 3


@needs_credit
def test_data_dependent_bounds_are_tighter_on_the_credit_data() -> None:
    cells = [
        cell
        for cell in per_instance_bounds.bounds(Sources(), Repeats(n_repeats=1, n_threads=1)).report.data["cells"]
        if cell["rows"] == "credit default"
    ]
    independent, dependent = cells[:2]
    assert (independent["method"], dependent["method"]) == ("independent, paper", "dependent, paper")
    # Of one draw of the noise: a factor from 2.2 to 6.3 with six seeds.
    assert 2.0 * dependent["ratio_quartiles"][1] < independent["ratio_quartiles"][1]
    assert all(cell["broken"] == 0 for cell in cells)


# What all reports say.


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("name", EXPERIMENTS["redberg"])
def test_reports_of_bounds_repeat_and_say_what_they_are(name: str) -> None:
    experiment = EXPERIMENTS["redberg"][name]
    first = experiment(Sources(), FEW)
    again = experiment(Sources(), Repeats(n_repeats=2, n_threads=2))
    other = experiment(Sources(), Repeats(n_repeats=2, n_threads=1, seed=1))

    def found(finding):
        return {k: v for k, v in finding.report.data.items() if k not in {"seconds", "seed"}}

    assert found(first) == found(again)
    assert found(first) != found(other)
    text = render(first.report, "text")
    for part in ("NOT PRIVATE", "Redberg & Wang", "seed", "run time", "repeats", "Theorem 5"):
        assert part in text
    assert json.loads(render(first.report, "json"))["private"] is False
    assert len(set(map(len, first.report.rows))) == 1
    assert len(first.report.rows[0]) == len(first.report.header)
    assert not re.search(r"\bnan\b|\binf\b", text)


@pytest.mark.usefixtures("small_bounds")
def test_the_command_gives_no_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(action="error"):
        # What a user would see on stderr.
        assert main(["redberg", "--repeats", "1", "--threads", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("NOT PRIVATE") == 3


def test_more_repeats_begin_with_the_fewer() -> None:
    assert Repeats(n_repeats=5).seeds()[:2] == Repeats(n_repeats=2).seeds()
    assert len(set(Repeats(n_repeats=100).seeds())) == 100
