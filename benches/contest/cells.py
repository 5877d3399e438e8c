"""Cells of the contest: the problems, who takes part in each, and with what tolerances."""

from contestant import Entry
from problem import Terms

from data import DATA

L2_STRENGTH = 0.002
# Distance to the exact minimiser, in the norm of the parameters, that all contestants must reach.
TARGET = 1e-5
DECADES = tuple(10.0**-k for k in range(4, 15, 2))
# Of private ridge; the minimisers have norms from 2.1 to 3.5, so the radius binds none of them.
RIDGE_STRENGTH, RIDGE_RADIUS = 0.01, 4.0

PLAIN, ERRORS, PRIVATE, RIDGE = (
    "1. minimiser",
    "2. fit with standard errors",
    "3. private logistic regression",
    "4. private ridge",
)
_DENSE = ("KDD 10%, 10 columns", "KDD 10%, 90 columns", "generated")


def cells() -> list[tuple[str, str, Terms]]:
    """Task, data set and terms of all contests, in the order of the report."""
    logistic = ["Adult", "credit default", *_DENSE[:2], "KDD 10%, CSR", "generated"]
    plain = [(name, "logistic", L2_STRENGTH) for name in logistic]
    plain += [("Adult", "logistic", 1e-5)]
    plain += [(name, "squared", L2_STRENGTH) for name in ("Adult", *_DENSE[1:])]
    plain += [(name, "huber_hinge", L2_STRENGTH) for name in ("Adult", "generated")]
    plain += [(name, "hinge", L2_STRENGTH) for name in ("Adult", "credit default")]
    found = [(PLAIN, name, Terms("erm", loss, strength, DATA[name][1])) for name, loss, strength in plain]
    others = [(ERRORS, "errors", name) for name in ("Adult, full rank", "Adult", "credit default", *_DENSE)]
    others += [(PRIVATE, "private", name) for name in logistic]
    found += [(task, name, Terms(kind, "logistic", L2_STRENGTH, DATA[name][1])) for task, kind, name in others]
    for name in ("Adult", "credit default", "generated"):
        terms = Terms("private", "squared", RIDGE_STRENGTH, DATA[name][1], radius=RIDGE_RADIUS)
        found.append((RIDGE, name, terms))
    return found


def entries(task: str, terms: Terms, *, sparse: bool) -> list[Entry]:
    """Who takes part; what is fast comes first, because it sets the limit of the time of the others."""
    if task == PLAIN:
        ours = [Entry("dpci", "minimiser", (TARGET,))]
        return ours + _OTHERS[terms.loss] + (_DENSE_ONLY[terms.loss] if not sparse else _SPARSE_ONLY)
    if task == ERRORS:
        glum = [Entry("glum", "irls-ls", DECADES)]
        return [Entry("dpci", "intervals"), *glum, Entry("statsmodels", "GLM"), Entry("statsmodels", "Logit")]
    ours = [Entry("dpci", "no intervals"), Entry("dpci", "intervals")]
    if task == RIDGE:
        return [*ours, Entry("diffprivlib", "linear")]
    # Its own default, and what brings its answer near to the minimiser that its proof speaks of.
    return [*ours, Entry("diffprivlib", "default tol", (1e-4,)), Entry("diffprivlib", "tol=1e-8", (1e-8,))]


_OTHERS = {
    "logistic": [
        *(Entry("scikit-learn", s, DECADES) for s in ("newton-cholesky", "liblinear", "newton-cg", "lbfgs")),
        Entry("glum", "irls-ls", DECADES),
        *(Entry("statsmodels", s) for s in ("newton-cg", "bfgs")),
        Entry("SciPy", "L-BFGS-B", DECADES),
    ],
    "squared": [
        Entry("scikit-learn", "cholesky"),
        Entry("scikit-learn", "lsqr", DECADES),
        Entry("glum", "irls-ls", DECADES),
        Entry("statsmodels", "svd"),
        Entry("SciPy", "cholesky"),
    ],
    "huber_hinge": [Entry("SciPy", "L-BFGS-B", DECADES)],
    "hinge": [Entry("scikit-learn", "liblinear", DECADES)],
}
_DENSE_ONLY = {
    "logistic": [Entry("SciPy", "trust-exact", DECADES)],
    "squared": [],
    "huber_hinge": [Entry("SciPy", "trust-exact", DECADES)],
    "hinge": [],
}
_SPARSE_ONLY = [Entry("SciPy", "trust-krylov", DECADES)]
