"""The peak memory of a program that a test starts, measured from inside it."""

# `getrusage` would count what the process that started the program had: here the whole test run.
PEAK_BYTES = """
def peak_bytes():
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
"""
