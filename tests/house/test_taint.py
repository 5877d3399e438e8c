"""Released and kept values differ between data sets in sealed numbers, in what follows from them, and in nothing else.

Very different data with equal public inputs are behind each object here, which is taken apart value by value. What may
differ is listed by its path; all else must be the same to the bit.
"""

import contextlib
import copy
import dataclasses
import json
import re
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.baselines import Bins, functional_mechanism, non_private, projected_histogram
from dpci.cli.main import main
from dpci.model.settings import Settings
from support import people, taint
from support.commands import ran
from support.keywords import assembled
from support.taint import NAMES, STORED, D, N, drawn, leaves, quietly, record_of, state, tables, tainted

PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, 1e-6)
COMMON = {"l2_strength": 0.5, "rows": "clip"}
CMS11 = dpci.ObjectivePerturbation(variant="cms11")
NO_MOMENTS = {"mechanism": "output", "moments": "none"}

FITS = {
    "pure": {"budget": PURE},
    "zcdp, separate": {"budget": dpci.ZCDP(0.5), "moments": "separate"},
    "approx": {"budget": APPROX},
    "paper": {"budget": PURE, "calibration": "paper", "moments": "separate"},
    "huber": {"budget": dpci.ZCDP(5.0), "loss": "huber_hinge"},
    "smooth hinge": {"budget": dpci.ZCDP(5.0), "loss": "smooth_hinge"},
    "ball, cms11": {"budget": PURE, "radius": 1.0, "mechanism": CMS11},
    "squared": {"budget": PURE, "loss": "squared", "radius": 1.0},
    "hinge": {"budget": PURE, "loss": "hinge", **NO_MOMENTS},
}
AXES = [Bins(column, 2, -0.5, 0.5) for column in range(D)]
GRID = [{"l2_strength": 0.5}, {"l2_strength": 1.0}]
TUNED = {"budget": dpci.PureDP(4.0), "candidates": GRID, "validation_radius": 1.0, "rows": "clip"}
ADD_REMOVE = {"neighbors": dpci.AddRemove(N)}

# Released with noise, and sealed; the others are functions of the norm of the released parameters.
SEALED = r"\.(params|hessian|gradient_cov|gradient|coefficients)\[\d+\](\[\d+\])?"
OF_THE_NORM = (
    r"\.(noise_spectral_radius|projection|seals)",
    r"\.steps\.(moments|hessian|gradient_cov)\.(scale|hessian_scale|levels_scale|sensitivity)",
    r"\.seals\.(hessian|gradient_cov|gradient)(\.\w+)*",
)
FIT = (SEALED, *OF_THE_NORM)
REPORT = (SEALED, *(rf"\.fit{pattern}" for pattern in FIT))
# Of one candidate chosen; the choice itself is private as well.
TUNING = (
    SEALED,
    *(rf"\.(fit|model|privacy\.fit|privacy\.model){pattern}" for pattern in FIT),
    r".*\.seal\.releases\..*",
    # Sentences with numbers that follow from the released ones.
    r"\.privacy\.fit\.interval_notes(\[\d+\])?",
)


def report(X, y, **keywords):
    keywords = {"budget": APPROX, "n_public": N, **COMMON, **keywords}
    keywords.pop("neighbors", None)
    return dpci.per_instance.report(X, y, **keywords)


OTHERS = {
    "moment matrix": (taint.moment_matrix, taint.OF_THE_MATRIX),
    "report": (report, REPORT),
    "plain report": (lambda X, y, **given: report(X, y, kind="data_independent", **given), REPORT),
    "functional": (
        lambda X, y, **given: functional_mechanism(X, y, budget=APPROX, loss="logistic", rows="clip", **given),
        (SEALED,),
    ),
    "histogram": (
        lambda X, y, **given: projected_histogram(
            X, y, budget=PURE, loss="logistic", l2_strength=0.1, axes=AXES, **given
        ),
        (SEALED,),
    ),
}


def fit(X, y, **keywords):
    """A fit to two classes, or to the same as numbers."""
    if keywords.get("loss") == "squared" and y is not None:
        y = np.where(y, 0.5, -0.5)
    return dpci.fit(X, y, **assembled(**{**COMMON, **keywords}))


def released(release, **sizes):
    """Releases of each table, and the check that it says the same of all."""
    found = [quietly(lambda rows=rows: release(*rows)) for rows in tables(**sizes).values()]
    assert {tuple(told) for _, told in found} == {tuple(found[0][1])}
    return [value for value, _ in found]


def of_each_size(release):
    """Releases of the tables in several sizes, of which only the public one may be told."""
    return [value for n in (N, N - 1, N // 2) for value in released(release, n=n)]


# The records.


@pytest.mark.parametrize("name", FITS)
def test_a_fit_tells_released_numbers_only(name):
    in_parts = name not in {"hinge", "squared"}  # parts hold their targets
    forms = iter(STORED * 2 if in_parts else STORED[:4] * 3)
    results = released(lambda rows, y: fit(*next(forms)(rows, y), **FITS[name]))
    assert tainted(map(record_of, results), FIT) == {}
    for result in results:
        lattice = result.privacy["seal"]["releases"][0]["lattice"]
        assert (result.params / lattice % 1.0 == 0.0).all()


def test_frames_and_dask_tell_the_names_of_columns_only():
    pd, array = pytest.importorskip("pandas"), pytest.importorskip("dask.array")
    for release in (
        lambda X, y: fit(pd.DataFrame(X, columns=NAMES), pd.Series(y), budget=PURE),
        lambda X, y: fit(*(array.from_array(each).rechunk({0: 70}) for each in (X, y)), budget=PURE),
    ):
        assert tainted(map(record_of, released(release)), FIT) == {}


@pytest.mark.parametrize("name", ["pure", "zcdp, separate", "approx", "paper", "huber", "smooth hinge"])
def test_the_noise_of_matrices_is_a_function_of_the_released_norm(name):
    """So much noise moves all models to the surface of a ball: of one norm, they must have the same noise.

    One of 54 models stays within the ball with a probability of about 1e-6.
    """
    budget = {"pure": dpci.PureDP(3e-4), "zcdp": dpci.ZCDP(2e-7), "approx": dpci.ApproxDP(3e-4, 1e-7)}
    keywords = {**FITS[name], "budget": budget[FITS[name]["budget"].notion], "radius": 0.5}
    mechanism = dpci.OutputPerturbation(project=True)
    results = released(lambda rows, y: fit(rows, y, mechanism=mechanism, **keywords))
    np.testing.assert_allclose([np.linalg.norm(result.params) for result in results], 0.5, rtol=1e-12)
    for path, values in tainted(map(record_of, results), (SEALED,)).items():
        numbers = [float(text) for _, text in values]
        np.testing.assert_allclose(numbers, numbers[0], rtol=1e-6, err_msg=path)


@pytest.mark.parametrize("name", OTHERS)
def test_reports_and_baselines_tell_released_numbers_only(name):
    release, allowed = OTHERS[name]
    assert tainted(map(record_of, released(release)), allowed) == {}


@pytest.mark.parametrize("name", ["pure", "huber", *OTHERS])
def test_the_number_of_records_is_told_by_nothing_where_it_is_private(name):
    release, allowed = OTHERS.get(name, (lambda X, y, **given: fit(X, y, **FITS[name], **given), FIT))
    results = of_each_size(lambda X, y: release(X, y, **ADD_REMOVE))
    assert tainted(map(record_of, results), allowed) == {}
    assert {(result.result if name.endswith("report") else result).n_samples for result in results} == {N}
    texts = {re.sub(r"\d+(,\d+)*", "", repr(result)) for result in results}
    assert len(texts) == 1


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("method", ["repeat", "chunks"])
def test_a_tuning_tells_its_choice_and_released_numbers_only(method, share):
    results = released(lambda X, y: dpci.tuning.tune(X, y, method=method, selection_share=share, **TUNED))
    for index in range(len(GRID)):
        chosen = [record_of(result) for result in results if result.index == index]
        assert not chosen or tainted(chosen, TUNING) == {}
    choice = (r".*\.(index|l2_strength|noise_scale)", r".*\.(steps|seals|releases)\..*")
    assert tainted(map(record_of, results), (*TUNING, *choice)) == {}


def test_codings_of_the_same_public_classes_are_not_told():
    rows, y = tables()["ordinary"]
    codings = [y.astype(int), y.astype(float), y, y.astype(object), y.tolist(), np.ones(N), np.zeros(N, dtype=np.int8)]
    for release in (fit, report, *(OTHERS[name][0] for name in ("functional", "histogram"))):
        given = {"budget": APPROX} if release in (fit, report) else {}
        results = [release(rows, labels, classes=(0, 1), **given) for labels in codings]
        assert tainted(map(record_of, results), (*FIT, *REPORT)) == {}
    booleans = [np.ones(N, dtype=bool), np.zeros(N, dtype=bool), y]
    assert tainted([record_of(fit(rows, labels, budget=PURE)) for labels in booleans], FIT) == {}


# What follows from the records: an object that is made of the record alone says, shows and keeps the same.

PROBE = np.linspace(-0.4, 0.4, 5 * D).reshape(5, D)
LABELS = np.arange(5) % 2 == 0
AT = {"age": 40, "sex": "F", "dose": 1.0}
PLAIN = ["correlations", "means", "odds_ratios", "officer_report", "public_facts", "rate_ratios", "shrinkage"]
PLAIN += ["summary", "to_html", "to_json", "to_latex", "to_markdown", "variances"]
CALLS = {
    "__call__": lambda made: made(PROBE, LABELS),
    "__repr__": repr,
    "_repr_html_": lambda made: made._repr_html_(),
    "__reduce__": lambda made: made.__reduce__()[1],  # what a pickle holds
    "conf_int": lambda made: made.conf_int(level=0.9),
    "decision_function": lambda made: made.decision_function(PROBE),
    "encoded": lambda made: made.encoded(PROBE, LABELS)[1],
    "fit": lambda made: made.fit(l2_strength=1.0),
    "histogram": lambda made: drawn(made.histogram(PROBE, LABELS)),
    "plot": lambda made: drawn(made.plot()),
    "predict": lambda made: made.predict(PROBE),
    "predict_conf_int": lambda made: made.predict_conf_int(PROBE),
    "predict_proba": lambda made: made.predict_proba(PROBE),
    "submodels": lambda made: made.submodels([["x0"], []], l2_strength=9.0),
    "summary_frame": lambda made: made.summary_frame().to_dict(),
    "tidy": lambda made: made.tidy().to_dict(),
    "to_great_tables": lambda made: made.to_great_tables().as_latex(),
    **{name: lambda made, name=name: getattr(made, name)() for name in PLAIN},
    "wald_test": lambda made: made.wald_test({"x0": 1}),
    "scaled": lambda made: made.scaled.conf_int(),
    "marginal_effects": lambda made: made.marginal_effects(AT),
}
CURVES = {"guarantee": lambda found: [str(found.budget), found.delta([0.1, 1.0]), found.rdp([2.0, 9.0])]}
NO_CALLS = {"from_json", "of", "plot_bound_against_truth_not_private"}


def said(made):
    """Everything that an object says by its public names; those that are not known here are an error."""
    kind, found = type(made), {}
    names = [name for name in dir(kind) if name[0] != "_" and name not in NO_CALLS]
    names += [
        name
        for name in ("__call__", "__repr__", "__reduce__", "_repr_html_")
        if any(name in each.__dict__ for each in kind.__mro__)
    ]
    names += [each.name for each in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for name in names:
        is_method = callable(getattr(kind, name, None))
        try:
            value = CALLS[name](made) if is_method else CURVES.get(name, lambda found: found)(getattr(made, name))
        except dpci.DpciError as error:
            value = f"{type(error).__name__}: {error}"
        found[name] = leaves(value)
    return found


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")  # of a histogram of given records
@pytest.mark.parametrize("name", [*FITS, *OTHERS, "repeat", "chosen itself"])
def test_everything_that_is_said_follows_from_the_record(name):
    pytest.importorskip("matplotlib", reason="plots are among what is said")
    pytest.importorskip("pandas", reason="tables are among what is said")
    for each in ("too long", "ordinary"):
        X, y = tables()[each]
        if name in FITS:
            made = quietly(lambda X=X, y=y: fit(X, y, **FITS[name]))[0]
        elif name in OTHERS:
            made = OTHERS[name][0](X, y)
        else:
            share = 0.5 if name == "repeat" else 1.0
            made = quietly(lambda X=X, y=y, share=share: dpci.tuning.tune(X, y, selection_share=share, **TUNED))[0]
        again = type(made).from_json(made.to_json())
        assert said(made) == said(again)
        assert again.to_json() == made.to_json()


def test_a_comparison_follows_from_the_records():
    (X, y), (X_b, y_b) = tables()["ordinary"], tables()["one class"]
    for shared, projection in ((False, "auto"), (True, "floor")):
        a, b = (fit(*rows, budget=PURE, projection=projection) for rows in ((X, y), (X_b, y_b)))
        again = [dpci.PrivateFit.from_json(each.to_json()) for each in (a, b)]
        found, same = dpci.compare(a, b, shared_data=shared), dpci.compare(*again, shared_data=shared)
        assert leaves(found) == leaves(same)
        assert found.summary() == same.summary()


# Estimators, ledgers, files, the command line.


def test_fitted_estimators_keep_released_numbers_only():
    sklearn = pytest.importorskip("dpci.sklearn", exc_type=ImportError)
    fitted = (r"\.(coef_|intercept_)\[\d+\]", r"\.intercept_", *(rf"\.result_{pattern}" for pattern in FIT))
    logistic = sklearn.PrivateLogisticRegression(l2_strength=0.5)
    for estimator in (logistic, sklearn.PrivateLinearSVC(l2_strength=0.5)):
        models = released(lambda X, y, estimator=estimator: copy.deepcopy(estimator).fit(X, y))
        assert tainted(map(state, models), fitted) == {}
        assert all((model.classes_ == [False, True]).all() for model in models)
    ridge = sklearn.PrivateRidge(l2_strength=0.5, mechanism=dpci.ObjectivePerturbation(radius=1.0))
    models = released(lambda X, y: copy.deepcopy(ridge).fit(X, 0.5 * y))
    assert tainted(map(state, models), fitted) == {}
    searched = (
        *(rf"\.result_{pattern}" for pattern in TUNING),
        *(rf"\.best_estimator_{pattern}" for pattern in fitted),
    )
    search = sklearn.PrivateGridSearch(
        sklearn.PrivateLogisticRegression(epsilon=4.0), {"l2_strength": [0.5, 1.0]}, validation_radius=1.0
    )
    models = released(lambda X, y: copy.deepcopy(search).fit(X, y))
    for index in range(len(GRID)):
        chosen = [state(model) for model in models if model.best_index_ == index]
        assert not chosen or tainted(chosen, searched) == {}


def test_a_ledger_keeps_what_was_asked_for(tmp_path):
    dpci.Ledger(dpci.ApproxDP(20.0, 1e-3), path=tmp_path / "empty.ledger")
    sources = {
        "fit": lambda X, y, ledger: fit(X, y, budget=PURE, ledger=ledger),
        "tuning": lambda X, y, ledger: dpci.tuning.tune(X, y, ledger=ledger, **TUNED),
        "histogram": lambda X, y, ledger: OTHERS["histogram"][0](X, y, ledger=ledger),
    }
    kept = []
    for k, (X, y) in enumerate(tables().values()):
        path = shutil.copy(tmp_path / "empty.ledger", tmp_path / f"{k}.ledger")
        ledger = dpci.Ledger.open(path).labelled("ours")
        for release in sources.values():
            quietly(lambda release=release, X=X, y=y, ledger=ledger: release(X, y, ledger))
        with contextlib.closing(sqlite3.connect(path)) as file:
            rows = {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in ("ledger", "entries")}
        kept.append(
            {"rows": rows, "size": Path(path).stat().st_size, "facts": leaves([ledger.spent, ledger.remaining])}
        )
        assert [row[2] for row in rows["entries"]] == [
            "dpci.fit",
            "dpci.tuning.tune",
            "dpci.baselines.projected_histogram",
        ]
    # The clock, and the checksum over it.
    assert tainted(kept, (r"\.rows\.entries\[\d\]\[1\]", r"\.rows\.ledger\[0\]\[9\]")) == {}


def write_people(folder, table):
    folder.mkdir()
    (folder / "people.csv").write_text(people.as_csv(table), encoding="utf-8")
    (folder / "people.toml").write_text(people.SCHEMA, encoding="utf-8")


@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")  # by chance: the noise has no seed
@pytest.mark.parametrize("private_n", [False, True])
def test_the_command_line_prints_and_writes_released_numbers_only(private_n, tmp_path, monkeypatch, capsys):
    first = people.columns(500)
    n = 400 if private_n else 500
    healthy = {"age": ["18"] * n, "ward": ["A"] * n, "ill": ["no"] * n}
    others = {"age": ["-7", "1e9"] * (n // 2), "ward": ["somewhere"] * n, "ill": ["probably"] * n}
    options = ["--neighbors", "add_remove", "--n-public", "500"] if private_n else []
    found = []
    for k, table in enumerate((first, healthy, others)):
        write_people(tmp_path / str(k), table)
        monkeypatch.chdir(tmp_path / str(k))
        arguments = ["fit", "people.csv", "--schema", "people.toml", "--epsilon", "2", "--l2-strength", "0.5", *options]
        printed = ran(capsys, *arguments, "--output", "model.json", "--json")
        model = dpci.PrivateFit.from_json((tmp_path / str(k) / "model.json").read_text(encoding="utf-8"))
        assert json.loads(printed.out)["privacy"] == model.privacy
        document = json.loads(printed.out)
        kept = {name: document[name] for name in ("private", "level", "n_samples", "classes")}
        found.append({**record_of(model), "kept": kept, "names": [p["name"] for p in document["scaled"]]})
        views = {"target", "simultaneous"}
        assert set(document) == {*kept, *views, "coefficients", "scaled", "odds_ratios", "interval_refusal", "privacy"}
        assert [row["estimate"] for row in document["coefficients"]] == model.params.tolist()
        assert [row["upper"] for row in document["odds_ratios"]] == model.odds_ratios().upper.tolist()
        assert set(document["scaled"][0]) <= {"name", "estimate", "std_error", "p_value", "lower", "upper"}
        assert printed.err == "wrote model.json\n"
        assert main([*arguments, "--output", "other.json"]) == 0
        other = dpci.PrivateFit.from_json((tmp_path / str(k) / "other.json").read_text(encoding="utf-8"))
        assert capsys.readouterr().out == other.summary() + "\n"
    assert tainted(found, FIT) == {}


# What is never private says so, in what it returns and in what it writes.


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_what_is_never_private_says_so(tmp_path):
    X, y = tables()["ordinary"]
    given = {"l2_strength": 0.5, "n_threads": 1}
    study = dpci.simulate.coverage(
        X, y, budget=PURE, n_replicates=2, n_variability=0, seed=1, checkpoint=tmp_path / "study.npz", **given
    )
    with np.load(tmp_path / "study.npz") as file:
        header = json.loads(file["header"].item())
    assert header["private"] is False
    assert header["warning"].startswith("NOT PRIVATE: ")
    assert study.to_dict()["private"] is False
    minimiser = non_private(X, y, loss="logistic", l2_strength=0.5)
    assert json.loads(minimiser.to_json())["private"] is False
    made = report(X, y)
    assert not any(
        each.private
        for each in (
            study,
            minimiser,
            dpci.utility.curve(X, y, at=APPROX, **given),
            dpci.tuning.oracle_not_private(X, y, budget=PURE, candidates=GRID, n_runs=1),
            dpci.per_instance.ex_post_losses_not_private(made, X, y, X, y, member=True),
        )
    )


# The tests above find a leak.


def test_the_true_number_of_records_is_found(monkeypatch):
    monkeypatch.setattr(Settings, "public_n", lambda _self, n_samples: n_samples)
    results = of_each_size(lambda X, y: fit(X, y, budget=PURE, **ADD_REMOVE))
    assert ".n_samples" in tainted(map(record_of, results), FIT)


@pytest.mark.parametrize("field", ["version", "noise_scale"])
def test_a_count_of_clipped_rows_is_found(field):
    records = []
    for X, y in tables().values():
        told = int((np.abs(X).max(axis=1) > 1).sum())
        record = record_of(quietly(lambda X=X, y=y: fit(X, y, budget=PURE))[0])
        hidden = f"{record[field]}+{told}" if field == "version" else record[field] * (1.0 + 1e-15 * told)
        records.append({**record, field: hidden})
    assert set(tainted(records, FIT)) == {f".{field}"}
