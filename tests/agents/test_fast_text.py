"""The fastText-like classifier: learns in its kernel, answers as a classifier, needs numba
only to learn."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Adam

from thincdialog.agents.negatives import draw_classes
from thincdialog.api import (
    ConfigError,
    DataError,
    IterableTeacher,
    debug_overfit,
    dry_run,
    evaluate,
    load,
    registry,
)
from thincdialog.errors import MissingPackageError, TrainingError
from thincdialog.metrics import AverageMetric
from thincdialog.ops import compiled
from thincdialog.ops.choice import get_dialog_ops, using_ops

from . import colours
from .colours import answer, observed, run

pytest.importorskip("numba")
CLASSES = {"red": "stop", "green": "go", "amber": "wait", "blue": "swim"}
EXAMPLES = colours.examples(CLASSES)
SGD = "thincdialog.SparseSGD.v1"


def build(examples=EXAMPLES, agent="thincdialog.FastText.v1", ngrams=2, **options):
    with using_ops(get_dialog_ops(-1)):
        model = registry.models.get("thincdialog.FastText.v1")(width=16)
        agent = registry.agents.get(agent)(model, **options)
        teacher = IterableTeacher({"train": examples}).for_split("train", training=True)
        make_tokenizer = registry.tokenizers.get("thincdialog.WordNgrams.v1")
        agent.initialize(teacher, tokenizer=make_tokenizer(n_rows=100, ngrams=ngrams))
    return agent, teacher


def learn(agent, teacher, optimizer=None, epochs=60, size=5):
    colours.learn(agent, teacher, optimizer or registry.optimizers.get(SGD)(0.5), epochs, size)


@pytest.mark.parametrize("options", [{}, {"negatives": 2}, {"class_weights": "balanced"}])
def test_fast_text_learns(options):
    agent, teacher = build(**options)
    learn(agent, teacher)
    assert {text: answer(agent, f"{text} here") for text in CLASSES} == CLASSES


def test_fast_text_learns_the_order_of_words():
    rows = [("a b", "first a"), ("b a", "first b")]
    examples = [{"text": text, "labels": [label]} for text, label in rows]
    agent, teacher = build(examples)
    learn(agent, teacher, epochs=200)
    assert [answer(agent, text) for text, _ in rows] == ["first a", "first b"]
    agent, teacher = build(examples, ngrams=1)
    learn(agent, teacher, epochs=200)
    assert answer(agent, "a b") == answer(agent, "b a")


def test_fast_text_learns_the_same_from_the_same_seed():
    runs = []
    for _ in range(2):
        agent, teacher = build(negatives=1)
        learn(agent, teacher, epochs=3)
        runs.append(agent.parameters.values.tobytes())
    assert runs[0] == runs[1]


def test_fast_text_one_example_is_a_step_of_the_plain_classifier():
    """What the kernel does with one example is plain SGD through the layers."""
    fast, _ = build(class_weights={"stop": 2.0})
    plain, _ = build(agent="thincdialog.Classifier.v1", class_weights={"stop": 2.0}, max_context=0)
    assert np.array_equal(fast.parameters.values, plain.parameters.values)
    for agent in (fast, plain):
        optimizer = registry.optimizers.get(SGD)(0.3, grad_clip=0.0)
        for row in EXAMPLES[:6]:
            agent.batch_act(observed(agent, [row]))
            agent.update(optimizer)
    np.testing.assert_allclose(fast.parameters.values, plain.parameters.values, atol=1e-6)
    losses = [agent.report()["loss"].value() for agent in (fast, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_fast_text_model_can_be_trained_by_the_classifier():
    agent, teacher = build(agent="thincdialog.Classifier.v1")
    learn(agent, teacher, Adam(0.05))
    assert {text: answer(agent, f"{text} there") for text in CLASSES} == CLASSES


def test_fast_text_reads_texts_without_a_word():
    agent, teacher = build([*EXAMPLES, {"text": "", "labels": ["nothing"]}])
    learn(agent, teacher)
    assert answer(agent, "") == "nothing"
    assert answer(agent, "green yonder") == "go"


def test_fast_text_classes_without_an_example_are_not_answered():
    agent, teacher = build(classes=[*CLASSES.values(), "fly"], negatives=3)
    learn(agent, teacher)
    assert agent.classes[-1] == "fly" and agent.class_counts == [3, 3, 3, 3, 0]
    assert {text: answer(agent, f"{text} here") for text in CLASSES} == CLASSES
    with pytest.raises(DataError, match="example 1 has the label 'run', which is not among"):
        agent.batch_act(observed(agent, [EXAMPLES[0], {"text": "x", "labels": ["run"]}]))


def test_fast_text_counts_loss_and_examples_of_all_microbatches_in_update():
    agent, _ = build()
    for rows in (EXAMPLES[:4], EXAMPLES[4:9]):
        agent.batch_act(observed(agent, rows))
    assert agent.counters.examples == 9
    assert "loss" not in agent.report()
    before = agent.parameters.values.copy()
    norm = agent.update(registry.optimizers.get(SGD)(0.01))
    assert norm > 0 and not np.array_equal(before, agent.parameters.values)
    assert agent.report()["loss"].value() == pytest.approx(np.log(4), rel=0.02)
    assert agent.counters.state()["examples"] == AverageMetric(0, 9).denominator.state()
    assert agent.counters.examples == 0
    assert not agent.parameters.gradients.any()


def test_fast_text_tells_the_loss_of_what_is_kept():
    agent, teacher = build(negatives=2)
    learn(agent, teacher, epochs=5)
    before = agent.parameters.values.copy()
    agent.batch_act(observed(agent, EXAMPLES[:4]))
    agent.counters.updated()  # Given up.
    for row in EXAMPLES[4:6]:
        agent.batch_act(observed(agent, [row]))
    told = agent.kept_loss()
    assert np.array_equal(agent.parameters.values, before)
    agent.reset_metrics()
    agent.update(registry.optimizers.get(SGD)(1e-6))
    assert agent.report()["loss"].value() == pytest.approx(told, rel=1e-3)


def test_fast_text_takes_the_learning_rate_of_its_schedule():
    agent, _ = build()
    rates = registry.schedules.get("thincdialog.WarmupLinear.v1")(0.5, 0, 2)
    optimizer = registry.optimizers.get(SGD)(rates)
    changed = []
    for _ in range(4):
        before = agent.parameters.values.copy()
        agent.batch_act(observed(agent, EXAMPLES[:4]))
        agent.update(optimizer)
        changed.append(not np.array_equal(before, agent.parameters.values))
    assert changed == [True, True, False, False]


# --- wrong classes ------------------------------------------------------------------


@given(
    masses=st.lists(st.integers(1, 50), min_size=2, max_size=8),
    places=st.lists(st.integers(0, 99), min_size=1, max_size=20),
    n=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60)
def test_fast_text_drawn_classes_are_never_right(masses, places, n, seed):
    rights = np.array([place % len(masses) for place in places], dtype="i")
    drawn = draw_classes(np.random.default_rng(seed), rights, np.array(masses), n)
    assert drawn.shape == (len(rights), 1 + n) and drawn.dtype == np.int32
    assert drawn[:, 0].tolist() == rights.tolist()
    assert drawn.min() >= 0 and drawn.max() < len(masses)
    assert not (drawn[:, 1:] == drawn[:, :1]).any()


@pytest.mark.parametrize("right", [0, 2, 3])
def test_fast_text_drawn_classes_come_as_often_as_their_mass(right):
    masses = np.array([1, 4, 2, 3])
    rights = np.full(20000, right, dtype="i")
    drawn = draw_classes(np.random.default_rng(0), rights, masses, 2)[:, 1:]
    shares = np.bincount(drawn.ravel(), minlength=4) / drawn.size
    expected = np.where(np.arange(4) == right, 0, masses) / (masses.sum() - masses[right])
    np.testing.assert_allclose(shares, expected, atol=0.01)


# --- what users get wrong -----------------------------------------------------------


def test_fast_text_other_optimizers_are_refused():
    agent, _ = build()
    agent.batch_act(observed(agent, EXAMPLES))
    before = agent.parameters.values.copy()
    with pytest.raises(ConfigError) as error:
        agent.update(Adam(0.01))
    assert "[training.optimizer] is Optimizer, which fast_text cannot use" in str(error.value)
    assert 'set @optimizers = "thincdialog.SparseSGD.v1"' in str(error.value)
    with pytest.raises(ConfigError, match="is SparseAdagrad, which fast_text cannot use"):
        agent.update(registry.optimizers.get("thincdialog.SparseAdagrad.v1")(0.1))
    with pytest.raises(ConfigError, match=r"has L2 = 0.1, but fast_text knows no decay"):
        agent.update(registry.optimizers.get(SGD)(0.1, L2=0.1))
    assert np.array_equal(before, agent.parameters.values)


def test_fast_text_options_and_models_it_does_not_know_are_refused():
    model = registry.models.get("thincdialog.LinearClassifier.v1")()
    with pytest.raises(ValueError, match="trains only @models"):
        registry.agents.get("thincdialog.FastText.v1")(model)
    with pytest.raises(ValueError, match="negatives = -1"):
        build(negatives=-1)
    with pytest.raises(ValueError, match="threshold needs reject_class"):
        build(threshold=0.5)
    with pytest.raises(ValueError, match="width = 0"):
        registry.models.get("thincdialog.FastText.v1")(width=0)


def test_fast_text_a_loss_that_is_not_finite_names_its_example():
    agent, _ = build()
    row = agent.tokenizer.encode("blue")[0]
    agent.model.get_ref("table").get_param("E")[row] = np.inf
    agent.batch_act(observed(agent, EXAMPLES[:2]))
    agent.batch_act(observed(agent, [EXAMPLES[0], EXAMPLES[3], EXAMPLES[1]]))
    agent.counters.ids[3] = "the blue one"
    with pytest.raises(TrainingError, match="Examples of the batch: the blue one. "):
        agent.update(registry.optimizers.get(SGD)(0.1))


# --- replicas and saved models -------------------------------------------------------


@pytest.mark.parametrize("negatives", [0, 2])
def test_fast_text_replicas_learn_the_same_weights_from_batches_of_their_own(negatives):
    agent, teacher = build(negatives=negatives)
    alone, _ = build(negatives=negatives)
    replicas = [agent.replica(), agent.replica()]
    agent.batch_act(observed(agent, EXAMPLES[:4]))
    for replica, rows in zip(replicas, (EXAMPLES[:4], EXAMPLES[4:10])):
        replica.seed(0, 1, 0)
        replica.batch_act(observed(replica, rows))
    assert [each.counters.examples for each in (agent, *replicas)] == [4, 4, 6]
    for replica, rows in zip(replicas, (EXAMPLES[:4], EXAMPLES[4:10])):
        replica.update(registry.optimizers.get(SGD)(0.1))
        assert np.shares_memory(replica.parameters.values, agent.parameters.values)
        alone.seed(0, 1, 0)
        alone.batch_act(observed(alone, rows))
        alone.update(registry.optimizers.get(SGD)(0.1))
        np.testing.assert_allclose(agent.parameters.values, alone.parameters.values, atol=1e-6)
    assert [each.counters.examples for each in (agent, *replicas)] == [4, 0, 0]


CONFIG = f"""
[tasks.colours]
@teachers = "thincdialog.LabelledText.v1"
train = "{{path}}"
dev = "{{path}}"

[tokenizer]
@tokenizers = "thincdialog.WordNgrams.v1"
n_rows = 100

[agent]
@agents = "thincdialog.FastText.v1"
negatives = 2

[agent.model]
@models = "thincdialog.FastText.v1"
width = 16

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 4

[training]
max_epochs = 0
max_steps = 150
eval_every_epochs = 10
score = "accuracy"
n_samples = 0

[training.optimizer]
@optimizers = "{SGD}"
learn_rate = 0.5
"""


@pytest.fixture()
def config(tmp_path):
    file = tmp_path / "data.jsonl"
    rows = [{"text": row["text"], "label": row["labels"][0]} for row in EXAMPLES]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    return CONFIG.format(path=file.as_posix())


def test_fast_text_saved_models_need_no_numba(config, tmp_path, monkeypatch):
    result = run(config, output=tmp_path / "out")
    compiled.load_kernels.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    best = tmp_path / "out" / "model-best"
    scores = evaluate(best, split="dev")
    assert scores == result.scores["dev"] and scores["accuracy"] == 1.0
    assert load(best).respond("green yonder") == "go"
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[fast\]'"):
        run(config)


def test_fast_text_can_learn_a_batch_by_heart(config):
    found = debug_overfit(config, steps=100)
    assert found.losses[0] > 2.0 and found.is_learnt  # Three logistic losses at first.
    assert found.without_gradient == found.unchanged == []


def test_fast_text_dry_run_tells_the_loss_of_the_first_step(config):
    found = dry_run(config, overrides={"agent.negatives": 0})
    assert found.loss == pytest.approx(np.log(4), rel=1e-3)


def test_fast_text_resumes_to_the_bit(config, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(config, output=whole)
    run(config, output=parts, overrides={"training.max_steps": 64})
    run(config, output=parts, resume=True)
    first, second = ((out / "model-last" / "weights.npy").read_bytes() for out in (whole, parts))
    assert first == second


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_fast_text_learns_with_several_workers(config, tmp_path, executor):
    hogwild = f'\n[hogwild]\nworkers = 2\nexecutor = "{executor}"\n'
    changes = {"world.batcher.size": 3}  # A half of each worker's share.
    result = run(config + hogwild, output=tmp_path / "out", overrides=changes)
    assert result.scores["dev"]["accuracy"] == 1.0
    last = (tmp_path / "out" / "log.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["step"] == 150 and json.loads(last)["examples"] == 450
