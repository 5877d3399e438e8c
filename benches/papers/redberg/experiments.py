"""Two experiments of Redberg & Wang (2021): losses under rotation, and utility under regularisation."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.lowlevel import minimize_erm
from papers.finding import Finding, Repeats
from papers.redberg import figures as per_instance_figures
from papers.redberg.setup import (
    CALIBRATIONS,
    DELTA,
    ROW_NOTES,
    SHARES,
    data_sets,
    fit_keywords,
    least_ridge,
    required_ridge,
    std_dev,
    write_report,
)
from papers.rows import DataSet, separable_classes
from papers.sources import Sources

_F64: TypeAlias = NDArray[np.float64]

ROTATIONS: Final[Mapping[str, float]] = {"0": 0.0, "pi/4": math.pi / 4.0, "pi": math.pi}
N_POINTS, MARGIN = 200, 0.4

N_RIDGES = 6
_WHO = ("no noise", *CALIBRATIONS)


def rotation(_: Sources, run: Repeats) -> Finding:
    """Rotate the minimiser for separable points of the disc, and compute the true loss of each point (figure 1).

    Parameters
    ----------
    sources : Sources
        Not used: the points are generated.
    run : Repeats
        The seed; there is no noise to repeat.

    Returns
    -------
    Finding
        Not private.
    """
    start = time.perf_counter()
    X, y = separable_classes(run.generator("rotation"), N_POINTS, MARGIN)
    points = DataSet("points", X, y, dpci.losses.Logistic())
    minimiser = minimize_erm(X, y, l2_strength=1.0 / N_POINTS, n_threads=run.n_threads).params
    scales = {calibration: std_dev(points, 1.0, 1.0, calibration) for calibration in CALIBRATIONS}
    panels, rows, data = [], [], []
    for name, angle in ROTATIONS.items():
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        params = turn @ minimiser
        correct = y * (X @ params) > 0.0
        losses = {c: rotated_losses(X, y, params, sigma) for c, sigma in scales.items()}
        panels.append(per_instance_figures.Rotated(name, params, X, y, losses["paper"]))
        groups = {"all": np.full(N_POINTS, True), "correct": correct, "misclassified": ~correct}  # noqa: FBT003
        for group, kept in groups.items():
            if not kept.any():
                continue
            found = {c: np.quantile(values[kept], (0.0, 0.5, 1.0)).tolist() for c, values in losses.items()}
            shown = [f"{value:.4g}" for quantiles in found.values() for value in quantiles]
            rows.append([name, group, f"{kept.sum()}", *shown])
            data.append({"omega": name, "points": group, "n_points": int(kept.sum()), "losses": found})
    header = ["omega", "points", "number", *(f"{what}, {c}" for c in CALIBRATIONS for what in ("min", "median", "max"))]
    sigmas = ", ".join(f"{sigma:.4g} ({calibration})" for calibration, sigma in scales.items())
    report = write_report(
        "rotation",
        title="Figure 1 of Redberg & Wang (2021): true losses of the points as the minimiser is rotated",
        header=header,
        rows=rows,
        facts=[
            ("points", f"{N_POINTS}, margin {MARGIN}, Lambda = 1"),
            ("sigma", f"{sigmas}, epsilon = 1, delta = {DELTA:g}"),
        ],
        notes=[
            (
                "Minimum, median and maximum of |log p(with the point)/p(without it)| over the points, each removed "
                "from the data, for logistic regression without intercept. The points are uniform on the unit disc "
                f"outside a strip of width {MARGIN} between the classes; their number and epsilon are chosen by dpci, "
                "because the paper gives none. No noise is drawn, so repeats do not matter."
            ),
        ],
        found={"points": data},
        seconds=time.perf_counter() - start,
        run=run,
    )
    return Finding(report, partial(per_instance_figures.draw_rotation, panels))


def rotated_losses(X: _F64, y: _F64, params: _F64, sigma: float) -> _F64:
    """Return the absolute ex-post losses of the rows of X, shape (n,), for a release of ``params`` with Lambda = 1.

    The density of a release is the density of its noise at the gradient of the sum objective, times the determinant of
    the Hessian. The noise is normal with the standard deviation ``sigma`` in each coordinate.
    """
    _, slopes, curvatures = dpci.losses.Logistic().to_core().evaluate(X @ params, y)
    gradients = X * slopes[:, np.newaxis]
    whole = gradients.sum(axis=0) + params
    hessian = (X.T * curvatures) @ X + np.eye(len(params))
    exponents = (np.sum(gradients**2, axis=1) - 2.0 * gradients @ whole) / (2.0 * sigma**2)
    leverages = np.sum(X * np.linalg.solve(hessian, X.T).T, axis=1)
    return np.asarray(np.abs(exponents - np.log1p(-curvatures * leverages)))


def regularisation(sources: Sources, run: Repeats) -> Finding:
    """Increase the regularisation up to what the data-dependent report requires, and measure the utility (section 4.1).

    Parameters
    ----------
    sources : Sources
        Where the public data are.
    run : Repeats
        Draws of the noise, seed, threads.

    Returns
    -------
    Finding
        Not private.

    Raises
    ------
    DatasetUnavailable
        The file is not available.
    """
    start = time.perf_counter()
    cells = []
    for data in data_sets(sources, run):
        required = required_ridge(data, run)
        for epsilon in (SHARES[0], 1.0):
            for ridge in np.geomspace(least_ridge(data, epsilon), required, N_RIDGES):
                run.announce(f"{data}, epsilon_1={epsilon:g}, Lambda={ridge:.4g}")
                cells.append(_utility_at(data, epsilon, float(ridge), run))
    rows = [cell.shown() for cell in cells]
    report = write_report(
        "regularisation",
        title="Section 4.1 of Redberg & Wang (2021): utility against regularisation",
        header=["rows", "epsilon_1", "Lambda", *(f"{what}, {who}" for what in ("loss", "accuracy") for who in _WHO)],
        rows=rows,
        facts=[("rows", "; ".join(dict.fromkeys(str(cell.data) for cell in cells))), ("delta", f"{DELTA:g}")],
        notes=[
            (
                "Loss: mean loss of the released parameters without the regulariser, averaged over the repeats, "
                "with its standard deviation. Lambda ranges from the least value that Theorem 5 allows to the least "
                "that Algorithm 2 allows, twice the radius of the Hessian's noise at (.1, 1e-6)."
            ),
            *_changes(cells),
            *ROW_NOTES,
        ],
        found={"cells": [cell.to_dict() for cell in cells]},
        seconds=time.perf_counter() - start,
        run=run,
    )
    shown = [per_instance_figures.MeanLosses(cell.data.title, cell.epsilon, cell.ridge, cell.losses) for cell in cells]
    return Finding(report, partial(per_instance_figures.draw_regularisation, shown))


@dataclass(frozen=True)
class Utility:
    """Mean loss and accuracy at one strength of the regularisation; soft labels have no accuracy.

    ``losses`` and ``accuracies`` are given by "no noise" (one number) and calibration (one for each repeat).
    """

    data: DataSet
    epsilon: float
    ridge: float
    losses: Mapping[str, Sequence[float]]
    accuracies: Mapping[str, Sequence[float]] | None

    def shown(self) -> list[str]:
        """Return a line of the table."""
        losses = [f"{np.mean(values):.4f}{_std(values, 4)}" for values in self.losses.values()]
        if self.accuracies is None:
            accuracies = ["-"] * len(losses)
        else:
            accuracies = [f"{np.mean(values):.4f}" for values in self.accuracies.values()]
        return [self.data.title, f"{self.epsilon:g}", f"{self.ridge:.4g}", *losses, *accuracies]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        accuracies = None if self.accuracies is None else {who: list(v) for who, v in self.accuracies.items()}
        losses = {who: list(values) for who, values in self.losses.items()}
        values = {"rows": self.data.title, "epsilon_1": self.epsilon, "Lambda": self.ridge}
        return {**values, "losses": losses, "accuracies": accuracies}


def _changes(cells: Sequence[Utility]) -> Iterator[str]:
    """Compare the loss at the strongest regularisation with that at the weakest."""
    for title, epsilon in dict.fromkeys((cell.data.title, cell.epsilon) for cell in cells):
        here = [cell for cell in cells if (cell.data.title, cell.epsilon) == (title, epsilon)]
        parts = []
        for calibration in CALIBRATIONS:
            means = [float(np.mean(cell.losses[calibration])) for cell in here]
            best = here[int(np.argmin(means))].ridge
            parts.append(
                f"{calibration}: from {means[0]:.4f} to {means[-1]:.4f}, least {min(means):.4f} at Lambda={best:.3g}"
            )
        yield f"Loss from the least to the greatest Lambda, {title}, epsilon_1={epsilon:g}: {'; '.join(parts)}."


def _std(values: Sequence[float], digits: int) -> str:
    return f" ({np.std(values, ddof=1):.{digits}f})" if len(values) > 1 else ""


def _utility_at(data: DataSet, epsilon: float, ridge: float, run: Repeats) -> Utility:
    plain = minimize_erm(data.X, data.y, loss=data.loss, l2_strength=ridge / len(data.X), n_threads=run.n_threads)
    params: dict[str, list[_F64]] = {"no noise": [plain.params]}
    for calibration in CALIBRATIONS:
        keywords = fit_keywords(data, epsilon, ridge, calibration)
        with dpci.threads(run.n_threads):
            params[calibration] = [dpci.fit(data.X, data.y, **keywords, seed=seed).params for seed in run.seeds()]
    losses = {who: [mean_loss(data, one) for one in found] for who, found in params.items()}
    if not data.has_classes:
        return Utility(data, epsilon, ridge, losses, None)
    accuracies = {
        who: [float(np.mean(data.y * (data.X @ one) > 0.0)) for one in found] for who, found in params.items()
    }
    return Utility(data, epsilon, ridge, losses, accuracies)


def mean_loss(data: DataSet, params: _F64) -> float:
    """Return the mean logistic loss for classes -1 and 1, or for soft labels."""
    predictor = data.X @ params
    labels = (data.y + 1.0) / 2.0 if data.has_classes else data.y
    return float(np.mean(np.logaddexp(0.0, predictor) - labels * predictor))
