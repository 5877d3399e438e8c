"""The best candidate by losses that are computed from the data. Never private."""

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.validation import check_count
from dpci.base.warn import warn
from dpci.budgets import Budget, check_budget
from dpci.data.arrays import Table
from dpci.data.rows import Source, read
from dpci.errors import PrivacyLeakWarning
from dpci.losses import LossLike
from dpci.tuning.candidates import (
    Candidates,
    TuneKeywords,
    candidate_settings,
    check_candidates,
    check_keywords,
    validation_loss_of,
)
from dpci.tuning.result import OracleSearch


def oracle_not_private(
    X: Table,
    y: ArrayLike,
    *,
    budget: Budget,
    candidates: Candidates,
    n_runs: int = 20,
    validation_loss: LossLike | None = None,
    **keywords: Unpack[TuneKeywords],
) -> OracleSearch:
    """Search the candidates exhaustively on the data, to show what tuning could reach at best. NOT PRIVATE.

    For each candidate the mean loss over the records of simulated models at the whole budget, averaged over the noise;
    models are moved into their ball before. Neither the losses nor the choice may be released.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, as for :func:`dpci.fit`.
    y : array-like of shape (n_samples,)
        Targets, as for :func:`dpci.fit`.
    budget : PureDP, ZCDP or ApproxDP
        Budget that each simulated model spends.
    candidates : iterable of mappings
        See :func:`tune`; checked likewise, but no radius is needed, and models without one are not moved.
    n_runs : int
        Simulated models per candidate.
    validation_loss : str or object of dpci.losses, optional
        See :func:`tune`.
    **keywords
        Keywords of :func:`dpci.fit` for all candidates; ``seed`` (0 if not given) makes the search repeatable.

    Returns
    -------
    OracleSearch
        The losses and the best candidate.

    Raises
    ------
    InvalidInput
        For arguments out of range, or a combination that is not offered.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    check_keywords("oracle_not_private", keywords)
    message = "the search is NOT PRIVATE: its scores have no noise, so neither its choice nor its losses are private"
    warn(PrivacyLeakWarning(message))
    grid = check_candidates(candidates)
    n_runs = check_count("n_runs", n_runs)
    settings = candidate_settings(grid, dict(keywords), check_budget(budget))
    loss = validation_loss_of(validation_loss, settings)
    first = settings[0]
    models = [s.without_moments() for s in settings]
    rows, specs = read(Source(X, y), first, lambda n, d: [model.spec(n, d) for model in models])
    losses = _core.candidate_losses(
        specs,
        loss.to_core(),
        rows.records,
        on_violation=first.on_violation,
        n_runs=n_runs,
        seed=first.seed or 0,
        n_threads=first.n_threads,
    )
    means = losses.mean(axis=1)
    index = int(np.argmin(means))
    errors = losses.std(axis=1, ddof=1) / math.sqrt(n_runs) if n_runs > 1 else np.full(len(grid), math.nan)
    return OracleSearch(params=dict(grid[index]), index=index, losses=means, std_errors=errors)
