"""A released linear model: parameters, predictions and the facts that fits, selected models and baselines share."""

import os
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.guarantee import Guarantee
from dpci.base.habits import ROWS
from dpci.base.validation import advised, broken
from dpci.budgets import Budget, GaussianBudget
from dpci.data.arrays import Features, NamedRows, Table, as_features, check_columns
from dpci.data.frames import is_frame
from dpci.data.labels import Classes, labels_at, labels_of
from dpci.data.storage import stacked
from dpci.errors import InvalidInput
from dpci.losses import COUNTS, LOCATIONS, PROBABILISTIC, response
from dpci.released.record import FitRecord, ModelRecord, Record
from dpci.rows import Ball, Blocks
from dpci.schema.columns import NumericTarget
from dpci.schema.parts import rows_to_predict
from dpci.schema.table import Schema, same_columns
from dpci.schema.table import Table as NamedTable
from dpci.sources.files import is_stream, read_batches

AnyRecord = TypeVar("AnyRecord", bound=Record)
AnyBudget = TypeVar("AnyBudget", bound=GaussianBudget | None)


class PublicFacts(Generic[AnyRecord, AnyBudget]):
    """Public facts of a released model or matrix, from its record."""

    __slots__ = ("_record", "_release")
    _record: Any
    _release: AnyRecord
    """The record of the release behind it: its own, where it is no part of another."""

    def __init__(self, record: Any, release: AnyRecord | None = None) -> None:  # noqa: ANN401  # of the kind
        self._record = record
        self._release = record if release is None else release

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._release.n_samples

    @property
    def private(self) -> bool:
        """Whether noise from the operating system protects the data: False for seeded noise and for none."""
        return self._release.private

    @property
    def schema(self) -> Schema | None:
        """The public schema by which the table was encoded; None if the caller passed encoded rows."""
        return self._release.table

    @property
    def budget(self) -> AnyBudget:
        """The budget that was asked for, such as :class:`dpci.PureDP`; None for a model that is not private."""
        return self._release.budget  # type: ignore[return-value]  # that of the kind

    @property
    def spent(self) -> AnyBudget:
        """Budget that the release spent, in the notion of the budget; never more than the budget."""
        return self._release.spent  # type: ignore[return-value]  # as above


class ReleaseFacts(PublicFacts[AnyRecord, AnyBudget]):
    """Public facts of a release with its guarantee."""

    __slots__ = ()

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        return self._release.privacy

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for seeded noise.

        Raises
        ------
        InvalidInput
            For a model that is not private.
        """
        return self._release.guarantee()


_ROWS = 65_536
"""Rows of a file that are read at a time."""

AnyModel = TypeVar("AnyModel", bound=ModelRecord)


class Parameters(PublicFacts[AnyModel, AnyBudget]):
    """Parameters of a linear model, from its record."""

    __slots__ = ()

    @property
    def params(self) -> NDArray[np.float64]:
        """Parameters, shape (k,), the intercept last; those of a private model are released.

        With a schema they are of the encoded columns.
        """
        return self._release.params

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters; the intercept is called "intercept"."""
        return self._release.names

    @property
    def l2_strength(self) -> float:
        """The regularisation λ of the mean objective, which is part of the definition of the target."""
        return self._release.l2_strength

    @property
    def loss(self) -> dict[str, Any]:
        """Name, parameter and public bounds of the loss."""
        return deepcopy(self._release.loss)


class Released(Parameters[AnyModel, AnyBudget]):
    """Parameters, predictions and public facts of a linear model, from its record."""

    __slots__ = ()
    _record: AnyModel

    @property
    def classes(self) -> Classes | None:
        """(negative, positive) in the caller's labels; None for real targets.

        Labels of a schema are integers if all of them are whole numbers, and otherwise texts.
        """
        return labels_of(self._record.classes, self._record.table)

    @advised(ROWS)
    def decision_function(
        self, X: Table | NamedTable | Path | str, *, schema: Schema | None = None
    ) -> NDArray[np.float64]:
        """Linear predictor of each row, shape (n,), the intercept included: in the unit of the schema's target, if any.

        For counts it is the log of the mean, for classes the log odds or a score. If the fit had a schema, frames,
        mappings of columns, structured arrays and the paths of CSV and Parquet files are tables like the fitted one,
        and are encoded by that schema; a row with an empty cell of a column with ``missing="drop"`` has NaN. Arrays
        without names are rows that are encoded already. ``schema``, if it is given, must have the same columns as that
        schema.
        """
        facts = self._record
        features = features_of(facts, X, schema=schema)
        self._check_predicted(features)
        if facts.intercept_scale is None:
            return in_target_units(facts, features.product(facts.params))
        intercept = float(facts.intercept_scale * facts.params[-1])
        return in_target_units(facts, features.product(facts.params[:-1]) + intercept)

    def _check_predicted(self, features: Features) -> None:
        """Refuse rows whose predictor is not known; of most models it always is."""

    @advised(ROWS)
    def predict(self, X: Table | NamedTable | Path | str, *, schema: Schema | None = None) -> NDArray[Any]:
        """Predicted class of each row in the caller's labels, or predicted target, shape (n,).

        For counts the prediction is the mean, for a quantile loss the quantile. Labels of a schema are as in
        :attr:`classes`, and numbers are in the unit of its target. A row that misses a value has None as its class.
        ``X`` and ``schema`` are as for :meth:`decision_function`.
        """
        facts = self._record
        if facts.loss["name"] in (*LOCATIONS, *COUNTS):
            return response(facts.loss["name"], self.decision_function(X, schema=schema))
        if facts.classes is None:
            raise InvalidInput(
                "predict requires a loss with two classes, got real targets (decision_function gives the linear "
                "predictor)"
            )
        score = self.decision_function(X, schema=schema)
        # Of losses that model a probability the class with more than a half: for most that is the sign.
        positive = response(facts.loss["name"], score) > 0.5 if facts.loss["name"] in PROBABILISTIC else score > 0
        return labels_at(labels_of(facts.classes, facts.table), positive.astype(np.intp), np.isnan(score))

    @advised(ROWS)
    def predict_proba(self, X: Table | NamedTable | Path | str, *, schema: Schema | None = None) -> NDArray[np.float64]:
        """Probabilities of (negative, positive), or of labels (0, 1), by row, shape (n, 2), where the loss models them.

        X and ``schema`` as for :meth:`decision_function`.
        """
        name = self._record.loss["name"]
        if name not in PROBABILISTIC:
            raise InvalidInput(
                f"predict_proba requires a loss that models a probability, such as the logistic loss, got {name!r}"
            )
        score = self.decision_function(X, schema=schema)
        # Of symmetric links the complement keeps its digits.
        negative = np.exp(-np.exp(score)) if name == "cloglog" else response(name, -score)
        return np.column_stack([negative, response(name, score)])


class FitFacts(Parameters[FitRecord, Budget], ReleaseFacts[FitRecord, Budget]):
    """Parameters and facts of the release of a fit; k is the number of parameters."""

    __slots__ = ()

    @property
    def hessian(self) -> NDArray[np.float64] | None:
        """Released Hessian of the mean objective, shape (k, k); None without moments.

        With a schema it is that of the encoded columns. As released, and perhaps indefinite, unless :attr:`privacy`
        says that it was projected. With ``mechanism="newton"`` that of the whitened rows, at the start of the last
        step.
        """
        return self._release.hessian

    @property
    def gradient_cov(self) -> NDArray[np.float64] | None:
        """Released covariance of the gradient of one record, shape (k, k); None without moments.

        As released or projected, like the Hessian.
        Under add/remove its second moment over ``n_samples``, from which no mean is subtracted.
        """
        return self._release.gradient_cov

    @property
    def rows(self) -> Ball | Blocks:
        """Public domain of the rows, without the intercept."""
        return self._release.rows

    @property
    def mechanism(self) -> str:
        """Where the noise enters: "objective", "output" or the steps, "newton"."""
        return self._release.mechanism


FitModel: TypeAlias = Released[FitRecord, Budget]
"""A fitted model of one linear predictor."""


def record_of(model: Released[AnyModel, Any]) -> AnyModel:
    """Return the record of a model, for the rooms that show it."""
    return model._record  # noqa: SLF001  # of this module's own class


def in_target_units(record: ModelRecord, predictor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return linear predictors of a real target in the unit of the schema's target, where there is one."""
    target = None if record.table is None else record.table.target
    if not isinstance(target, NumericTarget) or record.loss["name"] not in (*LOCATIONS, *COUNTS):
        return predictor
    # The logarithm of the mean of scaled counts is that of counts and that of their scale.
    return target.decode(predictor) if record.loss["name"] in LOCATIONS else predictor - np.log(target.scaling[1])


def encoded_table(known: Schema | None, X: Any) -> NamedRows | None:  # noqa: ANN401  # whatever the caller has
    """Return the rows of a table with names, or of a file, as the schema of a model encodes them; None for others."""
    if isinstance(X, str | os.PathLike):
        if known is None:
            raise InvalidInput(f"X must hold rows if the model has no schema, got the path {str(X)!r}")
        if is_stream(Path(X)):
            raise InvalidInput(f"the path of a table must be that of a file, got {str(X)!r}")
        needed = [column.name for column in known.columns]
        # One part of the table is in memory at a time.
        parts = [rows_to_predict(known, part) for part in read_batches(Path(X), n_rows=_ROWS, columns=needed)]
        missing = np.concatenate([part.missing for part in parts if part.missing is not None]) if known.drops else None
        return NamedRows(stacked([part.values for part in parts]), known.names, missing=missing)
    named = is_frame(X) or isinstance(X, Mapping) or bool(getattr(getattr(X, "dtype", None), "names", None))
    return rows_to_predict(known, X) if known is not None and named else None


def features_of(record: ModelRecord, X: Table | NamedTable | Path | str, *, schema: Schema | None = None) -> Features:
    """Return rows as a model takes them: a table with names is encoded by the schema of the model, if it has one."""
    known = record.table
    if schema is not None and not isinstance(schema, Schema):
        raise broken("schema", "a dpci.schema.Schema or None", schema)
    if schema is not None and (known is None or not same_columns(known, schema)):
        rule = "None for a model without a schema" if known is None else "that of the fit, or one of equal columns"
        raise InvalidInput(f"schema must be {rule}, got another one, with the columns {', '.join(schema.names)}")
    encoded = encoded_table(known, X)
    rows: Any = X if encoded is None else encoded
    return check_columns(as_features(rows), record.columns, named=record.named_columns)
