"""Private choice of parameters: λ, radius, loss or mechanism, chosen without reading the data in the open."""

from dpci.base.naming import name_publicly
from dpci.tuning.choose import tune
from dpci.tuning.oracle import oracle_not_private
from dpci.tuning.result import OracleSearch, SelectedFit, TuneResult
from dpci.tuning.rule import public_rule

__all__ = ["OracleSearch", "SelectedFit", "TuneResult", "oracle_not_private", "public_rule", "tune"]

name_publicly(__name__, __all__)
