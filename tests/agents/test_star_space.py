"""The embedding agent: what it learns, its negatives, and what it refuses."""

import numpy as np
import pytest
from thinc.api import Adam

from thincdialog.api import DataError

from . import colours
from .colours import answer, learn, make, messages

pytest.importorskip("numba")
ANSWERS = {"red": "stop now", "green": "go on", "amber": "wait a bit", "blue": "swim"}
EXAMPLES = colours.examples(ANSWERS)
SGD = "thincdialog.SparseSGD.v1"
ADAGRAD = "thincdialog.SparseAdagrad.v1"


def build(examples=EXAMPLES, loss=None, agent="StarSpace", model=None, **options):
    if loss is not None:
        options["loss"] = make("losses", loss)
    make_model = lambda: make("models", "StarSpace", width=16, **(model or {}))  # noqa: E731
    return colours.build(agent, make_model, examples, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "RankingSoftmax", "model": {"scale": 10.0, "share": "all"}},
        {"candidates": "fixed", "negatives": 2},
        {"model": {"similarity": "dot", "share": "nothing", "n_segments": 2}},
    ],
)
@pytest.mark.parametrize("optimizer", [SGD, ADAGRAD])
def test_star_space_learns(options, optimizer):
    agent, teacher = build(**options)
    learn(agent, teacher, make("optimizers", optimizer, 0.3))
    assert {text: answer(agent, f"{text} here") for text in ANSWERS} == ANSWERS


def test_star_space_model_can_be_trained_by_the_ranker():
    agent, teacher = build(agent="Ranker", model={"scale": 10.0})
    learn(agent, teacher, Adam(0.01))
    assert {text: answer(agent, f"{text} there") for text in ANSWERS} == ANSWERS


def test_star_space_tables_begin_alike():
    agent, _ = build(model={"n_segments": 2})
    contexts, labels = (
        agent.model.get_ref(f"{name}_table").get_param("E") for name in ("context", "label")
    )
    assert np.array_equal(contexts[::2], labels) and np.array_equal(contexts[1::2], labels)
    assert not np.shares_memory(contexts, labels)


def texts_of(agent):
    """Decode the candidates that the agent keeps for its next step, right one first."""
    (((texts, candidates), _),) = agent.tally.packs
    labels, starts = texts.labels, texts.label_starts
    words = agent.tokenizer
    decoded = [words.decode(labels[a:b]) for a, b in zip(starts[:-1], starts[1:])]
    return [[decoded[number] for number in row] for row in candidates]


@pytest.mark.parametrize("candidates", ["batch", "fixed"])
def test_star_space_negatives_are_other_replies(candidates):
    agent, _ = build(candidates=candidates, negatives=20)

    def drawn(number):
        agent.give_up()
        agent.begin_microbatch(1, 2, number)
        agent.batch_act(messages(EXAMPLES[:3]))  # The fourth reply is not among them.
        return texts_of(agent)

    known = set(ANSWERS.values()) - ({"swim"} if candidates == "batch" else set())
    rows = drawn(3)
    for row, example in zip(rows, EXAMPLES):
        assert row[0] == example["labels"][0]
        assert set(row[1:]) == known - {row[0]}
    assert drawn(3) == rows and drawn(4) != rows


def test_star_space_negatives_of_a_batch_with_one_reply_are_fixed_candidates():
    agent, _ = build(negatives=30)
    agent.batch_act(messages([EXAMPLES[0], EXAMPLES[4]]))
    for row in texts_of(agent):
        assert row[0] == "stop now" and set(row[1:]) == set(ANSWERS.values()) - {"stop now"}


def test_star_space_losses_and_models_it_does_not_know_are_refused():
    with pytest.raises(ValueError, match="the kernel supports no other"):
        build(loss="ClassSoftmax")
    with pytest.raises(ValueError, match="trains only @models"):
        make(
            "agents",
            "StarSpace",
            make("models", "BiEncoder", make("models", "BagEncoder", width=8)),
        )
    for n in (0, 1_000_001, 2**63 - 1):
        with pytest.raises(ValueError, match=f"negatives = {n}, expected 1 to 1,000,000$"):
            build(negatives=n)
    with pytest.raises(ValueError, match="n_segments = 2, but share = 'all'"):
        build(model={"n_segments": 2, "share": "all"})
    with pytest.raises(DataError, match="has only one reply, 'yes'"):
        build([{"text": f"w{i}", "labels": ["yes"]} for i in range(3)])


@pytest.mark.parametrize("optimizer", [SGD, ADAGRAD])
@pytest.mark.parametrize("share", ["all", "start"])
def test_star_space_replica_learns_what_the_agent_itself_learns(optimizer, share):
    values = []
    for is_replica in (False, True):
        agent, teacher = build(model={"share": share, "n_segments": 1 + (share == "start")})
        learner = agent.replica() if is_replica else agent
        learn(learner, teacher, make("optimizers", optimizer, 0.2), epochs=3)
        values.append(agent.weights)
    np.testing.assert_allclose(*values, atol=1e-5)
