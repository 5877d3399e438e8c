"""Puts switches into modules as they are imported; Python runs this file first where its folder is on the path.

``DPCI_PYTHON_MUTANTS`` names the file that lists the chosen mutants, ``DPCI_PYTHON_MUTANT`` the active one.
"""

import builtins
import importlib.machinery
import json
import os
import sys
from pathlib import Path

SEEN: set[int] = set()
ACTIVE = int(os.environ.get("DPCI_PYTHON_MUTANT", "-1"))

if "DPCI_PYTHON_MUTANTS" in os.environ:
    import python_sites

    CHOSEN = json.loads(Path(os.environ["DPCI_PYTHON_MUTANTS"]).read_text())

    def is_active(number):
        SEEN.add(number)
        return number == ACTIVE

    builtins.__mutant__ = is_active

    class Loader(importlib.machinery.SourceFileLoader):
        """Compiles a module from its tree with switches, past the cache of byte code."""

        def get_code(self, fullname):
            path = self.get_filename(fullname)
            name = next(name for name in CHOSEN if path.endswith("/" + name))
            chosen = {int(index): mutants for index, mutants in CHOSEN[name].items()}
            return compile(python_sites.switched(name, Path(path).read_text(), chosen), path, "exec", dont_inherit=True)

    class Finder(importlib.machinery.PathFinder):
        @classmethod
        def find_spec(cls, fullname, path=None, target=None):
            if not fullname.startswith("dpci."):
                return None
            spec = super().find_spec(fullname, path, target)
            if spec is not None and spec.origin and any(spec.origin.endswith("/" + name) for name in CHOSEN):
                spec.loader = Loader(spec.loader.name, spec.loader.path)
            return spec

    sys.meta_path.insert(0, Finder)
