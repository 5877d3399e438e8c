"""Puts this folder on the path, so that test files can share what is in ``support``: importlib mode leaves it off."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
