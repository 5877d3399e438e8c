"""Regression on a noisy histogram."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import check_intercept, check_positive
from dpci.baselines.axes import Axis, bin_centers, check_axes, check_bins
from dpci.baselines.choices import PrivateChoices, public_classes, unbounded_loss
from dpci.baselines.result import BaselineFit
from dpci.budgets import Budget, NeighborsLike, core_budget, read_neighbors
from dpci.data.arrays import Table
from dpci.data.rows import Rows, Source
from dpci.errors import InvalidInput
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import LossLike
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, core_terms, given_unit


def projected_histogram(
    X: Table,
    y: ArrayLike,
    *,
    budget: Budget,
    axes: Sequence[Axis],
    l2_strength: float,
    target_bins: int = 10,
    loss: LossLike = "squared",
    intercept: bool | float = True,
    classes: Sequence[Any] | None = None,
    neighbors: NeighborsLike = "replace_one",
    persons: ArrayLike | Persons | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> BaselineFit:
    """Fit a regression to a histogram with noisy counts.

    Every record is moved to the nearest cell of a public grid over X and y. Noise is added to the count of every cell,
    empty or not. Noisy counts are rounded to whole numbers, negative ones to 0. The model is fitted to the centres of
    the cells, each repeated as often as its count says. Everything in the result is differentially private at the
    budget, for the relation of ``neighbors``, whatever the rows hold.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows; no bound on their norm is needed.
    y : array-like of shape (n_samples,)
        Two classes, or real numbers, moved into the bounds of the loss.
    budget : PureDP, ZCDP or ApproxDP
        PureDP adds Laplace noise of scale 2/ε (1/ε under "add_remove"), the others Gaussian noise.
    axes : sequence of Bins, OneHot and Levels
        Each attribute once: its columns and public levels; every column of X belongs to exactly one. :func:`axes_of`
        makes them from a schema. The number of cells is the product of the numbers of levels, the target's among them;
        times n_features + 1 it may be at most 2**25, because all centres are held in memory.
    l2_strength : float
        Public λ > 0 of the mean objective over the cells.
    target_bins : int
        Equal bins of real targets between the bounds of the loss.
    loss : str or object of dpci.losses
        The loss that is minimised over the cells: "squared" or any other smooth loss.
    intercept : bool or float
        Whether a constant is appended to every row, or its size.
    classes : (negative, positive), optional
        The public classes.
    neighbors : "replace_one" or AddRemove
        See :func:`dpci.fit`.
    persons : array-like of shape (n_samples,) or Persons, optional
        The person of each row, as for :func:`dpci.fit`. Each row counts in its cell by its share of a person.
    weights : Weights, optional
        The weight of each record, as for :func:`dpci.fit`, but without a total, because the mean is over the noisy
        counts. Each row counts in its cell by its weight over the bound; weights above the bound are lowered to it.
    ledger, seed
        See :func:`dpci.fit`.

    Returns
    -------
    BaselineFit
        Parameters and predictions; no intervals. All parameters are 0 if every noisy count is 0.

    Raises
    ------
    InvalidInput
        For arguments out of range, malformed data, axes that miss a column or name one twice, or too many cells.
    NotConverged
        If the minimiser over the cells could not be certified.
    BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`.

    Warns
    -----
    PrivacyLeakWarning, SeededNoiseWarning
        See :func:`dpci.fit`.

    References
    ----------
    Lei, "Differentially private M-estimators", 2011. Vinterbo, "Differentially private projected histograms", 2012, who
    selects attributes with part of the budget, where this function takes public axes. Fredrikson, Lantz, Jha, Lin, Page
    & Ristenpart, "Privacy in pharmacogenetics", 2014, compare such histograms with the functional mechanism.
    """
    checked = unbounded_loss(loss, kinks=False)
    unit, weighing, beside = given_unit(persons, weights)
    if weighing is not None and weighing.total is not None:
        raise InvalidInput(
            f"weights must have no total for a histogram, whose mean is over the noisy counts, got {weighing!r}"
        )
    choices = PrivateChoices(
        loss=checked,
        intercept=check_intercept(intercept),
        classes=public_classes(classes),
        budget=budget,
        **read_neighbors(neighbors),
        on_violation="clip",  # every record has a nearest cell
        seed=seed,
        unit=unit,
        weights=weighing,
    )
    payment = Payment.of("dpci.baselines.projected_histogram", ledger, choices, budget=budget)
    axes = check_axes(axes)
    l2_strength = check_positive("l2_strength", l2_strength)
    target_bins = check_bins("target_bins", target_bins)
    bounds = choices.target_bounds

    def resolve(_: int, n_columns: int) -> _core.HistogramSpec:
        # The noisy counts are the number of records, and their own total.
        own = None if weighing is None else replace(weighing, total=weighing.bound)
        return _core.HistogramSpec(
            core_terms(0, choices.neighbors, unit, own),
            axes=[(list(axis.columns), axis.levels.ravel().tolist()) for axis in axes],
            n_columns=n_columns,
            targets=[-1.0, 1.0] if bounds is None else bin_centers(target_bins, *bounds).tolist(),
            loss=choices.core_loss,
            l2_strength=l2_strength,
            intercept=choices.intercept,
            budget=core_budget(payment.budget),
        )

    source = Source(X, y, beside)
    check_unit_columns(None, source)

    def release(rows: Rows, spec: _core.HistogramSpec, _: Paid) -> Outcome[BaselineFit]:
        on_violation, n_threads = choices.on_violation, choices.n_threads
        released = _core.release(spec, rows.records, on_violation=on_violation, n_threads=n_threads, seed=choices.seed)
        result = choices.result(
            "projected_histogram",
            released["params"],
            rows,
            l2_strength=l2_strength,
            n_cells=spec.n_cells,
            **{**choices.recorded(rows.n_records, released), "on_violation": None},
        )
        return result, ()

    return run(payment, Kind(choices=choices, resolve=resolve, release=release, sums=False), source)
