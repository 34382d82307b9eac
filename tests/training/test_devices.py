"""Whole runs on the CPU and, if there is one, on a GPU."""

import io
import json
import pickle
import re
import sys
from copy import deepcopy
from typing import List

import numpy as np
import pytest

from tests.ops.array_backends import BACKENDS, in_threads
from tests.processes import slow
from tests.training.examples import RANKER, quietly_train
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import (
    ConfigError,
    DialogError,
    MissingPackageError,
    TrainingError,
    evaluate,
    load,
    train,
)
from thincdialog.cli.main import main
from thincdialog.files.saved_model import BEST, LAST
from thincdialog.inspection.dry_run import dry_run
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.ops.compiled import load_kernels
from thincdialog.registry import registry

LAZY = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true')
CONFIGS = {
    "bag": LAZY,
    "cnn": RANKER.replace("BagEncoder.v1", "CNNEncoder.v1"),
    "lstm": LAZY.replace("BagEncoder.v1", "BiLSTMEncoder.v1"),
    "memory": LAZY.replace("BagEncoder.v1", "MemoryReader.v1"),
    "hinge": LAZY + '\n[agent.loss]\n@losses = "thincdialog.RankingHinge.v1"\n',
}


@pytest.mark.parametrize("name", ["bag", slow("lstm"), slow("cnn"), slow("memory"), slow("hinge")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_train_save_and_load(name, backend, tmp_path):
    is_fast = backend == "fast"
    system = (
        {"system.ops": "fast"} if is_fast else {"system.ops": "numpy", "system.gpu_id": backend}
    )
    bits = []
    for run in "ab":
        result, _ = quietly_train(CONFIGS[name], tmp_path / run, training__max_steps=4, **system)
        bits.append((tmp_path / run / LAST / "weights.npy").read_bytes())
    assert bits[0] == bits[1]
    model = tmp_path / "a" / BEST
    assert evaluate(model) == result.scores["test"]
    # A model of a GPU works on the CPU, where sums differ in the last digits.
    on_cpu = evaluate(model, overrides={"system.gpu_id": -1})
    assert on_cpu["loss"] == pytest.approx(result.scores["test"]["loss"], rel=1e-3)
    assert load(model, overrides={"system.gpu_id": -1}).respond("Good morning!")


def test_devices_gpu_that_is_missing_is_an_error_before_any_work(tmp_path):
    with pytest.raises(DialogError, match="gpu_id = 99"):
        quietly_train(output=tmp_path / "out", system__gpu_id=99)
    assert not (tmp_path / "out").exists()


def train_fast(tmp_path):
    """Train for a few steps with compiled kernels."""
    settings = {"system__ops": "fast", "training__max_steps": 4}
    return quietly_train(LAZY, tmp_path / "run", **settings)[0]


@registry.losses("spoilt.v1")
class Spoilt:
    """A custom cross-entropy with a bug: nan for some batches."""

    def __init__(self, batches: List[int]):
        self.batches, self.times = batches, 0

    def __call__(self, scores, targets, allowed=None):
        gradient, losses = RankingSoftmax()(scores, targets, allowed)
        self.times += 1
        bad = np.float32("nan" if self.times in self.batches else 1)
        return gradient * bad, losses * bad


@pytest.mark.gpu
@pytest.mark.parametrize(
    "batches, log_every, told",
    [
        ([3, 5], 0, "gradients of 2 steps were"),
        (list(range(3, 99)), 0, "gradients of 11 steps were"),
        (list(range(3, 99)), 5, "gradients of 3 steps were"),
        ([3], 1, "gradient of 1 step was"),
    ],
)
def test_devices_a_run_that_is_lost_names_the_first_examples(batches, log_every, told, tmp_path):
    text = f'{LAZY}\n[agent.loss]\n@losses = "spoilt.v1"\nbatches = {batches}\n'
    errors = []
    for gpu_id in (-1, 0):  # NumPy's losses are checked in the step, a GPU's at the next log line.
        settings = {"system__gpu_id": gpu_id, "training__log_every_steps": log_every}
        with pytest.raises(TrainingError, match="loss is not finite") as caught:
            quietly_train(text, **settings)
        errors.append(str(caught.value))
    assert f"The {told} not used." in errors[1]
    examples = [re.search(r"Examples of the batch: .*", error)[0] for error in errors]
    assert examples[0] == examples[1]


@pytest.fixture
def no_numba(monkeypatch):
    """Return a function after whose call numba cannot be imported any more."""

    def forget():
        monkeypatch.setitem(sys.modules, "numba", None)
        load_kernels.cache_clear()

    yield forget
    load_kernels.cache_clear()


def test_devices_fast_ops_without_numba_are_an_error_before_any_work(no_numba, tmp_path):
    no_numba()
    said = (
        r"--system.ops  \[system\] ops = \"fast\" needs the package 'numba', which is not "
        r"installed. Install it with: pip install 'thincdialog\[fast\]', or set ops = \"numpy\"$"
    )
    for dry in (False, True):
        with pytest.raises(ConfigError, match=said):
            dry_run(LAZY, overrides={"system.ops": "fast"}) if dry else train_fast(tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["starspace", "fasttext"])
def test_devices_agents_without_numba_say_who_needs_it(no_numba, root, tmp_path, capsys, name):
    no_numba()
    agent = {"starspace": "star_space", "fasttext": "fast_text"}[name]
    said = f"[agent] {agent} needs the package 'numba', which is not installed. Install it with: "
    said += "pip install 'thincdialog[fast]'"
    config, data = root / "configs" / f"{name}.cfg", tmp_path / "data.jsonl"
    data.write_text("")
    with pytest.raises(MissingPackageError) as missing:
        train(config, output=tmp_path / "out", overrides={"paths.train": str(data)})
    assert str(missing.value) == said
    # Reported before anything is tried.
    command = ["debug", "config", str(config), "--paths.train", "none.jsonl"]
    assert main(command) == 1
    line = next(n for n, text in enumerate(config.read_text().splitlines(), 1) if text == "[agent]")
    assert f"  {config}:{line}  {said}\n" in capsys.readouterr().err
    assert main([*command, "--system.ops", "fast"]) == 1
    shown = capsys.readouterr().err
    assert "2 problems in" in shown and '--system.ops  [system] ops = "fast" needs' in shown
    assert main(["debug", "config", str(root / "configs" / "ranker.cfg"), *command[3:]]) == 0


def test_devices_auto_takes_fast_ops_and_answers_without_numba_but_does_not_resume(
    no_numba, tmp_path
):
    settings = {"system__ops": "auto", "training__max_steps": 4}
    result, shown = quietly_train(LAZY, tmp_path / "run", **settings)
    assert '\nComputing with ops = "fast".\n' in shown
    model = result.output / BEST
    assert json.loads((model / "meta.json").read_text())["ops"] == "fast"
    assert '\nops = "auto"\n' in (model / "config.cfg").read_text()
    bits = (model / "weights.npy").read_bytes()
    assert (train_fast(tmp_path / "named").output / BEST / "weights.npy").read_bytes() == bits
    more = {"training__max_steps": 6}
    # The same holds for another name.
    quietly_train(LAZY, tmp_path / "run", resume=True, system__ops="fast", **more)
    no_numba()
    assert evaluate(model)["loss"] == pytest.approx(result.scores["test"]["loss"], rel=1e-4)
    assert load(model).respond("Good morning!")
    for ops, found in (("auto", '"auto" chooses "numpy" here'), ("numpy", '"numpy"')):
        said = rf'\[system\] ops = {found}, but \S+-6 was made with "fast" - set ops = "fast" '
        with pytest.raises(ConfigError, match=said):
            quietly_train(LAZY, tmp_path / "run", resume=True, system__ops=ops, **more)
    _, shown = quietly_train(LAZY, tmp_path / "run", force=True, **settings)
    assert '\nComputing with ops = "numpy".\n' in shown


@pytest.mark.gpu
def test_devices_second_gpu_trains_and_chats_from_any_thread(tmp_path, monkeypatch, capsys):
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    bits = []
    for gpu_id in (0, 1):
        settings = {"training__max_steps": 4, "system__gpu_id": gpu_id}
        result, _ = quietly_train(LAZY, tmp_path / f"on{gpu_id}", **settings)
        model = tmp_path / f"on{gpu_id}" / BEST
        bits.append((model / "weights.npy").read_bytes())
        assert evaluate(model) == result.scores["test"]
    assert bits[0] == bits[1]
    # Loaded one after the other: the thread's current device is that of the last one.
    bots = [load(model, overrides={"system.gpu_id": gpu_id}) for gpu_id in (0, 1)]
    assert [bot.agent.weights.device.id for bot in bots] == [0, 1]
    said = ["Good morning!", "A latte, please.", "Large."]
    wanted = [[bot.respond(text, top=3) for text in said] for bot in map(deepcopy, bots)]
    assert wanted[0] == wanted[1]
    talkers, found = [deepcopy(bots[number % 2]) for number in range(4)], {}

    def chat(number):
        found[number] = [talkers[number].respond(text, top=3) for text in said]

    in_threads(chat, range(4))
    assert found == dict.fromkeys(range(4), wanted[0])
    in_turn = zip(*([bot.respond(text, top=3) for bot in bots] for text in said))
    assert [list(answers) for answers in in_turn] == wanted
    sent = pickle.loads(pickle.dumps(bots[0]))  # Arrays are unpickled on the current device.
    assert sent.agent.weights.device.id == 0 and sent.respond("Good morning!")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{said[0]}\n"))
    capsys.readouterr()
    assert main(["chat", str(model), "--gpu-id", "1"]) == 0
    assert wanted[0][0][0].text in capsys.readouterr().out


@pytest.mark.gpu
def test_devices_training_continues_while_a_bot_of_another_gpu_answers(tmp_path, monkeypatch):
    """As if a callback answers, between the gradient and the step."""
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    settings = {"training__max_steps": 4, "system__gpu_id": 0}
    quietly_train(LAZY, tmp_path / "one", **settings)
    bot, update = load(tmp_path / "one", overrides={"system.gpu_id": 1}), RankerAgent.update

    def chat_and_update(self, optimizer):
        assert bot.respond("Good morning!")
        return update(self, optimizer)

    monkeypatch.setattr(RankerAgent, "update", chat_and_update)
    quietly_train(LAZY, tmp_path / "other", **settings)
    bits = [(tmp_path / run / LAST / "weights.npy").read_bytes() for run in ("one", "other")]
    assert bits[0] == bits[1]
