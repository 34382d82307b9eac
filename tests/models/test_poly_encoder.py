"""The poly-encoder, tested alone and as a ranker's model."""

import numpy as np
import pytest

from tests.agents.colours import build, examples, learn, make, reply
from tests.ops.array_backends import EACH_OPS, ragged
from thincdialog.layers.normalise import L2Normalise
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.poly_encoder import PolyEncoder
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary

ANSWERS = {"red": "stop", "green": "go", "amber": "wait"}


def model(**settings):
    tokens = TransformerTokens(8, depth=1, n_heads=2, dropout=0.0)
    return PolyEncoder(tokens, n_codes=3, **settings)


@EACH_OPS
@pytest.mark.parametrize("share, n_tables", [("all", 1), ("embeddings", 1), ("nothing", 2)])
def test_poly_encoder_parts_give_the_result_of_the_whole(ops, share, n_tables):
    whole = model(share=share)
    set_vocabulary(whole, 16)
    X = ragged([[8, 9], [10], []], ops), ragged([[11, 12, 13], [14]], ops)
    whole.initialize(X=X)
    scores, backprop = whole.begin_update(X)
    contexts, candidates = (
        whole.get_ref(name).predict(part)
        for name, part in zip(("context_encoder", "candidate_encoder"), X)
    )
    assert contexts.shape == (3, 3 * 8) and candidates.shape == (2, 8)
    found = whole.get_ref("scorer").predict((contexts, candidates))
    assert scores.shape == (3, 2) and (scores == found).all()
    ops.xp.testing.assert_allclose(ops.xp.linalg.norm(candidates, axis=1), 1.0, rtol=1e-5)
    parameters = FlatParameters(whole)
    backprop(scores)
    assert sum(node.name == "token_embed" for node in whole.walk()) == n_tables
    assert ops.xp.isfinite(parameters.gradients).all() and parameters.gradients.any()


def test_replies_have_layers_of_their_own_over_the_same_embeddings():
    tokens, more = (TransformerTokens(8, depth, n_heads=2) for depth in (0, 1))
    whole = PolyEncoder(tokens, more, share="embeddings")
    contexts, candidates, _ = whole.layers
    tables = [
        [n for n in each.walk() if n.name == "token_embed"] for each in (contexts, candidates)
    ]
    assert tables[0] == tables[1]
    names = [{node.name for node in each.walk()} for each in (contexts, candidates)]
    assert "transformer_block" in names[1] - names[0]
    with pytest.raises(ValueError, match="share = 'all', so candidate_tokens must be left out"):
        PolyEncoder(tokens, more)


@EACH_OPS
def test_an_added_encoder_is_alone_at_first_and_all_learn(ops):
    added = BagEncoder(6)
    whole = model(added_encoder=added)
    set_vocabulary(whole, 16)
    X = ragged([[8, 9], [10], []], ops), ragged([[11, 12, 13], [14]], ops)
    whole.initialize(X=X)
    bags = [bag for bag in whole.walk() if bag.name == added.name]
    contexts, replies = (bag.predict(part) for bag, part in zip(bags, X))
    contexts, replies = (L2Normalise().predict(each) for each in (contexts, replies))
    cosines = ops.to_numpy(ops.gemm(contexts, replies, trans2=True))
    np.testing.assert_allclose(ops.to_numpy(whole.predict(X)), 10 * cosines, rtol=1e-4, atol=1e-5)
    parameters = FlatParameters(whole)
    rng = np.random.default_rng(0)
    parameters.values += ops.asarray1f(rng.normal(size=parameters.values.size, scale=0.3))
    d_scores = ops.asarray2f(rng.normal(size=(3, 2)))
    whole.begin_update(X)[1](d_scores)
    for _ in range(3):
        direction = ops.asarray1f(rng.normal(size=parameters.values.shape[0], scale=1e-3))
        sums = []
        for step in (1, -2):
            parameters.values += step * direction
            sums.append(float((whole.predict(X) * d_scores).sum()))
        parameters.values += direction
        expected = float((parameters.gradients * direction).sum())
        assert (sums[0] - sums[1]) / 2 == pytest.approx(expected, rel=0.02, abs=1e-4)


def test_poly_encoder_ranks_a_list_as_it_ranks_among_all(tmp_path, monkeypatch):
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
        with monkeypatch.context() as patch:
            patch.setattr("thincdialog.agents.ranker.N_AT_ONCE", 2)  # In several blocks.
            in_blocks = reply(loaded, row["text"])
        for other in (reply(agent, row["text"], **given), in_blocks):
            assert other["text_candidates"] == among_all["text_candidates"]
            scores = [each["candidate_scores"] for each in (other, among_all)]
            np.testing.assert_allclose(*scores, rtol=1e-5)
