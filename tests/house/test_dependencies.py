"""Parts that the wheel links and requires: permissive licences, known sources, no unsafe code of ours; all offline."""

import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DENY = tomllib.loads((ROOT / "deny.toml").read_text())
ALLOWED = set(DENY["licenses"]["allow"])


@pytest.fixture(scope="module")
def linked():
    """Packages that are compiled into the wheel, or run while it is compiled."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    metadata = json.loads(cargo("metadata", "--format-version", "1"))
    tree = cargo("tree", "--package", "dpci-py", "--edges", "normal,build", "--prefix", "none", "--format", "{p}")
    built = {tuple(line.split()[:2]) for line in tree.splitlines()}
    return [one for one in metadata["packages"] if (one["name"], f"v{one['version']}") in built]


def cargo(*arguments):
    command = ["cargo", *arguments, "--locked", "--offline"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def is_allowed(expression):
    """Whether a licence expression can be met: all parts of an AND, one of an OR; "/" is an old OR."""
    expression = re.sub(r"\s*/\s*", " OR ", expression)
    parts = re.split(r"\s+AND\s+", expression)
    return all(ALLOWED & set(re.split(r"\s+OR\s+", part.strip("()"))) for part in parts)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("GPL-3.0", False),
        ("LGPL-3.0-or-later", False),
        ("MIT AND GPL-2.0", False),
    ],
)
def test_the_reading_of_licences(expression, allowed):
    assert is_allowed(expression) == allowed


def test_licences_of_crates(linked):
    assert len(linked) > 50
    refused = {package["name"]: package["license"] for package in linked if not is_allowed(package["license"] or "")}
    assert refused == {}


def test_no_banned_crate_is_linked(linked):
    banned = {entry["name"] for entry in DENY["bans"]["deny"]}
    assert banned & {package["name"] for package in linked} == set()


def test_crates_come_from_the_registry_or_from_here(linked):
    sources = {package["source"] for package in linked}
    assert sources <= {None, "registry+https://github.com/rust-lang/crates.io-index"}
    assert {package["name"] for package in linked if package["source"] is None} == {"dpci-core", "dpci-py"}


def test_two_versions_of_a_crate_have_a_reason(linked):
    names = [package["name"] for package in linked]
    twice = {name for name in names if names.count(name) > 1}
    assert twice <= {entry["name"] for entry in DENY["bans"]["skip"]}


def test_no_crate_links_a_library_of_the_system(linked):
    """A crate that names one in `links` would tie the wheel to it; these only make sure that they are single."""
    assert {package["links"] for package in linked if package["links"]} <= {"python", "pyo3-python", "rayon-core"}


def licence_of(name):
    """The licence of an installed distribution, in its own words."""
    facts = distribution(name).metadata
    classifiers = [text for text in facts.get_all("Classifier", []) if text.startswith("License ::")]
    return facts.get("License-Expression") or " ".join(classifiers) or (facts.get("License") or "").split("\n")[0]


def test_python_requires_little_and_permissive():
    ours = [text for text in requires("dpci") if "extra ==" not in text]
    names = sorted(re.match(r"[\w.-]+", text)[0] for text in ours)
    assert names == ["numpy", "scipy"]
    for name in names:
        text = licence_of(name)
        # Their wheels carry compiled libraries with licences of their own, which is not for us to change.
        assert "BSD" in text, (name, text)


def test_optional_python_packages_are_no_copyleft():
    optional = {re.match(r"[\w.-]+", text)[0] for text in requires("dpci") if 'extra == "all"' in text}
    for name in optional - {"dpci"}:
        try:
            text = licence_of(name)
        except PackageNotFoundError:
            continue
        assert not re.search(r"\b(A?GPL|General Public)", text.replace("LGPL", "")), (name, text)


def test_no_unsafe_code_of_our_own():
    """The core forbids it; the bindings deny it, as the macros of pyo3 expand to it, and allow it nowhere."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    core = tomllib.loads((ROOT / "rust/dpci-core/Cargo.toml").read_text())
    bindings = tomllib.loads((ROOT / "rust/dpci-py/Cargo.toml").read_text())
    assert workspace["workspace"]["lints"]["rust"]["unsafe_code"] == "forbid"
    assert core["lints"] == {"workspace": True}
    assert bindings["lints"]["rust"]["unsafe_code"] == "deny"
    sources = sorted((ROOT / "rust").rglob("*.rs"))
    assert len(sources) > 50
    for source in sources:
        code = re.sub(r"//[^\n]*", "", source.read_text())
        assert not re.search(r"\bunsafe\b|allow\(unsafe_code|extern\s+\"C\"|no_mangle", code), source


def test_advisories_are_read(tmp_path):
    """A made-up database: ranges, lists of versions, and what no longer holds."""
    pytest.importorskip("yaml")
    spec = importlib.util.spec_from_file_location("check_advisories", ROOT / "benches" / "check_advisories.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path / "vulns" / "some-package"
    folder.mkdir(parents=True)
    events = [{"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "2.0"}, {"last_affected": "2.1"}]
    affected = [{"ranges": [{"type": "ECOSYSTEM", "events": events}], "versions": ["3.0"]}]
    (folder / "A.yaml").write_text(json.dumps({"id": "A", "affected": affected}))
    applies = {version: list(script.in_clone(tmp_path, "some-package", version)) != [] for version in VERSIONS}
    assert applies == VERSIONS


VERSIONS = {"1.1": True, "1.2": False, "1.10": False, "2.0": True, "2.1": True, "2.1.1": False, "3.0": True}


def test_advisories_that_are_ignored_have_a_reason():
    assert all(len(entry["reason"]) > 20 for entry in DENY["advisories"]["ignore"])
