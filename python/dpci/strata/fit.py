"""``fit_strata``: one private model for each public category of a column, paid once by parallel composition."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from dpci.base.habits import KEYWORDS
from dpci.base.validation import advised, as_name, broken, check_choice, check_count, check_different, check_fraction
from dpci.budgets import AddRemove, Budget, Neighbors, check_budget
from dpci.data.arrays import NamedRows
from dpci.data.frames import named_columns
from dpci.data.labels import CodedLabels
from dpci.data.persons import numbered
from dpci.data.rows import Source
from dpci.data.weights import weight_values
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.ledger.composition import rounded_down
from dpci.ledger.ledger import Ledger
from dpci.ledger.payment import Payment
from dpci.losses import SEVERAL, LossLike
from dpci.mechanisms import MechanismLike, NewtonSteps
from dpci.model.fit import spec_of
from dpci.model.fit_many import announce, release_groups
from dpci.model.newton import for_groups, newton_spec
from dpci.model.recommend import are_rows_given, with_default_rows
from dpci.model.settings import Settings
from dpci.released.model import record_of
from dpci.released.whole import cost_of_strata, counted_strata
from dpci.rows import RowsLike
from dpci.schema.cells import column_of, columns_beside
from dpci.schema.columns import CategoricalColumn, CategoricalTarget
from dpci.schema.parts import encode_table
from dpci.schema.table import Schema, without_column
from dpci.schema.table import Table as NamedTable
from dpci.sources.described import check_schema, check_unit_columns, described
from dpci.strata.counts import count_noise, release_counts, split_off_counts, whole_of
from dpci.strata.record import StrataRecord
from dpci.strata.result import StrataFit
from dpci.unit import Beside, PersonsLike, Weights, given_unit

__all__ = ["fit_strata"]

# What a public choice is checked for before a count is known. For more records the rounding of sums forbids more λ, for
# 10⁹ persons already those below .015; such a count, if it is released, is refused as any other.
_MANY = 10**7
_COUNT_SHARE = 0.05
# Of ten: beyond it no search goes on.
_GREATEST_POWER = 6


class StrataKeywords(TypedDict, total=False):
    """The keywords of :func:`dpci.fit` that say what is fitted in every stratum."""

    l2_strength: float | Literal["auto"]
    loss: LossLike
    mechanism: MechanismLike | Literal["newton"]
    rows: RowsLike | None


@advised(KEYWORDS)
def fit_strata(
    table: NamedTable,
    *,
    by: str,
    schema: Schema,
    budget: Budget,
    n_public: int | Mapping[str, int] | Literal["private"] = "private",
    count_share: float | None = None,
    strata: Sequence[str] | None = None,
    neighbors: Neighbors = "add_remove",
    persons: PersonsLike | None = None,
    weights: Weights | None = None,
    ledger: Ledger | None = None,
    seed: int | None = None,
    **keywords: Unpack[StrataKeywords],
) -> StrataFit:
    """Fit the same private model in each stratum of a table, such as each state, by parallel composition.

    A record is in one stratum, so a record that is added or removed changes one of the fits: all of them together are
    private at ``budget``. A record that is replaced may leave one stratum and enter another:
    with ``neighbors="replace_one"`` the ledger is charged for two changes (docs/strata.md).

    Parameters
    ----------
    table : frame, mapping of columns or structured array
        A table in memory with the columns of the schema, its target and ``by``.
    by : str
        The column of strata. If the schema has it among its columns, it is left out of the models, because it is the
        same for all rows of a stratum.
    schema : dpci.schema.Schema
        Public description of the columns.
    budget : PureDP, ZCDP or ApproxDP
        The budget of each fit, and of all fits together under "add_remove". Under "replace_one" all fits together cost
        twice a pure budget, four times a zCDP budget, and (2 ε, (1 + exp(ε)) δ) of an (ε, δ) budget.
    n_public : int, mapping or "private"
        The stratum of a record is private, and so is the number of records of a stratum. "private": noisy counts, which
        the budget pays for. A number, for each stratum or for all, is a public stand-in that costs nothing, such as
        last year's census. It need not be exact: too great by a factor, it acts as a ridge greater by that factor.
    count_share : float, optional
        Only with ``n_public="private"``: the share of the budget that the counts take. Each fit has the rest. None:
        0.05.
    strata : sequence of str, optional
        The public categories of ``by``. None: those of the schema, which must have ``by`` as a categorical column. A
        row of any other category is an error, which is raised before anything is spent.
    neighbors : {"add_remove", "replace_one"}
        The relation for which all fits together are charged. Each fit by itself is for "add_remove".
    persons : array-like of shape (n_samples,), str or Persons, optional
        See :func:`dpci.fit`; all rows of a person must be in one stratum, which is checked.
    weights : Weights, optional
        See :func:`dpci.fit`; the total is that of each stratum.
    ledger : Ledger, optional
        Pays for all strata in one entry, before noise is drawn. It must have detailed errors, and the relation of
        ``neighbors``.
    seed : int, optional
        For simulations and tests. Each stratum has its own stream of noise, by its position.
    **keywords
        Keywords of :func:`dpci.fit` that specify the fit. Without ``l2_strength`` Newton steps are taken where
        :func:`dpci.fit` takes them.

    Returns
    -------
    StrataFit
        A :class:`PrivateFit` of each stratum, in the order of the categories.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall
        Errors of :func:`dpci.fit`, with a note that names the stratum; also for a stratum without records.
    NotConverged
        If the minimiser of one stratum could not be certified. Nothing is released by any error.
    BudgetExceeded
        If the ledger does not cover all strata together.
    LedgerError
        If the ledger cannot be read or written.

    Warns
    -----
    MomentNoiseWarning, CurvatureWarning, CommonLevelWarning, SeededNoiseWarning
        Warnings of :func:`dpci.fit`; each kind once, for the first stratum that it concerns.

    Examples
    --------
    >>> import numpy as np, dpci
    >>> from dpci.schema import ClassTarget, NumericColumn, Schema
    >>> schema = Schema(
    ...     columns=(NumericColumn(name="age", lower=18, upper=90),),
    ...     target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    ... )
    >>> age = np.tile([30, 50, 70, 80], 3000)
    >>> table = {"age": age, "ill": np.where(age > 60, "yes", "no"), "state": np.repeat(["A", "B"], 6000)}
    >>> ledger = dpci.Ledger(dpci.ZCDP(rho=1.0), neighbors="add_remove")
    >>> fits = dpci.fit_strata(
    ...     table, by="state", strata=("A", "B"), schema=schema, n_public=6000, budget=dpci.ZCDP(0.5), ledger=ledger,
    ...     l2_strength=0.01,
    ... )
    >>> list(fits), fits["B"].names, ledger.remaining
    (['A', 'B'], ('age', 'intercept'), ZCDP(rho=0.5))
    """
    _check_loss(check_schema(schema), keywords.get("loss"))
    fitted = for_groups("fit_strata", keywords, budget, allowed=StrataKeywords.__annotations__, schema=schema)
    by = as_name(by)
    column, model_schema = _strata(by, schema, strata)
    check_choice("neighbors", neighbors, ("add_remove", "replace_one"))
    counted = isinstance(n_public, str) and n_public == "private"
    of_fit, noise = check_budget(budget), None
    if counted:
        # A ledger counts decimals, below which the sum of both parts has to stay.
        asked = of_fit if ledger is None else rounded_down(of_fit)
        share = check_fraction("count_share", _COUNT_SHARE if count_share is None else count_share)
        of_fit, of_counts = split_off_counts(asked, share)
        noise = count_noise(len(column.categories), of_counts)
    elif count_share is not None:
        raise broken("count_share", "None unless n_public is 'private', because no counts are released", count_share)
    public = _public_numbers(_MANY if counted else n_public, column.categories)
    unit, weighing, beside = given_unit(persons, weights)
    common = Settings.checked(
        budget=of_fit,
        neighbors=AddRemove(1),
        persons=unit,
        weights=weighing,
        seed=seed,
        schema=model_schema,
        **fitted,
    )
    if not (are_rows_given(keywords.get("rows")) or isinstance(common.mechanism, NewtonSteps)):
        common = with_default_rows(common)
    if counted:
        _check_for_any_count(common, len(model_schema.names))
    settings = {name: dataclasses.replace(common, n_public=n) for name, n in public.items()}
    charged = cost_of_strata(check_budget(budget), neighbors)
    source = f"dpci.fit_strata, {counted_strata(len(public))} of {by!r}"
    payment = _payment(source, ledger, common, charged, neighbors)
    groups = _groups(table, column, schema, model_schema, beside)

    def count(sizes: Mapping[str, int]) -> Mapping[str, int]:
        assert noise is not None  # noqa: S101  # for the type checker
        # Of weights without a public total the number of records divides the sums: it must be at least their bound.
        bound = 1.0 if common.weights is None or common.weights.total is not None else common.weights.bound
        return release_counts(sizes, noise.budget, least=bound, n_threads=common.n_threads, seed=common.seed)

    whole = whole_of(len(groups), neighbors, payment.charged, noise)
    fits, entry = release_groups(groups, settings, payment, whole, count=count if counted else None)
    record = StrataRecord(
        by=by,
        neighbors=neighbors,
        budget=check_budget(budget),
        charged=payment.charged,
        counted=None if noise is None else noise.budget,
        strata={name: record_of(fit) for name, fit in fits.items()},
    )
    payment.keep(entry, lambda: record.digest)
    announce(fits)
    return StrataFit(record)


def _strata(by: object, schema: Schema, strata: Sequence[str] | None) -> tuple[CategoricalColumn, Schema]:
    """Return the column of strata with its public categories, and the schema of the models without it."""
    if not isinstance(by, str):
        raise broken("by", "the name of a column", by)
    if by == schema.target.column:
        raise InvalidInput(f"by must not be the target, got by={by!r}")
    found = next((column for column in schema.columns if column.name == by), None)
    if isinstance(strata, str) or not isinstance(strata, Sequence | None):
        raise InvalidInput(f"strata must be a sequence of names, got {type(strata).__name__}")
    if strata is None and not isinstance(found, CategoricalColumn):
        raise InvalidInput(
            f"strata, the public categories of {by!r}, must be given unless the schema has them, got strata=None"
        )
    if any(by in term.columns and len(term.columns) > 1 for term in schema.terms):
        raise InvalidInput(f"by must not be in a term with another column, got by={by!r}")
    missing = found.missing if isinstance(found, CategoricalColumn) and strata is None else None
    listed = found.categories if isinstance(found, CategoricalColumn) and strata is None else strata
    column = CategoricalColumn(name=by, categories=tuple(listed or ()), unknown="error", missing=missing)
    if found is None:
        return column, schema
    if len(schema.columns) == 1:
        raise InvalidInput(f"the schema must have a column besides {by!r}, got none")
    return column, without_column(schema, found.name)


def _check_for_any_count(settings: Settings, n_columns: int) -> None:
    """Refuse, before anything is read or paid, public choices that a fit of 10⁷ records refuses."""
    many = dataclasses.replace(settings, n_public=_MANY)
    if isinstance(many.mechanism, NewtonSteps):
        newton_spec(many, _MANY, n_columns, budget=many.budget)
        return
    if many.is_auto:
        spec_of(many, _MANY, n_columns, budget=many.budget)
        return
    strength = many.strength

    def refusal(strength: float) -> RegularizationTooSmall | None:
        try:
            many.spec(_MANY, n_columns, l2_strength=strength)
        except RegularizationTooSmall as error:
            return error
        return None

    refused = refusal(strength)
    if refused is None:
        return
    power = math.floor(math.log10(strength))
    # What is refused at one λ is refused below it.
    decades = (p for p in range(power, _GREATEST_POWER) if refusal(10.0 ** (p + 1)) is None)
    digits = (float(f"{tenths}e{p - 1}") for p in list(decades)[:1] for tenths in range(10, 101))
    least = next((strength for strength in digits if refusal(strength) is None), None)
    must = "be greater" if least is None else f"be at least {least:g}"
    raise RegularizationTooSmall(
        f"l2_strength must {must} for strata with private numbers, because it is checked for a count of {_MANY:,} "
        f"before anything is paid, got l2_strength={strength:g}",
        code=refused.code,
        least=least,
        value=strength,
    )


def _public_numbers(n_public: object, categories: Sequence[str]) -> dict[str, int]:
    if isinstance(n_public, Mapping):
        check_different("n_public must have one number for each stratum", n_public)
        n_public = {as_name(name): number for name, number in n_public.items()}
        if set(n_public) != set(categories):
            other = sorted({str(name) for name in set(n_public) ^ set(categories)})
            raise InvalidInput(
                f"n_public must have a number for each stratum and nothing else, got a difference in {other}"
            )
        return {name: check_count("n_public", n_public[name]) for name in categories}
    if isinstance(n_public, str):
        raise InvalidInput(f"n_public must be an integer, a mapping from strata or 'private', got {n_public!r}")
    return dict.fromkeys(categories, check_count("n_public", n_public))


def _payment(source: str, ledger: Ledger | None, common: Settings, budget: Budget, neighbors: Neighbors) -> Payment:
    """Return what the models of all strata owe a ledger, which must show errors as they are."""
    payment = Payment.due(
        source,
        ledger,
        budget=budget,
        neighbors=neighbors,
        seed=common.seed,
        persons=common.unit is not None,
    )
    if payment.private:
        raise InvalidInput(
            "ledger must have errors='detailed' for strata, because an error would have to hide which stratum it is "
            "of, got errors='private'"
        )
    return payment


def _check_loss(schema: Schema, loss: object) -> None:
    if isinstance(schema.target, CategoricalTarget) or (isinstance(loss, str) and loss == SEVERAL):
        raise InvalidInput(
            "loss must be one of dpci.fit for strata: put the stratum into the model of dpci.multinomial.fit as a "
            f"column, got loss={loss!r} with the target {schema.target.column!r}"
        )
    if schema.drops:
        raise InvalidInput(
            f'missing must not be "drop" for strata, whose rows all count, got it for {schema.drops[0]!r}'
        )


def _groups(
    table: Any,  # noqa: ANN401  # tables of any library
    column: CategoricalColumn,
    whole: Schema,
    schema: Schema,
    beside: Beside,
) -> dict[str, Source]:
    """Return the rows of each stratum; every record is in one, and all rows of a person.

    ``schema`` is that of the models, ``whole`` the one that names the column of strata, too.
    """
    source = described(Source(table), schema)
    if source.prepare is None:
        raise InvalidInput(f"strata need a table in memory, got {type(table).__name__}")
    check_unit_columns(whole, source._replace(beside=beside))
    columns = named_columns(table)
    beside = columns_beside(columns, beside)
    whose: NDArray[np.intp] = column.indicators(column_of(columns, column.name)).argmax(axis=1)
    rows, labels, _ = encode_table(columns, None, schema)
    people = None if beside.persons is None else numbered(beside.persons, len(whose), columns)
    weighed = None if beside.weights is None else weight_values(beside.weights, len(whose), columns)
    if people is not None and len(people):
        of_person = np.zeros(int(people.max()) + 1, dtype=np.intp)
        of_person[people] = whose
        if np.any(of_person[people] != whose):
            raise InvalidInput(
                "all rows of a person must be in one stratum, got a person in several (give all rows of a person the "
                "stratum of one of them, such as the first)"
            )
    groups = {}
    for code, name in enumerate(column.categories):
        inside = np.flatnonzero(whose == code)
        if not len(inside):
            raise InvalidInput(f"every stratum must have at least one row, got none of {name!r}")
        coded = isinstance(labels, CodedLabels)
        targets = CodedLabels(labels.values[inside], labels.classes) if coded else np.asarray(labels)[inside]
        groups[name] = Source(
            NamedRows(rows.values[inside], rows.names),
            targets,
            Beside(None if people is None else people[inside], None if weighed is None else weighed[inside]),
        )
    return groups
