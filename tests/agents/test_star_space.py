"""The embedding agent: learns in its kernel, answers as a ranker, needs numba only to learn."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Adam

from thincdialog.agents.negatives import draw_negatives
from thincdialog.api import (
    ConfigError,
    DataError,
    IterableTeacher,
    evaluate,
    load,
    registry,
)
from thincdialog.errors import MissingPackageError, TrainingError
from thincdialog.metrics import AverageMetric
from thincdialog.ops import compiled
from thincdialog.ops.choice import get_dialog_ops, using_ops

from . import colours
from .colours import answer, learn, observed, run

pytest.importorskip("numba")
ANSWERS = {"red": "stop now", "green": "go on", "amber": "wait a bit", "blue": "swim"}
EXAMPLES = colours.examples(ANSWERS)
SGD = "thincdialog.SparseSGD.v1"
ADAGRAD = "thincdialog.SparseAdagrad.v1"


def build(examples=EXAMPLES, loss=None, agent="thincdialog.StarSpace.v1", model=None, **options):
    with using_ops(get_dialog_ops(-1)):
        model = registry.models.get("thincdialog.StarSpace.v1")(width=16, **(model or {}))
        if loss is not None:
            options["loss"] = registry.losses.get(loss)()
        agent = registry.agents.get(agent)(model, **options)
        teacher = IterableTeacher({"train": examples}).for_split("train", training=True)
        agent.initialize(teacher, tokenizer=registry.tokenizers.get("thincdialog.Words.v1")())
    return agent, teacher


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "thincdialog.RankingSoftmax.v1", "model": {"scale": 10.0, "share": "all"}},
        {"candidates": "fixed", "negatives": 2},
        {"model": {"similarity": "dot", "share": "nothing", "n_segments": 2}},
    ],
)
@pytest.mark.parametrize("optimizer", [SGD, ADAGRAD])
def test_star_space_learns(options, optimizer):
    agent, teacher = build(**options)
    learn(agent, teacher, registry.optimizers.get(optimizer)(0.3))
    assert {text: answer(agent, f"{text} here") for text in ANSWERS} == ANSWERS


def test_star_space_learns_the_same_from_the_same_seed():
    runs = []
    for _ in range(2):
        agent, teacher = build()
        learn(agent, teacher, registry.optimizers.get(ADAGRAD)(0.1), epochs=3)
        runs.append(agent.parameters.values.tobytes())
    assert runs[0] == runs[1]


def test_star_space_model_can_be_trained_by_the_ranker():
    agent, teacher = build(agent="thincdialog.Ranker.v1", model={"scale": 10.0})
    learn(agent, teacher, Adam(0.01))
    assert {text: answer(agent, f"{text} there") for text in ANSWERS} == ANSWERS


def test_star_space_tables_begin_alike():
    agent, _ = build(model={"n_segments": 2})
    contexts, labels = (
        agent.model.get_ref(f"{name}_table").get_param("E") for name in ("context", "label")
    )
    assert np.array_equal(contexts[::2], labels) and np.array_equal(contexts[1::2], labels)
    assert not np.shares_memory(contexts, labels)


def test_star_space_counts_loss_and_examples_of_all_microbatches_in_update():
    agent, _ = build()
    for rows in (EXAMPLES[:4], EXAMPLES[4:9]):
        agent.batch_act(observed(agent, rows))
    assert agent.counters.examples == 9
    assert "loss" not in agent.report()
    before = agent.parameters.values.copy()
    norm = agent.update(registry.optimizers.get(SGD)(0.1))
    assert norm > 0 and not np.array_equal(before, agent.parameters.values)
    loss = agent.report()["loss"]
    assert (
        agent.counters.state()["examples"] == AverageMetric(0, 9).denominator.state()
        and 0 < loss.value() < 2
    )
    assert agent.counters.examples == 0
    assert not agent.parameters.gradients.any()


def test_star_space_takes_the_learning_rate_of_its_schedule():
    """The steps have rates 0.5, 0 and 0: the first alone changes anything."""
    agent, _ = build()
    optimizer = registry.optimizers.get(SGD)(iter([0.5, 0.0, 0.0, 0.0]))
    changed = []
    for _ in range(3):
        before = agent.parameters.values.copy()
        agent.batch_act(observed(agent, EXAMPLES[:4]))
        agent.update(optimizer)
        changed.append(not np.array_equal(before, agent.parameters.values))
    assert changed == [True, False, False]


# --- wrong replies ------------------------------------------------------------------


@given(
    pool=st.lists(st.integers(0, 6), min_size=2, max_size=12).filter(lambda p: len(set(p)) > 1),
    rights=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    n=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_star_space_negatives_are_of_the_pool_and_never_right(pool, rights, n, seed):
    arrays = np.array(rights, dtype="i"), np.array(pool, dtype="i")
    drawn = draw_negatives(np.random.default_rng(seed), *arrays, n)
    assert drawn.shape == (len(rights), 1 + n) and drawn.dtype == np.int32
    assert drawn[:, 0].tolist() == rights
    assert set(drawn[:, 1:].ravel().tolist()) <= set(pool)
    assert not (drawn[:, 1:] == drawn[:, :1]).any()
    again = draw_negatives(np.random.default_rng(seed), *arrays, n)
    assert np.array_equal(drawn, again)


def test_star_space_negatives_are_not_drawn_from_one_reply():
    ones = np.ones(3, dtype="i")
    with pytest.raises(ValueError, match="one reply only"):
        draw_negatives(np.random.default_rng(0), ones, ones, 2)


def test_star_space_negatives_in_place_of_the_right_one_are_all_others_alike():
    pool = np.array([5] * 9 + [1, 7, 3], dtype="i")
    drawn = draw_negatives(np.random.default_rng(0), np.full(40000, 5, dtype="i"), pool, 1)
    counts = np.bincount(drawn[:, 1], minlength=8)[[1, 3, 7]]
    assert counts.sum() == 40000
    np.testing.assert_allclose(counts / 40000, 1 / 3, atol=0.02)


def texts_of(agent):
    """The candidates that the agent keeps for its next step, right one first, as text."""
    ((packed, _),) = agent._packed
    labels, starts = packed.texts.labels, packed.texts.label_starts
    words = agent.tokenizer
    decoded = [words.decode(labels[a:b]) for a, b in zip(starts[:-1], starts[1:])]
    return [[decoded[number] for number in row] for row in packed.candidates]


@pytest.mark.parametrize("candidates", ["batch", "fixed"])
def test_star_space_negatives_are_other_replies(candidates):
    agent, _ = build(candidates=candidates, negatives=20)
    agent.seed(1, 2, 3)
    agent.batch_act(observed(agent, EXAMPLES[:3]))  # The fourth reply is not among them.
    known = set(ANSWERS.values()) - ({"swim"} if candidates == "batch" else set())
    rows = texts_of(agent)
    for row, example in zip(rows, EXAMPLES):
        assert row[0] == example["labels"][0]
        assert set(row[1:]) == known - {row[0]}
    agent._packed = ()
    agent.seed(1, 2, 3)
    agent.batch_act(observed(agent, EXAMPLES[:3]))
    assert texts_of(agent) == rows
    agent._packed = ()
    agent.seed(1, 2, 4)
    agent.batch_act(observed(agent, EXAMPLES[:3]))
    assert texts_of(agent) != rows


def test_star_space_negatives_of_a_batch_with_one_reply_are_fixed_candidates():
    agent, _ = build(negatives=30)
    agent.batch_act(observed(agent, [EXAMPLES[0], EXAMPLES[4]]))
    for row in texts_of(agent):
        assert row[0] == "stop now" and set(row[1:]) == set(ANSWERS.values()) - {"stop now"}


# --- what users get wrong -----------------------------------------------------------


def test_star_space_other_optimizers_are_refused():
    agent, _ = build()
    agent.batch_act(observed(agent, EXAMPLES))
    before = agent.parameters.values.copy()
    with pytest.raises(ConfigError) as error:
        agent.update(Adam(0.01))
    assert "[training.optimizer] is Optimizer, which star_space cannot use" in str(error.value)
    assert 'set @optimizers = "thincdialog.SparseAdagrad.v1" or' in str(error.value)
    with pytest.raises(ConfigError, match=r"has L2 = 0.1, but star_space knows no decay"):
        agent.update(registry.optimizers.get(SGD)(0.1, L2=0.1))
    assert np.array_equal(before, agent.parameters.values)


def test_star_space_losses_and_models_it_does_not_know_are_refused():
    with pytest.raises(ValueError, match="the kernel knows no other"):
        build(loss="thincdialog.ClassSoftmax.v1")
    encoder = registry.models.get("thincdialog.BagEncoder.v1")(width=8)
    model = registry.models.get("thincdialog.BiEncoder.v1")(encoder)
    with pytest.raises(ValueError, match="trains only @models"):
        registry.agents.get("thincdialog.StarSpace.v1")(model)
    with pytest.raises(ValueError, match="negatives = 0"):
        build(negatives=0)
    with pytest.raises(ValueError, match="n_segments = 2, but share = 'all'"):
        build(model={"n_segments": 2, "share": "all"})


def test_star_space_one_reply_is_nothing_to_tell_apart():
    with pytest.raises(DataError, match="has one reply only, 'yes'"):
        build([{"text": f"w{i}", "labels": ["yes"]} for i in range(3)])


def test_star_space_a_loss_that_is_not_finite_names_its_example():
    agent, _ = build(model={"similarity": "dot", "share": "nothing"})
    row = agent.tokenizer.encode("blue")[0]
    agent.model.get_ref("context_table").get_param("E")[row] = np.inf
    agent.batch_act(observed(agent, EXAMPLES[:2]))
    agent.batch_act(observed(agent, [EXAMPLES[0], {**EXAMPLES[3], "id": "x"}, EXAMPLES[1]]))
    agent.counters.ids[3] = "the blue one"
    with pytest.raises(TrainingError, match="Examples of the batch: the blue one. "):
        agent.update(registry.optimizers.get(SGD)(0.1))


# --- replicas and saved models -------------------------------------------------------


def test_star_space_replicas_learn_the_same_weights_from_batches_of_their_own():
    agent, _ = build()
    replicas = [agent.replica(), agent.replica()]
    before = agent.parameters.values.copy()
    agent.batch_act(observed(agent, EXAMPLES[:4]))
    for replica, rows in zip(replicas, (EXAMPLES[:4], EXAMPLES[4:10])):
        replica.batch_act(observed(replica, rows))
    assert [each.counters.examples for each in (agent, *replicas)] == [4, 4, 6]
    for replica in replicas:
        replica.update(registry.optimizers.get(SGD)(0.1))
        assert np.shares_memory(replica.parameters.values, agent.parameters.values)
        assert not np.array_equal(before, agent.parameters.values)
        before = agent.parameters.values.copy()
    assert [each.counters.examples for each in (agent, *replicas)] == [4, 0, 0]


@pytest.mark.parametrize("optimizer", [SGD, ADAGRAD])
@pytest.mark.parametrize("share", ["all", "start"])
def test_star_space_replica_learns_what_the_agent_itself_learns(optimizer, share):
    values = []
    for is_replica in (False, True):
        agent, teacher = build(model={"share": share, "n_segments": 1 + (share == "start")})
        learner = agent.replica() if is_replica else agent
        learn(learner, teacher, registry.optimizers.get(optimizer)(0.2), epochs=3)
        values.append(agent.parameters.values)
    np.testing.assert_allclose(*values, atol=1e-5)


CONFIG = f"""
[tasks.colours]
@teachers = "thincdialog.LabelledText.v1"
train = "{{path}}"
dev = "{{path}}"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.StarSpace.v1"

[agent.model]
@models = "thincdialog.StarSpace.v1"
width = 16

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 4

[training]
max_steps = 40
eval_every_steps = 10
score = "accuracy"
n_samples = 0

[training.optimizer]
@optimizers = "{ADAGRAD}"
learn_rate = 0.3
"""


@pytest.fixture()
def config(tmp_path):
    file = tmp_path / "data.jsonl"
    lines = [f'{{"text": "{row["text"]}", "label": "{row["labels"][0]}"}}' for row in EXAMPLES]
    file.write_text("\n".join(lines), encoding="utf8")
    return CONFIG.format(path=file.as_posix())


def without_numba(monkeypatch):
    compiled.load_kernels.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)


def test_star_space_saved_models_need_no_numba(config, tmp_path, monkeypatch):
    result = run(config, output=tmp_path / "out")
    without_numba(monkeypatch)
    best = tmp_path / "out" / "model-best"
    scores = evaluate(best, split="dev")
    assert scores == result.scores["dev"] and scores["accuracy"] == 1.0
    assert load(best).respond("green yonder") == "go on"
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[fast\]'"):
        run(config)


def test_star_space_resumes_to_the_bit(config, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(config, output=whole)
    run(config, output=parts, overrides={"training.max_steps": 15})
    run(config, output=parts, resume=True)
    first, second = ((out / "model-last" / "weights.npy").read_bytes() for out in (whole, parts))
    assert first == second


def test_star_space_other_optimizers_are_refused_before_data_is_read(tmp_path):
    text = CONFIG.format(path=tmp_path / "missing.jsonl").replace(ADAGRAD, "Adam.v1")
    line = text.split("\n").index("[training.optimizer]") + 1
    with pytest.raises(ConfigError) as error:
        run(text)
    assert f"config:{line}  [training.optimizer] is Optimizer, which star_space" in str(error.value)
