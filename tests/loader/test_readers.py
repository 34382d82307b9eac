"""Workers that read data give the same examples in the same order, whatever happens to them."""

import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.examples.talk import batches_left, rounds, through_json, write_spoken
from tests.loader.sources import Answered, Broken, Generated, Modules, Numbers
from tests.processes import slow
from tests.training.examples import REPLIES, quietly_train
from thincdialog.batchers import Words
from thincdialog.errors import ConfigError, DataError, WorkerError
from thincdialog.examples.reading import needs_all
from thincdialog.loader import readers as module
from thincdialog.loader.ordered import Spent, ordered
from thincdialog.loader.readers import Readers
from thincdialog.mutators.flatten import Flatten
from thincdialog.registry import registry
from thincdialog.teachers import Teacher
from thincdialog.teachers.text_formats import Conversations, LabelledText

METHODS = ("fork", "forkserver", "spawn")
SECONDS = 0.0005


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Have workers read all data from the start. Otherwise, this process would have finished such
    small data before they start."""
    read = Readers.read

    def seen(self, tasks, reading):
        split = reading.split
        if self.workers != "auto":
            self._chosen[split.name, split.origin] = 0, 1 if needs_all(split) else self.workers
        return read(self, tasks, reading)

    monkeypatch.setattr(Readers, "read", seen)
    alone = lambda *given, **more: ordered(*given, **{**more, "may_help": False})  # noqa: E731
    monkeypatch.setattr(module, "ordered", alone)


@pytest.fixture(autouse=True)
def nothing_left():
    """Check that no process and no open file is left after a test."""
    gc.freeze()  # So that only what the test made is looked at.
    yield
    gc.collect()
    for _ in range(50):
        if not multiprocessing.active_children():
            break
        time.sleep(0.1)
    assert not multiprocessing.active_children()


def teacher_of(source, readers=None, streaming=True, window=40, flat=False):
    made = Teacher(
        {"train": source},
        streaming=streaming,
        shuffle_window=window,
        mutators=[Flatten()] if flat else None,
    )
    if readers is not None:
        made.read_with(readers)
    return made.for_split("train", training=True)


def order_of(source, readers=None, **settings):
    return rounds([teacher_of(source, readers, **settings)])


@pytest.fixture(scope="module")
def expected():
    return order_of(Numbers(150))


@pytest.mark.parametrize(
    "n_workers, method", [(0, None), (1, None), (2, "fork"), (2, "forkserver")]
)
def test_readers_show_the_same_order(expected, n_workers, method):
    for source in (Numbers(150, SECONDS), Generated(150, SECONDS)):
        assert order_of(source, Readers(n_workers, method)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_workers", [1, 2, 5])
@pytest.mark.parametrize("streaming", [True, False])
def test_readers_show_the_same_order_in_any_number(expected, n_workers, method, streaming):
    for source in (Numbers(150, SECONDS), Generated(150, SECONDS)):
        readers = Readers(n_workers, method)
        assert order_of(source, readers, streaming=streaming) == expected
        assert order_of(source, readers, streaming=streaming) == expected


def test_readers_of_data_in_memory_show_the_same_order(expected):
    assert order_of(Numbers(150, SECONDS), Readers(2), streaming=False) == expected


@pytest.mark.slow
def test_readers_give_each_batch_of_words_once_and_resume_with_other_workers():
    def make(n_workers):
        readers = Readers(n_workers) if n_workers is not None else None
        teacher = teacher_of(Numbers(150, SECONDS), readers, flat=True)
        teacher.set_batches(Words(40, buffer=4))
        return teacher

    alone = make(None)
    expected = batches_left(alone)
    assert len(alone.order.data.lengths()) == sum(map(len, expected)) == 300
    states = []
    helped = make(2)
    for _ in expected:
        states.append(through_json(helped.state()))
        helped.batch_observe([{}] * len(helped.batch_act()))
    assert helped.epoch_done()
    for n_batches in (1, len(expected) // 2, len(expected) - 1):
        for n_workers in (None, 1, 2):
            again = make(n_workers)
            again.restore(states[n_batches])
            assert batches_left(again) == expected[n_batches:]


def test_readers_wait_at_the_same_time():
    lock, waiting, together = threading.Lock(), [0], []

    class Slow(Numbers):
        def __getitem__(self, number):
            with lock:
                waiting[0] += 1
                together.append(waiting[0])
            read = super().__getitem__(number)
            with lock:
                waiting[0] -= 1
            return read

    found = order_of(Slow(60, 0.02), Readers("auto"))
    assert max(together) > 1
    assert found == order_of(Numbers(60))


def test_readers_log_how_many_were_chosen():
    notes = []
    readers = Readers("auto", note=notes.append)
    for _ in range(2):
        order_of(Numbers(60, 0.005), readers)
    assert len(notes) == 1
    assert re.match(
        r"\[loader\] workers: 16 threads, as reading the train data of task waits \d\d %", notes[0]
    )


def test_readers_of_a_sequential_source_are_one_thread():
    notes = []
    readers = Readers("auto", note=notes.append)
    assert order_of(Generated(60, 0.005), readers) == order_of(Numbers(60))
    (note,) = notes
    assert note.startswith("[loader] workers: 1 thread, as reading the train data of task waits")
    assert note.endswith("and no part can be read separately")


def test_readers_say_that_more_of_them_would_be_faster():
    split, notes = teacher_of(Numbers(60)).data["train"], []
    waited, computed = Spent(1.0, 0.1), Spent(1.0, 1.0)
    for n_workers, spent in ((2, computed), (16, waited), (2, waited)):
        Readers(n_workers, note=notes.append).choose(split, spent)
    (note,) = notes
    assert note == (
        '[loader] workers = 2: "auto" would choose 16 threads, as reading the train data of task '
        "waits 90 % of its time"
    )


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("source", [Numbers(150), Generated(150)])
def test_readers_start_in_the_middle_of_a_block(monkeypatch, expected, source, streaming):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(module, "WAITING_SHARE", 2.0)
    monkeypatch.setattr(module, "n_cores", lambda: 2)
    notes = []
    assert order_of(source, Readers("auto", note=notes.append), streaming=streaming) == expected
    assert len(notes) == 1 and "2 processes, as reading the train data of task computes" in notes[0]


def test_readers_do_not_start_for_little_data(monkeypatch):
    monkeypatch.undo()
    # So that it does not matter how slow the machine is at this moment.
    monkeypatch.setattr(module, "LOOK_SECONDS", 60.0)
    monkeypatch.setattr(Readers, "_processes", None)  # Starting workers would be an error.
    monkeypatch.setattr(Readers, "_pool", None)
    notes = []
    for workers in (2, "auto"):
        readers = Readers(workers, note=notes.append)
        assert order_of(Numbers(150), readers) == order_of(Numbers(150))
    assert not notes


@pytest.mark.parametrize(
    "wall, computing, n_processes",
    [(0.019, 0.019, 0), (0.19, 0.19, 0), (0.21, 0.21, 2), (0.021, 0.001, 2), (0.019, 0.001, 0)],
)
def test_readers_are_chosen_by_the_time_that_was_spent(wall, computing, n_processes):
    split = teacher_of(Numbers(60)).data["train"]
    assert module.choice(2, split, Spent(wall, computing)).n_processes == n_processes


def lives(tmp_path, n):
    for number in range(n):
        (tmp_path / f"life{number}").touch()
    return tmp_path


@pytest.mark.parametrize("method", METHODS)
def test_readers_that_are_killed_end_the_run(expected, tmp_path, method):
    teacher = teacher_of(
        Numbers(150, SECONDS, die_at=100, folder=lives(tmp_path, 1)), Readers(2, method)
    )
    shown = []
    with pytest.raises(WorkerError, match=r"^Worker \d: its process \d+ was killed by SIGKILL"):
        while True:
            shown.append(teacher.act()["id"])
            teacher.observe({})
    assert shown and shown == expected[: len(shown)]


@pytest.mark.parametrize("method", ["fork", slow("forkserver"), slow("spawn")])
def test_readers_start_once_for_all_passes(tmp_path, method):
    source = Numbers(150, SECONDS, log=tmp_path / "log")
    teacher = Teacher({"train": source, "dev": source}, streaming=True, shuffle_window=40)
    teacher.read_with(Readers(2, method))
    train, dev = teacher.for_split("train", training=True), teacher.for_split("dev")
    for epoch in range(3):
        for each in (train, dev):
            each.start_epoch(epoch, 0)
            rounds([each])
    processes = {line.split()[0] for line in (tmp_path / "log").read_text().splitlines()} - {
        str(os.getpid())
    }
    assert len(processes) == 2 == len(multiprocessing.active_children())


@pytest.mark.parametrize("n_workers", [0, 2])
def test_readers_name_the_line_and_the_worker(expected, n_workers):
    teacher = teacher_of(Numbers(150, SECONDS, bad=90), Readers(n_workers))
    shown = []
    with pytest.raises(DataError) as caught:
        while True:
            shown.append(teacher.act()["id"])
            teacher.observe({})
    text = str(caught.value)
    assert text.startswith("numbers.txt:7  is no number")
    assert ("(read by worker " in text) == bool(n_workers)
    assert shown and shown == expected[: len(shown)]  # Earlier examples are right.


def test_readers_name_the_place_of_an_error_in_custom_code():
    with pytest.raises(WorkerError) as caught:
        order_of(Broken(150, SECONDS), Readers(2))
    assert "sources.py" in caught.value.brief and "ZeroDivisionError" in caught.value.brief


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_readers_import_neither_thinc_nor_torch(method):
    teacher = teacher_of(Modules(400), Readers(2, method))
    here = str(os.getpid())
    found = {(m["labels"][0], m["text"] == here) for e in teacher.episodes() for m in e}
    assert found == {("none", False)}


def test_readers_fork_if_the_source_cannot_be_sent(expected):
    def source():
        yield from Generated(150, SECONDS)()

    assert order_of(source, Readers(2)) == expected
    with pytest.raises(ConfigError, match="cannot be sent to a worker process"):
        order_of(source, Readers(2, "spawn"))


def test_readers_end_if_an_epoch_is_left_early():
    teacher = teacher_of(Numbers(10**6, SECONDS), Readers(2))
    rounds([teacher], 60)
    assert multiprocessing.active_children()
    teacher.start_epoch(1, 0)  # Closes the previous epoch.


SCRIPT = """
import os, sys, time
from tests.loader.sources import Numbers
from tests.loader.test_readers import teacher_of
from thincdialog.loader import readers
if __name__ == "__main__":
    readers.LOOK_SECONDS = readers.WORTH_SECONDS = -1.0
    open(sys.argv[2], "w").close()
    teacher = teacher_of(Numbers(10**6, 0.001, log=sys.argv[2]), readers.Readers(2, sys.argv[1]))
    while len({line.split()[0] for line in open(sys.argv[2])} | {str(os.getpid())}) < 3:
        teacher.act()
        teacher.observe({})
    print("ready", flush=True)
    time.sleep(60)
"""


def is_there(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_readers_end_with_their_parent(tmp_path, root, method, number):
    script, log = tmp_path / "go.py", tmp_path / "log"
    script.write_text(SCRIPT)
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, str(script), method, str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            workers = {int(line.split()[0]) for line in log.read_text().splitlines()}
            workers.discard(process.pid)
            assert len(workers) == 2 and all(map(is_there, workers))
            if number == signal.SIGINT:  # Like Ctrl-C: all processes get it.
                os.killpg(process.pid, number)
            else:
                process.kill()
            process.wait(20)
        finally:
            process.kill()
        errors = process.stderr.read().decode()
    # A process that was just being started prints a traceback of Python, as it never got its task.
    n_own = errors.count("Traceback") - errors.count("in spawn_main")
    assert n_own == (number == signal.SIGINT), errors
    until = time.monotonic() + 60
    while any(map(is_there, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_there, workers))
    if os.path.isdir("/dev/shm"):
        mine = {name for name in set(os.listdir("/dev/shm")) - names if "thincdialog" in name}
        assert not mine


def spoken(paths, readers, streaming):
    made = Conversations(paths, label_speaker="agent", streaming=streaming)
    made.set_shuffle_window(40)
    made.read_with(readers)
    return made.for_split("train", training=True)


@pytest.mark.parametrize("streaming", [True, False])
def test_readers_refuse_a_file_without_the_label_speaker(tmp_path, streaming):
    paths = [write_spoken(tmp_path / f"{who}.jsonl", *[who] * 300) for who in ("agent", "bot")]
    messages = []
    for n_workers in (0, 2):
        with pytest.raises(DataError, match="bot.jsonl  label_speaker 'agent' does not") as caught:
            rounds([spoken(paths, Readers(n_workers), streaming)])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("streaming", [True, False])
def test_readers_list_the_rows_that_they_skip(tmp_path, streaming):
    path = tmp_path / "a.jsonl"
    row = '{"text": "hi", "label": "greet"}\n'
    path.write_text(7 * row + "{\n" + 192 * row)
    found = []
    for n_workers in (0, 2):
        made = LabelledText(str(path), on_bad_data="skip", streaming=streaming)
        made.read_with(Readers(n_workers))
        teacher = made.for_split("train", training=True)
        assert len(rounds([teacher])) == 199
        found += [bad.summary() for bad in teacher.data["train"].bad_data()]
    assert found[0] == found[1] and f"{path}:8  not valid JSON" in found[0]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("workers", [2, "auto"])
def test_readers_count_skipped_episodes_once(monkeypatch, tmp_path, streaming, workers):
    """This holds even if workers start in the middle of a file, and for several passes."""
    monkeypatch.undo()
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(module, "WAITING_SHARE", 2.0)
    monkeypatch.setattr(module, "n_cores", lambda: 2)
    others = ["agent" if number % 3 else "bot" for number in range(300)]
    paths = [write_spoken(tmp_path / f"{n}.jsonl", *others) for n in range(2)]
    started = []
    start = Readers._processes
    monkeypatch.setattr(Readers, "_processes", lambda *args: started.append(1) or start(*args))
    found = []
    for each in (0, workers):
        teacher = spoken(paths, Readers(each), streaming)
        for epoch in range(2):
            teacher.start_epoch(epoch, 0)
            assert len(rounds([teacher])) == 400
            left = teacher.data["train"].bad_data()
            found.append([(bad.path, bad.n_read, bad.n_without) for bad in left])
    assert started and found == [[(path, 300, 100) for path in paths]] * 4


ONCE = f"""
[tasks.numbers]
@teachers = "tests.numbers.v1"
{REPLIES}
[training]
max_epochs = 2
eval_every_epochs = 1

[loader]
workers = 2
"""


@registry.teachers("tests.numbers.v1")
def numbers():
    source = Answered(90, SECONDS, log=os.environ["LOG"])
    splits = dict.fromkeys(("train", "dev", "test"), source)
    return Teacher(splits, streaming=True, single_turn=True, shuffle_window=40)


@pytest.mark.parametrize("method", [None, slow("fork")])
def test_readers_start_once_in_a_run(tmp_path, monkeypatch, method):
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    quietly_train(ONCE, loader__start_method=method)
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) >= 2 * 90 * 2 + 90
    assert len({line.split()[0] for line in lines} - {str(os.getpid())}) == 2
    assert not multiprocessing.active_children()  # Even if the experiment still exists.
