"""Newton steps in a fit: the specification for the core, and what the release gives to the record."""

from typing import Any

from dpci import _core
from dpci.budgets import Budget, core_budget
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.mechanisms import NewtonSteps
from dpci.model.keywords import used_keywords
from dpci.model.settings import Settings
from dpci.released.newton import Newton
from dpci.rows import core_rows
from dpci.unit import core_unit


def check_newton(keywords: dict[str, Any]) -> None:
    """Refuse a ridge, and keywords of :func:`dpci.fit` that only other mechanisms use.

    Raises
    ------
    InvalidInput
        For the first one that is given.
    """
    strength = keywords["l2_strength"]
    if strength is not None and strength != 0.0:
        raise InvalidInput(
            f"l2_strength must be None with mechanism='newton', which has no ridge, got l2_strength={strength!r}"
        )
    used_keywords(keywords, NewtonSteps.name, allowed=("classes", "intercept_scale"))


def newton_spec(settings: Settings, n_samples: int, n_columns: int, *, budget: Budget) -> _core.NewtonSpec:
    """Return the specification of a fit by Newton steps of a table of this size.

    Raises
    ------
    InvalidInput
        For budgets, losses and units for which they are not offered.
    """
    settings.rows.check_columns(n_columns)
    return _core.NewtonSpec(
        n_samples=settings.public_n(n_samples),
        n_columns=n_columns,
        intercept=settings.intercept,
        row_norm=core_rows(settings.rows),
        loss=settings.core_loss,
        budget=core_budget(budget),
        neighbors=settings.neighbors,
        **core_unit(settings.unit, settings.weights),
    )


def newton_release(rows: Rows, spec: _core.NewtonSpec, settings: Settings) -> dict[str, Any]:
    """Release a fit by Newton steps of rows that are read and paid for; return what a record has of it."""
    found = _core.fit_newton(spec, rows.records, clip=settings.clip, n_threads=settings.n_threads, seed=settings.seed)
    newton = Newton(
        map=found["map"],
        radii=found["radii"],
        start=found["start"],
        gradient=found["gradient"],
        params=found["moved_params"],
        edge=found["edge"],
    )
    return {
        "params": found["params"],
        "hessian": found["hessian"],
        "gradient_cov": found["gradient_cov"],
        "newton": newton,
        "noise_law": "gaussian",
        # The gradient is a mean, and the noise of a fit is that of a sum.
        "noise_scale": spec.divisor * found["steps"][-1].scale,
        "noise_spectral_radius": 0.0,
        "projection": "noise_aware",
        "steps": found["steps"],
        "seals": found["seals"],
        "private": found["private"],
    }
