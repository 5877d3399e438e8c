"""The experiments of Li et al., repeated: real losses against SciPy, predictions against refits, the command line."""

import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from dpci import _core
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from papers import catalogue
from papers.catalogue import EXPERIMENTS
from papers.command import main, render
from papers.finding import Finding, Repeats
from papers.li import measure as utility_measure
from papers.li.measure import LOSSES, Case, Span, measure
from papers.rows import DataSet, wide_classes
from papers.sources import Sources
from support.experiments import FEW, sample_rows, shrink_utility
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
