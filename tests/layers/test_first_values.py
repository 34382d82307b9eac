"""Tables start with their initializer's values, but with zeros if saved values are loaded
afterwards."""

import numpy as np
import pytest

from thincdialog.api import registry
from thincdialog.layers.first_values import saved_values_follow


@pytest.mark.parametrize("name", ["thincdialog.BagEmbed.v1", "thincdialog.TokenEmbed.v1"])
def test_no_table_is_drawn_if_saved_values_follow(name):
    def init_E(ops, shape):
        drawn.append(shape)
        return ops.alloc2f(*shape) + 1

    drawn = []
    model = registry.layers.get(name)(4, nV=10, init_E=init_E)
    with saved_values_follow():
        model.initialize()
    assert not drawn and not np.any(model.get_param("E"))
    model.initialize()
    assert drawn == [(10, 4)] and np.all(model.get_param("E") == 1)
