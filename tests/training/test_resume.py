"""A run that is interrupted and goes on leaves the same bits as one that is not."""

import signal

import pytest

from thincdialog.training.interruption import Interrupted

from .resuming import CONFIGS, NOTES, Crash, remains, run, same


@pytest.fixture(autouse=True)
def fresh_notes():
    NOTES.clear()
    yield
    NOTES.clear()


def whole(text, tmp_path):
    run(text, tmp_path / "whole")
    seen = dict(NOTES.seen)
    n_steps = max(int(name.split("/")[0]) for name in seen)
    NOTES.clear()
    return remains(tmp_path / "whole"), seen, n_steps


@pytest.mark.parametrize("name", CONFIGS)
def test_resume_after_crashes_gives_the_same_bits(tmp_path, name):
    text = CONFIGS[name]
    expected, seen, n_steps = whole(text, tmp_path)
    for step in (1, n_steps // 2 + 1, n_steps):

        def crash(at, step=step):
            if at == step:
                raise Crash

        NOTES.before = crash
        with pytest.raises(Crash):
            run(text, tmp_path / "out", resume=True)
    NOTES.before = lambda step: None
    assert "Going on from" in run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen


@pytest.mark.parametrize(
    "name, number",
    [
        ("columns, Words, LazyAdam, averages", signal.SIGTERM),
        ("dynamic, Batchsort, a stream", signal.SIGINT),
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
    NOTES.before = lambda step: None
    run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen
