"""The files log.jsonl and scores.json of a run, after crashes and with full disks."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import limited
from tests.training.examples import quietly_train
from thincdialog.api import OutputError, TrainingError, registry
from thincdialog.loggers.row_file import RowFile, read_rows
from thincdialog.runs.run_log import RunLog, is_running, read_log
from thincdialog.runs.scores_file import read_scores

SHORT = {"training__max_epochs": 2.0, "training__n_samples": 0}


def run(folder, logger=None, **more):
    blocks = {} if logger is None else {"training__logger": logger}
    return quietly_train(output=folder, **{**SHORT, **blocks, **more})


def test_run_log_has_a_row_for_each_evaluation_and_scores_come_last(tmp_path):
    extra = tmp_path / "extra.jsonl"
    logger = {"@loggers": "thincdialog.JSONL.v1", "path": str(extra)}
    result, _ = run(tmp_path / "run", logger)
    rows = read_log(tmp_path / "run")
    assert rows == read_rows(extra) == read_log(tmp_path / "run" / "log.jsonl")
    assert [row["epoch"] for row in rows] == [0.0, 1.0, 2.0]
    scores = read_scores(tmp_path / "run")
    assert scores["scores"] == result.scores and scores["baselines"] == result.baselines
    assert scores["stopped_because"] == "max_epochs = 2 reached"
    assert rows[-1]["scores"]["examples"] == result.scores["dev"]["examples"]
    assert not is_running(tmp_path / "run")


def test_run_log_resumes_without_rows_beyond(tmp_path):
    with RunLog(tmp_path) as log:
        for step in (0, 10, 20, 30):
            log.log_step({"step": step})
        log.rows.file.write(b'{"step": 40, "sc')
        log.rows.file.flush()
        (tmp_path / "scores.json").write_text("{}")
        # Half a row does not count.
        assert [row["step"] for row in read_log(tmp_path)] == [0, 10, 20, 30]
    with RunLog(tmp_path) as log:
        log.begin(resume_step=20)
        assert not (tmp_path / "scores.json").exists()
        log.log_step({"step": 30})
    assert [row["step"] for row in read_log(tmp_path)] == [0, 10, 20, 30]


def test_run_log_knows_whether_a_run_is_in_progress(tmp_path):
    assert not is_running(tmp_path)
    with RunLog(tmp_path):
        assert is_running(tmp_path)
        in_use = "belongs to a training run that is still in progress"
        with pytest.raises(OutputError, match=in_use):
            RunLog(tmp_path)
    assert not is_running(tmp_path)


@pytest.mark.slow
def test_run_log_killed_run_is_not_running(tmp_path):
    code = (
        "import sys, time; from pathlib import Path;"
        "from thincdialog.runs.run_log import RunLog;"
        "log = RunLog(Path(sys.argv[1])); log.log_step({'step': 3}); print('ready', flush=True);"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert is_running(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not is_running(tmp_path)
    assert read_log(tmp_path) == [{"step": 3}]


def test_run_log_rows_that_a_full_disk_refused_come_with_the_next_one(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = RowFile(path)
    rows.add({"step": 0})
    with limited("RLIMIT_FSIZE", path.stat().st_size + 5):
        for step in (1, 2):
            with pytest.raises(OSError):
                rows.add({"step": step})
        assert [row["step"] for row in read_rows(path)] == [0]
    rows.add({"step": 3})
    rows.close()
    assert [row["step"] for row in read_rows(path)] == [0, 1, 2, 3]


@registry.loggers("test.NoNetwork.v1")
def no_network():
    def log_step(info):
        if info is not None and info["epoch"] >= 1:
            raise ConnectionError("no route to host")

    return lambda run, stdout, stderr: (log_step, lambda: None)


def test_run_log_training_continues_without_its_logger(tmp_path):
    result, shown = run(tmp_path / "run", {"@loggers": "test.NoNetwork.v1"})
    assert re.fullmatch(
        r"Saving to \S+/run\nComputing with .*\n"
        r"no_network has failed \(tests/runs/test_run_log.py:\d+  in log_step\(\): "
        r"ConnectionError: no route to host\). Training continues; rows may be missing there.\n"
        r"hits@1 on dev was still improving at the end. .*\n",
        shown,
    )
    assert result.stopped_because == "max_epochs = 2 reached"
    assert (tmp_path / "run" / "model-best").is_dir()
    assert len(read_log(tmp_path / "run")) == 3


@registry.loggers("test.Calls.v1")
def calls(path: str):
    """A logger as a user of spaCy's loggers would write it."""

    def setup(run, stdout=sys.stdout, stderr=sys.stderr):
        told = [run.config["training"]["max_epochs"], run.progress]

        def log_step(info):
            told.append((run.progress.step, None if info is None else info["step"]))

        def finalize():
            Path(path).write_text(json.dumps(told))

        return log_step, finalize

    return setup


def test_run_log_each_step_is_logged_once_as_in_spacy(tmp_path):
    path = str(tmp_path / "calls.json")
    run(tmp_path / "run", {"@loggers": "test.Calls.v1", "path": path})
    epochs, progress, *told = json.loads(Path(path).read_text())
    rows = [row["step"] for row in read_log(tmp_path / "run")]
    assert rows[0] == 0 and (epochs, progress) == (2.0, None)
    assert told == [[step, step if step in rows else None] for step in range(rows[-1] + 1)]


def test_run_log_failed_run_has_no_scores(tmp_path):
    told = []

    @registry.loggers("test.Told.v1")
    def told_of_the_end():
        return lambda run, stdout, stderr: (lambda info: None, lambda: told.append(type(run.error)))

    wild = {"training__optimizer__learn_rate": 1e30, "training__optimizer__grad_clip": 0.0}
    with pytest.raises(TrainingError):
        run(tmp_path / "run", {"@loggers": "test.Told.v1"}, **wild)
    assert told == [TrainingError]
    assert read_scores(tmp_path / "run") == {} and read_log(tmp_path / "run")
    assert not is_running(tmp_path / "run")
