"""Calls of another library, with the types that it may count on: checked by mypy and by pyright, both strict."""

import numpy as np

import dpci
from dpci import lowlevel


def main() -> None:
    """Fit, plan, pay and read errors."""
    X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    y = X[:, 0] > 0
    budget: dpci.Budget = dpci.ZCDP(rho=0.5)
    result = dpci.fit(X, y, budget=budget, l2_strength=0.01)
    names: tuple[str, ...] = result.names
    interval = result.conf_int(level=0.9)
    lower = interval.lower.tolist()
    linear: dpci.regression.LinearFit = dpci.fit(
        X, y * 1.0, budget=dpci.PureDP(1.0), loss="squared", mechanism="moments"
    )
    table = linear.summary()
    groups = dpci.fit_many({"a": (X, y), "b": (X, y)}, budget=budget, l2_strength=0.01)
    first = groups["a"].params
    plan = dpci.plan(n_samples=1000, n_features=3, budget=dpci.PureDP(1.0), l2_strength=0.1)
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    try:
        dpci.fit(X, y, budget=dpci.PureDP(2.0), l2_strength=0.01, ledger=ledger)
    except dpci.BudgetExceeded as error:
        print(error.code, error.requested, error.remaining)
    minimum = lowlevel.minimize_erm(X, np.where(y, 1.0, -1.0), l2_strength=0.1)
    print(minimum.params.shape, plan.tolerance, table, lower, names, first)


if __name__ == "__main__":
    main()
