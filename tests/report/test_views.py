"""Views of a summary, a page and a plot: units, targets and simultaneous intervals."""

from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.released.model import record_of
from dpci.report.summary import Numbers, View
from dpci.schema import Schema
from support.ill import SCHEMA, people

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
TABLE = people()


def fitted(schema=SCHEMA):
    return dpci.fit(TABLE, schema=schema, budget=dpci.PureDP(4.0), l2_strength=0.02, seed=1)


def drawn_of(result):
    return Numbers(record_of(result), View()).drawn


def test_plots_are_in_the_units_of_the_table():
    """The intercept is no difference, and is left out."""
    result = fitted()
    drawn = drawn_of(result)
    units = result.conf_int(contrast=list(result.names[:-1]))
    assert drawn.names == tuple(f"{name}, {unit}" for name, unit in zip(units.names, units.per, strict=True))
    assert drawn.names[0] == "age, per year"
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(units))


def test_a_page_says_where_the_coefficients_of_a_product_hold():
    result = fitted(Schema.from_formula("age*sex + dose", SCHEMA))
    page = result.to_html()
    assert "<small>against F, at age 0</small>" in page
    assert "M, against F, at age 0" in page
    assert "Do not quote such a row alone." in page
    assert "age + C(sex, ref=&quot;F&quot;)" in page
    plain = fitted().to_html()
    for text in ("Do not quote such a row alone", ">formula<"):
        assert text not in plain
    assert '<div class="what">odds ratio</div>' in plain
    assert "the interval does not contain 1" in plain


def test_a_view_decides_what_is_shown():
    result = fitted()
    scaled = result.summary(units="scaled", simultaneous="bonferroni", level=0.9)
    assert "90% simultaneous (bonferroni) confidence intervals\n" in scaled
    assert "per year" not in scaled
    lower, upper = next(iter(result.scaled.conf_int(level=0.9, simultaneous="bonferroni")))
    assert f"{lower:.4f}" in scaled
    assert f"{upper:.4f}" in scaled
    page = result.to_html(simultaneous="max_z", units="scaled")
    assert "in at least 95% of repetitions of the study all intervals cover their targets at once" in page
    assert "over the full range" not in page
    for wrong, message in (
        ({"units": "km"}, "units must be one of"),
        ({"simultaneous": "all"}, "simultaneous must be"),
    ):
        with pytest.raises(InvalidInput, match=message):
            result.summary(**wrong)


def test_a_plot_leaves_out_what_is_not_given():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    # Both categories and the constant: without a ridge their levels are not estimable, and the slopes are.
    age, sex, dose = SCHEMA.columns
    levels = replace(SCHEMA, columns=(age, replace(sex, reference=None), dose))
    hidden = dpci.fit(TABLE, schema=levels, budget=dpci.PureDP(1e8), l2_strength=5e-4, seed=1)
    given = [reason is None for reason in hidden.conf_int(target="unregularised").refusals]
    assert 0 < sum(given) < len(given)
    frame = hidden.summary_frame(target="unregularised")
    assert frame.lower.notna().tolist() == given
    rows = hidden.plot(target="unregularised").get_yticklabels()
    drawn = Numbers(record_of(hidden), View(target="unregularised")).drawn
    assert [row.get_text() for row in rows] == [
        name for name, reason in zip(drawn.names, drawn.refusals, strict=True) if reason is None
    ]
    plt.close("all")
