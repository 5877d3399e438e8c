"""Whether the numbers of a saved release are those that its public choices call for: noise, and lattices of seals."""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Seal, Step, levels_scale, seals_from, steps_from
from dpci.budgets import Neighbors, budget_from_parameters, core_budget
from dpci.losses import SEVERAL, Custom, from_declaration
from dpci.released.bounds import ReleasedBounds
from dpci.released.newton import Newton
from dpci.released.record import FitRecord
from dpci.rows import Blocks, core_rows
from dpci.unit import Persons, core_terms

# Elementary functions of another machine may round otherwise.
TOLERANCE = 1e-6
# Products of the saved numbers themselves are those of every machine, but for the order of sums.
_ROUNDING = 1e-11
# The best weights of a joint release are found by a search, which may end elsewhere there.
_OF_SEARCH = 1e-4
# Where the public grid ends on which the core checks declarations.
_GRID_END = 1e4
OTHER_PARAMETERS = "the coefficients do not follow from the other numbers of the file"
_OF_SEAL = ("lattice", "scale", "std_dev")
_OF_STEP = ("cost", "scale", "hessian_scale", "levels_scale", "sensitivity")


def newton_spec(record: FitRecord) -> _core.NewtonSpec:
    """Return the specification that the public choices of a fit by Newton steps make."""
    return _core.NewtonSpec(
        core_terms(record.n_samples, record.neighbors, record.persons, record.weights),
        n_columns=len(record.columns),
        intercept=record.intercept_scale,
        row_norm=core_rows(record.rows),
        loss=(from_declaration(record.loss) or _as_declared(record.loss)).to_core(),
        budget=core_budget(record.own_budget),
    )


def last_step(record: FitRecord, newton: Newton) -> _core.LastStep:
    """Return the last step of a fit by Newton steps, which has the rules of its errors (docs/proofs/newton.md)."""
    return newton_spec(record).last_step(newton, *record.matrices)


def hides_class(record: FitRecord, newton: Newton) -> bool:
    """Return whether noise hides the rarer class under pure DP, by the best constant predictor of the fit."""
    constant = float((newton.map @ newton.centre)[-1]) * (record.intercept_scale or 0.0)
    return newton_spec(record).hides_class(constant)


def other_steps(record: FitRecord, newton: Newton) -> str | None:
    """Return the first number of a fit by Newton steps that does not follow from its choices and released values."""
    spec = newton_spec(record)
    radii, bounds = newton.radii.tolist(), newton.bounds.tolist()
    steps, seals = spec.planned(radii, bounds)
    expected, hessian = steps_from(steps), np.ascontiguousarray(record.hessian)
    before = record.released_bounds
    differ = [
        *([] if before is None else differences_of_bounds(before, record.n_samples, record.persons, record.neighbors)),
        *differences(
            {
                "slope_bound": (record.slope_bound, spec.slope_bound),
                "curvature_bound": (record.curvature_bound, spec.curvature_bound),
                "noise_scale": (record.noise_scale, spec.noise_scale(radii, bounds, newton.weights.tolist())),
                "edge": (newton.edge, spec.edge(bounds[-1], hessian)),
                "weights": (float(newton.weights.sum()), 1.0),
                "noise_spectral_radius": (record.noise_spectral_radius, 0.0),
                "ridge": (newton.ridge, spec.ridge(float(newton.radii[-1]))),
                **_bounds_that_follow(spec, record, newton),
            }
        ),
        *differences_of_steps(record.steps, expected),
        *differences_of_seals(record.seals, seals_from(seals)),
    ]
    with np.errstate(all="ignore"):  # saved records may hold any numbers
        values, vectors = np.linalg.eigh(hessian)
        changes = ((newton.gradients @ vectors) / np.maximum(values, newton.edge)) @ vectors.T
        ended = newton.weights @ (newton.starts - changes)
        size = np.abs(newton.starts).max() + np.abs(newton.params).max()
        # At a perturbed minimiser the ridge balances the gradient.
        pulled = newton.ridge * (newton.centre - newton.starts)
        balanced = newton.ridge == 0.0 or np.allclose(newton.gradients, pulled, rtol=TOLERANCE, atol=0.0)
        ends = np.abs(ended - newton.params).max() <= TOLERANCE * size
        room = _ROUNDING * (np.abs(newton.map) @ np.abs(newton.params))
        maps = (np.abs(newton.map @ newton.params - record.params) <= room).all()
        rounds = _is_a_rounding(newton)
    if not (ends and maps and balanced):
        differ.append(OTHER_PARAMETERS)
    if not rounds:
        differ.append("maps of the rows that released matrices make, got others")
    return next(iter(differ), None)


def _is_a_rounding(newton: Newton) -> bool:
    """Return whether the maps are such as the steps make, as far as the file shows what they were made of."""
    if newton.ridge > 0.0:
        # Nothing moves the rows further.
        return bool(np.allclose(newton.map, newton.round_map, rtol=_ROUNDING, atol=0.0))
    # One matrix makes the rows round, by the inverse of a root, which is symmetric and has positive eigenvalues.
    matrix = newton.round_map
    is_root = np.allclose(matrix, matrix.T, rtol=0.0, atol=_ROUNDING * np.abs(matrix).max())
    return is_root and bool((np.linalg.eigvalsh(matrix) > 0.0).all()) and not newton.centre.any()


def _bounds_that_follow(
    spec: _core.NewtonSpec, record: FitRecord, newton: Newton
) -> dict[str, tuple[float, float | None]]:
    """Return bounds of the last point that other released values decide: all under pure DP, otherwise the stretch."""
    gradient, hessian, stretch = newton.bounds[-1].tolist()
    radius = float(newton.radii[-1])
    if newton.ridge == 0.0 or record.curvature_bound is None:
        # Of a continued loss, which declares no slope, a curvature below its bound is taken.
        first, most = float(newton.bounds[0, 1]), spec.curvature_bound * radius**2
        continued = record.loss["slope_bound"] is None
        return {
            "stretch": (stretch, float(np.linalg.norm(newton.further))),
            "gradient_bound_at_0": (float(newton.bounds[0, 0]), spec.gradient_at_0),
            "first_hessian_bound": (first, min(first, most) if continued else most),
        }
    return {
        "gradient_bound": (gradient, record.slope_bound * radius),
        "hessian_bound": (hessian, record.curvature_bound * radius**2),
        "stretch": (stretch, 1.0),
    }


def fit_spec(record: FitRecord) -> _core.Spec:
    """Return the specification that the public choices of a fit make: of a custom loss its declaration is enough."""
    if record.loss["name"] == SEVERAL:
        loss = _core.Loss.multinomial(len(record.prefixes) + 1)
    else:
        loss = (from_declaration(record.loss) or _as_declared(record.loss)).to_core()
    return _core.Spec(
        core_terms(record.n_samples, record.neighbors, record.persons, record.weights),
        n_columns=len(record.columns),
        intercept=record.intercept_scale,
        row_norm=core_rows(record.rows),
        loss=loss,
        l2_strength=record.l2_strength,
        radius=record.radius,
        budget=core_budget(record.own_budget),
        mechanism="output" if record.mechanism == "output" else "objective",
        noise=record.noise_law,
        variant=record.variant,
        project=record.project,
        split=_split(record),
        moments=record.moments,
        projection="auto",
        calibration=record.calibration,
    )


def _as_declared(loss: Mapping[str, Any]) -> Custom:
    """Return other code with the declaration of a custom loss, from which alone its noise follows.

    A parabola of the least curvature; without one nothing.
    """
    reach = _GRID_END if loss["predictor_bound"] is None else loss["predictor_bound"]
    # A slope of one sign is 0 at an end.
    least, start = loss["strong_convexity"], reach if loss["one_signed"] else 0.0
    bounds = loss["target_bounds"]
    return Custom(
        lambda u, _: 0.5 * least * (u - start) ** 2,
        lambda u, _: least * (u - start),
        lambda u, _: np.full_like(u, least),
        slope_bound=loss["slope_bound"],
        curvature_bound=loss["curvature_bound"],
        one_signed=loss["one_signed"],
        target_bounds=None if bounds is None else tuple(bounds),
        predictor_bound=loss["predictor_bound"],
        strong_convexity=least,
    )


def other_noise(record: FitRecord, spec: _core.Spec) -> str | None:
    """Return the first number of a fit by itself in which its noise is not that of its public choices, in words."""
    plan = spec.plan()
    expected = steps_from(plan["steps"][:1])
    if record.moments != "none":
        # The moments' noise follows from the released parameters, moved into the domain.
        norm = record.params_norm
        margin = plan["row_norm"] * (norm if record.radius is None else min(norm, record.radius))
        expected += steps_from(_core.moment_steps(spec, margin))
    seals, k = seals_from(plan["seals"]), len(record.names)
    before = record.released_bounds
    differ = [
        *([] if before is None else differences_of_bounds(before, record.n_samples, record.persons, record.neighbors)),
        *differences(
            {
                "slope_bound": (record.slope_bound, spec.slope_bound),
                "curvature_bound": (record.curvature_bound, _finite(spec.curvature_bound)),
                "noise_scale": (record.noise_scale, spec.noise_scale),
                "noise_spectral_radius": (record.noise_spectral_radius, _spectral_radius(record, plan)),
            }
        ),
        *differences_of_steps(record.steps, expected),
        *differences_of_seals(record.seals[:1], seals[:1]),
        # Those of the matrices are of a plan for all parameters; they cost the same.
        *_costs(record.seals, {seal.release: seal for seal in seals}),
        *(text for seal in record.seals[1:] for text in _other_seal(seal, k * (k + 1) // 2, record.budget.notion)),
    ]
    return next(iter(differ), None)


def _spectral_radius(record: FitRecord, plan: "_core.PlanDict") -> float:
    """Return the spectral radius of the Hessian's noise: proportional to its scale, which the parameters decide."""
    own, planned = (_hessian_scale(steps) for steps in (record.steps, steps_from(plan["steps"])))
    return plan["noise_spectral_radius"] * (own / planned) if own and planned else 0.0


def _hessian_scale(steps: Iterable[Step]) -> float | None:
    each = {step.step: step.hessian_scale if step.step == "moments" else step.scale for step in steps}
    return each.get("moments", each.get("hessian"))


def differences_of_steps(found: Iterable[Step], expected: Iterable[Step]) -> Iterator[str]:
    """Yield in which numbers steps differ from those that public choices call for."""
    for own, other in zip_longest(found, expected):
        if own is None or other is None or (own.step, own.noise) != (other.step, other.noise):
            shown = ["none" if step is None else f"{step.step!r} with {step.noise} noise" for step in (other, own)]
            yield f"the step {shown[0]}, got {shown[1]}"
            return
        yield from differences(
            {f"{name} of the step {own.step!r}": (getattr(own, name), getattr(other, name)) for name in _OF_STEP},
            tolerance=_OF_SEARCH if own.step == "moments" else TOLERANCE,
        )


def differences_of_bounds(
    found: ReleasedBounds, n_samples: int, persons: Persons | None, neighbors: Neighbors
) -> Iterator[str]:
    """Yield in which numbers released bounds and lists differ from those that public choices call for."""
    specs = found.specs(n_samples, persons, neighbors)
    yield from differences({"share of the bounds": (found.share, specs.share)})
    yield from differences_of_steps(found.steps, specs.steps)


def differences_of_seals(found: Iterable[Seal], expected: Iterable[Seal]) -> Iterator[str]:
    """Yield in which numbers seals differ from those that public choices call for."""
    for own, other in zip_longest(found, expected):
        if own is None or other is None or own.release != other.release:
            shown = ["none" if seal is None else repr(seal.release) for seal in (other, own)]
            yield f"the seal of {shown[0]}, got {shown[1]}"
            return
        yield from differences(
            {f"{name} of the seal of {own.release!r}": (getattr(own, name), getattr(other, name))
             for name in ("distance", "std_dev")}
        )  # fmt: skip
        yield from _costs((own,), {other.release: other})


def differences_of_derivatives(found: Iterable[Seal], first: Seal, k: int) -> Iterator[str]:
    """Yield in which numbers the seals of a report's derivatives are not those of their costs and distances."""
    for seal, numbers in zip(found, (k, k * (k + 1) // 2), strict=False):
        yield from _costs((seal,), {seal.release: first})
        yield from _other_seal(seal, numbers, "approx")


def _other_seal(seal: Seal, n_numbers: int, notion: str) -> Iterator[str]:
    """Yield in which numbers the seal of that many numbers is not that of its own distance and cost."""
    cost = core_budget(budget_from_parameters(notion, seal.cost))
    other = _core.Seal(dim=n_numbers, distance=seal.distance, budget=cost)
    numbers = {each: (float(getattr(seal, each)), float(getattr(other, each))) for each in _OF_SEAL}
    yield from differences({f"{each} of the seal of {seal.release!r}": pair for each, pair in numbers.items()})


def _costs(found: Iterable[Seal], expected: dict[str, Seal]) -> Iterator[str]:
    for own in found:
        other = expected.get(own.release)
        if other is None:
            yield f"no seal of {own.release!r}, got one"
        elif own.cost.keys() != other.cost.keys():
            yield f"the cost of the seal of {own.release!r} in {' and '.join(other.cost)}, got {own.cost}"
        else:
            yield from differences(
                {f"{name} of the seal of {own.release!r}": (own.cost[name], other.cost[name]) for name in own.cost}
            )


def differences(
    values: Mapping[str, tuple[float | None, float | None]], *, tolerance: float = TOLERANCE
) -> Iterator[str]:
    """Yield which of some numbers, each as it is and as it must be, differ."""
    for name, (own, other) in values.items():
        same = own == other
        if own is not None and other is not None:
            same = math.isclose(own, other, rel_tol=tolerance)
        if not same:
            yield f"{name}={'none' if other is None else f'{other:.9g}'}, got {'none' if own is None else f'{own:.9g}'}"


def _split(record: FitRecord) -> tuple[float, float, float] | None:
    """Return the shares of coefficients, Hessian and gradient covariance, as the costs of the steps have them."""
    if record.moments == "none":
        return None
    costs = [step.cost for step in record.steps]
    if len(costs) == 2:
        costs = [costs[0], 0.5 * costs[1], 0.5 * costs[1]]
    if len(costs) != 3:
        return None
    whole = math.fsum(costs)
    return costs[0] / whole, costs[1] / whole, costs[2] / whole


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


_F64 = NDArray[np.float64]
_EPSILON = float(np.finfo(float).eps)


class Sealed(NamedTuple):
    """Numbers as a file holds them."""

    seal: Seal
    values: _F64
    added: _F64 | None = None
    """Numbers that were added to the sealed ones: public, or computed from released ones; None for nothing."""
    error: float = 0.0
    """Relative error of ``added``."""


def sealed_of_fit(record: FitRecord) -> Iterator[Sealed]:
    """Yield the sealed numbers of a fit by itself: those that no projection moved."""
    seals = {seal.release: seal for seal in record.seals}
    if record.newton is not None:
        if record.newton.ridge > 0.0:
            yield Sealed(seals["params"], record.newton.starts[0])
        else:
            of_gradients = [seal for seal in record.seals if seal.release == "gradient"]
            for seal, gradient in zip(of_gradients[-2:], record.newton.gradients, strict=True):
                yield Sealed(seal, gradient)
        yield Sealed(seals["hessian"], np.asarray(record.hessian))
        yield Sealed(seals["gradient_cov"], np.asarray(record.gradient_cov))
        return
    norm = record.params_norm
    if not _projected(record, norm):
        yield Sealed(seals["params"], record.params)
    if record.hessian is None or record.gradient_cov is None or record.projection != "noise_aware":
        return
    if "hessian" in seals:
        finer = _finer(record)
        yield Sealed(seals["hessian"], record.hessian * finer, record.l2_strength * np.diag(np.diag(finer)))
    added, error = None, 16.0
    if record.neighbors == "replace_one":
        # The mean gradient at the point where the matrices are taken.
        point = record.params
        if record.radius is not None and norm > record.radius:
            point, error = point * (record.radius / norm), error + 2.0 * len(point)
        mean = record.l2_strength * point
        # Saved records may hold any numbers; products beyond the range of floats are on no lattice.
        with np.errstate(all="ignore"):
            added = -record.divisor / record.n_samples * np.outer(mean, mean)
    yield Sealed(seals["gradient_cov"], record.gradient_cov, added, error * _EPSILON)


def _finer(record: FitRecord) -> _F64:
    """Return by how much finer each entry of the Hessian is sealed, a power of two: level totals have less noise."""
    finer = np.ones((len(record.params), len(record.params)))
    if levels_scale(record.steps) is not None and isinstance(record.rows, Blocks):
        members = np.asarray(record.rows.members)
        numbers = np.flatnonzero(np.bincount(members)[members] == 1)
        np.fill_diagonal(finer, _core.FINER_LEVELS)
        finer[numbers, -1] = finer[-1, numbers] = _core.FINER_LEVELS
    return finer


def moved_of_fit(record: FitRecord) -> str | None:
    """Return the released numbers of a fit that a projection moved, in words; they are on no lattice."""
    norm = record.params_norm
    moved = []
    if _projected(record, norm):
        moved.append("coefficients")
    if record.hessian is not None and record.projection != "noise_aware":
        moved.append("matrices")
    return " and ".join(moved) or None


def _projected(record: FitRecord, norm: float) -> bool:
    """Return whether the coefficients ended on the sphere, within rounding, which a projection does."""
    return record.project and record.radius is not None and norm >= record.radius * (1.0 - 1e-9)


def off_lattice(parts: Iterable[Sealed]) -> str | None:
    """Return the first number that is no whole number of steps of its lattice, in words; None if all are."""
    with np.errstate(all="ignore"):  # as above
        for seal, values, added, error in parts:
            room: _F64 | float = 0.0
            sealed = values
            if added is not None:
                sealed = values - added
                # One rounding when it was added, one when it is taken away.
                room = _EPSILON * (np.abs(values) + np.abs(sealed)) + error * np.abs(added)
            # Exact, as remainders of floats are; those of infinite numbers are none.
            rest = np.abs(np.fmod(sealed, seal.lattice))
            wrong = np.argwhere(~(np.minimum(rest, seal.lattice - rest) <= room))
            if len(wrong):
                place = tuple(wrong[0].tolist())
                where = ", ".join(map(str, place))
                return f"{seal.release}[{where}]={float(values[place])!r} with the step {seal.lattice!r}"
    return None
