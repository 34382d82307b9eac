"""All encoders: sizes, empty texts, word order, determinism, learning."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from thinc.api import Adam, Linear, Model, Relu, chain, concatenate, fix_random_seed, zero_init

from tests.ops.array_backends import EACH_OPS, backend, ragged
from thincdialog.layers.identity_init import identity_init
from thincdialog.layers.newest_turns import newest_turns
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.models.classifier import Classifier
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.transformer_encoder import TransformerEncoder
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.registry import registry

registry.ensure_populated()
N_IDS = 16
ENCODERS = {
    "BagEncoder": {"width": 12, "depth": 1},
    "CNNEncoder": {"width": 12},
    "BiLSTMEncoder": {"width": 12},
    "MemoryReader": {"width": 12},
    "TransformerEncoder": {"width": 12, "depth": 2, "n_heads": 2},  # The sizes apply to its tokens.
}
EVERY = pytest.mark.parametrize("name", ENCODERS)


def build(name, **settings):
    make = registry.models.get(f"thincdialog.{name}.v1")
    settings = {**ENCODERS[name], **settings}
    if name == "TransformerEncoder":
        own = {"dropout": settings["dropout"]} if "dropout" in settings else {}
        settings = {"tokens": TransformerTokens(**settings), **own}
    model = make(**settings)
    set_vocabulary(model, N_IDS)
    return model


def texts(ops, examples):
    """Return lists of ids. The first half of each is one segment back."""
    return ragged([[(t, int(i < len(e) // 2)) for i, t in enumerate(e)] for e in examples], ops)


@EVERY
@EACH_OPS
def test_encoders_give_one_vector_an_example_also_for_empty_texts(name, ops):
    model = build(name)
    model.initialize(X=texts(ops, [[8]]))
    assert model.get_dim("nO") == 12
    for examples in ([[8, 9, 10], [], [9]], [[]], [[], []], [[11]]):
        Y, backprop = model.begin_update(texts(ops, examples))
        assert Y.shape == (len(examples), 12) and Y.dtype == np.float32
        assert ops.xp.isfinite(Y).all()
        dX = backprop(Y)
        assert len(dX) == len(examples)
        assert dX.dataXd.shape[0] == sum(map(len, examples))


@EVERY
def test_encoders_do_not_depend_on_what_else_is_in_the_batch(name, ops):
    examples = [[8, 9, 10, 11, 12], [13], [], [14, 15, 8]]
    model = build(name)
    model.initialize(X=texts(ops, examples))
    together = model.predict(texts(ops, examples))
    alone = [model.predict(texts(ops, [ids])) for ids in examples]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["CNNEncoder", "BiLSTMEncoder", "MemoryReader", "TransformerEncoder"]
)
def test_encoders_that_see_word_order(name, ops):
    model = build(name)
    model.initialize(X=texts(ops, [[8]]))
    Y = model.predict(texts(ops, [[8, 9, 10, 11, 12, 13], [8, 9, 10, 13, 12, 11]]))
    assert np.abs(Y[0] - Y[1]).max() > 1e-4


def train(name, n_steps=60):
    """Train to find which of two words comes first. (For the bag: whether word 8 occurs.)"""
    rng = np.random.default_rng(0)
    with backend(-1) as ops:
        fix_random_seed(0)
        model = Classifier(build(name, dropout=0.1))
        set_vocabulary(model, N_IDS)
        model.initialize(X=texts(ops, [[8]]), Y=ops.alloc2f(1, 2))
        parameters, optimizer, losses = FlatParameters(model), Adam(0.01, use_averages=False), []
        for step in range(n_steps):
            targets = rng.integers(0, 2, size=32)
            examples = [[11, 12, 8 + t, 9 - t] for t in targets]
            if name == "BagEncoder":
                examples = [[8 + t, *rng.integers(10, 16, size=3)] for t in targets]
            ops.seed(0, step)
            logits, backprop = model.begin_update(texts(ops, examples))
            gradient, loss = ClassSoftmax(0.0)(logits, targets)
            backprop(gradient)
            parameters.update(optimizer, 1 / 32)
            losses.append(float(loss.mean()))
    return losses, parameters.values


@EVERY
def test_encoders_learn(name):
    losses, _ = train(name)
    assert losses[0] == pytest.approx(np.log(2), rel=1e-5)
    assert np.mean(losses[-5:]) < 0.1


def checksums():
    return {name: hashlib.sha256(train(name, 5)[1].tobytes()).hexdigest() for name in ENCODERS}


@pytest.mark.slow
def test_encoders_same_seed_gives_the_same_bits_in_another_process():
    code = "import tests.models.test_encoders as t; print(t.checksums())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{checksums()}\n"


@EVERY
def test_encoders_token_dropout_is_off_when_predicting(name, ops):
    if name == "MemoryReader":
        pytest.skip("reads every word")
    model = build(name, token_dropout=0.5, dropout=0.0)
    X = texts(ops, [[8, 9, 10, 11, 12, 13]] * 8)
    model.initialize(X=X)
    Y = model.predict(X)
    assert (Y == model.predict(X)).all()
    assert (model.begin_update(X)[0] != Y).any()


def test_classifier_finds_the_number_of_classes_and_starts_undecided(ops):
    model = Classifier(chain(Relu(8), Relu(6)))
    model.initialize(X=ops.alloc2f(3, 5), Y=ops.alloc2f(3, 4))
    assert model.get_dim("nO") == 4
    assert model.layers[0].get_dim("nO") == 6
    assert not model.predict(ops.asarray2f(np.ones((2, 5)))).any()


def test_classifier_takes_a_custom_layer(ops):
    def forward(model, X, is_train):
        return model.ops.asarray2f([[float(n)] for n in X.lengths]), lambda dY: X

    own: Model = Model("lengths", forward, dims={"nO": 1})
    model = Classifier(own)
    model.initialize(X=texts(ops, [[8]]), Y=ops.alloc2f(1, 3))
    assert model.predict(texts(ops, [[8, 9], [10]])).shape == (2, 3)


@pytest.mark.parametrize(
    "name, settings, text",
    [
        ("BagEncoder", {"depth": -1}, "depth = -1"),
        ("BagEncoder", {"n_segments": 0}, "n_segments is 0"),
        ("CNNEncoder", {"depth": -1}, "depth = -1"),
        ("CNNEncoder", {"window_size": 0}, "window_size = 0"),
        ("BiLSTMEncoder", {"depth": 0}, "depth = 0"),
        ("BiLSTMEncoder", {"width": 7}, "nO = 7"),
        ("MemoryReader", {"n_hops": 0}, "n_hops = 0"),
        ("MemoryReader", {"n_positions": 0}, "n_positions = 0"),
        ("MemoryReader", {"noise": 1.0}, "noise = 1.0"),
    ],
)
def test_encoders_settings_out_of_range(name, settings, text):
    with pytest.raises(ValueError, match=text):
        build(name, **settings)


def test_set_vocabulary_leaves_sizes_that_are_known(ops):
    known = build("BagEncoder")
    set_vocabulary(known, 99)
    assert known.layers[0].get_dim("nV") == N_IDS
    set_vocabulary(Linear(2, 2), 99)


def test_transformer_encoder_is_as_wide_as_its_tokens_or_as_configured(ops):
    tokens = TransformerTokens(width=12, depth=0)
    for width, wanted in ((None, 12), (5, 5)):
        model = TransformerEncoder(tokens.copy(), width)
        set_vocabulary(model, N_IDS)
        model.initialize(X=texts(ops, [[8]]))
        assert model.predict(texts(ops, [[8, 9], []])).shape == (2, wanted)
    unknown = Model("mine", lambda model, X, is_train: (X, lambda dY: dY))
    with pytest.raises(ValueError, match="'mine' does not say how wide"):
        TransformerEncoder(unknown)


def test_zero_initialised_transformer_leaves_a_bag_unchanged_and_then_learns(ops):
    bag, tokens = build("BagEncoder", depth=0), TransformerTokens(12, 1, 2, dropout=0.0)
    transformer = TransformerEncoder(tokens, dropout=0.0, init_W=zero_init)
    own = chain(newest_turns(1), transformer)
    model = chain(concatenate(bag, own), Linear(12, init_W=identity_init))
    set_vocabulary(model, N_IDS)
    X = texts(ops, [[8, 9, 10], [11], [12, 13]])
    model.initialize(X=X)
    Y, backprop = model.begin_update(X)
    assert ops.to_numpy(Y) == pytest.approx(ops.to_numpy(bag.predict(X)))
    backprop(ops.xp.ones_like(Y))
    model.finish_update(Adam(0.01))
    assert ops.xp.abs(transformer.predict(X)).max() > 0
