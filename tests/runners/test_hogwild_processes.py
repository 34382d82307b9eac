"""Worker processes read the same data as their parent, and get its agent through a folder."""

import io
import json
import os
import re
import tempfile
from contextlib import contextmanager

import numpy
import pytest

from tests.agents.topics import CONFIG as TOPICS
from tests.agents.topics import topics, write_topics
from tests.cli.mistakes import CONFIG as TALKS
from tests.cli.mistakes import OTHER, TALK
from tests.loader.test_starting import run_script
from tests.processes import limited, no_longer_than, slow
from tests.training.examples import RANKER
from thincdialog.api import (
    DataError,
    DialogError,
    Experiment,
    train,
)
from thincdialog.optimizers.state import KEY
from thincdialog.runners import shared_arrays
from thincdialog.runners.data_prints import N_FIRST
from thincdialog.runners.hogwild_processes import (
    make_process_worker,
    shared_with_processes,
)
from thincdialog.runs.run_log import read_log

PROCESSES = {"runner.@runners": "thincdialog.Hogwild.v1", "runner.executor": "process"}
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
STREAM = f"{ONE}streaming = true\n"


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [ONE, STREAM, ONE + COFFEE, STREAM + COFFEE])
def test_processes_refuse_data_in_another_order(tmp_path, tmp_path_factory, monkeypatch, tasks):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    # The whole session uses one path, because a process imports a file only once.
    code = tmp_path_factory.getbasetemp() / "set_of_texts.py"
    code.write_text(OWN)
    text = RANKER[: RANKER.index("[tasks.coffee]")] + RANKER[RANKER.index("[tokenizer]") :]
    text = text.replace('"inline"', '"batch"') + tasks
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    with pytest.raises(DataError) as refused:
        train(text, output=tmp_path / "out", code=code, overrides=PROCESSES, **streams)
    said = str(refused.value)
    assert "the training data of a worker process differs from the data of the run, or is" in said
    assert '(a set of texts does not). Fix that, or set [runner] executor = "thread"' in said
    assert "\n" not in said and re.search(r"\(read by worker \d\)$", said)
    assert not (tmp_path / "out").exists()


@contextmanager
def begun(config, overrides, between=lambda: None):
    """Share an experiment as a run does. Yield it, and the worker that a process would make."""
    experiment = Experiment.from_config(config, overrides)
    with experiment.working():
        teacher = experiment.training_split()
        experiment.initialize(teacher, io.StringIO())
        with shared_with_processes(experiment, teacher, 2, 2) as (_, sent, inherited):
            between()
            yield experiment, make_process_worker(1, **sent, **inherited)


@pytest.mark.parametrize("n_lines, streaming", [(9, False), (N_FIRST + 9, True), (9, True)])
def test_processes_refuse_a_file_that_is_written_while_they_start(tmp_path, n_lines, streaming):
    path = tmp_path / "talk.jsonl"
    path.write_text(OTHER + TALK * n_lines)
    settings = {"paths.train": str(path), "tasks.talk.streaming": streaming}
    said = f"{path}  the training data of a worker process differs from the data of the run"
    with pytest.raises(DataError, match=re.escape(said)):
        # A long stream is cut after the episodes that are compared.
        with begun(TALKS, settings, lambda: os.truncate(path, n_lines * len(TALK))):
            pass


# --- the agent ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["starspace", slow("fasttext")])
@pytest.mark.slow
def test_processes_train_a_replica_with_separate_rows(root, tmp_path, name):
    pytest.importorskip("numba")
    data = tmp_path / "data.jsonl"
    if name == "fasttext":
        rows = [{"text": f"please {word} it", "label": word} for word in ("buy", "sell")] * 9
        lines = [json.dumps(row) + "\n" for row in rows]
    else:
        lines = [TALK.replace('"hello"', f'"hello {n}"') for n in range(20)]
    data.write_text("".join(lines))
    config = root / "configs" / f"{name}.cfg"
    with begun(config, {"paths.train": str(data)}) as (experiment, worker):
        agent, replica = experiment.agent, worker.agent
        assert replica.rows_apart.least and not agent.rows_apart.least
        assert replica.rows_apart is not agent.replica().rows_apart
        assert replica.state() == agent.state()
        replica.weights[7] = agent.weights[7] + 1  # Weights are shared, gradients are not.
        assert replica.weights.tobytes() == agent.weights.tobytes()
        assert not numpy.shares_memory(replica.parameters.gradients, agent.parameters.gradients)
        for optimizer in (worker.optimizer, experiment.optimizer):
            for array in getattr(optimizer, "state_arrays", lambda *_: [])(KEY, agent.weights):
                array[3] += 1
                assert array[3] in (1, 2)


def test_processes_name_the_folder_if_the_agent_cannot_be_written(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    text = RANKER.replace("width = 16", "width = 1")
    text = text.replace('Adam.v1"', 'SGD.v1"\nuse_averages = false')
    n_bytes = 4 * train(text, stdout=io.StringIO()).n_parameters
    # A mark, two numbers, weights and a moment fit into shared memory, but the file with the
    # description of the model is too large.
    monkeypatch.setattr(shared_arrays, "ALIGNMENT", 64)
    with limited("RLIMIT_FSIZE", 2 * 64 + 2 * -(-n_bytes // 64) * 64):
        with pytest.raises(DialogError) as refused:
            train(text, overrides=PROCESSES, stdout=io.StringIO())
    pattern = rf"{folder}  could not be written: File too large\. Workers "
    assert re.match(pattern, str(refused.value))
    assert "free some space, or set TMPDIR to another folder" in str(refused.value)
    assert list(folder.iterdir()) == []


def test_processes_say_if_they_cannot_share_semaphores():
    experiment = Experiment.from_config(RANKER, PROCESSES)
    with experiment.working():
        teacher = experiment.training_split()
        experiment.initialize(teacher, io.StringIO())
        sharing = shared_with_processes(experiment, teacher, 2, 2)
        said = r"Too many open files\. Free .* /dev/shm, raise the limit .*, or set executor ="
        with limited("RLIMIT_NOFILE", 0), pytest.raises(DialogError, match=said):
            sharing.__enter__()


@pytest.mark.slow
def test_processes_accept_streamed_texts_without_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_topics(tmp_path)
    rows = topics(80)
    assert any(not row["intents"] for row in rows)
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "t.cfg").write_text(TOPICS)
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    overrides = {**PROCESSES, "runner.workers": 2, "world.batcher.size": 4}
    overrides |= {"tasks.topics.train": "train.jsonl", "tasks.topics.streaming": True}
    for epochs in (1.5, 2.0):
        overrides["training.max_epochs"] = epochs
        resumes = {"resume": epochs == 2.0}
        train("t.cfg", output=tmp_path / "out", overrides=overrides, **resumes, **streams)
    assert read_log(tmp_path / "out")[-1]["examples"] == 2 * len(rows)


@pytest.mark.slow
def test_processes_report_a_script_without_a_main_guard(tmp_path, root):
    """The processes end before they read their arguments, which must not block the parent."""
    script = (
        f"from thincdialog.api import train\ntrain({RANKER!r}, overrides={PROCESSES}, output='o')"
    )
    with no_longer_than(60):
        done = run_script(tmp_path, root, script)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "before it could start" in line]
    assert line.endswith('under `if __name__ == "__main__":`, or set executor = "thread"')
    assert "train() was used while a worker was importing the script" in done.stderr
