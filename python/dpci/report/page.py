"""Documents of released models: summary and page of a fit, and the sections that pages of several kinds have."""

from collections.abc import Sequence
from dataclasses import replace

from dpci import _core
from dpci.accounting.costs import describe_seals, step_names
from dpci.base.tables import change_text, format_percent, positive_class
from dpci.inference.intervals import ConfidenceIntervals, given_rows, refusal_of
from dpci.inference.validity import hiding
from dpci.losses import LOG_ODDS, SEVERAL
from dpci.released.bounds import ReleasedBounds
from dpci.released.record import NOISE_AWARE, FitRecord, Record
from dpci.released.sources import exceptions, table_values, weights_words
from dpci.report.meaning import attacker_section
from dpci.report.summary import (
    Numbers,
    View,
    answer_facts,
    answer_table,
    bare_table,
    custom_note,
    drawn_ratios,
    estimates_table,
    interval_note,
    interval_notes,
    model_words,
    noise_note,
    noise_shares,
    numbers_of,
    ratio_table,
    ratios_of,
    refusal_notes,
    ridge_note,
    target_note,
    without_results,
)
from dpci.schema.table import Schema
from dpci.shown.document import BANNER, Bullets, Document, Facts, Forest, Paragraph, Part, Section, Table

_SHRUNKEN = (
    "Regularisation shrinks the coefficients together, possibly several-fold. A column without an effect that is "
    "correlated with one that has an effect gets a coefficient other than 0: an interval that leaves out 0 is no "
    "evidence of an adjusted effect. Compare coefficients only with those of models with the same lambda."
)

_NOISE = "The released numbers are mostly noise. They are in the file, and no estimates: do not quote them."
_TREATED = {"clip": ", clipped", "weight": ", with less weight beyond them"}
_MORE = "in summary(full=True) or dpci report --full: ratio intervals, bounds, steps, assumptions"
_NOT_SHARED = "This fit has no estimates to publish."
_CHANGES = {
    ("replace_one", "record"): "replacing any one record",
    ("replace_one", "person"): "replacing all rows of any one person",
    ("add_remove", "record"): "adding or removing any one record",
    ("add_remove", "person"): "adding or removing all rows of any one person",
}


def titled(words: str, *, private: bool) -> str:
    """Return the title of the page of a model, from what it is."""
    return f"{words[0].upper()}{words[1:]}, with {'differential privacy' if private else 'seeded noise'}"


def page_of(
    record: FitRecord, view: View, *, title: str | None, digest: str | None = None, before: Sequence[Section] = ()
) -> Document:
    """Return the page; see :meth:`dpci.PrivateFit.to_html`.

    ``digest``: the hash of the file that holds the fit; ``before``: sections above that of the budget.
    """
    numbers = numbers_of(record, view)
    shrunken = [_SHRUNKEN] if _is_shrunken(record, view) else []
    parts = [
        Paragraph(_lead(record), "lead"),
        *(_bare(record, view) if numbers is None else _answer(numbers)),
        *_quotable(record, view),
        *before,
        *([] if numbers is None else [*_further(numbers), *_magnitudes(numbers)]),
        budget_section(fact_lines(record)),
        *([attacker_section(record, record.guarantee(), record.whole)] if record.private else []),
        *caveats(record, shrunken if numbers is not None else [target_note(record, view.target), *shrunken]),
        provenance(record, digest or record.digest),
    ]
    title = titled(model_words(record), private=record.private) if title is None else title
    return Document(title=title, parts=parts, banner=BANNER[record.private], version=record.version)


def summary_of(record: FitRecord, view: View, *, full: bool = False) -> Document:
    """Return the summary of a fit: its answer, or all that a reader needs to judge it."""
    numbers = numbers_of(record, view)
    if not full:
        table = bare_table(record, view, full=False) if numbers is None else answer_table(numbers)
        facts = [*_what(record), *answer_facts(record, view, numbers), ("more", _MORE)]
        reason = interval_note(record)
        first = [] if reason is None else [Paragraph(reason)]
        return Document(parts=[*first, table, Facts(facts)], banner=BANNER[record.private])
    ratios = None if numbers is None else ratio_table(numbers)
    reason = interval_note(record)
    parts = [
        *([] if reason is None else [Paragraph(reason)]),
        *([] if ratios is None else [ratios]),
        bare_table(record, view) if numbers is None else estimates_table(numbers),
        *released_table(record.released_bounds, record.table),
        Facts(fact_lines(record)),
        *map(Paragraph, _notes(record, view, numbers)),
    ]
    return Document(parts=parts, banner=BANNER[record.private])


def _what(record: FitRecord) -> list[tuple[str, str]]:
    """Return what was fitted, to how many, and what it cost."""
    unit = "record" if record.persons is None else "person"
    count = f"{record.n_samples:,} {unit}s"
    if record.neighbors == "add_remove":
        count = f"{unit}s whose number is private, taken as {record.n_samples:,}"
    spent = str(record.spent) if record.whole is None else f"{record.whole.budget} by {record.whole}"
    return [
        ("model", f"{model_words(record)}; {count}"),
        ("budget", f"{spent}; {change_text(record.neighbors, unit)}"),
    ]


def _notes(record: FitRecord, view: View, numbers: Numbers | None) -> list[str]:
    ridge = ridge_note(record, numbers) if view.target == "regularised" else None
    notes = [
        " ".join(filter(None, [target_note(record, view.target), ridge])),
        *refusal_notes(numbers),
        *([] if numbers is None else [*noise_shares(numbers), noise_note(numbers)]),
        *interval_notes(record),
    ]
    return [said for said in [*notes, custom_note(record)] if said is not None]


def _lead(record: FitRecord) -> str:
    units = "records" if record.persons is None else "persons"
    records = f"{record.n_samples:,} {units}"
    if record.neighbors == "add_remove":
        records = f"{units} whose number is private (taken as {record.n_samples:,})"
    if not record.private:
        return f"Estimated from {records}, with noise as for {record.spent}."
    whole = record.whole
    together = "" if whole is None else f" One part of a release that spends {whole.budget} in total: {whole}."
    estimated = f"Estimated from {records} under differential privacy, {record.spent}.{together} "
    if record.classes_inferred:
        return estimated + (
            "The class labels are not protected, because they were inferred from the data. Share this page only "
            "if the labels were public before the fit. Every other number on it is released or public."
        )
    return estimated + (_NOT_SHARED if without_results(record) else SHARED)


def _bare(record: FitRecord, view: View) -> list[Section]:
    note = Paragraph(interval_note(record) or "", "note")
    if without_results(record):
        return [Section("numbers", "No results", [note, Paragraph(_NOISE)])]
    return [Section("numbers", "Parameters", [note, replace(bare_table(record, view), caption="Released parameters")])]


def _answer(numbers: Numbers) -> list[Section]:
    """Return what a reader came for: ratios or otherwise coefficients, their plot, and magnitudes."""
    record = numbers.record
    facts = Facts(answer_facts(record, numbers.view, numbers), "Target and precision")
    ratios = _ratios(numbers)
    if ratios:
        what = ratios_of(numbers)
        drawn = drawn_ratios(numbers)
        figure = [] if drawn is None else [replace(forest_of(drawn, f"{what} ratio"), are_ratios=True)]
        return [Section(str(what), f"{str(what).capitalize()} ratios", [*ratios, *figure, facts])]
    intervals = given_rows(numbers.drawn)
    plot: list[Part] = []
    if len(intervals.names):
        plot.append(forest_of(intervals, record.loss_facts.scale))
    table = answer_table(numbers) if numbers.ordinary is not None else estimates_table(numbers)
    heading = "Coefficients" if numbers.in_units or numbers.ordinary is not None else "Parameters"
    return [Section("numbers", heading, [table, *plot, facts])]


def _further(numbers: Numbers) -> list[Section]:
    """Return the parameters with all their columns, the columns of the table, and how to read the numbers."""
    parameters = []
    if numbers.ordinary is not None or ratios_of(numbers):
        table = estimates_table(numbers)
        kind = "Released parameters" if numbers.view.target == "regularised" else "Coefficients without the ridge"
        shown = replace(table, caption=f"{kind}: {table.caption}")
        parameters.append(Section("parameters", "Parameters", [shown], folded=True))
    reading = Section("read", "How to read the numbers", [Bullets(_reading(numbers))], folded=True)
    return [*parameters, *_columns(numbers.record.table), reading]


def _columns(schema: Schema | None) -> list[Section]:
    """Return the bounds of the columns of the table, where a schema states them."""
    if schema is None:
        return []
    rows = [
        [value.name.removeprefix("column "), value.value, value.source or "not stated"]
        for value in table_values(schema)
    ]
    header = ["column", "bounds or categories", "source"]
    table = Table(header, rows, "Bounds and categories, with their sources", of_words=True)
    rules = Bullets([f"{', '.join(names)}: {rule}." for names, rule in exceptions(schema)])
    return [Section("columns", "Columns of the table", [table, rules], folded=True)]


def _reading(numbers: Numbers) -> list[str]:
    record, view = numbers.record, numbers.view
    percent = format_percent(view.level)
    sign = "A positive parameter raises the predicted target."
    if (classes := record.shown_classes) is not None:
        does = "raises the odds of" if record.loss["name"] in LOG_ODDS else "favours the class"
        sign = f"A positive coefficient {does} {classes[1]!r}."
    elif record.loss["name"] == SEVERAL:
        sign = "A positive parameter favours the class in its name against the reference class."
    elif record.loss["name"] == "soft_logistic":
        sign = "A positive parameter raises the predicted probability."
    spread = (
        "the typical distance of the estimate from its target, because the records are a sample and noise was added."
    )
    bounds = (
        f"in about {percent} of repetitions of the study an interval covers its target, on average over the parameters."
    )
    bounds += " Among many intervals some will miss their targets; simultaneous intervals are longer."
    if view.simultaneous is not None:
        bounds = f"in at least {percent} of repetitions of the study all intervals cover their targets at once."
    return [
        f"Estimate: the released parameter, noise included. {sign}",
        f"Std error: {spread}",
        "P-value: the probability of an estimate at least this far from 0 if its target were 0.",
        f"Lower and upper: {bounds}",
        *_reading_units(numbers),
    ]


def _reading_units(numbers: Numbers) -> list[str]:
    """Return how to read the columns that some tables have."""
    ridge = ridge_note(numbers.record, numbers)
    unit = (
        "The unit of an estimate, or the category with which it is compared, stands below its name. Scaled: the "
        "released parameter of the scaled column."
    )
    log = (
        "Per log: per unit of log(1 + the number), about a factor of 2.7 in the number. Below 0 it is the same with "
        "the other sign."
    )
    schema = numbers.record.table if numbers.in_units else None
    product = (
        "At a number, or for a category: the column is part of a product, and the row holds there only. Do not quote "
        "such a row alone."
    )
    return [
        *([] if ridge is None else [ridge]),
        *([] if schema is None else [unit]),
        *([product] if schema is not None and has_products(schema) else []),
        *([log] if schema is not None and any(name.startswith("per log ") for name in schema.units) else []),
    ]


def _magnitudes(numbers: Numbers) -> list[Section]:
    """Return what the intervals assume, and how much of their length is due to noise."""
    record = numbers.record
    items = [*noise_shares(numbers), *interval_notes(record, numbers.covered)]
    if record.projection != NOISE_AWARE and (noise := noise_note(numbers)) is not None:
        items.insert(0, noise)
    return [Section("magnitudes", "How the noise enters the intervals", [Bullets(items)], folded=True)] if items else []


def _quotable(record: FitRecord, view: View) -> list[Section]:
    """Return what belongs beside the numbers wherever they are quoted: guarantee, ridge, purpose of the intervals."""
    if not record.private or without_results(record):
        return []
    spent, neighbors = record.spent, record.neighbors
    if record.whole is not None:
        spent, neighbors = record.whole.budget, record.whole.neighbors
    change = _CHANGES[neighbors, "record" if record.persons is None else "person"]
    limit = f"{change} changes the probability of any result within this limit only"
    found = [f"The model was fitted with differential privacy, {spent}: {limit}."]
    if _is_shrunken(record, view):
        kind = "log odds ratios" if record.loss["name"] in LOG_ODDS else "those"
        found.append(
            f"Coefficients are {kind} of a regularised model ({record.loss_facts.words} loss, "
            f"lambda={record.l2_strength:g}): the penalty shrinks them together, possibly several-fold, and an "
            "interval that leaves out 0 is no evidence of an adjusted effect."
        )
    if refusal_of(record) is None:
        which = "one coefficient at a time" if view.simultaneous is None else "all coefficients together"
        found.append(
            f"{format_percent(view.level)} intervals are for {which}. They account for sampling error and privacy "
            "noise, and rest on a large-sample approximation."
        )
    return [Section("quote", "Sentences to publish beside the numbers", [Bullets(found)])]


def _ratios(numbers: Numbers) -> list[Part]:
    """Return odds or rate ratios with intervals, where a coefficient is the log of one that has a unit."""
    table, what = ratio_table(numbers), ratios_of(numbers)
    if table is None or what is None:
        return []
    are_rates = what == "rate"
    note = (
        f"{'A rate' if are_rates else 'An odds'} ratio is e to the power of a coefficient: the factor by which an "
        "increase by the unit below the name, or the category instead of the reference, multiplies "
        f"{'the mean count' if are_rates else 'the odds'}. 1 means no change."
    )
    return [table, *map(Paragraph, (note, *_shrunken_ratios(numbers.record, numbers.view, what)))]


def _shrunken_ratios(record: FitRecord, view: View, what: str) -> list[str]:
    if not _is_shrunken(record, view):
        return []
    of_what = f"These are {what} ratios of a regularised model (lambda = {record.l2_strength:g})."
    moved = "Those of large effects are nearer to 1 than without a ridge, possibly several-fold."
    other = (
        "A column without an effect that is correlated with one that has an effect gets a ratio other than 1: an "
        "interval that leaves out 1 is no evidence of an adjusted effect."
    )
    return [f"{of_what} {moved} {other}"]


def _is_shrunken(record: FitRecord, view: View) -> bool:
    """Return whether the numbers shown are those of the regularised model."""
    return view.target == "regularised" and record.l2_strength > 0.0


def caveats(record: FitRecord, targets: list[str]) -> list[Section]:
    """Return what to keep in mind of models whose ``targets`` are told, and what their guarantee assumes."""
    items = [*targets]
    if refusal_of(record) is None:
        matrices = "as well as" if record.projection == NOISE_AWARE else "but not"
        accounted = (
            "Intervals and p-values rely on the normal approximation of sampling errors, for large samples. They "
            f"account for sampling, for the noise in the parameters and for their rounding, {matrices} for the noise "
            "in the two matrices from which they are computed."
        )
        items += [
            accounted,
            _laws(record),
            "P-values, and intervals unless they are simultaneous, are for one parameter at a time.",
        ]
    if record.on_violation == "weight":
        items.append(
            f"Records beyond the public bounds ({record.rows}) weigh less. The target is that of a regression with "
            "these weights: without a ridge, where the model holds, that of all records alike."
        )
    if record.on_violation == "clip":
        items.append(
            f"Records beyond the public bounds ({record.rows}) were moved to the bounds. The target is "
            "that of the moved records."
        )
    return [
        Section("caveats", "What to keep in mind", [Bullets(items)], folded=True),
        assumptions_section(record.conditions),
    ]


def _laws(record: FitRecord) -> str:
    """Return how an interval differs from estimate ± 1.96 standard errors."""
    matrices = ", and allow for the noise in the standard error itself" if record.projection == NOISE_AWARE else ""
    return (
        f"P-values and intervals use the joint distribution of sampling error and noise{matrices}. Where the noise is "
        "small, an interval is close to estimate ± 1.96 standard errors."
    )


SHARED = (
    "The numbers on this page are released values and public choices. If the assumptions below hold and this release "
    "was approved, the page may be shared as it is. Further calculations from it need no budget."
)
"""The last sentences of the first paragraph of every page of a private result."""


def fact_lines(record: FitRecord) -> list[tuple[str, str]]:
    """Return names and values of the public facts; details of a fact are indented below it."""
    unit = record.cost_unit.replace("_", " ")
    steps = [
        (f"  {name}", f"{unit} {step.cost:.4g}, {step.noise.replace('_', ' ')} noise")
        for name, step in zip(step_names(record.steps), record.steps, strict=True)
    ]
    unit_of_privacy = "record" if record.persons is None else "person"
    public = "n (released)" if record.n_is_released else "n (public)"
    n_name = public if record.neighbors == "add_remove" else "n"
    return [
        ("mechanism", _mechanism(record)),
        ("loss", record.loss_facts.words + positive_class(record.shown_classes, inferred=record.classes_inferred)),
        ("budget spent", str(record.spent)),
        *([] if record.whole is None else [("  together", f"{record.whole.budget} by {record.whole}")]),
        *bounds_lines(record.released_bounds, record),
        *steps,
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", change_text(record.neighbors, unit_of_privacy)),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", weights_words(record))]),
        ("rows", _domain(record)),
        (n_name, f"{record.n_samples:,}"),
        *([] if record.newton is not None else [("lambda", _ridge(record))]),
        *record.made_choices,
        ("moments", "none released" if record.hessian is None else _moments(record)),
        *(hiding(record) if without_results(record) else []),
    ]


def released_table(found: ReleasedBounds | None, table: Schema | None) -> list[Table]:
    """Return the bounds and categories of a schema that were released within a budget."""
    if found is None or table is None:
        return []
    names = [(value.name.partition(" ")[2], value.value) for value in table_values(table)]
    rows = [[name, value] for name, value in names if name in found.columns]
    return [Table(["column", "released"], rows, "Released bounds and categories", of_words=True)]


def bounds_lines(found: ReleasedBounds | None, record: Record) -> list[tuple[str, str]]:
    """Return what bounds of a schema cost that were released within a budget, and how much they leave out."""
    if found is None:
        return []
    n_columns = len(found.columns)
    columns = "one column" if n_columns == 1 else f"{n_columns} columns{' together' * (found.share is not None)}"
    if found.share is None:
        return [("  categories", f"{found.budget} for {columns}, a random choice for each category")]
    what = "bounds and categories" if found.listed else "bounds"
    beyond, units = found.beyond(record.n_samples), "records" if record.persons is None else "persons"
    counted = [] if beyond is None else [("  beyond bounds", f"{beyond} of the {units} have a number beyond them")]
    return [
        (f"  {what}", f"{found.budget} for {columns}, by the exponential mechanism; beyond them {found.left_out}"),
        *counted,
    ]


def _domain(record: FitRecord) -> str:
    without = "" if record.intercept_scale is None else ", without the intercept"
    return f"{record.rows}{without}{_TREATED.get(record.on_violation, '')}"


def _moments(record: FitRecord) -> str:
    if record.newton is not None:
        return "Hessian and gradient covariance of the whitened rows, joint"
    how = "joint with level totals" if record.moments == "levels" else record.moments
    return f"Hessian and gradient covariance, {how}; projection {record.projection}"


def _mechanism(record: FitRecord) -> str:
    if record.newton is not None:
        return f"{record.newton.made_by}, on whitened rows"
    variant = "" if record.variant == "standard" else f", variant {record.variant}"
    project = ", params projected onto the ball" if record.project else ""
    calibration = "" if record.calibration == "tight" else f", calibration {record.calibration}"
    return f"{record.mechanism} perturbation{variant}{calibration}{project}"


def _ridge(record: FitRecord) -> str:
    chosen = ", recommended by public values" if record.l2_recommended else ""
    return f"{record.l2_strength:g}{chosen}" + (", raised by cms11" if _was_raised(record) else "")


def _was_raised(record: FitRecord) -> bool:
    """Return whether cms11 raised lambda."""
    if record.variant != "cms11":
        return False
    step = next(step for step in record.steps if step.step == "coefficients")
    epsilon = _core.zcdp_to_pure(step.cost, record.calibration) if record.notion == "zcdp" else step.cost
    return _core.cms11_raised(epsilon, step.sensitivity, step.scale)


def budget_section(facts: Sequence[tuple[str, str]], caption: str = "The release") -> Section:
    """Return what was released and spent."""
    return Section("budget", "The release and its budget", [Facts(facts, caption)], folded=True)


def assumptions_section(facts: Sequence[str]) -> Section:
    """Return what a guarantee rests on."""
    rests = Bullets([f"{fact[0].upper()}{fact[1:]}." for fact in facts])
    return Section("conditions", "Assumptions of the guarantee", [rests], folded=True)


def provenance(record: Record, digest: str) -> Section:
    """Return what ties the page to a file, a ledger and a schema."""
    paid = record.paid
    facts = [
        ("hash of the model", digest),
        ("schema", "none: the rows were encoded by the caller" if record.table is None else record.table.digest),
        ("ledger", "none was named" if paid is None else f"entry {paid['entry']} of {paid['ledger']}"),
        ("date", "not recorded without a ledger" if paid is None else str(paid["time"])),
        ("made with", f"dpci {record.version}"),
    ]
    note = "The command dpci verify compares the file of the model with its hash, its schema and its ledger."
    return Section("provenance", "Where this comes from", [Facts(facts, "Provenance"), Paragraph(note)], folded=True)


def forest_of(intervals: ConfidenceIntervals, axis: str) -> Forest:
    """Return the figure of intervals."""
    found = intervals
    return Forest(found.names, found.estimate, found.lower, found.upper, found.level, axis)


def has_products(schema: Schema) -> bool:
    """Whether terms of a schema combine columns."""
    return any(len(term.factors) > 1 for term in schema.terms)
