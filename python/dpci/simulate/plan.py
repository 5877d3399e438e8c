"""A study from its arguments to its replicates: everything is checked before anything is computed."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import broken, check_choice, check_flag, check_seed, check_threads
from dpci.data.arrays import Table, read_only
from dpci.data.rows import Source, read
from dpci.errors import InvalidInput
from dpci.losses import declaration
from dpci.mechanisms import NewtonSteps
from dpci.model.keywords import CHOICES, MODEL_KEYWORDS, UNIT_KEYWORDS, check_keywords
from dpci.model.newton import for_groups
from dpci.model.settings import FitKeywords, Settings
from dpci.simulate.checkpoint import Checkpoint, Outcomes, array_hash
from dpci.simulate.replicates import Phase, Problem, run_phases
from dpci.sources.described import check_unit_columns
from dpci.unit import given_unit

Configurations: TypeAlias = Sequence[Mapping[str, Any]]

# What configurations share: it decides which rows are the same, and so which samples are drawn.
_SHARED = ("classes", "intercept", "rows")
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
            raise InvalidInput(f"configs must be a sequence of dictionaries, got configs[{i}]={config!r}")
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
    loss = declaration(settings.loss, settings.core_loss)
    others = {name: repr(getattr(settings, name)) for name in CHOICES if name not in _APART}
    counts = {"persons": settings.unit, "weights": settings.weights}
    return {**others, **{name: repr(value) for name, value in counts.items() if value is not None}, "loss": loss}
