"""One self-contained HTML page about a released model: numbers, plot, budget, guarantee and caveats."""

from collections.abc import Sequence

import numpy as np

from dpci.accounting.guarantee import Guarantee
from dpci.base.tables import format_bound, format_percent
from dpci.base.validation import broken
from dpci.budgets import GaussianBudget, PureDP
from dpci.inference.error_law import NOISE_AWARE, is_likelihood
from dpci.inference.methods import Inference, interval_notes
from dpci.losses import SEVERAL, describe
from dpci.released.facts import conditions
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.released.sources import exceptions, shown_classes, table_values
from dpci.report.attacker import best_guess, implied, odds, power, what_it_says
from dpci.report.html.assumptions import assumptions_section
from dpci.report.html.elements import Content, Html, breakable, bullets, data_table, join, section, tag
from dpci.report.html.forest import forest_figure
from dpci.report.html.ratios import is_shrunken, ratios_section
from dpci.report.html.style import STYLE
from dpci.report.magnitudes import noise_shares, ridge_size
from dpci.report.meaning import Meaning, meaning_of, meaning_of_budget
from dpci.report.plot import given_rows
from dpci.report.quote import sentences_to_quote
from dpci.report.style import scale_of
from dpci.report.summary import (
    bare_table,
    estimate_table,
    fact_lines,
    interval_note,
    noise_note,
    refusal_notes,
    ridge_note,
    target_note,
)
from dpci.report.view import View
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema

SHARED = (
    "Every number on this page is released or public. If the assumptions below hold and this release was approved, the "
    "page may be shared as it is. You may compute anything from it; no further budget is needed."
)
"""The last sentences of the first paragraph of every page of a private result."""
_SEEDED = (
    "NOT PRIVATE (seeded). The noise of this model was drawn from a seed: anyone who knows the seed can subtract it. "
    "Do not publish this page as a private release."
)
# Nothing is loaded or run, even where a name were to break out of its element.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# Shares of the budget's own epsilon at which the guarantee is shown.
_SHARES = (0.25, 0.5, 1.0, 2.0)
# Columns of the table of estimates; a narrow screen shows the first ones.
_ORDER = ("estimate", "lower", "upper", "std error", "p-value", "ridge", "noise", "scaled")
_SHRUNKEN = (
    "Regularisation shrinks the coefficients together, possibly several-fold. A column without an effect that is "
    "correlated with one that has an effect gets a coefficient other than 0: an interval that leaves out 0 is no "
    "evidence of an adjusted effect. Compare coefficients only with those of models with the same lambda."
)


def html_report(
    result: Inference, view: View, *, title: str | None, digest: str | None = None, before: Sequence[Html] = ()
) -> str:
    """Return the page; see :meth:`dpci.PrivateFit.to_html`.

    ``digest``: the hash of the file that holds the fit; ``before``: sections above that of the budget.

    Raises
    ------
    InvalidInput
        For arguments out of range.
    """
    if title is not None and not isinstance(title, str):
        raise broken("title", "a string or None", title)
    heading = _heading(result) if title is None else title
    content = [
        tag("p", _lead(result), class_="lead"),
        *_numbers(result, view),
        *_magnitudes(result, view),
        *_quotable(result, view),
        *before,
        *_privacy(result),
        *_caveats(result, [target_note(result, view.target), *refusal_notes(result, view), *_shrunken(result, view)]),
        provenance(record_of(result), digest or record_of(result).digest),
    ]
    return document(heading, content, private=result.private, version=record_of(result).version)


def _heading(result: Inference) -> str:
    """Return the heading of a page without a title: the outcome, if a schema names it, and the kind of model."""
    kind = "A private model" if result.private else "A model with seeded noise"
    if result.schema is not None:
        kind += f" of {result.schema.target.column}"
        if (classes := shown_classes(result.classes, result.schema)) is not None:
            negative, positive = classes
            kind += f" ({positive} against {negative})"
    logistic = result.loss["name"] == "logistic"
    return f"{kind}: {'logistic regression' if logistic else f'{describe(result.loss)} loss'}"


def document(heading: str, content: list[Html], *, private: bool, version: str) -> str:
    """Return a page that needs nothing from elsewhere."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="generator", content=f"dpci {version}"),
        tag("title", heading),
        tag("style", Html(STYLE)),
    ]
    main = [
        tag("h1", heading, dir="auto"),
        *([] if private else [tag("p", _SEEDED, class_="banner", role="alert")]),
        *content,
    ]
    body = [tag("main", main), tag("footer", _footer(version))]
    page = tag("html", [tag("head", head), tag("body", body)], lang="en")
    # A lone surrogate in a name has no UTF-8.
    return ("<!DOCTYPE html>\n" + page + "\n").encode("utf-8", "replace").decode("utf-8")


def _lead(result: Inference) -> str:
    units = "records" if record_of(result).persons is None else "persons"
    records = f"{result.n_samples:,} {units}"
    if record_of(result).neighbors == "add_remove":
        records = f"{units} whose number is private (taken as {result.n_samples:,})"
    if not result.private:
        return f"Estimated from {records}, with noise as for {result.spent}."
    inferred = record_of(result).classes_inferred
    whole = record_of(result).whole
    together = "" if whole is None else f" One part of a release that spends {whole.budget} in total: {whole}."
    estimated = f"Estimated from {records} under differential privacy, {result.spent}.{together} "
    if inferred:
        return estimated + (
            "The class labels are not protected, because they were inferred from the data. Share this page only "
            "if the labels were public before the fit. Every other number on it is released or public."
        )
    return estimated + SHARED


def _numbers(result: Inference, view: View) -> list[Html]:
    if result.interval_refusal is not None:
        table = estimates_data_table("Released parameters", *bare_table(result, view))
        note = tag("p", interval_note(result) or "", class_="note")
        return [section("numbers", "Parameters", table, note)]
    kind = "Released parameters" if view.target == "regularised" else "Coefficients without the ridge"
    table = estimates_data_table(f"{kind}: {view.title(result)}", *estimate_table(result, view))
    intervals = given_rows(view.drawn(result))
    figure = [forest_figure(intervals, scale_of(result.loss["name"]))] if len(intervals) else []
    if figure and result.schema is not None and view.in_units(result):
        figure = [tag("p", drawn_note(result.schema)), *figure]
    return [
        section("numbers", "Parameters", table, *figure),
        *ratios_section(result, view),
        *_columns(result),
        section("read", "How to read the numbers", bullets(_reading(result, view))),
    ]


def drawn_note(schema: Schema) -> str:
    """Return what a plot of coefficients over full ranges shows."""
    from_lower = [part.name for part in schema.columns if isinstance(part, NumericColumn) and part.scale == "unit"]
    lower = f" (of {', '.join(from_lower)}: for the lower bound)" if from_lower else ""
    where = (
        " Where a column is part of a product, its coefficient is for the middle of the range of the other column"
        f"{lower}, and not for 0 as in the table; or for its reference."
    )
    return (
        "The plot shows the effect of the full range of each column, from the lower to the upper public bound, and of "
        f"each category against its reference.{where * _has_products(schema)}"
    )


def _has_products(schema: Schema) -> bool:
    return any(len(term.factors) > 1 for term in schema.terms)


def _columns(result: Inference) -> list[Html]:
    """Return the public bounds of the columns of the table, where a schema states them."""
    if (schema := result.schema) is None:
        return []
    rows = [
        [value.name.removeprefix("column "), value.value, value.source or "not stated"]
        for value in table_values(schema)
    ]
    table = data_table("Public bounds and categories", ["", "counted from ... to ..., or categories", "source"], rows)
    rules: list[Content] = [f"{', '.join(names)}: {rule}." for names, rule in exceptions(schema)]
    return [section("columns", "Columns of the table", table, bullets(rules))]


def estimates_data_table(caption: str, header: list[str], rows: list[list[str]]) -> Html:
    """Return the table of estimates: intervals first, which a narrow screen shows, and units below the names."""
    places = {name: place for place, name in enumerate(header)}
    order = [name for name in _ORDER if name in places]
    lines: list[list[str]] = []
    for row in rows:
        unit = [tag("small", row[places["unit"]])] if "unit" in places else []
        lines.append([join([breakable(row[0]), *unit]), *(row[places[name]] for name in order)])
    return data_table(caption, ["parameter", *order], lines)


def _reading(result: Inference, view: View) -> list[Content]:
    percent = format_percent(view.level)
    sign = "A positive parameter raises the predicted target."
    if (classes := shown_classes(result.classes, result.schema)) is not None:
        sign = f"A positive parameter favours the class {classes[1]!r}."
    elif result.loss["name"] == SEVERAL:
        sign = "A positive parameter favours the class in its name against the reference class."
    elif result.loss["name"] == "soft_logistic":
        sign = "A positive parameter raises the predicted probability."
    spread = (
        "the typical distance of the estimate from its target, because the records are a sample and noise was added."
    )
    bounds = (
        f"in about {percent} of repetitions of the study the interval covers its target, as a mean over parameters."
    )
    bounds += " Among many intervals some will miss their targets; simultaneous intervals are longer."
    if view.simultaneous is not None:
        bounds = f"in at least {percent} of repetitions of the study all intervals cover their targets at once."
    return [
        f"Estimate: the released parameter, noise included. {sign}",
        f"Std error: {spread}",
        "P-value: the probability of an estimate at least this far from 0 if its target were 0.",
        f"Lower and upper: {bounds}",
        *_reading_units(result, view),
    ]


def _reading_units(result: Inference, view: View) -> list[Content]:
    """Return how to read the columns that some tables have."""
    ridge = ridge_note(result)
    unit = "Below a name: what an estimate is per, or against. Scaled: the released parameter, of the scaled column."
    log = (
        "Per log: per unit of log(1 + the number), about a factor of 2.7 in the number. Below 0 it is the same with "
        "the other sign."
    )
    schema = result.schema if view.in_units(result) else None
    product = (
        "At a number, or for a category: the column is part of a product, and the row holds there only. Do not quote "
        "such a row alone."
    )
    return [
        *([] if ridge is None else [ridge]),
        *([] if schema is None else [unit]),
        *([product] if schema is not None and _has_products(schema) else []),
        *([log] if schema is not None and any(name.startswith("per log ") for name in schema.units) else []),
    ]


def _magnitudes(result: Inference, view: View) -> list[Html]:
    """Return how much of the errors is noise, and how far the ridge reaches, as released values tell."""
    if result.interval_refusal is not None:
        return []
    items: list[Content] = [*noise_shares(view.estimates(result)[1])]
    if record_of(result).projection != NOISE_AWARE and (noise := noise_note(result)) is not None:
        items.append(noise)
    items += interval_notes(result)
    if is_likelihood(record_of(result)):
        items.append(ridge_size(result, view))
    return [section("magnitudes", "How much the noise and the ridge do", bullets(items))]


def _quotable(result: Inference, view: View) -> list[Html]:
    """Return what to publish beside the numbers."""
    found: list[Content] = [*sentences_to_quote(result, view)]
    return [section("quote", "Sentences to publish beside the numbers", bullets(found))] if found else []


def provenance(record: FitRecord, digest: str) -> Html:
    """Return what ties the page to a file, a ledger and a schema."""
    paid = record.paid
    rows = [
        ["hash of the model", digest],
        ["schema", "none: the rows were encoded by the caller" if record.table is None else record.table.digest],
        ["ledger", "none was named" if paid is None else f"entry {paid['entry']} of {paid['ledger']}"],
        ["date", "not recorded without a ledger" if paid is None else str(paid["time"])],
        ["made with", f"dpci {record.version}"],
    ]
    note = "The command dpci verify compares the file of the model with its hash, its schema and its ledger."
    return section(
        "provenance", "Where this comes from", data_table("Provenance", ["what", "value"], rows), tag("p", note)
    )


def _privacy(result: Inference) -> list[Html]:
    # Spaces before a name, which HTML would drop, say that it belongs to the fact above.
    rows = [[name.replace("  ", "\u2003"), value] for name, value in fact_lines(result)]
    spent = section("budget", "The release and its budget", data_table("The release", ["what", "value"], rows))
    if not result.private:
        return [spent]
    return [spent, _attacker(result)]


def _attacker(result: Inference) -> Html:
    record = record_of(result)
    unit = "record" if record.persons is None else "person"
    if record.whole is None:
        return guarantee_section(result.guarantee, record.neighbors, unit)
    whole = record.whole
    together = tag("p", f"This is what {whole} reveal together.")
    attack = bullets(_attack(whole.neighbors, unit, meaning_of_budget(whole.budget), whole.budget))
    return section("attacker", _attacker_title(unit), together, attack)


def _attacker_title(unit: str) -> str:
    return f"What someone can learn about one {unit}"


def common_sections(part: Inference, target: str) -> list[Html]:
    """Return the sections about all parts of a release, one of which is given, and about their target."""
    return [*([_attacker(part)] if part.private else []), *_caveats(part, [target])]


def guarantee_section(guarantee: Guarantee, neighbors: str, unit: str) -> Html:
    """Return what a guarantee says about one unit, "record" or "person", with its profile."""
    meaning = meaning_of(guarantee)
    attack = bullets(_attack(neighbors, unit, meaning, guarantee.budget))
    if isinstance(guarantee.budget, PureDP):
        # Its curve is 0 from its own ε on; deltas at less would be read as chances of disclosure.
        return section("attacker", _attacker_title(unit), attack)
    points = [meaning.epsilon * share for share in _SHARES]
    # No profile exceeds the total variation distance.
    deltas = np.minimum(guarantee.delta(points), meaning.distance).tolist()
    # Upwards, epsilon too: with a greater epsilon or delta the guarantee holds all the more.
    rows = [
        [format_bound(eps, 4), power(eps), format_bound(delta, 3)] for eps, delta in zip(points, deltas, strict=True)
    ]
    caption = "What the guarantee implies: (ε, δ)-differential privacy for each of these pairs, all of them at once. "
    caption += "A greater δ at a smaller ε is the same guarantee, and not an additional chance of disclosure"
    profile = data_table(caption, ["ε", "e^ε, rounded up", "δ"], rows)
    return section("attacker", _attacker_title(unit), attack, profile)


def _attack(neighbors: str, unit: str, meaning: Meaning, budget: GaussianBudget) -> list[Content]:
    """Say what the guarantee means."""
    says = what_it_says(neighbors, unit, budget)
    group = "A person with m records has weaker protection: m records change together."
    if isinstance(budget, PureDP):
        group = "A person with m records has the weaker guarantee of m times the ε."
    population = (
        "Facts about the population are not hidden, because the model exists to show them. They may reveal something "
        "even about a person who is not in the data."
    )
    pair = implied(budget)
    return [
        *([] if pair is None else [f"The budget {budget} implies {pair}."]),
        best_guess(neighbors, unit, meaning),
        odds(neighbors, unit, meaning),
        *([] if says is None else [says]),
        *([group] if unit == "record" else []),
        population,
        "Other releases from the same records add to the budget spent here.",
    ]


def _shrunken(result: Inference, view: View) -> list[str]:
    return [_SHRUNKEN] if is_shrunken(result, view) else []


def _caveats(result: Inference, targets: list[str]) -> list[Html]:
    items: list[Content] = [*targets]
    if result.interval_refusal is None:
        matrices = "as well as" if record_of(result).projection == NOISE_AWARE else "but not"
        accounted = (
            "Intervals and p-values rely on the normal approximation of sampling errors, for large samples. They "
            f"account for sampling, for the noise in the parameters and for their rounding, {matrices} for the noise "
            "in the two matrices from which they are computed."
        )
        items += [
            accounted,
            _laws(result),
            "P-values, and intervals unless they are simultaneous, are for one parameter at a time.",
        ]
    record = record_of(result)
    if record.on_violation == "clip":
        items.append(
            f"Records beyond the public bounds ({record.rows}) were moved to the bounds. The target is "
            "that of the moved records."
        )
    return [section("caveats", "What to keep in mind", bullets(items)), assumptions_section(conditions(record))]


def _laws(result: Inference) -> str:
    """Return why an interval is not estimate ± 1.96 standard errors."""
    matrices = (
        ", and allow for the noise in the standard error itself" if record_of(result).projection == NOISE_AWARE else ""
    )
    return (
        "P-values and intervals are not those of estimate ± 1.96 standard errors. They use the distribution of the "
        f"noise{matrices}."
    )


def _footer(version: str) -> Html:
    made = f"dpci {version}. The same facts in machine-readable form: "
    return join([made, tag("code", "result.to_json()"), "."])
