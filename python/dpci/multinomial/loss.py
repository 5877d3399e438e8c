"""The multinomial loss, as settings and saved records have it."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dpci import _core
from dpci.base.validation import broken
from dpci.losses import SEVERAL, declaration


@dataclass(frozen=True, slots=True)
class Multinomial:
    """Multinomial logistic loss of ``n_classes`` classes; the gradient of a row of length 1 is at most sqrt(2) long.

    It is not one of :mod:`dpci.losses`, which are functions of one linear predictor.
    """

    n_classes: int
    name: ClassVar[str] = SEVERAL

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.multinomial(self.n_classes)


def check_declared(value: object, n_classes: int) -> dict[str, Any]:
    """Return the declaration of a saved record, which must be that of the loss of so many classes.

    Raises
    ------
    InvalidInput
        For any other.
    """
    loss: Any = Multinomial(n_classes)
    expected = declaration(loss, loss.to_core())
    if value != expected:
        raise broken("loss", f"that of {n_classes} classes, {expected}", value)
    return expected
