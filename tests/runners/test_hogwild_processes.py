"""Processes of workers read what their parent reads, and get its agent over a folder."""

import io
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy
import pytest

from tests.cli.mistakes import CONFIG as TALKS
from tests.cli.mistakes import TALK
from thincdialog.api import DialogError, IterableTeacher, Message, WorkerError, train
from thincdialog.config import load_config, resolve_config, write_config
from thincdialog.models.parameters import KEY
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.shared_state import lay_out_state
from thincdialog.training.hogwild_processes import (
    N_FIRST,
    VALUES,
    data_prints,
    make_process_worker,
)
from thincdialog.training.task import split_of

from tests.training.examples import RANKER

PROCESSES = {"hogwild.workers": 2, "hogwild.executor": "process"}
OWN = """
from thincdialog.api import IterableTeacher, registry

@registry.teachers("tests.set.v1")
def set_of_texts(streaming: bool = False):
    def episodes():
        for number, text in enumerate({f"say {n}" for n in range(20)}):
            yield [{"text": text, "labels": ["odd" if number % 2 else "even"]}]

    splits = dict.fromkeys(("train", "dev", "test"), episodes)
    return IterableTeacher(splits, streaming=streaming)
"""
ONE = '[tasks.own]\n@teachers = "tests.set.v1"\n'
COFFEE = '[tasks.coffee]\n@teachers = "thincdialog.CoffeeOrder.v1"\nn_train = 9\n'
TWO = ONE + COFFEE
STREAM = f"{ONE}streaming = true\n"


def quietly_train(config, folder, **options):
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    return train(config, output=folder / "out", **streams, **options)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A file with a teacher; it is imported by all that need it."""
    path = tmp_path_factory.mktemp("code") / "own.py"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize(
    "tasks",
    [
        ONE,
        STREAM,
        *(pytest.param(tasks, marks=pytest.mark.slow) for tasks in (TWO, STREAM + COFFEE)),
    ],
)
def test_processes_refuse_data_in_another_order(tmp_path, monkeypatch, own, tasks):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    text = RANKER[: RANKER.index("[tasks.coffee]")] + RANKER[RANKER.index("[tokenizer]") :]
    text = text.replace('"inline"', '"batch"') + tasks
    with pytest.raises(WorkerError) as refused:
        quietly_train(text, tmp_path, code=own, overrides=PROCESSES)
    said = str(refused.value)
    assert "the training data is another one in a worker process, or in another order" in said
    assert '(a set of texts does not), or set [hogwild] executor = "thread"' in said
    assert "\n" not in said and said.startswith("Worker ")
    assert not (tmp_path / "out").exists()


WRITING = """
import multiprocessing, os
if multiprocessing.parent_process() is not None:
    os.truncate({path!r}, {size})
"""


@pytest.mark.parametrize(
    "n_lines, streaming",
    [(9, False), (N_FIRST + 9, True), pytest.param(9, True, marks=pytest.mark.slow)],
)
def test_processes_refuse_a_file_that_is_written_while_they_start(tmp_path, n_lines, streaming):
    path, code = tmp_path / "talk.jsonl", tmp_path / "writing.py"
    path.write_text(TALK * (n_lines + 1))
    # Of a stream, behind what is read of it to compare.
    code.write_text(WRITING.format(path=str(path), size=n_lines * len(TALK)))
    settings = {**PROCESSES, "paths.train": str(path), "tasks.talk.streaming": streaming}
    with pytest.raises(WorkerError) as refused:
        quietly_train(TALKS, tmp_path, code=code, overrides=settings)
    assert f"{path}  the training data is another one in a worker process" in str(refused.value)


def stream(yes="yes", since=0, **options):
    """Numbered episodes without end, and a list of the numbers that were read."""
    read = []

    def episodes():
        for number in itertools.count():
            read.append(number)
            label = yes if number >= since else "yes"
            yield [{"text": f"say {number}", "labels": [label]}, {"text": "", "labels": ["no"]}]

    teacher = IterableTeacher({"train": episodes}, endless=True, **options)
    return teacher.for_split("train", training=True), read


def test_processes_compare_the_begin_of_a_stream_and_leave_its_place():
    teacher, read = stream(shuffle_window=2)
    teacher.start_epoch(0, 0)
    for _ in range(3):
        teacher.act()
        teacher.observe(Message(agent="me", text="yes"))
    state, n_read = teacher.state(), len(read)
    prints = data_prints(teacher)
    assert list(prints) == [""] and read[n_read:] == list(range(N_FIRST))
    assert teacher.state() == state

    assert data_prints(stream()[0]) == prints
    assert data_prints(stream("maybe", since=N_FIRST)[0]) == prints
    assert data_prints(stream("maybe", since=N_FIRST - 1)[0]) != prints


# --- the agent ------------------------------------------------------------------------


def intents(path):
    rows = [{"text": f"please {word} it", "label": word} for word in ("buy", "sell")] * 9
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("name", ["starspace", "fasttext"])
def test_processes_learn_with_one_replica_and_rows_of_their_own(root, tmp_path, name):
    pytest.importorskip("numba")
    data = tmp_path / "data.jsonl"
    if name == "fasttext":
        intents(data)
    else:
        lines = [TALK.replace('"hello"', f'"hello {n}"') for n in range(20)]
        data.write_text("".join(lines))
    with using_ops(get_dialog_ops()):
        checked = load_config(root / "configs" / f"{name}.cfg", {"paths.train": str(data)})
        parts = resolve_config(checked)
        teacher, agent = split_of(checked, parts, "train", training=True), parts["agent"]
        agent.initialize(teacher, tokenizer=parts["tokenizer"], seed=0)
        optimizer = parts["training"]["optimizer"]
        state = lay_out_state(optimizer, KEY, agent.parameters.values)
        agent.to_disk(tmp_path)
        arrays = {VALUES: agent.parameters.values, **state}
        worker = make_process_worker(
            1, arrays, write_config(checked.config), None, 2, data_prints(teacher), str(tmp_path)
        )
    replica = worker.agent
    assert replica.rows_apart.least and not agent.rows_apart.least
    assert replica.rows_apart is not agent.replica().rows_apart
    assert numpy.shares_memory(replica.parameters.values, agent.parameters.values)
    assert not numpy.shares_memory(replica.parameters.gradients, agent.parameters.gradients)
    assert replica.state() == agent.state()
    for known in state:
        mine = worker.optimizer.state_arrays(KEY, replica.parameters.values)
        assert any(numpy.shares_memory(array, state[known]) for array in mine)


def test_processes_that_cannot_be_given_the_agent_say_where_it_was_to_go(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    text = RANKER.replace("width = 16", "width = 1")
    text = text.replace('Adam.v1"', 'SGD.v1"\nuse_averages = false')
    n_bytes = 4 * train(text, stdout=io.StringIO()).n_parameters
    # Weights and a moment go into shared memory, but their description into no file.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * -(-n_bytes // 64) * 64, limits[1]))
    try:
        with pytest.raises(DialogError) as refused:
            train(text, overrides=PROCESSES, stdout=io.StringIO())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    pattern = rf"{folder}/thincdialog-\w+  could not be written: File too large\. Worker processes "
    assert re.match(pattern, str(refused.value))
    assert "free some space, or set TMPDIR to another folder" in str(refused.value)
    assert list(folder.iterdir()) == []


SLEEPING = """
import multiprocessing, pathlib, time
if multiprocessing.parent_process() is not None:
    pathlib.Path("begun").touch()
    time.sleep(600)
"""


def test_processes_whose_parent_is_killed_take_its_folder_away(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "config.cfg").write_text(RANKER)
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    command = "train config.cfg --code sleeping.py --hogwild.workers 2 --hogwild.executor process"
    process = subprocess.Popen(
        [sys.executable, "-m", "thincdialog", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    (folder,) = (tmp_path / "tmp").glob("thincdialog-*")
    assert (folder / "weights.npy").exists()
    process.kill()
    assert process.communicate(timeout=20)[1] == ""
    until = time.monotonic() + 10
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not folder.exists()
