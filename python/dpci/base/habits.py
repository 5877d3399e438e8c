"""Advice for names that users of R, statsmodels, scikit-learn, diffprivlib and OpenDP type by habit."""

from collections.abc import Mapping
from typing import Final

_RIDGE = "pass l2_strength=, the weight of a ridge; none is needed"
BUDGET = "pass budget=dpci.PureDP(epsilon=...), dpci.ApproxDP(epsilon=..., delta=...) or dpci.ZCDP(rho=...)"
_BOUNDS = "pass schema=, with the bounds of every column; rows= for an array"
_PERSONS = "pass persons=, the column with the ids of persons"
_WEIGHTS = "pass weights=dpci.Weights(values, bound=...)"
_NO_OFFSET = "pass nothing, because offsets are missing (docs/features.md)"

KEYWORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("epsilon", "eps", "delta", "rho", "privacy_budget"), BUDGET),
    **dict.fromkeys(("lambda_", "lam", "reg", "penalty", "ridge", "l2"), _RIDGE),
    **dict.fromkeys(("sample_weight", "freq_weights", "var_weights", "survey_weights"), _WEIGHTS),
    **dict.fromkeys(
        ("intercept", "fit_intercept", "add_intercept", "hasconst"),
        "pass rows=dpci.rows.Within(intercept=False) for none; a schema has it in its formula",
    ),
    **dict.fromkeys(("bounds", "bounds_X", "bounds_y", "data_norm", "lower", "upper"), _BOUNDS),
    **dict.fromkeys(("groups", "cluster", "clusters", "cluster_id", "user_id"), _PERSONS),
    **dict.fromkeys(("offset", "exposure"), _NO_OFFSET),
    **dict.fromkeys(("random_state", "rng"), "pass seed=, for tests alone: a fit with a seed is not private"),
    **dict.fromkeys(("cov_type", "vcov", "robust"), "pass nothing: intervals rest on the sandwich covariance"),
    **dict.fromkeys(("max_iter", "tol", "solver"), "pass nothing: every minimiser has a certificate"),
    **dict.fromkeys(("formula",), "pass schema=dpci.schema.Schema.from_formula(formula, schema)"),
    **dict.fromkeys(("data", "df"), "pass the table as the first argument"),
    **dict.fromkeys(("family", "link", "model"), "pass loss=, such as 'logistic', or an object of dpci.losses"),
    **dict.fromkeys(("accountant",), "pass ledger=dpci.Ledger(total)"),
    **dict.fromkeys(("missing", "na_action"), "pass missing= of the column in the schema"),
    **dict.fromkeys(("n_jobs", "n_threads"), "enter 'with dpci.threads(n):' around the call"),
    **dict.fromkeys(("weight_bound", "weight_total"), _WEIGHTS),
    **dict.fromkeys(("radius",), "pass mechanism=dpci.ObjectivePerturbation(radius=...)"),
    **dict.fromkeys(("on_violation",), "pass rows='clip' or 'weight'"),
    "C": "pass l2_strength=, which is 1 / (C n) for scikit-learn's C",
}
"""Advice for each keyword that a fit does not have."""

INTERVALS: Final[Mapping[str, str]] = {
    "alpha": "pass level=, which is 1 - alpha",
    **dict.fromkeys(("cols", "parm", "which"), "pass contrast=, a name or a list of names"),
    **dict.fromkeys(("confidence", "conf_level", "conf"), "pass level="),
}
"""Advice for keywords of ``conf_int``."""

_NONE: Final[Mapping[str, object]] = {}
_READS = "it would read the data again, which no budget pays for (docs/features.md)"

NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("rsquared", "rsquared_adj", "r_squared"), f"{_READS}; a LinearFit has rsquared"),
    **dict.fromkeys(("prsquared", "llf", "loglike", "logLik"), _READS),
    **dict.fromkeys(("aic", "bic", "AIC", "BIC", "deviance", "null_deviance", "score", "glance"), _READS),
    **dict.fromkeys(("resid", "resid_response", "residuals", "fittedvalues", "fitted_values", "augment"), _READS),
    **dict.fromkeys(("coef", "coef_", "coefficients", "intercept_", "beta"), "use params"),
    **dict.fromkeys(("bse", "std_err", "stderr", "std_error"), "use std_errors"),
    **dict.fromkeys(("tvalues", "zvalues"), "use tidy(), whose column 'statistic' has them"),
    **dict.fromkeys(("p_values", "pvalue_"), "use pvalues"),
    **dict.fromkeys(("cov_params", "vcov", "covariance_matrix"), "use cov"),
    **dict.fromkeys(("confint", "conf_int_", "interval"), "use conf_int()"),
    **dict.fromkeys(("nobs", "n_obs"), "use n_samples"),
    **dict.fromkeys(("t_test", "f_test", "anova"), "use wald_test(hypothesis)"),
    **dict.fromkeys(("get_prediction", "predict_interval"), "use predict_conf_int(X)"),
    **dict.fromkeys(("get_margeff", "margins"), "use marginal_effects(at)"),
    **dict.fromkeys(("summary2",), "use summary(full=True)"),
    **dict.fromkeys(("as_latex", "as_text", "as_html", "to_text"), "use to_latex(), to_markdown() or summary()"),
    **dict.fromkeys(("save", "dump", "to_pickle"), "use to_json(path)"),
    **dict.fromkeys(("load", "read_json"), "use dpci.load(path)"),
    **dict.fromkeys(("to_frame", "to_dataframe", "to_pandas", "params_table"), "use tidy() or summary_frame()"),
    **dict.fromkeys(("as_gt", "gt", "to_gt"), "use to_great_tables()"),
    **dict.fromkeys(("epsilon", "delta", "rho"), "use spent, the budget"),
    **dict.fromkeys(("feature_names_in_", "feature_names"), "use names"),
}
"""Advice for each attribute that a result does not have."""


def instead(name: str, advice: Mapping[str, str]) -> str:
    """Return the end of a message about a name that does not exist: the advice, or nothing."""
    return f": {advice[name]}" if name in advice else ""


def unexpected(
    function: str, name: str, advice: Mapping[str, str] = KEYWORDS, given: Mapping[str, object] = _NONE
) -> TypeError:
    """Return the error of a keyword that a function does not have, in Python's own words and with advice.

    ``given``: the keywords with their values, of which the advice may make the budget that was meant.
    """
    budget = _budget_of(given) if advice.get(name) == BUDGET else None
    said = instead(name, advice) if budget is None else f": pass budget={budget}"
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{said}")


def _budget_of(given: Mapping[str, object]) -> str | None:
    """Return the budget that keywords mean, as it is typed; None without numbers."""
    numbers = {name: value for name, value in given.items() if isinstance(value, int | float) and value is not True}
    epsilon, delta = numbers.get("epsilon", numbers.get("eps")), numbers.get("delta")
    if epsilon is not None:
        return f"dpci.PureDP({epsilon!r})" if not delta else f"dpci.ApproxDP({epsilon!r}, {delta!r})"
    return f"dpci.ZCDP({numbers['rho']!r})" if "rho" in numbers else None
