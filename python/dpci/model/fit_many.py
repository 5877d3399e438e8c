"""``fit_many``: one private model for each of many small tables, in one call.

One payment is for many tables, which are all read and checked before it: ``run`` of ``ledger/run.py``, which has one
table, cannot do that, so :func:`release_groups` takes the same steps for all of them.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack

from numpy.typing import ArrayLike

from dpci import _core
from dpci.base.habits import KEYWORDS
from dpci.base.progress import progress_bar
from dpci.base.validation import advised, as_name, check_different, check_flag
from dpci.base.warn import warn, warn_of_seed
from dpci.budgets import Budget, times
from dpci.data.arrays import Table
from dpci.data.persons import check_in_one_group, checked_ids
from dpci.data.rows import Rows, Source, read
from dpci.errors import DpciError, InvalidInput
from dpci.inference.remarks import remarks
from dpci.ledger.composition import rounded_down
from dpci.ledger.entries import Entry
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.ledger.run import check_as_released
from dpci.model.fit import AnySpec, spec_of
from dpci.model.keywords import MODEL_KEYWORDS
from dpci.model.newton import for_groups, newton_release
from dpci.model.result import PrivateFit
from dpci.model.settings import BudgetlessKeywords, Settings
from dpci.released.model import record_of
from dpci.released.whole import Whole
from dpci.sources.described import check_unit_columns
from dpci.unit import Beside, Persons, Weights, given_unit

__all__ = ["fit_many"]

_Key = TypeVar("_Key", bound=Hashable)

# An odd number: seeds of different groups differ.
_OF_GROUP = 0x9E3779B97F4A7C15
_ALLOWED = tuple(name for name in MODEL_KEYWORDS if name != "budget")


@advised(KEYWORDS)
def fit_many(
    groups: Mapping[_Key, tuple[Table, ArrayLike]],
    *,
    budget: Budget,
    disjoint: bool = False,
    persons: Mapping[_Key, ArrayLike | Persons] | None = None,
    weights: Mapping[_Key, Weights] | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
    **keywords: Unpack[BudgetlessKeywords],
) -> dict[_Key, PrivateFit]:
    """Fit the same private model to each of many groups, in parallel; the keys of the groups are public.

    Every result is private at ``budget`` with regard to the records of its own group. What all of them reveal together
    depends on who is in the groups (docs/ledger.md, "9. Many groups"), and that is what the ledger pays:

    - by default ``len(groups) * budget``, by basic composition: a person may be in every group;
    - ``budget`` once, with ``disjoint=True``, by parallel composition.

    Parameters
    ----------
    groups : mapping
        Maps each public key to a pair ``(X, y)``: rows and targets in memory, as :func:`dpci.fit` takes them. The set
        of keys is not protected: take it from a public list, not from the data.
    budget : PureDP, ZCDP or ApproxDP
        Budget of each group.
    disjoint : bool
        True: you declare that every person is in one group at most, and that it is public which one. Neighbouring data
        sets then differ in one record of one group, whose group does not change. With ``persons`` an id in two groups
        is refused; without it nothing checks this.
    persons : mapping, optional
        Maps each key to the ids of its rows, or to a :class:`dpci.Persons`, as ``persons`` of :func:`dpci.fit`. The
        unit of privacy is then the person in every group, and a person may have rows in several groups unless they are
        ``disjoint``.
    weights : mapping, optional
        Maps each key to the :class:`dpci.Weights` of its rows, as ``weights`` of :func:`dpci.fit`.
    ledger : Ledger, optional
        Pays for all groups in one entry, before noise is drawn. It must have detailed errors.
    seed : int, optional
        For simulations and tests. Each group has a stream of noise of its own, by its position; that of the first group
        is that of :func:`dpci.fit`.
    **keywords
        Keywords of :func:`dpci.fit` that say what is fitted. ``classes`` must be given unless every ``y`` has a boolean
        data type. The ``n_public`` of ``neighbors`` holds for every group. Without ``l2_strength`` Newton steps are
        taken where :func:`dpci.fit` takes them.

    Returns
    -------
    dict
        A :class:`PrivateFit` for each key, in the order of ``groups``. As spent, each states the budget of its own
        group.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall
        Errors of :func:`dpci.fit`, with a note that names the group.
    NotConverged
        If the minimiser of one group could not be certified. Nothing is released by any error.
    BudgetExceeded
        If the ledger does not cover all groups.
    LedgerError
        If the ledger cannot be read or written.

    Warns
    -----
    MomentNoiseWarning, CurvatureWarning, CommonLevelWarning, SeededNoiseWarning
        Warnings of :func:`dpci.fit`: once of each kind, for the first group that has it.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (5000, 1))
    >>> groups = {region: (X, X[:, 0] > 0) for region in ("north", "south")}
    >>> ledger = dpci.Ledger(dpci.ZCDP(rho=1.0))
    >>> results = dpci.fit_many(groups, budget=dpci.ZCDP(rho=0.25), l2_strength=0.01, ledger=ledger)
    >>> results["north"].names, ledger.remaining
    (('x0', 'x1', 'intercept'), ZCDP(rho=0.5))
    """
    offered: object = groups
    if not isinstance(offered, Mapping) or not offered:
        raise InvalidInput(f"groups must be a mapping of at least one key to (X, y), got {_described(offered)}")
    check_different("the keys of groups must differ", groups)
    fitted = for_groups("fit_many", keywords, budget, allowed=_ALLOWED)
    ids, weighed = _of_groups("persons", persons, groups), _of_groups("weights", weights, groups)
    given = {}
    for key in groups:
        with _in_group(key):
            given[key] = given_unit(ids[key], weighed[key])
    common = Settings.checked(budget=budget, seed=seed, **fitted)
    settings = {key: dataclasses.replace(common, unit=one.unit, weights=one.weights) for key, one in given.items()}
    together = check_flag("disjoint", disjoint)
    payment = Payment.of(
        "dpci.fit_many, disjoint groups" if together else "dpci.fit_many",
        ledger,
        next(iter(settings.values())),
        budget=common.budget if together else times(common.budget, len(groups)),
    )
    if payment.private:
        raise InvalidInput(
            "ledger must have errors='detailed' for many groups, because an error would have to hide which group it is "
            "of, got errors='private' (call dpci.fit for each group)"
        )
    tables = {key: _checked(key, group, given[key].beside) for key, group in groups.items()}
    if together and persons is not None:
        check_in_one_group([group.beside.persons for group in tables.values()])
    whole = Whole("disjoint_groups" if together else "groups", len(tables), common.neighbors, payment.charged)
    fits, _ = release_groups(tables, settings, payment, whole)
    announce(fits)
    return fits


def release_groups(
    groups: Mapping[_Key, Source],
    settings: Mapping[_Key, Settings],
    payment: Payment,
    whole: Whole,
    *,
    count: Callable[[Mapping[_Key, int]], Mapping[_Key, int]] | None = None,
) -> tuple[dict[_Key, PrivateFit], Entry | None]:
    """Check all groups, pay for them once, and release a fit of each; their budgets are those of their settings.

    Also returned is the entry of the ledger that paid for ``whole``, all of them together. ``count`` releases, from the
    true numbers of records of all groups, those that the fits are told, once they are paid.
    """
    is_paid = payment.ledger is not None
    tables = {
        key: _read(key, group, settings[key], paid=is_paid, counted=count is not None) for key, group in groups.items()
    }
    entry = payment.settle()
    payer = {"paid": payment.receipt(entry), "whole": whole}
    if count is not None:
        numbers = count({key: rows.n_records for key, (rows, _) in tables.items()})
        settings = {key: dataclasses.replace(settings[key], n_public=n) for key, n in numbers.items()}
        tables = {key: (rows, _specified(key, rows, settings[key], is_paid)) for key, (rows, _) in tables.items()}
    released = _released(tables, settings)
    fits = {
        key: PrivateFit(settings[key].record(spec, rows, {**release, **payer}))
        for release, (key, (rows, spec)) in zip(released, tables.items(), strict=True)
    }
    return fits, entry


def _released(
    tables: Mapping[_Key, tuple[Rows, AnySpec]], settings: Mapping[_Key, Settings]
) -> Sequence[Mapping[str, Any]]:
    """Release a fit of each group, which are paid for; each has noise of its own, also with a seed."""
    common = next(iter(settings.values()))
    specs = [spec for _, spec in tables.values() if isinstance(spec, _core.Spec)]
    if len(specs) == len(tables):
        records = [rows.records for rows, _ in tables.values()]
        return _core.fit_many(
            specs, records, on_violation=common.on_violation, n_threads=common.n_threads, seed=common.seed
        )
    released = []
    with progress_bar(len(tables), "models", wanted=None) as advance:
        for place, (key, (rows, spec)) in enumerate(tables.items()):
            assert isinstance(spec, _core.NewtonSpec)  # noqa: S101  # for the type checker: all groups have one mechanism
            seed = None if common.seed is None else (common.seed + place * _OF_GROUP) % 2**64
            with _in_group(key):
                released.append(newton_release(rows, spec, dataclasses.replace(settings[key], seed=seed)))
            advance(1)
    return released


def _of_groups(name: str, given: object, groups: Mapping[_Key, object]) -> Mapping[_Key, Any]:
    """Return the ids or weights of each group; None for every group where none are given."""
    if given is None:
        return dict.fromkeys(groups)
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} must be a mapping from the keys of groups, got {type(given).__name__}")
    by_name = {as_name(key): one for key, one in given.items()}
    if len(given) != len(groups) or by_name.keys() != {as_name(key) for key in groups}:
        # Keys of no group could be ids.
        lack = next((f"none for {key!r}" for key in groups if as_name(key) not in by_name), "one for another key")
        raise InvalidInput(f"{name} must have an entry for each group and no other, got {lack}")
    if any(one is None for one in given.values()):
        raise InvalidInput(f"{name} must have an entry for each group and no other, got None for a group")
    return {key: by_name[as_name(key)] for key in groups}


def _checked(key: object, group: object, beside: Beside) -> Source:
    with _in_group(key):
        if not isinstance(group, tuple) or len(group) != 2:
            raise InvalidInput(f"a group must be a tuple (X, y), got {_described(group)}")
        source = Source(*group, beside)
        check_unit_columns(None, source)
        # Once, also for groups whose ids are compared: a stream can be read only once.
        persons = None if beside.persons is None else checked_ids(beside.persons, None, source.X)
    return source._replace(beside=beside._replace(persons=persons))


@contextmanager
def _in_group(key: object) -> Iterator[None]:
    """Name the group in errors of dpci."""
    try:
        yield
    except DpciError as error:
        error.add_note(f"(in group {key!r})")
        raise


def _specified(key: object, rows: Rows, settings: Settings, paid: bool) -> AnySpec:  # noqa: FBT001  # private
    """Return what is calibrated for the number of records that a fit of these rows is told."""
    budget = rounded_down(settings.budget) if paid else settings.budget  # as a ledger counts it
    with _in_group(key):
        return spec_of(settings, rows.n_records, rows.shape[1], budget=budget)


def _read(key: object, group: Source, settings: Settings, *, paid: bool, counted: bool) -> tuple[Rows, AnySpec]:
    """Return the rows of a group, checked as the release will, and what is calibrated for their number."""
    budget = rounded_down(settings.budget) if paid else settings.budget  # as above
    with _in_group(key):
        rows, spec = read(group, settings, lambda n, k: spec_of(settings, n, k, budget=budget))
        if rows.classes_inferred:
            raise InvalidInput(
                "classes=(negative, positive) must be given for many groups unless every y has a boolean data type, "
                "got classes=None"
            )
        check_as_released(rows, settings, sums=not counted)
    return rows, spec


def announce(fits: Mapping[Any, PrivateFit]) -> None:
    """Warn of each kind of remark once, for the caller of the public function that calls this."""
    if any(not fit.private for fit in fits.values()):
        warn_of_seed("results")
    said: set[type[Warning]] = set()
    for key, fit in fits.items():
        for remark in remarks(record_of(fit)):
            if type(remark) not in said:
                said.add(type(remark))
                remark.args = (f"group {key!r}: {remark}", *remark.args[1:])
                warn(remark)


def _described(value: object) -> str:
    return f"{type(value).__name__}{' without a key' if isinstance(value, Mapping) else ''}"
