"""A run that is interrupted and resumed is bit for bit equal to an uninterrupted one."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.processes import slow, start
from tests.runners.resuming import CONFIGS, FIXED, LIVE, NOTES, WORDS, Crash, config, remains, same
from tests.runs.conftest import ENDS, resume
from tests.training.examples import RANKER, quietly_train
from thincdialog.api import ExampleMetric, SumMetric, Teacher, TrainingError, registry
from thincdialog.runs.checkpoints import Checkpoints
from thincdialog.teachers.text_formats import Conversations, ParlAIText
from thincdialog.training.interruption import Interrupted


@pytest.fixture(autouse=True)
def fresh_notes():
    NOTES.clear()
    yield
    NOTES.clear()


def run(text, output, resume=False):
    """Train. RETURNS the text of stderr."""
    return quietly_train(text, output, resume=resume)[1]


def ends_alike(text, tmp_path, expected, seen):
    """Resume and train to the end. RETURNS the text of stderr."""
    NOTES.before = lambda step: None
    shown = run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen
    return shown


LONG = {
    "columns, Fixed, Adam, accumulated",
    "mixture, dynamic",
    "dynamic, Words, RAdam",
    "a world without a state",
    "another optimizer",
    "conversations, Fixed",
    "partner",
    "columns, Words, LazyAdam, averages",
}


def crashes(text, tmp_path, step):
    NOTES.crash_at(step)
    with pytest.raises(Crash):
        run(text, tmp_path / "out", resume=True)


def whole(text, tmp_path, first_draws=0):
    random.seed(first_draws)
    run(text, tmp_path / "whole")
    seen = dict(NOTES.seen)
    n_steps = max(int(name.split("/")[0]) for name in seen)
    NOTES.clear()
    return remains(tmp_path / "whole"), seen, n_steps


@pytest.mark.parametrize("name", [slow(name) if name in LONG else name for name in CONFIGS])
def test_resume_after_crashes_gives_the_same_bits(tmp_path, name):
    text = CONFIGS[name]
    expected, seen, n_steps = whole(text, tmp_path)
    for step in (1, n_steps // 2 + 1, n_steps):
        crashes(text, tmp_path, step)
    assert "Resuming from" in ends_alike(text, tmp_path, expected, seen)


@pytest.mark.parametrize(
    "name, number",
    [
        ("columns, Words, LazyAdam, averages", signal.SIGTERM),
        slow("dynamic, Batchsort, a stream", signal.SIGINT),
    ],
)
def test_resume_after_a_signal_at_every_step_gives_the_same_bits(tmp_path, name, number):
    text = CONFIGS[name].replace("checkpoint_every_steps = 2\n", "")
    expected, seen, n_steps = whole(text, tmp_path)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    for step in range(1, n_steps + 1):

        def interrupt(at, step=step):
            assert at == step, "a step was lost"
            signal.raise_signal(number)

        NOTES.before = interrupt
        with pytest.raises(Interrupted) as caught:
            run(text, tmp_path / "out", resume=True)
        assert str(caught.value) == str(tmp_path / "out" / f"checkpoint-{step}")
        assert caught.value.exit_code == {signal.SIGTERM: 75, signal.SIGINT: 130}[number]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    ends_alike(text, tmp_path, expected, seen)


@registry.metrics("tests.drawing.v1")
def drawing():
    return Drawing()


class Drawing(ExampleMetric):
    """A custom metric that draws from the shared generator, and interrupts the third evaluation."""

    moment = -1

    def __init__(self):
        self.reset()

    def add(self, labels, reply):
        self.drawn += random.random()
        Drawing.moment -= 1
        if Drawing.moment == 0:
            signal.raise_signal(signal.SIGTERM)

    def report(self):
        return {"drawn_sum": SumMetric(self.drawn)}

    def reset(self):
        self.drawn = 0.0


@pytest.mark.slow
def test_resume_after_a_signal_within_an_evaluation_that_draws(tmp_path):
    text = CONFIGS["columns, Fixed, Adam, accumulated"]
    metrics = ("tests.drawing.v1", "thincdialog.Ranking.v1")
    for place, name in enumerate(metrics):
        section = f'[evaluation.metrics.m{place}]\n@metrics = "{name}"\n\n[training]'
        text = text.replace("[training]", section, 1)
    expected, seen, _ = whole(text, tmp_path, first_draws=1)
    n_dev = int(expected["rows"][0]["scores"]["examples"])
    random.seed(1)
    Drawing.moment = 2 * n_dev + 2
    with pytest.raises(Interrupted):
        run(text, tmp_path / "out")
    random.seed(2)
    ends_alike(text, tmp_path, expected, seen)


@registry.callbacks("tests.unsavable.v1")
def unsavable():
    return Unsavable()


class Unsavable:
    def __call__(self, info, agent):
        return False

    def state(self):
        return {"seen": {1, 2}}


def test_resume_refuses_state_that_is_no_json_by_name(tmp_path):
    more = '\n[training.callbacks.mine]\n@callbacks = "tests.unsavable.v1"\n'
    text = CONFIGS["columns, Fixed, Adam, accumulated"] + more
    with pytest.raises(TrainingError, match="state of callback 'mine' cannot be saved: set is no"):
        run(text, tmp_path / "out")


# --- streams of files -------------------------------------------------------------------

COLOURS = ["red", "green", "blue", "amber", "pink"]
LENGTHS = [1, 3, 2, 1, 1, 4, 2, 1, 2, 2]


@registry.teachers("tests.streamed.v1")
def streamed(form: str, path: str, mutators=None) -> Teacher:
    """Make a teacher with a small window, so that small files are several blocks."""
    make = {"parlai": ParlAIText, "conversations": Conversations}[form]
    made = make(train=path, dev=path, mutators=mutators, streaming=True)
    made.data["train"].window = 3
    return made


def parlai(episode):
    ends = ["\tepisode_done:True" if turn == len(episode) else "" for turn in range(1, 99)]
    return "".join(f"text:{x}\tlabels:{y}{end}\n" for (x, y), end in zip(episode, ends))


def conversation(episode):
    turns = [{"speaker": "ab"[n % 2], "text": text} for n, text in enumerate(sum(episode, ()))]
    return json.dumps({"turns": turns}) + "\n"


@pytest.mark.parametrize(
    "form, line, world, flat",
    [slow("parlai", parlai, LIVE, False), ("conversations", conversation, WORDS, True),
     slow("parlai", parlai, FIXED, False)],
    ids=["dynamic", "columns", "conversations"],
)  # fmt: skip
def test_resumed_streams_of_files_give_the_same_bits(tmp_path, form, line, world, flat):
    path = tmp_path / "data.txt"
    episodes = [
        [(f"say {number} {COLOURS[(number + turn) % 5]}", COLOURS[(number + turn) % 5])
         for turn in range(size)]
        for number, size in enumerate(LENGTHS)
    ]  # fmt: skip
    path.write_text("".join(map(line, episodes)))
    text = config(world, flat=flat, tasks=1)
    start = text.index("@teachers")
    task = f'@teachers = "tests.streamed.v1"\nform = "{form}"\npath = "{path}"\n'
    text = text[:start] + task + text[text.index("\n[", start) :]
    expected, seen, n_steps = whole(text, tmp_path)
    places = set()
    for step in range(1, n_steps + 1, 3):
        crashes(text, tmp_path, step)
        for saved in (tmp_path / "out").glob("checkpoint-*/state.json"):
            teacher = json.loads(saved.read_text())["loop"]["runner"]
            places |= {start["line"] for start in starts_in(teacher)}
    ends_alike(text, tmp_path, expected, seen)
    # Blocks start at lines of their own; a checkpoint may be in any of them.
    begins = [
        sum(line(each).count("\n") for each in episodes[:number]) for number in range(0, 10, 3)
    ]
    assert {0} < places and (flat or places <= set(begins))


def starts_in(state):
    """Return all positions in a file that a world's state contains."""
    if isinstance(state, dict):
        if "line" in state:
            yield state
        state = list(state.values())
    if isinstance(state, list):
        for inner in state:
            yield from starts_in(inner)


# --- half-finished work of killed runs, and other ends ----------------------------------------


def test_half_finished_work_of_a_killed_process_is_repaired(trained, folder):
    """Between two renames, a checkpoint or a model has another name."""
    for name in ("checkpoint-6", "checkpoint-4", "model-best", "model-last"):
        (folder / name).rename(folder / f".{name}.old.0123abcd")
    for name in ("checkpoint-8", "notes"):
        (folder / f".{name}.0123abcd").mkdir()
    for name in ("config.cfg", "scores.json", "notes.txt"):
        (folder / f".{name}.0123abcd").write_text("half")
    _, shown = resume(folder)
    assert f"Resuming from {folder / 'checkpoint-6'}." in shown
    same(remains(folder), remains(trained.output))
    left = [".notes.0123abcd", ".notes.txt.0123abcd"]
    assert sorted(path.name for path in folder.glob(".*")) == left
    for name in ("checkpoint-8", "model-best"):
        (folder / f".{name}.0123abcd").mkdir()
    quietly_train(output=folder, force=True, **ENDS)
    assert sorted(path.name for path in folder.glob(".*")) == left


@pytest.mark.slow
def test_killed_while_old_checkpoints_are_removed(trained, tmp_path, monkeypatch):
    """If some files of a checkpoint are left, they do not prevent the run from resuming."""
    expected, unlink = remains(trained.output), os.unlink
    for n_files in range(1, 12, 2):
        folder, left = tmp_path / str(n_files), [n_files]

        def dying(path, *, dir_fd=None, left=left):
            left[0] -= dir_fd is not None
            if left[0] < 0:
                raise Crash
            unlink(path, dir_fd=dir_fd)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", dying)
            with pytest.raises(Crash):
                quietly_train(output=folder, **ENDS)
        assert "Resuming from" in resume(folder)[1]
        same(remains(folder), expected)
        assert not list(folder.glob(".*"))


def test_a_better_model_than_that_of_the_checkpoint_is_discarded(trained, folder):
    shutil.rmtree(folder / "model-best")
    shutil.copytree(folder / "model-last", folder / "model-best")
    weights = bytearray((folder / "model-best" / "weights.npy").read_bytes())
    weights[-20] ^= 1
    (folder / "model-best" / "weights.npy").write_bytes(weights)
    resume(folder)
    same(remains(folder), remains(trained.output))


def test_force_forgets_the_run_before(folder):
    quietly_train(output=folder, force=True, system__seed=5, training__max_steps=2)
    assert Checkpoints(folder).steps() == [0, 2]
    assert len((folder / "log.jsonl").read_text().splitlines()) == 2


def test_a_run_that_had_ended_says_so_and_shows_the_result(trained, folder):
    after, shown = resume(folder)
    assert "The run had already ended (max_steps = 6 reached)" in shown
    for name in ("scores", "best_step", "stopped_because", "samples"):
        assert getattr(after, name) == getattr(trained, name)
    same(remains(folder), remains(trained.output))


def test_a_run_continues_after_its_end_with_higher_limits(tmp_path):
    every = {**ENDS, "training__eval_every_steps": 2}
    quietly_train(output=tmp_path / "at once", **{**every, "training__max_steps": 10})
    quietly_train(output=tmp_path / "out", **every)
    _, shown = resume(tmp_path / "out", **{**every, "training__max_steps": 10})
    assert "Changed since: training.max_steps 6 -> 10." in shown
    found, expected = remains(tmp_path / "out"), remains(tmp_path / "at once")
    for name in ("model-best/weights.npy", "model-last/weights.npy"):
        assert found[name] == expected[name]
    assert [row["step"] for row in found["rows"]] == [0, 2, 4, 6, 8, 10]


# --- killed for real ------------------------------------------------------------------------

NOTING = Path(__file__).parents[1] / "runners" / "noting.py"
KILLED = (
    RANKER.replace('Ranker.v1"\ncandidates = "inline"', 'Ranker.v1"')
    .replace("thincdialog.Ranker.v1", "tests.hogwild.v1")
    .replace("[tasks.coffee.mutators.*.flatten]\n", "")
    .replace('@mutators = "thincdialog.Flatten.v1"\n', "")
    .replace("Fixed.v1", "Words.v1")
    .replace("size = 16", "budget = 600\nbuffer = 4")
    .replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true\naverage_every = 2')
    .replace("n_samples", "eval_every_steps = 7\ncheckpoint_every_steps = 1\nn_samples")
)


def start_run(folder, name):
    """Start a process that trains, or resumes."""
    (folder / "config.cfg").write_text(KILLED)
    notes = {"NOTES": str(folder / f"{name}.notes"), "MISCHIEF": "slow -"}
    command = ["train", "config.cfg", "-o", name, "--resume", "--code", str(NOTING)]
    return start(folder, *command, env=notes)


def trained_on(path):
    """Return step to the ids that it was trained on, which are the same each time it was
    repeated."""
    found = {}
    for line in path.read_text().split("\n")[:-1] if path.exists() else ():
        note = json.loads(line)
        assert found.setdefault(note["step"], note["ids"]) == note["ids"]
    return found


@pytest.mark.slow
def test_killed_at_6_moments_it_leaves_the_same_bits(tmp_path):
    assert start_run(tmp_path, "whole").communicate()[1].startswith("There is no checkpoint")
    expected, rng, n_saving = trained_on(tmp_path / "whole.notes"), random.Random(2), 0
    for number in range(6):
        process, folder = start_run(tmp_path, "killed"), tmp_path / "killed"
        until = max(expected) * number // 6
        while (
            max(trained_on(tmp_path / "killed.notes"), default=0) < until and process.poll() is None
        ):
            time.sleep(0.01)
        # At some moment in or after a step, or while it is saved.
        until = time.monotonic() + rng.choice([0.0, 0.02, 2.0])
        while time.monotonic() < until and not any(folder.glob(".*.*")):
            time.sleep(0.0005)
        process.kill()
        stderr = process.communicate()[1]
        assert process.returncode == -signal.SIGKILL, stderr
        n_saving += any(folder.glob(".*.*"))
    assert n_saving > 1, "some kills came while something was saved"
    process = start_run(tmp_path, "killed")
    assert "Resuming from" in process.communicate()[1] and process.returncode == 0
    same(remains(tmp_path / "killed"), remains(tmp_path / "whole"))
    assert trained_on(tmp_path / "killed.notes") == expected
