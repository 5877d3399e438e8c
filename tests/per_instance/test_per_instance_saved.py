"""Saved reports: they say the same, and a file that contradicts itself is refused."""

import json
import pickle

import numpy as np
import pytest

import dpci
from dpci import InvalidInput
from dpci.per_instance import Report
from support import custom_losses
from support import per_instance as ours
from support.keywords import assembled
from support.saved import rewritten

N, D = 200, 3
X, Y = ours.make_rows(N, D)
NAN, HUGE = float("nan"), 10**400


def report(**keywords):
    return ours.report(X, Y, **keywords)


@pytest.fixture(scope="module")
def made():
    return report()


CUSTOM = custom_losses.logistic(one_signed=True)


@pytest.mark.parametrize("keywords", [{}, {"kind": "data_independent"}, {"loss": dpci.losses.HuberHinge(0.3)}], ids=str)
def test_saved_reports_say_the_same(keywords):
    made = report(**keywords)
    for copy in (Report.from_json(made.to_json()), pickle.loads(pickle.dumps(made))):
        for got, expected in zip(copy(X, Y), made(X, Y), strict=True):
            np.testing.assert_array_equal(got, expected)
        assert copy.to_json() == made.to_json()
        assert copy.summary() == made.summary()


def test_saved_reports_of_custom_losses_need_the_loss(made):
    custom = report(loss=CUSTOM)
    np.testing.assert_allclose(custom(X, Y).eps1, made(X, Y).eps1, rtol=1e-6)
    with pytest.raises(InvalidInput, match="loss must be given"):
        Report.from_json(custom.to_json())
    again = Report.from_json(custom.to_json(), loss=CUSTOM)
    np.testing.assert_array_equal(again(X, Y).eps1, custom(X, Y).eps1)
    with pytest.raises(InvalidInput, match="loss must have the declaration"):
        Report.from_json(custom.to_json(), loss=dpci.losses.HuberHinge(0.5))
    with pytest.raises(InvalidInput, match="loss must be the loss of the report"):
        Report.from_json(made.to_json(), loss=CUSTOM)


def changed(made, path, value):
    """JSON of a report with the value at a path replaced."""
    values = json.loads(made.to_json())
    *parents, last = path
    place = values
    for part in parents:
        place = place[part]
    place[last] = value
    return rewritten(values)


GRADIENT, COEFFICIENTS = ("fit", "steps", 1, "scale"), ("fit", "steps", 0, "scale")
DAMAGE = {
    "schema": (("schema",), "dpci.PrivateFit", "schema="),
    "version": (("schema_version",), 9, "schema_version=1"),
    "kind": (("kind",), "data_independent", "if and only if kind="),
    "gradient": (("gradient",), [1.0], r"gradient must have shape \(3,\)"),
    "scalar gradient": (("gradient",), NAN, "gradient must be finite"),
    "no gradient": (("gradient",), None, "gradient must be given if and only if"),
    "huge gradient": (("gradient", 0), HUGE, "every field of its schema, got OverflowError"),
    "hessian": (("hessian",), [[1.0, 2.0, NAN]] * 3, "hessian must be finite"),
    "scalar hessian": (("hessian",), NAN, "hessian must be finite"),
    "text": (("hessian",), "text", "every field of its schema"),
    "asymmetric": (("hessian", 0, 1), 1e6, r"hessian must be symmetric, got 1000000.0 at \(0, 1\)"),
    "asymmetric below": (("hessian", 2, 1), 1e6, "hessian must be symmetric"),
    "undecomposable": (("hessian",), [[1e308] * 3] * 3, "greatest entry of the released Hessian must be small enough"),
    "probability": (("failure_probability",), 2.0, "failure_probability must be at least 1e-300 and < 1"),
    "bound": (("bound",), "best", "bound must be one of"),
    "flag": (("simultaneous",), "no", "simultaneous must be"),
    "no shares": (("shares",), None, "shares must be given if and only if kind="),
    "nan shares": (("shares",), [NAN, 0.5, 0.5], "each share must be"),
    "huge share": (("shares", 0), HUGE, "each share must be"),
    "negative share": (("shares",), [-1.0, 1.0, 1.0], "each share must be"),
    "sum of shares": (("shares",), [0.2, 0.7, 0.2], "sum of shares must be 1"),
    "fit": (("fit",), {}, "a saved fit must be"),
    "null": (("fit",), None, "a saved fit must be"),
    "params": (("fit", "params", 0), HUGE, "every field of its schema, got OverflowError"),
    "noise scale": (("fit", "noise_scale"), 1e6, "noise_scale must be the scale of the step 'coefficients'"),
    "gradient noise": (GRADIENT, 1e-200, "steps and seals must spend at most the budget"),
    "hessian noise": (("fit", "steps", 2, "scale"), 1e-200, "steps and seals must spend at most the budget"),
    "other noise": (("fit", "steps", 2, "noise"), "matrix_laplace", "noise of the step 'report_hessian' must be"),
    "l2_strength": (("fit", "l2_strength"), 1e-320, "steps and seals must spend at most the budget"),
    "slope bound": (("fit", "loss", "slope_bound"), 0.5, "loss must have the declaration of Logistic"),
    "curvature bound": (("fit", "loss", "curvature_bound"), 0.1, "loss must have the declaration of Logistic"),
    "one-signed": (("fit", "loss", "one_signed"), False, "loss must have the declaration of Logistic"),
    "other targets": (("fit", "loss", "target_bounds"), [0.0, 1.0], "loss must have the declaration of Logistic"),
    "targets": (("fit", "loss", "target_bounds"), [0.0, NAN], "loss.target_bounds must be finite and increasing"),
    "huge targets": (("fit", "loss", "target_bounds"), [0, HUGE], "loss.target_bounds must be finite and increasing"),
    "scalar targets": (("fit", "loss", "target_bounds"), NAN, "loss.target_bounds must be a sequence of 2"),
    "classes": (("fit", "classes"), [HUGE, 1], "classes must be within the range of floats"),
    "neighbors": (("fit", "neighbors"), "replace_one", "steps and seals must spend at most the budget"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_reports_are_refused(made, case):
    path, value, message = DAMAGE[case]
    with pytest.raises(InvalidInput, match=message):
        Report.from_json(changed(made, path, value))


@pytest.mark.parametrize("name", ["schema", "schema_version", "kind", "shares", "bound", "gradient", "hessian", "fit"])
def test_reports_without_a_field_are_refused(made, name):
    values = json.loads(made.to_json())
    del values[name]
    with pytest.raises(InvalidInput):
        Report.from_json(rewritten(values))


@pytest.mark.parametrize("tiny", [1e-320, 1e-200])
def test_noise_too_small_for_the_budget_is_refused(tiny):
    values = json.loads(changed(report(kind="data_independent"), COEFFICIENTS, tiny))
    values["fit"]["noise_scale"] = tiny
    with pytest.raises(InvalidInput, match="steps and seals must spend at most the budget"):
        Report.from_json(rewritten(values))


@pytest.mark.parametrize("name", ["params", "classes", "loss"])
def test_saved_fits_refuse_numbers_beyond_floats(made, name):
    values = json.loads(made.result.to_json())
    place, key = (values["loss"], "target_bounds") if name == "loss" else (values, name)
    place[key] = [HUGE, 1, 1] if name == "params" else [HUGE, 1]
    with pytest.raises(InvalidInput):
        dpci.PrivateFit.from_json(rewritten(values))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", None, b"\xff", "[" * 100_000])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(InvalidInput, match="a saved report must be"):
        Report.from_json(text)


def test_shares_of_a_data_independent_report_are_refused():
    with pytest.raises(InvalidInput, match="shares must be given if and only if kind='data_dependent'"):
        Report.from_json(changed(report(kind="data_independent"), ("shares",), [0.2, 0.7, 0.1]))


def test_the_steps_are_those_of_the_kind(made):
    def changed(made, steps, seals):
        values = json.loads(made.to_json())
        values["fit"] |= {"steps": steps, "seals": seals}
        return rewritten(values)

    result = json.loads(made.to_json())["fit"]
    steps, seals = result["steps"], result["seals"]
    for others in (steps[:1], steps[:2], [*steps, steps[1]], [steps[0], *steps], steps[::-1]):
        with pytest.raises(
            InvalidInput, match=r"steps of the fit of a data_dependent report must be \('coefficients', "
        ):
            Report.from_json(changed(made, others, seals[: 1 if len(others) == 1 else 3]))
    independent = report(kind="data_independent")
    with pytest.raises(InvalidInput, match="steps of the fit of a data_independent report must be"):
        Report.from_json(changed(independent, steps, seals))
    with pytest.raises(InvalidInput, match=r"the seals with a report must be those of \('params', 'gradient'"):
        Report.from_json(changed(made, steps, seals[:2]))


@pytest.mark.parametrize("noise", [{"mechanism": "output"}, {"noise_law": "spherical_laplace"}])
def test_fits_of_other_mechanisms_make_no_report(noise):
    """The bounds are those of Gaussian objective perturbation; an output perturbation's loss is another one."""
    independent = report(kind="data_independent")
    if "mechanism" in noise:
        fitted = dpci.fit(
            X,
            Y,
            **assembled(
                budget=ours.BUDGET, l2_strength=0.1, neighbors=dpci.AddRemove(N), moments="none", intercept=False,
                seed=1, **noise,
            ),
        )  # fmt: skip
        other = json.loads(fitted.to_json())
    else:
        other = {**json.loads(independent.to_json())["fit"], **noise}
    with pytest.raises(InvalidInput, match=f"{next(iter(noise))} of .* must be"):
        Report.from_json(changed(independent, ("fit",), other))


# A caller's loss that breaks its word where the declaration's grid does not look.


class Wayward:
    """The logistic loss, whose derivative of one name is another value once it is told so."""

    def __init__(self):
        self.name, self.wrong = None, 0.0

    def slope(self, u, y):
        return np.full_like(u, self.wrong) if self.name == "slope" else CUSTOM.slope(u, y)

    def curvature(self, u, y):
        return np.full_like(u, self.wrong) if self.name == "curvature" else CUSTOM.curvature(u, y)


@pytest.mark.parametrize("kind", ["data_independent", "data_dependent"])
@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("curvature", -1.0, "negative curvature=-1 at a record"),
        ("curvature", 9.0, r"curvature=9 above curvature_bound=0\.25 at a record"),
        ("slope", -1.5, r"\|slope\|=1\.5 above slope_bound=1 at a record"),
        ("slope", NAN, "finite"),
    ],
)
def test_a_loss_that_breaks_its_declaration_at_a_record_is_refused(kind, name, wrong, message):
    functions = Wayward()
    loss = dpci.losses.Custom(
        CUSTOM.value, functions.slope, functions.curvature, slope_bound=1.0, curvature_bound=0.25, one_signed=True
    )
    made = report(loss=loss, kind=kind)
    made(X[:2], Y[:2])
    functions.name, functions.wrong = name, wrong
    with pytest.raises(InvalidInput, match=message):
        made(X[:2], Y[:2])
    if np.isfinite(wrong):
        functions.wrong = 0.25 * (1 + 1e-9) if name == "curvature" else 1.0 + 1e-9  # rounding
        assert np.isfinite(made(X[:2], Y[:2]).eps1).all()
