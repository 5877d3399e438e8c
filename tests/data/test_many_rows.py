"""Ten thousand million rows: sums that are doubled again and again, as if a cluster had brought them."""

import numpy as np
import pytest

import dpci
from dpci import lowlevel
from support.keywords import assembled
from support.parts import make_rows

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")

N, D = 20_000, 5
X, Y, REALS = make_rows(N, D)
DOUBLINGS = 19
MANY = N * 2**DOUBLINGS
assert MANY > 10**10

BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(1.0, 1e-12)}


class Doubled:
    """The same rows, 524,288 times each."""

    names = None

    def __init__(self, targets):
        self.targets, self.passes = targets, []

    def reduce(self, work):
        self.passes.append(work.request.name if hasattr(work, "request") else "describe")
        total = work(X, self.targets)
        for _ in range(DOUBLINGS):
            total = total.merge(total)
        return total


@pytest.mark.parametrize("l2_strength", [0.1, 1e-4])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("notion", BUDGETS)
def test_ten_thousand_million_rows_are_legal(notion, mechanism, l2_strength):
    keywords = {"budget": BUDGETS[notion], "l2_strength": l2_strength, "mechanism": mechanism}
    source = Doubled(Y)
    result = dpci.fit(source, **keywords, seed=1)
    assert result.n_samples == MANY
    assert len(source.passes) <= 12, source.passes
    plan = dpci.plan(n_samples=MANY, n_features=D, **keywords)
    exact = lowlevel.minimize_erm(Doubled(2.0 * Y - 1.0), l2_strength=l2_strength, intercept=1.0, tolerance=1e-13)
    # The noise is as small as so many rows allow; a thousand scales have a probability far below 1e-6.
    noise = plan.steps[0].scale / (1.0 if mechanism == "output" else MANY * l2_strength)
    assert np.linalg.norm(result.params - exact.params) < 1000 * noise
    half = np.diff(np.asarray(result.conf_int()), axis=1)[:, 0] / 2
    assert np.all(half > 0)
    assert np.all(half < 1e-2)


def test_the_minimiser_is_that_of_the_rows_once():
    keywords = {"l2_strength": 1e-3, "intercept": 1.0, "tolerance": 1e-13}
    many, once = (
        lowlevel.minimize_erm(x, y, **keywords) for x, y in ((Doubled(2.0 * Y - 1.0), None), (X, 2.0 * Y - 1.0))
    )
    assert np.linalg.norm(many.params - once.params) <= many.certificate + once.certificate


@pytest.mark.parametrize(
    ("loss", "targets", "keywords"), [("squared", REALS, {"radius": 20.0}), ("huber_hinge", Y, {})]
)
def test_other_losses(loss, targets, keywords):
    keywords = {**keywords, "neighbors": dpci.AddRemove(10**10)}
    result = dpci.fit(
        Doubled(targets), **assembled(budget=BUDGETS["zcdp"], l2_strength=0.01, loss=loss, seed=1, **keywords)
    )
    assert np.all(np.isfinite(result.cov))
