"""The results of a repeated experiment: a report, a drawing, and how it was run. Never private."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

import dpci
from _panels import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Calibration: TypeAlias = Literal["tight", "paper"]


@dataclass(frozen=True)
class Report:
    """A report: a table with its title, facts and notes, and the same content as plain values."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    facts: Sequence[tuple[str, str]]
    notes: Sequence[str]
    data: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """The result of one experiment: its report, and the function that draws it (matplotlib is optional)."""

    report: Report
    draw: "Callable[[], Figure]"

    def save(self, path: Path) -> None:
        """Draw into a file, whose extension determines the format."""
        save(self.draw(), path)


def silent(_: str) -> None:
    """Print nothing when a call begins."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How an experiment is repeated. Only the seed and the number of repeats affect the results.

    Parameters
    ----------
    n_repeats : int
        Number of draws of the noise, over which results are averaged.
    seed : int
        Seed of the noise, and of the rows that are generated.
    n_threads : int, optional
        Number of threads; None: all cores.
    announce : callable
        Called with a line of text when a part begins.
    """

    n_repeats: int = 10
    seed: int = 0
    n_threads: int | None = None
    announce: Callable[[str], None] = silent

    def generator(self, *parts: str) -> np.random.Generator:
        """Return the generator of one part of an experiment, which does not depend on the other parts that are run."""
        key = [int.from_bytes(part.encode(), "little") for part in parts]
        return np.random.default_rng([self.seed, *key])

    def seeds(self) -> list[int]:
        """Return a seed for each repeat. More repeats do not change the first seeds."""
        return [int(state) for state in np.random.SeedSequence(self.seed).generate_state(self.n_repeats, np.uint64)]

    def facts(self, seconds: float) -> list[tuple[str, str]]:
        """Return what a reader needs to repeat the run."""
        return [("repeats", f"{self.n_repeats:,}"), *run_facts(self.seed, seconds)]

    def to_dict(self, seconds: float) -> dict[str, Any]:
        """Return the same as plain values."""
        return {"n_repeats": self.n_repeats, **run_values(self.seed, seconds)}


def run_facts(seed: int, seconds: float) -> list[tuple[str, str]]:
    """Return seed, run time and versions as lines of a report."""
    return [
        ("seed", str(seed)),
        ("run time", f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"),
        ("versions", f"dpci {dpci.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"),
    ]


def run_values(seed: int, seconds: float) -> dict[str, Any]:
    """Return seed, run time and versions as plain values."""
    return {
        "seed": seed,
        "seconds": seconds,
        "versions": {"dpci": dpci.__version__, "numpy": np.__version__, "python": platform.python_version()},
    }
