"""The tests themselves: slow ones exist, CI runs what the README names, and their noise is the same in every run."""

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import check_dist
import dpci
from support import noise, slow

ROOT = Path(__file__).parents[2]


def test_slow_tests_exist():
    names = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").split()
    assert names == sorted(set(names))
    missing = []
    for name in names:
        path, _, function = name.partition("::")
        file = ROOT / "tests" / path
        if not file.exists() or not re.search(rf"^def {function}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            missing.append(name)
    assert missing == []


# Of these a bare environment, in which a wheel is tried, has the first four.
IN_A_BARE_ENVIRONMENT = {"dpci", "numpy", "scipy", "pytest", "support", *sys.stdlib_module_names}


@pytest.mark.parametrize("name", check_dist.TESTS)
def test_tests_of_wheels_exist_and_need_nothing_else(name):
    files = list((ROOT / "tests").rglob(f"test_{name}.py"))
    assert files
    for file in files:
        imported = re.findall(r"^(?:import|from) (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(imported) <= IN_A_BARE_ENVIRONMENT, file


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_x86_64"),
        ("manylinux2014_aarch64.manylinux_2_17_aarch64", "manylinux_aarch64"),
        ("musllinux_1_2_x86_64", "musllinux_x86_64"),
    ],
)
def test_a_wheel_is_tried_by_a_python_of_its_kind(tags, kind):
    assert check_dist.kind_of(Path(f"dpci-0.1.0-cp311-abi3-{tags}.whl")) == kind


def test_the_longest_are_slow(tmp_path):
    case = '<testcase classname="tests.core.test_a" name="{}" time="{}"/>'
    cases = [case.format(*row) for row in (("test_b[1]", 2), ("test_b[2]", 2), ("test_c", 3), ("test_d", 1))]
    (tmp_path / "times.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    seconds = slow.times(tmp_path / "times.xml")
    assert seconds == Counter({"core/test_a.py::test_b": 4, "core/test_a.py::test_c": 3, "core/test_a.py::test_d": 1})
    assert [len(slow.slowest(seconds, left)) for left in (8, 4, 3.5, 0)] == [0, 1, 2, 3]
    assert slow.slowest(seconds, 4) == ["core/test_a.py::test_b"]


def test_ci_runs_what_the_pages_name():
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "make test" in commands
    assert "| `make test` |" in contributing
    assert "| `make check-fast` |" in contributing
    assert "`make test`" in (ROOT / "README.md").read_text(encoding="utf-8")
    # Pull requests run the same script; hooks run tests that exist.
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run\n" in workflow
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert [path for path in re.findall(r"tests/\S+\.py", hooks) if not (ROOT / path).exists()] == []


X, Y = np.linspace(-1.0, 1.0, 60)[:, None], np.tile([0, 1], 30)


def release():
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "classes": (0, 1)}
    return dpci.fit(X, Y, **keywords)


def test_it_repeats_itself_in_another_run_and_never_within_one():
    first, second = release(), release()
    assert first.private
    assert not np.array_equal(first.params, second.params)
    noise.start(entropy=False)
    assert release().to_json() == first.to_json()


@pytest.mark.entropy
def test_a_test_may_ask_for_the_noise_of_the_operating_system():
    first = release()
    noise.start(entropy=True)
    assert not np.array_equal(release().params, first.params)
