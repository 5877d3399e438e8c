"""Approval of the models of all strata."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dpci.approval.approvable import statement_of
from dpci.approval.findings import Finding
from dpci.approval.noise import lattice_of_fits, noise_of_fits
from dpci.approval.of_fit import STRATA_PROOF, intervals_words, strata_covers
from dpci.approval.schema import Strata
from dpci.approval.statement import Statement
from dpci.budgets import Budget
from dpci.inference.remarks import notes
from dpci.model.result import PrivateFit
from dpci.released.record import FitRecord
from dpci.released.sources import PublicValue
from dpci.released.whole import counted_strata
from dpci.report.summary import Numbers, View, no_intervals, refusal_notes
from dpci.shown.document import Code, names
from dpci.strata.counts import whole_of
from dpci.strata.record import StrataRecord


def approval_of_strata(record: StrataRecord, *, refusal: str | None) -> Statement:
    """Return what an approver must know of all strata together, from what their models have in common.

    ``refusal`` is why one of them has no intervals.
    """
    fits, digest, charged, counted = record.strata, record.digest, record.charged, record.count_noise
    first = next(iter(fits.values()))
    one, n_strata = statement_of(PrivateFit(first)), counted_strata(len(fits))
    claim = replace(
        one.claim,
        kind=f"the models of {n_strata}",
        digest=digest,
        kept=digest,
        charged=charged,
        neighbors=record.neighbors,
        source=f"dpci.fit_strata, {n_strata} of {record.by!r}",
    )
    whole = whole_of(len(fits), record.neighbors, charged, counted)
    costs = [f"each fit {first.budget}: {one.composition[0].removeprefix('this fit: ').replace('; ', ', ')}"]
    if counted is not None:
        noise = f"{counted.law.replace('_', ' ')} noise of scale {counted.scale:.3g}"
        costs.append(f"each count {counted.budget}: {noise}")
    target, *further = (one.target or "").split("; ")
    further = [part for part in further if not part.startswith("λ applies")]
    whose = "its public number" if counted is None else "its released number"
    applies = f"{whose}: {', '.join(f'{name} {fit.n_samples:,}' for name, fit in fits.items())}"
    shown = {} if refusal is not None else {name: Numbers(fit, View()) for name, fit in fits.items()}
    cautions = [f"{name}: {said}" for name, numbers in shown.items() for said in refusal_notes(numbers)]
    warnings = [f"{name}: {said}" for name, fit in fits.items() for said in notes(fit)]
    return replace(
        one,
        claim=claim,
        contents=(
            ("models", (f"{n_strata} of ", Code(record.by), ", one model each: ", one.contents[0][1])),
            ("strata", names(fits)),
            one.contents[1],
        ),
        proofs=tuple(dict.fromkeys((*one.proofs, STRATA_PROOF))),
        audits=(*one.audits, "strata_audit"),
        budget=charged,
        own=charged,
        whole=None,
        guarantee=None,
        composition=tuple(costs),
        sealed=f"{one.sealed} of each stratum{', and the counts,' * (counted is not None)}",
        numbers=tuple((name, fit.n_samples) for name, fit in fits.items()),
        kind_of_numbers="stand_in" if counted is None else "released",
        strata=Strata(record.by, tuple(fits)),
        public=tuple(_public(fits, one, record.by, counted=counted is not None)),
        exact=tuple(dict.fromkeys((*one.exact, "the names of the strata"))),
        chosen=tuple(dict.fromkeys(("the list of strata", *one.chosen))),
        covers=strata_covers(whole, one.unit),
        target="; ".join([f"in each stratum {target}", f"in each stratum λ applies to {applies}", *further]),
        intervals=intervals_words(shown) if shown else None,
        warnings=tuple(warnings),
        cautions=tuple(cautions) if refusal is None else (no_intervals(refusal),),
        shown=(),
        refusals=(),
        findings=(noise_of_fits(list(fits.values())), lattice_of_fits(fits.values()), _parts(fits, charged)),
    )


def _public(fits: Mapping[str, FitRecord], one: Statement, by: str, *, counted: bool) -> Iterator[PublicValue]:
    yield PublicValue(f"strata of {by}", ", ".join(fits), "")
    if not counted:
        yield PublicValue("n_public", ", ".join(f"{name} {fit.n_samples:,}" for name, fit in fits.items()), "")
    yield from (value for value in one.public if value.name != "n_public")


def _parts(fits: Mapping[str, FitRecord], charged: Budget) -> Finding:
    """Return whether the models name the whole; that they agree on it is checked when they are read."""
    alone = [name for name, fit in fits.items() if fit.whole is None]
    if alone:
        return Finding("FAILED", f"these models do not say that they are a part of all strata: {', '.join(alone)}")
    what = f"each model says that it is one of {counted_strata(len(fits))}, which were charged {charged} together"
    return Finding("ok", f"{what}; the file holds as many, at that charge")
