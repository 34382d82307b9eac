import numpy as np
import pytest
from thinc.api import Adam, Model, fix_random_seed

from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.bilstm_encoder import BiLSTMEncoder
from thincdialog.models.cnn_encoder import CNNEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary

N_IDS = 24
SHARING = pytest.mark.parametrize("share", ["all", "embeddings", "nothing"])


def build(ops, encoder=None, **settings):
    model = BiEncoder(encoder or BagEncoder(8, segments="merge"), **settings)
    set_vocabulary(model, N_IDS)
    model.initialize(X=(ragged([[8]], ops), ragged([[9]], ops)))
    return model


def vectors(model, contexts, candidates):
    """Return the vectors of the two parts."""
    encoders = map(model.get_ref, ("context_encoder", "candidate_encoder"))
    return [encoder.predict(X) for encoder, X in zip(encoders, (contexts, candidates))]


@SHARING
@EACH_OPS
def test_bi_encoder_parts_give_the_result_of_the_whole(share, ops):
    model = build(ops, share=share)
    X = ragged([[8, 9], [10], []], ops), ragged([[11, 12, 13], [14]], ops)
    contexts, candidates = vectors(model, *X)
    assert contexts.shape == (3, 8) and candidates.shape == (2, 8)
    scores = model.predict(X)
    assert scores.shape == (3, 2)
    ops.xp.testing.assert_allclose(scores, contexts @ candidates.T, rtol=1e-5)
    lengths = ops.xp.linalg.norm(candidates, axis=1)
    ops.xp.testing.assert_allclose(lengths, 1.0, rtol=1e-5)


@SHARING
def test_bi_encoder_shares_the_layers_that_share_names(share, ops):
    model = build(ops, share=share)
    nodes = list(model.walk())
    embeds = [node for node in nodes if node.name == "bag_embed"]
    linears = [node for node in nodes if node.name == "linear"]
    counts = {"all": (1, 1), "embeddings": (1, 2), "nothing": (2, 2)}
    assert (len(embeds), len(linears)) == counts[share]
    parameters = FlatParameters(model)
    one, per_encoder = N_IDS * 8, 8 * 8 + 8
    assert parameters.n_parameters == 1 + counts[share][0] * one + counts[share][1] * per_encoder


@pytest.mark.parametrize("make", [CNNEncoder, BiLSTMEncoder])
def test_bi_encoder_works_with_other_encoders(make, ops):
    model = build(ops, make(8, dropout=0.0))
    assert sum(node.name == "token_embed" for node in model.walk()) == 1
    Y, backprop = model.begin_update((ragged([[8, 9], []], ops), ragged([[10]], ops)))
    dX = backprop(Y)
    assert len(dX[0]) == 2 and len(dX[1]) == 1


def test_bi_encoder_takes_a_custom_layer_on_one_side(ops):
    def forward(model, X, is_train):
        return model.ops.alloc2f(len(X), 8) + 1, lambda dY: X

    own: Model = Model("ones", forward, dims={"nO": 8})
    model = build(ops, candidate_encoder=own, share="nothing")
    X = ragged([[8]], ops), ragged([[9], [10]], ops)
    contexts, candidates = vectors(model, *X)
    assert model.predict(X).shape == (1, 2)
    assert contexts.shape == (1, 8)
    np.testing.assert_allclose(candidates, 1 / np.sqrt(8), rtol=1e-5)


def test_bi_encoder_without_normalising_gives_the_encoders_own_vectors(ops):
    encoder = BagEmbed(8)
    model = build(ops, encoder, share="all", normalise=False)
    X = ragged([[8, 9]], ops)
    contexts, candidates = vectors(model, X, X)
    assert (contexts == encoder.predict(X)).all() and (candidates == contexts).all()


@pytest.mark.parametrize(
    "other, settings, error",
    [
        (BagEncoder(8), {"share": "all"}, "candidate_encoder must be left out"),
        (
            Model("own", lambda model, X, is_train: (X, lambda dY: dY)),
            {},
            "has 1 embedding tables and candidate_encoder 0",
        ),
        (CNNEncoder(8), {}, "different settings.*share = 'nothing'"),
        (BagEncoder(12), {}, "different settings.*share = 'nothing'"),
        (BagEncoder(8, pooling="sum"), {}, "different settings.*share = 'nothing'"),
    ],
    ids=["all", "no table", "layers", "width", "pooling"],
)
def test_bi_encoder_sides_that_do_not_match_are_refused(other, settings, error):
    with pytest.raises(ValueError, match=error):
        BiEncoder(BagEncoder(8), other, **settings)
    BiEncoder(BagEncoder(8), BagEncoder(8, depth=2))


def test_bi_encoder_of_an_encoder_that_cannot_be_copied():
    inner = BagEmbed(8)
    own: Model = Model(
        "own", lambda model, X, is_train: inner(X, is_train), layers=[inner], refs={"in": inner}
    )
    with pytest.raises(ValueError, match="'own' has references"):
        BiEncoder(own)
    BiEncoder(own, share="all")


@SHARING
def test_bi_encoder_learns_to_pair(share, ops):
    rng = np.random.default_rng(0)
    fix_random_seed(0)
    model = build(ops, share=share)
    parameters, optimizer = FlatParameters(model), Adam(0.02, use_averages=False)
    for _ in range(80):
        words = rng.permutation(np.arange(8, 16))
        X = ragged(words[:, None].tolist(), ops), ragged((words + 8)[:, None].tolist(), ops)
        scores, backprop = model.begin_update(X)
        d_scores, losses = RankingSoftmax()(scores, np.arange(8))
        backprop(d_scores)
        parameters.update(optimizer, 1 / 8)
    assert (scores.argmax(axis=1) == np.arange(8)).all() and losses.mean() < 0.3
