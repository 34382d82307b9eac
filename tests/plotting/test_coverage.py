"""The picture of coverage at different thresholds."""

import numpy as np
import pytest

from thincdialog.evaluation.coverage import Guesses
from thincdialog.plotting.coverage import draw_coverage

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("n_outside, n_panels", [(0, 1), (5, 2)])
def test_draw_coverage_has_a_curve_for_what_is_out_of_scope(n_outside, n_panels, tmp_path):
    confidence = np.linspace(0.05, 1.0, 40)
    is_inside = np.arange(40) >= n_outside
    guesses = Guesses(confidence, is_inside & (confidence > 0.5), is_inside)
    draw_coverage(guesses, 0.4, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count('id="axes_') == drawn.count("threshold of the model, 0.4") == n_panels
