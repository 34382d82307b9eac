"""Every layer that the package registers, on every backend."""

import numpy as np
import pytest
from thinc.api import Linear, Maxout, Model, Ragged, chain

from tests.layers.check_layer import check_layer
from tests.ops.array_backends import EACH_OPS
from thincdialog.layers.bag_embed import BagEmbed
from thincdialog.layers.bilstm import BiLSTM
from thincdialog.layers.code_attention import CodeAttention
from thincdialog.layers.code_scores import CodeScores
from thincdialog.layers.dropout import drop_tokens
from thincdialog.layers.feed_forward import ResidualFeedForward
from thincdialog.layers.fill_empty import fill_empty
from thincdialog.layers.flatten import Flatten
from thincdialog.layers.joined_pairs import JoinedPairs
from thincdialog.layers.learned_positions import LearnedPositions
from thincdialog.layers.line_embed import LineEmbed
from thincdialog.layers.memory_hops import MemoryHops
from thincdialog.layers.newest_turns import newest_turns
from thincdialog.layers.normalise import L2Normalise, LayerNorm
from thincdialog.layers.parts import Parts
from thincdialog.layers.pool import pool
from thincdialog.layers.post_norm_block import PostNormBlock
from thincdialog.layers.projection import Projection
from thincdialog.layers.scale import Scale, times
from thincdialog.layers.self_attention import SelfAttention
from thincdialog.layers.swiglu import SwiGLU
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.layers.transformer_block import TransformerBlock
from thincdialog.layers.window_block import WindowBlock
from thincdialog.registry import registry

N_IDS = 12
LENGTHS = [4, 1, 7, 2]


def tokens(ops, lengths=LENGTHS):
    """Return ids and segments. Segments fall to 0 towards the end, as in a conversation."""
    rng = np.random.default_rng(0)
    n = sum(lengths)
    segments = np.concatenate([np.sort(rng.integers(0, 4, size=size))[::-1] for size in lengths])
    data = np.stack([rng.integers(0, N_IDS, size=n), segments], axis=1)
    return Ragged(ops.asarray2i(data), ops.asarray1i(lengths))


def vectors(ops, width=6, lengths=LENGTHS):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(sum(lengths), width)).astype("f")
    return Ragged(ops.asarray2f(data), ops.asarray1i(lengths))


def matrix(ops, width=6):
    return ops.asarray2f(np.random.default_rng(0).normal(size=(5, width)).astype("f"))


def pictures(ops):
    numbers = np.random.default_rng(0).normal(size=(5, 2, 3, 2))
    return ops.asarray(numbers.astype("f"))


def halves():
    """Make a layer that splits a matrix into two parts."""

    def forward(model, X, is_train):
        return (X[:, :2], X[:, 2:]), lambda dY: model.ops.xp.concatenate(dY, axis=1)

    return Model("halves", forward)


def codes_and_candidates():
    """Make a layer whose output is a matrix, as contexts of two codes, and three fixed
    candidates."""

    def forward(model, X, is_train):
        return (X, model.ops.asarray2f(fixed)), lambda dX: dX[0]

    fixed = np.random.default_rng(1).normal(size=(3, 3)).astype("f")
    return Model("codes", forward)


def each_with_a_reply():
    """Make a layer whose output is conversations, fixed replies, and pairs of each conversation
    with the second reply."""

    def forward(model, X, is_train):
        ops = model.ops
        replies = Ragged(ops.asarray2i([[1, 0], [2, 0], [3, 0]]), ops.asarray1i([1, 2]))
        pairs = ops.asarray2i([[row, 1] for row in range(len(X.lengths))]).reshape(-1, 2)
        return (X, replies, pairs), lambda dX: dX[0]

    return Model("each_with_a_reply", forward)


# Registered name to (function that builds the layer, its input, options of check_layer), for each
# way to use it.
LAYERS = {
    "thincdialog.BagEmbed.v1": [
        (lambda: BagEmbed(6, N_IDS), tokens, {}),
        (lambda: BagEmbed(6, N_IDS, pooling="sum"), tokens, {}),
        (lambda: BagEmbed(6, N_IDS, pooling="sqrt", segments="weight", n_segments=3), tokens, {}),
        (lambda: BagEmbed(6, N_IDS, segments="separate"), tokens, {}),
        (lambda: BagEmbed(6, N_IDS, segments="separate", n_segments=1), tokens, {}),
        (lambda: BagEmbed(6, N_IDS, segments="tables", n_segments=3), tokens, {}),
    ],
    "thincdialog.BiLSTM.v1": [(lambda: BiLSTM(8), vectors, {})],
    "thincdialog.CodeAttention.v1": [
        (lambda: CodeAttention(1), vectors, {}),
        (lambda: CodeAttention(3), vectors, {"n_outputs": lambda X: 3 * len(X.lengths)}),
    ],
    "thincdialog.CodeScores.v1": [
        (lambda: chain(codes_and_candidates(), CodeScores()), matrix, {}),
    ],
    "thincdialog.Flatten.v1": [(Flatten, matrix, {}), (Flatten, pictures, {})],
    "thincdialog.JoinedPairs.v1": [(lambda: chain(each_with_a_reply(), JoinedPairs()), tokens, {})],
    "thincdialog.L2Normalise.v1": [(L2Normalise, matrix, {})],
    "thincdialog.LayerNorm.v1": [(LayerNorm, matrix, {})],
    "thincdialog.LearnedPositions.v1": [
        (lambda: LearnedPositions(6), vectors, {}),
        (lambda: LearnedPositions(6, 3), vectors, {}),
    ],
    "thincdialog.LineEmbed.v1": [
        (lambda: LineEmbed(6, N_IDS, n_positions=4, n_segments=3), tokens, {"n_outputs": len})
    ],
    "thincdialog.MemoryHops.v1": [
        (lambda: MemoryHops(n_hops=2), vectors, {}),
        (lambda: MemoryHops(3, n_hops=1), vectors, {}),
        (lambda: MemoryHops(n_hops=2, n_memories=4), vectors, {}),
    ],
    "thincdialog.PostNormBlock.v1": [
        (lambda: PostNormBlock(8, n_heads=2), lambda ops: vectors(ops, 8), {}),
        (lambda: PostNormBlock(6, n_heads=3, nH=5, activation="relu", eps=1e-5), vectors, {}),
    ],
    "thincdialog.ResidualFeedForward.v1": [(lambda: ResidualFeedForward(6), matrix, {})],
    "thincdialog.Projection.v1": [(lambda: Projection(4), matrix, {})],
    "thincdialog.Parts.v1": [
        (lambda: chain(halves(), Parts(Linear(3), LayerNorm())), matrix, {}),
    ],
    "thincdialog.Scale.v1": [(lambda: Scale(3.0), matrix, {})],
    "thincdialog.SelfAttention.v1": [
        (lambda: SelfAttention(8, 2), lambda ops: vectors(ops, 8), {}),
        (lambda: SelfAttention(6, 3, "none"), vectors, {}),
    ],
    "thincdialog.SwiGLU.v1": [(lambda: SwiGLU(4), matrix, {})],
    "thincdialog.TokenEmbed.v1": [(lambda: TokenEmbed(6, N_IDS, n_segments=3), tokens, {})],
    "thincdialog.TransformerBlock.v1": [
        (lambda: TransformerBlock(8, n_heads=2), lambda ops: vectors(ops, 8), {}),
        (lambda: TransformerBlock(6, n_heads=1, nH=5, activation="relu"), vectors, {}),
        (lambda: TransformerBlock(6, n_heads=3, activation="swiglu"), vectors, {}),
    ],
    "thincdialog.WindowBlock.v1": [
        (lambda: WindowBlock(6), vectors, {}),
        (lambda: WindowBlock(6, window_size=2, n_pieces=2), vectors, {}),
    ],
    "thincdialog.drop_tokens.v1": [(lambda: drop_tokens(0.0), tokens, {})],
    "thincdialog.fill_empty.v1": [(fill_empty, tokens, {})],
    "thincdialog.newest_turns.v1": [
        (newest_turns, tokens, {}),
        (lambda: newest_turns(1), tokens, {}),
    ],
    "thincdialog.times.v1": [(lambda: times(3.0), matrix, {})],
    "thincdialog.pool.v1": [
        (lambda: pool("max"), vectors, {}),
        (lambda: pool("mean"), vectors, {}),
        (lambda: pool("max+mean"), vectors, {}),
        (lambda: pool("first"), vectors, {}),
    ],
}
CASES = [
    pytest.param(*case, id=f"{name.split('.')[1]}-{number}")
    for name, cases in LAYERS.items()
    for number, case in enumerate(cases)
]


def test_layers_every_registered_name_is_checked():
    registry.ensure_populated()
    ours = {name for name in registry.layers.get_all() if name.startswith("thincdialog.")}
    assert ours == set(LAYERS)


@EACH_OPS
@pytest.mark.parametrize("build, example, options", CASES)
def test_layers_generic(build, example, options, ops):
    X = example(ops)
    is_differentiable = example is not tokens
    check_layer(build, X, ops, is_differentiable=is_differentiable, **options)


def test_pool_takes_the_highest_and_the_mean():
    X = Ragged(np.array([[1, 5], [3, 1], [2, 2]], dtype="f"), np.array([2, 0, 1], dtype="i"))
    assert pool("max+mean").predict(X).tolist() == [[3, 5, 2, 3], [0, 0, 0, 0], [2, 2, 2, 2]]


def test_window_block_has_the_nodes_and_weights_it_had():
    nodes = [(node.name, node.param_names) for node in WindowBlock(6).walk()]
    whole = Maxout(6, 18, 3, normalize=True)
    names = [(node.name, node.param_names) for node in whole.layers]
    assert [node for node in nodes if node[1]] == names
