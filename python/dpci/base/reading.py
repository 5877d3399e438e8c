"""Files of the user that are read whole: one that is a pipe is not waited for."""

import os
from pathlib import Path
from typing import BinaryIO


def open_at_once(path: Path) -> BinaryIO:
    """Open a file to read its bytes; a pipe that nobody writes to is empty, where others wait for ever."""

    def opener(name: str, flags: int) -> int:
        descriptor = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
        if hasattr(os, "O_NONBLOCK"):
            # Whoever writes already may take his time.
            os.set_blocking(descriptor, True)
        return descriptor

    return open(path, "rb", opener=opener)
