"""Runs a script where nothing but the standard library, NumPy, SciPy and dpci can be imported."""

import subprocess
import sys

BLOCK = """
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    allowed = {"dpci", "numpy", "scipy"} | sys.stdlib_module_names

    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        # Compiled helpers of SciPy register names of their own, all of which begin with an underscore.
        if root not in self.allowed and not root.startswith("_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""


def run_bare(script):
    """Return what a script prints in an interpreter without optional packages; its warnings are ignored."""
    command = [sys.executable, "-W", "ignore", "-c", BLOCK + script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
