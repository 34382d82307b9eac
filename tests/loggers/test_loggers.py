import io
import json
import math
import time

import pytest

from thincdialog.errors import OutputError
from thincdialog.loggers import Logger, Progress
from thincdialog.loggers.chain import Chain
from thincdialog.loggers.console import REFRESH_SECONDS, Console, duration
from thincdialog.loggers.jsonl import JSONL
from thincdialog.registry import registry


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def make_info(step=0, **changes):
    info = {
        "step": step,
        "epoch": step / 100,
        "examples": step * 64,
        "loss_per_example": 2.5 if step else None,
        "score_name": "hits@1",
        "score": 0.25,
        "scores": {"examples": 500.0, "mrr": 0.5, "hits@1": 0.25, "loss": 3.0},
        "is_best": False,
        "learn_rate": 0.001 if step else None,
        "gradient_norm": 1.5 if step else None,
        "examples_per_second": 12345.6 if step else None,
        "tokens_per_second": None,
        "seconds": 3.7,
        "total_steps": 200,
    }
    return {**info, **changes}


def make_progress(step=1):
    return Progress(step, step / 100, step * 64, 2.5, 200)


def run(setup, rows, stdout=None, stderr=None):
    stdout, stderr = stdout or io.StringIO(), stderr or io.StringIO()
    logger = setup(stdout, stderr, None)
    for info in rows:
        logger.step(make_progress())
        logger.row(info)
    logger.finish()
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
    # Right-aligned: every value ends where its column's name ends.
    for name, value in [("loss/example", "2.5000"), ("examples/s", "12,346"), ("time", "1:02:05")]:
        assert header.index(name) + len(name) == second.index(value) + len(value)


def test_console_without_dev_data():
    out, _ = run(Console(), [make_info(1, scores={}, score=None)])
    assert "hits@1" not in out and "2.5000" in out


def test_console_named_scores():
    out, _ = run(Console(scores=["mrr", "absent"]), [make_info(1)])
    header, _, row = out.splitlines()
    assert header.split()[4:6] == ["mrr", "absent"]
    assert row.split()[4:6] == ["0.5000", "-"]


def test_console_leaves_out_what_is_no_score():
    scores = {"padding_fraction": 0.1, "truncated_contexts": 0.2, "tokens": 9.0, "f1": 0.5}
    out, _ = run(Console(), [make_info(1, scores=scores)])
    assert out.split()[4:7] == ["f1", "padding", "examples/s"]


def test_console_shows_padding_of_models_that_pad():
    def columns(scores, **first):
        rows = [make_info(0, scores=scores, **first), make_info(1, padding_fraction=0.1234)]
        header, _, before, after = run(Console(), rows)[0].splitlines()
        return header.split(), before.split(), after.split()

    header, before, after = columns({"hits@1": 0.5, "padding_fraction": 0.5})
    place = header.index("padding")
    assert (before[place], after[place]) == ("-", "12.3%")
    assert header[place + 1] == "examples/s" and len(after) == len(before) == len(header) - 1
    assert "padding" not in columns({"hits@1": 0.5, "padding_fraction": 0.0})[0]
    assert "padding" in columns({}, padding_fraction=0.5)[0]


def test_console_shows_the_optimised_metric_of_each_task():
    names = ["accuracy", "loss", "a/accuracy", "a/loss", "a/truncated_contexts", "b/accuracy"]
    scores = dict.fromkeys([*names, "macro/accuracy", "macro/loss"], 0.5)

    def shown(score):
        header = run(Console(), [make_info(1, scores=scores, score_name=score)])[0].split()
        return header[4 : header.index("examples/s")]

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
    logger = Console()(io.StringIO(), stderr, None)
    assert "step 0 [" in stderr.getvalue() and "%" not in stderr.getvalue()
    logger.step(make_progress(50))
    shown = stderr.getvalue()
    assert "25%" in shown and "step 50/200" in shown
    assert "epoch 0.50" in shown and "loss 2.5000/example" in shown and "examples/s" in shown
    logger.row(make_info(300, total_steps=None))
    # More steps than were expected move the end, and nothing warns.
    logger.step(Progress(301, 3.0, 301 * 64, None, 200))
    logger.finish()


@pytest.mark.parametrize("stream, progress_bar", [(io.StringIO, True), (Terminal, False)])
def test_console_no_bar(stream, progress_bar):
    _, err = run(Console(progress_bar=progress_bar), [make_info(1)], stderr=stream())
    assert err == ""


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_console_step_is_cheap(stream):
    logger = Console()(io.StringIO(), stream(), 100_000)
    steps = [make_progress(step) for step in range(20_000)]
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for progress in steps:
            logger.step(progress)
        best = min(best, (time.perf_counter() - start) / len(steps))
    logger.finish()
    assert best < 20e-6


def test_console_bar_looks_only_now_and_then():
    stderr = Terminal()
    logger = Console()(io.StringIO(), stderr, 1000)
    logger.step(make_progress(1))
    before = stderr.getvalue()
    logger.step(make_progress(2))
    assert stderr.getvalue() == before
    time.sleep(REFRESH_SECONDS)
    logger.step(make_progress(3))
    assert "step 3/200" in stderr.getvalue()[len(before) :]
    logger.finish()


@pytest.mark.parametrize(
    "seconds, text", [(0, "0:00"), (59.9, "0:59"), (60, "1:00"), (3600, "1:00:00")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_jsonl_adds_rows(tmp_path):
    path = tmp_path / "new" / "log.jsonl"
    rows = [make_info(0), make_info(10, scores={"f1": math.nan, "mrr": 0.5})]
    assert run(JSONL(str(path)), rows) == ("", "")
    run(JSONL(str(path)), [make_info(0)])
    read = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    assert read == [make_info(0), make_info(10, scores={"f1": None, "mrr": 0.5}), make_info(0)]


def test_jsonl_row_is_in_the_file_at_once(tmp_path):
    path = tmp_path / "log.jsonl"
    logger = JSONL(str(path))(io.StringIO(), io.StringIO(), None)
    logger.row(make_info(7))
    assert json.loads(path.read_text(encoding="utf8"))["step"] == 7
    logger.finish()


def test_jsonl_unwritable_is_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "log.jsonl", tmp_path):
        with pytest.raises(OutputError, match=r"thincdialog\.JSONL\.v1 cannot write"):
            JSONL(str(path))(io.StringIO(), io.StringIO(), None)


class Recorder(Logger):
    def __init__(self, name, calls, fails=False):
        self.name, self.calls, self.fails = name, calls, fails

    def step(self, progress):
        self.calls.append((self.name, "step", progress.step))

    def row(self, info):
        self.calls.append((self.name, "row", info["step"]))

    def finish(self):
        self.calls.append((self.name, "finish", None))
        if self.fails:
            raise OSError("disk full")


def test_chain_tells_all_in_order_and_finishes_all():
    calls = []
    chain = Chain(
        lambda *given: Recorder("one", calls, fails=True), lambda *given: Recorder("two", calls)
    )
    logger = chain(io.StringIO(), io.StringIO(), None)
    logger.step(make_progress(3))
    logger.row(make_info(4))
    with pytest.raises(OSError, match="disk full"):
        logger.finish()
    assert calls == [
        ("one", "step", 3), ("two", "step", 3), ("one", "row", 4), ("two", "row", 4),
        ("one", "finish", None), ("two", "finish", None),
    ]  # fmt: skip


def test_chain_finishes_what_was_set_up_when_a_later_one_fails(tmp_path):
    calls = []
    chain = Chain(lambda *given: Recorder("one", calls), JSONL(str(tmp_path)))
    with pytest.raises(OutputError):
        chain(io.StringIO(), io.StringIO(), None)
    assert calls == [("one", "finish", None)]


def test_registered_loggers_build_from_a_config(tmp_path):
    path = tmp_path / "log.jsonl"
    config = {
        "logger": {
            "@loggers": "thincdialog.Chain.v1",
            "*": {
                "table": {"@loggers": "thincdialog.Console.v1", "scores": ["mrr"]},
                "file": {"@loggers": "thincdialog.JSONL.v1", "path": str(path)},
            },
        }
    }
    out, _ = run(registry.resolve(config)["logger"], [make_info(5)])
    assert len(out.splitlines()) == 3
    assert json.loads(path.read_text(encoding="utf8"))["step"] == 5
