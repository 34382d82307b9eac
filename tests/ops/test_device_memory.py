"""A GPU's memory: what is logged of it, and batches that do not fit."""

import gc
import io
import json

import numpy as np
import pytest

from tests.agents import colours
from tests.agents.colours import make
from tests.ops.array_backends import backend
from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.cli.main import main
from thincdialog.errors import DeviceMemoryError
from thincdialog.examples.batch import Batch
from thincdialog.models.gradient_sum import GradientSum
from thincdialog.models.parameters import FlatParameters
from thincdialog.ops.device_memory import held_bytes, is_out_of_memory
from thincdialog.ops.gpu import kernels
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.sparse_sgd import SparseSGD
from thincdialog.protocol import SPLIT_BATCHES

LAZY = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"')

ROWS = [
    {"text": "red " * (1 + number % 7) + f"w{number}", "labels": [f"l{number % 9}"]}
    for number in range(20)
]
INLINE = [
    {**row, "label_candidates": [*row["labels"], *(f"l{(number + more) % 9}" for more in (1, 4))]}
    for number, row in enumerate(ROWS)
]


def ranker(candidates, **options):
    encoder = make("models", "BagEncoder", width=16, depth=1)
    model = make("models", "BiEncoder", encoder)
    return make("agents", "Ranker", model, candidates=candidates, **options)


def classifier():
    encoder = make("models", "BagEncoder", width=16, depth=1)
    return make("agents", "Classifier", make("models", "Classifier", encoder))


AGENTS = {
    "batch": (lambda: ranker("batch"), ROWS),
    "batch_all": (lambda: ranker("batch_all"), INLINE),
    "inline": (lambda: ranker("inline"), INLINE),
    "fixed": (lambda: ranker("fixed"), ROWS),
    "classifier": (classifier, ROWS),
}


@pytest.fixture
def pool():
    """The stand-in's, which refuses what it is told to."""
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("needs the stand-in for CuPy, whose memory can be refused")
    return cupy.get_default_memory_pool()


def learner(make_agent, rows):
    agent = make_agent()
    agent.initialize(colours.teacher_of(rows), tokenizer=make("tokenizers", "Words"))
    return agent, Batch.of(colours.messages(rows))


def learnt(agent, batch):
    """What one batch leaves behind, and what would have been replied."""
    agent.begin_microbatch(0, 1, 0)
    texts = [reply.get("text") for reply in agent.batch_act(batch) or ()]
    counters = agent.counters
    numbers = counters.examples, counters.n_losses, counters.n_judged
    n_right, found = sum(map(float, counters.n_right)), agent.parameters.gradients.get()
    counts, loss = dict(counters.counts), agent.gathered_loss()
    agent.give_up()
    return found, loss, (texts, *numbers, n_right, counts.get("ignored_examples")), counts


@pytest.mark.gpu
@pytest.mark.parametrize("name", AGENTS)
def test_device_memory_parts_of_a_batch_have_its_gradient(name, pool, monkeypatch):
    with backend(0):
        agent, batch = learner(*AGENTS[name])
        wanted = learnt(agent, batch)
        n_calls, backprop = [0], kernels.backprop_bias

        def backprop_bias(*args):
            # In the midst of the backward pass of the whole, and of its second half.
            n_calls[0] += 1
            if n_calls[0] in (2, 6):
                with pool.refusing(0):
                    agent.model.ops.xp.empty((1,))
            return backprop(*args)

        monkeypatch.setattr(kernels, "backprop_bias", backprop_bias)
        found = learnt(agent, batch)
    assert n_calls[0] > 6
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
    assert found[1] == pytest.approx(wanted[1]) and found[2] == wanted[2]
    assert found[3][SPLIT_BATCHES] == 1 and SPLIT_BATCHES not in wanted[3]


@pytest.mark.gpu
def test_device_memory_microbatches_before_stay_as_they_are(pool, monkeypatch):
    with backend(0):
        (agent, batch), found = learner(*AGENTS["classifier"]), []
        start = agent.parameters.values.copy()
        for limit in (1 << 30, 1024):
            agent.parameters.values[:] = start
            for number in range(2):
                agent.begin_microbatch(0, 1, number)
                with pool.refusing(limit if number else 1 << 30):
                    agent.batch_act(batch)
            report = agent.update(LazyAdam(0.1))
            found.append((report.counts.get(SPLIT_BATCHES), agent.parameters.values.get()))
    assert [n for n, _ in found] == [None, 1]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-5)


LONG = [
    {
        "text": " ".join(f"w{7 * number * more % 997}" for more in range(1, 100)),
        "labels": [f"l{number} w{number} w{number + 1}"],
    }
    for number in range(64)
]


@pytest.mark.gpu
def test_device_memory_parts_take_less_than_the_whole(pool):
    """Each has a gradient for the rows of all candidates."""
    with backend(0):
        agent, batch = learner(lambda: ranker("batch"), LONG)
        wanted = learnt(agent, batch)
        gc.collect()
        pool.free_all_blocks()
        # No room in blocks of which other tests have a part.
        held = [agent.model.ops.xp.empty((size,), dtype="u1") for size in pool.free_stretches()]
        before = pool.total_bytes()
        agent.begin_microbatch(0, 1, 0)
        agent.batch_act(batch)  # The gradient's rows are added up later.
        took = pool.total_bytes() - before
        agent.give_up()
        pool.free_all_blocks()
        pool.set_limit(pool.total_bytes() + took // 4)
        try:
            found = learnt(agent, batch)
        finally:
            pool.set_limit(0)
    assert held is not None
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)
    assert found[2] == wanted[2] and found[3][SPLIT_BATCHES] == 1


@pytest.mark.gpu
def test_device_memory_steps_of_parts_of_other_words_are_those_of_the_whole(pool):
    """A row-sparse step changes the rows of all parts, and clears their gradients."""
    rows = [{"text": f"a{number} b{number}", "labels": [f"l{number % 9}"]} for number in range(40)]
    found = []
    with backend(0):
        agent, batch = learner(classifier, rows)
        start = agent.parameters.values.copy()
        for limit in (1 << 30, 2048):
            agent.parameters.values[:], optimizer = start, SparseSGD(0.1)
            for step in (1, 2):
                agent.begin_microbatch(0, step, 0)
                with pool.refusing(limit):
                    agent.batch_act(batch)
                counts = agent.update(optimizer).counts
            found.append((counts.get(SPLIT_BATCHES), agent.parameters.values.get()))
            assert not agent.parameters.gradients.any()
    assert [n for n, _ in found] == [None, 1]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-5)


def full_at(place, pool, patch):
    """What a batch leaves behind with dropout, if memory is full at the first call of a method."""
    owner, name = place
    method, n_calls = getattr(owner, name), [0]

    def full_once(*args):
        n_calls[0] += 1
        if n_calls[0] == 1:
            with pool.refusing(0):
                agent.model.ops.xp.empty((1,))
        return method(*args)

    with backend(0):
        encoder = make("models", "BagEncoder", width=16, depth=1, dropout=0.5)
        model = make("models", "BiEncoder", encoder)
        agent, batch = learner(lambda: make("agents", "Ranker", model), ROWS)
        patch.setattr(owner, name, full_once)
        return learnt(agent, batch)


@pytest.mark.gpu
def test_device_memory_draws_of_parts_do_not_follow_from_where_it_was_full(pool, monkeypatch):
    found = []
    for place in ((RankerAgent, "learn"), (kernels, "backprop_bias")):
        with monkeypatch.context() as patch:
            found.append(full_at(place, pool, patch))
    assert [counts[SPLIT_BATCHES] for *_, counts in found] == [1, 1]
    np.testing.assert_array_equal(found[0][0], found[1][0])


def limit_learning(monkeypatch, pool, n_bytes):
    learn = RankerAgent._learn

    def learn_planned(self, *planned):
        with pool.refusing(n_bytes):
            return learn(self, *planned)

    monkeypatch.setattr(RankerAgent, "_learn", learn_planned)


@pytest.mark.gpu
def test_device_memory_is_logged_and_said(pool, monkeypatch, tmp_path):
    limit_learning(monkeypatch, pool, 40_000)
    told = io.StringIO()
    settings = {"training__max_steps": 3, "training__log_every_steps": 1, "stderr": told}
    quietly_train(LAZY, tmp_path / "split", system__gpu_id=0, **settings)
    lines = (tmp_path / "split" / "log.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["split_batches"] for row in rows if not row["is_evaluation"]] == [1, 1]
    assert all(row["gpu_bytes"] > 0 for row in rows)
    assert told.getvalue().count("learnt in parts") == 1
    quietly_train(LAZY, tmp_path / "cpu", **settings)
    assert "gpu_bytes" not in (tmp_path / "cpu" / "log.jsonl").read_text()


def answers(agent, batch):
    """Replies to a batch, and what is counted of them."""
    agent.reset_metrics()
    with agent.evaluating():
        replies = agent.batch_act(batch)
        report = agent.report()
    names = ("text", "text_candidates", "candidate_scores", "loss")
    return [[reply.get(name) for name in names] for reply in replies], report


EVALUATED = [
    {
        **{name: cells for name, cells in row.items() if name != "labels"},
        "eval_labels": row["labels"],
    }
    for row in [*INLINE, *INLINE]
]


@pytest.mark.gpu
@pytest.mark.parametrize("candidates", [None, "batch", "batch_all", "inline", "fixed", "classes"])
def test_device_memory_parts_of_an_evaluation_have_its_answers(candidates, pool):
    with backend(0):
        if candidates == "classes":
            agent, _ = learner(classifier, ROWS)
        else:
            agent, _ = learner(lambda: ranker("batch", eval_candidates=candidates), ROWS)
        batch = Batch.of(colours.messages(EVALUATED))
        wanted, report = answers(agent, batch)
        with pool.refusing(4096):  # As much as a weight takes in an exact product.
            found, in_parts = answers(agent, batch)
    assert found == wanted
    assert in_parts.pop(SPLIT_BATCHES).value() >= 1 and SPLIT_BATCHES not in report
    # Each text is read once, as before.
    values = [{name: each.value() for name, each in of.items()} for of in (in_parts, report)]
    assert values[0] == values[1]


@pytest.mark.gpu
def test_device_memory_of_an_evaluation_is_said(pool, monkeypatch, tmp_path, capsys):
    answer_part, most_rows = RankerAgent.answer_part, [5]

    def limited(self, batch, rows):
        with pool.refusing(0 if len(rows) > most_rows[0] else 1 << 30):
            return answer_part(self, batch, rows)

    monkeypatch.setattr(RankerAgent, "answer_part", limited)
    told = io.StringIO()
    settings = {"training__max_steps": 4, "training__eval_every_steps": 2, "stderr": told}
    settings.update(tasks__coffee__n_dev=4, tasks__coffee__n_test=4)
    quietly_train(LAZY, tmp_path / "run", system__gpu_id=0, **settings)
    said = "such batches are answered in parts (split_batches in its scores)"
    assert told.getvalue().count(said) == 1
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["is_evaluation"]]
    assert len(rows) == 3 and all(row["scores"][SPLIT_BATCHES] > 0 for row in rows)
    most_rows[0] = 0
    assert main(["evaluate", str(tmp_path / "run"), "--gpu-id", "0"]) == 1
    shown = capsys.readouterr().err
    assert "has no room for a single " in shown and "Traceback" not in shown


@pytest.mark.gpu
@pytest.mark.parametrize(
    "kind, where, part",
    [
        (FlatParameters, "update", "the step of [training.optimizer] on"),
        (FlatParameters, "load", "what [agent.model] and"),
        (GradientSum, "add", "Set a smaller training.accumulate_gradient"),
        (GradientSum, "take", "Set a smaller training.accumulate_gradient"),
    ],
)
def test_device_memory_without_room_is_one_line_and_keeps_the_run(
    kind, where, part, pool, monkeypatch, tmp_path, capsys
):
    """In a step of the optimizer, where a run takes up its weights, and where gradients are summed
    up."""
    config, run = tmp_path / "my.cfg", tmp_path / "run"
    config.write_text(LAZY)
    command = ["train", str(config), "-o", str(run), "--gpu-id", "0"]
    n_batches = 2 if kind is GradientSum else 1
    command += ["--training.accumulate_gradient", str(n_batches), "--training.max_steps"]
    assert main([*command, "4", "--training.eval_every_steps", "2"]) == 0
    before = {path: path.read_bytes() for path in run.glob("model-*/weights.npy")}
    method = getattr(kind, where)

    def refused(self, *args):
        with pool.refusing(0):
            method(self, *args)
            self.ops.xp.empty(1)

    monkeypatch.setattr(kind, where, refused)
    capsys.readouterr()
    command += ["8", "--training.eval_every_steps", "2"]
    assert main([*command, "--resume"]) == 1
    shown = capsys.readouterr().err.strip().splitlines()[-1]
    assert "The memory of the GPU (" in shown and "has no room for " in shown
    assert part in shown and "a smaller width or vocabulary" in shown
    assert before and before == {path: path.read_bytes() for path in before}
    monkeypatch.undo()
    assert main([*command, "--resume"]) == 0


@pytest.mark.gpu
def test_device_memory_single_example_that_does_not_fit_is_an_error(pool, monkeypatch, tmp_path):
    limit_learning(monkeypatch, pool, 512)
    with pytest.raises(DeviceMemoryError, match="no room for a single example of the batch with"):
        quietly_train(LAZY, tmp_path / "out", training__max_steps=3, system__gpu_id=0)


@pytest.mark.gpu
def test_device_memory_that_cuda_cannot_take_beside_the_pool_is_known(pool):
    import cupy

    error = cupy.cuda.runtime.CUDARuntimeError
    assert is_out_of_memory(error("cudaErrorMemoryAllocation: out of memory"))
    assert not is_out_of_memory(error("cudaErrorLaunchFailure: unspecified launch failure"))
    assert not is_out_of_memory(MemoryError("out of memory"))


def test_device_memory_of_the_cpu_is_not_told():
    assert held_bytes(np.zeros(3)) is None and not is_out_of_memory(MemoryError())
