"""Committee and LinearClassifier: which member learns from which example, and the predictions."""

import numpy as np
import pytest
from thinc.api import Adam, Embed, Linear, Ragged, fix_random_seed

from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.layers.uploaded_ids import upload_ids
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.classifier import Classifier
from thincdialog.models.committee import Committee
from thincdialog.models.linear_classifier import LinearClassifier
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary

N_IDS = 16


def part(X, rows):
    if not isinstance(X, Ragged):
        return X[rows]
    texts = np.split(X.dataXd[:, 0], np.cumsum(X.lengths)[:-1])
    return ragged([texts[row].tolist() for row in np.arange(len(texts))[rows]])


def of_texts(ops, n_members=3, n_examples=40):
    fix_random_seed(0)
    members = [Classifier(BagEncoder(6, depth=1)) for _ in range(n_members - 1)]
    model = Committee([LinearClassifier(token_dropout=0.0), *members])
    set_vocabulary(model, N_IDS)
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 6, n_examples)
    X = ragged([rng.integers(8, N_IDS, size=n).tolist() for n in sizes], ops)
    model.initialize(X=X, Y=ops.alloc2f(1, 4))
    return scatter(model), X


def of_features(ops, n_members=3, n_examples=40):
    fix_random_seed(0)
    X = ops.asarray2f(np.random.default_rng(0).normal(size=(n_examples, 5)).astype("f"))
    model = Committee([Linear() for _ in range(n_members)])
    model.initialize(X=X, Y=ops.alloc2f(1, 4))
    return scatter(model), X


def scatter(model):
    """Move all weights from their initial values, because some are zero."""
    rng = np.random.default_rng(1)
    for node in model.walk():
        for name in node.param_names:
            weights = node.get_param(name)
            weights += model.ops.asarray_f(rng.normal(size=weights.shape).astype("f"))
    return model


def gradients(model):
    return [
        node.get_grad(name) if node.has_grad(name) else node.get_param(name) * 0
        for node in model.walk()
        for name in node.param_names
    ]


@EACH_OPS
@pytest.mark.parametrize("make", [of_texts, of_features])
def test_committee_predicts_the_mean_of_its_members(make, ops):
    model, X = make(ops)
    expected = sum(member.predict(X) for member in model.layers) / 3
    ops.xp.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)


@EACH_OPS
def test_committee_of_other_layers_reads_ids_without_a_text(ops):
    model = Committee([Embed(4, nV=N_IDS) for _ in range(2)])
    X = np.arange(8, dtype="i")
    upload_ids(model)
    model.initialize(X=X)
    Y, backprop = model.begin_update(X)
    assert not backprop(ops.xp.ones_like(Y)).any()
    assert all(gradient.any() for gradient in gradients(model))


@pytest.mark.parametrize("make", [of_texts, of_features])
def test_committee_in_training_each_example_teaches_one_member(make, ops):
    model, X = make(ops)
    ops.seed(0, 1)
    Y, backprop = model.begin_update(X)
    dY = np.random.default_rng(2).normal(size=Y.shape).astype("f")
    dX = backprop(dY)
    answers = np.stack([member.predict(X) for member in model.layers])
    is_taught = np.isclose(answers, Y, rtol=1e-5, atol=1e-6).all(axis=2)  # (members, examples)
    assert (is_taught.sum(axis=0) == 1).all() and is_taught.any(axis=1).all()

    alone, _ = make(ops)
    for member, rows in zip(alone.layers, is_taught):
        Y_alone, backprop_alone = member.begin_update(part(X, rows))
        np.testing.assert_allclose(Y_alone, Y[rows], rtol=1e-5, atol=1e-6)
        dX_alone = backprop_alone(dY[rows])
        if make is of_features:
            np.testing.assert_allclose(dX_alone, dX[rows], rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(gradients(model), gradients(alone)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert len(dX) == len(X)


def test_committee_draws_members_evenly_and_from_the_seeded_stream(ops):
    def owners(step):
        ops.seed(0, step)
        Y, _ = model.begin_update(X)
        return np.argmax([np.isclose(m.predict(X), Y).all(axis=1) for m in model.layers], axis=0)

    model, X = of_features(ops, n_members=4, n_examples=8000)
    first = owners(1)
    # Within five standard deviations of 2,000.
    assert np.abs(np.bincount(first, minlength=4) - 2000).max() < 5 * (8000 * 3 / 16) ** 0.5
    assert (first == owners(1)).all() and (first != owners(2)).any()


@pytest.mark.parametrize("make", [of_texts, of_features])
@pytest.mark.parametrize("n_examples", [0, 1])
def test_committee_with_fewer_examples_than_members(make, n_examples, ops):
    model, full = make(ops)
    X = part(full, np.arange(40) < n_examples)
    Y, backprop = model.begin_update(X)
    assert Y.shape == (n_examples, 4) and len(backprop(Y)) == n_examples
    assert model.predict(X).shape == (n_examples, 4)
    # At most one member has been trained.
    assert sum(any(g.any() for g in gradients(m)) for m in model.layers) == n_examples


def test_committee_trains_flat_and_learns(ops):
    rng = np.random.default_rng(0)
    fix_random_seed(0)
    model = Committee([LinearClassifier(), Classifier(BagEncoder(8, dropout=0.1))])
    set_vocabulary(model, N_IDS)
    model.initialize(X=ragged([[8]], ops), Y=ops.alloc2f(1, 2))
    assert model.get_dim("nO") == 2
    parameters, optimizer = FlatParameters(model), Adam(0.01, use_averages=False)
    for step in range(100):
        targets = rng.integers(0, 2, size=32)
        X = ragged([[8 + t, *rng.integers(10, 16, size=3)] for t in targets], ops)
        ops.seed(0, step)
        logits, backprop = model.begin_update(X)
        gradient, _ = ClassSoftmax(0.0)(logits, targets)
        backprop(gradient)
        parameters.update(optimizer, 1 / 32)
    for member in (model, *model.layers):
        Y = member.predict(ragged([[8, 10, 11], [9, 10, 11]], ops))
        assert Y.argmax(axis=1).tolist() == [0, 1]


def test_committee_needs_members():
    with pytest.raises(ValueError, match="one member or more"):
        Committee([])


def test_linear_classifier_sums_a_weight_for_each_token_and_class(ops):
    model = LinearClassifier(scale=3.0)
    set_vocabulary(model, N_IDS)
    model.initialize(X=ragged([[8]], ops), Y=ops.alloc2f(1, 2))
    X = ragged([[8, 8, 9, 10], [9], []], ops)
    assert not model.predict(X).any()  # Undecided at first.
    W = model.layers[1].get_param("E")
    assert W.shape == (N_IDS, 2)
    W[8:11] = [[1, 0], [0, 1], [2, 4]]
    expected = [[3 * (1 + 1 + 2) / 2, 3 * (1 + 4) / 2], [0, 3], [0, 0]]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
