"""The numbers of a ledger by hand: what a reserve divides, what is left, what a ledger is known by."""

import hashlib
import json
import math
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dpci
from dpci import _core
from dpci.base import codec
from dpci.errors import InvalidInput, LedgerError
from dpci.ledger import composition as _composition
from dpci.ledger import store as _ledger_store
from dpci.ledger.composition import Account, Reserve


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
