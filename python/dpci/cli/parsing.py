"""Meanings of the texts of options: budgets, ridges, losses and lists of numbers."""

import dataclasses

from dpci.base.validation import check_not_negative
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, GaussianBudget, PureDP
from dpci.errors import InvalidInput
from dpci.losses import BUILT_IN, Loss
from dpci.regression.choices.model import Ridge

_FORMS = [name + "".join(f"[:{part.name}]" for part in dataclasses.fields(kind)) for name, kind in BUILT_IN.items()]

LOSSES = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"


def parse_budget(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """Return the budget of the three options; exactly one notion may be named."""
    return _budget_of(epsilon, delta, rho, "--epsilon, --epsilon with --delta, or --rho")


def parse_gaussian_budget(
    epsilon: float | None, delta: float | None, rho: float | None, mu: float | None
) -> GaussianBudget:
    """Return the budget of the four options, of which --mu is for linear regressions from a moment matrix."""
    if mu is None:
        return _budget_of(
            epsilon, delta, rho, "--epsilon, --epsilon with --delta, --rho, or --mu for linear regressions"
        )
    others = {"--epsilon": epsilon, "--delta": delta, "--rho": rho}
    given = [option for option, value in others.items() if value is not None]
    if given:
        raise InvalidInput(
            f"--mu must be given without --epsilon, --delta and --rho, got --mu {mu} and {' and '.join(given)}"
        )
    return GDP(mu)


def _budget_of(epsilon: float | None, delta: float | None, rho: float | None, forms: str) -> Budget:
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho=rho)
    if rho is None and epsilon is not None:
        return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)
    given = [f"--{name}" for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if value is not None]
    raise InvalidInput(f"the budget must be {forms}, got {' and '.join(given) if given else 'none of them'}")


def parse_ridge(text: str) -> Ridge:
    """Return the strength of a ridge, or "private"."""
    if text == "private":
        return "private"
    try:
        return check_not_negative("l2_strength", float(text))
    except ValueError as error:
        raise InvalidInput(f"--l2-strength must be a number of at least 0 or 'private', got {text!r}") from error


def parse_loss(text: str) -> Loss:
    """Return the loss of a text such as ``huber_hinge:0.5``."""
    name, colon, width = text.partition(":")
    kind = BUILT_IN.get(name)
    n_parameters = 0 if kind is None else len(dataclasses.fields(kind))
    values = numbers("loss", width) if colon and n_parameters else ()
    if kind is None or (colon and (not values or len(values) != n_parameters)):
        raise InvalidInput(f"loss must be {LOSSES}, got {text!r}")
    return kind(*values)


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a text such as ``.5,.25,.25``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput(f"{option} must hold numbers, got {text!r}") from error
