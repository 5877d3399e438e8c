"""Runs tests for one mutant after another, each in a fork of a process that has imported everything.

Reads requests from its input, a line of JSON each, and answers with a line. The answer to
``{"tests": [...], "number": 7, "limit": 60}`` is the first test that fails, that to
``{"tests": [...], "trace": true, "limit": 60}`` the time of each test and the mutants that it reached.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback

import pytest
import sitecustomize

OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore"]
# What the tests import, where it is installed: a child need not do it again.
PRELOADED = [
    "dpci", "numpy", "scipy.integrate", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "mpmath",
    "hypothesis.strategies", "joblib", "pandas", "sklearn.linear_model", "sklearn.model_selection", "dpci.sklearn",
    "dpci.cli", "dp_accounting.pld.privacy_loss_distribution", "dp_accounting.rdp.rdp_privacy_accountant",
]  # fmt: skip


class Watch:
    """Outcome of the tests of a run."""

    def __init__(self):
        self.failed, self.seen, self.begun = None, {}, 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        sitecustomize.SEEN.clear()
        begun = time.monotonic()
        outcome = yield
        self.seen[item.nodeid] = (time.monotonic() - begun, sorted(sitecustomize.SEEN))
        return outcome

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid} (collection)"


def child(request, pipe):
    """Runs the tests of a request and writes the answer to a pipe."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    number = request.get("number")
    if number is not None:
        os.environ[request["variable"]] = str(number)
        if request["variable"] == "DPCI_PYTHON_MUTANT":
            sitecustomize.ACTIVE = number
    watch = Watch()
    code = pytest.main([*OPTIONS, *request["tests"]], plugins=[watch])
    answer = {"failed": watch.failed or (f"(exit {int(code)})" if code else None)}
    if request.get("trace"):
        answer["seen"] = watch.seen
    with os.fdopen(pipe, "w") as out:
        out.write(json.dumps(answer))


def answer(request):
    """Forks, and waits for the child or for the end of its time."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            child(request, write)
        except BaseException:  # noqa: BLE001  # whatever it is, the parent must not go on twice
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, request["limit"])
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    # What tests have started may have outlived them.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return json.loads(text) if text else {"failed": f"(no end, status {status})"}


def main():
    for name in PRELOADED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    imported = sorted(sitecustomize.SEEN)
    print(json.dumps({"imported": imported}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


main()
