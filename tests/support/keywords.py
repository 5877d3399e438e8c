"""Keywords of a fit from options that tests vary one at a time."""

import dataclasses

import dpci

_OPTIONS = ("split", "moments", "projection", "calibration", "radius")
_KINDS = {"objective": dpci.ObjectivePerturbation, "output": dpci.OutputPerturbation}


def bounded(**keywords):
    """Return keywords of a fit, whose rows have the intercept that stands beside them."""
    if "intercept" not in keywords:
        return keywords
    constant, rows = keywords.pop("intercept"), keywords.get("rows")
    words = {"clip": dpci.rows.Clipped(), "weight": dpci.rows.Weighted()}
    rows = words.get(rows, rows) if isinstance(rows, str) else rows
    within = rows if isinstance(rows, dpci.rows.Within) else dpci.rows.Within(rows)
    return {**keywords, "rows": dataclasses.replace(within, intercept=constant)}


def assembled(**keywords):
    """Return keywords of a fit, whose mechanism has the options that stand beside it.

    Candidates and configurations have those that all have in common, too, where they name an option or a mechanism.
    """
    common = {name: value for name, value in keywords.items() if name in {*_OPTIONS, "mechanism"}}
    for name in ("candidates", "configs"):
        if isinstance(several := keywords.get(name), list) and all(isinstance(one, dict) for one in several):
            keywords[name] = [
                assembled(**{**common, **one}) if set(one) & {*_OPTIONS, "mechanism"} else one for one in several
            ]
    keywords = bounded(**keywords)
    options = {name: keywords.pop(name) for name in _OPTIONS if name in keywords}
    if not options:
        return keywords
    mechanism = keywords.get("mechanism") or "objective"
    named = _KINDS[mechanism]() if isinstance(mechanism, str) else mechanism
    return {**keywords, "mechanism": dataclasses.replace(named, **options)}
