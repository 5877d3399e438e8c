"""Without entropy nothing is released; with a caller's seed, every release says that it is not private."""

import json
import platform
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import dpci
from support.releases import RELEASES

# A filter of system calls (seccomp) that answers some of them with an error for the rest of the process's life.
WITHOUT_ENTROPY = f"""
import ctypes, errno, struct, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import dpci
import dpci.baselines, dpci.per_instance, dpci.tuning  # loaded when they are named, which opens files
from support.releases import RELEASES

GETRANDOM, OPEN, OPENAT = 318, 2, 257
refused = {{
    "getrandom": {{GETRANDOM: errno.EIO}},
    # Where the call does not exist, the generator reads /dev/urandom, which cannot be opened here.
    "device": {{GETRANDOM: errno.ENOSYS, OPEN: errno.EACCES, OPENAT: errno.EACCES}},
    "nothing": {{}},
}}[sys.argv[1]]
code = struct.pack("HBBI", 0x20, 0, 0, 0)  # load the number of the system call
for number, error in refused.items():
    code += struct.pack("HBBI", 0x15, 0, 1, number)  # if it is this one
    code += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error)  # answer with the error
code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)  # allow

class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

libc, program = ctypes.CDLL(None), Program(len(code) // 8, code)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    print("no filter")
    sys.exit()

def release_all():
    for name, release in RELEASES.items():
        try:
            print(name, "released", release())
        except Exception as error:
            print(name, type(error) is dpci.DpciError, error)

# In a thread that has drawn nothing: glibc 2.41 expands the seed of a thread without further system calls.
thread = threading.Thread(target=release_all)
thread.start()
thread.join()
"""
REFUSED = "True the operating system must provide entropy for {}, got the error: "


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the filter knows the system calls of Linux on x86-64",
)
@pytest.mark.parametrize(("source", "answer"), [("getrandom", REFUSED), ("device", REFUSED), ("nothing", "released <")])
def test_a_release_without_entropy_is_an_error(source, answer):
    script = [sys.executable, "-c", WITHOUT_ENTROPY, source]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    if done.stdout == "no filter\n":
        pytest.skip("this system does not let a process filter its system calls")
    lines = done.stdout.splitlines()
    assert len(lines) == len(RELEASES)
    for name, line in zip(RELEASES, lines, strict=True):
        needy = "the key of a fit in parts" if name.endswith("in_parts") else "the release noise"
        assert line.startswith(f"{name} {answer.format(needy)}"), line


@pytest.mark.parametrize("release", RELEASES)
def test_a_seeded_release_says_everywhere_that_it_is_not_private(release):
    with pytest.warns(dpci.SeededNoiseWarning, match="NOT PRIVATE"):
        seeded = RELEASES[release](seed=1)
    assert not seeded.private
    assert "NOT PRIVATE (seeded)" in seeded.summary()
    assert "NOT PRIVATE (seeded)" in repr(seeded)
    text = seeded.to_json()
    assert '"private": false' in text
    again = type(seeded).from_json(text)
    assert not again.private
    assert "NOT PRIVATE (seeded)" in again.summary()

    def says_private(document):
        if isinstance(document, dict):
            return document.get("private") is True or any(map(says_private, document.values()))
        return isinstance(document, list) and any(map(says_private, document))

    assert not says_private(json.loads(text))
    record = getattr(seeded, "privacy", {"private": False})
    assert record["private"] is False


@pytest.mark.entropy
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_of_the_operating_system_does_not(release):
    with warnings.catch_warnings(action="error", category=dpci.SeededNoiseWarning):
        released = RELEASES[release]()
    assert released.private
    assert "NOT PRIVATE" not in released.summary() + repr(released) + released.to_json()
