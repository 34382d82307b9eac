"""Training with several workers: all steps and examples count once, and nothing else changes."""

import io
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy
import pytest
from thinc.api import Optimizer, chain, noop, with_padded

from tests.cli.mistakes import CONFIG as SMALL
from tests.cli.mistakes import OTHER, TALK
from tests.processes import slow
from tests.runners import noting
from tests.runners.resuming import (
    ACCUMULATE,
    ADAM,
    AMONG_ALL,
    FIXED,
    LAZY,
    LAZY_SCHEDULE,
    LIVE,
    MODEL_REPLIES,
    MOMENTUM,
    PARTNER,
    SCHEDULE,
    SORTED,
    STREAM,
    UNSAVED,
    WORDS,
    config,
)
from tests.training.examples import RANKER
from tests.training.two_tasks import ids
from thincdialog.api import (
    Agent,
    ConfigError,
    Experiment,
    Message,
    SumMetric,
    evaluate,
    evaluate_in_detail,
    registry,
    train,
)
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.inspection.dry_run import dry_run
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.loader import readers
from thincdialog.loader.cores import n_cores
from thincdialog.optimizers.lazy_adam import LazyAdam
from thincdialog.optimizers.row_sparse import Segment
from thincdialog.optimizers.shared_state import settings_of
from thincdialog.runners.hogwild import Hogwild
from thincdialog.runners.stale_steps import describe_stale, stale_settings
from thincdialog.runs.run_log import read_log
from thincdialog.training.interruption import Interruption

CODE = Path(__file__).parent / "noting.py"
AGENT = ("tests.noting_ranker.v1", "tests.hogwild.v1")
NO_CHECKPOINTS = ("checkpoint_every_steps = 2", "")
EXECUTORS = ("thread", slow("process"))
RUNNER = "thincdialog.Hogwild.v1"


def hogwild(text: str, workers: int = 2, executor: str = "thread") -> str:
    block = f'[runner]\n@runners = "{RUNNER}"\nworkers = {workers}\nexecutor = "{executor}"\n'
    return f"{text.replace(*AGENT).replace(*NO_CHECKPOINTS)}\n{block}"


class Run:
    """A finished run.

    notes (List[dict]): One for each step, in the order in which the steps were made.
    rows (List[dict]): The rows of log.jsonl.
    """

    def __init__(self, text, output, monkeypatch, **options):
        self.output = output
        path = Path(f"{output}.notes")
        monkeypatch.setenv("NOTES", str(path))
        self.stdout, self.stderr = io.StringIO(), io.StringIO()
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        self.result = train(text, output=output, code=CODE, **streams, **options)
        self.notes = [json.loads(line) for line in path.read_text().splitlines()]
        self.rows = read_log(output)

    def values(self, *keys):
        return [tuple(row[key] for key in keys) for row in self.rows]

    def losses(self):
        return [row["loss_per_example"] for row in self.rows[1:]]

    def weights(self, name="model-last"):
        return numpy.load(self.output / name / "weights.npy")

    def checkpoints(self):
        return sorted(int(path.name.rpartition("-")[2]) for path in self.output.glob("check*"))


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Return a function that trains each run in a new folder."""
    folders = (tmp_path / f"out{number}" for number in range(100))

    def make(text, output=None, **options):
        return Run(text, output or next(folders), monkeypatch, **options)

    return make


def flat_ids(notes):
    return sorted(name for note in notes for name in note["ids"])


def without_tokens(scores):
    return {name: value for name, value in scores.items() if "tokens" not in name}


def check_epochs(run, expected, n_epochs=2):
    """Check that each epoch has every example once, and that all counts agree."""
    notes = list(run.notes)
    for _ in range(n_epochs):
        epoch = []
        while len(flat_ids(epoch)) < len(expected):
            epoch.append(notes.pop(0))
        assert flat_ids(epoch) == expected
    assert notes == []
    last = run.rows[-1]
    found = [last[name] for name in ("examples", "step", "epoch")]
    assert found == [n_epochs * len(expected), len(run.notes), n_epochs]
    assert run.result.stopped_because == f"max_epochs = {n_epochs} reached"
    # The scores in training equal the final ones, except for the counts of tokens, because several
    # workers may read the same candidates.
    best = [row for row in run.rows if row["is_best"]][-1]
    assert without_tokens(best["scores"]) == without_tokens(run.result.scores["dev"])


COLOURS = sorted(name.partition("/")[2] for name in ids("train", ["colours"]))
BOTH = ids("train")
NO_LABELS = (
    '[tasks.colours]\n@teachers = "tests.tiny.v1"\n'
    'words = "red green blue amber pink"\nturns = [1, 3, 2, 1, 1, 4, 2, 1]\n',
    '[tasks.colours]\n@teachers = "tests.gaps.v1"\nn = 41\n',
)
LABELLED = sorted(f"gap{n}" for n in range(41) if n % 3 and not 8 <= n < 16)
SIZES = (
    "size = 4",
    '\n[world.batcher.size]\n@schedules = "compounding.v1"\n'
    "start = 1.0\nstop = 8.0\ncompound = 1.1",
)
SAMPLE = ("n_candidates = 4", "n_candidates = 4\nmax_examples = 9")
# From a name to the config, the ids of an epoch and the number of workers.
EPOCHS = {
    "columns, Fixed": (config(FIXED, flat=True, tasks=1), COLOURS, 2),
    "columns, Words, two tasks": (config(WORDS, flat=True), BOTH, 3),
    "dynamic, Words, two tasks": (config(LIVE), BOTH, 2),
    "dynamic, Batchsort, a stream": (config(SORTED, STREAM, tasks=1), COLOURS, 2),
    "columns of a stream, Words": (config(WORDS, STREAM, flat=True, tasks=1), COLOURS, 3),
    "conversations, own replies": (config(FIXED, MODEL_REPLIES, tasks=1), COLOURS, 2),
    "partner": (config(PARTNER, tasks=1), COLOURS, 2),
    "more workers than examples": (config(FIXED, AMONG_ALL, flat=True, tasks=1), COLOURS, 17),
    "more workers than episodes": (config(LIVE, AMONG_ALL, tasks=1), COLOURS, 9),
    "some labels missing": (config(FIXED, NO_LABELS, tasks=1), LABELLED, 2),
    "accumulated": (config(WORDS, ACCUMULATE, flat=True), BOTH, 2),
    "sizes by a schedule": (config(FIXED, SIZES, flat=True), BOTH, 4),
    "evaluated on a sample": (config(FIXED, SAMPLE), BOTH, 3),
}
# The other cases are slow.
IN_PROCESSES = "dynamic, Batchsort, a stream"
IN_THREADS = {
    "columns, Words, two tasks",
    "dynamic, Words, two tasks",
    "columns of a stream, Words",
    "some labels missing",
}


@pytest.mark.parametrize(
    "name, executor",
    [
        *((n, "thread") if n in IN_THREADS else slow(n, "thread") for n in EPOCHS),
        *(slow(n, "process") if n != IN_PROCESSES else (n, "process") for n in EPOCHS),
    ],
)
def test_epochs_show_every_example_once(make, name, executor, capfd):
    text, expected, workers = EPOCHS[name]
    workers = workers if executor == "thread" else 2  # Each process imports the package.
    run = make(hogwild(text, workers, executor))
    check_epochs(run, expected)
    assert "sample" not in name or run.result.scores["dev"]["examples"] == 18
    assert executor == "thread" or len({note["pid"] for note in run.notes}) > 1
    # Only the parent prints, so the table has each row once.
    shown = run.stdout.getvalue().splitlines()
    assert len([line for line in shown if line.strip()[:1].isdigit()]) == len(run.rows)
    assert tuple(capfd.readouterr()) == ("", "")
    assert of_workers(run) == said(workers, n_cores())


@pytest.mark.parametrize(
    "executor, helpers", [slow("thread", "processes"), slow("process", "threads")]
)
def test_epochs_of_streams_with_readers_show_every_example_once(
    make, executor, helpers, tmp_path, monkeypatch
):
    log = tmp_path / "helped"
    monkeypatch.setenv("HELPED", str(log))
    monkeypatch.setattr(readers, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(readers, "WORTH_SECONDS", -1.0)
    monkeypatch.setattr(readers, "Job", readers.Job)
    if executor == "thread":
        noting.helped_at_once()
    text, expected, _ = EPOCHS["columns of a stream, Words"]
    run = make(hogwild(text, 2, executor) + "\n[loader]\nworkers = 2\n")
    check_epochs(run, expected)
    assert set(log.read_text().split()) == {helpers}


def of_workers(run):
    """Return the lines that a run printed about its workers."""
    lines = run.stderr.getvalue().splitlines(keepends=True)
    notes = ("on dev was still improving at the end", "of the contexts were longer than",
             "train is a stream", "test is a stream", "Saving to ", "Computing with ",
             "no step has improved", "Each epoch trained on 22 of 41 examples")  # fmt: skip
    return "".join(line for line in lines if not any(note in line for note in notes))


def said(workers, cores):
    """Return the lines that a run should print about its workers, such as Adam's settings."""
    turns = f"[runner] {cores} of {workers} workers run at a time, because there are no more "
    turns += "processors\n"
    known = {"learn_rate": 1.0, "b1": 0.9, "b2": 0.999}
    line = describe_stale(known, min(workers, cores))
    return (turns if cores < workers else "") + (f"{line}\n" if line else "")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system without affinity")
@pytest.mark.parametrize("executor", EXECUTORS)
def test_workers_take_turns_where_there_are_fewer_processors(make, executor):
    cores = os.sched_getaffinity(0)
    text, expected, _ = EPOCHS["columns, Fixed"]
    try:
        os.sched_setaffinity(0, {min(cores)})
        run = make(hogwild(text, 3, executor))
        # Workers take turns, so no gradient is stale, and Adam's settings are those of the config.
        assert of_workers(run) == said(3, 1)
    finally:
        os.sched_setaffinity(0, cores)
    check_epochs(run, expected)
    assert len({(note["pid"], note["thread"]) for note in run.notes}) == 3


def test_epochs_that_are_short_show_every_example_once(make):
    """Many short epochs may end between any two calls of the runner."""
    text = config(FIXED, flat=True, tasks=1).replace("max_epochs = 2.0", "max_epochs = 60.0")
    text = text.replace("eval_every_epochs = 0.5", "eval_every_epochs = 60.0")
    check_epochs(make(hogwild(text, 4)), COLOURS, 60)


@registry.layers("tests.padded_words.v1")
def padded_words(width: int):
    return chain(TokenEmbed(width), with_padded(noop()), pool("max"))


def test_evaluations_by_several_workers_give_the_scores_and_counts_of_one():
    text = RANKER.replace('"inline"', '"inline"\nmax_label = 9\nmax_context = 40')
    text = text.replace(
        '@models = "thincdialog.BagEncoder.v1"', '@layers = "tests.padded_words.v1"'
    )
    experiment = Experiment.from_config(text.replace("dropout = 0.2\n", ""))
    teacher, dev = experiment.training_split(), experiment.evaluation_split("dev")
    experiment.initialize(teacher, io.StringIO())
    runner = Hogwild(3, "thread")
    runner.begin(experiment, teacher, Interruption(), print)
    several = runner.evaluate(experiment, dev)
    runner.end()
    one = evaluate_agent(experiment.agent, dev, experiment.evaluation["world"])
    assert one == several and one["truncated_contexts"] > 0


@pytest.mark.parametrize("source", ["batch", "batch_all"])
def test_evaluations_that_depend_on_batches_use_one_worker(source):
    config = RANKER.replace("size = 16", "size = 7")
    experiment = Experiment.from_config(config, {"agent.eval_candidates": source})
    teacher, dev = experiment.training_split(), experiment.evaluation_split("dev")
    experiment.initialize(teacher, io.StringIO())
    runner = Hogwild(3, "thread")
    runner.begin(experiment, teacher, Interruption(), print)
    several = runner.evaluate(experiment, dev)
    runner.end()
    assert several == evaluate_agent(experiment.agent, dev, experiment.evaluation["world"])


WITHOUT_AGENT = RANKER[: RANKER.index("[agent]")] + RANKER[RANKER.index("[world]") :]
WITHOUT_AGENT = WITHOUT_AGENT.replace('"hits@1"', '"accuracy"')


class Where(Agent):
    """Learns nothing. Replies with the text or with "yes", and notes the threads that call it."""

    threads = []

    def act(self):
        self.threads.append(threading.current_thread().name)
        return Message(text=self.observation["text"] if len(self.threads) % 2 else "yes")


@registry.agents("tests.where.v1")
def where(counts: bool = False) -> Agent:
    if not counts:
        return Where()

    class Counting(Where):
        def report(self):
            return {"asked": SumMetric(len(self.threads))}

    return Counting()


def scores_of_model(path):
    """Return the scores by one worker, those by the workers of [runner], and the latter in detail.
    Scores have no counts that may differ."""
    experiment = Experiment.from_model(path)
    with experiment.working():
        dev, make_world = experiment.evaluation_split("dev"), experiment.evaluation["world"]
        one = evaluate_agent(experiment.agent, dev, make_world)
    found = evaluate_in_detail(path, split="dev")
    assert found.scores == evaluate(path, split="dev")
    return without_tokens(one), without_tokens(found.scores), found


@pytest.mark.slow
def test_agents_that_learn_nothing_are_run_by_workers(tmp_path):
    text = WITHOUT_AGENT + '\n[agent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    single = train(text, **quiet)
    several = train(hogwild(text, 3), output=tmp_path / "run", **quiet)
    assert several.scores == single.scores and several.scores["test"]["examples"] > 20
    one, found, _ = scores_of_model(tmp_path / "run")
    assert one == found == several.scores["dev"]


@pytest.mark.parametrize("counts", [False, True])
def test_final_scores_and_evaluate_use_workers_if_the_agent_allows_it(tmp_path, counts):
    text = (
        WITHOUT_AGENT + f'\n[agent]\n@agents = "tests.where.v1"\ncounts = {str(counts).lower()}\n'
    )
    Where.threads.clear()
    train(hogwild(text, 2), output=tmp_path / "run", stdout=io.StringIO(), stderr=io.StringIO())
    Where.threads.clear()
    evaluate(tmp_path / "run")
    # If an agent's copies share counts of their own, only one worker runs it.
    assert set(Where.threads) == ({"MainThread"} if counts else {"worker 0", "worker 1"})


def test_final_scores_and_evaluate_by_workers_equal_those_of_one(make):
    run = make(hogwild(config(LIVE), 3))
    one, found, evaluation = scores_of_model(run.output)
    assert one == found == without_tokens(run.result.scores["dev"])
    assert evaluation.intervals
    names = [row.id for rows in evaluation.predictions.values() for row in rows]
    dev = Experiment.from_model(run.output).evaluation_split("dev")
    assert names == [each["id"] for task in dev.by_task().values() for each in task.examples()]


# --- exact steps --------------------------------------------------------------------

STEPS = (
    "max_epochs = 2.0\neval_every_epochs = 0.5\ncheckpoint_every_steps = 2",
    "max_epochs = 0\neval_every_epochs = 0\neval_every_steps = 5\ncheckpoint_every_steps = 4\n"
    "max_steps = 23",
)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_steps_evaluations_and_checkpoints_have_exact_numbers(make, executor):
    text = config(WORDS, STEPS, LAZY_SCHEDULE, flat=True)
    run = make(hogwild(text, 3, executor))
    single = make(text.replace(*AGENT))
    assert run.result.stopped_because == "max_steps = 23 reached"
    assert len(run.notes) == 23
    # LazyAdam's steps are shorter, because gradients of several workers are some steps old.
    at_once = min(3, n_cores())
    divisor = at_once**0.5
    assert [row["step"] for row in run.rows] == [0, 5, 10, 15, 20, 23]
    assert run.checkpoints() == single.checkpoints()
    # Within an epoch, each number is used once, with the learning rate of its step.
    rates = {note["step"]: note["rate"] / divisor for note in single.notes}
    first = [note for note in run.notes if note["step"] <= 5]
    assert sorted(note["step"] for note in first) == [1, 2, 3, 4, 5]
    for note in run.notes:
        assert note["rate"] == rates.get(note["step"], note["rate"])
    # A row has the learning rate of the step that was reported last.
    assert {row["learn_rate"] for row in run.rows[1:]} <= set(rates.values())
    assert {(note["b1"], note["nu"]) for note in single.notes} == {(0.9, 1.0)}
    wanted = stale_settings(settings_of(LazyAdam(0.001)), at_once)
    assert {(note["b1"], note["nu"]) for note in run.notes} == {(wanted["b1"], wanted["nu"])}
    assert at_once == 1 or wanted["nu"] < 1


@pytest.mark.parametrize("epochs, evaluations", [slow(0.6, 0.2), slow(1.25, 0.25)])
def test_fractions_of_epochs_end_at_the_same_step_as_with_one_worker(make, epochs, evaluations):
    text = config(FIXED, AMONG_ALL, flat=True)
    text = text.replace("max_epochs = 2.0", f"max_epochs = {epochs}")
    text = text.replace("eval_every_epochs = 0.5", f"eval_every_epochs = {evaluations}")
    text = text.replace("size = 4", "size = 1").replace(*NO_CHECKPOINTS)
    expected = make(text.replace(*AGENT)).values("epoch", "step", "examples")
    for _ in range(2):
        assert make(hogwild(text, 3)).values("epoch", "step", "examples") == expected


def test_endless_data_ends_at_max_steps(make):
    endless = ("turns = [1, 3", "endless = true\nturns = [1, 3")
    limited = ("max_epochs = 2.0", "max_epochs = 0\nmax_steps = 25")
    run = make(hogwild(config(FIXED, endless, limited, tasks=1), 3))
    assert len(run.notes) == run.rows[-1]["step"] == 25
    assert run.rows[-1]["examples"] == 100


# --- weights, optimizers, resuming ----------------------------------------------------


@pytest.mark.slow
def test_one_worker_gives_the_same_as_no_runner(make):
    text = config(LIVE, LAZY)
    plain = make(text.replace(*AGENT).replace(*NO_CHECKPOINTS))
    one = make(hogwild(text, 1))
    assert one.weights().tobytes() == plain.weights().tobytes()
    assert [note["ids"] for note in one.notes] == [note["ids"] for note in plain.notes]


OPTIMIZERS = {
    "Adam": 'Adam.v1"\nlearn_rate = 0.01\ngrad_clip = 0.5\nuse_averages = true',
    "SGD": 'SGD.v1"\nlearn_rate = 0.5\nL2 = 0.0001\nuse_averages = true',
    "LazyAdam": 'thincdialog.LazyAdam.v1"\nlearn_rate = 0.01\nuse_averages = true',
    "SparseSGD": 'thincdialog.SparseSGD.v1"\nlearn_rate = 0.5\ngrad_clip = 1.0',
    "SparseAdagrad": 'thincdialog.SparseAdagrad.v1"\nlearn_rate = 0.03',
}


def learner(optimizer: str) -> str:
    text = RANKER.replace('Adam.v1"\nlearn_rate = 0.01', OPTIMIZERS[optimizer])
    text = text.replace("thincdialog.Ranker.v1", AGENT[1]).replace('candidates = "inline"', "")
    return text.replace("n_train = 34", "n_train = 320")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, executor",
    [
        ("SparseAdagrad", "thread"),
        *(slow(name, "thread") for name in OPTIMIZERS if name != "SparseAdagrad"),
        *(slow(name, "process") for name in ("Adam", "LazyAdam")),
    ],
)
def test_optimizers_learn_with_workers_as_with_one(make, monkeypatch, name, executor):
    text = learner(name)
    single, several = make(text).losses(), make(hogwild(text, 2, executor)).losses()
    # The loss depends on how old the gradients are, that is, on how much steps overlap.
    assert several[-1] < 0.9 * several[0]
    monkeypatch.setenv("MISCHIEF", "queue")
    in_turn = make(hogwild(text, 2, executor)).losses()
    # Wrong steps, such as steps that count twice or not at all, would change the loss far more.
    assert in_turn == pytest.approx(single, rel=0.15)
    assert in_turn[-1] < 0.8 * in_turn[0]


@pytest.mark.slow
def test_a_worker_that_pauses_between_two_arrays_ruins_nothing(make, monkeypatch):
    """Meanwhile, the other worker makes steps with one moment that is updated and one that is
    not."""

    class Pausing(numpy.ndarray):
        def __setitem__(self, index, block):
            super().__setitem__(index, block)
            time.sleep(0.0)

    def view(part, vector, view=Segment.view):
        return view(part, vector).view(Pausing)

    monkeypatch.setattr(Segment, "view", view)
    text = learner("LazyAdam")
    assert make(hogwild(text)).losses() == pytest.approx(make(text).losses(), rel=0.15)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_weights_are_saved_unaveraged_before_the_first_average(make, executor):
    averages = '"thincdialog.LazyAdam.v1"\nuse_averages = true\naverage_every = 5\n' + SCHEDULE
    text = hogwild(config(FIXED, (ADAM, averages), tasks=1), 2, executor)
    run = make(text, overrides={"training.max_steps": 4})
    assert numpy.array_equal(run.weights(), run.weights("checkpoint-4"))
    run = make(text, overrides={"training.max_steps": 5})
    average = numpy.load(next((run.output / "checkpoint-5" / "optimizer").glob("averages*")))
    assert numpy.array_equal(run.weights(), average.reshape(-1))
    assert not numpy.array_equal(run.weights(), run.weights("checkpoint-5"))


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["thread", "process"])
def test_resume_restores_exact_counts_weights_and_schedules(make, executor):
    averages = '"thincdialog.LazyAdam.v1"\nuse_averages = true\naverage_every = 2\n' + SCHEDULE
    text = config(LIVE, (ADAM, averages), tasks=1)
    text = hogwild(text, 2, executor).replace("n_samples", "checkpoint_every_steps = 3\nn_samples")
    first = make(text, overrides={"training.max_steps": 3})
    newest = first.output / "checkpoint-3"
    arrays = {path.stem.partition("-")[0]: path for path in (newest / "optimizer").iterdir()}
    arrays["values"] = newest / "weights.npy"
    expected = {key: zlib.crc32(numpy.load(path).tobytes()) for key, path in arrays.items()}
    assert {"values", "mom1", "mom2", "averages"} <= set(expected)
    again = make(text, first.output, resume=True, overrides={"training.max_steps": 3})
    assert "The run had already ended (max_steps = 3 reached)" in again.stderr.getvalue()
    assert len(again.notes) == 3
    # Resumed with the other executor, the run has the same counts as without a stop.
    other = {"runner.executor": "thread" if executor == "process" else "process"}
    whole = make(text, first.output, resume=True, overrides=other)
    assert whole.notes[3]["sums"] == expected
    check_epochs(whole, COLOURS)
    keys = ("epoch", "step", "examples")
    ends = [[values for values in run.values(*keys) if values[0] in (1.0, 2.0)]
            for run in (whole, make(text))]  # fmt: skip
    assert ends[0] == ends[1]


def test_resume_with_other_workers_is_refused(make):
    text = hogwild(config(LIVE, tasks=1), 2)
    first = make(text, overrides={"training.max_steps": 2})
    for workers in (3, 1):
        with pytest.raises(ConfigError) as refused:
            make(text, first.output, resume=True, overrides={"runner.workers": workers})
        said = str(refused.value)
        assert f"--runner.workers  [runner] workers = {workers}, but " in said
        assert "has 2" in said and "give the old value to resume" in said
    with pytest.raises(ConfigError, match=r"\[runner\] @runners = 'thincdialog.Alone.v1', but "):
        make(text[: text.index("[runner]")], first.output, resume=True)


# --- what is shared, and what is not ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "tokenizer",
    ['HashNgrams.v1"\nngrams = 2\nn_rows = 5000', slow('Words.v1"'), slow('Bytes.v1"')],
)
def test_threads_read_text_as_one_worker_does(make, tokenizer):
    """Threads share the tokenizer and caches. The learning rate is 0, so the losses show whether
    all texts were read correctly."""
    text = RANKER.replace('Words.v1"', tokenizer).replace("dropout = 0.2", "dropout = 0.0")
    text = text.replace(
        'Adam.v1"\nlearn_rate = 0.01', 'SGD.v1"\nuse_averages = false\nlearn_rate = 0.0'
    )
    text = text.replace("n_train = 34", "n_train = 120").replace("size = 16", "size = 2")
    text = text.replace("thincdialog.Ranker.v1", AGENT[1])
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-5)
        run = make(hogwild(text, 4))
    finally:
        sys.setswitchinterval(before)
    single = make(text)
    assert run.losses() == pytest.approx([single.losses()[0]] * 2, rel=1e-6)
    assert run.weights().tobytes() == single.weights().tobytes()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_worlds_without_a_state_are_saved_between_epochs(make, executor):
    text = hogwild(config(UNSAVED, tasks=1), 2, executor)
    run = make(text.replace("n_samples", "checkpoint_every_steps = 2\nn_samples"))
    check_epochs(run, COLOURS)
    assert run.checkpoints() == [15, 30]


# --- configs --------------------------------------------------------------------------


def test_configs_that_do_not_go_with_workers_are_refused():
    # Call `problems` directly, because without a GPU there is an earlier error.
    text = hogwild(config(FIXED, MOMENTUM, tasks=1)).replace(AGENT[1], AGENT[0])
    experiment = Experiment.from_config(text)
    experiment.checked.interpolated["system"]["gpu_id"] = 0
    shown = "\n".join(map(str, experiment.runner.problems(experiment)))
    assert "[runner] workers share CPU memory, but gpu_id asks for a GPU" in shown
    assert "[training.optimizer] is a custom optimizer" in shown
    with pytest.raises(ConfigError, match="is RAdam, whose steps are wrong.* choose .Adam.v1"):
        train(hogwild(RANKER.replace('"Adam.v1"', '"RAdam.v1"')))
    for workers in (0, 1025):
        with pytest.raises(ConfigError, match=f"'workers' .* is {workers} - give 1 to 1,024"):
            Experiment.from_config(hogwild(RANKER, workers))


@pytest.mark.parametrize(
    "base, own, is_refused",
    [
        (Optimizer, "__call__", True), (Optimizer, "_adam", True), (Optimizer, "state", True),
        (Optimizer, "note", False), (Optimizer, "step_schedules", False),
        (LazyAdam, "step_block", False),
    ],
)  # fmt: skip
def test_optimizers_with_custom_steps_or_state_are_refused(base, own, is_refused):
    """Workers cannot share the state of custom steps."""
    experiment = Experiment.from_config(hogwild(RANKER))
    experiment.optimizer = type("Own", (base,), {own: lambda *given: None})(0.01)
    problems = experiment.runner.problems(experiment)
    assert any("is a custom optimizer" in each.text for each in problems) == is_refused


@pytest.mark.parametrize(
    "changes, is_refused",
    [({"runner.executor": "process"}, True), ({"tasks.talk.streaming": True}, True), ({}, False)],
)
def test_pipes_are_refused_if_several_workers_read_them(tmp_path, changes, is_refused):
    pipe = tmp_path / "talk.jsonl"
    os.mkfifo(pipe)
    given = {"paths.train": str(pipe), "runner.@runners": RUNNER, "agent.candidates": "fixed"}
    given.update(changes)
    writer = threading.Thread(target=lambda: pipe.write_text((TALK + OTHER) * 2), daemon=True)
    if is_refused:
        with pytest.raises(ConfigError) as refused:
            train(SMALL, overrides=given)
        assert f"{pipe} is not a file, but the [runner] workers" in str(refused.value)
    else:
        writer.start()
        assert train(SMALL, overrides=given, stdout=io.StringIO()).stopped_because


def test_dry_run_counts_what_each_worker_needs():
    workers = {"runner.@runners": RUNNER, "runner.workers": 4}
    one, four = dry_run(RANKER), dry_run(RANKER, overrides=workers)
    assert four.memory["gradients"] == 4 * one.memory["gradients"] > 0
    assert four.memory["weights"] == one.memory["weights"]
    assert four.n_parameters == one.n_parameters and four.loss == one.loss


def test_state_before_the_first_step_belongs_to_the_started_epoch():
    overrides = {"runner.@runners": RUNNER, "runner.workers": 2}
    experiment = Experiment.from_config(RANKER, overrides)
    with experiment.working():
        teacher, runner = experiment.training_split(), experiment.runner
        experiment.initialize(teacher, io.StringIO())
        runner.begin(experiment, teacher, Interruption(), print)
        try:
            runner.start_epoch(0)
            while not runner.epoch_done():
                runner.take(0, float("inf"))
            done = runner.state()
            runner.start_epoch(1)
            begun = runner.state()
            assert begun != done and not runner.epoch_done()
            examples = sum(report.examples for report in _steps_of(runner))
            runner.restore(begun)
            assert examples == sum(report.examples for report in _steps_of(runner)) > 0
        finally:
            runner.end()


def _steps_of(runner):
    """Return the reports of all steps until the end of the epoch."""
    reports = []
    while not runner.epoch_done():
        reports += runner.take(len(reports), float("inf"))
    return reports


PAGES = """
import io, os, resource
from thincdialog.api import Experiment, load_config
from thincdialog.training.interruption import Interruption

config = load_config("configs/quickstart.cfg").config
config["agent"]["model"]["encoder"] = {"@models": "thincdialog.BiLSTMEncoder.v1", "width": 128}
config["tasks"]["coffee"]["n_train"], config["baselines"] = 400, {}
config["runner"] = {"@runners": "thincdialog.Hogwild.v1", "workers": 2}
experiment = Experiment.from_config(config)
with experiment.working():
    teacher, runner = experiment.training_split(), experiment.runner
    experiment.initialize(teacher, io.StringIO())
    runner.begin(experiment, teacher, Interruption(), print)
    runner.start_epoch(0)
    for n_made, n_steps in ((0, 6), (6, 16)):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        while n_made < n_steps:
            n_made += len(runner.take(n_made, n_steps - n_made))
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10, flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the heaps of glibc")
def test_threads_reuse_the_memory_of_large_arrays(root):
    # In a separate process, whose heaps have not been used before.
    done = subprocess.run([sys.executable, "-c", PAGES], cwd=root, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    # Page faults per step: about 100, but 2,800 to 7,500 if each thread had its own heap.
    assert float(done.stdout.splitlines()[-1]) < 1000
