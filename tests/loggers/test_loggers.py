import io
import json
import math
import re
import time

import pytest

from tests.training.examples import Terminal
from thincdialog.contract import CodeError
from thincdialog.errors import OutputError
from thincdialog.loggers import LoggedRun, Progress
from thincdialog.loggers.chain import Chain
from thincdialog.loggers.console import REFRESH_SECONDS, Console, ConsoleLogger, duration
from thincdialog.loggers.jsonl import JSONL
from thincdialog.loggers.row_file import read_rows
from thincdialog.registry import registry


def make_info(step=0, **changes):
    of_training = {
        "loss_per_example": 2.5, "learn_rate": 0.001, "gradient_norm": 1.5,
        "examples_per_second": 12345.6,
    }  # fmt: skip
    return {
        "step": step, "epoch": step / 100, "examples": step * 64, "seconds": 3.7,
        "score_name": "hits@1", "score": 0.25, "is_best": False, "total_steps": 200,
        "scores": {"examples": 500.0, "mrr": 0.5, "hits@1": 0.25, "loss": 3.0},
        "tokens_per_second": None, **(of_training if step else dict.fromkeys(of_training)),
        **changes,
    }  # fmt: skip


def make_progress(step=1):
    return Progress(step, step / 100, step * 64, (2.5, "example"), 200)


class Loop:
    """Calls a logger as a training loop does."""

    def __init__(self, setup, stdout=None, stderr=None, **run):
        self.run = LoggedRun({}, **run)
        self.log_step, self.finalize = setup(
            self.run, stdout or io.StringIO(), stderr or io.StringIO()
        )

    def step(self, progress, info=None):
        self.run.progress_now = lambda: progress
        self.log_step(info)


def run(setup, rows, stdout=None, stderr=None, **run):
    stdout, stderr = stdout or io.StringIO(), stderr or io.StringIO()
    loop = Loop(setup, stdout, stderr, **run)
    for info in rows:
        loop.step(make_progress())
        loop.step(make_progress(info["step"]), info)
    loop.finalize()
    return stdout.getvalue(), stderr.getvalue()


def test_console_table():
    rows = [make_info(0), make_info(150, is_best=True, seconds=3725.0)]
    out, err = run(Console(), rows)
    assert err == ""
    header, line, first, second = out.splitlines()
    assert header.split() == [
        *("epoch", "step", "examples", "loss/example", "hits@1", "mrr", "loss"),
        *("examples/s", "time", "best"),
    ]
    assert set(line) == {"-", " "}
    assert first.split() == ["0.00", "0", "0", "-", "0.2500", "0.5000", "3.0000", "-", "0:03"]
    assert second.split() == [
        *("1.50", "150", "9,600", "2.5000", "0.2500", "0.5000", "3.0000"),
        *("12,346", "1:02:05", "*"),
    ]
    # Right-aligned: every value ends in the same column as its header.
    for name, value in [("loss/example", "2.5000"), ("examples/s", "12,346"), ("time", "1:02:05")]:
        assert header.index(name) + len(name) == second.index(value) + len(value)


def columns_of(*rows, **options):
    """Return the names of the columns between the loss and the speed, and the lines."""
    lines = run(Console(**options), rows)[0].splitlines()
    header = lines[0].split()
    return header[4 : header.index("examples/s")], [line.split() for line in lines[2:]]


def test_console_chooses_scores():
    assert columns_of(make_info(1, scores={}, score=None))[0] == []
    names, (row,) = columns_of(make_info(1), scores=["mrr", "absent"])
    assert names == ["mrr", "absent"] and row[4:6] == ["0.5000", "-"]
    scores = {"padding_fraction": 0.1, "truncated_contexts": 0.2, "tokens": 9.0, "f1": 0.5}
    assert columns_of(make_info(1, scores=scores))[0] == ["f1", "padding"]


def test_console_shows_padding_of_models_that_pad():
    def columns(scores, **first):
        return columns_of(
            make_info(0, scores=scores, **first), make_info(1, padding_fraction=0.1234)
        )

    names, (before, after) = columns({"hits@1": 0.5, "padding_fraction": 0.5})
    place = 4 + names.index("padding")
    assert (before[place], after[place]) == ("-", "12.3%") and names[-1] == "padding"
    assert "padding" not in columns({"hits@1": 0.5, "padding_fraction": 0.0})[0]
    assert "padding" in columns({}, padding_fraction=0.5)[0]


def test_console_shows_the_optimised_metric_of_each_task():
    names = ["accuracy", "loss", "a/accuracy", "a/loss", "a/truncated_contexts", "b/accuracy"]
    scores = dict.fromkeys([*names, "macro/accuracy", "macro/loss"], 0.5)

    def shown(score):
        return columns_of(make_info(1, scores=scores, score_name=score))[0]

    assert shown("macro/accuracy") == ["macro/accuracy", "accuracy", "a/accuracy", "b/accuracy"]
    assert shown("b/accuracy") == ["b/accuracy", "accuracy", "a/accuracy", "macro/accuracy"]
    assert shown("macro/loss") == ["macro/loss", "loss", "a/loss", "accuracy"]


@pytest.mark.parametrize("no_color, is_bold", [("", True), ("1", False)])
def test_console_colour_only_on_a_terminal_without_no_color(monkeypatch, no_color, is_bold):
    monkeypatch.setenv("NO_COLOR", no_color)
    rows = [make_info(1), make_info(2, is_best=True)]
    out, _ = run(Console(), rows, stdout=Terminal())
    assert ("\x1b[1m" in out.splitlines()[-1]) is is_bold
    assert "\x1b" not in out.splitlines()[-2]
    out, _ = run(Console(), rows)
    assert "\x1b" not in out


def test_console_bar_on_a_terminal():
    stderr = Terminal()
    loop = Loop(Console(), stderr=stderr)
    assert "step 0, 00:00" in stderr.getvalue() and "%" not in stderr.getvalue()
    loop.step(make_progress(50))
    shown = stderr.getvalue()
    assert "25%" in shown and "step 50/200" in shown
    assert "loss 2.5000/example" in shown and "examples/s, 00:0" in shown and "left" in shown
    time.sleep(REFRESH_SECONDS)
    loop.step(make_progress(60)._replace(workers="workers 900+800/s"))
    assert "examples/s, workers 900+800/s" in stderr.getvalue()
    loop.step(make_progress(300), make_info(300, total_steps=None))
    # More steps than expected move the end of the bar, without a warning.
    loop.step(Progress(301, 3.0, 301 * 64, (1.5, "token"), 200))
    loop.finalize()


@pytest.mark.parametrize("columns, n_scores", [(60, 1), (80, 1), (100, 3), (200, 4)])
def test_console_fits_the_terminal(monkeypatch, columns, n_scores):
    monkeypatch.setenv("COLUMNS", str(columns))
    scores = dict.fromkeys(["hits@1", "mrr", "accuracy", "f1", "loss"], 0.5)
    out, _ = run(Console(), [make_info(1, scores=scores)], stdout=Terminal())
    header = out.splitlines()[0].split()
    assert header[4 : header.index("examples/s")] == ["hits@1", "mrr", "accuracy", "f1"][:n_scores]
    # Columns that were asked for are kept.
    given, _ = run(Console(scores=["mrr", "f1", "loss"]), [make_info(1)], stdout=Terminal())
    assert given.split()[4:7] == ["mrr", "f1", "loss"]


def test_console_time_left_of_a_resumed_run_counts_its_own_steps():
    stderr = Terminal()
    logged = LoggedRun({}, first_step=1000, total_steps=2000)
    logger = ConsoleLogger(logged, io.StringIO(), stderr)
    logger.bar.start_t -= 10
    logged.progress_now = lambda: make_progress(1010)._replace(total_steps=2000)
    logger.log_step(None)
    # 10 steps in 10 seconds: 990 more take 16:30, whereas 1,010 steps in 10 seconds would give 10.
    assert re.search(r"step 1010/2000, .*, 1[56]:\d\d left", stderr.getvalue())
    logger.finalize()


def test_console_rate_of_a_resumed_run_counts_its_own_examples():
    stderr = Terminal()
    logged = LoggedRun({}, first_step=1000, total_steps=2000)
    logger = ConsoleLogger(logged, io.StringIO(), stderr)
    for step in (1010, 1020):
        logged.progress_now = lambda step=step: make_progress(step)
        logger.log_step(None)
        time.sleep(REFRESH_SECONDS)
    rates = re.findall(r"([\d,]+) examples/s", stderr.getvalue())
    n_examples = make_progress(1020).examples - make_progress(1010).examples
    assert 0 < int(rates[-1].replace(",", "")) <= n_examples / REFRESH_SECONDS
    logger.finalize()


@pytest.mark.parametrize("stream, progress_bar", [(io.StringIO, True), (Terminal, False)])
def test_console_no_bar(stream, progress_bar):
    _, err = run(Console(progress_bar=progress_bar), [make_info(1)], stderr=stream())
    assert err == ""


def test_console_bar_looks_only_now_and_then():
    stderr = Terminal()
    loop = Loop(Console(), stderr=stderr, total_steps=1000)
    loop.step(make_progress(1))
    before = stderr.getvalue()
    loop.step(make_progress(2))
    assert stderr.getvalue() == before
    time.sleep(REFRESH_SECONDS)
    loop.step(make_progress(3))
    assert "step 3/200" in stderr.getvalue()[len(before) :]
    loop.finalize()


def test_duration():
    assert list(map(duration, (0, 59.9, 60, 3600))) == ["0:00", "0:59", "1:00", "1:00:00"]


def test_jsonl_adds_rows(tmp_path):
    path = tmp_path / "new" / "log.jsonl"
    rows = [make_info(0), make_info(10, scores={"f1": math.nan, "mrr": 0.5})]
    assert run(JSONL(str(path)), rows) == ("", "")
    loop = Loop(JSONL(str(path)))
    loop.log_step(make_info(0))  # It is in the file at once.
    read = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    loop.finalize()
    assert read == [make_info(0), make_info(10, scores={"f1": None, "mrr": 0.5}), make_info(0)]


def test_jsonl_resumed_run_writes_no_row_twice(tmp_path):
    path = tmp_path / "log.jsonl"
    run(JSONL(str(path)), [make_info(step) for step in (0, 10, 20, 30, 0, 10, 20, 30)])
    with path.open("a") as file:
        file.write('{"step": 4')
    run(JSONL(str(path)), [make_info(20)], first_step=15)
    assert [row["step"] for row in read_rows(path)] == [0, 10, 20, 30, 0, 10, 20]


def test_jsonl_unwritable_is_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "log.jsonl", tmp_path):
        with pytest.raises(OutputError, match=r"thincdialog\.JSONL\.v1 cannot write"):
            Loop(JSONL(str(path)))


def test_jsonl_adds_nothing_to_the_data(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "a"}\n')
    config = {"paths": {"log": str(path)}, "tasks": {"a": {"train": ["none.jsonl", str(path)]}}}
    with pytest.raises(OutputError, match=r"add rows to the file of 'tasks\.a\.train'"):
        JSONL(str(path))(LoggedRun(config), io.StringIO(), io.StringIO())
    assert path.read_text() == '{"text": "a"}\n'


def Recorder(name, calls, fails=()):
    def note(method, value):
        calls.append((name, method, value))
        if method in fails:
            raise OSError("no\nnetwork")

    def setup(run, stdout, stderr):
        note("setup", run.first_step)

        def log_step(info):
            if info is None:
                note("step", run.progress.step)
            else:
                note("row", info["step"])

        return log_step, lambda: note("finalize", type(run.error).__name__)

    return setup


def test_chain_calls_all_in_order_and_finalizes_all():
    calls, stderr = [], io.StringIO()
    chain = Chain(Recorder("one", calls), Recorder("two", calls, {"finalize"}))
    loop = Loop(chain, stderr=stderr, first_step=7)
    loop.step(make_progress(3))
    loop.step(make_progress(4), make_info(4))
    loop.run.error = KeyboardInterrupt()
    loop.finalize()
    assert calls == [
        ("one", "setup", 7), ("two", "setup", 7),
        ("one", "step", 3), ("two", "step", 3), ("one", "row", 4), ("two", "row", 4),
        ("two", "finalize", "KeyboardInterrupt"), ("one", "finalize", "KeyboardInterrupt"),
    ]  # fmt: skip
    assert re.search(
        r"Recorder has failed \(.+ in note\(\): OSError: no network\)", stderr.getvalue()
    )


def test_chain_one_that_fails_leaves_the_others_alone_and_is_reported_once():
    calls, stderr = [], io.StringIO()
    chain = Chain(Recorder("one", calls, {"step", "row", "finalize"}), Recorder("two", calls))
    # The same holds in a chain of chains.
    loop = Loop(Chain(chain), stderr=stderr)
    for step in (1, 2):
        loop.step(make_progress(step))
        loop.step(make_progress(step), make_info(step))
    loop.finalize()
    # Rows are tried again, steps are not.
    assert [call[1:] for call in calls if call[0] == "one"] == [
        ("setup", 0), ("step", 1), ("row", 1), ("row", 2), ("finalize", "NoneType"),
    ]  # fmt: skip
    assert len([call for call in calls if call[0] == "two"]) == 6
    assert re.fullmatch(
        r"Recorder has failed \(tests/loggers/test_loggers.py:\d+  in note\(\): OSError: no "
        r"network\)\. Training continues; rows may be missing there\.\n",
        stderr.getvalue(),
    )


def test_chain_exception_of_setup_is_an_error_and_others_are_finalized(tmp_path):
    with pytest.raises(OSError, match="no\nnetwork"):
        Loop(Chain(Recorder("one", [], {"setup"})))
    calls = []
    with pytest.raises(OutputError):
        Loop(Chain(Recorder("one", calls), JSONL(str(tmp_path))))
    assert calls == [("one", "setup", 0), ("one", "finalize", "NoneType")]


@pytest.mark.parametrize(
    "setup",
    [
        lambda run, stdout, stderr: None,
        lambda run, stdout, stderr: (print, None),
        lambda run, stdout, stderr: [print, print],
        lambda run, stdout, stderr: (print, print, print),
    ],
)
def test_chain_refuses_objects_that_are_no_loggers(setup):
    said = r"test_loggers.py:\d+  <lambda>\(\) returned .* return the pair \(log_step, finalize\)"
    with pytest.raises(CodeError, match=said):
        Loop(Chain(setup))


def test_registered_loggers_build_from_a_config(tmp_path):
    path = tmp_path / "log.jsonl"
    table = {"@loggers": "thincdialog.Console.v1", "scores": ["mrr"]}
    file = {"@loggers": "thincdialog.JSONL.v1", "path": str(path)}
    chain = {"@loggers": "thincdialog.Chain.v1", "*": {"table": table, "file": file}}
    out, _ = run(registry.resolve({"logger": chain})["logger"], [make_info(5)])
    assert len(out.splitlines()) == 3
    assert json.loads(path.read_text(encoding="utf8"))["step"] == 5
