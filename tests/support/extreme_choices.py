"""Public choices from the whole range of double precision, and everything that can be asked of a fit with them."""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.losses import BUILT_IN
from support.keywords import assembled

PATTERN = np.array(
    [[0.6, 0.0], [-0.6, 0.1], [0.1, -0.3], [-0.2, 0.7], [0.3, 0.3], [-0.4, -0.5], [0.0, 0.2], [0.5, -0.6]]
)
CLASSES = np.array([1, 0, 1, 0, 1, 0, 0, 1])
LEVELS = (1e-12, 0.5, 0.95, 1.0 - 1e-9)
LOSSES = tuple(BUILT_IN)


def extreme(rng, *, usual, share):
    """A positive number: with probability ``share`` log-uniform over all doubles, else around a usual one."""
    if rng.random() < share:
        return float(2.0 ** rng.uniform(-1074.0, 1024.0))
    return float(usual * 10.0 ** rng.normal(0.0, 1.0))


def choices(rng):
    """Keywords of a fit of ``8 * copies`` rows, and the number of copies."""
    share = float(rng.choice([0.03, 0.15, 0.5]))

    def number(usual):
        return extreme(rng, usual=usual, share=share)

    notion = rng.integers(3)
    delta = min(number(1e-6), 0.9)
    budget = (
        lambda: dpci.PureDP(number(1.0)),
        lambda: dpci.ZCDP(number(0.5)),
        lambda: dpci.ApproxDP(number(1.0), delta),
    )[notion]()
    copies = int(rng.choice([1, 2, 100]))
    keywords = {
        "budget": budget,
        "l2_strength": number(0.1),
        "rows": dpci.rows.Clipped(number(1.0)),
        "intercept": (number(1.0), False)[int(rng.random() >= 0.7)],
        "loss": str(rng.choice(LOSSES)),
        "mechanism": str(rng.choice(["objective", "output"])),
        "moments": str(rng.choice(["joint", "separate", "none"], p=[0.6, 0.3, 0.1])),
        "projection": str(rng.choice(["auto", "floor", "cautious"])),
        "calibration": str(rng.choice(["tight", "paper"], p=[0.8, 0.2])),
    }
    if rng.random() < 0.25 or keywords["loss"] == "squared":
        keywords["radius"] = number(3.0)
    if rng.random() < 0.3:
        n_public = 8 * copies * 2.0 ** rng.uniform(-3.5, 10.0)
        n_public = max(copies, int(n_public if rng.random() < 1.0 - share else 2.0 ** rng.uniform(0.0, 62.0)))
        keywords["neighbors"] = dpci.AddRemove(n_public)
    if keywords["moments"] != "none" and rng.random() < 0.3:
        small = [min(number(0.05), 0.4) for _ in range(2)]
        keywords["split"] = (1.0 - small[0] - small[1], *small)
    if keywords["loss"] in {"logistic", "huber_hinge", "smooth_hinge", "hinge"}:
        keywords["classes"] = (0, 1)
    return keywords, copies


def data(keywords, copies):
    """Rows within the public bound, and their targets."""
    X = np.tile(PATTERN * min(keywords["rows"].within.norm, 1e150), (copies, 1))
    return X, np.tile(CLASSES, copies)


def attempt(seed):
    """Draw public choices, fit twice and ask for everything; return whether they were accepted.

    What public values rule out is refused by the plan, before any data; whatever else is raised is a finding.
    """
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(action="ignore", category=dpci.DpciWarning):
        try:
            keywords, copies = choices(rng)
            n_samples = keywords["neighbors"].n_public if "neighbors" in keywords else 8 * copies
            plan = dpci.plan(**assembled(n_samples=n_samples, n_features=2, **keywords))
        except (dpci.InvalidInput, dpci.RegularizationTooSmall):
            return False
        plan.summary()
        X, y = data(keywords, copies)
        results = [dpci.fit(X, y, **assembled(**keywords), seed=seed + start) for start in (0, 10**6)]
        inspect(*results)
    return True


def _finite(name, values):
    if not np.all(np.isfinite(np.asarray(values, dtype=float))):
        raise AssertionError(f"{name} is not finite: {values}")


def inspect(result, other):
    """Ask a fit for everything that it offers, and compare it with another one of the same choices."""
    _finite("params", result.params)
    if result.interval_refusal is not None:
        result.summary()
        return dpci.PrivateFit.from_json(result.to_json())
    d = len(result.params)
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        for level in LEVELS:
            _finite(f"conf_int at {level}", result.conf_int(level=level))
        _finite("simultaneous", result.conf_int(simultaneous="max_z"))
        _finite("contrast", result.conf_int(contrast=np.eye(d)[:1] * 2.0))
        for name in ("cov", "std_errors", "pvalues"):
            _finite(name, getattr(result, name))
        if not result.moment_noise >= 0.0:  # infinite where rounding leaves nothing of the least eigenvalue
            raise AssertionError(f"moment_noise is no number: {result.moment_noise}")
        try:
            _finite("wald", result.wald_test(np.eye(d)[:2]).pvalue)
        except dpci.InvalidInput as error:  # of the released covariance, whose condition is the square of the Hessian's
            if "must be regular" not in str(error):
                raise
        mean = result.predict_conf_int(np.zeros((1, d - result.names.count("intercept"))))
        # The mean of a count is an exponential, which floats hold up to 1e308 only.
        if not (np.isfinite(mean.lower).all() and (mean.upper >= mean.lower).all()):
            raise AssertionError(f"the interval of a mean is not one: {mean}")
        result.summary()
        result.guarantee.delta(1.0)
        if other.interval_refusal is None:
            compared = dpci.compare(result, other)
            _finite("compare", compared.intervals)
            compared.summary()
        plt.close(result.plot().figure)
    for seal in result.privacy["seal"]["releases"]:
        _finite("seal", [seal["distance"], seal["lattice"], seal["std_dev"]])
    return dpci.PrivateFit.from_json(result.to_json())
