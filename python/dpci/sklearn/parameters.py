"""Parameters of the private estimators, each with its type, its default and its description in one place.

The classes are apart from the estimators because scikit-learn has no type information: with it among the base classes,
mypy would let a constructor take any argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from dpci.budgets import Neighbors
from dpci.data.arrays import OnViolation
from dpci.ledger.ledger import Ledger
from dpci.losses import LossLike
from dpci.mechanisms import MechanismLike
from dpci.rows import RowDomain
from dpci.unit import Persons, Weights


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters:
    """Parameters of every private estimator.

    Parameters
    ----------
    epsilon : float or None
        Privacy loss of the fit; alone it is pure differential privacy (``dpci.PureDP``).
    delta : float, optional
        With ``epsilon``: approximate differential privacy (``dpci.ApproxDP``).
    rho : float, optional
        Zero-concentrated differential privacy (``dpci.ZCDP``), with ``epsilon=None`` and ``delta=None``.
    row_norm : float, optional
        Public bound on the Euclidean norm of a row, without the intercept. None: 1, unless other bounds are given.
    on_violation : {"clip", "error"}
        Treatment of rows and targets beyond their bounds: scale or move them to the bounds, which is part of the model,
        or refuse the data.
    fit_intercept : bool
        Whether there is an intercept.
    neighbors : {"replace_one", "add_remove"}
        Which neighbouring data sets the guarantee makes hard to tell apart: those with one record replaced, or with one
        added or removed.
    n_public : int, optional
        Public stand-in for the number of rows, for "add_remove".
    persons : Persons, optional
        How many rows of a person count, for fits with ``persons=ids``: ``dpci.Persons(max_rows=3)``. None: all rows.
    weights : Weights, optional
        The public bound and total of ``sample_weight``, required by fits with such weights:
        ``dpci.Weights(bound=4.0)``.
    ledger : Ledger, optional
        The ledger that pays for every fit. Clones share it. It is pickled with the estimator: call
        ``set_params(ledger=None)`` before you save a fitted model for others.
    n_threads : int, optional
        Threads; None: all cores.
    seed : int, optional
        For tests and simulations only: noise from a seed is not private, and a warning says so. It is not called
        ``random_state``, because scikit-learn's ensembles set every parameter of that name.
    """

    epsilon: float | None = 1.0
    delta: float | None = None
    rho: float | None = None
    row_norm: float | None = None
    on_violation: OnViolation = "clip"
    fit_intercept: bool = True
    neighbors: Neighbors = "replace_one"
    n_public: int | None = None
    persons: Persons | None = None
    weights: Weights | None = None
    ledger: Ledger | None = None
    n_threads: int | None = None
    seed: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class PenalisedParameters(CommonParameters):
    """Parameters of the estimators that minimise a regularised risk.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is an intercept; it is regularised like the coefficients, which the privacy proof needs.
    l2_strength : float or "auto"
        Regularisation λ > 0 of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. "auto": what public values recommend for predictions (docs/sklearn.md, "The default λ"); ``result_``
        has it.
    intercept_scale : float
        Size of the constant column behind the intercept; a larger one weakens the regularisation of the intercept and
        needs more noise.
    """

    l2_strength: float | Literal["auto"] = "auto"
    intercept_scale: float = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class FitParameters(PenalisedParameters):
    """Parameters of the estimators that :func:`dpci.fit` fits.

    Parameters
    ----------
    rows : Ball or Blocks of dpci.rows, optional
        Public domain of the rows in place of ``row_norm``: bounds of each column, or group of indicators, by itself.
    """

    rows: RowDomain | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class PerturbedParameters(FitParameters):
    """Parameters of the estimators that perturb the objective unless told otherwise.

    Parameters
    ----------
    mechanism : {"newton", "objective", "output"} or object of dpci.mechanisms
        "newton": Newton steps with noisy gradients, without a ridge (docs/newton.md). "objective":
        noise is added to the objective before it is minimised. "output": to the minimiser. Objects have the options:
        shares of the budget, matrices for intervals, constants of the noise, a radius.
    """

    mechanism: MechanismLike | Literal["newton"] = "objective"


@dataclass(kw_only=True, eq=False, repr=False)
class ClassParameters(PerturbedParameters):
    """Parameters of the classifiers of two classes.

    Parameters
    ----------
    classes : (negative, positive), optional
        The public classes in increasing order. None: (False, True) where ``y`` has a boolean data type; other labels,
        also 0 and 1, are inferred from ``y``, with a ``PrivacyLeakWarning``.
    class_weight : mapping, optional
        Public weights of the two classes, such as ``{0: 1.0, 1: 5.0}``, by which rows count. The noise grows with the
        greater one. Weights that are computed from the labels, as "balanced" ones are, would not be private.
    """

    classes: Sequence[Any] | None = None
    class_weight: Mapping[Any, float] | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class HingeParameters(ClassParameters):
    """Parameters of the support vector machine.

    Parameters
    ----------
    h : float
        Half-width of the parabola that rounds the kink of the hinge at margin 1.
    """

    h: float = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class LossParameters(PerturbedParameters):
    """Parameters of the regressor whose loss is one of them.

    Parameters
    ----------
    loss : {"huber", "quantile", "squared", "poisson", "negative_binomial"} or object of dpci.losses
        The loss, with the public bound of the targets; "squared" and "poisson" need a mechanism with a ``radius``.
    """

    loss: LossLike = "huber"


@dataclass(kw_only=True, eq=False, repr=False)
class CountParameters(PerturbedParameters):
    """Parameters of Poisson regression.

    Parameters
    ----------
    radius : float
        Public bound on the norm of the parameters, intercept included, in place of that of a mechanism. The noise grows
        like its exponential.
    count_bound : float
        Public bound on a count.
    """

    radius: float = 1.0
    count_bound: float = 10.0


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeParameters(FitParameters):
    """Parameters of ridge regression.

    Parameters
    ----------
    l2_strength : float or "auto"
        Regularisation λ of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. "auto" with a moment matrix: the least λ that the noise allows
        (``l2_strength="private"``); otherwise what public values recommend for predictions (docs/sklearn.md, "The
        default λ"). ``result_`` has it.
    mechanism : {"objective", "output", "moments"} or object of dpci.mechanisms, optional
        None or "moments": noise is added to the moment matrix, which takes no ``intercept_scale``.
        ``dpci.ObjectivePerturbation(radius=...)``: to the objective before it is minimised over the ball of this
        radius. ``dpci.OutputPerturbation(radius=...)``: to the minimiser.
    target_bound : float
        Public bound on the absolute value of a target.
    """

    mechanism: MechanismLike | Literal["moments"] | None = None
    target_bound: float = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class MultinomialParameters(PenalisedParameters):
    """Parameters of multinomial regression.

    Parameters
    ----------
    l2_strength : float or "auto"
        Regularisation λ > 0 of mean loss + (λ/2)·||params||²; public, and part of the definition of the target of the
        intervals. It acts on the log odds of each class against the reference.
        "auto": what public values recommend for predictions (docs/sklearn.md, "The default λ"); ``result_`` has it.
    classes : sequence of labels, optional
        The public classes, 3 to 20 of them, the reference first. None: inferred from ``y``, with a
        ``PrivacyLeakWarning``; the reference is then the smallest label.
    mechanism : {"objective", "output"} or object of dpci.mechanisms, optional
        Where the noise is added: to the risk, or to the minimiser. None: "output" with ``rho``, otherwise "objective".
    """

    classes: Sequence[Any] | None = None
    mechanism: MechanismLike | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class LinearParameters(CommonParameters):
    """Parameters of least squares without a penalty.

    Parameters
    ----------
    delta : float, optional
        With ``epsilon``: approximate differential privacy (``dpci.ApproxDP``), whose noise is much less with many
        columns.
    mu : float, optional
        Gaussian differential privacy (``dpci.GDP``), with none of the other three.
    bounds : (lower, upper), optional
        Public bounds of the columns: two numbers for all columns, or two arrays with a number for each. Give these if
        you know them; they take the place of ``row_norm``.
    rows : Ball or Blocks of dpci.rows, optional
        In place of both: the public domain of the rows.
    target_bound : float or (lower, upper)
        Public bound on the absolute value of a target, or public bounds of the targets.
    robust : bool
        Intervals that do not assume errors of equal variance (HC0), for a tenth of the budget; needs the intercept.
        With persons or weights they are so in any case.
    """

    mu: float | None = None
    bounds: tuple[ArrayLike, ArrayLike] | None = None
    rows: RowDomain | None = None
    target_bound: float | tuple[float, float] = 1.0
    robust: bool = False
