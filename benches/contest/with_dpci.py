"""dpci as a contestant: the certified minimiser, and private fits with and without intervals."""

from collections.abc import Callable

from problem import Problem

import dpci


def contestant(problem: Problem, solver: str) -> Callable[[float, int], dict]:
    X, y, terms = problem.X, problem.y, problem.terms
    losses = {"squared": dpci.losses.Squared(), "huber_hinge": dpci.losses.HuberHinge(h=0.5)}
    objective = {"l2_strength": terms.l2_strength, "loss": losses.get(terms.loss, terms.loss)}

    def minimiser(tolerance: float, threads: int) -> dict:
        found = dpci.lowlevel.minimize_erm(X, y, tolerance=tolerance, n_threads=threads, **objective)
        return {"params": found.params}

    def private(moments: str) -> Callable[[float, int], dict]:
        keywords = {"rows": dpci.rows.Within(terms.row_norm, intercept=False), **objective}
        if terms.loss != "squared":
            keywords["classes"] = (-1, 1)

        def release(_: float, threads: int) -> dict:
            budget = dpci.PureDP(terms.epsilon)
            mechanism = dpci.ObjectivePerturbation(moments=moments, radius=terms.radius)
            with dpci.threads(threads):
                result = dpci.fit(X, y, budget=budget, mechanism=mechanism, **keywords)
            if moments == "none":
                return {"params": result.params}
            bounds = result.conf_int()
            return {"params": result.params, "std_errors": result.std_errors, "lengths": bounds.upper - bounds.lower}

        return release

    return {"minimiser": minimiser, "no intervals": private("none"), "intervals": private("joint")}[solver]
