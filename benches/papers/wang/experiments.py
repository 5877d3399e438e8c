"""The experiments of Wang, Kifer & Lee (2019), section 7: the fits of each cell of a table and panel of a figure."""

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import dpci
from dpci.losses import Loss
from papers.finding import Calibration
from papers.wang.published import Setting

Varied: TypeAlias = Literal["n", "d", "epsilon_1", "epsilon_2", "epsilon_3"]

# The paper's c = .001 multiplies the squared norm itself, and l2_strength half of it.
L2_STRENGTH = 0.002
LOSS_OBJECTS: dict[str, Loss] = {"logistic": dpci.losses.Logistic(), "huber_hinge": dpci.losses.HuberHinge(h=1.0)}

TITLES: Final = {
    "kddcup99": "KDD Cup 1999",
    "adult": "Adult",
    "bank": "Banking",
    "us": "IPUMS-US",
    "br": "IPUMS-BR",
}
"""The data sets by their names."""

# Rows, columns and budgets of the three steps where they do not vary. In the sweeps over n of KDD Cup 1999, n is given.
N_ROWS = {"adult": 30_162, "bank": 45_211, "us": 39_928, "br": 38_000}
N_COLUMNS = 10
EPSILONS = (0.5, 0.25, 0.25)


class Prepared(NamedTuple):
    """A prepared data set; d is the number of columns without the column of ones."""

    dataset: str
    n: int
    d: int

    def __str__(self) -> str:
        return f"{TITLES[self.dataset]}, n={self.n:,}, d={self.d}"


class Cell(NamedTuple):
    """One study: the rows, the setting, and the epsilons of the coefficients, the Hessian and the gradient covariance.

    Under zCDP a step spends rho = epsilon^2 / 2.
    """

    rows: Prepared
    setting: Setting
    epsilons: tuple[float, float, float]

    def keywords(self, calibration: Calibration) -> dict[str, Any]:
        """Return the keywords of :func:`dpci.fit` that differ from cell to cell."""
        pure = self.setting.notion == "DP"
        costs = [epsilon if pure else epsilon**2 / 2.0 for epsilon in self.epsilons]
        total = sum(costs)
        budget = dpci.PureDP(epsilon=total) if pure else dpci.ZCDP(rho=total)
        kind = dpci.ObjectivePerturbation if self.setting.mechanism == "objective" else dpci.OutputPerturbation
        return {
            "budget": budget,
            "mechanism": kind(split=tuple(cost / total for cost in costs), calibration=calibration, projection="floor"),
            "loss": LOSS_OBJECTS[self.setting.loss],
        }


@dataclass(frozen=True)
class Sweep:
    """A data set on which one quantity varies and all others are those of the paper."""

    dataset: str
    varied: Varied
    values: tuple[float, ...]

    def cell(self, value: float, setting: Setting) -> Cell:
        """Return the study at one value."""
        n = int(value) if self.varied == "n" else N_ROWS[self.dataset]
        d = int(value) if self.varied == "d" else N_COLUMNS
        first, second, third = (
            value if self.varied == f"epsilon_{step}" else epsilon for step, epsilon in enumerate(EPSILONS, start=1)
        )
        return Cell(Prepared(self.dataset, n, d), setting, (first, second, third))

    def fixed(self, n: int) -> str:
        """Return the fixed quantities, for a heading; n is the number of available rows."""
        facts = {
            "n": f"n={n:,}",
            "d": f"d={N_COLUMNS}",
            **{f"epsilon_{step}": f"epsilon_{step}={epsilon:g}" for step, epsilon in enumerate(EPSILONS, start=1)},
        }
        return ", ".join(fact for name, fact in facts.items() if name != self.varied)

    def show(self, value: float) -> str:
        """Return a value of the varying quantity as text."""
        return f"{value:,.0f}" if self.varied in {"n", "d"} else f"{value:g}"


def _tenths(first: int) -> tuple[float, ...]:
    return tuple(tenth / 10 for tenth in range(first, 11))


# What varies, over the values of the tables. The text of the paper does not give those of the figures: they are taken
# to be the same.
_BY_N: tuple[Varied, tuple[float, ...]] = ("n", tuple(range(50_000, 450_001, 50_000)))
_BY_D: tuple[Varied, tuple[float, ...]] = ("d", tuple(range(1, 11)))
_BY_EPSILON_1: tuple[Varied, tuple[float, ...]] = ("epsilon_1", _tenths(3))
_BY_EPSILON_2: tuple[Varied, tuple[float, ...]] = ("epsilon_2", _tenths(1))
_BY_EPSILON_3: tuple[Varied, tuple[float, ...]] = ("epsilon_3", _tenths(1))

TABLES: Final = {
    2: Sweep("kddcup99", *_BY_N),
    3: Sweep("adult", *_BY_D),
    4: Sweep("bank", *_BY_EPSILON_1),
    5: Sweep("us", *_BY_EPSILON_2),
    6: Sweep("br", *_BY_EPSILON_3),
}
"""The published tables."""


class Panel(NamedTuple):
    """One panel of a figure: both curves of the figure for one loss."""

    letter: str
    sweep: Sweep
    loss: str


class Curve(NamedTuple):
    """The meaning of one colour of a figure."""

    label: str
    notion: str
    mechanism: str


@dataclass(frozen=True)
class FigurePlan:
    """A published figure: two curves, compared in every panel."""

    number: int
    title: str
    curves: tuple[Curve, Curve]
    panels: tuple[Panel, ...]


_DP_OR_ZCDP = {
    mechanism: (Curve("DP", "DP", mechanism), Curve("zCDP", "zCDP", mechanism)) for mechanism in ("objective", "output")
}
_OBJECTIVE_OR_OUTPUT = {
    notion: (Curve("obj", notion, "objective"), Curve("output", notion, "output")) for notion in ("DP", "zCDP")
}
_LR, _SVM = "logistic", "huber_hinge"


def _panels(*parts: tuple[str, tuple[Varied, tuple[float, ...]], str]) -> tuple[Panel, ...]:
    return tuple(
        Panel(letter, Sweep(dataset, *varied), loss)
        for letter, (dataset, varied, loss) in zip("abcdefghi", parts, strict=True)
    )


# The paper's text gives the titles of the panels of figure 1 alone. Those of figures 2 to 4 are chosen so that they
# agree with the captions and with section 7.3; see docs/tables.md.
_BY_SIZE = (
    ("kddcup99", _BY_N, _LR),
    ("kddcup99", _BY_N, _SVM),
    ("adult", _BY_D, _LR),
    ("adult", _BY_D, _SVM),
)
_BY_FIRST_BUDGET = (("adult", _BY_EPSILON_1, _LR), ("us", _BY_EPSILON_1, _SVM))

FIGURES: Final = {
    1: FigurePlan(
        1,
        "DP against zCDP, objective perturbation",
        _DP_OR_ZCDP["objective"],
        _panels(
            ("kddcup99", _BY_N, _LR),
            ("adult", _BY_D, _LR),
            ("adult", _BY_D, _SVM),
            ("bank", _BY_EPSILON_1, _LR),
            ("bank", _BY_EPSILON_1, _SVM),
            ("br", _BY_EPSILON_1, _LR),
            ("us", _BY_EPSILON_2, _LR),
            ("us", _BY_EPSILON_2, _SVM),
            ("br", _BY_EPSILON_3, _SVM),
        ),
    ),
    2: FigurePlan(
        2,
        "DP against zCDP, output perturbation",
        _DP_OR_ZCDP["output"],
        _panels(
            *_BY_SIZE,
            *_BY_FIRST_BUDGET,
            ("br", _BY_EPSILON_2, _LR),
            ("bank", _BY_EPSILON_3, _LR),
            ("bank", _BY_EPSILON_3, _SVM),
        ),
    ),
    3: FigurePlan(
        3,
        "objective against output perturbation, DP",
        _OBJECTIVE_OR_OUTPUT["DP"],
        _panels(
            *_BY_SIZE,
            *_BY_FIRST_BUDGET,
            ("br", _BY_EPSILON_2, _LR),
            ("br", _BY_EPSILON_2, _SVM),
            ("bank", _BY_EPSILON_3, _LR),
        ),
    ),
    4: FigurePlan(
        4,
        "objective against output perturbation, zCDP",
        _OBJECTIVE_OR_OUTPUT["zCDP"],
        _panels(
            *_BY_SIZE,
            ("bank", _BY_EPSILON_1, _LR),
            ("bank", _BY_EPSILON_1, _SVM),
            ("adult", _BY_EPSILON_2, _LR),
            ("adult", _BY_EPSILON_3, _LR),
            ("us", _BY_EPSILON_3, _SVM),
        ),
    ),
}
"""The published figures."""
