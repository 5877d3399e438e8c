"""Sums of budgets that a ledger keeps: exact decimals, accountants, adversaries, and the numbers of its format."""

import hashlib
import json
import math
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import dpci
from dpci import _core
from dpci.base import codec
from dpci.errors import InvalidInput, LedgerError
from dpci.ledger import composition as _composition
from dpci.ledger import store as _ledger_store
from dpci.ledger.composition import Account, Reserve, exact, rounded_down

TOTAL = dpci.ApproxDP(1.0, 1e-6)


def account_of(total, *budgets):
    account = Account(total)
    for budget in budgets:
        assert account.affords(budget)
        account.add(budget, account.reserve_for(budget))
    return account


# Decimals.


@pytest.mark.parametrize(("step", "count", "total"), [(0.1, 10, 1.0), (0.1, 3, 0.3), (0.2, 3, 0.6), (1e-3, 700, 0.7)])
def test_decimals_add_up_as_written(step, count, total):
    account = account_of(dpci.PureDP(total), *[dpci.PureDP(step)] * count)
    assert account.spent() == {"epsilon": Fraction(repr(total))}
    assert account.remaining() is None
    assert not account.affords(dpci.PureDP(1e-300))


POSITIVE = st.floats(min_value=1e-300, max_value=1e100, exclude_max=True)


@settings(deadline=None)
@given(POSITIVE, st.floats(min_value=1e-300, max_value=1.0, exclude_max=True))
def test_a_release_runs_at_floats_within_the_decimals_that_are_charged(epsilon, delta):
    run = rounded_down(dpci.ApproxDP(epsilon, delta))
    for name, charged in (("epsilon", epsilon), ("delta", delta)):
        number = getattr(run, name)
        assert Fraction(number) <= exact(charged) < Fraction(math.nextafter(number, math.inf))


@settings(deadline=None)
@given(st.lists(st.floats(min_value=1e-6, max_value=0.3), max_size=40))
def test_what_remains_can_be_spent_and_no_more(spends):
    account = Account(dpci.PureDP(1.0))
    for epsilon in spends:
        if account.affords(dpci.PureDP(epsilon)):
            account.add(dpci.PureDP(epsilon))
    total = sum((exact(entry) for entry in spends), Fraction(0))
    assert account.spent()["epsilon"] <= 1
    assert (total <= 1) == (account.spent()["epsilon"] == total)
    assert exact(account.spent_as_floats()["epsilon"]) >= account.spent()["epsilon"]
    remaining = account.remaining()
    if remaining is not None:
        assert account.affords(remaining)
        assert not account.affords(dpci.PureDP(math.nextafter(remaining.epsilon, math.inf) + 1e-15))


def test_ten_runs_at_a_tenth_stay_within_one_as_real_numbers():
    assert 10 * Fraction(0.1) > 1  # what adding floats as they are would have spent
    assert 10 * Fraction(rounded_down(dpci.PureDP(0.1)).epsilon) <= 1


# zCDP.


def test_pure_spends_cost_what_randomised_response_costs():
    account = account_of(dpci.ZCDP(1.0), dpci.PureDP(1.0), dpci.ZCDP(0.25))
    rho = math.tanh(0.5) + 0.25
    assert rho <= account.spent()["rho"] <= rho * (1 + 1e-14)
    assert account.affords(dpci.ZCDP(1.0 - rho - 1e-12))
    assert not account.affords(dpci.ZCDP(1.0 - rho))


# (epsilon, delta).


def test_pure_and_approximate_spends_add():
    account = account_of(TOTAL, dpci.ApproxDP(0.25, 1e-7), dpci.PureDP(0.5))
    assert account.spent() == {"epsilon": Fraction(3, 4), "delta": Fraction(1, 10**7)}
    assert account.remaining() == dpci.ApproxDP(0.25, 9e-7)
    assert not account.affords(dpci.ApproxDP(0.2, 9.1e-7))
    assert account_of(TOTAL, dpci.ApproxDP(0.25, 1e-6)).remaining() == dpci.PureDP(0.75)


@pytest.mark.parametrize("total", [TOTAL, dpci.ApproxDP(0.1, 1e-9), dpci.ApproxDP(8.0, 1e-5), dpci.ApproxDP(3.0, 0.2)])
def test_one_zcdp_spend_may_take_all(total):
    account = account_of(total, total.zcdp_within())
    assert account.spent()["epsilon"] <= exact(total.epsilon)
    assert not account.affords(dpci.ZCDP(total.zcdp_within().rho * 1e-6))


@pytest.mark.parametrize("total", [TOTAL, dpci.ApproxDP(0.1, 1e-9), dpci.ApproxDP(8.0, 1e-5)])
def test_many_zcdp_spends_reach_the_best_conversion_up_to_what_is_kept_for_others(total):
    step = dpci.ZCDP(total.zcdp_within().rho / 50)
    account, count = Account(total), 0
    while account.affords(step):
        account.add(step, account.reserve_for(step))
        count += 1
    assert 46 <= count <= 50
    # The independent conversion at all of delta needs less.
    spent = account.spent()
    best = _core.zcdp_to_approx_epsilon(count * step.rho, total.delta, "tight")
    assert best <= spent["epsilon"] <= exact(total.epsilon)


def sequence(rng):
    """Random spends with the events that dominate them, as dp-accounting knows them."""
    kind = rng.integers(3)
    epsilon = float(rng.choice([0.01, 0.05, 0.1]))
    if kind == 0:
        return dpci.PureDP(epsilon), dp_accounting.LaplaceDpEvent(1.0 / epsilon)
    if kind == 1:
        rho = epsilon**2 / 2
        return dpci.ZCDP(rho), dp_accounting.GaussianDpEvent(1.0 / epsilon)
    delta = _core.gaussian_delta(epsilon, epsilon)
    return dpci.ApproxDP(epsilon, delta), dp_accounting.GaussianDpEvent(1.0 / epsilon)


@pytest.mark.parametrize("seed", range(2))
def test_an_independent_accountant_finds_no_more(seed):
    """Laplace and Gaussian mechanisms composed by their privacy loss distributions, which is exact up to 1e-4."""
    rng = np.random.default_rng(seed)
    total = dpci.ApproxDP(2.0, 0.9)
    account, accountant = Account(total), PLDAccountant()
    for _ in range(30):
        budget, event = sequence(rng)
        if not account.affords(budget):
            break
        account.add(budget, account.reserve_for(budget))
        accountant.compose(event)
        spent = account.spent_as_floats()
        assert accountant.get_epsilon(spent["delta"]) <= spent["epsilon"] + 1e-3


# Adaptive adversaries.


def responses(budget):
    """Probabilities of the outcomes on two neighbouring data sets, of a mechanism that attains the budget."""
    if isinstance(budget, dpci.ZCDP):
        # Randomised response at epsilon costs epsilon tanh(epsilon / 2) in zCDP, and no less.
        budget = budget.pure_within()
    p = 1.0 / (1.0 + math.exp(-budget.epsilon))
    pairs = [(p, 1.0 - p), (1.0 - p, p)]
    if isinstance(budget, dpci.ApproxDP):
        delta = budget.delta
        pairs = [(delta, 0.0), (0.0, delta), *(((1 - delta) * a, (1 - delta) * b) for a, b in pairs)]
    return pairs


def divergence(total, at, choose, depth):
    """Greatest hockey-stick divergence at exp(at), both ways, of all outcomes of an adversary whom a ledger stops.

    ``choose(history)`` is what the adversary asks for next.
    """

    def walk(history, spends, p, q, left):
        budget = choose(history) if left else None
        account = Account(total).after(spends)
        if budget is None or not account.affords(budget):
            excess = math.exp(at)
            return np.array([max(p - excess * q, 0.0), max(q - excess * p, 0.0)])
        paid = [*spends, (budget, account.reserve_for(budget))]
        return sum(
            walk((*history, outcome), paid, p * a, q * b, left - 1)
            for outcome, (a, b) in enumerate(responses(budget))
            if a + b > 0.0
        )

    return walk((), [], 1.0, 1.0, depth).max()


def random_adversary(seed, menu):
    """A deterministic strategy: what is asked depends on everything seen so far."""

    def choose(history):
        rng = np.random.default_rng([seed, len(history), *history])
        return menu[rng.integers(len(menu))]

    return choose


COARSE = dpci.ApproxDP(1.0, 0.02)
MIXED = [
    *(dpci.PureDP(e) for e in (0.1, 0.3, 0.5)),
    *(dpci.ApproxDP(e, d) for e, d in ((0.05, 0.01), (0.4, 0.004), (0.2, 0.002), (0.3, 0.018))),
    *(dpci.ZCDP(r) for r in (0.004, 0.015, 0.03)),
]


def test_no_adaptive_adversary_exceeds_an_approximate_total():
    """Exact, by summing over all outcomes: what a proof about filters says, tried on strategies that mix everything."""
    found = [divergence(COARSE, COARSE.epsilon, random_adversary(seed, MIXED), 6) for seed in range(60)]
    assert max(found) <= COARSE.delta * (1 + 1e-9)
    # The bound is not idle: some strategy uses most of delta.
    assert max(found) >= 0.5 * COARSE.delta


def test_the_same_adversaries_do_exceed_half_of_it():
    """The test above can fail: with the ledger of a total half again as large it does."""
    larger = dpci.ApproxDP(2.0 * COARSE.epsilon, 1.5 * COARSE.delta)
    assert max(divergence(larger, COARSE.epsilon, random_adversary(s, MIXED), 6) for s in range(12)) > COARSE.delta


def test_no_adaptive_adversary_exceeds_a_pure_total():
    menu = [dpci.PureDP(e) for e in (0.05, 0.1, 0.2, 0.35)]
    total = dpci.PureDP(0.7)
    adversaries = [random_adversary(seed, menu) for seed in range(40)]
    assert max(divergence(total, 0.7, choose, 8) for choose in adversaries) <= 1e-12
    assert max(divergence(total, 0.69, choose, 8) for choose in adversaries) > 1e-3


# The reserve.


def test_a_reserve_is_set_aside_once_and_means_the_same_when_read_back():
    account = account_of(TOTAL, dpci.ZCDP(0.001))
    first = account.reserve
    account.add(dpci.ZCDP(0.001), account.reserve_for(dpci.ZCDP(0.001)))
    assert account.reserve is first
    assert first.delta == pytest.approx(0.9e-6)
    again = Account(TOTAL).after([(dpci.ZCDP(0.001), Reserve(**first.parameters())), (dpci.ZCDP(0.001), None)])
    assert again.spent() == account.spent()


def test_after_a_zcdp_spend_others_are_still_paid():
    account = account_of(TOTAL, dpci.ZCDP(0.005), dpci.ApproxDP(0.1, 5e-8), dpci.PureDP(0.1))
    assert account.spent()["delta"] <= Fraction(95, 10**8)
    remaining = account.remaining()
    assert isinstance(remaining, dpci.ApproxDP)
    assert account.affords(remaining)
    account.add(remaining)
    # Delta is used up; a pure spend costs less than its epsilon at a Renyi order, so some of that may be left.
    assert account.spent()["delta"] == Fraction(1, 10**6)
    assert isinstance(account.remaining(), dpci.PureDP)


def test_small_spends_do_not_pay_for_large_ones():
    """One order for all would cost half of epsilon at once."""
    assert account_of(TOTAL, dpci.ZCDP(1e-4)).spent()["epsilon"] < 0.12


@given(
    st.sampled_from([dpci.ApproxDP(1e-90, 1e-280), dpci.ApproxDP(1e100, 1 - 1e-9), TOTAL, dpci.ApproxDP(1.0, 1e-300)]),
    st.lists(
        st.one_of(
            st.builds(dpci.PureDP, POSITIVE),
            st.builds(dpci.ZCDP, POSITIVE),
            st.builds(dpci.ApproxDP, POSITIVE, st.floats(min_value=1e-300, max_value=1.0, exclude_max=True)),
        ),
        max_size=6,
    ),
)
@settings(deadline=None)
def test_odd_numbers_never_overspend_or_fail(total, budgets):
    account = Account(total)
    for budget in budgets:
        if account.affords(budget):
            account.add(budget, account.reserve_for(budget))
        spent = account.spent()
        assert all(0 <= spent[name] <= exact(value) for name, value in total.parameters().items())
        remaining = account.remaining()
        assert remaining is None or account.affords(remaining)


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


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 1e9])
def test_the_order_of_a_reserve_is_the_best_one(epsilon):
    reserve = Account(dpci.ApproxDP(epsilon, 1e-6)).reserve_for(dpci.ZCDP(1e-4))
    assert (reserve.delta, reserve.share) == (pytest.approx(0.9e-6, rel=1e-12), 0.9)
    # Its main order has nine tenths of nine tenths of delta, and no order affords more rho at that.
    rho = -minimize_scalar(
        lambda x: -(epsilon - float(conversion(1 + np.exp(x), 0.81e-6))) / (1 + np.exp(x)),
        bounds=(-12, 10),
        method="bounded",
    ).fun
    best = minimize_scalar(
        lambda x: (1 + np.exp(x)) * rho + float(conversion(1 + np.exp(x), 0.81e-6)),
        bounds=(-12, 10),
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


def test_a_reserve_needs_a_delta_whose_shares_are_floats():
    assert Account(dpci.ApproxDP(1.0, 1.5e-290)).reserve_for(dpci.ZCDP(1e-9)) is not None
    assert Account(dpci.ApproxDP(1.0, 0.5e-290)).reserve_for(dpci.ZCDP(1e-9)) is None


@pytest.mark.parametrize("order", [1.25, 3.0, 17.0, 1025.0])
def test_sums_of_many_spends_are_not_below_the_exact_ones(order):
    account = Account(dpci.ApproxDP(1e4, 1e-6))
    account.add(dpci.ZCDP(1e-9), Reserve(order, 1e-6, 1.0))
    one = Fraction(_core.pure_rdp(math.nextafter(0.7, math.inf), order))
    conversion_at_least = Fraction(float(conversion(order, 1e-6) * (1 - mp.mpf(2) ** -50)))
    for number in range(1, 201):
        account.add(dpci.PureDP(0.7))
        exact = Fraction(order) * Fraction(1e-9) + number * one + conversion_at_least
        assert account.spent()["epsilon"] >= exact


def test_checksums_are_part_of_the_format():
    expected = hashlib.blake2b(b'before{"a": 2, "b": 1}', digest_size=16).hexdigest()
    assert _ledger_store._next_head("before", {"b": 1, "a": 2}) == expected


def test_a_page_that_nothing_uses_is_damage(tmp_path):
    path = tmp_path / "ledger.db"
    dpci.Ledger(dpci.PureDP(1.0), path=path)
    data = bytearray(path.read_bytes())
    pages = int.from_bytes(data[28:32], "big")
    data[28:32] = (pages + 1).to_bytes(4, "big")
    path.write_bytes(data + bytes(len(data) // pages))
    with pytest.raises(LedgerError, match="integrity check"):
        dpci.Ledger.open(path)


def test_names_that_no_file_can_have_are_refused():
    for name in ("a\0b", "\ud800", "", b"bytes", 3):
        with pytest.raises(InvalidInput, match="path must be the name of a file"):
            dpci.Ledger(dpci.PureDP(1.0), path=name)


def test_saved_objects_are_of_one_version():
    def read(version):
        text = codec.saved_text({"a": 1}, schema="s", version=version)
        return codec._contents(json.loads(text), what="text", schema="s", version=2)

    assert read(2) == {"a": 1}
    for version in (1, 3, None, "2"):
        with pytest.raises(InvalidInput, match="must have schema_version=2"):
            read(version)


def test_the_greatest_number_of_a_ledger():
    assert dpci.Ledger(dpci.PureDP(1e100)).total == dpci.PureDP(1e100)
    with pytest.raises(InvalidInput, match="at most 1e\\+100"):
        dpci.Ledger(dpci.PureDP(math.nextafter(1e100, math.inf)))


def test_a_ledger_is_read_as_of_one_moment(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    dpci.Ledger(dpci.PureDP(1.0), path=path)
    read = _ledger_store._read_identity
    refused = []

    def read_and_write_meanwhile(connection, file):
        found = read(connection, file)
        # Another program that would change what has been read in part.
        with closing(sqlite3.connect(path, timeout=0.0)) as other:
            try:
                other.execute("UPDATE ledger SET head = head")
                other.commit()
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return found

    monkeypatch.setattr(_ledger_store, "_read_identity", read_and_write_meanwhile)
    ledger = dpci.Ledger.open(path)
    ledger.history  # noqa: B018  # what is tested is the reading
    assert len(refused) >= 2
    assert all("locked" in message for message in refused)


@pytest.mark.parametrize("total", [50.0, 157.08, 308.31])
def test_what_remains_of_a_great_total_is_less_by_some_bits_alone(total):
    # Divergences are almost epsilon here: all that is left does not fit once the room for rounding is counted.
    account = Account(dpci.ApproxDP(total, 1e-6))
    first = dpci.ZCDP(0.0059)
    account.add(first, account.reserve_for(first))
    for _ in range(40):
        account.add(dpci.PureDP(0.005))
    left = Fraction(total) - account.spent()["epsilon"]
    remaining = account.remaining()
    assert account.affords(remaining)
    assert 1 - 1e-12 < remaining.epsilon / float(left) < 1
    assert remaining.delta == pytest.approx(1e-7, rel=1e-9)


def test_sums_are_raised_by_their_room():
    # Sixteen units of 1 + 3.
    assert _composition._sum_rounded_up(np.array([[1.0], [-3.0]]), 16) == [-2.0 + 64 * 2.0**-52]


def test_files_are_closed_again(tmp_path):
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system does not say which files are open")
    before = len(list(folder.iterdir()))
    for number in range(5):
        with dpci.Ledger(dpci.PureDP(1.0), path=tmp_path / f"{number}.db") as ledger:
            ledger.spend(dpci.PureDP(0.1), neighbors="replace_one")
    assert len(list(folder.iterdir())) == before


def test_json_is_indented_by_two():
    lines = dpci.Ledger(dpci.PureDP(1.0)).to_json().splitlines()
    assert lines[0] == "{"
    assert lines[1].startswith('  "schema": "dpci.Ledger"')


def test_a_ledger_leaves_no_write_ahead_log(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = dpci.Ledger(dpci.PureDP(1.0), path=path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    ledger.spend(dpci.PureDP(0.1), neighbors="replace_one")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_first_spend_is_raised_by_sixteen_units():
    account = Account(dpci.ApproxDP(1.0, 1e-6))
    reserve = Reserve(3.0, 1e-6, 1.0)
    account.add(dpci.ZCDP(0.01), reserve)
    parts = [3.0 * 0.01, reserve.orders()[1][0]]
    assert account.spent()["epsilon"] == Fraction(sum(parts) + 16 * 2.0**-52 * sum(parts))


def test_what_a_ledger_says_of_itself():
    ledger = dpci.Ledger(dpci.PureDP(1.0), "add_remove", errors="private", n_public=70)
    first, _, second, *_ = ledger.summary().splitlines()
    assert first.endswith("one record or person added or removed, n_public=70, private errors")
    assert second == f"id         {ledger.id}"
    assert "n_public" not in dpci.Ledger(dpci.PureDP(1.0), "add_remove").summary()
    assert json.loads(ledger.to_json())["version"] == 1
    ledger.spend(dpci.PureDP(0.9), neighbors="add_remove")
    assert "class='scroll words'" in ledger._repr_html_().replace('"', "'")
    with pytest.raises(dpci.BudgetExceeded, match=r"requested PureDP\(epsilon=0.2\), remaining PureDP\(epsilon=0.1"):
        ledger.spend(dpci.PureDP(0.2), neighbors="add_remove")
    ledger.spend(dpci.PureDP(0.1), neighbors="add_remove")
    with pytest.raises(dpci.BudgetExceeded, match=r"requested PureDP\(epsilon=0.2\), remaining nothing, total"):
        ledger.spend(dpci.PureDP(0.2), neighbors="add_remove")


@pytest.mark.parametrize("number", [0, 1, 1000])
def test_the_room_of_a_sum_of_divergences_is_sixteen_units_and_one_a_spend(number):
    account = Account(dpci.ApproxDP(1e4, 1e-6))
    account.add(dpci.ZCDP(0.01), Reserve(3.0, 1e-6, 1.0))
    for _ in range(number):
        account.add(dpci.PureDP(0.05))
    parts = [*account._orders * 0.01, *account._pure, *account._conversions]
    room = account.spent()["epsilon"] - sum(map(Fraction, parts))
    assert float(room / sum(abs(Fraction(part)) for part in parts)) * 2**52 == pytest.approx(16 + number, abs=2)


def test_a_file_says_what_it_is_and_is_not_trusted(tmp_path):
    path = tmp_path / "ledger.db"
    dpci.Ledger(dpci.PureDP(1.0), path=path)
    with _ledger_store._connection(path, "rw") as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x64706369,)  # "dpci"
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(LedgerError, match="unable to open database file"):
        dpci.Ledger(dpci.PureDP(1.0), path=tmp_path / "nowhere" / "ledger.db")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LedgerError, match=r"must exist, got .*dpci ledger create FILE") as failure:
        dpci.Ledger.open(tmp_path / "ledger.db")
    assert (failure.value.code, failure.value.path) == ("ledger_missing", str(tmp_path / "ledger.db"))
