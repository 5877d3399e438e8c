"""Coverage of multinomial fits of persons and of weighted rows; the argument is the number of fits a line."""

import argparse
import itertools
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

import dpci
from _environments import now
from _timing import commit
from dpci.inference.intervals import ConfidenceIntervals

POPULATION, N, STRENGTH, LEVEL, BOUND = 60_000, 8_000, 0.01, 0.95, 3.0
BUDGETS = (dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6))
ABOUT = (
    "A simulated population has 60,000 persons with one to eight rows that are alike, and three classes.\n"
    "8,000 persons are drawn with replacement; λ = .01. The target is the minimiser over the whole\n"
    'population. The weights of weighted rows are at most 3 (their bound). "least" and "greatest" are\n'
    "the coverage of the worst and of the best of 6 parameters (standard error {error} each),\n"
    '"without noise" is the length at a huge budget.'
)
TRUE = np.array([[0.0, 0.0, 0.0], [1.5, -1.0, 0.3], [-0.5, 1.5, -0.3]])
_F64 = NDArray[np.float64]
_INT = NDArray[np.intp]


class Population:
    """Persons with one to eight rows that are alike; the weights of rows depend on the first column."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.sizes = rng.integers(1, 9, POPULATION)
        self.first = np.concatenate([[0], np.cumsum(self.sizes)])
        whose = np.repeat(np.arange(POPULATION), self.sizes)
        own = rng.uniform(-0.5, 0.5, POPULATION)[whose] + rng.uniform(-0.5, 0.5, len(whose))
        self.X = np.column_stack([own, rng.uniform(-1.0, 1.0, len(whose))]) / np.sqrt(2.0)
        scores = np.column_stack([self.X, np.ones(len(whose))]) @ TRUE.T
        scores += rng.normal(0.0, 1.5, (POPULATION, 3))[whose]
        self.codes = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        self.weights = 1.0 + 0.9 * np.sign(own) * rng.uniform(0.5, 1.0, len(whose))
        self.shares = 1.0 / self.sizes[whose]

    def drawn(self, rng: np.random.Generator) -> tuple[_INT, _INT]:
        """Return the rows of persons that are drawn with replacement, and whose they are in the sample."""
        persons = rng.integers(0, POPULATION, N)
        sizes = self.sizes[persons]
        start = np.repeat(self.first[persons] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return start + np.arange(sizes.sum()), np.repeat(np.arange(N), sizes)

    def target(self, omega: _F64) -> _F64:
        """Return the minimiser over the population, in which row i counts omega[i]; they add up to about one each."""
        Z = np.column_stack([self.X, np.ones(len(self.X))])
        chosen, divisor = np.eye(3)[self.codes], float(POPULATION)

        def risk(params: _F64) -> tuple[float, _F64]:
            scores = np.column_stack([np.zeros(len(Z)), Z @ params.reshape(2, -1).T])
            loss = special.logsumexp(scores, axis=1) - scores[np.arange(len(Z)), self.codes]
            slopes = omega[:, None] * (special.softmax(scores, axis=1) - chosen)[:, 1:]
            value = omega @ loss / divisor + STRENGTH / 2 * params @ params
            return value, (slopes.T @ Z).ravel() / divisor + STRENGTH * params

        return np.asarray(optimize.minimize(risk, np.zeros(6), jac=True, options={"gtol": 1e-9}).x)


def main() -> None:
    """Print the table of docs/evidence/multinomial_unit.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_fits", type=int, nargs="?", default=200, help="fits a line")
    n_fits = parser.parse_args().n_fits
    warnings.simplefilter("ignore")
    made = f"commit {commit()}, {now()}, {n_fits} fits a line, seeds from 0"
    command = f"python benches/multinomial_unit_coverage.py {n_fits}"
    print(f"# Coverage of multinomial fits of persons\n\n`{command}`, {made}.\n")
    print(f"{ABOUT.format(error=f'{np.sqrt(LEVEL * (1 - LEVEL) / n_fits):.3f}'.lstrip('0'))}\n")
    print("| records | budget | mechanism | coverage | least | greatest | length | without noise |")
    print("|---|---|---|---|---|---|---|---|")
    people = Population(np.random.default_rng(1))
    for name, of_weights in (("persons", np.ones(len(people.X))), ("persons, weighted rows", people.weights)):
        truth = people.target(people.shares * of_weights)

        @dpci.threads(1)
        def intervals(seed: int, of_weights: _F64 = of_weights, **asked: object) -> ConfidenceIntervals:
            rows, whose = people.drawn(np.random.default_rng(seed))
            asked |= {"classes": range(3), "l2_strength": STRENGTH, "seed": seed, "persons": whose}
            if of_weights is people.weights:
                asked |= {"weights": dpci.Weights(of_weights[rows], bound=BOUND)}
            return dpci.multinomial.fit(people.X[rows], people.codes[rows], **asked).conf_int(level=LEVEL)

        free = np.mean([intervals(seed, budget=dpci.ZCDP(1e12)).length for seed in range(10)])
        for budget, mechanism in itertools.product(BUDGETS, ("objective", "output")):
            found = [intervals(seed, budget=budget, mechanism=mechanism) for seed in range(n_fits)]
            shares = np.mean([(one.lower <= truth) & (truth <= one.upper) for one in found], axis=0)
            cells = [np.mean(shares), shares.min(), shares.max(), np.mean([one.length for one in found]), free]
            shown = " | ".join(f"{value:.3f}" for value in cells)
            print(f"| {name} | {budget} | {mechanism} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
