"""Transformers that need no data to be fitted, so that no step before a private model reads the records in the open."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import validate_data

from dpci.base.validation import broken, check_positive
from dpci.base.warn import warn
from dpci.data.arrays import Table, known
from dpci.data.persons import check_no_column_of_persons
from dpci.errors import DpciWarning, InvalidInput
from dpci.model.keywords import check_references
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.schema.table import Table as NamedColumns

# The type of the rows stays.
_DTYPES = (np.float64, np.float32)
# Entries of a dense table that are worked on at a time, which bounds the memory beside the copy that is returned.
_BLOCK = 2**18


class RowNormClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale rows that are longer than a public bound down to it; shorter ones stay as they are.

    What happens to a row depends on that row alone, so the step costs no privacy and needs no fit.

    Parameters
    ----------
    row_norm : float
        Public bound on the Euclidean norm of a row, finite and above zero.

    Examples
    --------
    >>> from dpci.sklearn import RowNormClipper
    >>> RowNormClipper(row_norm=1.0).transform([[0.3, 0.4], [3.0, 4.0]]).round(6).tolist()
    [[0.3, 0.4], [0.6, 0.8]]
    """

    def __init__(self, row_norm: float = 1.0) -> None:
        self.row_norm = row_norm

    def fit(self, X: Table, y: ArrayLike | None = None) -> Self:  # noqa: ARG002  # scikit-learn's signature
        """Check the parameter and note the columns; nothing else is learnt.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : object
            Ignored.

        Returns
        -------
        self
            With ``n_features_in_`` and, for frames, ``feature_names_in_``.

        Raises
        ------
        InvalidInput
            For a bound that is not finite and above zero.
        """
        check_positive("row_norm", self.row_norm)
        validate_data(self, known("X", X), accept_sparse="csr", dtype=_DTYPES)
        return self

    def transform(self, X: Table) -> Any:  # noqa: ANN401  # an array or a sparse matrix, as X is
        """Return the rows, with those above the bound scaled down to it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Finite numbers; float32 and float64 keep their type, sparse rows become CSR.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            A copy.
        """
        bound = check_positive("row_norm", self.row_norm)
        X = known("X", X)
        checks = {"accept_sparse": "csr", "dtype": _DTYPES, "copy": True}
        if hasattr(self, "n_features_in_"):
            rows = validate_data(self, X, reset=False, **checks)
        else:  # without a fit there are no columns to compare with
            rows = check_array(X, estimator=self, input_name="X", **checks)
        if isinstance(rows, np.ndarray):
            step = max(1, _BLOCK // rows.shape[1])
            for start in range(0, len(rows), step):
                block = rows[start : start + step]
                owner = np.repeat(np.arange(len(block)), block.shape[1])
                block[:] = _clipped(block.ravel(), owner, len(block), bound).reshape(block.shape)
            return rows
        rows.sum_duplicates()
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        rows.data = _clipped(rows.data, owner, rows.shape[0], bound)
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PublicScaler(TransformerMixin, BaseEstimator):
    """Turn the columns of a frame into bounded numbers by a public schema; every row is in ``schema.rows``.

    Ranges and categories come from the schema and not from the data, so the step costs no privacy and needs no fit.

    Parameters
    ----------
    schema : dpci.schema.Schema
        Public description of the columns; columns that it does not name, its target among them, are left out. It must
        not name a column of persons: estimators take the ids, as ``persons`` of ``fit``.

    Examples
    --------
    >>> from dpci.schema import ClassTarget, NumericColumn, Schema
    >>> from dpci.sklearn import PublicScaler
    >>> ages = NumericColumn(name="age", lower=20, upper=100)
    >>> schema = Schema(columns=(ages,), target=ClassTarget(column="ill", negative="no", positive="yes"))
    >>> PublicScaler(schema).transform({"age": [20, 60, 120]}).round(6).tolist()
    [[-1.0], [0.0], [1.0]]
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def fit(self, X: NamedColumns | None = None, y: ArrayLike | None = None) -> Self:  # noqa: ARG002  # scikit-learn's
        """Check the parameter; nothing is learnt, and no data are needed.

        Parameters
        ----------
        X, y : object
            Ignored.

        Returns
        -------
        self
            The same object.

        Raises
        ------
        InvalidInput
            For anything but a schema, and one that names a column of persons.

        Warns
        -----
        DpciWarning
            With the code ``"no_reference"``, for indicators that an estimator without a ridge cannot tell apart.
        """
        schema = self._checked_schema()
        try:
            check_references(schema, fit_intercept=True, ridge="a ridge to the estimator")
        except InvalidInput as error:
            message = f"an estimator without a ridge, such as PrivateLinearRegression, cannot be fitted: {error}"
            warn(DpciWarning(message, code="no_reference"))
        return self

    def transform(self, X: NamedColumns) -> NDArray[np.float64]:
        """Return bounded rows.

        Parameters
        ----------
        X : frame or mapping of columns
            Anything with ``X[name]`` for the columns of the schema.

        Returns
        -------
        ndarray of shape (n_samples, len(schema.names))
            Rows in ``schema.rows``, of norm at most 1 unless the schema's encoding is "full_range".

        Raises
        ------
        InvalidInput
            For columns and values that the schema refuses.
        """
        return self._checked_schema().features(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:  # noqa: ARG002
        """Names of the columns of the rows, which the schema alone decides.

        Parameters
        ----------
        input_features : object
            Ignored; pipelines pass it.

        Returns
        -------
        ndarray of str objects
            Names of ``schema.names``.
        """
        return np.array(self._checked_schema().names, dtype=object)

    def _checked_schema(self) -> Schema:
        if not isinstance(self.schema, Schema):
            raise broken("schema", _rule(self.schema), self.schema)
        check_no_column_of_persons(self.schema.persons, "the ids would be lost on the way to the estimator")
        return self.schema

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        # Columns are taken by name, which an array has not.
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags


def _clipped(values: NDArray[Any], owner: NDArray[np.intp], n_rows: int, bound: float) -> NDArray[Any]:
    """Return entries, of the rows ``owner``, such that no row is longer than the bound.

    Norms are those of rows divided by their greatest entry, which neither overflow nor underflow. That of one entry is
    exact; others are off by rounding, so rows within that of the bound are scaled too, and a little below it.
    """
    exact = values.astype(np.float64)
    greatest = np.zeros(n_rows)
    np.maximum.at(greatest, owner, np.abs(exact))
    unit = exact / np.where(greatest > 0.0, greatest, 1.0)[owner]
    norms = np.sqrt(np.bincount(owner, unit * unit, minlength=n_rows))
    norms = np.maximum(norms, 1.0)  # the greatest entry alone is 1; rows of zeros divide nothing
    n_entries = np.bincount(owner[unit != 0.0], minlength=n_rows)
    rounding = np.where(n_entries > 1, (n_entries + 8.0) * np.finfo(np.float64).eps, 0.0)
    with np.errstate(over="ignore"):  # an infinite norm is above the bound
        above = (greatest * norms * (1.0 + rounding) > bound)[owner]
    room = bound * (1.0 - rounding - 8.0 * np.finfo(values.dtype).eps)
    clipped = values.copy()
    clipped[above] = unit[above] * (room / norms)[owner[above]]
    return clipped


def _rule(schema: object) -> str:
    """Return what a schema must be, with the way there from one with gaps."""
    way = " whose bounds are known (release them first: dpci.release_schema(table, schema=...).schema)"
    return f"a dpci.schema.Schema{way * isinstance(schema, PartialSchema)}"
