"""Why some parameters of multinomial fits are covered less often: errors and standard errors by parameter."""

import argparse
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit
from multinomial_coverage import LEVEL, STRENGTH, N, adult, bank, target

# The last one has next to no noise.
BUDGETS = (dpci.ZCDP(0.5), dpci.PureDP(2.0), dpci.ZCDP(1e10))


def main() -> None:
    """Print the tables of docs/evidence/multinomial_worst.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_fits", type=int, nargs="?", default=1000, help="fits a line")
    n_fits = parser.parse_args().n_fits
    warnings.simplefilter("ignore")
    print(f"`python benches/multinomial_worst.py {n_fits}`, commit {commit()}, {now()}, {n_fits} fits, seeds from 0.")
    for name, load in (("Adult, marital status", adult), ("Bank, education", bank)):
        X, codes, labels = load()
        truth = target(X, codes, len(labels))
        parts = zip(labels, np.bincount(codes) / len(codes), strict=True)
        shares = ", ".join(f"{label} {share:.3f}" for label, share in parts)
        print(f"\n{name}: {shares}\n")
        print("| budget | parameter | coverage | bias / sd | standard error / sd | missed below | missed above |")
        print("|---|---|---|---|---|---|---|")
        for budget in BUDGETS:
            params, errors, below, above = [], [], [], []
            for seed in range(n_fits):
                drawn = np.random.default_rng(seed).integers(0, len(X), N)
                asked = {"classes": labels, "l2_strength": STRENGTH, "seed": seed}
                fit = dpci.multinomial.fit(X[drawn], np.array(labels)[codes[drawn]], budget=budget, **asked)
                found = fit.conf_int(level=LEVEL)
                params.append(fit.params)
                errors.append(fit.std_errors)
                below.append(found.upper < truth)
                above.append(found.lower > truth)
            spread = np.std(params, axis=0)
            columns = (
                1.0 - np.mean(below, axis=0) - np.mean(above, axis=0),
                (np.mean(params, axis=0) - truth) / spread,
                np.sqrt(np.mean(np.square(errors), axis=0)) / spread,
                np.mean(below, axis=0),
                np.mean(above, axis=0),
            )
            for at, parameter in enumerate(fit.names):
                print(f"| {budget} | {parameter} | " + " | ".join(f"{c[at]:.3f}" for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
