"""Widths of a block. ``test_layers`` tests its computations."""

import pytest

from thincdialog.layers.transformer_block import TransformerBlock


@pytest.mark.parametrize(
    "width, settings, hidden",
    [
        (128, {}, 512),
        (128, {"activation": "swiglu"}, 344),
        (96, {"activation": "swiglu"}, 256),
        (128, {"activation": "swiglu", "nH": 341}, 341),
    ],
)
def test_transformer_block_hidden_width_is_a_multiple_of_8_unless_it_is_given(
    width, settings, hidden
):
    net = TransformerBlock(width, n_heads=4, **settings).layers[-1]
    assert net.layers[1].get_dim("nO") == net.layers[2].get_dim("nI") == hidden
