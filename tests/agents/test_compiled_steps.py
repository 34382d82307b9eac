"""Agents whose training step is a kernel. They train with it, answer as other agents do, and need
numba only for training."""

import json
import sys

import numpy as np
import pytest
from thinc.api import Adam

from tests.processes import slow
from thincdialog.api import ConfigError, debug_overfit, dry_run, evaluate, load
from thincdialog.errors import MissingPackageError, TrainingError
from thincdialog.ops import compiled

from . import test_fast_text, test_star_space
from .colours import learn, make, messages, run
from .test_fast_text import SGD
from .test_star_space import ADAGRAD

pytest.importorskip("numba")
# The first negatives of a batch come only from its first four examples.
KINDS = {"StarSpace": test_star_space, "FastText": test_fast_text}
# The kernels of StarSpace take twice as long to compile.
both = pytest.mark.parametrize("kind", ["FastText", slow("StarSpace")])


def some(kind, *numbers):
    rows = KINDS[kind].EXAMPLES
    return messages([{"id": str(number), **rows[number]} for number in numbers])


@both
def test_compiled_steps_learn_the_same_from_the_same_seed(kind):
    runs = []
    for _ in range(2):
        agent, teacher = KINDS[kind].build(negatives=1)
        learn(agent, teacher, make("optimizers", SGD, 0.1), epochs=3)
        runs.append(agent.weights.tobytes())
    assert runs[0] == runs[1]


@both
def test_compiled_steps_count_loss_and_examples_of_all_microbatches(kind):
    agent, _ = KINDS[kind].build()
    for rows in (some(kind, *range(4)), some(kind, *range(4, 9))):
        agent.batch_act(rows)
    assert agent.n_gathered == 9 and "loss" not in agent.report()
    before = agent.weights.copy()
    report = agent.update(make("optimizers", SGD, 0.01))
    assert report.gradient_norm > 0 and not np.array_equal(before, agent.weights)
    assert report.examples == report.weight == 9
    assert 0 < report.loss / report.weight < 2 and report.counts["contexts"] == 9
    assert report.counts["tokens"] == report.counts["cells"] > 18
    assert agent.n_gathered == 0 and not agent.parameters.gradients.any()
    assert agent.update(make("optimizers", SGD, 0.01)).examples == 0


@both
def test_compiled_steps_report_the_loss_of_gathered_examples(kind):
    agent, teacher = KINDS[kind].build(negatives=2)
    learn(agent, teacher, make("optimizers", SGD, 0.1), epochs=5)
    before = agent.weights.copy()
    agent.batch_act(some(kind, *range(4)))
    agent.give_up()
    for number in (4, 5):
        agent.batch_act(some(kind, number))
    told = agent.gathered_loss()
    assert np.array_equal(agent.weights, before)
    report = agent.update(make("optimizers", SGD, 1e-6))
    assert report.examples == 2 and report.loss / 2 == pytest.approx(told, rel=1e-3)


@both
def test_compiled_steps_take_the_learning_rate_of_the_schedule(kind):
    agent, _ = KINDS[kind].build()
    optimizer = make("optimizers", SGD, make("schedules", "WarmupLinear", 0.5, 0, 2))
    changed = []
    for _ in range(4):
        before = agent.weights.copy()
        agent.batch_act(some(kind, *range(4)))
        agent.update(optimizer)
        changed.append(not np.array_equal(before, agent.weights))
    assert changed == [True, True, False, False]


# --- what users get wrong -----------------------------------------------------------


@both
def test_compiled_steps_refuse_other_optimizers(kind):
    agent, _ = KINDS[kind].build()
    agent.batch_act(some(kind, *range(4)))
    before = agent.weights.copy()
    hint = {"FastText": "SparseSGD.v1", "StarSpace": 'SparseAdagrad.v1" or "thincdialog.SparseSGD'}
    with pytest.raises(ConfigError) as error:
        agent.update(Adam(0.01))
    assert f"[training.optimizer] is Optimizer, which {agent.id} cannot use" in str(error.value)
    assert f'set @optimizers = "thincdialog.{hint[kind]}' in str(error.value)
    with pytest.raises(ConfigError, match=f"has L2 = 0.1, but {agent.id} supports no decay"):
        agent.update(make("optimizers", SGD, 0.1, L2=0.1))
    if kind == "FastText":
        with pytest.raises(ConfigError, match="is SparseAdagrad, which fast_text cannot use"):
            agent.update(make("optimizers", ADAGRAD, 0.1))
    assert np.array_equal(before, agent.weights)


@both
def test_compiled_steps_refuse_other_optimizers_before_data_is_read(kind):
    text = CONFIG.format(kind=kind, path="missing.jsonl").replace(SGD, "Adam.v1")
    line = text.split("\n").index("[training.optimizer]") + 1
    with pytest.raises(ConfigError) as error:
        run(text)
    assert f"config:{line}  [training.optimizer] is Optimizer, which" in str(error.value)


@both
def test_compiled_steps_a_loss_that_is_not_finite_names_its_example(kind):
    options = {"StarSpace": {"model": {"similarity": "dot", "share": "nothing"}}}.get(kind, {})
    agent, _ = KINDS[kind].build(**options)
    row = agent.tokenizer.encode("blue")[0]
    table = {"StarSpace": "context_table", "FastText": "table"}[kind]
    agent.model.get_ref(table).get_param("E")[row] = np.inf
    agent.batch_act(some(kind, 0, 1))
    agent.batch_act(some(kind, 0, 3, 1))
    with pytest.raises(TrainingError, match="Examples of the batch: 3. "):
        agent.update(make("optimizers", SGD, 0.1))


# --- replicas and saved models -------------------------------------------------------


@both
@pytest.mark.parametrize("negatives", [1, 3])
def test_compiled_steps_of_replicas_use_their_own_batches(kind, negatives):
    agent, _ = KINDS[kind].build(negatives=negatives)
    alone, _ = KINDS[kind].build(negatives=negatives)
    replicas = [agent.replica(), agent.replica()]
    batches = some(kind, *range(4)), some(kind, *range(4, 10))
    agent.batch_act(batches[0])
    for replica, rows in zip(replicas, batches):
        replica.begin_microbatch(0, 1, 0)
        replica.batch_act(rows)
    assert [each.n_gathered for each in (agent, *replicas)] == [4, 4, 6]
    for replica, rows in zip(replicas, batches):
        replica.update(make("optimizers", SGD, 0.1))
        assert np.shares_memory(replica.weights, agent.weights)
        alone.begin_microbatch(0, 1, 0)
        alone.batch_act(rows)
        alone.update(make("optimizers", SGD, 0.1))
        np.testing.assert_allclose(agent.weights, alone.weights, atol=1e-6)
    assert [each.n_gathered for each in (agent, *replicas)] == [4, 0, 0]


CONFIG = f"""
[tasks.colours]
@teachers = "thincdialog.LabelledText.v1"
train = "{{path}}"
dev = "{{path}}"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.{{kind}}.v1"
negatives = 2

[agent.model]
@models = "thincdialog.{{kind}}.v1"
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
learn_rate = 0.3
"""


@pytest.fixture()
def config(kind, tmp_path):
    file = tmp_path / "data.jsonl"
    rows = [{"text": row["text"], "label": row["labels"][0]} for row in KINDS[kind].EXAMPLES]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf8")
    return CONFIG.format(kind=kind, path=file.as_posix())


@both
def test_compiled_steps_saved_models_need_no_numba(kind, config, tmp_path, monkeypatch):
    # Without numba the saved model answers with NumPy's ops, so they compute its scores here, too.
    result = run(config, output=tmp_path / "out", overrides={"system.ops": "numpy"})
    compiled.load_kernels.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    best = tmp_path / "out" / "model-best"
    scores = evaluate(best, split="dev")
    assert scores == result.scores["dev"] and scores["accuracy"] == 1.0
    assert load(best).respond("green yonder") == KINDS[kind].ANSWERS["green"]
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[fast\]'"):
        run(config)


@both
def test_compiled_steps_resume_bit_for_bit(kind, config, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(config, output=whole)
    run(config, output=parts, overrides={"training.max_steps": 64})
    run(config, output=parts, resume=True)
    first, second = ((out / "model-last" / "weights.npy").read_bytes() for out in (whole, parts))
    assert first == second


@pytest.mark.parametrize("kind", ["FastText"])
def test_compiled_steps_work_in_debug_overfit_and_dry_run(kind, config):
    found = debug_overfit(config, steps=100)
    assert found.losses[0] > 2.0 and found.is_memorised  # At first, three logistic losses.
    assert found.without_gradient == found.unchanged == []
    dry = dry_run(config, overrides={"agent.negatives": 0})
    assert dry.loss == pytest.approx(np.log(4), rel=1e-3)


@pytest.mark.parametrize("kind", ["FastText"])
@pytest.mark.parametrize("executor", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_compiled_steps_of_several_workers(kind, config, tmp_path, executor):
    hogwild = (
        f'\n[runner]\n@runners = "thincdialog.Hogwild.v1"\nworkers = 2\nexecutor = "{executor}"\n'
    )
    changes = {"world.batcher.size": 3}  # Half of each worker's share.
    result = run(config + hogwild, output=tmp_path / "out", overrides=changes)
    assert result.scores["dev"]["accuracy"] == 1.0
    last = (tmp_path / "out" / "log.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["step"] == 150 and json.loads(last)["examples"] == 450
