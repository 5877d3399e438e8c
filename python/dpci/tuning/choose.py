"""Private choice of parameters: λ, radius, loss or mechanism, chosen without reading the data in the open.

The data are read once: the choice and the fit that follows it take the same rows, and the public rule calibrates as
soon as the numbers of rows and columns are known.
"""

import dataclasses
from functools import partial
from typing import Any, Literal, Unpack

from numpy.typing import ArrayLike

from dpci import _core
from dpci.accounting.costs import Step
from dpci.base.habits import KEYWORDS
from dpci.base.progress import is_watched, progress_bar
from dpci.base.validation import advised, check_flag, check_positive, check_real
from dpci.budgets import Budget, check_budget, core_budget, read_neighbors, split_budget
from dpci.data.arrays import NamedRows, Table
from dpci.data.rows import Rows, Source
from dpci.errors import InvalidInput
from dpci.inference.remarks import remarks
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import Kind, Outcome, Paid, run
from dpci.losses import LossLike
from dpci.model.fit import fit_rows
from dpci.released.model import record_of
from dpci.released.record import FitRecord, SelectedRecord
from dpci.released.whole import Whole
from dpci.schema.table import Schema
from dpci.schema.table import Table as NamedTable
from dpci.sources.described import check_schema, check_unit_columns, described
from dpci.tuning.candidates import (
    Candidates,
    Search,
    TuneKeywords,
    check_candidates,
    check_keywords,
    check_share,
    models_asked,
    plain_params,
    validation_loss_of,
)
from dpci.tuning.record import TuneRecord
from dpci.tuning.result import TuneResult
from dpci.tuning.rule import tune_by_rule
from dpci.tuning.selection import Selection
from dpci.unit import PersonsLike, Weights, given_unit

__all__ = ["tune"]

_RUNS_PER_CANDIDATE = 3.0
_SEED_BITS = 2**64 - 1


@advised(KEYWORDS)
def tune(
    X: Table | NamedTable,
    y: ArrayLike | None = None,
    *,
    budget: Budget,
    schema: Schema | None = None,
    candidates: Candidates | None = None,
    method: Literal["repeat", "chunks", "public_rule"] = "repeat",
    selection_share: float = 0.5,
    validation_loss: LossLike | None = None,
    validation_radius: float | None = None,
    shape: float = 1.0,
    expected_runs: float | None = None,
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    progress: bool | None = None,
    **keywords: Unpack[TuneKeywords],
) -> TuneResult:
    """Choose one of several public candidates with differential privacy, and fit it.

    All that is released, the choice and the model, is differentially private at the budget for one record replaced. A
    part of the budget pays for the choice. The rest pays for another fit with the chosen parameters, whose noise is
    fresh, so that the model has intervals. With three or more classes, models are those of
    :func:`dpci.multinomial.fit`. See docs/tuning.md for the methods and their proofs.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or table
        Rows, as for :func:`dpci.fit`, all in memory.
    y : array-like of shape (n_samples,), optional
        Targets, as for :func:`dpci.fit`.
    budget : PureDP, ZCDP or ApproxDP
        Budget to spend, choice and fit together.
    schema : dpci.schema.Schema, optional
        Public description of the table, as for :func:`dpci.fit`. Where ``rows`` gives no bounds, rows
        lie in the blocks of the schema if :func:`dpci.fit` would take them for each candidate.
    candidates : iterable of mappings
        Keywords of :func:`dpci.fit` in which the candidates differ: "l2_strength", "loss" and "mechanism", whose
        options include the radius; with three or more classes "l2_strength" and "mechanism". Public: they must not
        depend on the data. Not used by "public_rule".
    method : {"repeat", "chunks", "public_rule"}
        "repeat": the best of a random number of private runs on all records, by a noisy score (Papernot & Steinke
        2022). "chunks": one private model per candidate on its own part of the records, compared on one more part (Wu
        et al., Algorithm 5). "public_rule": :func:`public_rule`, which costs nothing.
    selection_share : float
        Share of the budget for the choice, above 0 and at most 1. With 1 the model that was chosen is released itself,
        without intervals, because its noise helped it to be chosen. Not used by "public_rule", and below 1 with three
        or more classes.
    validation_loss : str or object of dpci.losses, optional
        The loss by which candidates are compared, as a mean over records; its range on the largest ball must be known.
        None: the loss of the candidates, if it is the same.
    validation_radius : float, optional
        Radius of the ball that models of candidates without a ``radius`` are moved into to be compared, which bounds
        their loss. It does not constrain the fit, whose intervals a ``radius`` may cost.
    shape : float
        For "repeat": shape η in [0, 10] of the truncated negative binomial law of the number of runs; 1: geometric, 0:
        logarithmic. One run may spend the pure budget over 2 + η.
    expected_runs : float, optional
        For "repeat": mean of that law, above 1; None: three for each candidate. At most 20 times as many are ever made.
    persons : array-like of shape (n_samples,), str or Persons, optional
        See :func:`dpci.fit`: choice and fit protect persons, and the validation loss is the mean over persons.
    weights : Weights, optional
        See :func:`dpci.fit`; the validation loss is weighted.
    ledger : Ledger, optional
        The ledger that pays. The whole budget is recorded before noise is drawn, as for :func:`dpci.fit`.
    progress : bool, optional
        Whether to show a bar while models are compared, which needs tqdm. None: on a terminal and in a notebook, where
        it is installed. The bar is for the holder of the data, and does not stay: the number of runs of "repeat" is not
        released.
    **keywords
        Keywords of :func:`dpci.fit` for all candidates, or of :func:`dpci.multinomial.fit` if ``classes`` or the
        schema's target has three or more classes. ``dpci.AddRemove`` is refused, except by "public_rule".

    Returns
    -------
    TuneResult
        The chosen candidate and the fit.

    Raises
    ------
    InvalidInput
        For arguments out of range, arguments that the method does not use, candidates without a radius, or a
        combination that is not offered.
    RegularizationTooSmall
        If objective perturbation needs a larger ``l2_strength`` for a candidate, at its part of records and budget.
    RowNormViolation, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
        See :func:`dpci.fit`. Nothing is released by any error.

    Warns
    -----
    PrivacyLeakWarning, SeededNoiseWarning
        See :func:`dpci.fit`.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> y = X[:, 0] > 0
    >>> grid = [{"l2_strength": strength} for strength in (0.001, 0.01, 0.1)]
    >>> result = dpci.tuning.tune(X, y, budget=dpci.PureDP(2.0), candidates=grid, validation_radius=4.0)
    >>> sorted(result.params)
    ['l2_strength']
    >>> np.asarray(result.result.conf_int()).shape
    (3, 2)
    """
    search = Search(
        method=method,
        candidates=candidates,
        selection_share=selection_share,
        validation_loss=validation_loss,
        validation_radius=validation_radius,
        shape=shape,
        expected_runs=expected_runs,
    )
    source = Source(X, y)
    if schema is not None:
        source = described(source, check_schema(schema))
        if source.prepare is None and not isinstance(source.X, NamedRows):
            raise InvalidInput(f"a tuning needs a table in memory, got {type(X).__name__} (read it into a frame)")
    unit, weighing, beside = given_unit(persons, weights)
    source = source._replace(beside=beside)
    check_unit_columns(schema, source)
    check_keywords("tune", keywords)
    return release_tuned(
        source,
        search,
        budget=budget,
        ledger=ledger,
        keywords={**keywords, "persons": unit, "weights": weighing},
        schema=schema,
        progress=None if progress is None else check_flag("progress", progress),
    )


def release_tuned(
    source: Source,
    search: Search,
    *,
    budget: Budget,
    ledger: Ledger | None,
    keywords: dict[str, Any],
    schema: Schema | None = None,
    progress: bool | None = None,
) -> TuneResult:
    """Choose and fit, see :func:`tune`."""
    budget = check_budget(budget)
    method = search.checked_method()
    models_of = models_asked(keywords.get("classes"), schema)
    models_of.check(search, keywords)
    keywords = {**keywords, "schema": schema}
    payment = Payment.due(
        "dpci.tuning.tune",
        ledger,
        budget=budget,
        neighbors=read_neighbors(keywords.get("neighbors", "replace_one"))["neighbors"],
        seed=keywords.get("seed"),
        persons=keywords.get("persons") is not None,
    )
    if method == "public_rule":
        return tune_by_rule(source, payment, keywords)
    parts = split_budget(payment.budget, check_share(search.selection_share))
    grid = check_candidates(search.candidates)
    settings = models_of.candidate_settings(grid, keywords, parts[0])
    loss = validation_loss_of(search.validation_loss, settings)
    radius, expected_runs = search.validation_radius, search.expected_runs
    shape = check_real("shape", search.shape)
    runs = _RUNS_PER_CANDIDATE * len(grid) if expected_runs is None else check_real("expected_runs", expected_runs)
    models = [s.without_moments() for s in settings]

    def resolve(n_samples: int, n_columns: int) -> _core.TuningSpec:
        if parts[1] is not None:
            # Whatever is chosen has to be fitted afterwards: what cannot be is refused before anything is spent.
            for candidate in settings:
                candidate.spec(n_samples, n_columns, budget=parts[1])
        return _core.TuningSpec(
            [model.spec(n_samples, n_columns) for model in models],
            loss=loss.to_core(),
            validation_radius=None if radius is None else check_positive("validation_radius", radius),
            method=method,
            shape=shape,
            expected_runs=runs,
            budget=core_budget(parts[0]),
        )

    first = settings[0]

    def release(read: Rows, spec: _core.TuningSpec, paid: Paid) -> Outcome[TuneResult]:
        rows = models_of.named(read)
        on_violation, n_threads = first.on_violation, first.n_threads
        total = len(grid) if method == "chunks" else None
        with progress_bar(total, "models", wanted=progress) as advance:
            told = advance if progress or (progress is None and is_watched()) else None
            index, params, private = _core.release(
                spec, rows.records, on_violation=on_violation, n_threads=n_threads, seed=first.seed, progress=told
            )
        selection = Selection.from_facts(
            spec.facts(),
            method=method,
            index=index,
            candidates=[plain_params(candidate) for candidate in grid],
            budget=parts[0],
            loss=loss,
        )
        found = partial(TuneRecord, params=plain_params(grid[index]), budget=budget, selection=selection)
        if parts[1] is None:
            values = {"params": params, "private": private, "paid": paid, **_noise_of_choice(spec, selection)}
            model = _as_selected(models[index].record(spec.model(index), rows, values))
            return TuneResult(found(fit=None, model=model), grid[index]), ()
        again = dataclasses.replace(settings[index], budget=parts[1], seed=_other_seed(first.seed))
        whole = Whole("tuning", len(grid), first.neighbors, payment.charged, parts[0].parameters())
        fit = fit_rows(rows, again.spec(rows.n_records, rows.shape[1]), again, paid=paid, whole=whole)
        return TuneResult(found(fit=models_of.record(fit), model=None), grid[index]), remarks(record_of(fit))

    kind = Kind(
        choices=first,
        resolve=resolve,
        release=release,
        arrange=lambda source: source._replace(y=models_of.labels(source.y)),
        what="choice" if parts[1] is None else "result",
    )
    return run(payment, kind, source)


def _as_selected(run: FitRecord) -> SelectedRecord:
    return SelectedRecord(**{part.name: getattr(run, part.name) for part in dataclasses.fields(run)})


def _noise_of_choice(spec: _core.TuningSpec, selection: Selection) -> dict[str, Any]:
    """Return noise, seal and ball of the model that won a selection."""
    model = spec.model(selection.index)
    law, scale = model.noise_law, model.noise_scale
    cost = next(iter(selection.budget.parameters().values()))
    return {
        "radius": selection.facts["radii"][selection.index],
        "noise_law": law,
        "noise_scale": scale,
        "steps": [Step("coefficients", law, cost, scale, None, None, model.sensitivity)],
        "seals": [model.seal],
    }


def _other_seed(seed: int | None) -> int | None:
    """Return a seed whose noise is independent of that of the choice."""
    return None if seed is None else seed ^ _SEED_BITS
