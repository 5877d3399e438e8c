"""The rules of saved fits and those of new ones say the same: what the core offers is what a file may hold."""

import itertools
from types import SimpleNamespace

import pytest

from dpci import _core
from dpci.errors import InvalidInput
from dpci.losses import BUILT_IN, declaration
from dpci.released import record as records
from dpci.unit import Persons, Weights
from support.core import specified

BUDGETS = {"pure": _core.Budget.pure(1.0), "zcdp": _core.Budget.zcdp(0.5), "approx": _core.Budget.approx(1.0, 1e-6)}
# Where the noise enters, the variant, and whether the answer is moved into the ball: more than mechanisms can say.
MECHANISMS = list(itertools.product(("objective", "output"), ("standard", "cms11"), (False, True)))


def is_offered(loss, notion, law, mechanism, radius, moments, persons, weight_bound):
    """Whether the core has a fit with these choices."""
    place, variant, project = mechanism
    try:
        specified(
            _core.Spec, n_samples=1000, n_columns=2, loss=loss.to_core(), radius=radius, budget=BUDGETS[notion],
            mechanism=place, noise=law, variant=variant, project=project, moments=moments, persons=persons,
            weight_bound=weight_bound,
        )  # fmt: skip
    except InvalidInput:
        return False
    return True


def is_readable(loss, notion, law, mechanism, radius, moments, persons, weight_bound):
    """Whether a saved fit may say that it was made with these choices."""
    place, variant, project = mechanism
    core_loss = loss.to_core()
    record = SimpleNamespace(
        SELECTED=False, loss=declaration(loss, core_loss), mechanism=place, newton=None, names=("x0", "intercept"),
        l2_strength=0.1, variant=variant, project=project, notion=notion, noise_law=law, radius=radius, moments=moments,
        curvature_bound=None if core_loss.kinked else 1.0, classes=(0, 1) if core_loss.target_bounds is None else None,
        classes_inferred=False, blocks=None, persons=Persons() if persons else None,
        weights=None if weight_bound is None else Weights(bound=weight_bound), divisor=1000.0 / (weight_bound or 1.0),
        calibration="tight",
    )  # fmt: skip
    return not any(broken for broken, _, _ in records._contradictions(record))


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_is_offered_may_be_saved_and_nothing_else(name, monkeypatch):
    # Seals have no choice of their own.
    monkeypatch.setattr(records, "_seal_contradictions", lambda *_, **__: iter(()))
    found = set()
    choices = itertools.product(
        BUDGETS, ("spherical_laplace", "gaussian"), MECHANISMS, (None, 1.0), ("joint", "separate", "none"),
        (False, True), (None, 2.0),
    )  # fmt: skip
    for choice in choices:
        offered = is_offered(BUILT_IN[name](), *choice)
        assert is_readable(BUILT_IN[name](), *choice) == offered, choice
        found.add(offered)
    assert found == {False, True}
