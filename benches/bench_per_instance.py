"""Per-instance reports: the time of a million records, and how near to the exact losses bounds on credit default are.

Time: d = 21, one and two cores, minimum of five, the fit not included. Run on an idle machine. The table on credit
default needs DPCI_DATA and is left out without it; its noise is seeded.
"""

import warnings

import numpy as np

import dpci
from _timing import minimum, pin, print_machine, table, unpin

N, D = 1_000_000, 21
BUDGET = dpci.ApproxDP(1.0, 1e-6)
SETTINGS = {
    "data independent": {"kind": "data_independent"},
    "data dependent": {},
    "data dependent, simultaneous": {"simultaneous": True},
    "shares (.5, .4, .1)": {"shares": (0.5, 0.4, 0.1)},
    "paper's bound": {"bound": "paper"},
    "paper's calibration": {"calibration": "paper"},
}


def speed() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    rows = []
    for name in ("data independent", "data dependent"):
        report = dpci.per_instance.report(
            X, y, budget=BUDGET, l2_strength=0.003, n_public=N, fit_intercept=False, **SETTINGS[name]
        )
        times = []
        for cores in (1, 2):
            pin(cores)
            times.append(minimum(lambda report=report, cores=cores: report(X, y, n_threads=cores)))
        unpin()
        rows.append([name, *(f"{time:.3f}" for time in times)])
    print(f"\nreport on {N:,} x {D}, seconds")
    table(["what", "1 core", "2 cores"], rows)


def credit_default() -> None:
    try:
        data = dpci.datasets.load_credit_default(download=False)
    except dpci.DpciError as error:
        print(f"\ncredit default is left out: {error}")
        return
    rows = []
    for name, keywords in SETTINGS.items():
        report = dpci.per_instance.report(
            data.X, data.y, budget=BUDGET, l2_strength=0.01, n_public=30_000, classes=(-1, 1), seed=0, **keywords
        )
        losses = report(data.X, data.y)
        truth = dpci.per_instance.ex_post_losses_not_private(
            report, data.X, data.y, data.X, data.y, member=True
        ).absolute
        means = (truth, losses.eps1, losses.eps2, losses.eps3)
        below = f"{(losses.eps1 < truth).sum():,}"
        rows.append([name, *(f"{m.mean():.4f}" for m in means), f"{np.median(losses.eps1 / truth):.1f}", below])
    print(
        f"\ncredit default, {len(data.X):,} records, d = {data.X.shape[1] + 1}, {BUDGET}, lambda = .01: means by record"
    )
    table(["report", "exact loss", "eps1", "eps2", "eps3", "median eps1/exact", "below"], rows)


def main() -> None:
    warnings.simplefilter("ignore", dpci.DpciWarning)
    print_machine()
    speed()
    credit_default()


if __name__ == "__main__":
    main()
