"""Per-instance reports: the time of a million records, and on credit default which kind of report says how much.

Time: d = 21, one and two cores, minimum of five, the fit not included. Run on an idle machine. The table on credit
default needs DPCI_DATA and is left out without it; its noise is seeded.
"""

import warnings

import numpy as np
from scipy import optimize

import dpci
from _timing import minimum, pin, print_machine, table, unpin

N, D = 1_000_000, 21
BUDGET = dpci.ApproxDP(1.0, 1e-6)
SETTINGS = {
    "data independent": {"kind": "data_independent"},
    "data dependent": {},
    "shares (.05, .9, .05)": {"shares": (0.05, 0.9, 0.05)},
    "shares (.45, .45, .1)": {"shares": (0.45, 0.45, 0.1)},
    "shares (.8, .1, .1)": {"shares": (0.8, 0.1, 0.1)},
    "paper's bound": {"bound": "paper"},
    "paper's calibration": {"calibration": "paper"},
}


def speed() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    y = rng.random(N) < 0.5
    rows = []
    for name in ("data independent", "data dependent"):
        report = dpci.per_instance.report(
            X, y, budget=BUDGET, l2_strength=0.003, n_public=N, rows=dpci.rows.Within(intercept=False), **SETTINGS[name]
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
    strength, n_public = 0.01, 30_000

    def released(**keywords):
        public = {"budget": BUDGET, "l2_strength": strength, "n_public": n_public, "classes": (-1, 1), **keywords}
        return dpci.per_instance.report(data.X, data.y, seed=0, **public)

    def std_dev(epsilon):
        budget = dpci.ApproxDP(epsilon, BUDGET.delta)
        n_samples, n_features = data.X.shape
        facts = {
            "n_samples": n_samples,
            "n_features": n_features,
            "neighbors": dpci.AddRemove(n_public),
            "l2_strength": strength,
            "mechanism": dpci.ObjectivePerturbation(moments="none"),
        }
        return dpci.plan(budget=budget, **facts).steps[0].scale

    # A model alone with the noise that the data-dependent report leaves it: what the two other releases buy.
    noise = released().result.privacy["steps"][0]["scale"]
    epsilon = optimize.brentq(lambda epsilon: std_dev(epsilon) - noise, 0.1, BUDGET.epsilon, xtol=1e-9)
    alone = {"kind": "data_independent", "budget": dpci.ApproxDP(epsilon, BUDGET.delta)}
    settings = {**SETTINGS, f"data independent, epsilon {epsilon:.3f}": alone}
    for simultaneous in (False, True):
        rows = []
        for name, keywords in settings.items():
            made = released(**keywords, simultaneous=simultaneous)
            losses = made(data.X, data.y)
            truth = dpci.per_instance.ex_post_losses_not_private(
                made, data.X, data.y, data.X, data.y, member=True
            ).absolute
            means = (truth, losses.eps1, losses.eps2, losses.eps3, losses.total)
            ratio, below = np.median(losses.eps1 / truth), (losses.eps1 < truth).sum()
            sigma = made.result.privacy["steps"][0]["scale"]
            rows.append([name, f"{sigma:.1f}", *(f"{m.mean():.3f}" for m in means), f"{ratio:.2f}", f"{below:,}"])
        print(
            f"\ncredit default, {len(data.X):,} records, d = {data.X.shape[1] + 1}, {BUDGET}, lambda = .01, "
            f"simultaneous = {simultaneous}: means by record"
        )
        table(["report", "sigma", "exact", "eps1", "eps2", "eps3", "total", "median eps1/exact", "below exact"], rows)


def main() -> None:
    warnings.simplefilter("ignore", dpci.DpciWarning)
    print_machine()
    speed()
    credit_default()


if __name__ == "__main__":
    main()
