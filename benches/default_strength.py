"""AUC of estimators of dpci.sklearn at their default λ, beside that of fits without privacy."""

import sys
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from _environments import now
from _timing import commit
from dpci.datasets.loaders import load_schema
from dpci.datasets.tables import load_table, without_missing
from dpci.mechanisms import ObjectivePerturbation
from dpci.schema import ClassTarget
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.transformers import PublicScaler

BUDGETS = {"(1, 1e-6)": (1.0, 1e-6), "1": (1.0, None), "(0.1, 1e-6)": (0.1, 1e-6), "0.1": (0.1, None)}


def main(n_fits: int) -> None:
    """Print the page."""
    warnings.simplefilter("ignore")
    print("# The default λ of estimators\n")
    print(f"`python benches/default_strength.py {n_fits}`, commit {commit()}, {now()}, seeds 0 to {n_fits - 1}.\n")
    print(
        "`make_pipeline(PublicScaler(schema), PrivateLogisticRegression(epsilon=..., delta=...))` on three quarters\n"
        "of the rows, AUC on the others, mean of the fits (least in brackets). Not private: a private fit has no\n"
        "score on private rows. Beside it `LogisticRegression(C=1e6)` on the same columns, and the former default,\n"
        "λ = 0.1.\n"
    )
    print("| data | budget | default λ | AUC | without privacy | loss | moments none | λ = 0.1 |\n|" + "---|" * 8)
    for name in ("bank", "adult", "credit_default"):
        table, schema = without_missing(load_table(name)), load_schema(name)
        target = schema.target
        assert isinstance(target, ClassTarget)
        labels = target.encode(table[target.column]) > 0
        order = np.random.default_rng(0).permutation(len(labels))
        cut = len(labels) * 3 // 4
        train, test = ({key: cells[part] for key, cells in table.items()} for part in (order[:cut], order[cut:]))
        y, z = labels[order[:cut]], labels[order[cut:]]
        plain = make_pipeline(PublicScaler(schema), LogisticRegression(C=1e6, max_iter=2000)).fit(train, y)
        best = roc_auc_score(z, plain.decision_function(test))
        rows, others = (PublicScaler(schema).fit(train).transform(part) for part in (train, test))
        for text, (epsilon, delta) in BUDGETS.items():
            found = {}
            for kind, keywords in (
                ("", {}),
                ("none", {"mechanism": ObjectivePerturbation(moments="none")}),
                ("0.1", {"l2_strength": 0.1}),
            ):
                models = [
                    PrivateLogisticRegression(epsilon=epsilon, delta=delta, seed=seed, **keywords).fit(rows, y)
                    for seed in range(n_fits)
                ]
                found[kind] = [roc_auc_score(z, model.decision_function(others)) for model in models], models[0]
            scores, model = found[""]
            cells = [f"{model.result_.l2_strength:.2g}", f"{np.mean(scores):.3f} ({min(scores):.3f})", f"{best:.3f}"]
            cells += [f"{best - np.mean(scores):.3f}", *(f"{np.mean(found[kind][0]):.3f}" for kind in ("none", "0.1"))]
            print(f"| {name} | {text} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
