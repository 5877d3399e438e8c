"""Approval of a tuning: the choice and the fit together."""

from collections.abc import Sequence
from dataclasses import replace

from dpci.accounting.costs import seals_from, steps_from
from dpci.accounting.guarantee import Guarantee
from dpci.approval.noise import finding_of_noise
from dpci.approval.of_fit import TUNING_PROOF, approval_of_record, tuned
from dpci.approval.statement import Statement, steps_text
from dpci.budgets import budget_from_parameters
from dpci.multinomial.approval import with_classes
from dpci.released.calibration import differences_of_seals, differences_of_steps, fit_spec
from dpci.released.fit_record import FitRecord
from dpci.released.sources import PublicValue
from dpci.shown.document import Code, names
from dpci.tuning.candidates import option_names, params_text
from dpci.tuning.record import TuneRecord
from dpci.tuning.selection import Selection

_HOW = {
    "chunks": "Each candidate was fitted to a part of the records of its own.",
    "repeat": "Candidates were fitted a random number of times, and the best of them by noisy scores was kept.",
}
_TUNED = {"l2_strength", "radius"}
"""Public values of a fit that candidates may have."""
_MADE = "that the choice was made as the file says"


def approval_of_tuning(
    made: TuneRecord, *, refusal: str | None, guarantee: Guarantee | None, conditions: Sequence[str]
) -> Statement:
    """Return what an approver must know of the choice and the fit together.

    ``guarantee`` is that of a fit which alone cost something.
    """
    record, digest, budget = made.of_model, made.digest, made.budget
    params, choice, again = made.params, made.selection, made.fit is not None
    one = approval_of_record(record, refusal=refusal, guarantee=guarantee)
    found = replace(
        one,
        claim=replace(one.claim, kind="a tuning", digest=digest, kept=digest, charged=budget),
        contents=(("chosen", Code(params_text(params))), *one.contents),
        budget=budget,
        own=budget,
        whole=None,
        conditions=tuple(conditions),
        unchecked=(_MADE,),
        has_page=again or choice is None,
    )
    if choice is None:
        ruled = option_names(params)
        rule = tuple(
            value._replace(source="follows from public numbers by a rule") if value.name in ruled else value
            for value in one.public
        )
        return replace(found, public=rule, covers=(*one.covers, "λ follows from a public rule, which costs nothing."))
    spent = [f"the choice among {choice.n_candidates} candidates {choice.budget}"]
    if again:
        steps = steps_text(record.steps, record.cost_unit, record.seals).replace("; ", ", ")
        spent.append(f"the fit {record.budget}: {steps}")
    else:
        noise = finding_of_noise(record.version, lambda: _other_noise(record, choice))
        found = replace(found, findings=(noise, *found.findings[1:]))
    covered = f"It covers the choice among {choice.n_candidates} candidates, and the model."
    found = replace(
        found,
        composition=tuple(spent),
        proofs=(*one.proofs, TUNING_PROOF),
        audits=tuple(dict.fromkeys((*one.audits, "audit"))),
        covers=(f"{covered} {_HOW[choice.method]}", *one.covers[1:]),
    )
    listed = tuple(params_text(candidate) for candidate in choice.candidates)
    free = {name for candidate in choice.candidates for name in option_names(candidate)}
    public = [PublicValue("candidates", "; ".join(listed), ""), *found.public]
    common = [
        value._replace(name=f"{value.name}, common to all candidates") if value.name in _TUNED - free else value
        for value in public
    ]
    found = replace(
        found,
        contents=(found.contents[0], ("candidates", names(listed)), *found.contents[1:]),
        public=tuple(common),
    )
    found = tuned(found, choice.n_candidates, dict.fromkeys(free, f"chosen with noise, {choice.place}"))
    return found if made.several is None else with_classes(found, made.several.classes)


def _other_noise(record: FitRecord, choice: Selection) -> str | None:
    """Return the first number in which the noise of a selected model is not that of its public choices, in words."""
    facts, differ = choice.facts, None
    notion = {("epsilon",): "pure", ("rho",): "zcdp"}.get(tuple(facts["model_budget"]), "approx")
    budget = budget_from_parameters(notion, facts["model_budget"])
    n_samples = facts["chunk_sizes"][choice.index] if choice.method == "chunks" else record.n_samples
    # The ball of a record is that in which its candidate was compared; the candidate need not have been fitted in it.
    for radius in (None, record.radius) if record.loss["slope_bound"] is not None else (record.radius,):
        spec = fit_spec(replace(record, budget=budget, n_samples=n_samples, radius=radius))
        plan = spec.plan()
        expected = (
            replace(step, cost=own.cost) for own, step in zip(record.steps, steps_from(plan["steps"]), strict=True)
        )
        differ = next(
            iter(
                (
                    *differences_of_steps(record.steps, expected),
                    *differences_of_seals(record.seals, seals_from(plan["seals"])),
                )
            ),
            None,
        )
        if differ is None:
            return None
    return differ
