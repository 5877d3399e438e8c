"""Tests dpci by property, with the package that is installed for this interpreter, one JSON line a finding."""

import copy
import inspect
import math
import pickle
import tempfile
import threading
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
from _probe import (
    after_kill,
    distinct_after_fork,
    epsilon_bound,
    in_processes,
    in_threads,
    off_grid,
    outcome,
    report,
    verdict,
)
from scipy.stats import chisquare
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import cross_val_score

import dpci

warnings.simplefilter("ignore")

ROOT = Path(__file__).parents[2]
BUDGETS = {"ε": dpci.PureDP(10.0), "zCDP": dpci.ZCDP(20.0), "(ε, δ)": dpci.ApproxDP(10.0, 1e-6)}
# One record in one dimension: of zero, and of one. The minimiser is 0 for the first and about 1.3 for the second.
ZERO, ONE = np.zeros((1, 1)), np.ones((1, 1))


def fit(X, y, *, budget=None, **keywords):
    settings = {
        "l2_strength": 0.2,
        "classes": (0, 1),
        "rows": dpci.rows.Within(intercept=False),
        "mechanism": dpci.ObjectivePerturbation(moments="none"),
        **keywords,
    }
    return dpci.fit(X, y, budget=budget or dpci.PureDP(10.0), **settings)


def low_bits(n_draws: int = 10_000) -> None:
    """Attack sums of doubles; then see that both neighbours give whole steps of one lattice, low bits uniform."""
    for name, budget in BUDGETS.items():
        for mechanism in ("output", "objective"):
            keywords = {"budget": budget, "mechanism": mechanism, "l2_strength": 0.2 if mechanism == "output" else 5.0}
            steps = {fit(X, [1], **keywords).privacy["seal"]["releases"][0]["lattice"] for X in (ZERO, ONE)}
            lattice = Fraction(steps.pop())
            draws = {
                key: [float(fit(X, [1], **keywords).params[0]) for _ in range(n_draws)]
                for key, X in (("0", ZERO), ("1", ONE))
            }
            # Under output perturbation the minimiser of the second neighbour is above 1, and its sums with doubles are
            # on the attack's grid below 1/4.
            counts = {"draws": n_draws, **{f"from {key}": off_grid(values, 0.25) for key, values in draws.items()}}
            quotients = {key: [Fraction(v) / lattice for v in values] for key, values in draws.items()}
            broken = len(steps) + sum(q.denominator != 1 for values in quotients.values() for q in values)
            bits = [chisquare(np.bincount([int(q) % 16 for q in qs], minlength=16)).pvalue for qs in quotients.values()]
            report(
                "low bits, basic noise" if mechanism == "output" else "low bits, regression",
                f"{mechanism} perturbation, {name}: {verdict(counts)}; {broken} exceptions to the lattice "
                f"2^{int(math.log2(lattice))}, last four bits uniform (p = {bits[0]:.2f}, {bits[1]:.2f})",
                {**counts, "exceptions": broken, "lattice": float(lattice), "p": [float(p) for p in bits]},
            )


def repeated_noise() -> None:
    # Three coefficients, so that a lattice of some thousand points makes no two draws equal by chance.
    X = np.eye(3)

    def draw() -> tuple[float, ...]:
        return tuple(fit(X, [1, 0, 1]).params.tolist())

    report("repeated noise", distinct_after_fork(draw))
    drawn: list[tuple[float, ...]] = []

    def work() -> None:
        drawn.extend(draw() for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("repeated noise", f"8 threads, 100 fits each: {len(set(drawn))} different of {len(drawn)}", len(set(drawn)))


def solver_error(n_fits: int = 10) -> None:
    """The released value is proved to lie within a public distance of the minimiser; else nothing is released."""
    generator = np.random.default_rng(1)
    for n in (1_000, 10_000, 100_000):
        X = generator.normal(size=(n, 10))
        X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.001
        y = (generator.uniform(size=n) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
        fits = [fit(X, y, budget=dpci.PureDP(1.0), l2_strength=1e-3, mechanism="objective") for _ in range(n_fits)]
        noise = np.sqrt(np.var([f.params for f in fits], axis=0, ddof=1).mean())
        distance = max(f.privacy["seal"]["releases"][0]["distance"] for f in fits)
        report(
            "solver error",
            f"objective perturbation, n={n:,}: at most {distance / noise:.1e} standard deviations of the noise from "
            "the minimiser, noise and rounding counted, by a proved bound; else NotConverged",
            distance / noise,
        )
    keywords = {"max_iter", "tol", "tolerance"} & set(inspect.signature(dpci.fit).parameters)
    report("solver error", f"{len(keywords)} keywords of fit stop the solver early", len(keywords))


def seeds() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seeded = fit(ONE, [1], seed=0)
    names = sorted({w.category.__name__ for w in caught})
    marks = {
        "private == False": seeded.private is False,
        "summary": "NOT PRIVATE" in str(seeded.summary()),
        "JSON": '"private": false' in seeded.to_json() or '"private":false' in seeded.to_json(),
        "repr": "NOT PRIVATE" in repr(seeded) or "private=False" in repr(seeded),
    }
    said = ", ".join(name for name, present in marks.items() if present)
    missing = ", ".join(name for name, present in marks.items() if not present) or "nothing"
    ledger = dpci.Ledger(dpci.PureDP(100.0))
    refusal = outcome(lambda: fit(ONE, [1], seed=0, ledger=ledger))
    report(
        "seed policy",
        f"a seeded fit: {', '.join(names)}; marked in {said}; missing in {missing}; with a ledger: {refusal}",
        marks,
    )


class Estimator(ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier around `dpci.fit`."""

    def __init__(self, ledger=None) -> None:
        self.ledger = ledger

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.result_ = fit(X, y, budget=dpci.PureDP(1.0), l2_strength=0.1, ledger=self.ledger)
        return self

    def predict(self, X):
        return self.result_.predict(X)


def ledger() -> None:
    X, y = np.tile([[0.5], [-0.5]], (20, 1)), np.tile([1, 0], 20)
    folder = Path(tempfile.mkdtemp())

    def new(name: str, epsilon: float = 1.0) -> dpci.Ledger:
        return dpci.Ledger(dpci.PureDP(epsilon), path=folder / f"{name}.sqlite")

    findings = {}
    account = new("folds", 5.0)
    cross_val_score(Estimator(account), X, y, cv=5)
    sixth = outcome(lambda: Estimator(account).fit(X, y))
    findings["cross_val_score, 5 fits of ε=1 under a total of 5"] = (
        f"{account.spent['epsilon']:g} recorded; a sixth: {sixth}"
    )
    for name, duplicate in (
        ("copy.deepcopy", copy.deepcopy),
        ("sklearn.base.clone", clone),
        ("pickle", lambda model: pickle.loads(pickle.dumps(model))),
    ):
        account = new(name)
        duplicate(Estimator(account)).fit(X, y)
        findings[f"fit of a {name}"] = f"{account.spent['epsilon']:g} recorded of 1"
    account = new("processes")
    findings["8 forked processes, budget for one fit"] = (
        f"{in_processes(lambda: Estimator(account).fit(X, y))} released"
    )
    account = new("threads")
    models: list[Estimator] = []

    def in_thread() -> None:
        models.append(Estimator(account))
        models[-1].fit(X, y)

    released = in_threads(in_thread)
    fitted = sum(hasattr(model, "result_") for model in models)
    findings["8 threads, budget for one fit"] = f"{released} returned, {fitted} models hold coefficients"
    account = new("kill")
    findings["kill -9"] = after_kill(lambda: Estimator(account).fit(X, y))
    for name, found in findings.items():
        report("ledger", f"{name}: {found}", found)


def rows() -> None:
    over = outcome(lambda: fit([[1.001]], [1]))
    clipped = fit([[5.0]], [1], rows="clip")
    held = "clip" in str(clipped.privacy)
    report("rows beyond the bound", f"refused ({over}) unless on_violation='clip', which the record names: {held}")


def audit(n_runs: int = 10_000) -> None:
    """Rows of norm 100, as for the other system: the density at zero tells one such row from none."""
    settings = {"rows": 100.0, "budget": dpci.PureDP(1.0), "mechanism": "objective"}
    rows_of = {"one": np.array([[100.0], [0.0], [0.0]]), "none": np.zeros((3, 1))}
    y = [1, 0, 1]
    low = outcome(lambda: fit(rows_of["one"], y, l2_strength=100.0 / 3, **settings))
    hits = [
        sum(abs(fit(X, y, l2_strength=2500.0 / 3, **settings).params[0]) < 0.01 for _ in range(n_runs))
        for X in rows_of.values()
    ]
    bound = max(0.0, epsilon_bound(int(hits[0]), int(hits[1]), n_runs))
    report(
        "audit of its regression",
        f"ε=1, row_norm=100: λn = 100, which diffprivlib takes there: {low}; λn = 2500: ε is at least {bound:.2f} with "
        "confidence 99.9%, as it may be",
        {"hits": [int(h) for h in hits], "runs": n_runs, "epsilon at least": bound},
    )
    tool = getattr(dpci.audit, "epsilon_lower_bound", None)
    report("audit tool", f"dpci.audit.{tool.__name__}" if tool else "none in this build")


def shipped() -> None:
    X, y = np.tile([[0.6], [-0.6]], (50, 1)), np.tile([1, 0], 50)
    lower, upper = np.asarray(fit(X, y, mechanism="objective", l2_strength=0.1).conf_int())[0]
    report("intervals", f"for every parameter, noise and sampling counted (here [{lower:.2f}, {upper:.2f}])")
    targets = len(list((ROOT / "fuzz" / "targets").glob("*.rs")))
    files = [
        path.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"), key=lambda path: path.name)
        if "hypothesis" in path.read_text("utf-8")
    ]
    report(
        "fuzzing",
        f"{targets} coverage-guided targets of the core (fuzz/targets), property-based tests in {', '.join(files)}",
        {"targets": targets, "files": files},
    )
    pages = "docs/privacy.md, method.md, certificates.md"
    report("proofs", f"of the pipeline ({pages}), by the authors; nobody else has reviewed them")


if __name__ == "__main__":
    for check in (low_bits, repeated_noise, solver_error, seeds, ledger, rows, audit, shipped):
        check()
