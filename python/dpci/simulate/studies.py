"""Bootstrap studies: how often intervals cover their target, and how much released parameters vary. Never private."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.threads import check_threads
from dpci.base.validation import (
    broken,
    check_choice,
    check_count,
    check_flag,
    check_fraction,
    check_seed,
    in_short,
)
from dpci.base.warn import warn
from dpci.data.arrays import Table, read_only
from dpci.data.rows import Source, read
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.mechanisms import NewtonSteps
from dpci.model.keywords import CHOICES, MODEL_KEYWORDS, UNIT_KEYWORDS, check_keywords
from dpci.model.newton import for_groups
from dpci.model.settings import FitKeywords, ModelKeywords, Settings
from dpci.simulate.checkpoint import Checkpoint, Outcomes, array_hash
from dpci.simulate.replicates import Phase, Problem, run_phases
from dpci.simulate.result import CoverageStudy, VariabilityStudy
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, given_unit

__all__ = ["coverage", "variability"]


Configurations: TypeAlias = Sequence[Mapping[str, Any]]

# What configurations share: it decides which rows are the same, and so which samples are drawn.
_SHARED = ("classes", "rows")
_VARYING = tuple(name for name in MODEL_KEYWORDS if name not in _SHARED)
# Choices that outcomes do not depend on, and those that are told in another way.
_APART = {"n_threads", "seed", "loss", "classes"}
_ALLOWED = (*MODEL_KEYWORDS, *UNIT_KEYWORDS)


# Newton steps take longer: samples share nothing but their rows.
_N_VARIABILITY, _N_VARIABILITY_OF_STEPS = 10_000, 1_000


class Common(TypedDict):
    """Fields that both kinds of result have."""

    names: tuple[str, ...]
    target: NDArray[np.float64]
    level: float
    seed: int
    n_samples: int
    n_distinct: int


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The checked arguments that say how replicates are run; of them only the seed matters for the results."""

    seed: int
    progress: bool | None
    checkpoint: Path | None
    n_threads: int | None
    parallel: bool

    @classmethod
    def checked(
        cls, *, seed: object, progress: object, checkpoint: object, n_threads: object, parallel: object
    ) -> "Execution":
        """Return how to run, checked."""
        number = check_seed(seed)
        if number is None:
            raise InvalidInput("seed must be an integer in [0, 2**64), got seed=None")
        if not isinstance(checkpoint, str | os.PathLike | None):
            raise broken("checkpoint", "None or a path", checkpoint)
        if parallel is not None:
            check_choice("parallel", parallel, ("joblib",))
        return cls(
            seed=number,
            progress=None if progress is None else check_flag("progress", progress),
            checkpoint=None if checkpoint is None else Path(checkpoint),
            n_threads=check_threads(n_threads),
            parallel=parallel is not None,
        )


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study whose arguments are checked: the problem, and how it is run."""

    kind: str
    problem: Problem
    settings: tuple[Settings, ...]
    names: tuple[str, ...]
    execution: Execution

    @classmethod
    def checked(
        cls,
        kind: str,
        X: Table,
        y: ArrayLike,
        configs: Configurations | None,
        *,
        keywords: Mapping[str, Any],
        execution: Execution,
    ) -> "StudyPlan":
        """Return the study that the arguments describe, checked."""
        configurations = _merged(kind, keywords, configs)
        source = Source(X, y, given_unit(*(keywords.get(name) for name in UNIT_KEYWORDS)).beside)
        check_unit_columns(None, source)
        settings = tuple(Settings.checked(**configuration) for configuration in configurations)
        _check_targets_agree(settings)

        def check(n_samples: int, _: int) -> None:
            for one in settings:
                if one.public_n(n_samples) != n_samples:
                    counted = "rows" if source.beside.persons is None else "persons"
                    raise InvalidInput(
                        f"n_public must be the number of {counted} in a study, {n_samples}, got n_public={one.n_public}"
                    )

        rows, _ = read(source, settings[0], check)
        problem = Problem(
            values=rows.values,
            targets=rows.targets,
            persons=rows.persons,
            weights=rows.weights,
            shape=(rows.n_records, rows.shape[1]),
            configurations=configurations,
        )
        return cls(kind=kind, problem=problem, settings=settings, names=rows.names, execution=execution)

    @property
    def n_variability(self) -> int:
        """Replicates behind variability lengths, where the caller does not say how many."""
        steps = any(isinstance(one.mechanism, NewtonSteps) for one in self.settings)
        return _N_VARIABILITY_OF_STEPS if steps else _N_VARIABILITY

    def run(self, phases: Sequence[Phase], *, level: float | None) -> tuple[_core.Study, dict[str, list[Outcomes]]]:
        """Run the phases, whose intervals have this level, going on from the checkpoint if there is one."""
        execution = self.execution
        study = self.problem.study(execution.n_threads)
        checkpoint = None
        if execution.checkpoint is not None:
            checkpoint = Checkpoint(execution.checkpoint, self._identity(study, level))
        found = run_phases(
            self.problem,
            study,
            phases,
            seed=execution.seed,
            n_threads=execution.n_threads,
            parallel=execution.parallel,
            progress=execution.progress,
            checkpoint=checkpoint,
        )
        return study, found

    def common(self, study: _core.Study, target: NDArray[np.float64], level: float) -> Common:
        """Return what both kinds of result hold."""
        return {
            "names": self.names,
            "target": read_only(target),
            "level": level,
            "seed": self.execution.seed,
            "n_samples": self.problem.shape[0],
            "n_distinct": study.n_distinct,
        }

    def _identity(self, study: _core.Study, level: float | None) -> dict[str, Any]:
        """Everything that the replicates depend on; the minimisers stand for the code of a custom loss."""
        return {
            "study": self.kind,
            "version": _core.__version__,
            "seed": self.execution.seed,
            "level": level,
            "shape of X": [len(self.problem.targets), self.problem.shape[1]],
            "hash of X and y": array_hash(*self.problem.arrays()),
            "number of configs": len(self.settings),
            "configs": [_description(settings) for settings in self.settings],
            "hash of the full-data minimisers": array_hash(*study.targets()),
        }


def _merged(kind: str, keywords: Mapping[str, Any], configs: Configurations | None) -> tuple[FitKeywords, ...]:
    check_keywords(kind, keywords, allowed=_ALLOWED, required=())
    if configs is None:
        return (_complete(kind, keywords),)
    scalar = isinstance(configs, str | bytes | Mapping) or getattr(configs, "ndim", 1) == 0
    if scalar or not isinstance(configs, Iterable):
        raise broken("configs", "a sequence of dictionaries", configs)
    merged = []
    for i, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InvalidInput(f"configs must be a sequence of dictionaries, got configs[{i}]={in_short(config)}")
        odd = next((name for name in config if name not in _VARYING), None)
        if odd is not None:
            raise InvalidInput(
                f"configs may hold {', '.join(_VARYING)}; other keywords are common to all, got {odd!r} in configs[{i}]"
            )
        merged.append(_complete(kind, {**keywords, **config}))
    if not merged:
        raise InvalidInput("configs must hold at least one dictionary, got none")
    return tuple(merged)


def _complete(kind: str, keywords: Mapping[str, Any]) -> FitKeywords:
    check_keywords(kind, keywords, allowed=_ALLOWED, required=("budget",))
    fitted = for_groups(kind, keywords, keywords["budget"], allowed=_ALLOWED)
    if not isinstance(fitted.get("mechanism"), NewtonSteps):
        check_keywords(kind, keywords, allowed=_ALLOWED)
    unit, weights, _ = given_unit(*(keywords.get(name) for name in UNIT_KEYWORDS))
    return cast("FitKeywords", {**fitted, "persons": unit, "weights": weights})


def _check_targets_agree(settings: Sequence[Settings]) -> None:
    """Refuse losses whose targets differ, as the rows would then be other ones."""
    bounds = [one.core_loss.target_bounds for one in settings]
    odd = next((i for i, bound in enumerate(bounds) if bound != bounds[0]), None)
    if odd is not None:
        raise InvalidInput(
            f"the losses of configs must have the same target_bounds, got {bounds[0]} in configs[0] and "
            f"{bounds[odd]} in configs[{odd}]"
        )


def _description(settings: Settings) -> dict[str, Any]:
    """Return the keywords of a configuration as JSON values, the loss by its declaration."""
    loss = settings.declared_loss
    others = {name: repr(getattr(settings, name)) for name in CHOICES if name not in _APART}
    counts = {"persons": settings.unit, "weights": settings.weights}
    return {**others, **{name: repr(value) for name, value in counts.items() if value is not None}, "loss": loss}


Checkpointed: TypeAlias = str | os.PathLike[str]

# Replicates for variability are numbered from here, so that they share no randomness with those for coverage.
FIRST_VARIABILITY = 2**40


class SampledKeywords(ModelKeywords, total=False):
    """Keywords of :func:`dpci.fit` that say what is fitted, to which records."""

    persons: ArrayLike | Persons | None
    weights: Weights | None


class StudyKeywords(SampledKeywords, total=False):
    """Keywords of a study: those of :func:`dpci.fit` that say what is fitted, and those that say how it is repeated."""

    seed: int
    progress: bool | None
    checkpoint: Checkpointed | None
    n_threads: int | None
    parallel: Literal["joblib"] | None


@overload
def coverage(
    X: Table,
    y: ArrayLike,
    *,
    n_replicates: int = ...,
    n_variability: int | None = ...,
    level: float = ...,
    configs: None = None,
    **keywords: Unpack[StudyKeywords],
) -> CoverageStudy: ...
@overload
def coverage(
    X: Table,
    y: ArrayLike,
    *,
    n_replicates: int = ...,
    n_variability: int | None = ...,
    level: float = ...,
    configs: Configurations,
    **keywords: Unpack[StudyKeywords],
) -> list[CoverageStudy]: ...
def coverage(
    X: Table,
    y: ArrayLike,
    *,
    n_replicates: int = 1000,
    n_variability: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
    configs: Configurations | None = None,
    checkpoint: Checkpointed | None = None,
    n_threads: int | None = None,
    parallel: Literal["joblib"] | None = None,
    **keywords: Unpack[SampledKeywords],
) -> CoverageStudy | list[CoverageStudy]:
    """Repeat a private fit on bootstrap samples of a data set, and count how often its intervals cover their target.

    The data set serves as the population, and its minimiser is the target. A replicate draws rows with replacement, as
    many as there are, and fits them as :func:`dpci.fit` does. Its intervals use the exact quantiles of the law from
    which the Monte Carlo of Wang, Kifer & Lee (2019), sections 4 and 5, samples. The result is not private.

    With ``persons``, a replicate draws persons, as many as there are, each with all rows. With ``weights``, it draws
    records together with their weights, with equal probabilities; sums are divided by the public total as in a fit.

    With a radius all replicates count, even those whose intervals a fit would refuse because the released values do
    not show that the ball does not bind. The study then measures the coverage of the formula, not that of the intervals
    which fits would show. A ball that binds the minimiser on the full data is refused.

    Without ``l2_strength``, or with ``mechanism="newton"``, fits take Newton steps where :func:`dpci.fit` does. Their
    target is the ordinary coefficients of the data set, without a ridge. Each sample is fitted by itself, so that such
    studies take longer. Where a fit has no interval, the replicate has none, and the result counts it.

    Parameters
    ----------
    X, y
        See :func:`dpci.fit`. Sparse rows and rows that occur many times make a study fast.
    n_replicates : int
        Replicates with intervals.
    n_variability : int, optional
        Further replicates, of parameters only, for the variability lengths; 0: none. None: 10,000, or 1,000 where a
        configuration takes Newton steps.
    level : float
        Level of the intervals.
    seed : int
        Seed of the replicates. It determines all results, for any number of threads, batches, interruptions and
        machines with the same instruction set.
    progress : bool, optional
        Whether to show a progress bar, which needs tqdm. None: on a terminal and in a notebook, where it is installed.
    configs : sequence of dict, optional
        Several ways to fit the same samples. Each has keywords of :func:`dpci.fit` that replace the common ones.
        Keywords that determine the samples, such as ``persons`` and ``weights``, are common to all.
    checkpoint : path, optional
        File (.npz) for complete replicates, written after the first batch that ends 30 s or more after the last save,
        and when the run ends or is interrupted. A run that finds it continues from there, to the same bits, and may
        have more replicates. Like the study, the file is not private.
    n_threads : int, optional
        Threads; None: all cores (one for each job of joblib).
    parallel : {None, "joblib"}
        "joblib" spreads the replicates over the jobs of the caller's ``joblib.parallel_config``: processes, Dask, Ray.
    **keywords
        Keywords of :func:`dpci.fit` except ``n_threads`` and ``seed``, whose meaning is given above; ``budget`` is
        required, and ``l2_strength`` where fits take no Newton steps. ``persons`` and ``weights`` have arrays, because
        there are no named columns.

    Returns
    -------
    CoverageStudy or list of CoverageStudy
        A list, in the order of ``configs``, if they are given.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall, NotConverged
        See :func:`dpci.fit`; also for a checkpoint that is damaged or belongs to another study.
    DpciError
        If a required optional package is not installed.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, numpy as np, dpci
    >>> warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1], [0.2, 0.5]], (500, 1))
    >>> y = np.tile([1, -1, 1, 1, -1], 300)
    >>> study = dpci.simulate.coverage(X, y, budget=dpci.ZCDP(0.5), l2_strength=0.05, n_replicates=50, n_variability=0)
    >>> bool(0.8 < study.coverage <= 1.0)
    True
    """
    n_replicates = check_count("n_replicates", n_replicates)
    if n_variability is not None and check_count("n_variability", n_variability, least=0) == 1:
        raise InvalidInput(
            "n_variability must be 0 or at least 2, because a length requires two replicates, got n_variability=1"
        )
    level = check_fraction("level", level)
    execution = Execution.checked(
        seed=seed, progress=progress, checkpoint=checkpoint, n_threads=n_threads, parallel=parallel
    )
    plan = StudyPlan.checked("coverage", X, y, configs, keywords=keywords, execution=execution)
    for settings in plan.settings:
        if settings.moments == "none":
            raise InvalidInput("coverage requires released moments, got moments='none' (variability does not)")
    _warn_of_leak()
    count = plan.n_variability if n_variability is None else n_variability
    phases = [
        Phase("coverage", 0, n_replicates, level),
        Phase("variability", FIRST_VARIABILITY, count, None),
    ]
    study, found = plan.run(phases, level=level)
    results = []
    for settings, target, std_errors, intervals, spread in zip(
        plan.settings, study.targets(), study.std_errors(), found["coverage"], found["variability"], strict=True
    ):
        common = plan.common(study, target, level)
        params, lower, upper = map(read_only, intervals)
        variability = VariabilityStudy(params=read_only(spread[0]), **common) if count else None
        results.append(
            CoverageStudy(
                params=params,
                lower=lower,
                upper=upper,
                variability=variability,
                radius=settings.radius,
                budget=settings.budget,
                std_errors=None if std_errors is None else read_only(std_errors),
                **common,
            )
        )
    return results[0] if configs is None else results


@overload
def variability(
    X: Table,
    y: ArrayLike,
    *,
    n_variability: int | None = ...,
    level: float = ...,
    configs: None = None,
    **keywords: Unpack[StudyKeywords],
) -> VariabilityStudy: ...
@overload
def variability(
    X: Table,
    y: ArrayLike,
    *,
    n_variability: int | None = ...,
    level: float = ...,
    configs: Configurations,
    **keywords: Unpack[StudyKeywords],
) -> list[VariabilityStudy]: ...
def variability(
    X: Table,
    y: ArrayLike,
    *,
    n_variability: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
    configs: Configurations | None = None,
    checkpoint: Checkpointed | None = None,
    n_threads: int | None = None,
    parallel: Literal["joblib"] | None = None,
    **keywords: Unpack[SampledKeywords],
) -> VariabilityStudy | list[VariabilityStudy]:
    """Repeat the release of the coefficients of a private fit on bootstrap samples, and measure how much they vary.

    The coefficients get their share of the budget as in a fit with moments. The replicates are those of
    :func:`coverage` with the same seed. The result is not private.

    Parameters
    ----------
    X, y
        See :func:`dpci.fit`.
    n_variability : int, optional
        Replicates, at least 2. None: as for :func:`coverage`.
    level : float
        Share of the replicates within a variability interval.
    seed, progress, configs, checkpoint, n_threads, parallel, **keywords
        See :func:`coverage`.

    Returns
    -------
    VariabilityStudy or list of VariabilityStudy
        A list, in the order of ``configs``, if they are given.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall, NotConverged, DpciError
        See :func:`coverage`.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    if n_variability is not None:
        check_count("n_variability", n_variability, least=2)
    level = check_fraction("level", level)
    execution = Execution.checked(
        seed=seed, progress=progress, checkpoint=checkpoint, n_threads=n_threads, parallel=parallel
    )
    plan = StudyPlan.checked("variability", X, y, configs, keywords=keywords, execution=execution)
    _warn_of_leak()
    count = plan.n_variability if n_variability is None else n_variability
    study, found = plan.run([Phase("variability", FIRST_VARIABILITY, count, None)], level=None)
    results = [
        VariabilityStudy(params=read_only(params), **plan.common(study, target, level))
        for target, (params, _, _) in zip(study.targets(), found["variability"], strict=True)
    ]
    return results[0] if configs is None else results


def _warn_of_leak() -> None:
    message = "a study is NOT PRIVATE: its target, lengths and replicates are computed from the data"
    warn(PrivacyLeakWarning(message))
