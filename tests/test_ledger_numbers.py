"""The numbers of a ledger by hand: what a reserve divides, what is left, what a ledger is known by."""

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dpci
from dpci import _composition
from dpci._composition import Account, Reserve


def conversion(order, delta):
    """``K`` of Canonne, Kamath & Steinke 2020, Proposition 12, in 40 digits."""
    with mp.workdps(40):
        order, delta = mp.mpf(float(order)), mp.mpf(delta)
        return (-mp.log(delta) + order * mp.log1p(-1 / order) - mp.log(order - 1)) / (order - 1)


def test_the_grid_is_part_of_the_format():
    expected = [1 + 2.0 ** (k / 2) for k in range(-4, 25)]
    np.testing.assert_allclose(_composition._GRID, expected, rtol=1e-15)


def test_a_whole_reserve_has_one_order():
    orders, conversions = Reserve(7.0, 1e-6, 1.0).orders()
    assert orders == [7.0]
    assert 0 <= conversions[0] / conversion(7.0, 1e-6) - 1 < 1e-13


def test_the_orders_of_a_shared_reserve_divide_its_delta():
    orders, conversions = Reserve(7.0, 1e-6, 0.75).orders()
    assert len(orders) == len(_composition._GRID) + 1
    parts = [1e-6 * 0.25 / len(_composition._GRID)] * len(_composition._GRID) + [1e-6 * 0.75]
    for order, found, part in zip(orders, conversions, parts, strict=True):
        exact = conversion(order, part)
        assert 0 <= found - exact < 1e-12 * max(1, abs(exact))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_order_of_a_reserve_is_the_best_one(epsilon):
    reserve = Account(dpci.ApproxDP(epsilon, 1e-6)).reserve_for(dpci.ZCDP(1e-4))
    assert (reserve.delta, reserve.share) == (pytest.approx(0.9e-6, rel=1e-12), 0.9)
    # Its main order has nine tenths of nine tenths of delta, and no order affords more rho at that.
    rho = -minimize_scalar(
        lambda x: -(epsilon - float(conversion(1 + np.exp(x), 0.81e-6))) / (1 + np.exp(x)),
        bounds=(-5, 10),
        method="bounded",
    ).fun
    best = minimize_scalar(
        lambda x: (1 + np.exp(x)) * rho + float(conversion(1 + np.exp(x), 0.81e-6)),
        bounds=(-5, 10),
        method="bounded",
        options={"xatol": 1e-8},
    ).x
    assert reserve.order - 1 == pytest.approx(np.exp(best), rel=1e-4)


def test_nothing_remains_where_one_of_two_numbers_is_spent():
    ledger = dpci.Ledger(dpci.ApproxDP(1.0, 1e-6))
    ledger.spend(dpci.ApproxDP(1.0, 5e-7), neighbors="replace_one")
    assert ledger.remaining is None
    pure = dpci.Ledger(dpci.ApproxDP(1.0, 1e-6))
    pure.spend(dpci.ApproxDP(0.75, 1e-6), neighbors="replace_one")
    assert pure.remaining == dpci.PureDP(0.25)


def test_a_ledger_is_known_by_128_random_bits():
    ids = {dpci.Ledger(dpci.PureDP(1.0)).id for _ in range(100)}
    assert len(ids) == 100
    assert {len(bytes.fromhex(one)) for one in ids} == {16}
