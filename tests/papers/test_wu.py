"""The experiments of Wu et al., repeated: measures against brute force, the noise of each mechanism, the rules."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpci
from papers.catalogue import EXPERIMENTS
from papers.command import main, render
from papers.finding import Repeats
from papers.sources import Sources
from papers.wu import experiments as regression
from papers.wu import figures as regression_figures
from papers.wu import methods as regression_methods
from papers.wu import setup as regression_setup
from papers.wu.methods import METHODS, diameter, paper_share, public_strength, sensitivity
from papers.wu.setup import PRIOR, RESIDUAL_VARIANCE, Patients, noise_error, patients, score
from support.experiments import made_up_patients, shrink_regression
from support.keywords import assembled
from support.seal import left_of

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_regression(monkeypatch)


@pytest.fixture
def source() -> Patients:
    return patients()


@pytest.fixture
def split(source):
    return source.split(np.random.default_rng(1))


# Rows and measures.


def test_rows(source):
    assert source.X.shape == (1_500, 14)
    assert source.unit == 36.0
    assert sorted(source.names)[-2:] == ["vkorc1=A/G", "weight"]
    wider = patients(324.0, constant=True)
    assert wider.X.shape == (1_500, 15)
    assert wider.unit == 81.0
    assert wider.on == pytest.approx(np.unique(wider.X[:, wider.names.index("vkorc1=A/A")])[1], rel=1e-12)
    assert np.linalg.norm(wider.X, axis=1).max() <= 1.0
    np.testing.assert_allclose(wider.X[:, -1], math.sqrt(0.5), atol=1e-12)
    # A squared error of the target times the unit is one of the square root of mg.
    roots = (made_up_patients(largest_dose=324.0).y + 1.0) * 9.0
    np.testing.assert_allclose((wider.y[0] - wider.y[1]) ** 2 * wider.unit, (roots[0] - roots[1]) ** 2, rtol=1e-9)


def test_splits(source):
    split = source.split(np.random.default_rng(1))
    assert (split.n, len(split.y_test), split.d) == (1_350, 150, 14)
    fewer = source.split(np.random.default_rng(1), held_out=0.1, rate=0.2)
    assert fewer.n == 270
    np.testing.assert_array_equal(fewer.X, split.X[:270])
    np.testing.assert_array_equal(fewer.X_test, split.X_test)
    assert source.on == np.unique(split.X_test[:, source.names.index("vkorc1=A/A")])[1]
    both = np.vstack([split.X, split.X_test])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(source.X, axis=0))


def test_scores_against_brute_force(split):
    params = np.random.default_rng(2).normal(size=14) / 3
    found = score(split, params)
    assert found.mse == pytest.approx(36.0 * np.mean((split.X_test @ params - split.y_test) ** 2))
    heterozygous, homozygous = (split.source.names.index(f"vkorc1={name}") for name in ("A/G", "A/A"))
    on = split.X_test[split.X_test[:, homozygous] > 0, homozygous][0]
    right = 0
    for x, y in zip(split.X_test, split.y_test, strict=True):
        weights = {}
        for level, share in PRIOR.items():
            changed = x.copy()
            changed[heterozygous], changed[homozygous] = on * (level == "A/G"), on * (level == "A/A")
            weights[level] = share * math.exp(-36.0 * (y - changed @ params) ** 2 / (2 * RESIDUAL_VARIANCE))
        truth = "A/A" if x[homozygous] > 0 else ("A/G" if x[heterozygous] > 0 else "G/G")
        right += max(weights, key=weights.get) == truth
    assert found.inversion == right / len(split.y_test)


# Mechanisms.


def test_scale_of_the_noise(split):
    # Two gradients of (u - y)² x on the unit ball: 2 sin 2s + 4 cos s at its greatest, s = 30°; by the slope alone 8.
    strength = public_strength(split, 0.3)
    assert diameter(1.0, strength) == pytest.approx(3.0 * math.sqrt(3.0))
    assert diameter(0.25, strength) < 5.0
    # The regulariser keeps minimisers within the root of 1/(2 lambda).
    assert diameter(1.0, 2.0) == pytest.approx(diameter(0.5, 0.1))
    for share, constant in ((1.0, 3.0 * math.sqrt(3.0)), (paper_share(1.0, strength), 20.0)):
        assert strength == math.sqrt(14 / (split.n * 0.3))
        plan = dpci.plan(
            n_samples=split.n, n_features=14, budget=dpci.PureDP(0.3 * share), l2_strength=strength,
            mechanism=dpci.OutputPerturbation(radius=1.0, moments="none"), rows=dpci.rows.Within(intercept=False),
            loss=regression_setup.LOSS,
        )  # fmt: skip
        # The paper's constant is 12 W + 8.
        expected = constant / (split.n * strength * 0.3)
        assert plan.steps[0].scale == pytest.approx(expected * 0.3 * share / left_of(0.3 * share), rel=1e-9)
        assert sensitivity(split, strength, 1.0) / (0.3 * share) == pytest.approx(expected, rel=1e-12)


def test_error_of_the_noise_alone(split):
    draws = dpci.lowlevel.spherical_laplace(20_000, 14, 0.1, seed=3)
    simulated = 36.0 * np.mean((split.X_test @ draws.T) ** 2)
    assert noise_error(split, 0.1) == pytest.approx(simulated, rel=0.05)


def test_data_independent_is_the_minimiser_and_noise(split):
    exact = regression_methods.without_noise(split, 0.5, 0)
    ours, paper = (
        regression_methods.data_independent(split, 0.5, 7, paper_noise=paper) - exact for paper in (False, True)
    )
    # One draw of the noise, two scales.
    ratio = 20.0 / math.sqrt(27.0)
    assert paper @ ours / (ours @ ours) == pytest.approx(ratio, rel=0.02)
    # The seals differ, each by 1% of the noise: beyond 20 of its standard deviations with probability 1e-11.
    assert np.abs(paper - ratio * ours).max() < 20.0 * 0.01 * 2.0 * np.linalg.norm(paper) / math.sqrt(14.0)
    projected = regression_methods.data_independent(split, 0.5, 7, project=True)
    inside = (exact + ours) / max(1.0, np.linalg.norm(exact + ours))
    np.testing.assert_allclose(projected, inside, atol=1e-6)


def test_least_squares(split):
    expected, *_ = np.linalg.lstsq(split.X, split.y, rcond=None)
    found = regression_methods.non_private(split, math.inf, 0)
    present = np.abs(split.X).max(axis=0) > 0
    np.testing.assert_allclose(found[present], expected[present], atol=2e-3)


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_the_oracle_knows_the_best_candidate(split, epsilon, monkeypatch):
    chosen = {}
    monkeypatch.setattr(
        regression_methods, "_perturbed", lambda *args, **_: chosen.update(args[3]) or np.zeros(split.d)
    )
    regression_methods.oracle(split, epsilon, 3)
    squares = np.mean(np.sum(split.X**2, axis=1))

    def expected_loss(radius, l2_strength):
        params = regression_methods._minimiser(split, l2_strength, radius)
        scale = sensitivity(split, l2_strength, radius) / epsilon
        return np.mean((split.X @ params - split.y) ** 2) + 15 * scale**2 * squares

    # The parameters that no data enter are among the candidates.
    strengths = (*regression_methods.ORACLE_STRENGTHS, public_strength(split, epsilon))
    losses = {(w, s): expected_loss(w, s) for w in regression_methods.ORACLE_RADII for s in strengths}
    # A hundred draws tell the expectation to a few percent.
    assert expected_loss(chosen["radius"], chosen["l2_strength"]) <= 1.1 * min(losses.values())


def test_the_oracle_may_take_the_strength_that_no_data_enter(split, monkeypatch):
    monkeypatch.setattr(regression_methods, "ORACLE_STRENGTHS", (1e-4, 1e4))
    chosen = []
    monkeypatch.setattr(
        regression_methods, "_perturbed", lambda *args, **_: chosen.append(args[3]) or np.zeros(split.d)
    )
    regression_methods.oracle(split, 1.0, 3)
    regression_methods.oracle(split, 1.0, 3, arithmetic=True)
    assert chosen[0]["l2_strength"] == public_strength(split, 1.0)
    assert chosen[1]["l2_strength"] in regression_methods.ARITHMETIC_STRENGTHS


def test_candidates(split):
    whole = regression_methods.candidates(split, 0.1, "R1", dpci.ObjectivePerturbation(variant="cms11"))
    assert len(whole) == 24
    assert {each["radius"] for each in whole} == {0.25, 0.5, 1.0}
    assert max(each["l2_strength"] for each in whole) == pytest.approx(0.256)
    standard = regression_methods.candidates(split, 1.0, "R2", dpci.ObjectivePerturbation())
    chunk = split.n // 25
    assert 0 < len(standard) < 24
    assert all(chunk * each["l2_strength"] * math.expm1(1.0) > 2.0 for each in standard)
    # With 5% to spare: those that are left out are too small, or nearly.
    out = [
        each
        for each in regression_methods.candidates(split, 1.0, "R2", dpci.OutputPerturbation())
        if each not in standard
    ]
    assert all(chunk * each["l2_strength"] * math.expm1(1.0) <= 2.1 for each in out)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("name", [name for name in METHODS if name.startswith(("output", "objective"))])
def test_chunks_are_equal_for_all_mechanisms(name, epsilon, split, monkeypatch):
    sizes = []
    tune = dpci.tuning.tune

    def spy(X, y, **keywords):
        spec = dpci._core.TuningSpec
        monkeypatch.setattr(dpci._core, "TuningSpec", lambda *a, **k: sizes.append(spec(*a, **k)) or sizes[-1])
        return tune(X, y, **assembled(**keywords))

    monkeypatch.setattr(dpci.tuning, "tune", spy)
    METHODS[name](split, epsilon, 3)
    [found] = sizes
    assert set(found.facts()["chunk_sizes"]) == {split.n // 25}


# What each mechanism that fits or tunes is given, beside epsilon: the noise of the paper is a share of it.
SPENDERS = {
    (dpci, "fit"): ("oracle", "data-independent"),
    (dpci.tuning, "tune"): ("output", "objective"),
    (dpci.baselines, "functional_mechanism"): ("functional",),
    (dpci.baselines, "projected_histogram"): ("histogram",),
}


@pytest.mark.parametrize("name", [name for name in METHODS if name != "non-private"])
def test_every_mechanism_spends_its_epsilon(name, split, monkeypatch):
    spent = {}

    def watch(module, function):
        inner = getattr(module, function)

        def spy(*args, **keywords):
            spent.setdefault((module, function), []).append(keywords)
            return inner(*args, **keywords)

        monkeypatch.setattr(module, function, spy)

    for module, function in SPENDERS:
        watch(module, function)
    for epsilon in (0.5, 3.0):
        spent.clear()
        METHODS[name](split, epsilon, 5)
        [((module, function), [keywords])] = spent.items()
        assert name.startswith(SPENDERS[module, function])
        share = 1.0
        if "12W+8" in name:
            chosen = {"radius": keywords["mechanism"].radius, "l2_strength": keywords["l2_strength"]}
            ours = (
                dpci.plan(
                    **assembled(
                        n_samples=split.n, n_features=1, budget=dpci.PureDP(1.0), mechanism="output", moments="none",
                        intercept=False, loss=regression_setup.LOSS, **chosen,
                    )
                )
                .steps[0]
                .sensitivity
            )  # fmt: skip
            share = ours * split.n * chosen["l2_strength"] / (12.0 * chosen["radius"] + 8.0)
        assert keywords["budget"].notion == "pure"
        assert keywords["budget"].epsilon == pytest.approx(share * epsilon, rel=1e-12)
        # All of it on the choice by chunks; they are disjoint.
        assert keywords.get("selection_share", 1.0) == 1.0


def test_noise_is_in_proportion_to_one_over_epsilon(split):
    # The noise is a draw of the seed times a scale G / (n lambda epsilon), lambda in proportion to 1 / sqrt(epsilon).
    exact = {epsilon: regression_methods.without_noise(split, epsilon, 0) for epsilon in (0.5, 2.0)}
    noise = {epsilon: regression_methods.data_independent(split, epsilon, 7) - exact[epsilon] for epsilon in exact}
    np.testing.assert_allclose(noise[0.5], 2.0 * noise[2.0], atol=1e-5)
    norms = [np.linalg.norm(regression_methods.data_independent(split, 0.5, seed) - exact[0.5]) for seed in range(200)]
    scale = sensitivity(split, public_strength(split, 0.5), 1.0) / 0.5
    # Mean and variance of a norm are d and d in units of the scale: two-sided, one false alarm in a million.
    assert abs(np.mean(norms) / scale - 14.0) < 4.9 * math.sqrt(14.0 / 200)


@pytest.mark.parametrize("name", METHODS)
def test_every_mechanism_gives_a_model(name, split):
    first, again = (METHODS[name](split, 2.0, 5) for _ in range(2))
    assert first.shape == (14,)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    if name != "non-private":
        assert np.abs(METHODS[name](split, 2.0, 6) - first).max() > 0


def test_a_histogram_needs_a_schema(source):
    bare = source._replace(schema=None).split(np.random.default_rng(1))
    with pytest.raises(dpci.InvalidInput, match="schema"):
        METHODS["histogram"](bare, 1.0, 1)


# Findings.


@pytest.mark.parametrize("name", EXPERIMENTS["wu"])
def test_findings(name, tmp_path):
    run = Repeats(n_repeats=2, n_threads=1)
    finding = EXPERIMENTS["wu"][name](Sources(), run)
    text = render(finding.report, "text")
    assert "NOT PRIVATE" in text
    assert not re.search(r"\bnan\b|\binf\b", text)
    data = json.loads(render(finding.report, "json"))
    assert (data["paper"], data["private"], data["n_repeats"]) == ("wu", False, 2)
    assert all(len(cell["error"]) == len(cell["inversion"]) == 2 for cell in data["cells"])
    if name == "sizes":
        again = json.loads(render(EXPERIMENTS["wu"][name](Sources(), run).report, "json"))
        assert again["cells"] == data["cells"]
    finding.save(tmp_path / "drawn.svg")
    drawn = (tmp_path / "drawn.svg").read_text("utf-8")
    for part in ("NOT PRIVATE", "data-independent", "error"):
        assert part in drawn


def test_the_report_says_what_is_left_out():
    report = render(regression.mechanisms(Sources(), Repeats(n_repeats=1)).report, "text")
    text = " ".join(report.split())
    for part in (
        "rows a chunk for all",
        "measured on the same 3,450 patients",
        "Figure 3",
        "physiological simulator",
        "less at",
        "rank correlation",
        "by noise alone",
        "12W+8",
    ):
        assert part in text


def test_figures_show_medians_and_the_numbers_of_the_paper():
    epsilons = (0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0)
    # One huge error among five, as the functional mechanism has.
    scores = np.array([[1.0, 0.1], [2.0, 0.2], [3.0, 0.3], [4.0, 0.4], [1e6, 0.5]])
    found = {(name, math.inf if name == "non-private" else e): scores for name in METHODS for e in epsilons}
    figure = regression_figures.draw_mechanisms(found, regression.PUBLISHED)
    errors, inversions = figure.axes[:2]
    data, _, [lines] = next(bars for bars in errors.containers if bars.get_label() == "functional, tight")
    np.testing.assert_array_equal(data.get_ydata(orig=False), 3.0)
    # Quartiles 2 and 4: a normal law with these has the standard deviation 2 / 1.349.
    expected = math.sqrt(math.pi / 2) * 2 / 1.3489795 / math.sqrt(5)
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], [3 - expected, 3 + expected], rtol=1e-6)
    data, _, [lines] = next(bars for bars in inversions.containers if bars.get_label() == "functional, tight")
    np.testing.assert_allclose(data.get_ydata(orig=False), 0.3)
    half = np.std(scores[:, 1], ddof=1) / math.sqrt(5)
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], [0.3 - half, 0.3 + half])
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_xticklabels()] == [".1", ".2", ".3", ".5", "1", "3", "10"]
    stars = [line for line in errors.lines if str(line.get_label()).startswith("number in the paper")]
    assert {(str(star.get_label()).split(": ")[1], star.get_ydata()[0]) for star in stars} == {
        ("oracle", 1.82),
        ("functional", 22.57),
    }
    assert len({star.get_marker() for star in stars}) == 2


def test_rules_of_known_numbers(monkeypatch):
    monkeypatch.setattr(regression, "EPSILONS", (0.5, 1.0, 3.0))
    cells = {(name, e): np.array([[10.0 / e, 0.3 + e / 10]] * 4) for name in METHODS for e in (0.5, 1.0, 3.0)}
    for epsilon in (0.5, 1.0):
        cells["functional, printed", epsilon] = np.array([[30.0, 0.3]] * 4)
    cells["functional, tight", 1.0] = np.array([[8.0, 0.5], [9.0, 0.5], [8.0, 0.5], [9.0, 0.5]])
    cells["functional, tight", 0.5] = np.array([[21.0, 0.5], [21.0, 0.5], [21.0, 0.5], [25.0, 0.5]])
    for epsilon in (0.5, 1.0, 3.0):
        cells["histogram", epsilon] = np.array([[10.0 / epsilon, 0.5 - epsilon / 10]] * 4)
    facts = dict(regression._rules(cells))
    printed, tight = (facts[f"data-independent minus functional, {name}"] for name in ("printed", "tight"))
    assert printed == (
        "0.5: -10.00 (0.00), 1: -20.00 (0.00); less at 2 of 2, 2 by more than 2 s.e.; lesser median at 2"
    )
    assert tight == "0.5: -2.00 (1.00), 1: +1.50 (0.29); less at 1 of 2, 0 by more than 2 s.e.; lesser median at 1"
    assert facts["data-independent minus oracle"] == "at most 0.00 (paper: .1)"
    assert "at the greatest for 16 of 17 mechanisms" in facts["inversion with utility"]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "wu.md"
    argv = ["wu", "--repeats", "1", "--format", "markdown", "--progress", "--output", str(path)]
    assert main(argv) == 0
    captured = capsys.readouterr()
    for line in ("wu mechanisms", "oracle, epsilon=1", "wu sizes", "rate 0.9", "wu scalings"):
        assert line in captured.err
    assert path.read_text("utf-8").count("NOT PRIVATE") == 3


def test_without_the_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.undo()
    monkeypatch.delenv("DPCI_DATA", raising=False)
    assert main(["wu", "sizes", "--repeats", "1"]) == 2
    assert "iwpc_warfarin/warfarin.csv is not available: set DPCI_DATA" in capsys.readouterr().err
