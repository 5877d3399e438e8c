"""Deprecations: what they say, how long they last, and that none is overdue; versions are the same everywhere."""

import importlib
import inspect
import pkgutil
import re
import tomllib
import warnings
from pathlib import Path

import pytest

import dpci
from dpci.base import deprecation as _deprecation
from dpci.base.deprecation import Deprecation, renamed_keyword
from dpci.errors import DpciDeprecationWarning, DpciWarning, InvalidInput

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_announcements(monkeypatch):
    """Announcements of a test are forgotten after it."""
    monkeypatch.setattr(_deprecation, "DEPRECATIONS", list(_deprecation.DEPRECATIONS))


def renamed():
    @renamed_keyword("n_boot", "n_replicates", since="0.1", removal="0.3")
    def study(rows, *, n_replicates=1):
        """Return both."""
        return rows, n_replicates

    return study


def test_an_old_keyword_works_with_a_warning_at_its_caller():
    study = renamed()
    message = (
        r"study\(n_boot=\.\.\.\) is deprecated since dpci 0\.1 and will be removed in 0\.3: use n_replicates=\.\.\."
    )
    with pytest.warns(DpciDeprecationWarning, match=message) as caught:
        assert study("rows", n_boot=7) == ("rows", 7)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert study("rows", n_replicates=7) == ("rows", 7)
    assert study.__doc__ == "Return both."
    assert list(inspect.signature(study).parameters) == ["rows", "n_replicates"]


def test_both_names_are_refused():
    with pytest.raises(InvalidInput, match="must be called with n_replicates only, got n_boot"):
        renamed()("rows", n_boot=7, n_replicates=7)


def test_the_warning_is_shown_by_default_and_is_dpci_s():
    assert issubclass(DpciDeprecationWarning, FutureWarning)
    assert issubclass(DpciDeprecationWarning, DpciWarning)


@pytest.mark.parametrize(
    ("since", "removal"), [("0.1", "0.3"), ("0.9", "1.0"), ("0.2", "0.10"), ("1.2", "2.0"), ("1.2", "3.0")]
)
def test_enough_notice(since, removal):
    assert Deprecation("a", "b", since, removal) in _deprecation.DEPRECATIONS


@pytest.mark.parametrize(
    ("since", "removal"),
    [("0.1", "0.1"), ("0.1", "0.2"), ("1.0", "0.9"), ("1.2", "1.10"), ("0.1", "1.1"), ("1.7", "2.3")],
)
def test_too_little_notice(since, removal):
    with pytest.raises(InvalidInput, match="at least 2 minor versions"):
        Deprecation("a", "b", since, removal)


@pytest.mark.parametrize(("version", "overdue"), [("0.2.9", False), ("0.3.0", True), ("0.10.0", True), ("1.0.0", True)])
def test_overdue(monkeypatch, version, overdue):
    monkeypatch.setattr(_deprecation, "__version__", version)
    assert Deprecation("a", "b", "0.1", "0.3").overdue == overdue


def test_nothing_is_overdue():
    for module in pkgutil.walk_packages(dpci.__path__, "dpci."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    overdue = [one.what for one in _deprecation.DEPRECATIONS if one.overdue]
    assert not overdue, f"to be removed in {dpci.__version__}: {overdue}"


def test_one_version_everywhere():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    assert workspace == dpci.__version__
    assert re.findall(r'name = "dpci-(?:core|py)"\nversion = "(.*)"', lock) == [workspace] * 2


def test_the_changelog_has_the_form_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert re.fullmatch(r"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", versions[0])
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", line) for line in versions[1:])
    kinds = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert kinds
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
