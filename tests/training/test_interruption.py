"""SIGTERM and SIGINT at any moment of a run: nothing is lost."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from thinc.api import Model

from tests.processes import slow
from tests.runners.resuming import remains, same
from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import registry
from thincdialog.cli.main import main
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.training.interruption import Interrupted, Interruption

# When signals arrive: at which call of a method.
MOMENT = SimpleNamespace(method="", at=0, signals="", calls=0)


def called(name):
    MOMENT.calls += name == MOMENT.method
    if name == MOMENT.method and MOMENT.calls == MOMENT.at:
        for number in MOMENT.signals.split("+"):
            signal.raise_signal(getattr(signal, number))


class Signalled(RankerAgent):
    def survey(self, train):
        called("survey")
        super().survey(train)

    def learn(self, batch):
        called("learn")
        super().learn(batch)

    def answer(self, batch):
        replies = super().answer(batch)
        called("answer")
        return replies

    def to_disk(self, folder):
        super().to_disk(folder)
        called("to_disk")


@registry.agents("tests.signalled.v1")
def signalled(model: Model, candidates: str = "inline") -> Signalled:
    return Signalled(model, loss=RankingSoftmax(), candidates=candidates)


@registry.mutators("tests.signalled.v1")
def signalled_data():
    return lambda episode: called("read") or [episode]


@registry.optimizers("tests.plain.v1")
def plain(learn_rate: float):
    return Plain()


class Plain:
    """An agent that cannot return its state, so there are no checkpoints."""

    learn_rate, averages, grad_clip = 0.1, None, 0.0

    def __call__(self, key, weights, gradient, **given):
        weights -= self.learn_rate * gradient
        return weights, gradient

    def step_schedules(self):
        pass


# 13 steps per epoch, so 4 evaluations, each of 4 batches; then both splits once more.
TEXT = RANKER.replace("thincdialog.Ranker.v1", "tests.signalled.v1").replace(
    "n_samples", "eval_every_epochs = 0.5\nmax_steps = 18\nn_samples"
)


@pytest.fixture
def command(tmp_path, capsys):
    (tmp_path / "config.cfg").write_text(TEXT)

    def run(*more, moment="none 0 none", line=None):
        """RETURNS the exit code and the text of stderr."""
        method, at, signals = moment.split()
        vars(MOMENT).update(method=method, at=int(at), signals=signals, calls=0)
        code = main(line or ["train", str(tmp_path / "config.cfg"), *map(str, more)])
        return code, capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    MOMENT.method = ""
    folder = tmp_path_factory.mktemp("whole")
    quietly_train(TEXT, folder)
    return remains(folder)


def words_of(line):
    """Return the command that is printed at the end of a line."""
    return line[line.index("thincdialog train ") :].split()[1:]


@pytest.mark.parametrize(
    "moment, step",
    [
        slow("learn 5 SIGTERM", 5), ("learn 13 SIGINT", 13), ("learn 18 SIGTERM+SIGTERM", 18),
        ("answer 2 SIGTERM", 0), slow("answer 6 SIGINT", 7), slow("answer 16 SIGTERM", 18),
        ("answer 18 SIGTERM", 18),  # In the scores at the end.
        slow("to_disk 1 SIGTERM", 0), ("to_disk 5 SIGINT", 7),
    ],
)  # fmt: skip
def test_signals_end_the_step_and_say_how_to_resume(command, tmp_path, whole, moment, step):
    out = tmp_path / "out"
    code, shown = command("-o", out, "--resume", moment=moment)
    assert code == (75 if "SIGTERM" in moment else 130), shown
    line = shown.splitlines()[-1]
    assert f"Saved {out}/checkpoint-{step}. Resume with: python -m thincdialog train " in line
    assert f"--output {out} --resume" in line
    assert "Traceback" not in shown
    assert command(line=words_of(line))[0] == 0
    same(remains(out), whole)


def test_signals_a_second_sigint_stops_at_once(command, tmp_path, whole):
    out = tmp_path / "out"
    code, shown = command("-o", out, moment="learn 9 SIGTERM+SIGINT")
    assert code == 130 and "Traceback" not in shown
    # Only the state of the last evaluation is saved.
    assert f"Saved {out}/checkpoint-7. Resume with: " in shown
    assert command("-o", out, "--resume")[0] == 0
    same(remains(out), whole)


def test_signals_before_there_is_anything_to_save(command, tmp_path):
    (tmp_path / "code.py").write_text("")
    (tmp_path / "config.cfg").write_text(
        f'{TEXT}\n[tasks.coffee.mutators.*.signalled]\n@mutators = "tests.signalled.v1"\n'
    )
    more = ["-o", tmp_path / "out", "--code", tmp_path / "code.py", "--resume"]
    for moment in ("read 1 SIGTERM", "survey 1 SIGTERM"):
        code, shown = command(*more, moment=moment)
        assert code == 143
        line = shown.splitlines()[-1]
        assert "Interrupted before there was anything to save. Resume with: " in line
        assert line.endswith(f"--output {tmp_path}/out --resume --code {tmp_path}/code.py")
    assert command(line=words_of(line))[0] == 0
    code, shown = command("--no-output", moment="learn 3 SIGINT")
    assert code == 130
    assert "Interrupted; nothing was saved, because of --no-output." in shown


@pytest.mark.parametrize("name, code", [("SIGTERM", 143), ("SIGINT", 130)])
def test_signals_where_there_are_no_checkpoints(command, tmp_path, name, code):
    (tmp_path / "config.cfg").write_text(TEXT.replace("Adam.v1", "tests.plain.v1"))
    out = tmp_path / "out"
    found, shown = command("-o", out, moment=f"learn 9 {name}")
    assert found == code, shown
    line = shown.splitlines()[-1]
    said = "ready to use, but there is no checkpoint to resume from. Start again with: "
    assert f"Saved {out}/model-last, {said}python -m thincdialog train " in line
    assert f"--output {out} --force" in line and "--resume" not in line
    assert json.loads((out / "model-last" / "meta.json").read_text())["step"] == 9
    assert command(line=words_of(line))[0] == 0
    assert json.loads((out / "model-last" / "meta.json").read_text())["step"] == 18


@pytest.mark.parametrize("waits", [False, True])
def test_signals_wait_where_nothing_must_stay_half_done(waits):
    done = []
    with Interruption() as interruption, interruption.waiting():
        try:
            with interruption.waiting(waits):
                with interruption.shielding():
                    signal.raise_signal(signal.SIGTERM)
                    done.append("shielded")
                done.append("after it")
        except Interrupted as error:
            assert error.number == signal.SIGTERM
    assert done == ["shielded", "after it"][: 1 + waits]


def test_signals_of_other_threads_and_ignored_ones_are_left_alone():
    before = signal.getsignal(signal.SIGTERM)
    of_pytest = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != before
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        signal.signal(signal.SIGINT, of_pytest)
    with ThreadPoolExecutor(1) as pool:
        result, _ = pool.submit(quietly_train, RANKER, training__max_steps=2).result()
    assert result.stopped_because == "max_steps = 2 reached"
