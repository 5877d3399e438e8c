"""Advice for names that users of R, statsmodels, scikit-learn, diffprivlib and OpenDP type by habit."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

_RIDGE = "pass l2_strength=, the weight of a ridge; none is needed"
BUDGET = "pass budget=dpci.PureDP(epsilon=...), dpci.ApproxDP(epsilon=..., delta=...) or dpci.ZCDP(rho=...)"
_LEVEL = "pass level= to conf_int, odds_ratios or summary of the result"
_BOUNDS = "pass schema=, with the bounds of every column; rows= for an array"
_PERSONS = "pass persons=, the column with the ids of persons"
_WEIGHTS = "pass weights=dpci.Weights(values, bound=...)"
_SANDWICH = (
    "pass nothing: intervals rest on the sandwich covariance, but for linear regressions, for which "
    "dpci.regression.release(..., robust=True).fit() has it"
)
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
    **dict.fromkeys(("cov_type", "vcov", "robust"), _SANDWICH),
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
    **dict.fromkeys(("alpha", "level", "conf_level"), _LEVEL),
    **dict.fromkeys(("covariance",), _SANDWICH),
    **dict.fromkeys(("standardize", "normalize", "scale"), "pass nothing: a schema divides columns by public numbers"),
    **dict.fromkeys(("cv", "test_size"), "use dpci.tuning.tune, which pays for every look at held-out records"),
    **dict.fromkeys(("reference",), "pass reference= of the column in the schema"),
    **dict.fromkeys(("class_weight",), f"{_WEIGHTS}, the public weight of its class for each row"),
    **dict.fromkeys(("max_rows",), "pass persons=dpci.Persons(ids, max_rows=...)"),
    "C": "pass l2_strength=, which is 1 / (C n) for scikit-learn's C",
}
"""Advice for each keyword that a fit does not have."""

PLANS: Final[Mapping[str, str]] = {
    **KEYWORDS,
    **dict.fromkeys(("random_state", "rng"), "pass nothing: a plan draws nothing"),
    **dict.fromkeys(("max_rows",), "pass persons=dpci.Persons(max_rows=...)"),
    **dict.fromkeys(("sample_weight", "weight_bound"), "pass weights=dpci.Weights(bound=...)"),
}
"""Advice for keywords of a plan, which has no data."""

MATRICES: Final[Mapping[str, str]] = {
    **KEYWORDS,
    **dict.fromkeys(("cov_type", "vcov"), "pass robust=True, for standard errors as HC0"),
}
"""Advice for keywords of a release of a moment matrix."""

_LATER = "the release decides it: dpci.regression.release(..., robust=True)"
REGRESSIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cov_type", "vcov", "robust"), f"pass covariance='robust', where {_LATER}"),
    **dict.fromkeys(("formula", "data", "y", "X", "schema"), "pass target= and features=, names of released columns"),
    **dict.fromkeys(("fit_intercept", "hasconst"), "pass intercept="),
    **dict.fromkeys(("budget", "epsilon"), "pass nothing: a regression from a released matrix costs nothing"),
    **dict.fromkeys(("alpha", "lambda_", "ridge", "penalty"), "pass l2_strength="),
}
"""Advice for keywords of a regression from a released moment matrix."""

ESTIMATORS: Final[Mapping[str, str]] = {
    **KEYWORDS,
    **dict.fromkeys(("budget", "privacy_budget", "eps"), "pass epsilon=, with delta= for approximate DP, or rho="),
    **dict.fromkeys(("lambda_", "lam", "reg", "penalty", "ridge", "l2", "alpha"), "pass l2_strength="),
    **dict.fromkeys(("intercept", "add_intercept"), "pass fit_intercept="),
    **dict.fromkeys(("bounds", "bounds_X", "data_norm"), "pass row_norm=, or rows=, an object of dpci.rows"),
    **dict.fromkeys(("sample_weight",), "pass it to fit, and weights=dpci.Weights(bound=...) to the estimator"),
    **dict.fromkeys(("groups", "cluster", "user_id"), "pass persons=, the ids, to fit"),
    **dict.fromkeys(("schema",), "put dpci.sklearn.PublicScaler(schema) before the estimator in a pipeline"),
    **dict.fromkeys(("accountant",), "pass ledger=dpci.Ledger(total)"),
    **dict.fromkeys(("n_jobs",), "pass n_threads="),
    **dict.fromkeys(("family", "link"), "take the estimator of that name, or PrivateRegressor(loss=...)"),
    **dict.fromkeys(("cv", "scoring"), "pass nothing: candidates are compared on a part of the records, which is paid"),
}
"""Advice for each parameter that an estimator for scikit-learn does not have."""

SEARCHES: Final[Mapping[str, str]] = {
    **ESTIMATORS,
    **dict.fromkeys(("epsilon", "delta", "rho", "seed", "ledger", "persons", "classes"), "pass it to the estimator"),
}
"""Advice for each parameter that a search for scikit-learn does not have."""

LOGARITHMS = "add a column of logarithms to the table first, a public function of each row, and describe that column"

_FIRST = "add that column to the table first, a public function of each row, and describe it"
FORMULAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("log", "np.log", "log1p", "np.log1p", "log10", "log2"), LOGARITHMS),
    **dict.fromkeys(("power", "np.power", "pow"), "write I(age**2) or poly(age, 2)"),
    **dict.fromkeys(("sqrt", "np.sqrt", "exp", "np.exp", "abs", "cut", "ifelse", ">", "<", "=", "!"), _FIRST),
    **dict.fromkeys(("scale", "center", "standardize"), "leave it out: a schema divides columns by public numbers"),
    **dict.fromkeys(("cr", "cs", "cc", "ns", "s", "te", "rcs"), "write bs(age, df=5)"),
    "offset": "offsets are missing (docs/features.md)",
    **dict.fromkeys(("factor", "as.factor"), "write C(edu), or the name alone"),
    **dict.fromkeys(("relevel", "Treatment"), 'write C(edu, ref="mid")'),
    **dict.fromkeys(("Sum", "Helmert", "Poly", "Diff"), "write C(edu), and other contrasts as contrast= of conf_int"),
    **dict.fromkeys(("^", "**"), "write I(age**2) for a power, and a*b for a, b and their product"),
    "/": "write a + a:b for a/b",
    "%": "write a:b for a %in% b",
    "Q": "a name of a column stands in backticks",
    "|": "random effects are missing (docs/features.md)",
    ".": "name every column",
}
"""Advice for each function and sign of other formulas that ours do not have."""

OPTIONS: Final[Mapping[str, str]] = {
    "--C": "give --l2-strength, which is 1 / (C n) for scikit-learn's C",
    **dict.fromkeys(("--random-state", "--seed"), "give none: a release of a command is private, without a seed"),
    "--class-weight": "give --weights, a column with the public weight of its class for each row, and --weight-bound",
}
"""Advice for each option that a command does not have."""

COLUMNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("min", "minimum", "low"), "pass lower="),
    **dict.fromkeys(("max", "maximum", "high"), "pass upper="),
    **dict.fromkeys(("bounds", "range"), "pass lower= and upper="),
    **dict.fromkeys(("levels", "values"), "pass categories="),
    **dict.fromkeys(("ref", "base", "baseline", "drop"), "pass reference="),
    **dict.fromkeys(("transform", "log"), LOGARITHMS),
    **dict.fromkeys(("na", "fill", "impute", "default"), "pass missing="),
    **dict.fromkeys(("units",), "pass unit="),
    "missing": "nothing can stand for a target: leave such rows out, and pass neighbors=dpci.AddRemove(n_public=...), "
    "because how many are left is private",
    **dict.fromkeys(("negative", "positive"), "two classes are a ClassTarget"),
    **dict.fromkeys(
        ("classes", "labels"), "pass negative= and positive=; three or more classes are a CategoricalTarget"
    ),
}
"""Advice for each field that a column or target of a schema does not have."""

STAND_INS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("mean", "median", "mode"), "a statistic of the data is private; pass missing='drop', which leaves the row out"
    ),
    **dict.fromkeys(("ignore", "none", "omit"), "pass missing='drop', which leaves the row out"),
}
"""Advice for each rule for missing values that no column has."""

LOSSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("logit", "binomial", "bernoulli", "log_loss", "log"), "logistic"),
    **dict.fromkeys(("gaussian", "normal", "ols", "linear", "squared_error", "mse", "l2"), "squared"),
    **dict.fromkeys(("hinge", "svm"), "huber_hinge"),
    **dict.fromkeys(("negbin", "nb"), "negative_binomial"),
}
"""The loss that other libraries call by another name."""

_FIT = "use dpci.fit(table, schema=..., budget=...)"
FUNCTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Logit", "logit", "LogisticRegression", "logistic_regression", "glm", "GLM"), _FIT),
    **dict.fromkeys(("OLS", "ols", "lm", "LinearRegression", "linear_regression"), f"{_FIT}; the target is a number"),
    **dict.fromkeys(("Ridge", "Lasso"), f"{_FIT} with l2_strength="),
    **dict.fromkeys(("PoissonRegressor", "poisson"), f"{_FIT} with loss=dpci.losses.Poisson(count_bound=...)"),
    **dict.fromkeys(("GridSearchCV", "cross_val_score", "train_test_split"), "use dpci.tuning.tune"),
    **dict.fromkeys(("read_csv", "read_excel", "read_parquet"), "use dpci.read(path)"),
}
"""Advice for each name that neither the package nor a module of it has."""

_TUNED = "use PrivateGridSearch"
SKLEARN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV"), _TUNED),
    **dict.fromkeys(("cross_val_score", "cross_validate", "cross_val_predict"), f"{_TUNED}: every fold would be paid"),
    **dict.fromkeys(("StandardScaler", "MinMaxScaler"), "use PublicScaler, which takes public bounds"),
    **dict.fromkeys(("LogisticRegressionCV", "RidgeCV"), _TUNED),
    **dict.fromkeys(("Lasso", "ElasticNet"), "use PrivateRidge: there is no other penalty"),
    **dict.fromkeys(("SVC", "SGDClassifier"), "use PrivateLinearSVC or PrivateLogisticRegression"),
}
"""Advice for each name that ``dpci.sklearn`` has neither as it is nor behind "Private"."""

INTERVALS: Final[Mapping[str, str]] = {
    "alpha": "pass level=, which is 1 - alpha",
    **dict.fromkeys(("cols", "parm", "which"), "pass contrast=, a name or a list of names"),
    **dict.fromkeys(("confidence", "conf_level", "conf"), "pass level="),
    **dict.fromkeys(("exp", "eform", "odds"), "pass exponentiate=True"),
    "conf_int": "pass nothing: the intervals are there",
}
"""Advice for keywords of ``conf_int`` and of what shows intervals."""

_DIFFERENCES = "coefficients of a linear regression are differences, without ratios"
LINEAR: Final[Mapping[str, str]] = {
    **INTERVALS,
    **dict.fromkeys(("exp", "eform", "exponentiate"), _DIFFERENCES),
}
"""The same of a linear regression."""

ROWS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("which", "type", "kind"), "use predict_proba(X) for probabilities"),
    **dict.fromkeys(("newdata", "exog", "data", "df"), "pass the table as the first argument"),
    **dict.fromkeys(("return_std", "alpha", "level"), "use predict_conf_int(X, level=...)"),
}
"""Advice for keywords of predictions."""

NEEDED: Final[Mapping[str, str]] = {
    "budget": BUDGET,
    "X": "pass a table, such as {'age': [40], 'sex': ['F']}: a result holds no records",
    "n_samples": "pass n_samples=, the public number of records (of persons, if the schema names them), because a plan "
    "reads no data",
    "at": "pass a public value for each column, such as {'age': 40, 'sex': 'F'}: a result has no means of the data",
}
"""Advice for arguments that must be given."""

_FRAME = "use to_frame(), a pandas frame, or the bounds of a row by its name, as in intervals['age']"
OF_INTERVALS: Final[Mapping[str, str]] = dict.fromkeys(("loc", "iloc", "columns", "index", "T", "values"), _FRAME)
"""Advice for attributes that intervals do not have."""

_PARTS = "use tidy() for a frame, to_latex() or to_html()"
OF_TEXTS: Final[Mapping[str, str]] = dict.fromkeys(
    ("tables", "as_latex", "as_html", "as_text", "as_csv", "to_latex", "to_html"), f"a summary is a text; {_PARTS}"
)
"""Advice for attributes that a summary does not have."""

_NONE: Final[Mapping[str, object]] = {}
_READS = "it would read the data again, which no budget pays for (docs/features.md)"

NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("rsquared", "rsquared_adj", "r_squared"),
        "use rsquared of a linear regression, which is adjusted; other fits have none",
    ),
    **dict.fromkeys(("prsquared", "rsquared_pseudo", "llf", "llnull", "loglike", "logLik"), _READS),
    **dict.fromkeys(("pred_table", "get_influence", "vif", "condition_number", "compare_f_test"), _READS),
    **dict.fromkeys(("fvalue", "f_pvalue", "compare_lr_test", "llr_pvalue"), "use wald_test(names of coefficients)"),
    **dict.fromkeys(("mse_resid", "scale", "sigma"), "use residual_variance of a linear regression"),
    "df_resid": "use df of a linear regression",
    "get_robustcov_results": _SANDWICH,
    "plot_simultaneous": "use plot(simultaneous='max_z')",
    "model": "use loss and schema",
    "irr": "use rate_ratios()",
    "compare": "use dpci.compare(result, other)",
    "predict_log_proba": "use numpy.log(predict_proba(X))",
    "to_csv": "use tidy().to_csv(path)",
    **dict.fromkeys(("odds_ratios", "rate_ratios"), _DIFFERENCES),
    "marginal_effects": "coefficients of a linear regression are marginal effects: use params or conf_int()",
    **dict.fromkeys(("predict_proba", "decision_function"), "use predict(X)"),
    **dict.fromkeys(("aic", "bic", "AIC", "BIC", "deviance", "null_deviance", "score", "glance"), _READS),
    **dict.fromkeys(("resid", "resid_response", "residuals", "fittedvalues", "fitted_values", "augment"), _READS),
    **dict.fromkeys(("coef", "coef_", "coefficients", "intercept_", "beta"), "use params"),
    **dict.fromkeys(("bse", "std_err", "stderr", "std_error", "HC0_se", "HC1_se"), "use std_errors"),
    **dict.fromkeys(("tvalues", "zvalues"), "use tidy(), whose column 'statistic' has them"),
    **dict.fromkeys(("p_values", "pvalue_", "pvalue"), "use pvalues"),
    **dict.fromkeys(("cov_params", "vcov", "covariance_matrix"), "use cov"),
    **dict.fromkeys(("confint", "conf_int_", "interval"), "use conf_int()"),
    **dict.fromkeys(("nobs", "n_obs"), "use n_samples"),
    **dict.fromkeys(("t_test", "f_test", "anova"), "use wald_test(hypothesis)"),
    **dict.fromkeys(("get_prediction", "predict_interval"), "use predict_conf_int(X)"),
    **dict.fromkeys(("get_margeff", "margins"), "use marginal_effects(at), or params of a linear regression"),
    **dict.fromkeys(("summary2",), "use summary()"),
    **dict.fromkeys(("as_latex", "as_text", "as_html", "to_text"), "use to_latex(), to_markdown() or summary()"),
    "fit": "it is fitted; dpci.regression.MomentMatrix.of(result).fit() has further regressions of a linear one",
    **dict.fromkeys(("save", "dump", "to_pickle"), "use to_json(path)"),
    **dict.fromkeys(("load", "read_json"), "use dpci.load(path)"),
    **dict.fromkeys(("to_frame", "to_dataframe", "to_pandas", "params_table"), "use tidy() or summary_frame()"),
    **dict.fromkeys(("as_gt", "gt", "to_gt"), "use to_great_tables()"),
    **dict.fromkeys(("epsilon", "delta", "rho"), "use spent, the budget"),
    **dict.fromkeys(("feature_names_in_", "feature_names"), "use names"),
}
"""Advice for each attribute that a result does not have."""

_RESULT = "use result_, the released fit, such as result_.summary()"
OF_ESTIMATORS: Final[Mapping[str, str]] = {
    **NAMES,
    **dict.fromkeys(("summary", "params", "pvalues", "std_errors", "odds_ratios", "tidy", "plot", "to_json"), _RESULT),
    **dict.fromkeys(("coef", "coefficients", "beta"), "use coef_ and intercept_"),
}
"""Advice for each attribute that an estimator for scikit-learn does not have."""


def unknown_name(module: str, name: str, advice: str) -> AttributeError | ImportError:
    """Return the error of a name that a package does not have, for its ``__getattr__`` to raise.

    ``from package import name`` would replace an AttributeError by an error without the advice, unless there is a file
    of that name.
    """
    is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"  # noqa: SLF001  # nothing else tells one
    if advice and is_import and find_spec(f"{module}.{name}") is None:
        return ImportError(f"cannot import name {name!r} from {module!r}{advice}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{advice}")


def instead(name: object, advice: Mapping[str, str]) -> str:
    """Return the end of a message about a name that does not exist: the advice, or nothing."""
    return f": {advice[name]}" if isinstance(name, str) and name in advice else ""


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
