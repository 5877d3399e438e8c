"""Checkpoints of studies: what was complete when a run ended, and which study it belongs to. Never private."""

import hashlib
import json
import lzma
import os
import secrets
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput

FORMAT = 1
_NOT_PRIVATE = (
    "NOT PRIVATE: hashes of rows, targets and minimisers, and simulated estimates, all computed from the data"
)
_PARTS = ("params", "lower", "upper")
Outcomes: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Parameters, lower and upper bounds of consecutive replicates of one configuration, shape (r, k) or (r, 0)."""

# What reading an archive of arrays raises, depending on where it is damaged.
_DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the complete replicates of one study.

    Parameters
    ----------
    path : Path
        Where it is, or will be.
    identity : mapping
        Everything that the replicates depend on, as JSON values; another identity is refused.
    """

    path: Path
    identity: Mapping[str, Any]

    def load(self, nothing: Mapping[str, Sequence[Outcomes]]) -> dict[str, Sequence[Outcomes]]:
        """Return the complete replicates by phase and configuration.

        Parameters
        ----------
        nothing : mapping
            The same with no replicates: what is returned if there is not a file yet, and the shapes otherwise.
        """
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return dict(nothing)
        except (OSError, ValueError) as error:  # ValueError: a path that no file can have
            raise InvalidInput(
                f"checkpoint must be a file that can be read, got {str(self.path)!r}: {_reason(error)}"
            ) from error
        try:
            with file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(archive["header"].item())
                self._check_identity(header)
                return {name: _read_phase(archive, name, configurations) for name, configurations in nothing.items()}
        except InvalidInput:
            raise
        except _DAMAGE as error:
            raise InvalidInput(
                f"checkpoint must be a file that an earlier run of the study wrote, got {str(self.path)!r}, which "
                f"cannot be read ({type(error).__name__}: {error}); delete it to start over"
            ) from error

    def save(self, outcomes: Mapping[str, Sequence[Outcomes]]) -> None:
        """Replace the file in one step: a crash leaves either the old one or the new one."""
        header = json.dumps({"format": FORMAT, "private": False, "warning": _NOT_PRIVATE, "identity": self.identity})
        arrays = {
            f"{name}_{c}_{part}": values
            for name, configurations in outcomes.items()
            for c, outcome in enumerate(configurations)
            for part, values in zip(_PARTS, outcome, strict=True)
        }
        try:
            # Ctrl-C reaches the main thread alone: on another one the archive is closed, and no error replaces it.
            with ThreadPoolExecutor(1) as writer:
                writer.submit(int)  # starts the thread, so that leaving waits for what follows
                writer.submit(_replace, self.path, {"header": np.array(header), **arrays}).result()
        except OSError as error:
            raise InvalidInput(
                f"checkpoint must be a file that can be written, got {str(self.path)!r}: {_reason(error)}"
            ) from error

    def _check_identity(self, header: Any) -> None:  # noqa: ANN401  # whatever stands in the file
        if header["format"] != FORMAT:
            raise InvalidInput(f"checkpoint must be of format {FORMAT}, got {header['format']!r} in {str(self.path)!r}")
        # Through JSON, as the file's own identity went.
        ours = _flat(json.loads(json.dumps(self.identity)))
        theirs = _flat(header["identity"])
        differing = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        if differing:
            changes = "; ".join(f"{name}: {theirs.get(name)} there, {ours.get(name)} here" for name in differing[:5])
            raise InvalidInput(
                f"checkpoint must belong to the same study, got {str(self.path)!r}, which differs in {changes}"
            )


def array_hash(*arrays: NDArray[Any]) -> str:
    """Hash of the shapes and bits of C-contiguous arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(str(array.shape).encode())
        if array.size:
            digest.update(array.data.cast("B"))
    return digest.hexdigest()


def _replace(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with fresh.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no name is that of an option
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    """Return the system's words for an error, which do not repeat the path."""
    return getattr(error, "strerror", None) or str(error)


def _read_phase(archive: Mapping[str, Any], name: str, expected: Sequence[Outcomes]) -> list[Outcomes]:
    outcomes = [_read(archive, f"{name}_{c}", each) for c, each in enumerate(expected)]
    counts = {len(params) for params, _, _ in outcomes}
    if len(counts) > 1:
        raise ValueError(f"the configurations of {name} have {sorted(counts)} replicates")
    return outcomes


def _read(archive: Mapping[str, Any], name: str, expected: Outcomes) -> Outcomes:
    params, lower, upper = (archive[f"{name}_{part}"] for part in _PARTS)
    for values, empty in zip((params, lower, upper), expected, strict=True):
        if values.shape != (len(params), empty.shape[1]) or values.dtype != empty.dtype:
            raise ValueError(f"{name} has shape {values.shape} and dtype {values.dtype}")
    return params, lower, upper


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:  # noqa: ANN401  # JSON
    """Return the leaves of nested JSON by their paths, which is how differences are named."""
    if isinstance(tree, dict):
        children = [(f"{prefix}.{key}" if prefix else key, value) for key, value in tree.items()]
    elif isinstance(tree, list):
        children = [(f"{prefix}[{i}]", value) for i, value in enumerate(tree)]
    else:
        return {prefix: tree}
    return {path: leaf for name, child in children for path, leaf in _flat(child, name).items()}
