"""Start of the command, as ``python benches/papers`` from the root of the repository."""

import sys
from pathlib import Path

# The folder of this file is on the path then; its modules are those of the package ``papers``.
sys.path[0] = str(Path(__file__).parents[1])

from papers.command import main  # noqa: E402

sys.exit(main())
