"""Files of released results in which somebody changed a number, and whether that is found."""

import pickle

from dpci.approval.approvable import statement_of
from dpci.approval.statement import verified
from dpci.errors import DpciError
from support.saved import rewritten

_READ: set[tuple] = set()


def failures(result, **given):
    found = verified(statement_of(result), **{"ledger": None, "schema": None, **given})
    return [finding.what for finding in found if finding.outcome == "FAILED"]


def is_found(kind, values):
    """Whether a changed file is refused, or verification finds it and the report tells the reader first.

    Of each set of failures one report is read.
    """
    try:
        result = kind.from_json(rewritten(values))
        failed = failures(result)
        told = (kind, *(what[:20] for what in failed))
        if told in _READ:
            return True
        text = result.officer_report()
    except DpciError:
        return True
    first = text.partition("## What the budget covers")[0]
    assert all(f"- **Refuse.** A check failed: {what}" in first for what in told[1:])
    if failed:
        _READ.add(told)
    return bool(failed)


def changed(values, place, value):
    tree = pickle.loads(pickle.dumps(values))  # a third of the time of a deep copy
    node = tree
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return tree
