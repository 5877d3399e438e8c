"""Approval of a tuning: the choice and the fit together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpci import _core
from dpci.accounting.costs import Seal, Step, seals_from
from dpci.accounting.guarantee import Guarantee
from dpci.approval.noise import finding_of_noise
from dpci.approval.of_fit import TUNING_PROOF, approval_of_record, tuned
from dpci.approval.statement import Statement, steps_text
from dpci.budgets import budget_from_parameters, core_budget
from dpci.losses import SEVERAL, from_declaration
from dpci.multinomial.approval import with_classes
from dpci.released.calibration import differences, differences_of_seals, differences_of_steps, fit_spec
from dpci.released.record import FitRecord
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
    if found.findings[0].outcome == "ok" or not again:
        noise = finding_of_noise(record.version, lambda: _other_noise(made, choice))
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


def _other_noise(made: TuneRecord, choice: Selection) -> str | None:
    """Return the first number in which the noise of a choice, or of its model, is not that of its public choices."""
    record = made.of_model
    # The ball of a selected model is that in which its candidate was compared, and it need not have been fitted in it.
    is_bounded = made.model is not None and record.loss["slope_bound"] is not None
    found = [list(_differences(replace(record, radius=radius), made, choice))
             for radius in ((None, record.radius) if is_bounded else (record.radius,))]  # fmt: skip
    return next((None for differ in found if not differ), found[0][0] if found[0] else None)


def _differences(common: FitRecord, made: TuneRecord, choice: Selection) -> Iterator[str]:
    """Yield in which numbers a choice differs from that of candidates like this record."""
    own, model = choice.facts, made.model
    spec = _tuning_spec(common, choice)
    planned = spec.facts()
    for name in own.keys() - {"score_seal", "score_noise"}:
        pairs = zip(*(_numbers(facts[name]) for facts in (own, planned)), strict=False)  # type: ignore[literal-required]
        yield from (text for found, expected in pairs for text in differences({name: (found, expected)}))
    if own["score_noise"] != planned["score_noise"]:
        yield f"score_noise={planned['score_noise']!r}, got {own['score_noise']!r}"
    yield from differences_of_seals(map(Seal.from_dict, own["score_seal"]), seals_from(planned["score_seal"]))
    if model is None:
        return
    planned_model = spec.model(choice.index)
    law, scale = planned_model.noise_law, planned_model.noise_scale
    yield from differences(
        {
            "slope_bound": (model.slope_bound, planned_model.slope_bound),
            "curvature_bound": (model.curvature_bound, planned_model.curvature_bound),
            "radius": (model.radius, own["radii"][choice.index]),
            "noise_scale": (model.noise_scale, scale),
            "noise_spectral_radius": (model.noise_spectral_radius, 0.0),
        }
    )
    cost = next(iter(choice.budget.parameters().values()))
    step = Step("coefficients", law, cost, scale, None, None, planned_model.sensitivity)
    yield from differences_of_steps(model.steps, [step])
    yield from differences_of_seals(model.seals, seals_from([planned_model.seal]))


def _tuning_spec(common: FitRecord, choice: Selection) -> _core.TuningSpec:
    """Return the specification of a tuning whose candidates are like this record: their balls decide the scores."""
    # The notion of a run of a selection need not be that of the budget.
    runs = choice.facts["model_budget"]
    notion = {("epsilon",): "pure", ("rho",): "zcdp"}.get(tuple(runs), "approx")
    common = replace(common, budget=budget_from_parameters(notion, runs))
    several = common.loss["name"] == SEVERAL
    specs = [
        fit_spec(common if several or i == choice.index else replace(common, radius=radius))
        for i, radius in enumerate(choice.facts["radii"])
    ]
    loss = from_declaration(choice.loss)
    return _core.TuningSpec(
        specs,
        loss=loss.to_core() if loss is not None else _core.Loss.multinomial(len(common.prefixes) + 1),
        validation_radius=choice.facts["radii"][choice.index],
        method="chunks" if choice.method == "chunks" else "repeat",
        shape=choice.facts.get("shape", 1.0),
        # The mean of the law, which was rounded once more than the caller's number.
        expected_runs=float(f"{choice.facts.get('expected_runs', 1.0):.12g}"),
        budget=core_budget(choice.budget),
    )


def _numbers(value: float | list[float] | dict[str, float] | None) -> list[float]:
    """Return the numbers of a fact, of a budget in the order of its notion."""
    if value is None:
        return []
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else [value]
