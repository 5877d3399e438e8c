"""Audits multinomial fits of rows and of persons on worst cases; the argument is how many runs on either data set."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

import dpci
from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import epsilon_at, lower_bound
from dpci.budgets import core_budget

N_ROWS = 10
EPSILON, DELTA = 4.0, 0.01
CONFIDENCE = 1.0 - 1e-6
ABOUT = (
    "Short rows of class 1 hold its parameters far out; a record of class 2, which is surely taken for\n"
    "class 1, is turned around (replace_one) or is not there (add_remove). The score of an output is the\n"
    'ratio of its densities on the two data sets. "at least" is a lower bound on ε with confidence 1 - 1e-6,\n'
    'under (ε, δ) at δ = .01; "runs" are on either data set. "half the noise" is the same of releases with half\n'
    "the noise of the claim: it has to be above the claim. With a twentieth of the argument's runs, \"rows as\n"
    'people" is that where each row of a person is protected alone.'
)
_F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Short rows of class 1 hold its parameters far out; a record of class 2 that is surely taken for class 1 differs.

    It is turned around on the second axis, which nothing else curves ("replace_one"), or is not there ("add_remove").
    For the noise in the risk one column is then enough, and noise has fewer dimensions. The record is a row, a person
    of ten rows that are alike, or ten rows that are taken for people.
    """

    mechanism: str
    budget: dpci.PureDP | dpci.ApproxDP
    neighbors: str
    n_classes: int = 3
    unit: str = "row"

    @property
    def replaced(self) -> bool:
        """Whether the record is replaced rather than removed."""
        return self.neighbors == "replace_one"

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return 1 if (self.mechanism, self.neighbors) == ("objective", "add_remove") else 2

    @property
    def strength(self) -> float:
        """The regularisation."""
        return 1e-2 if self.n_columns == 1 else 2.5e-3

    @property
    def n_others(self) -> int:
        """Number of records that do not change."""
        return 400 if self.n_columns == 1 else 1_000

    @property
    def held(self) -> _F64:
        """The row of the records that do not change."""
        return np.ones(1) if self.n_columns == 1 else np.array([2.0 * np.sqrt(self.strength), 0.0])

    def row(self, sign: float) -> _F64:
        """Return the row of the record that changes."""
        return np.ones(1) if self.n_columns == 1 else np.array([0.28, sign * np.sqrt(1.0 - 0.28**2)])

    @property
    def copies(self) -> int:
        """Number of rows of the record."""
        return 1 if self.unit == "row" else N_ROWS

    def specification(self, budget: dpci.PureDP | dpci.ApproxDP) -> _core.Spec:
        """Return the fit that is attacked."""
        n_records = self.n_others + (self.copies if self.unit == "rows" else 1)
        return _core.Spec(
            _core.Terms(n_records, self.neighbors, persons=self.unit == "person"),
            n_columns=self.n_columns,
            intercept=None,
            row_norm=1.0,
            loss=_core.Loss.multinomial(self.n_classes),
            l2_strength=self.strength,
            radius=None,
            budget=core_budget(budget),
            mechanism=self.mechanism,
            noise=None,
            variant="standard",
            project=False,
            split=None,
            moments="none",
            projection="auto",
            calibration="tight",
        )

    def params(self, spec: _core.Spec, sign: float, seeds: range) -> _F64:
        """Return the parameters of every seed on one of the two data sets; without a record for -1 if it is removed."""
        copies = self.copies if self.replaced or sign > 0.0 else 0
        X = np.concatenate([np.tile(self.held, (self.n_others, 1)), np.tile(self.row(sign), (copies, 1))])
        y = np.append(np.ones(self.n_others), np.full(copies, 2.0))
        ids = np.append(np.arange(self.n_others), np.full(copies, self.n_others)) if self.unit == "person" else None
        fits = (
            _core.release(spec, _core.Records(X, y, persons=ids), on_violation="error", n_threads=1, seed=seed)
            for seed in seeds
        )
        return np.array([fit["params"] for fit in fits])

    def derivatives(self, params: _F64, row: _F64, label: int) -> tuple[_F64, _F64]:
        """Return gradient and Hessian of a row at parameters of shape (runs, k)."""
        blocks = params.reshape(len(params), self.n_classes - 1, -1)
        scores = np.concatenate([np.zeros((len(params), 1)), blocks @ row], axis=1)
        p = special.softmax(scores, axis=1)[:, 1:]
        slope = p - (np.arange(1, self.n_classes) == label)
        curvature = p[:, :, None] * np.eye(self.n_classes - 1) - p[:, :, None] * p[:, None, :]
        gradient = (slope[:, :, None] * row).reshape(params.shape)
        hessian = curvature[:, :, None, :, None] * np.outer(row, row)[:, None, :]
        return gradient, hessian.reshape(*params.shape, params.shape[1])

    def log_density(self, spec: _core.Spec, params: _F64, sign: float) -> _F64:
        """Return the logarithm of the density of released parameters on one data set, up to a constant."""
        if self.mechanism == "output":
            shift, determinant = params - self.params(self.specification(dpci.PureDP(1e9)), sign, range(1)), 0.0
        else:
            # The noise that leads to these parameters, and the Jacobian of the map to it.
            gradient, hessian = self.derivatives(params, self.held, 1)
            ridge = spec.divisor * self.strength
            shift, curved = self.n_others * gradient + ridge * params, self.n_others * hessian
            if self.replaced or sign > 0.0:
                counted = self.copies if self.unit == "rows" else 1
                gradient, hessian = self.derivatives(params, self.row(sign), 2)
                shift, curved = shift + counted * gradient, curved + counted * hessian
            determinant = np.linalg.slogdet(curved + ridge * np.eye(params.shape[1]))[1]
        size = np.linalg.norm(shift, axis=1) / spec.noise_scale
        return determinant - (0.5 * size**2 if spec.noise_law == "gaussian" else size)

    def with_noise(self, share: float) -> _core.Spec:
        """Return the fit with so much of the noise that the claim calls for: that of the greater ε that has it."""

        def at(log_epsilon: float) -> _core.Spec:
            return self.specification(replace(self.budget, epsilon=float(np.exp(log_epsilon))))

        claimed = np.log(self.budget.epsilon)
        wanted = share * at(claimed).noise_scale
        found = optimize.brentq(lambda log_epsilon: at(log_epsilon).noise_scale - wanted, claimed, claimed + 3.0)
        return at(found)

    def bound(self, n_runs: int, *, noise: float = 1.0, first_seed: int = 0) -> float:
        """Return a lower bound on ε from so many runs on either data set, with so much of the noise of the claim.

        The score of an output is the logarithm of the ratio of its densities: no other statistic tells more.
        """
        spec = self.with_noise(noise)
        starts = (first_seed, first_seed + n_runs)
        found = []
        for sign, start in zip((1.0, -1.0), starts, strict=True):
            drawn = self.params(spec, sign, range(start, start + n_runs))
            found.append(self.log_density(spec, drawn, 1.0) - self.log_density(spec, drawn, -1.0))
        at = 0.0 if isinstance(self.budget, dpci.PureDP) else self.budget.delta
        return lower_bound(*found, epsilon_at(at), quantity="epsilon", at=at, confidence=CONFIDENCE).value


def cases() -> Iterator[tuple[Case, int]]:
    """Yield what is attacked, without the rows that are taken for people, and the part of the runs that it gets."""
    pure = Case("objective", dpci.PureDP(EPSILON), "add_remove")
    yield replace(pure, unit="person"), 1
    for mechanism, part in (("objective", 1), ("output", 5)):
        yield Case(mechanism, pure.budget, "replace_one", unit="person"), part
    yield pure, 5
    yield replace(pure, n_classes=4), 5
    yield replace(pure, budget=dpci.ApproxDP(EPSILON, DELTA)), 5
    for mechanism, neighbors in (("objective", "replace_one"), ("output", "replace_one"), ("output", "add_remove")):
        yield Case(mechanism, pure.budget, neighbors), 5


def main() -> None:
    """Print the table of docs/evidence/multinomial_audit.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_runs", type=int, nargs="?", default=100_000, help="runs on either data set")
    n_runs = parser.parse_args().n_runs
    print("# Audits of multinomial fits\n")
    print(f"`python benches/multinomial_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0.\n")
    print(f"{ABOUT}\n")
    of_attack = "runs | at least | half the noise | rows as people"
    print(f"| unit | mechanism | neighbours | classes | parameters | claim | {of_attack} |\n{'|---' * 10}|")
    for case, part in cases():
        runs, few, whole = n_runs // part, n_runs // 20, case.unit == "person"
        of_rows = f"ε {replace(case, unit='rows').bound(few):.3g}" if whole else "-"
        found = f"{runs:,} | ε {case.bound(runs):.3g} | ε {case.bound(runs, noise=0.5):.3g} | {of_rows}"
        unit, k = f"person of {N_ROWS} rows" if whole else "row", case.n_columns * (case.n_classes - 1)
        what = f"{unit} | {case.mechanism} | {case.neighbors} | {case.n_classes} | {k} | {case.budget}"
        print(f"| {what} | {found} |", flush=True)


if __name__ == "__main__":
    main()
