"""The re-ranker of the best candidates, tested alone and as a ranker's model."""

import numpy as np
import pytest
from thinc.api import zero_init

from tests.agents.colours import build, examples, learn, make, reply
from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.cross_encoder import CrossEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.re_ranker import ReRanker, best_pairs
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary

ANSWERS = {"red": "stop", "green": "go", "amber": "wait"}


def model(n_best=2):
    tokens = TransformerTokens(8, depth=1, n_heads=2, n_segments=3, dropout=0.0)
    first = BiEncoder(BagEncoder(width=8, depth=0, dropout=0.0))
    return ReRanker(first, CrossEncoder(tokens, dropout=0.0), n_best=n_best)


@EACH_OPS
def test_re_ranker_adds_to_the_best_of_the_first_alone(ops):
    whole = model()
    set_vocabulary(whole, 20)
    contexts = ragged([[8, 9], [10], [9], [11, 12, 13]], ops)
    candidates = ragged([[11, 12, 13], [14], [15, 16]], ops)
    whole.initialize(X=(contexts, candidates))
    first, second = whole.layers
    before = ops.to_numpy(first.predict((contexts, candidates)))
    scores, backprop = whole.begin_update((contexts, candidates))
    for row in range(4):
        for column in range(3):
            expected = before[row, column]
            if (before[row] > expected).sum() < 2:
                pair = ops.asarray2i([[row, column]])
                expected += float(second.predict((contexts, candidates, pair))[0, 0])
            assert float(scores[row, column]) == pytest.approx(expected, abs=1e-5)
    parameters = FlatParameters(whole)
    backprop(scores)
    assert ops.xp.isfinite(parameters.gradients).all()
    for part in (first, second):
        assert any(node.get_grad(name).any() for node in part.walk() for name in node.grad_names)


def test_re_ranker_with_zeros_begins_as_the_first_and_learns():
    tokens = TransformerTokens(8, depth=1, n_heads=2, n_segments=3, dropout=0.0)
    first = BiEncoder(BagEncoder(width=8))
    second = CrossEncoder(tokens, init_W=zero_init)
    whole = ReRanker(first, second)
    set_vocabulary(whole, 20)
    X = ragged([[8, 9], [10]]), ragged([[11, 12, 13], [14]])
    whole.initialize(X=X)
    scores, backprop = whole.begin_update(X)
    assert (scores == first.predict(X)).all()
    backprop(scores)
    assert any(node.get_grad(name).any() for node in second.walk() for name in node.grad_names)


@EACH_OPS
def test_re_ranker_gradient_is_that_of_finite_differences(ops):
    # All three candidates are re-ranked, because the choice of the best is not differentiable.
    whole = model(n_best=3)
    set_vocabulary(whole, 20)
    X = ragged([[8, 9], [10]], ops), ragged([[11, 12, 13], [14], [15, 16]], ops)
    whole.initialize(X=X)
    parameters = FlatParameters(whole)
    d_scores = ops.asarray2f([[0.3, -0.7, 0.5], [1.0, 0.2, -0.4]])
    whole.begin_update(X)[1](d_scores)
    rng, values = np.random.default_rng(0), parameters.values
    for _ in range(5):
        direction = ops.asarray1f(rng.normal(size=values.shape[0]).astype("float32") * 2e-4)
        sums = []
        for step in (1, -2):
            values += step * direction
            sums.append(float((whole.predict(X) * d_scores).sum()))
        values += direction
        expected = float((parameters.gradients * direction).sum())
        assert (sums[0] - sums[1]) / 2 == pytest.approx(expected, rel=0.02, abs=2e-5)


def test_best_pairs_are_those_of_a_sort():
    scores = np.random.default_rng(0).normal(size=(7, 9)).astype("float32")
    for n_best in (1, 4, 9, 20):
        expected = [
            (row, column)
            for row in range(7)
            for column in np.argsort(-scores[row])[:n_best].tolist()
        ]
        assert sorted(map(tuple, best_pairs(scores, n_best).tolist())) == sorted(expected)


def test_re_ranker_refuses_no_candidates():
    with pytest.raises(ValueError, match="n_best = 0"):
        model(n_best=0)


def test_re_ranker_ranks_a_list_as_it_ranks_among_all(tmp_path):
    rows = examples(ANSWERS)
    agent, teacher = build("Ranker", model, rows)
    learn(agent, teacher, make("optimizers", "Adam.v1", 0.01))
    agent.to_disk(tmp_path)
    loaded = make("agents", "Ranker", model())
    loaded.from_disk(tmp_path, tokenizer=make("tokenizers", "Words"))
    for row in rows:
        among_all = reply(agent, row["text"])
        assert among_all["text"] == row["labels"][0]
        given = {"label_candidates": list(ANSWERS.values())}
        for other in (reply(agent, row["text"], **given), reply(loaded, row["text"])):
            assert other["text_candidates"] == among_all["text_candidates"]
            scores = [each["candidate_scores"] for each in (other, among_all)]
            np.testing.assert_allclose(*scores, rtol=1e-5)
