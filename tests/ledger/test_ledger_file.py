"""The file of a ledger: crashes, damage, locks, full disks, many processes; models and units that it names."""

import contextlib
import json
import os
import pickle
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.errors import BudgetExceeded, InvalidInput, LedgerError
from dpci.ledger import store as _ledger_store

TOTAL = dpci.PureDP(1.0)
TENTH = dpci.PureDP(0.1)
KILLS = Path(__file__).parents[1] / "support" / "ledger_kills.py"


def spend(ledger, epsilon=0.1):
    return ledger.spend(dpci.PureDP(epsilon), neighbors="replace_one")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def in_child(work):
    """Text of what ``work`` returned or raised in a forked child, as text."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        text = "killed"
        try:
            signal.alarm(120)
            text = str(work())
        except Exception as error:  # noqa: BLE001  # whatever it is goes to the parent
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(target, text.encode())
            os._exit(0)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text


# Reopening.


def test_the_same_total_goes_on(path):
    spend(dpci.Ledger(TOTAL, path=path))
    again = dpci.Ledger(TOTAL, path=str(path))
    spend(again)
    assert again.spent == {"epsilon": 0.2}
    assert dpci.Ledger.open(path).id == again.id
    assert dpci.Ledger.open(path).total == TOTAL


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((dpci.PureDP(1.1),), r"total must be PureDP\(epsilon=1.0\), the value in .*, got total=PureDP\(epsilon=1"),
        ((dpci.ZCDP(1.0),), r"total must be .*, the value in .*, got total=ZCDP"),
        ((TOTAL, "add_remove"), r"neighbors must be 'replace_one', the value in .*, got neighbors='add_remove'"),
    ],
)
def test_another_total_or_relation_is_refused(path, other, message):
    dpci.Ledger(TOTAL, path=path)
    with pytest.raises(InvalidInput, match=message):
        dpci.Ledger(*other, path=path)


def test_a_pickle_opens_the_file(path):
    ledger = dpci.Ledger(TOTAL, path=path).labelled("sent")
    again = pickle.loads(pickle.dumps(ledger))
    spend(again)
    assert ledger.history[0].label == "sent"
    assert again.spent == ledger.spent == {"epsilon": 0.1}


def test_the_working_folder_may_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = dpci.Ledger(TOTAL, path="here.db")
    monkeypatch.chdir("/")
    spend(ledger)
    assert dpci.Ledger.open(tmp_path / "here.db").spent == {"epsilon": 0.1}


def test_a_link_leads_to_the_same_file(tmp_path, path):
    ledger = dpci.Ledger(TOTAL, path=path)
    (tmp_path / "link.db").symlink_to(path)
    spend(dpci.Ledger(TOTAL, path=tmp_path / "link.db"))
    assert ledger.spent == {"epsilon": 0.1}


def test_the_file_holds_nothing_but_the_budgets(path):
    ledger = dpci.Ledger(TOTAL, path=path)
    X, y = np.full((40, 1), 0.123456789), np.arange(40) % 2 == 1
    dpci.fit(X, y, budget=TENTH, l2_strength=1.0, mechanism=dpci.ObjectivePerturbation(moments="none"), ledger=ledger)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM entries").fetchall()
    assert [(row[0], row[2:]) for row in rows] == [(1, ("dpci.fit", None, "pure", 0.1, None, None, None, "row"))]
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


# Damage.


def test_damage_is_found_and_nothing_is_overwritten(path, tmp_path):
    """Every byte in turn is hard to wait for; 150 of them, and all truncations at pages."""
    ledger = dpci.Ledger(TOTAL, path=path)
    for _ in range(5):
        spend(ledger)
    good = path.read_bytes()
    rng = np.random.default_rng(3)
    # Bytes that hold something: others are free space that no reader looks at.
    used = np.flatnonzero(np.frombuffer(good, np.uint8))
    copies = [good[:cut] for cut in range(0, len(good), 1024)]
    for at in rng.choice(used, 150, replace=False):
        flipped = bytearray(good)
        flipped[at] ^= 1 << int(rng.integers(8))
        copies.append(bytes(flipped))
    found = 0
    target = tmp_path / "damaged.db"
    for damaged in copies:
        target.write_bytes(damaged)
        try:
            again = dpci.Ledger(TOTAL, path=target)
        except (LedgerError, InvalidInput):
            found += 1
            assert target.read_bytes() == damaged
        else:
            # Some bytes are counters of SQLite's own; what is read must be what was written.
            assert again.history == ledger.history
    assert found >= 120


def _execute(path, script):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)


def test_a_changed_number_is_found(path):
    ledger = dpci.Ledger(TOTAL, path=path)
    spend(ledger)
    with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE entries SET epsilon = 0.01")
    _execute(path, "DROP TRIGGER no_change; UPDATE entries SET epsilon = 0.01;")
    for use in (lambda: dpci.Ledger.open(path), lambda: dpci.Ledger(TOTAL, path=path)):
        with pytest.raises(LedgerError, match="do not match their checksum"):
            use()
    # Who has read the entry before goes by that.
    assert ledger.spent == {"epsilon": 0.1}


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("budgets\n" * 500),
    "another database": lambda path: _execute(
        path, "PRAGMA journal_mode = WAL; CREATE TABLE entries (number); INSERT INTO entries VALUES (1);"
    ),
    "a folder": lambda path: path.mkdir(),
    "a later format": lambda path: (dpci.Ledger(TOTAL, path=path), _execute(path, "PRAGMA user_version = 3")),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files_are_refused_and_left_alone(path, case):
    FOREIGN[case](path)
    before = None if path.is_dir() else path.read_bytes()
    for use in (lambda: dpci.Ledger(TOTAL, path=path), lambda: dpci.Ledger.open(path)):
        with pytest.raises(LedgerError, match="the file of a ledger must"):
            use()
    assert before is None or path.read_bytes() == before


def test_a_file_that_vanishes_or_is_replaced_is_not_followed(path, tmp_path):
    ledger = dpci.Ledger(TOTAL, path=path)
    shutil.move(path, tmp_path / "away")
    with pytest.raises(LedgerError, match="must exist"):
        spend(ledger)
    assert not path.exists()
    dpci.Ledger(TOTAL, path=path)
    with pytest.raises(LedgerError, match="must not be replaced while it is open, got another ledger"):
        spend(ledger)


def test_a_missing_folder(tmp_path):
    with pytest.raises(LedgerError, match="the file of a ledger must be"):
        dpci.Ledger(TOTAL, path=tmp_path / "none" / "ledger.db")


def test_an_older_copy_put_back_is_found_by_who_has_seen_more(path, tmp_path):
    ledger = dpci.Ledger(TOTAL, path=path)
    spend(ledger)
    shutil.copy(path, tmp_path / "older")
    spend(ledger)
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(LedgerError, match="do not match their checksum"):
        spend(ledger)


def test_a_commit_is_synced_to_the_disk(path):
    dpci.Ledger(TOTAL, path=path)
    with _ledger_store._connection(path, "rw") as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# Faults.


def test_a_lock_that_is_held_for_too_long(path, monkeypatch):
    ledger = dpci.Ledger(TOTAL, path=path)
    monkeypatch.setattr(_ledger_store, "BUSY_SECONDS", 0.2)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="database is locked"):
            spend(ledger)
        connection.execute("ROLLBACK")
    spend(ledger)
    assert ledger.spent == {"epsilon": 0.1}


def test_a_full_disk_releases_nothing(path):
    """A limit on the size of files stands for the disk; the write in the middle of a commit fails."""
    ledger = dpci.Ledger(TOTAL, path=path)
    X, y = np.full((40, 1), 0.1), np.arange(40) % 2 == 1

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        return dpci.fit(
            X, y, budget=TENTH, l2_strength=1.0, mechanism=dpci.ObjectivePerturbation(moments="none"), ledger=ledger
        )

    assert in_child(limited).startswith("LedgerError: the file of a ledger must be a ledger of dpci that can be read")
    # The write may be spent, and is not forgotten if it was.
    assert ledger.spent["epsilon"] in (0.0, 0.1)
    spend(ledger)


def test_a_file_that_must_not_be_written(tmp_path, tmp_path_factory):
    if os.geteuid() != 0 or in_child(lambda: os.seteuid(65534)) != "None":
        pytest.skip("needs root, to become another user, and such a user")
    folder = tmp_path / "read only"
    folder.mkdir()
    ledger = dpci.Ledger(TOTAL, path=folder / "ledger.db")
    closed = [parent for parent in (folder, *folder.parents) if not parent.stat().st_mode & stat.S_IXOTH]
    if not all(parent.is_relative_to(tmp_path_factory.getbasetemp().parent) for parent in closed):
        pytest.skip("another user cannot enter the folder of temporary files, which is not ours to open")
    for parent in closed:
        parent.chmod(0o755)

    def as_nobody():
        os.seteuid(65534)
        return spend(ledger)

    assert "readonly database" in in_child(as_nobody)
    assert ledger.history == ()


def test_the_clock_may_go_backwards(path, monkeypatch):
    ledger = dpci.Ledger(TOTAL, path=path)
    times = iter(["2030-01-01T00:00:00.000000Z", "1999-01-01T00:00:00.000000Z"])
    monkeypatch.setattr("dpci.ledger.ledger.now", lambda: next(times))
    spend(ledger), spend(ledger)
    assert [entry.time[:4] for entry in ledger.history] == ["2030", "1999"]
    assert ledger.spent == {"epsilon": 0.2}


# Many at once.


def spend_until_refused(ledger, epsilon):
    count = 0
    while True:
        try:
            spend(ledger, epsilon)
        except BudgetExceeded:
            return count
        count += 1


@pytest.mark.parametrize("in_file", [True, False], ids=["file", "memory"])
def test_eight_threads_spend_the_total_and_no_more(path, in_file):
    ledger = dpci.Ledger(TOTAL, path=path if in_file else None)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: spend_until_refused(ledger, 0.025), range(8)))
    assert sum(counts) == len(ledger.history) == 40
    assert ledger.spent == {"epsilon": 1.0}
    assert [entry.number for entry in ledger.history] == list(range(1, 41))


def test_eight_processes_create_and_spend_the_total_and_no_more(path):
    script = f"""
import os, dpci

def spend_all():
    ledger, count = dpci.Ledger(dpci.PureDP(1.0), path={str(path)!r}), 0
    while True:
        try:
            ledger.spend(dpci.PureDP(0.025), neighbors="replace_one")
        except dpci.BudgetExceeded:
            return count
        count += 1

ready, start = os.pipe()
children = []
for _ in range(8):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(start)
        os.read(ready, 1)  # all start when the parent closes its end
        os._exit(spend_all())
os.close(start)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    assert len(counts) == 8
    assert sum(counts) == 40
    assert dpci.Ledger.open(path).spent == {"epsilon": 1.0}


def test_opening_while_another_process_spends(path):
    """Identity, entries and checksum must come from one instant."""
    ledger = dpci.Ledger(dpci.PureDP(100.0), path=path)
    child = os.fork()
    if child == 0:
        for _ in range(60):
            spend(ledger)
            time.sleep(0.005)
        os._exit(0)
    opened = 0
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        dpci.Ledger.open(path)
        opened += 1
    assert opened >= 10
    assert len(ledger.history) == 60


def test_forks_in_the_middle_of_spends(path):
    """A child forked while other threads are inside SQLite must neither hang nor inherit their locks."""
    ledger = dpci.Ledger(dpci.PureDP(10.0), path=path)
    stop, written = threading.Event(), [0, 0]

    def spender(i):
        while not stop.is_set():
            spend(ledger, 0.01)
            written[i] += 1
            # Neither Python's locks nor SQLite's are fair; without a pause the children would wait for long.
            time.sleep(0.02)

    threads = [threading.Thread(target=spender, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    try:
        answers = [in_child(lambda: [spend(ledger, 0.01).number for _ in range(3)]) for _ in range(6)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(answer.startswith("[") for answer in answers), answers
    history = ledger.history
    assert len(history) == sum(written) + 18
    # The numbers that the children were told are entries of their own.
    numbers = [number for answer in answers for number in json.loads(answer)]
    assert len(set(numbers)) == 18
    assert ledger.spent == {"epsilon": round(0.01 * len(history), 2)}


def test_a_ledger_in_memory_refuses_a_forked_child():
    ledger = dpci.Ledger(TOTAL)
    answer = in_child(lambda: spend(ledger))
    assert answer.startswith("LedgerError: a ledger shared with other processes must have a file (path=...)")
    spend(ledger)
    assert ledger.spent == {"epsilon": 0.1}


def test_forty_kills_lose_and_double_nothing(tmp_path):
    options = {"folder": str(tmp_path), "n_kills": 40, "seed": 1}
    run = subprocess.run([sys.executable, KILLS, json.dumps(options)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    assert seen["kills"] == 40
    assert seen["releases that came out"] >= 10
    assert seen["spends in the files"] >= seen["releases that came out"]


X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (500, 1))


def fit(**keywords):
    return dpci.fit(X, X[:, 0] > 0, **{"budget": TENTH, "l2_strength": 0.5, **keywords})


def test_a_result_and_its_ledger_know_each_other(tmp_path):
    for path in (None, tmp_path / "ledger.db"):
        ledger = dpci.Ledger(dpci.PureDP(1.0), path=path)
        ledger.spend(TENTH, neighbors="replace_one")
        result = fit(ledger=ledger.labelled("secret label"))
        saved = json.loads(result.to_json())
        assert saved["paid"] == {"ledger": ledger.id, "entry": 2, "time": ledger.history[1].time}
        assert "secret label" not in result.to_json()
        assert ledger.models == {2: result.digest}
        assert result.digest == saved["checksum"] == dpci.PrivateFit.from_json(result.to_json()).digest
        assert json.loads(ledger.to_json())["models"] == {"2": result.digest}
    assert fit().to_json().count('"paid": null') == 1
    assert dpci.Ledger.open(path).models == {2: result.digest}
    with closing(sqlite3.connect(path)) as file, file:
        for change in ("UPDATE models SET digest = 'x'", "DELETE FROM models"):
            with pytest.raises(sqlite3.IntegrityError, match="a ledger only grows"):
                file.execute(change)
        with pytest.raises(sqlite3.IntegrityError, match="an entry has one model"):
            file.execute("REPLACE INTO models VALUES (2, 'x', 'y')")
        file.execute("INSERT INTO models VALUES (1, 'sha256:x', 'y')")
    with pytest.raises(LedgerError, match="hashes of its models do not match"):
        dpci.Ledger.open(path).models  # noqa: B018  # read


def test_a_model_is_not_lost_where_the_ledger_cannot_take_its_hash(monkeypatch):
    ledger = dpci.Ledger(dpci.PureDP(1.0))

    def full(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(type(ledger._store), "keep_model", full)
    with pytest.warns(dpci.DpciWarning, match="hash of the model of entry 1, got none: the disk is full"):
        result = fit(ledger=ledger)
    assert result.params.size


PANEL = dpci.datasets.simulate_panel(500, n_rows=3, seed=0)
SAME = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "classes": (-1, 1)}


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "ledger"
    with dpci.Ledger(dpci.PureDP(9.0), path=path) as found:
        yield found


def test_an_entry_has_one_model(ledger):
    result = of_rows(ledger)
    with pytest.raises(LedgerError):
        ledger._store.keep_model(1, "sha256:of another")
    assert ledger.models == {1: result.digest}


def of_rows(ledger):
    return dpci.fit(PANEL.X, PANEL.y, ledger=ledger, **SAME)


def of_persons(ledger):
    return dpci.fit(PANEL.X, PANEL.y, persons=PANEL.persons, ledger=ledger, **SAME)


@pytest.mark.parametrize(("first", "second"), [(of_rows, of_persons), (of_persons, of_rows)], ids=["rows", "persons"])
def test_a_release_of_another_unit_is_refused_and_costs_nothing(ledger, first, second):
    first(ledger)
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        second(ledger)
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        ledger.spend(dpci.PureDP(1.0), neighbors="replace_one", unit="row" if first is of_persons else "person")
    first(ledger)
    assert [entry.unit for entry in ledger.history] == ["row" if first is of_rows else "person"] * 2
    assert ledger.remaining == dpci.PureDP(7.0)
    assert ("persons, each with all rows" in ledger.summary()) == (first is of_persons)
    assert [entry["unit"] for entry in json.loads(ledger.to_json())["entries"]] == [e.unit for e in ledger.history]


def test_the_unit_is_in_the_file_and_protected_by_its_checksum(tmp_path):
    path = tmp_path / "ledger"
    with dpci.Ledger(dpci.PureDP(9.0), path=path) as ledger:
        of_persons(ledger)
    with dpci.Ledger.open(path) as again, pytest.raises(InvalidInput, match="protects a row after entry 1"):
        of_rows(again)
    with pytest.raises(InvalidInput, match="unit"):
        dpci.Ledger(dpci.PureDP(1.0)).spend(dpci.PureDP(1.0), neighbors="replace_one", unit="household")


# Its noise is real, and can hide the curvature of persons.
@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_every_function_that_takes_persons_says_so_to_the_ledger():
    pytest.importorskip("sklearn", reason="scikit-learn is what the estimator is for")
    from dpci.sklearn import PrivateLogisticRegression  # noqa: PLC0415  # optional

    grid = [{"l2_strength": 0.1}]
    keywords = {"budget": dpci.PureDP(1.0), "classes": (-1, 1), "persons": PANEL.persons}
    ledger = dpci.Ledger(dpci.PureDP(9.0))
    dpci.tuning.tune(PANEL.X, PANEL.y, candidates=grid, validation_radius=2.0, ledger=ledger, **keywords)
    dpci.tuning.tune(PANEL.X, PANEL.y, method="public_rule", ledger=ledger, **keywords)
    model = PrivateLogisticRegression(epsilon=1.0, l2_strength=0.1, classes=(-1, 1), ledger=ledger)
    model.fit(PANEL.X, PANEL.y, persons=PANEL.persons)
    assert [entry.unit for entry in ledger.history] == ["person"] * 3
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        model.fit(PANEL.X, np.asarray(PANEL.y))
