"""Typed face of the Rust core. Not public: use ``dpci``; ``dpci.lowlevel`` for building blocks."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar, final, type_check_only

import numpy as np
from numpy.typing import NDArray

from dpci.accounting import costs
from dpci.data.arrays import Treatment
from dpci.data.coded import CodedRows
from dpci.data.parts import DescribedParts
from dpci.losses import Custom
from dpci.released.newton import Newton

_F64: TypeAlias = NDArray[np.float64]
_Floats: TypeAlias = _F64 | NDArray[np.float32]
_Sparse: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], _Floats, int]
_Features: TypeAlias = _Floats | tuple[_Floats, _F64, _F64] | _Sparse | CodedRows
"""Rows: C-contiguous (n, n_columns), such with (middle, half) of each column, by which it is moved and divided,
(indptr, indices, values, n_columns) with indices increasing in each row, or numbers and codes."""
_Column: TypeAlias = tuple[int, tuple[float, float] | None, bool, bool]
"""A number, its range or None, whether 0 stands apart, and whether the range was found."""
_Counts: TypeAlias = tuple[list[int], list[int]]
_Counting: TypeAlias = Callable[[list[_Column]], list[_Counts]]
_Values_co = TypeVar("_Values_co", covariant=True)

__version__: str
LANES: int
"""Replicates of a study that share each pass over the rows."""

@final
class Loss:
    """A loss with its public bounds; immutable."""

    def __new__(cls, name: str, *parameters: float) -> Loss:
        """A loss of dpci.losses by its name; parameters in the order of its class."""

    @staticmethod
    def multinomial(n_classes: int) -> Loss: ...
    @staticmethod
    def custom(loss: Custom) -> Loss:
        """Checks the declaration on a fixed public grid; raises InvalidInput where it fails."""

    name: str
    slope_bound: float
    curvature_bound: float
    one_signed: bool
    target_bounds: tuple[float, float] | None
    strong_convexity: float
    """Lower bound on the curvature, 0 where none is declared."""
    predictor_bound: float | None
    """Greatest predictor for which the bounds hold; None: all."""
    is_continued: bool
    """Whether Newton steps continue it as a straight line beyond public predictors."""
    kinked: bool
    is_likelihood: bool
    may_be_flat: bool
    def evaluate(self, u: _F64, y: _F64) -> tuple[_F64, _F64, _F64]:
        """(value, slope, curvature), elementwise."""
    def sup_slope(self, radius: float) -> float: ...
    def sup_curvature(self, radius: float) -> float: ...

@final
class Budget:
    """A budget in one of the three notions; immutable."""

    @staticmethod
    def pure(epsilon: float) -> Budget: ...
    @staticmethod
    def zcdp(rho: float) -> Budget: ...
    @staticmethod
    def approx(epsilon: float, delta: float) -> Budget: ...

@final
class Step:
    """One step of a release, see dpci.accounting.costs.Step; immutable."""

    step: costs.Name
    noise: costs.Noise
    cost: float
    scale: float
    """In a plan, that of the moments for any params."""
    hessian_scale: float | None
    levels_scale: float | None
    sensitivity: float

@final
class Seal:
    """How one released vector is sealed, see dpci.accounting.costs.Seal; immutable."""

    def __new__(cls, *, dim: int, distance: float, budget: Budget) -> Seal:
        """The seal of "values", for audits."""

    release: str
    noise: Literal["discrete_laplace", "discrete_gaussian"]
    lattice: float
    scale: int
    distance: float
    std_dev: float
    cost: dict[str, float]

@type_check_only
class PlanDict(TypedDict):
    steps: list[Step]
    seals: list[Seal]
    least_l2_strength: float
    """The fit needs l2_strength above this (0 where nothing is needed)."""
    noise_spectral_radius: float
    """r_H of the Hessian noise for unbounded params; 0 without moments."""
    noise_ratio: float
    """r_H over the strong convexity."""
    projection: str
    """"floor", "cautious" or "noise_aware": what "auto" stands for."""
    privacy_length: tuple[float, float]
    """Least and greatest length of a 95% interval of one parameter from the noise alone, without sampling."""
    tolerance: float
    """Certificate that the solver must reach."""
    row_norm: float
    """The bound on the rows with the intercept column."""
    n_params: int

@type_check_only
class _Released(TypedDict):
    steps: list[Step]
    seals: list[Seal]
    private: bool

@type_check_only
class FitDict(_Released):
    params: _F64
    hessian: _F64 | None
    gradient_cov: _F64 | None
    noise_law: Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
    noise_scale: float
    noise_spectral_radius: float
    projection: str
    """"floor", "cautious" or "noise_aware": which one was used ("none" without moments)."""

@final
class Terms:
    """How many records there are, in what neighbours differ, whose the rows are and how much they weigh; immutable."""

    def __new__(
        cls,
        n_samples: int,
        neighbors: str,
        *,
        persons: bool = False,
        max_rows: int | None = None,
        weights: tuple[float, float | None] | None = None,
        far_rows: bool = False,
    ) -> Terms:
        """n_samples is the public n (n_public under add_remove), of persons where they are the records.

        weights: bound, and what divides weighted sums; None: n_samples. far_rows: rows beyond their bounds weigh less.
        """

@final
class RowDomain:
    """Where rows lie, without the intercept: a ball, or blocks of columns; immutable, picklable."""

    @staticmethod
    def ball(norm: float) -> RowDomain: ...
    @staticmethod
    def blocks(bounds: Sequence[float], members: Sequence[int]) -> RowDomain:
        """Rows with sum |x_j| <= bounds[b] over the columns j with members[j] == b."""
    norm: float
    """Bound on the Euclidean norm of a row."""
    bounds: list[float]
    """Bounds of the blocks; empty for a ball."""
    members: list[int]
    """The block of each column; empty for a ball."""
    def with_constant(self, scale: float) -> RowDomain:
        """The same with a constant appended to every row: a block of its own."""
    def variances(self) -> _F64:
        """Variances of the coordinates of a uniform point of the blocks; empty for a ball."""
    def metric(self) -> _F64:
        """Variances in whose metric no row is longer than 1; empty for a ball."""
    def __reduce__(self) -> tuple[object, ...]: ...

@final
class Spec(_Kind[FitDict]):
    """Every public choice of a fit, validated; holds no data."""

    def __new__(
        cls,
        terms: Terms,
        *,
        n_columns: int,
        intercept: float | None,
        row_norm: RowDomain | float,
        loss: Loss,
        l2_strength: float,
        radius: float | None,
        budget: Budget,
        mechanism: Literal["objective", "output"],
        noise: Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"] | None,
        variant: Literal["standard", "cms11"],
        project: bool,
        split: tuple[float, float, float] | None,
        moments: Literal["joint", "levels", "separate", "none"],
        projection: Literal["floor", "cautious", "auto", "noise_aware"],
        calibration: Literal["tight", "paper"],
    ) -> Spec: ...

    l2_strength: float
    """With what the variant cms11 added to it."""
    slope_bound: float
    """Slope bound of the loss on the domain."""
    curvature_bound: float
    strong_convexity: float
    """Strong convexity of the objective, for every data set."""
    divisor: float
    """Divisor of sums over records that weigh at most 1: n_samples, or the total over the greatest weight."""
    noise_law: Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
    noise_scale: float
    """Noise scale of the coefficients: 1/rate or standard deviation."""
    sensitivity: float
    """Sensitivity that this noise hides."""
    seal: Seal
    """How the parameters are sealed."""
    noise_scale_slope: float
    """Its derivative in epsilon, or in rho under zCDP; delta, l2_strength and the shares fixed."""
    def plan(self) -> PlanDict: ...
    def expected_lengths(
        self,
        params: _F64,
        hessian: _F64,
        gradient_cov: _F64,
        l2_strength: float,
        neighbors: str,
        level: float,
    ) -> _F64:
        """Mean lengths of intervals over simulated releases, from the matrices of an earlier fit; not private."""

@final
class Records:
    """Rows and targets in memory, of persons and with weights where given. Nobody may write to the arrays meanwhile.

    y holds the targets (-1/1, classes from 0, or reals); persons are numbered from 0.
    """

    def __new__(
        cls, x: _Features, y: _F64, *, persons: NDArray[np.int64] | None = None, weights: _F64 | None = None
    ) -> Records: ...
    def check(
        self,
        *,
        loss: Loss,
        row_norm: RowDomain | float,
        intercept: float | None,
        on_violation: Treatment,
        n_threads: int | None,
        weight_bound: float | None = None,
    ) -> None:
        """Raise what a release of these rows would raise before it draws noise: finite, within the bounds, not empty.

        A release under the same bounds does not check them again.
        """

@final
class NewtonSpec(_Kind[NewtonDict]):
    """Every public choice of a fit by Newton steps on round rows, validated; holds no data."""

    def __new__(
        cls,
        terms: Terms,
        *,
        n_columns: int,
        intercept: float | None,
        row_norm: RowDomain | float,
        loss: Loss,
        budget: Budget,
    ) -> NewtonSpec:
        """Losses without bounded slope and curvature are refused."""

    l2_strength: float
    """0: there is no ridge."""
    slope_bound: float
    curvature_bound: float
    divisor: float
    gradient_at_0: float
    """Norm that no gradient of a record at 0 exceeds."""
    counts: tuple[int, int]
    """Radii to release, and points with bounds of their own."""
    def ridge(self, radius: float) -> float:
        """The ridge whose perturbed minimiser is the start of the last step, under pure DP; 0 for other notions."""

    def planned(self, radii: list[float], bounds: list[list[float]]) -> tuple[list[Step], list[Seal]]:
        """Steps and seals, where the radii are these, and at each point both bounds and the stretch of round rows."""

    def noise_scale(self, radii: list[float], bounds: list[list[float]], weights: list[float] | None = None) -> float:
        """Scale of the noise in the sum of the last gradients, each with its weight; without weights the least."""

    def hides_class(self, predictor: float) -> bool:
        """Whether noise hides the rarer class under pure DP, by the predictor that its released share makes."""

    def edge(self, bounds: list[float], hessian: _F64) -> float:
        """Eigenvalues of a released Hessian below it are not told from noise, where these are the last bounds."""

    def last_step(self, steps: Newton, hessian: _F64, gradient_cov: _F64) -> LastStep:
        """The last step of a fit with these released values."""

SEEN_CURVATURE: float
"""Least mean eigenvalue of the Hessian over the edge of its noise, with which such a fit has intervals."""

@final
class LastStep:
    """The last step of a fit by Newton steps: the law of its error, and whether it may be believed."""

    raised_hessian: _F64
    """The released Hessian, its eigenvalues raised to the edge of its noise."""
    def law(self) -> ErrorLaw: ...
    def unfinished(self) -> tuple[str, list[float]] | None:
        """A name, as "moving", and the numbers that show why the steps have not ended; None if they have."""
    def leverage(self) -> float:
        """How far the step moves the predictor, in units of the width of the loss, times how large that is."""
    def growth(self) -> float:
        """By how much the predictor grows in the step, in standard deviation or root mean square."""
    def shows(self, contrasts: _F64) -> list[bool]:
        """Whether each contrast is given."""

@type_check_only
class NewtonDict(_Released):
    map: _F64
    round_map: _F64
    radii: _F64
    bounds: list[list[float]]
    starts: list[list[float]]
    gradients: list[list[float]]
    weights: list[float]
    noise_scale: float
    centre: _F64
    """Centre of the ridge under pure DP."""
    ridge: float
    hessian: _F64
    gradient_cov: _F64
    moved_params: _F64
    """Parameters of moved rows."""
    params: _F64
    edge: float

@final
class Request:
    """Sums that are requested of the records, and the key of the fit; immutable, picklable."""

    def __new__(cls, name: str, point: _F64, key: bytes) -> Request:
        """name: "risk", "risk_and_hessian", "moments", "hessian", "capped_slopes", "capped_slopes_at_0",
        "capped_gradient", "capped_gradient_at_0", "slope_levels" and "slope_levels_at_0" (the cap, or the greatest
        slope, comes last), "doubled_gradient" (two numbers each), "lengths" and "second_moments" (none).
        "moved_counts": the number of entries of the map, the map, and the radii; "moved_" before another name: the
        number of entries, the map, the radius, the greatest length, the limits on gradient and Hessian, and the point;
        "derivative_counts", of moved rows: the number of bounds on gradients, these, the same of Hessians, and the
        point.

        key: 32 random bytes, which decide the fingerprints of rows.
        """

    name: str
    point: _F64
    key: bytes
    def __getnewargs__(self) -> tuple[str, _F64, bytes]: ...

@final
class Sums:
    """Sums over some of the records, with what their additions lost; immutable, picklable."""

    def __new__(cls, n_rows: int, n_records: int, fingerprint: int, numbers: _F64) -> Sums: ...
    n_rows: int
    n_records: int
    def check_same_rows(self, other: Sums) -> None:
        """Refuse sums over other rows than those of a first pass."""
    def merge(self, other: Sums) -> Sums:
        """The sums over the records of both; those over no records leave the others as they are."""
    def __getnewargs__(self) -> tuple[int, int, int, _F64]: ...

def part_sums(
    request: Request,
    records: Records,
    *,
    loss: Loss,
    row_norm: RowDomain | float,
    intercept: float | None,
    on_violation: Treatment,
    n_threads: int | None,
    tags: NDArray[np.uint64] | None = None,
    max_rows: int | None = None,
    weight_bound: float | None = None,
) -> Sums:
    """The sums over one part, whose rows are checked first; no rows have empty sums.

    tags: of persons two numbers for each row, which stand for the person in all parts. Whoever makes the first pass
    compares the persons of its parts.
    """

def fit_many(
    specs: Sequence[Spec],
    groups: Sequence[Records],
    *,
    on_violation: Treatment,
    n_threads: int | None,
    seed: int | None,
) -> list[FitDict]:
    """Fits of many groups, each on one thread; the noise of a group with a seed is that of its own stream."""

def error_components(
    hessian: _F64, gradient_cov: _F64, n_samples: float, mechanism: str, contrast: _F64
) -> tuple[_F64, _F64]:
    """For each row c of contrast (m, d): sampling variance v = c'Vc and noise multiplier a."""

@final
class ErrorLaw:
    """Law of the errors of a release: normal with covariance W (sampling + Omega noise @ noise) given Omega and W."""

    sampling: _F64
    least_sampling: _F64 | None
    noise: _F64
    factor: float
    shape: float
    @staticmethod
    def plug_in(hessian: _F64, gradient_cov: _F64, n_samples: float, mechanism: str) -> ErrorLaw: ...
    @staticmethod
    def noise_aware(matrices: NoisyMatrices) -> ErrorLaw: ...

@type_check_only
class NoisyMatrices(TypedDict):
    """Released matrices, and the public values that say what noise is in them."""

    hessian: _F64
    gradient_cov: _F64
    n_samples: float
    mechanism: str
    noise_law: str
    noise_scale: float
    l2_strength: float
    strong_convexity: float
    hessian_noise: tuple[str, float] | None
    gradient_cov_noise: tuple[str, float]
    is_likelihood: bool
    may_be_flat: bool
    rows: RowDomain | None
    """Rows with the intercept, for noise in their shape and for level totals of this scale."""
    gradients: tuple[_F64, tuple[float, float], RowDomain, float | None] | None
    """Parameters, bounds on slope and curvature, rows without the intercept, and the intercept."""
    levels_scale: float | None

def estimated_matrices(matrices: NoisyMatrices) -> tuple[_F64, _F64]:
    """Hessian and gradient covariance as they are estimated."""

@final
class NewtonStep:
    """One Newton step off the ridge: ``map @ params``, the law of its error, and which contrasts it gives."""

    map: _F64
    sampling_map: _F64
    noise_map: _F64
    covariance: _F64
    def __new__(
        cls,
        hessian: _F64,
        params: _F64,
        *,
        l2_strength: float,
        hessian_noise: tuple[str, float] | None,
        curvature: float | None,
        longest_row: float,
        mechanism: str,
    ) -> NewtonStep: ...
    def chance(self, released: _F64) -> _F64:
        """Covariance that stands for the choice of fits by how far the ridge moved them; released: of their errors."""
    def obstacles(self, contrasts: _F64, std_errors: _F64) -> list[str | None]:
        """None for a contrast that is given, else "hidden" or "ridge_too_strong"."""

@final
class ErrorShape:
    """Law of the noise of the coefficients, and shape of the gamma law of the variance of an error."""

    def __new__(
        cls, noise_law: str, noise_scale: float, dim: int, shape: float = ..., rows: RowDomain | None = None
    ) -> ErrorShape:
        """rows: with the intercept, for noise in their shape; a then has the multipliers of all coordinates."""

    def half_widths(self, v: _F64, a: _F64, level: float) -> _F64: ...
    def pvalues(self, v: _F64, a: _F64, statistic: _F64) -> _F64:
        """P(|error| >= |statistic|)."""

def monte_carlo_interval(
    shape: ErrorShape, v: _F64, a: _F64, level: float, *, n_draws: int, seed: int | None
) -> tuple[_F64, _F64]:
    """Empirical (alpha/2, 1 - alpha/2) quantiles of the error, to be added to the estimate."""

# Building blocks; not private by themselves.
def draw_noise(law: str, *, n: int, dim: int, scale: float, seed: int) -> _F64:
    """Draws, one a row, of a law of vectors or symmetric matrices; scale: 1/rate, or a std_dev, isometric for these."""

def minimize_erm(
    records: Records | DescribedParts,
    *,
    loss: Loss,
    l2_strength: float,
    radius: float | None = None,
    intercept: float | None,
    linear_term: _F64 | None,
    start: _F64 | None,
    solver: Literal["auto", "newton", "preconditioned", "lbfgs", "ball"],
    tolerance: float,
    max_iterations: int,
    n_threads: int | None,
    terms: Terms | None = None,
) -> dict[str, Any]:
    """params, certificate, n_iterations, solver. linear_term is b/n; terms: of persons or weighted rows."""

def erm_value_and_gradient(
    records: Records | DescribedParts,
    params: _F64,
    *,
    loss: Loss,
    l2_strength: float,
    intercept: float | None,
    n_threads: int | None,
) -> tuple[float, _F64]: ...
def hessian_and_gradient_cov(
    records: Records | DescribedParts,
    params: _F64,
    *,
    loss: Loss,
    l2_strength: float,
    intercept: float | None,
    n_threads: int | None,
) -> tuple[_F64, _F64]: ...
def checked_rows(
    records: Records,
    *,
    row_norm: RowDomain | float,
    on_violation: Treatment,
    intercept: float | None,
    n_threads: int | None,
) -> _F64:
    """(n, k): the rows as a fit uses them. y of -1 and 1."""

def weighted_gram(x: _F64, weights: _F64, *, n_threads: int | None) -> _F64: ...

@type_check_only
class BaselineDict(_Released):
    params: _F64

@type_check_only
class HistogramDict(BaselineDict):
    counts: _F64
    """Released counts of all cells, the levels of the target in the outermost loop, the last axis in the innermost."""

@final
class FunctionalSpec(_Kind[BaselineDict]):
    """Every public choice of the functional mechanism, validated; holds no data."""

    def __new__(
        cls,
        terms: Terms,
        *,
        n_columns: int,
        intercept: float | None,
        row_norm: float,
        polynomial: Literal["squared", "logistic"],
        target_bound: float,
        l2_strength: float,
        budget: Budget,
        calibration: Literal["tight", "paper"],
    ) -> FunctionalSpec: ...

@final
class MomentMatrixSpec(_Kind[MomentMatrixDict]):
    """Every public choice of a moment matrix, validated; holds no data. The budget is one, or the mu of Gaussian DP.

    residuals: of each regression whose residuals' moments are released its regressors, their ridge and its response;
    refined: of each whose coefficients are refined.
    """

    def __new__(
        cls,
        terms: Terms,
        *,
        n_columns: int,
        further_targets: int = 0,
        row_norm: RowDomain | float,
        target_bound: float,
        residuals: list[tuple[list[int], list[float], list[float]]],
        residual_share: float,
        refined: list[tuple[list[int], list[float], list[float]]] = ...,
        refined_share: float = 0.5,
        budget: Budget | None = None,
        mu: float | None = None,
    ) -> MomentMatrixSpec: ...

    intercept: float
    """The constant behind each row."""
    weights: _F64
    """By which the columns of a row are multiplied: 1 but for further targets, which are the last."""
    target_weight: float
    """By which targets are multiplied."""
    noise_std_dev: float
    """Standard deviation of an isometric coordinate of the noise in the matrix, the seal's included."""

    def planned(self, matrix: _F64, levels: list[list[float]] = ...) -> PlannedMatrixDict:
        """Steps and seals of a release if the matrix and the levels were these."""

@type_check_only
class PlannedMatrixDict(TypedDict):
    """Steps and seals of a matrix and what follows; points of residuals; point, cap and weight of gradients."""

    steps: list[Step]
    seals: list[Seal]
    points: list[_F64]
    refined: list[tuple[_F64, float, float]]

def sealed_std_dev(noise: str, scale: float, dim: int, seal_std_dev: float) -> float:
    """Standard deviation of an isometric coordinate of a released matrix, its seal's noise included."""

LEVELS: int
"""Number of levels of residuals."""
FINER_LEVELS: float
"""How many times finer level totals are sealed than the other entries of a Hessian; a power of two."""

def level_cap(levels: _F64, *, noise: str, scale: float) -> tuple[float, float, float, float]:
    """Cap that released levels call for, over the greatest residual.

    Then the share that is seen at one level, that at four adjacent ones, and that which the cap may cut.
    """

def clear_of_noise(std_dev: float, n_regressors: int) -> float:
    """Threshold that the least eigenvalue of the second moments of so many regressors must exceed."""

@type_check_only
class MomentMatrixDict(_Released):
    """A released moment matrix; point and moments of planned regressions.

    Of refined ones point, levels, gradient, cap and weight.
    """

    matrix: _F64
    residuals: list[tuple[_F64, _F64]]
    refined: list[tuple[_F64, _F64, _F64, float, float]]

@type_check_only
class RegressionDict(TypedDict):
    """A regression from a moment matrix; k regressors. NaN where the matrix has no solution."""

    params: _F64
    gain: _F64
    cross: _F64
    error_norm2: float
    residual_norm2: float
    residual_square: float
    fitted_noise: float
    step_square: float
    inverse_trace: float
    degrees: float
    classical: _F64
    robust: _F64 | None
    least_eigenvalue: float
    direction: _F64

def moment_regression(
    matrix: _F64,
    features: _F64,
    response: _F64,
    *,
    ridge: _F64,
    residual_moments: _F64 | None,
    start: tuple[_F64, _F64] | None = None,
) -> RegressionDict:
    """Regressors, shape (k, dim), and response are combinations of the columns of the matrix.

    start: coefficients and the mean of the regressors times the residuals there; one step of Newton's method follows.
    """

@final
class BoundsSpec:
    """Public points for each column, and the law that chooses bounds among them, validated; holds no data."""

    def __new__(
        cls, terms: Terms, *, columns: list[tuple[tuple[float, float] | None, bool]], budget: Budget
    ) -> BoundsSpec:
        """Columns: the public range of each, or None, and whether 0 stands apart."""

    share: float
    """Share of the records that bounds leave out on either side."""
    steps: list[Step]

def release_bounds(
    spec: BoundsSpec, records: Records | _Counting, *, n_threads: int | None, seed: int | None
) -> list[tuple[float, float] | None]:
    """Release bounds of the columns of dense rows, of which nothing is assumed; None where they are degenerate.

    Of rows in parts a function adds what count_cells counts, once for each stage.
    """

@final
class LevelsSpec:
    """The law by which each level of a column is kept, validated; holds no data."""

    def __new__(cls, terms: Terms, *, n_columns: int, budget: Budget) -> LevelsSpec: ...

    half_count: float
    """Number of rows at which a level is kept in about half of the releases."""
    steps: list[Step]

@final
class CountsSpec:
    """The discrete noise on numbers of rows, validated; holds no data."""

    def __new__(cls, terms: Terms, *, n_columns: int | None, budget: Budget) -> CountsSpec:
        """Columns whose disjoint cells are counted; None: one number of records or persons."""

    step: Step

def release_counts(spec: CountsSpec, counts: list[int], *, seed: int | None) -> list[int]:
    """Release counts of the rows in the cells of the columns, one after another, of which each has noise."""

def count_cells(
    columns: list[_Column], records: Records, *, max_rows: int | None, n_threads: int | None
) -> list[_Counts]:
    """Values of each column at its public points, and between them."""

def release_levels(
    spec: LevelsSpec, records: Records | list[list[int]], *, n_threads: int | None, seed: int | None
) -> list[list[int]]:
    """Release levels of the columns of dense rows, increasing whole numbers; what is not at least 0 is none.

    Of rows in parts: the number of rows that have each level, from 0, in each column.
    """

@final
class HistogramSpec(_Kind[HistogramDict]):
    """A public grid, the noise on its counts, and the regression on its cells, validated; holds no data."""

    def __new__(
        cls,
        terms: Terms,
        *,
        axes: list[tuple[list[int], list[float]]],
        n_columns: int,
        targets: list[float],
        loss: Loss,
        l2_strength: float,
        intercept: float | None,
        budget: Budget,
    ) -> HistogramSpec:
        """An axis is its columns and its levels, one after another. The counts are the number of records."""

    n_cells: int
    def noise(self) -> tuple[str, float]:
        """Law and scale of the noise of a count."""

# Accounting (math of budgets; no data).
def gaussian_delta(epsilon: float, mu: float) -> float: ...
def gaussian_mu(epsilon: float, delta: float) -> float: ...
def joint_delta(epsilon: float, mu: float, stage_epsilon: float, stages: int) -> float:
    """Bound on delta of exponential mechanisms, one after another, and Gaussian noise."""

def joint_rest(epsilon: float, delta: float, stage_epsilon: float, stages: int) -> float:
    """Greatest epsilon that the same mechanisms leave to Gaussian noise with a seal, at the whole delta."""

@final
class ObjectiveProfile:
    """How Gaussian objective perturbation composes with Gaussian releases that follow it."""

    def __new__(
        cls,
        *,
        n_samples: float,
        row_norm: RowDomain | float,
        intercept: float | None,
        curvature_bound: float | None,
        l2_strength: float,
        one_signed: bool,
        neighbors: str,
        pair: float = 2.0,
        n_params: int = 1,
        n_classes: int | None = None,
        persons: bool = False,
        max_rows: int | None = None,
    ) -> ObjectiveProfile:
        """row_norm without the intercept; curvature_bound None: none; pair: longest shift of two records over L R.

        n_classes: those of the multinomial loss, which then says more than one_signed and curvature_bound do.
        """

    shift: float
    """Longest shift of the noise over L R: pair where a record is replaced, else 1."""
    def delta(self, epsilon: float, ratio: float, mu: float) -> float:
        """Bound on delta(epsilon) at ratio = L R / std_dev and the other releases' mu."""
    def rdp(self, order: float, ratio: float, mu: float) -> float:
        """Bound on the Renyi divergence of that order, in both directions."""

def unsealed(whole: float) -> float:
    """Part of a number of a budget that the seal leaves."""

def cost_unit(budget: Budget, calibration: str, mechanism: str) -> Literal["epsilon", "rho", "mu_squared"]:
    """Unit in which the costs of the steps of a fit are counted."""

def step_mu(budget: Budget, calibration: str, mechanism: str, cost: float) -> float:
    """Sensitivity/std_dev that a Gaussian step of a fit at this cost may have."""

def cms11_raised(epsilon: float, sensitivity: float, scale: float) -> bool:
    """Whether the variant cms11 raised l2_strength, from the coefficients' epsilon and noise."""

def check_bounds(of_targets: bool, middle: float, half: float) -> None:
    """Refuse bounds by which numbers cannot be moved and scaled in double precision."""

def check_excess(n_public: int, n_rows: int) -> None:
    """Refuse more rows under add/remove than the rounding of sums was bounded for."""

def check_shares(shares: Sequence[float]) -> None:
    """Refuse what is not three shares of a per-instance report."""

def pure_rdp(epsilon: float, order: float) -> float:
    """Bound on the Renyi divergence of a pure epsilon: that of randomised response."""

def pure_to_zcdp(epsilon: float, calibration: str) -> float: ...
def zcdp_to_pure(rho: float, calibration: str) -> float:
    """The epsilon whose zCDP cost is rho (inverse of pure_to_zcdp)."""

def zcdp_to_approx_epsilon(rho: float, delta: float, calibration: str) -> float: ...
def zcdp_to_approx_delta(rho: float, epsilon: float) -> float: ...
def approx_to_zcdp(epsilon: float, delta: float, calibration: str) -> float:
    """Greatest rho whose conversion is within (epsilon, delta)."""

# Per-instance reports.
@type_check_only
class ReportDict(_Released):
    params: _F64
    gradient: _F64 | None
    hessian: _F64 | None
    """Hessian of the sum objective, (k, k)."""
    noise_scale: float
    """Standard deviation of the coefficients' noise."""

@final
class ReportSpec(_Kind[ReportDict]):
    """Every public choice of a model with its report, validated; holds no data."""

    def __new__(
        cls,
        spec: Spec,
        *,
        shares: Sequence[float] | None,
        failure_probability: float,
        simultaneous: bool,
        bound: str,
    ) -> ReportSpec:
        """Takes the choices of spec; shares are three, or None for the coefficients alone."""

    steps: list[Step]
    """Steps of the coefficients and, where they are released, the gradient and the Hessian."""
    seal: Seal
    """How the coefficients are sealed; the derivatives' seals cost the same, and the coefficients decide them."""

@final
class RecordBounds:
    """Bounds on the privacy losses of records, from released values; immutable."""

    def __new__(
        cls,
        terms: Terms,
        *,
        loss: Loss,
        params: _F64,
        l2_strength: float,
        std_dev: float,
        delta: float,
        row_norm: RowDomain | float,
        intercept: float | None,
        on_violation: Treatment,
        derivatives: tuple[_F64, float, _F64, float] | None,
        failure_probability: float,
        simultaneous: bool,
        bound: str,
    ) -> RecordBounds:
        """Derivatives: (gradient, its std_dev, Hessian, that of an isometric coordinate)."""
    hessian_radius: float | None
    """Assumed upper bound on the greatest eigenvalue of the Hessian's noise."""
    def evaluate(self, records: Records, *, n_threads: int | None) -> tuple[_F64, _F64, _F64]:
        """(eps1, eps2, eps3) by record: by row, or by person."""
    def ex_post_losses_not_private(
        self, data: Records, records: Records, member: NDArray[np.bool_], *, n_threads: int | None
    ) -> _F64:
        """Exact signed losses by record; reads the training data."""

# Studies; never private.
@final
class Study:
    """A data set with the configurations that are repeated on bootstrap samples of it."""

    def __new__(
        cls,
        specs: list[Spec | NewtonSpec],
        records: Records,
        *,
        on_violation: Treatment,
        n_threads: int | None,
    ) -> Study:
        """Merges duplicate records and solves on the full data; specs share what rows and weights are checked by."""

    n_distinct: int
    def targets(self) -> list[_F64]:
        """The full-data minimiser of each configuration."""
    def std_errors(self) -> list[_F64 | None]:
        """Standard errors of the targets without privacy; None but for Newton steps."""
    def run(
        self, start: int, stop: int, *, seed: int, level: float | None, n_threads: int | None
    ) -> list[tuple[_F64, _F64, _F64]]:
        """Replicates start..stop: (params, lower, upper) of each configuration, shape (stop - start, k).

        Without a level no moments are released, and lower and upper have no columns. A replicate depends on its number
        and the seed alone.
        """

@final
class UtilityAnchor:
    """The measuring point of a utility curve: parameters at one budget and one draw of the noise."""

    params: _F64

@final
class UtilityCenter:
    """The minimiser without noise."""

    params: _F64
    hessian: _F64
    """Hessian of the regularised risk."""

@final
class Utility:
    """A data set with the loss that is fitted to it; specs below bring noise scale and l2_strength of a budget."""

    total: float
    """Total count of the rows: the divisor of means."""

    def __new__(
        cls,
        spec: Spec,
        records: Records,
        *,
        on_violation: Treatment,
        n_threads: int | None,
    ) -> Utility: ...
    @staticmethod
    def draw_noise(spec: Spec, seed: int, stream: int) -> _F64:
        """The coefficients' noise at scale 1; times the scale, that of a fit with this seed (stream 0)."""

    def anchor(self, spec: Spec, noise: _F64, *, params: _F64 | None, start: _F64 | None) -> UtilityAnchor:
        """Solve at the spec's budget with the noise at its scale, or take params for the solution."""

    def derivative(self, anchor: UtilityAnchor, scale_slope: float, l2_slope: float) -> _F64:
        """Derivative of the parameters in the budget, given those of noise scale and l2_strength."""

    def predict(self, anchor: UtilityAnchor, specs: list[Spec], n_steps: int) -> _F64:
        """Parameters at other budgets, shape (len(specs), k), by Newton steps."""

    def means(self, params: _F64, *, width: float | None) -> _F64:
        """Mean loss (width None) or smoothed accuracy at each row of params."""

    def mean_derivatives(self, params: _F64, *, width: float | None) -> tuple[_F64, _F64]:
        """Gradient and Hessian of the same."""

    def center(self, l2_strength: float, *, start: _F64 | None) -> UtilityCenter: ...
    def mean_shift(self, center: UtilityCenter, variance: float) -> _F64:
        """Mean of the parameters' move under noise whose coordinates have this variance."""

    def smoothed(
        self, center: UtilityCenter, variance: float, shift: _F64, *, width: float | None
    ) -> tuple[float, _F64, _F64]:
        """Mean loss or smoothed accuracy with gradient and Hessian, averaged over the noise."""

@type_check_only
class _Kind(Generic[_Values_co]):
    """Public choices of a release that Python reads as these values."""

def release(
    spec: _Kind[_Values_co],
    records: Records | DescribedParts,
    *,
    on_violation: Treatment,
    n_threads: int | None,
    seed: int | None,
    progress: Callable[[int], object] | None = None,
) -> _Values_co:
    """The release of these choices. seed=None: operating-system entropy.

    Rows may be in parts for fits and moment matrices: evaluate sums over all of them by part_sums, with the bounds of
    the release; later passes have the key of the first and must find its rows.

    ``progress`` is called with 1 after each model that a tuning compares.
    """

def simulate(spec: _Kind[Any], records: Records, *, n_runs: int, seed: int, n_threads: int | None) -> _F64:
    """One release a row. Not private.

    A fit: params, then the lower triangles of both noisy matrices, before projection. A report: params, then, where
    released, gradient and lower triangle of the Hessian. The functional mechanism: params. A histogram: noisy counts. A
    tuning: index and params.
    """

def simulate_seals(
    values: _F64, *, distance: float, budget: Budget, n_runs: int, seed: int, n_threads: int | None
) -> _F64:
    """The same values through the seal, a run a row. Not private."""

def moment_steps(spec: Spec, margin: float) -> list[Step]:
    """Steps of the moments, none without them, calibrated to margins of at most this size."""

@type_check_only
class TuningFacts(TypedDict):
    """Facts of a tuning after calibration; fields that a method does not have are None."""

    model_budget: dict[str, float]
    """Budget of the model of a candidate, or of one run without its score."""
    score_budget: dict[str, float]
    """Budget of the exponential mechanism, or of the score of one run."""
    radii: list[float]
    """Radius of the ball in which each candidate is scored."""
    score_noise: Literal["gumbel", "laplace", "gaussian"]
    score_scale: float
    score_sensitivity: float
    score_seal: list[Seal]
    """One for the method "repeat", none for "chunks"."""
    chunk_sizes: list[int] | None
    """The validation part last."""
    expected_runs: float | None
    greatest_runs: int | None
    shape: float | None

@final
class TuningSpec(_Kind[tuple[int, _F64, bool]]):
    """The candidates of a tuning and how one is chosen; holds no data.

    A release is the index of the chosen candidate, the parameters of its model, and whether they are private.
    """

    def __new__(
        cls,
        candidates: Sequence[Spec],
        *,
        loss: Loss,
        validation_radius: float | None,
        method: Literal["repeat", "chunks"],
        shape: float,
        expected_runs: float,
        budget: Budget,
    ) -> TuningSpec:
        """Replaces budgets and numbers of samples of the candidates; shape and expected_runs are those of "repeat"."""

    def facts(self) -> TuningFacts: ...
    def model(self, index: int) -> Spec:
        """One candidate as it is fitted in a run or on its part."""

def candidate_losses(
    candidates: Sequence[Spec],
    loss: Loss,
    records: Records,
    *,
    on_violation: Treatment,
    n_runs: int,
    seed: int,
    n_threads: int | None,
) -> _F64:
    """(n_candidates, n_runs): mean loss over the records at simulated models, in their balls. Not private."""
