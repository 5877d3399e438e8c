"""What a summary, a page and a plot show: units, targets and simultaneous intervals."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.report.view import View
from dpci.schema import Schema
from support.ill import SCHEMA, people

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")
TABLE = people()


def fitted(schema=SCHEMA):
    return dpci.fit(TABLE, schema=schema, budget=dpci.PureDP(4.0), l2_strength=0.02, seed=1)


def test_plots_are_over_the_full_range_of_each_column():
    """Over 40 years, against the reference, per range of the dose; the intercept is at age 40 and dose 0."""
    result = fitted()
    units = result.in_units().params
    drawn = View().drawn(result)
    assert drawn.names == result.names
    expected = [40 * units[0], units[1], 5 * units[2], units[3] + 40 * units[0]]
    np.testing.assert_allclose(drawn.estimate, expected, rtol=1e-9)
    curved = fitted(Schema.from_formula("bs(age, df=4)*sex + dose", SCHEMA))
    dose = curved.names.index("dose")
    assert View().drawn(curved).estimate[dose] == pytest.approx(5 * curved.in_units().params[dose])


def test_a_view_decides_what_is_shown():
    result = fitted()
    scaled = result.summary(units="scaled", simultaneous="bonferroni", level=0.9)
    assert "90% simultaneous (bonferroni) confidence intervals\n" in scaled
    assert "per year" not in scaled
    lower, upper = next(iter(result.conf_int(level=0.9, simultaneous="bonferroni")))
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
    hidden = dpci.fit(TABLE, schema=SCHEMA, budget=dpci.PureDP(8.0), l2_strength=0.005, seed=1)
    given = [reason is None for reason in hidden.in_units(target="unregularised").conf_int().refusals]
    assert 0 < sum(given) < len(given)
    frame = hidden.summary_frame(target="unregularised")
    assert frame.lower.notna().tolist() == [r is None for r in hidden.conf_int(target="unregularised").refusals]
    rows = hidden.plot(target="unregularised").get_yticklabels()
    drawn = View(target="unregularised").drawn(hidden)
    assert [row.get_text() for row in rows] == [
        name for name, reason in zip(drawn.names, drawn.refusals, strict=True) if reason is None
    ]
    plt.close("all")
