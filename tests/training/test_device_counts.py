"""The work that a training step asks of a GPU, counted by the stand-in for CuPy (``make
test-gpu``)."""

import gc
import io
import json
import random
from contextlib import contextmanager

import numpy
import pytest
from thinc.api import set_dropout_rate

from thincdialog.examples.batch import Batch
from thincdialog.metrics.accuracy import Accuracy
from thincdialog.metrics.f1 import F1
from thincdialog.runners.alone import Alone
from thincdialog.teachers import scores
from thincdialog.training.experiment import Experiment
from thincdialog.training.progress import LogRows

pytestmark = pytest.mark.gpu
ENCODER = "agent.model.encoder"
BOTH = f"{ENCODER}.*.both.*"
TRANSFORMER = {
    "@models": "thincdialog.TransformerEncoder.v1",
    "tokens": {"@models": "thincdialog.TransformerTokens.v1", "width": 32},
}
# Limits for copies from the host in a step: ids and indices, and no parameters.
MOST_COPIES, MOST_BYTES = 64, 2 << 20
# Name of each config: its file, and the settings that are changed.
TABLE = {
    "quickstart": ("quickstart", {}),
    "ranker": ("ranker", {}),
    "hinge": ("ranker", {"agent.loss": {"@losses": "thincdialog.RankingHinge.v1"}}),
    "intent": ("intent", {}),
    "babi": ("babi", {}),
    "CNN": ("quickstart", {ENCODER: {"@models": "thincdialog.CNNEncoder.v1"}}),
    "BiLSTM": ("quickstart", {ENCODER: {"@models": "thincdialog.BiLSTMEncoder.v1"}}),
    "MemoryReader": (
        "quickstart", {ENCODER: {"@models": "thincdialog.MemoryReader.v1"}},
    ),
    "transformers": (
        "quickstart", {ENCODER: TRANSFORMER, "world.batcher.size": 32},
    ),
    "transformer": (
        "ranker", {ENCODER: TRANSFORMER, "agent.model.share": "all"},
    ),
    "learned positions, gates": (
        "ranker", {
            ENCODER: {
                **TRANSFORMER,
                "tokens": {
                    **TRANSFORMER["tokens"], "positions": "learned", "activation": "swiglu",
                },
            },
            "agent.model.share": "all",
        },
    ),
    "transformer classifier": (
        "intent", {
            "agent.model": {"@models": "thincdialog.Classifier.v1", "encoder": TRANSFORMER},
            "tokenizer.char_ngrams": None,
        },
    ),
    "poly-encoder": (
        "ranker", {
            "agent.model": {
                "@models": "thincdialog.PolyEncoder.v1", "tokens": TRANSFORMER["tokens"],
            },
        },
    ),
    "attention and a bag": ("transformer_ranker", {}),
    "codes and a bag": ("polyencoder", {}),
}  # fmt: skip
OF_CONVERSATIONS = ("ranker", "transformer_ranker", "polyencoder")


def text(rng, n_words):
    return " ".join(f"w{int(300 * rng.random() ** 2)}" for _ in range(n_words))


def write_data(folder, name, n_words=(1, 9), n=1200):
    """Write training data for a config's task; None if the task generates its own."""
    rng, path = random.Random(0), folder / f"{name}.jsonl"

    def some():
        return text(rng, rng.randint(*n_words))

    if name in OF_CONVERSATIONS:
        rows = [{"turns": [{"speaker": who, "text": some()} for who in "abab"]} for _ in range(n)]
    elif name == "intent":
        rows = [{"text": some(), "label": f"l{number % 7}"} for number in range(n)]
    else:
        lines = []
        for story in range(n):
            lines += [f"{line} {some()}." for line in range(1, 1 + rng.randint(1, 6))]
            lines.append(f"{len(lines) and 9} where is {text(rng, 1)}?\tw{story % 5}\t1")
        path.write_text("".join(f"{line}\n" for line in lines))
        return path
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@contextmanager
def training(
    root, folder, name, size=None, gpu_id=0, n_words=(1, 9), file=None, n_rows=1200, **more
):
    """Yield a function that makes a step of a config's training and returns its report."""
    of_table, changes = TABLE[name]
    file = file or of_table
    overrides = {**changes, "system.gpu_id": gpu_id, **more}
    if file == "quickstart":
        overrides["tasks.coffee.n_train"] = 1000
    else:
        overrides["paths.train"] = str(write_data(folder, file, n_words, n_rows))
    if size is not None:
        overrides["world.batcher.size"] = size
    config = root / "configs" / f"{file}.cfg"
    experiment, runner, steps = Experiment.from_config(config, overrides), Alone(), [0]
    with experiment.working():
        teacher = experiment.training_split(with_metrics=False)
        experiment.initialize(teacher, io.StringIO())
        runner.begin(experiment, teacher, None, print)
        runner.start_epoch(0)

        def step():
            while runner.epoch_done():
                runner.start_epoch(steps[0])
            (report,) = runner.take(steps[0], 1) or [None]
            steps[0] += 1
            return report

        step.agent, step.teacher = experiment.agent, teacher
        try:
            yield step
        finally:
            runner.end()


def counts_of_a_step(cupy, *args, **settings):
    with training(*args, **settings) as step:
        for _ in range(3):
            step()
        with cupy.counted() as counts:
            step()
    return counts


@pytest.fixture
def cupy():
    """Return the stand-in."""
    cupy = pytest.importorskip("cupy")
    if not hasattr(cupy, "is_stand_in"):
        pytest.skip("needs the stand-in for CuPy, which counts")
    return cupy


@pytest.mark.parametrize("name", TABLE)
def test_device_counts_of_a_step_have_no_wait(name, root, tmp_path, cupy):
    counts = counts_of_a_step(cupy, root, tmp_path, name)
    assert not counts.waits, counts.shown("waits")
    assert not counts.d2h, counts.shown("d2h")
    assert counts.h2d <= MOST_COPIES, counts.shown("h2d")
    assert counts.h2d_bytes <= MOST_BYTES
    assert not counts.generators, counts.shown("generators")


OF_SEVERAL = ("quickstart", "intent", "babi", "transformer", "codes and a bag")


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_device_counts_of_a_step_of_several_microbatches(name, n, root, tmp_path, cupy):
    settings = {"size": 32, "training.accumulate_gradient": n}
    counts = counts_of_a_step(cupy, root, tmp_path, name, **settings)
    assert (counts.waits, counts.d2h) == (0, 0), counts.shown("waits", "d2h")
    assert counts.h2d <= n * MOST_COPIES and counts.h2d_bytes <= n * MOST_BYTES
    assert not counts.generators


@pytest.mark.parametrize("name", TABLE)
def test_device_counts_do_not_depend_on_the_batch(name, root, tmp_path, cupy):
    file, changes = TABLE[name]
    # The quickstart generates texts of fixed lengths: its encoders get other texts.
    file = "ranker" if file == "quickstart" else file
    found = [
        counts_of_a_step(cupy, root, tmp_path, name, size=size, n_words=n_words, file=file)
        for size, n_words in ((32, (1, 4)), (512, (1, 4)), (32, (20, 60)))
    ]
    assert len({counts.launches for counts in found}) == 1
    copies = [counts.h2d for counts in found]  # An empty text may need one more.
    assert {counts.waits for counts in found} == {0} and max(copies) - min(copies) <= 1


def test_device_counts_of_several_tasks(root, tmp_path, cupy, monkeypatch):
    """The scores of each task stay on the device until they are asked for."""
    tea = {
        "@teachers": "thincdialog.CoffeeOrder.v1",
        "n_train": 300,
        "mutators": {"*": {"flatten": {"@mutators": "thincdialog.Flatten.v1"}}},
    }
    found = []
    for most in (scores.MOST_LATER, 0):
        monkeypatch.setattr(scores, "MOST_LATER", most)
        with training(root, tmp_path, "quickstart", size=16, **{"tasks.tea": tea}) as step:
            step.teacher.set_metrics([Accuracy(normalize=False), F1()])
            for _ in range(3):
                step()
            with cupy.counted() as counts:
                step()
            assert (counts.waits > 0, counts.d2h > 0) == (not most, not most)
            for _ in range(70):
                step()
            found.append({name: each.value() for name, each in step.teacher.report().items()})
    assert found[0] == found[1]
    names = {f"{task}/{name}" for task in ("coffee", "tea") for name in ("loss", "accuracy")}
    assert names <= set(found[0]) and found[0]["coffee/loss"] > 0


def test_device_counts_of_a_re_ranker(root, tmp_path, cupy, monkeypatch):
    """The host must know which replies are best, to prepare the input of the second model."""
    bag = {"@models": "thincdialog.BagEncoder.v1", "width": 16}
    tokens = {**TRANSFORMER["tokens"], "depth": 1, "n_segments": 3}
    model = {
        "@models": "thincdialog.ReRanker.v1", "n_best": 4,
        "first": {"@models": "thincdialog.BiEncoder.v1", "encoder": bag},
        "second": {"@models": "thincdialog.CrossEncoder.v1", "tokens": tokens},
    }  # fmt: skip
    monkeypatch.setitem(TABLE, "re-ranker", ("ranker", {"agent.model": model}))
    for size in (32, 128):
        counts = counts_of_a_step(cupy, root, tmp_path, "re-ranker", size=size)
        assert counts.waits <= 2 and counts.h2d <= MOST_COPIES


@pytest.mark.parametrize("n_microbatches", [1, 3])
@pytest.mark.parametrize("model", ["BagEncoder", "CNNEncoder", "BiLSTMEncoder", "MemoryReader"])
def test_device_counts_no_launch_over_a_whole_table(model, n_microbatches, root, tmp_path, cupy):
    changes = {
        ENCODER: {"@models": f"thincdialog.{model}.v1", "width": 32},
        "world.batcher.size": 4,
        "tokenizer.n_rows": 100_000,
        "training.accumulate_gradient": n_microbatches,
        # Steps that update the average are not sparse.
        "training.optimizer.use_averages": False,
    }
    with training(root, tmp_path, "quickstart", **changes) as step:
        step()  # Allocates the moments.
        with cupy.counted() as counts:
            for _ in range(3):
                step()
    assert 0 < counts.most_cells < 100_000 * 32, counts.most_line


def test_device_counts_batches_are_freed_once_their_losses_are_known(root, tmp_path, cupy):
    rows = LogRows("hits@1")

    def alive():
        gc.collect()
        return sum(issubclass(type(each), Batch) for each in gc.get_objects())

    with training(root, tmp_path, "ranker", size=16, n_rows=60) as step:
        found = []
        for _ in range(3):
            for _ in range(8):
                rows.count(step())
            rows.settle()
            found.append(alive())
    assert max(found[1:]) <= found[0]


@pytest.mark.parametrize("name", TABLE)
def test_device_counts_no_memory_but_the_pools(name, root, tmp_path, cupy):
    """All batches have the same examples here."""
    file = {"quickstart": "ranker"}.get(TABLE[name][0], TABLE[name][0])
    with training(root, tmp_path, name, size=24, file=file, n_rows=24) as step:
        for _ in range(17):  # Two of these steps update the average.
            step()
        pool = cupy.get_default_memory_pool()
        gc.collect()  # Garbage of earlier tests.
        before = pool.used_bytes()
        with cupy.counted() as counts:
            for _ in range(9):
                step()
        # Only losses that wait for a log line: two numbers per step, in the pool's smallest pieces.
        assert pool.used_bytes() - before <= 9 * 2 * 512
    assert not counts.taken, counts.shown("taken")


# A device draws other random numbers than the CPU. If a step is not smooth (a maximum of several
# values), 20 steps amplify a difference in the last digit, as between two kinds of ops of the CPU.
COMPARED = {
    "quickstart": {},
    "ranker": {},
    "hinge": {},
    "intent": {
        "agent.model": {
            "@models": "thincdialog.Classifier.v1",
            "encoder": {"@models": "thincdialog.BagEncoder.v1", "width": 64, "depth": 1},
        }
    },
    "babi": {},
    "CNN": {f"{ENCODER}.dropout": 0.0, f"{ENCODER}.pooling": "mean", f"{ENCODER}.n_pieces": 1},
    "BiLSTM": {f"{ENCODER}.dropout": 0.0, f"{ENCODER}.pooling": "mean"},
    "MemoryReader": {f"{ENCODER}.dropout": 0.0},
    "transformer": {f"{ENCODER}.dropout": 0.0, f"{ENCODER}.tokens.dropout": 0.0},
    "attention and a bag": {
        f"{BOTH}.bag.token_dropout": 0.0,
        f"{BOTH}.attention.*.transformer.dropout": 0.0,
        f"{BOTH}.attention.*.transformer.tokens.dropout": 0.0,
        f"{BOTH}.attention.*.transformer.tokens.token_dropout": 0.0,
        "system.ops": "numpy",
    },
    "codes and a bag": {
        "agent.model.added_encoder.token_dropout": 0.0,
        "agent.model.tokens.*.words.token_dropout": 0.0,
        "system.ops": "numpy",
    },
}
# In the other configs, and with the quickstart's long texts, a larger rate amplifies the last
# digit.
AT_ANY_RATE = ("ranker", "hinge", "intent", "babi")


@pytest.mark.parametrize(
    "name, n_microbatches", [*((name, 1) for name in COMPARED), ("quickstart", 3), ("babi", 3)]
)
def test_device_losses_are_those_of_the_cpu(name, n_microbatches, root, tmp_path, cupy):
    """Compares the losses of 20 consecutive steps. With some seeds, and on some processors, a
    weight comes so close to where a step is not smooth that the last digit decides. Then another
    seed is tried."""
    changes = {**COMPARED[name], "training.accumulate_gradient": n_microbatches}
    if name not in AT_ANY_RATE or n_microbatches > 1:
        changes["training.optimizer.learn_rate"] = 3e-4
    parted = []
    for seed in range(3):
        losses = []
        for gpu_id in (-1, 0):
            more = {"gpu_id": gpu_id, "system.seed": seed, **changes}
            with training(root, tmp_path, name, size=32, **more) as step:
                reports = [step() for _ in range(20)]
            losses.append([float(report.loss) / report.weight for report in reports])
        if losses[1] == pytest.approx(losses[0], rel=1e-6):
            return
        parted.append(max(abs(a / b - 1) for a, b in zip(*losses)))
    raise AssertionError(f"losses differ by {parted} of them")


@pytest.mark.parametrize("name", TABLE)
def test_device_losses_of_the_same_weights_are_those_of_the_cpu(name, root, tmp_path, cupy):
    """Compares all configs unchanged, at their own learning rate, but without random draws. Before
    each of 20 steps, the device gets the CPU's weights, because some configs would amplify the last
    digit."""
    # The quickstart's encoders read texts that do not change with its generator.
    file = "ranker" if TABLE[name][0] == "quickstart" and TABLE[name][1] else None
    with training(root, tmp_path, name, size=16, gpu_id=-1, file=file) as cpu_step:
        with training(root, tmp_path, name, size=16, file=file) as step:
            for each in (cpu_step, step):
                set_dropout_rate(each.agent.model, 0.0)
            for _ in range(20):
                weights = numpy.asarray(cpu_step.agent.weights)
                step.agent.weights[...] = step.agent.model.ops.asarray(weights)
                step.agent.weights_changed()
                wanted, found = cpu_step(), step()
                assert found.examples == wanted.examples and found.weight == wanted.weight
                assert float(found.loss) == pytest.approx(float(wanted.loss), rel=1e-6)
                norm = float(found.gradient_norm)
                assert norm == pytest.approx(float(wanted.gradient_norm), rel=3e-5)
