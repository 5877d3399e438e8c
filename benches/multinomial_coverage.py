"""Coverage of the intervals of multinomial fits of public tables; the argument is the number of fits a line."""

import argparse
import itertools
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

import dpci
from _environments import now
from _timing import commit
from dpci import datasets
from dpci.inference.intervals import ConfidenceIntervals, law_of
from dpci.multinomial.result import fit_of
from dpci.released.model import record_of
from dpci.report.summary import mean_coverage

N, STRENGTH, LEVEL = 20_000, 0.01, 0.95
ABOUT = (
    "The target is the minimiser over the whole table, from which 20,000 records are drawn with\n"
    'replacement; λ = .01. "least" and "greatest" are the coverage of the worst and of the best parameter\n'
    'over the samples (standard error .015 each with 200 fits), "without noise" is the length at a huge\n'
    'budget. "told" is what the fits themselves say of single parameters, from released values alone: the\n'
    "coverage of the 95% interval of a parameter whose error has a variance one standard deviation above\n"
    "its estimate, as far as noise in the matrices leaves it open; the summary has it where it is below .940."
)
BUDGETS = (dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6))
_F64 = NDArray[np.float64]
_INT = NDArray[np.intp]

# Public bounds of the columns, and the classes of the targets, the reference first.
MARRIED = {"Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"}
MARITAL = ("married", "never married", "no longer married")
EDUCATION = ("secondary", "primary", "tertiary", "unknown")


def scaled(*columns: tuple[NDArray, float, float]) -> _F64:
    """Return columns mapped from public bounds to [-1, 1], over the root of their number: rows of norm at most 1."""
    mapped = [2.0 * (np.asarray(values, float) - low) / (high - low) - 1.0 for values, low, high in columns]
    return np.clip(np.column_stack(mapped), -1.0, 1.0) / np.sqrt(len(columns))


def adult() -> tuple[_F64, _INT, tuple[str, ...]]:
    """Return rows of Adult with the marital status as target."""
    table = datasets.load_table("adult")
    status = np.array(["married" if s in MARRIED else s.lower().replace("-", " ") for s in table["marital-status"]])
    codes = np.where(status == "married", 0, np.where(status == "never married", 1, 2))
    rows = scaled(
        (table["age"], 17, 90),
        (table["education-num"], 1, 16),
        (table["hours-per-week"], 0, 99),
        (np.array([s == "Male" for s in table["sex"]]), 0, 1),
    )
    return rows, codes, MARITAL


def bank() -> tuple[_F64, _INT, tuple[str, ...]]:
    """Return rows of Bank Marketing with the education as target."""
    table = datasets.load_table("bank")
    codes = np.array([EDUCATION.index(str(level)) for level in table["education"]])
    rows = scaled(
        (table["age"], 18, 95),
        (table["balance"], -5_000, 20_000),
        (np.array([s == "yes" for s in table["housing"]]), 0, 1),
    )
    return rows, codes, EDUCATION


def target(X: _F64, codes: _INT, n_classes: int) -> _F64:
    """Return the minimiser of the regularised risk over the whole table, which is the population."""
    Z = np.column_stack([X, np.ones(len(X))])
    chosen = np.eye(n_classes)[codes]

    def risk(params: _F64) -> tuple[float, _F64]:
        scores = np.column_stack([np.zeros(len(Z)), Z @ params.reshape(n_classes - 1, -1).T])
        value = np.mean(special.logsumexp(scores, axis=1) - scores[np.arange(len(Z)), codes])
        slopes = (special.softmax(scores, axis=1) - chosen)[:, 1:]
        return value + STRENGTH / 2 * params @ params, (slopes.T @ Z).ravel() / len(Z) + STRENGTH * params

    found = optimize.minimize(risk, np.zeros((n_classes - 1) * Z.shape[1]), jac=True, options={"gtol": 1e-9})
    return np.asarray(found.x)


def main() -> None:
    """Print the table of docs/evidence/multinomial.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_fits", type=int, nargs="?", default=200, help="fits a line")
    n_fits = parser.parse_args().n_fits
    warnings.simplefilter("ignore")
    made = f"commit {commit()}, {now()}, {n_fits} fits a line, seeds from 0"
    print(f"# Coverage of multinomial fits\n\n`python benches/multinomial_coverage.py {n_fits}`, {made}.\n\n{ABOUT}\n")
    of_fits = "coverage | least | told | greatest | length | without noise"
    print(f"| table | classes | parameters | budget | mechanism | {of_fits} |\n{'|---' * 11}|")
    for name, load in (("Adult, marital status", adult), ("Bank, education", bank)):
        X, codes, labels = load()
        truth = target(X, codes, len(labels))

        @dpci.threads(1)
        def fitted(seed: int, X: _F64 = X, codes: _INT = codes, **asked: object) -> tuple[ConfidenceIntervals, float]:
            drawn = np.random.default_rng(seed).integers(0, len(X), N)
            asked |= {"classes": range(codes.max() + 1), "l2_strength": STRENGTH, "seed": seed}
            found = dpci.multinomial.fit(X[drawn], codes[drawn], **asked)
            return found.conf_int(level=LEVEL), mean_coverage(law_of(record_of(fit_of(found))))

        free = np.mean([fitted(seed, budget=dpci.ZCDP(1e10))[0].length for seed in range(10)])
        for budget, mechanism in itertools.product(BUDGETS, ("objective", "output")):
            fits = [fitted(seed, budget=budget, mechanism=mechanism) for seed in range(n_fits)]
            found, told = zip(*fits, strict=True)
            shares = np.mean([(one.lower <= truth) & (truth <= one.upper) for one in found], axis=0)
            length = np.mean([one.length for one in found])
            cells = [np.mean(shares), shares.min(), np.mean(told), shares.max(), length, free]
            shown = " | ".join(f"{value:.3f}" for value in cells)
            print(f"| {name} | {len(labels)} | {len(truth)} | {budget} | {mechanism} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
