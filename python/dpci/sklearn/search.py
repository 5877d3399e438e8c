"""A private search over parameters: one budget pays for the choice and for the fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpci.base.habits import ESTIMATORS, SEARCHES, instead
from dpci.base.threads import threads
from dpci.base.validation import advised_class, check_choice
from dpci.budgets import Budget
from dpci.data.arrays import Table
from dpci.data.rows import Source
from dpci.errors import InvalidInput
from dpci.losses import LossLike
from dpci.mechanisms import check_mechanism
from dpci.model.settings import AUTO
from dpci.sklearn.base import PrivateLinearEstimator, Releasing
from dpci.sklearn.classifiers import PrivateMultinomialRegression
from dpci.sklearn.leaks import warn_of_fitting
from dpci.sources.described import check_unit_columns
from dpci.tuning.candidates import Search
from dpci.tuning.choose import release_tuned
from dpci.tuning.result import TuneResult

# Parameters of the estimators that candidates may differ in, and the keywords of a fit that these become.
_FREE = ("l2_strength", "radius", "h", "loss", "mechanism")
_CANDIDATE = ("l2_strength", "loss", "mechanism")

Searched: TypeAlias = PrivateLinearEstimator | PrivateMultinomialRegression


def _estimator_has(name: str) -> Callable[["PrivateGridSearch"], bool]:
    return lambda search: hasattr(search.estimator, name)


class PrivateGridSearch(Releasing):
    """Choose parameters of a private estimator and fit it, both within the estimator's one budget.

    scikit-learn's ``GridSearchCV`` compares candidates on held-out records without noise: what it chooses is not
    private, and each of its fits spends the budget again. This search releases the choice and the model together by
    :func:`dpci.tuning.tune`, by repeated private runs or by parts of the records, and everything that it leaves is
    private at the budget of the estimator. There are no scores to look at, because scores would not be private.

    Parameters
    ----------
    estimator : private estimator
        The estimator to tune, any of this package but PrivateLinearRegression. Its budget pays for choice and fit
        together. Put transformers before the search, in a pipeline. A PrivateMultinomialRegression must have
        ``classes``.
    param_grid : dict or list of dicts
        Public candidates as for ``GridSearchCV``: lists of values of "l2_strength", "radius", "h", "loss" and
        "mechanism". Those that the estimator does not have are refused.
    method : {"repeat", "chunks"}
        The best of a random number of private runs on all records, or one model on a part of the records for each
        candidate.
    selection_share : float
        Share of the budget that the choice takes. With 1 the chosen model itself is released, without intervals, and
        the budget pays for choice and fit together.
    validation_loss : str or object of dpci.losses, optional
        The loss by which candidates are compared. None: their own; it must be given if they differ in ``h`` or
        ``loss``.
    validation_radius : float, optional
        Radius of a ball. Models of candidates without a radius are projected into it before they are compared, which
        bounds their loss.
    shape : float
        For "repeat": shape of the distribution of the number of runs.
    expected_runs : float, optional
        For "repeat": mean of that distribution.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted clone with the chosen parameters and, as its budget, the part that its fit spent (with
        ``selection_share=1`` all of it, and no moments). It has no ledger, so that it can be given away.
    best_params_ : dict
        The chosen candidate.
    best_index_ : int
        Its position in the grid.
    result_ : TuneResult
        Everything that was released; ``result_.privacy`` has what choice and fit spent.
    classes_ : ndarray of shape (n_classes,)
        The classes, for classifiers; of two, (negative, positive).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X is a frame whose columns are named by strings.

    References
    ----------
    Papernot & Steinke (2022), "Hyperparameter tuning with Rényi differential privacy"; Wu, Fredrikson, Wu, Jha &
    Naughton, "Revisiting differentially private regression"; docs/tuning.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpci.sklearn import PrivateGridSearch, PrivateLogisticRegression
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> grid = {"l2_strength": [0.01, 0.1]}
    >>> search = PrivateGridSearch(PrivateLogisticRegression(epsilon=2.0), grid, validation_radius=4.0)
    >>> search = search.fit(X, X[:, 0] > 0)
    >>> sorted(search.best_params_), search.result_.spent, search.best_estimator_.epsilon
    (['l2_strength'], PureDP(epsilon=2.0), 1.0)
    """

    result_: TuneResult
    best_estimator_: Searched

    def __init__(
        self,
        estimator: Searched,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        method: Literal["repeat", "chunks"] = "repeat",
        selection_share: float = 0.5,
        validation_loss: LossLike | None = None,
        validation_radius: float | None = None,
        shape: float = 1.0,
        expected_runs: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.method = method
        self.selection_share = selection_share
        self.validation_loss = validation_loss
        self.validation_radius = validation_radius
        self.shape = shape
        self.expected_runs = expected_runs

    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Choose and fit with differential privacy, spending the budget of the estimator once more at every call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, as for the estimator.
        y : array-like of shape (n_samples,)
            Targets, as for the estimator.
        sample_weight, persons
            See the estimator.

        Returns
        -------
        self
            With the attributes above, which hold released and public values only.

        Raises
        ------
        InvalidInput
            For an estimator that is not one of this package, parameters that candidates may not differ in, and what
            :func:`dpci.tuning.tune` refuses.
        ValueError, TypeError
            For data, and for a grid, that scikit-learn refuses.
        RowNormViolation, RegularizationTooSmall, NotConverged, BudgetExceeded, LedgerError, ReleaseFailed
            See :func:`dpci.tuning.tune`. Nothing is released by any error.

        Warns
        -----
        PrivacyLeakWarning
            If the classes were inferred from ``y`` and no seed is given. Also if the fit is called by a package of
            scikit-learn that compares fits, repeats them or reads the data itself (docs/sklearn.md).
        SeededNoiseWarning
            If the estimator has a seed.
        """
        warn_of_fitting()
        best = clone(_checked_estimator(self.estimator))
        unit, weights, beside = best._given(persons, sample_weight)  # noqa: SLF001  # the base class of this package
        source = Source(X, y, beside, best._prepared)  # noqa: SLF001  # as above
        check_unit_columns(None, source)
        grid = _checked_grid(self.param_grid, best)
        candidates = [_keywords(clone(best).set_params(**params)) for params in grid]
        common = {name: value for name, value in _keywords(best).items() if name not in _CANDIDATE}
        search = Search(
            method=check_choice("method", self.method, ("repeat", "chunks")),
            # One without λ is refused: the default rule is for fits that are not compared.
            candidates=[
                {
                    name: value
                    for name, value in keywords.items()
                    if name in _CANDIDATE and (name, value) != ("l2_strength", AUTO)
                }
                for keywords in candidates
            ],
            selection_share=self.selection_share,
            validation_loss=self.validation_loss,
            validation_radius=self.validation_radius,
            shape=self.shape,
            expected_runs=self.expected_runs,
        )
        budget, keywords = common.pop("budget"), {**common, "persons": unit, "weights": weights}
        with threads(best.n_threads):
            tuned = release_tuned(source, search, budget=budget, ledger=best.ledger, keywords=keywords)
        self.result_ = tuned
        self.best_index_ = cast("int", tuned.index)
        self.best_params_ = grid[self.best_index_]
        best.set_params(**self.best_params_, **_budget_params(tuned.result.budget), ledger=None)
        if self.selection_share == 1:  # the fits that were compared are without moments, whatever a candidate says
            best.set_params(mechanism=replace(check_mechanism(best.mechanism), moments="none", split=None))
        self.best_estimator_ = best._take(tuned.result)  # noqa: SLF001  # of the estimator's own kind
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            self.__dict__.pop(name, None)  # an earlier fit may have had names
            if hasattr(best, name):
                setattr(self, name, getattr(best, name))
        return self

    def predict(self, X: Table) -> NDArray[Any]:
        """Predictions of the fit with the chosen parameters, shape (n_samples,)."""
        return cast("NDArray[Any]", self._fitted().predict(X))

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Table) -> NDArray[np.float64]:
        """Probabilities of the classes by row, shape (n_samples, n_classes); for logistic regressions."""
        return cast("NDArray[np.float64]", self._fitted().predict_proba(X))

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Table) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`."""
        return cast("NDArray[np.float64]", self._fitted().predict_log_proba(X))

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Table) -> NDArray[np.float64]:
        """Linear predictor of each row, shape (n_samples,), or a column for each of several classes."""
        return cast("NDArray[np.float64]", self._fitted().decision_function(X))

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of the estimator; not private, with a warning, unless the rows are public.

        ``sample_weight`` weights the score only, whatever weights the fit had.
        """
        return float(self._fitted().score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        searched = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(searched, name))
        tags.non_deterministic = True
        return tags

    def _released(self) -> Any:  # noqa: ANN401  # the result of its own kind
        check_is_fitted(self)
        return self.result_.result

    def _fitted(self) -> Any:  # noqa: ANN401  # what it has depends on its class
        check_is_fitted(self)
        return self.best_estimator_


def _checked_estimator(estimator: object) -> Searched:
    if not isinstance(estimator, Searched):
        raise InvalidInput(
            "estimator must be a private estimator with an l2_strength, such as PrivateLogisticRegression (put "
            f"transformers before the search, in a pipeline), got {type(estimator).__name__}"
        )
    if isinstance(estimator, PrivateMultinomialRegression) and estimator.classes is None:
        raise InvalidInput(
            "classes of the estimator must be given for a search over a PrivateMultinomialRegression, got "
            "classes=None (a fit alone can read them off y)"
        )
    return estimator


advised_class(PrivateGridSearch, SEARCHES)


def _checked_grid(param_grid: object, estimator: Searched) -> list[dict[str, Any]]:
    grid = list(ParameterGrid(param_grid))
    allowed = [name for name in _FREE if name in estimator.get_params(deep=False)]
    for name in (name for params in grid for name in params):
        if name not in allowed:
            raise InvalidInput(
                f"candidates must differ only in {', '.join(allowed)}, got {name!r} in param_grid"
                f"{instead(name, ESTIMATORS)}"
            )
    return grid


def _keywords(estimator: Searched) -> dict[str, Any]:
    return estimator._keywords()  # noqa: SLF001  # the base class of this package


def _budget_params(budget: Budget) -> dict[str, float | None]:
    return {"epsilon": None, "delta": None, "rho": None, **budget.parameters()}
