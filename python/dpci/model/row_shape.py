"""The row domain that a schema has by default: blocks where noise in their shape is less, by public values alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from dpci.errors import InvalidInput
from dpci.model.recommend import any_spec, noise_std_devs
from dpci.model.settings import FitKeywords, Settings
from dpci.rows import Ball, RowDomain
from dpci.schema.table import Schema


def default_rows(schema: Schema, **keywords: Unpack[FitKeywords]) -> RowDomain:
    """Return the domain of the rows of a schema for a fit with these keywords, as :func:`with_default_rows` does."""
    return with_default_rows(Settings.checked(schema=schema, **keywords)).rows


def with_default_rows(settings: Settings) -> Settings:
    """Return the settings with the domain of their schema that has less noise: its unit ball, or the blocks within.

    Less is a smaller geometric mean of the standard deviations of the coefficients' noise. Both domains have the same
    norm, so neither n, ε, λ nor weights decide, but the schema, the notion, the mechanism and the radius. The ball
    stays where there is no noise in the shape of blocks.
    """
    schema = settings.schema
    if schema is None or not isinstance(settings.rows, Ball):
        return settings
    shaped = replace(settings, rows=schema.rows)
    try:
        ball, blocks = (_log_noise(one, len(schema.names)) for one in (settings, shaped))
    except InvalidInput:  # one of the two is not offered: what the ball lacks, the fit refuses
        return settings
    # Laws of one shape on either domain differ by rounding.
    return shaped if blocks < ball - 1e-6 else settings


def with_common_rows(settings: Sequence[Settings]) -> list[Settings]:
    """Return the settings of several fits with one domain of rows: the blocks where each fit would take them."""
    shaped = [with_default_rows(one) for one in settings]
    return list(settings) if any(isinstance(one.rows, Ball) for one in shaped) else shaped


def are_rows_given(keywords: Mapping[str, Any]) -> bool:
    """Return whether the keywords of a fit name the domain of the rows, so that the schema does not choose it."""
    return keywords.get("rows") is not None or keywords.get("row_norm") is not None


def _log_noise(settings: Settings, n_columns: int) -> float:
    # Weights multiply the noise on both domains by the same number, and their bound can be above the total at n = 1.
    spec, _ = any_spec(replace(settings, weights=None), settings.n_public or 1, n_columns)
    return float(np.log(noise_std_devs(settings, spec, n_columns + settings.fit_intercept)).mean())
