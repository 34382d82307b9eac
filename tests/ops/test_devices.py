import numpy as np
import pytest
from thinc.types import Ragged

from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.line_embed import LineEmbed
from thincdialog.layers.token_embed import TokenEmbed

TOKENS = Ragged(np.array([[1, 0], [2, 1], [1, 0]], dtype="i"), np.array([2, 1], dtype="i"))


@pytest.mark.parametrize("layer", [BagEmbed, LineEmbed, TokenEmbed])
def test_devices_a_gradient_of_ids_that_is_changed_in_place_changes_no_other(layer):
    model = layer(4, 5)
    model.initialize()
    Y, backprop = model(TOKENS, is_train=True)
    dX = backprop(Y)
    dX.dataXd[...] += 1
    again = model(TOKENS, is_train=True)[1](Y)
    assert not again.dataXd.any() and dX.dataXd.all()
