"""``python -m dpci`` is the command line."""

import sys

from dpci.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
