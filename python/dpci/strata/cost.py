"""What the models of all strata cost together."""

import math

from dpci.budgets import ZCDP, ApproxDP, Budget, PureDP
from dpci.errors import InvalidInput
from dpci.ledger.composition import times


def charged_for(budget: Budget, neighbors: str) -> Budget:
    """Return what all strata cost together; a replaced record is one removed and one added (docs/strata.md, "Proof").

    Raises
    ------
    InvalidInput
        For a budget at which two changes leave no delta below 1.
    """
    if neighbors == "add_remove":
        return budget
    if isinstance(budget, PureDP):
        return times(budget, 2)
    if isinstance(budget, ZCDP):
        return times(budget, 4)
    assert isinstance(budget, ApproxDP)  # noqa: S101  # for the type checker
    # Rounded up by more than the exponential and the product err.
    delta = budget.delta * (1.0 + math.exp(min(budget.epsilon, 700.0))) * (1.0 + 1e-14)
    if not delta < 1.0:
        raise InvalidInput(
            "(1 + exp(epsilon)) * delta must be below 1 for strata with neighbors='replace_one', got "
            f"epsilon={budget.epsilon} and delta={budget.delta}"
        )
    twice = times(PureDP(budget.epsilon), 2)
    assert isinstance(twice, PureDP)  # noqa: S101  # as above
    return ApproxDP(twice.epsilon, delta)
