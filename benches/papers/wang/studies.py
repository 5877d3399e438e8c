"""Runs the studies of a table or a figure: cells on the same rows share their replicates. Never private."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import dpci
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.simulate import CoverageStudy
from papers.finding import Calibration, run_facts, run_values, silent
from papers.sources import Sources
from papers.wang.experiments import L2_STRENGTH, TITLES, Cell, Prepared

LEVEL = 0.95


@dataclass(frozen=True)
class Lengths:
    """Lengths of intervals: mean and standard deviation over replicates, and length of the variability interval."""

    mean: float
    std: float
    variability: float | None


@dataclass(frozen=True)
class Outcome:
    """The results of one study: coverage, and the lengths for the average and the first coordinate."""

    coverage: float
    coverage_se: float
    average: Lengths
    first: Lengths
    n_samples: int

    @classmethod
    def of(cls, study: CoverageStudy) -> "Outcome":
        """Return the few numbers of a study that are kept."""
        lengths = study.upper - study.lower
        by_param = study.variability_length_by_param
        return cls(
            coverage=study.coverage,
            coverage_se=study.coverage_se,
            average=Lengths(study.mean_length, float(lengths.mean(axis=1).std()), study.variability_length),
            first=Lengths(
                float(lengths[:, 0].mean()),
                float(lengths[:, 0].std()),
                None if by_param is None else float(by_param[0]),
            ),
            n_samples=study.n_samples,
        )

    @property
    def length_ratio(self) -> float | None:
        """Mean length divided by the variability length."""
        return None if self.average.variability is None else self.average.mean / self.average.variability

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the standard error is None for one replicate."""
        values = {**asdict(self), "length_ratio": self.length_ratio}
        return {**values, "coverage_se": None if np.isnan(self.coverage_se) else self.coverage_se}


Key: TypeAlias = tuple[Cell, Calibration]
Outcomes: TypeAlias = dict[Key, Outcome]


@dataclass(frozen=True, kw_only=True)
class Run:
    """How studies are run. Only the seed and the numbers of replicates affect the results.

    Parameters
    ----------
    n_replicates, n_variability, seed, n_threads, progress
        See :func:`dpci.simulate.coverage`.
    checkpoint : Path, optional
        Folder with one file for each call, from which a killed run continues.
    announce : callable
        Called with a line of text when a call begins.
    """

    n_replicates: int = 1000
    n_variability: int = 10_000
    seed: int = 0
    n_threads: int | None = None
    progress: bool = False
    checkpoint: Path | None = None
    announce: Callable[[str], None] = silent

    def outcomes(
        self, name: str, cells: Iterable[Cell], calibrations: Sequence[Calibration], sources: Sources
    ) -> Outcomes:
        """Study all cells in all calibrations. The name distinguishes the checkpoints of different experiments.

        Raises
        ------
        InvalidInput, DatasetUnavailable
            See :func:`dpci.simulate.coverage` and :meth:`papers.sources.Sources.rows`; also for a user's
            file with too few rows, or a checkpoint that is not a folder.

        Warns
        -----
        PrivacyLeakWarning
            Always.
        """
        by_rows: dict[Prepared, list[Key]] = {}
        for cell in dict.fromkeys(cells):
            by_rows.setdefault(cell.rows, []).extend((cell, calibration) for calibration in calibrations)
        # What is missing or wrong is refused before hours are spent on the rest.
        self._make_folder()
        for dataset in dict.fromkeys(rows.dataset for rows in by_rows):
            sources.table(dataset)
            keys = [key for rows, same_rows in by_rows.items() if rows.dataset == dataset for key in same_rows]
            _check_extract(name, dataset, keys, sources)
        found: Outcomes = {}
        for call, (rows, keys) in enumerate(by_rows.items(), start=1):
            self.announce(f"{call}/{len(by_rows)} {rows}: {len(keys)} settings")
            file = "-".join([name.replace(" ", ""), *calibrations, rows.dataset, f"n{rows.n}", f"d{rows.d}.npz"])
            X, y = sources.rows(rows)
            studies = dpci.simulate.coverage(
                X,
                y,
                configs=[cell.keywords(calibration) for cell, calibration in keys],
                l2_strength=L2_STRENGTH,
                rows=dpci.rows.Within(intercept=False),  # the rows end in a column of ones
                n_replicates=self.n_replicates,
                n_variability=self.n_variability,
                level=LEVEL,
                seed=self.seed,
                progress=self.progress,
                checkpoint=None if self.checkpoint is None else self.checkpoint / file,
                n_threads=self.n_threads,
            )
            found.update(zip(keys, map(Outcome.of, studies), strict=True))
        return found

    def _make_folder(self) -> None:
        if self.checkpoint is None:
            return
        try:
            self.checkpoint.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = (
                f"--checkpoint must name a folder that exists or can be created, got {str(self.checkpoint)!r}: "
                f"{error.strerror}"
            )
            raise InvalidInput(msg) from error

    def facts(self, seconds: float) -> list[tuple[str, str]]:
        """Return what a reader needs to repeat the run."""
        return [
            ("replicates with intervals, k", f"{self.n_replicates:,}"),
            ("replicates for variability, m", f"{self.n_variability:,}"),
            *run_facts(self.seed, seconds),
        ]

    def to_dict(self, seconds: float) -> dict[str, Any]:
        """Return the same as plain values."""
        return {
            "n_replicates": self.n_replicates,
            "n_variability": self.n_variability,
            "level": LEVEL,
            **run_values(self.seed, seconds),
        }


def _check_extract(experiment: str, dataset: str, keys: Sequence[Key], sources: Sources) -> None:
    """Refuse a user's file with too few columns or rows; the public files have enough."""
    file = sources.file(dataset)
    if file is None:
        return
    sources.columns(dataset, max(cell.rows.d for cell, _ in keys))
    n = sources.n_rows(dataset)
    least = max(_least_rows(cell, calibration, n) for cell, calibration in keys)
    if least > n:
        msg = f"{file} must have at least {least:,} rows for {experiment}, got {n:,}"
        raise InvalidInput(msg)


def _least_rows(cell: Cell, calibration: Calibration, n: int) -> int:
    """Return the smallest number of rows, at least n, for which lambda is large enough; more rows need less."""
    keywords: dict[str, Any] = {
        **cell.keywords(calibration),
        "l2_strength": L2_STRENGTH,
        "rows": dpci.rows.Within(intercept=False),
    }

    def suffices(n_samples: int) -> bool:
        try:
            dpci.plan(n_samples=n_samples, n_features=cell.rows.d + 1, **keywords)
        except RegularizationTooSmall:
            return False
        return True

    return n + bisect_left(range(n, cell.rows.n), True, key=suffices)  # noqa: FBT003  # what is looked for


def row_notes(outcomes: Outcomes) -> list[str]:
    """Name the data sets whose number of rows differs from the paper's."""
    odd = {
        cell.rows.dataset: f"{TITLES[cell.rows.dataset]}: {outcome.n_samples:,} rows, the paper has {cell.rows.n:,}."
        for (cell, _), outcome in outcomes.items()
        if outcome.n_samples != cell.rows.n
    }
    return list(odd.values())
