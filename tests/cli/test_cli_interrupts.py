"""Ctrl-C while the command line starts and while it ends: exit code 130, and nothing is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpci

# Sends Ctrl-C to its own process as soon as a module is looked for.
HOOK = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["MOMENT"]:
            os.environ["MOMENT"] = ""
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
SCRIPT = "import sys\nfrom dpci.cli import main\nsys.exit(main())\n"
PLAN = ["plan", "--n-samples", "1000", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.1"]
# In the order of their import: the core, NumPy and SciPy, the package, then the command line and what it is made of.
MOMENTS = [
    "dpci._core", "numpy", "scipy.sparse", "dpci.model.fit", "dpci.model.result", "typer", "dpci.cli.commands.fit",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")
    (folder / "sitecustomize.py").write_text(HOOK)
    (folder / "dpci").write_text(SCRIPT)
    (folder / "other.py").write_text("import dpci\ndpci.fit\n")
    return folder


def run(folder, moment, *command):
    path = os.pathsep.join(map(str, (folder, Path(dpci.__file__).parents[1])))
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": path, "MOMENT": moment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("started", "moment"), [*(("script", moment) for moment in MOMENTS), ("module", "numpy"), ("module", "typer")]
)
def test_an_interrupt_while_modules_are_imported(folder, started, moment):
    done = run(folder, moment, *([folder / "dpci"] if started == "script" else ["-m", "dpci"]), *PLAN)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_without_an_interrupt_the_command_runs(folder):
    done = run(folder, "", folder / "dpci", *PLAN)
    assert (done.returncode, done.stderr) == (0, "")
    assert "coefficients" in done.stdout


def test_an_interrupt_at_the_end(folder):
    (folder / "dpci").write_text(SCRIPT.replace("sys.exit(main())", "code = main()\nimport colorsys\nsys.exit(code)"))
    done = run(folder, "colorsys", folder / "dpci", *PLAN)
    assert (done.returncode, done.stderr) == (130, "")
    assert "coefficients" in done.stdout


def test_other_programs_keep_their_interrupts(folder):
    done = run(folder, "dpci._core", folder / "other.py")
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
