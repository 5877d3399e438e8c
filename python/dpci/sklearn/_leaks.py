"""Warnings of what scikit-learn does with a private model that is not private: scores, and choices made by them."""

import inspect
import traceback
import warnings

from dpci.errors import PrivacyLeakWarning


def warn_of_model_selection() -> None:
    """Warn where a function of ``sklearn.model_selection`` is running.

    Each fit is private, but what compares fits on held-out records reads these without noise. Called when an estimator
    is fitted and when it is cloned: clones are made where the search was called, also if worker processes fit them.
    """
    if any(_within(module, "sklearn.model_selection") for module in _modules_on_stack()):
        _warn(
            "scikit-learn's model selection reads the records that it scores without noise: its scores, and what it "
            "chooses by them, are not private, whatever each fit spent (PrivateGridSearch chooses within one budget)"
        )


def warn_of_score() -> None:
    """Warn that a score is a function of the labels that no noise covers."""
    _warn("a score reads rows and labels without noise: it is not private unless these records are public")


def _warn(message: str) -> None:
    """Give a ``PrivacyLeakWarning`` that points to the line whose call led into scikit-learn or dpci."""
    modules = _modules_on_stack()
    ours = [level for level, module in enumerate(modules) if _within(module, "sklearn") or _within(module, "dpci")]
    # The function of modules[1] is this one, which warnings.warn calls level 1.
    warnings.warn(message, PrivacyLeakWarning, stacklevel=ours[-1] + 1)


def _modules_on_stack() -> list[str]:
    """Return the modules of the functions on the stack, this one first."""
    frames = traceback.walk_stack(inspect.currentframe())
    return [str(frame.f_globals.get("__name__", "")) for frame, _ in frames]


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
