"""How far a point is from fulfilling the conditions of optimality of a hinge risk, by SciPy."""

import numpy as np
from scipy import optimize


def unoptimality(X, y, l2_strength, params, radius=np.inf):
    """Least ||g + nu params|| / l2_strength over subgradients g and nu >= 0, by SciPy's bounded least squares.

    Rows within 1e-9 of their kink take any multiplier: a bound on the distance to the minimiser up to that.
    """
    signed = X * y[:, None]
    z = signed @ params
    at_kink = np.abs(z - 1.0) <= 1e-9
    rows, counts = np.unique(signed[at_kink], axis=0, return_counts=True)
    gradient = l2_strength * params - signed[z < 1.0 - 1e-9].sum(axis=0) / len(y)
    columns, upper = rows.T * counts / len(y), np.ones(len(rows))
    if np.linalg.norm(params) > radius * (1.0 - 1e-12):
        columns, upper = np.column_stack([columns, -params]), np.append(upper, np.inf)
    if not len(upper):
        return np.linalg.norm(gradient) / l2_strength
    found = optimize.lsq_linear(columns, gradient, (0.0, upper), method="bvls", tol=1e-15)
    return np.linalg.norm(columns @ found.x - gradient) / l2_strength
