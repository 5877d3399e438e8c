"""Public data sets: a packaged sample, loaders that verify checksums, and the schemas that bound their rows.

`simulate_kddcup99` makes rows of the shape of a file that is too large to be everywhere, `simulate_panel` persons with
several rows, `simulate_survey` rows with weights.
"""

from dpci.base.naming import name_publicly
from dpci.datasets.catalogue import Layout
from dpci.datasets.files import DatasetUnavailable
from dpci.datasets.loaders import (
    Dataset,
    load_adult,
    load_adult_sample,
    load_bank,
    load_credit_default,
    load_kddcup99,
    load_schema,
    schema_names,
)
from dpci.datasets.simulated import Panel, Survey, simulate_kddcup99, simulate_panel, simulate_survey
from dpci.datasets.tables import load_layout, load_sample_table, load_table

__all__ = [
    "Dataset",
    "DatasetUnavailable",
    "Layout",
    "Panel",
    "Survey",
    "load_adult",
    "load_adult_sample",
    "load_bank",
    "load_credit_default",
    "load_kddcup99",
    "load_layout",
    "load_sample_table",
    "load_schema",
    "load_table",
    "schema_names",
    "simulate_kddcup99",
    "simulate_panel",
    "simulate_survey",
]

name_publicly(__name__, __all__)
