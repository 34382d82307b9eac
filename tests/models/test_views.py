"""Layers that read the ids of different tokenizers."""

import numpy as np
import pytest

from tests.layers.check_layer import check_layer
from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.data.special_tokens import N_SPECIAL, TURN
from thincdialog.data.tokenizers.byte_tokenizer import ByteTokenizer
from thincdialog.data.tokenizers.hash_ngrams import HashNgramTokenizer
from thincdialog.data.tokenizers.views import ViewsTokenizer
from thincdialog.errors import ConfigError
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.models.views import Views
from thincdialog.models.vocabulary_size import set_vocabulary

TEXTS = ["hello you", "", "you", "a b c"]
PARTS = {"words": HashNgramTokenizer(n_rows=16), "bytes": ByteTokenizer()}
BOTH = ViewsTokenizer(PARTS)


def views(widths=(3, 3), **settings):
    layers = {name: BagEmbed(width, pooling="sum") for name, width in zip(PARTS, widths)}
    model = Views(layers, **settings)
    set_vocabulary(model, BOTH.n_ids, BOTH.ranges)
    return model


def batch(tokenizer, ops, more=()):
    return ragged([[*more, *tokenizer.encode(text).tolist()] for text in TEXTS], ops)


@EACH_OPS
@pytest.mark.parametrize("join", ["add", "concatenate"])
def test_views_is_a_layer(ops, join):
    check_layer(lambda: views(join=join), batch(BOTH, ops), ops, is_differentiable=False)


@EACH_OPS
@pytest.mark.parametrize(
    "join, widths, n_outputs", [("add", (3, 3), 3), ("concatenate", (3, 5), 8)]
)
def test_views_joins_the_outputs_of_its_layers(ops, join, widths, n_outputs):
    model = views(widths, join=join)
    model.initialize(X=batch(BOTH, ops))
    words, characters = (
        ops.to_numpy(layer.predict(batch(PARTS[name], ops, [TURN])))
        for name, layer in zip(("words", "bytes"), model.layers)
    )
    expected = words + characters if join == "add" else np.hstack([words, characters])
    found = ops.to_numpy(model.predict(batch(BOTH, ops, [TURN])))
    np.testing.assert_array_equal(found, expected)
    assert model.get_dim("nO") == n_outputs


def test_views_says_which_there_are():
    model = Views({"letters": BagEmbed(3)})
    with pytest.raises(ConfigError, match="'letters'.*it has: words, bytes"):
        set_vocabulary(model, BOTH.n_ids, BOTH.ranges)
    with pytest.raises(ConfigError, match="thincdialog.Views.v1"):
        set_vocabulary(model, 10)


def test_views_refuses_what_it_cannot_join():
    with pytest.raises(ValueError, match="cannot be added"):
        views((3, 5)).initialize()
    with pytest.raises(ValueError, match="one layer or more"):
        Views({})


def test_views_set_sizes_of_tables():
    sizes = [layer.get_dim("nV") for layer in views().layers]
    assert sizes == [each.n_ids for each in PARTS.values()]
    assert BOTH.n_ids == N_SPECIAL + sum(sizes)
