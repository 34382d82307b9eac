"""The loop follows each setting of [training]."""

from types import SimpleNamespace

import numpy
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.processes import slow
from tests.runners.resuming import without_times
from tests.training.examples import CLASSIFIER, RANKER, quietly_train, weights
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import ConfigError, DataError, IterableTeacher, Message, evaluate, registry
from thincdialog.files.saved_model import BEST, LAST
from thincdialog.protocol import StepReport
from thincdialog.runs.run_log import read_log
from thincdialog.training.interruption import Interruption
from thincdialog.training.keeper import Keeper
from thincdialog.training.loop import TrainingLoop
from thincdialog.training.runner import Runner

ROWS = []
# The 34 dialogues of the seed have 201 turns: 13 batches of 16 per epoch.
STEPS = 13
KEEP = """
[training.callbacks.keep]
@callbacks = "tests.keep_rows.v1"
"""
SCHEDULE = """
[training.optimizer.learn_rate]
@schedules = "thincdialog.WarmupLinear.v1"
initial_rate = 0.01
warmup_steps = 4
total_steps = 10
"""


@registry.callbacks("tests.keep_rows.v1")
def keep_rows():
    def callback(info, agent):
        ROWS.append({**info, "weights": agent.parameters.values.copy()})

    return callback


@registry.teachers("tests.coffee_stream.v1")
def coffee_stream(n_train: int, n_dev: int, n_test: int, mutators=None):
    """Return the same dialogues, streamed."""
    make = registry.teachers.get("thincdialog.CoffeeOrder.v1")
    held = make(n_train=n_train, n_dev=n_dev, n_test=n_test, mutators=mutators)
    splits = {name: held.data[name].episodes for name in held.splits}
    return IterableTeacher(splits, streaming=True)


def run(config=RANKER + KEEP, output=None, **overrides):
    ROWS.clear()
    changes = {name if "." in name else f"training__{name}": n for name, n in overrides.items()}
    return quietly_train(config, output, **changes)[0]


def steps():
    return [row["step"] for row in ROWS]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"eval_every_steps": 5, "eval_every_epochs": 0.0, "max_steps": 12}, [0, 5, 10, 12]),
        ({"eval_every_epochs": 0.5, "max_epochs": 2.0}, [0, 7, 13, 20, 26]),
        ({"eval_every_epochs": 1.0, "eval_every_steps": 5, "max_epochs": 1.0}, [0, 5, 10, 13]),
        ({"eval_every_epochs": 0.0, "eval_every_seconds": 1e-9, "max_steps": 3}, [0, 1, 2, 3]),
        ({"eval_every_epochs": 0.0, "max_steps": 3}, [0, 3]),
        ({"eval_every_epochs": 0.0, "max_epochs": 0.0, "max_seconds": 1e-9}, [0, 1]),
        ({"eval_every_epochs": 0.0, "max_epochs": 1.5}, [0, 20]),
        ({"max_epochs": 1.0, "min_steps": 30}, [0, 13, 26, 30]),
        ({"max_epochs": 2.0, "min_steps": 20}, [0, 13, 26]),
        ({"max_epochs": 1.0, "min_steps": 400, "max_steps": 60}, [0, 13, 26, 52, 60]),
        ({"max_epochs": 1.0, "min_steps": 30, "max_steps": 20}, [0, 13, 20]),
    ],
)
def test_loop_evaluates_and_ends_when_the_config_says(settings, expected):
    run(**settings)
    assert steps() == expected


@pytest.mark.slow
def test_loop_counts_epochs_by_examples_where_batches_differ_in_size():
    words = RANKER.replace("Fixed.v1", "Words.v1").replace("size = 16", "budget = 150\nbuffer = 2")
    few = {"tasks.coffee.n_dev": 1, "tasks.coffee.n_test": 1}
    run(words + KEEP, eval_every_steps=1, max_epochs=2.0, **few)
    examples = [row["examples"] for row in ROWS]
    sizes = {after - before for before, after in zip(examples, examples[1:])}
    assert len(sizes) > 2 and examples[-1] == 2 * 201 and 201 in examples
    run(words + KEEP, eval_every_epochs=0.5, max_epochs=1.5, **few)
    ends = [next(n for n in examples if n >= share * 201) for share in (0, 0.5, 1, 1.5)]
    assert [row["examples"] for row in ROWS] == ends


def test_loop_fractions_of_epochs_of_a_stream_count_once_its_size_is_known():
    config = (RANKER + KEEP).replace("thincdialog.CoffeeOrder.v1", "tests.coffee_stream.v1")
    result = run(config, max_epochs=2.5, eval_every_epochs=0.5)
    # Nothing is known about the first epoch before it ends.
    assert steps() == [0, 13, 20, 26, 33]
    assert result.stopped_because == "max_epochs = 2.5 reached"


@registry.agents("tests.reads_nothing.v1")
class ReadsNothing(RankerAgent):
    def read(self, batch):
        return None


@registry.agents("tests.drops_labels.v1")
class DropsLabels(RankerAgent):
    def observe(self, message):
        return super().observe(Message(message, labels=[]))


@pytest.mark.parametrize(
    "name, method",
    [("reads_nothing", "ReadsNothing.read"), ("drops_labels", "DropsLabels.observe")],
)
def test_loop_names_the_agent_that_finds_nothing_to_learn_from(name, method, tmp_path):
    place = rf"tests/training/test_loop\.py:\d+  {method}\(\)"
    wanted = f"{place} found nothing to learn from in any training example"
    with pytest.raises(DataError, match=f"  {wanted}$"):
        run(RANKER.replace("thincdialog.Ranker.v1", f"tests.{name}.v1"), output=tmp_path)
    assert not (tmp_path / "scores.json").exists()


@registry.agents("tests.reads_five.v1")
class ReadsFive(RankerAgent):
    n_read = 0

    def read(self, batch):
        self.n_read += 1
        return super().read(batch) if self.n_read <= 5 else None


def test_loop_that_learns_nothing_in_a_later_epoch_keeps_its_model_and_scores(tmp_path):
    config = RANKER.replace("thincdialog.Ranker.v1", "tests.reads_five.v1")
    result = run(config, output=tmp_path, max_epochs=9.0)
    assert result.stopped_because == "the agent found nothing to learn from in the last epoch"
    assert read_log(tmp_path)[-1]["step"] == 5 and (tmp_path / "scores.json").exists()


def test_loop_ends_after_patience_or_at_the_target_score():
    result = run(optimizer__learn_rate=0.0, eval_every_steps=1, patience=3)
    assert steps() == [0, 1, 2, 3] and "(patience)" in result.stopped_because
    assert [row["is_best"] for row in ROWS] == [True, False, False, False]
    result = run(target_score=0.1, eval_every_steps=1, max_epochs=20.0)
    scores = [row["score"] for row in ROWS]
    assert scores[-1] >= 0.1 > max(scores[:-1])
    assert result.stopped_because == "target_score = 0.1 reached"


def test_loop_direction_decides_which_weights_are_best_and_tested_at_the_end(tmp_path):
    """With "min" on a score that rises, the best weights are early ones."""
    plain = {"score_direction": "min", "optimizer__use_averages": False}
    result = run(output=tmp_path / "out", eval_every_steps=4, max_epochs=4.0, **plain)
    scores = [row["score"] for row in ROWS]
    worst = scores.index(min(scores))
    assert scores[-1] > scores[worst]
    assert result.best_step == ROWS[worst]["step"]
    assert result.scores["dev"]["hits@1"] == scores[worst]
    saved = {name: numpy.load(tmp_path / "out" / name / "weights.npy") for name in (BEST, LAST)}
    assert saved[BEST].tobytes() == ROWS[worst]["weights"].tobytes()
    assert saved[LAST].tobytes() == ROWS[-1]["weights"].tobytes()
    for split in ("dev", "test"):
        assert evaluate(tmp_path / "out" / BEST, split=split) == result.scores[split]


def test_loop_direction_of_an_unknown_score_must_be_given():
    with pytest.raises(ConfigError, match='set score_direction to "max" or "min"'):
        run(score="tokens")
    run(score="tokens", score_direction="max", max_steps=1)


@pytest.mark.parametrize("direction, better", [("auto", min), ("max", max)])
def test_loop_auto_knows_that_a_loss_is_to_fall(direction, better):
    result = run(score="loss", score_direction=direction, eval_every_steps=3)
    assert result.scores["dev"]["loss"] == better(row["score"] for row in ROWS)


def test_loop_evaluates_and_saves_the_averaged_weights_and_trains_the_others(tmp_path):
    folder = tmp_path / "out"
    run(output=folder, eval_every_steps=1, max_steps=6, optimizer__use_averages=True)
    average = numpy.zeros_like(ROWS[0]["weights"])
    for step, row in enumerate(ROWS[1:], start=1):
        decay = (1.0 + step) / (10.0 + step)
        average += (1 - decay) * (row["weights"] - average)
    saved = numpy.load(folder / LAST / "weights.npy")
    numpy.testing.assert_allclose(saved, average, rtol=1e-4, atol=1e-6)
    assert not numpy.allclose(saved, ROWS[-1]["weights"], atol=1e-3)
    assert evaluate(folder / LAST, split="dev") == ROWS[-1]["scores"]


@pytest.mark.parametrize("runner", ["Alone", slow("Hogwild")])
def test_loop_evaluations_between_two_averages_include_the_last_steps(tmp_path, runner):
    """LazyAdam updates its average every 8 steps, but each evaluation includes the steps since
    then."""
    lazy = RANKER.replace('"Adam.v1"', '"thincdialog.LazyAdam.v1"\nuse_averages = true')
    text = f'{lazy}{KEEP}\n[runner]\n@runners = "thincdialog.{runner}.v1"\n'
    run(text, tmp_path / "out", eval_every_steps=1, max_steps=12)
    assert steps() == list(range(13))
    losses = [row["scores"]["loss"] for row in ROWS]
    assert len(set(losses)) == 13
    # The weights of step 12, four steps after the last update of the average.
    assert evaluate(tmp_path / "out" / LAST, split="dev")["loss"] == losses[-1]


@pytest.mark.parametrize("accumulate", [1, 3])
def test_loop_schedule_takes_one_step_an_update(accumulate):
    config = RANKER.replace("learn_rate = 0.01\n", "") + SCHEDULE + KEEP
    run(config, eval_every_steps=1, max_steps=7, accumulate_gradient=accumulate)
    seen = [row["learn_rate"] for row in ROWS[1:]]
    rates = registry.schedules.get("thincdialog.WarmupLinear.v1")(0.01, 4, 10)
    assert seen == pytest.approx([next(rates) for _ in seen])


def test_loop_gradient_is_clipped_as_a_whole():
    """Plain gradient descent moves all weights together by at most learn_rate * grad_clip."""
    config = (RANKER + KEEP).replace('"Adam.v1"', '"SGD.v1"')
    clip = {"optimizer.grad_clip": 0.01, "optimizer.learn_rate": 1.0, "optimizer.L2": 0.0}
    named = {f"training.{name}": value for name, value in clip.items()}
    run(config, eval_every_steps=1, max_steps=3, **named)
    for before, after in zip(ROWS, ROWS[1:]):
        assert after["gradient_norm"] > 0.01
        moved = numpy.linalg.norm(after["weights"].astype("d") - before["weights"])
        assert moved == pytest.approx(0.01, rel=1e-3)


def test_loop_accumulated_gradient_counts_microbatches_and_the_rest_of_an_epoch():
    run(accumulate_gradient=4, eval_every_steps=1, max_epochs=1.0)
    # 13 batches make three steps of four batches and one of one.
    assert [row["examples"] for row in ROWS] == [0, 64, 128, 192, 201]


def test_loop_rows_have_the_required_fields():
    run(max_epochs=1.0, **{"agent.max_context": 5})
    first, last = ROWS
    assert first["examples_per_second"] is None and first["learn_rate"] is None
    for name in ("examples_per_second", "tokens_per_second", "gradient_norm", "learn_rate"):
        assert last[name] > 0
    assert 0 < last["truncated_contexts"] <= 1
    assert last["padding_fraction"] == 0
    assert last["loss_per_example"] > 0


def test_loop_logs_losses_between_evaluations_and_changes_nothing_by_it(tmp_path):
    options = {"eval_every_epochs": 0.0, "eval_every_steps": 6, "max_steps": 14}
    rows = []
    for name, every in (("plain", 0), ("more", 4)):
        run(output=tmp_path / name, log_every_steps=every, **options)
        rows.append(read_log(tmp_path / name))
    plain, more = ([without_times(row) for row in found] for found in rows)
    losses = [row for row in more if not row["is_evaluation"]]
    assert [row for row in more if row["is_evaluation"]] == plain
    # Step 12 has the row of the evaluation.
    assert [row["step"] for row in more] == [0, 4, 6, 8, 12, 14]
    assert [row["step"] for row in losses] == [4, 8]
    assert all(row["loss_per_example"] > 0 and row["score"] is None for row in losses)
    assert [row["scores"] for row in losses] == [{}, {}]
    assert weights(tmp_path / "plain") == weights(tmp_path / "more")


def test_loop_rows_of_losses_add_up_to_those_of_evaluations(tmp_path):
    """Each row covers the steps since the row before it."""
    run(output=tmp_path / "out", eval_every_epochs=1.0, max_epochs=2.0, log_every_steps=1)
    found = read_log(tmp_path / "out")
    assert [row["step"] for row in found] == list(range(2 * STEPS + 1))
    first, second = found[STEPS], found[2 * STEPS]
    for of_epoch, before in ((first, 0), (second, STEPS)):
        single = found[before + 1 : before + STEPS]
        # The evaluation's row covers all its steps, the last of which has no row of its own.
        assert len({row["loss_per_example"] for row in single}) == STEPS - 1
        losses = [row["loss_per_example"] for row in single]
        assert min(losses) < of_epoch["loss_per_example"] < max(losses)


@pytest.mark.slow
def test_loop_rate_falls_without_progress_also_in_a_resumed_run(tmp_path):
    plateau = """
[training.optimizer.learn_rate]
@schedules = "thincdialog.Plateau.v1"
learn_rate = 1e-12
factor = 0.5
patience = 2
"""
    text = RANKER.replace("learn_rate = 0.01\n", "") + KEEP + plateau
    options = {"eval_every_epochs": 0.0, "eval_every_steps": 2}
    run(text, tmp_path / "whole", max_steps=14, **options)
    # Steps 1 to 4 had two evaluations without an improvement, at 2 and at 4.
    expected = [None, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]
    assert [row["learn_rate"] and row["learn_rate"] / 1e-12 for row in ROWS] == expected
    for runner in ("Alone", "Hogwild"):
        block = f'\n[runner]\n@runners = "thincdialog.{runner}.v1"\n'
        run(text + block, tmp_path / runner, max_steps=6, **options)
        ROWS.clear()
        changes = {f"training.{name}": n for name, n in {**options, "max_steps": 14}.items()}
        quietly_train(text + block, tmp_path / runner, resume=True, **changes)
        rates = [row["learn_rate"] for row in read_log(tmp_path / runner)]
        scale = 1e-12 if runner == "Alone" else rates[1]
        assert [rate and rate / scale for rate in rates] == expected
    assert weights(tmp_path / "whole") == weights(tmp_path / "Alone")


def test_loop_rate_that_depends_on_scores_needs_dev_data(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("text\tlabel\n" + "red\tcolour\nfour\tnumber\n" * 20)
    task = f'[tasks.words]\n@teachers = "thincdialog.LabelledText.v1"\ntrain = "{path}"\n'
    rate = '[training.optimizer]\n@optimizers = "Adam.v1"\n\n[training.optimizer.learn_rate]\n'
    plateau = '@schedules = "thincdialog.Plateau.v1"\nlearn_rate = 0.01\n'
    with pytest.raises(ConfigError, match="scores on dev data, but there is none - give some"):
        quietly_train(task + CLASSIFIER + rate + plateau)


class Scripted(Runner):
    """A runner whose steps train on batches of given sizes, the same in each epoch. Some batches
    have no label."""

    def __init__(self, sizes):
        self.sizes, self.left = sizes, []

    def start_epoch(self, epoch):
        self.left = list(self.sizes)

    def epoch_done(self):
        return not self.left

    def take(self, step, room):
        assert room >= 1
        size = self.left.pop(0)
        return [StepReport(size, 1.0, 1)] if size else []

    def evaluate(self, experiment, teacher):
        return {"hits@1": 0.5}

    def state(self):
        return {}


class Noting(Keeper):
    def __init__(self):
        self.moments = []

    def evaluated(self, position, report, is_best):
        self.moments.append(("evaluated", position.step, position.epoch))

    def checkpoint(self, step, state):
        self.moments.append(("saved", step))


class Idle:
    """A learner that the scripted runner does not use."""

    weights, needs_dev = numpy.zeros(1, dtype="f"), False

    def observe(self, message):
        return message

    def learn(self, batch):
        return 0


class Asking(TrainingLoop):
    """A loop that asks after each step whether something is due."""

    def _may_be_due(self):
        return True


def moments(kind, sizes, is_held, settings):
    training = {
        **dict(zip(("eval_every_epochs", "eval_every_steps"), settings["every"])),
        **dict(zip(("max_epochs", "max_steps", "min_steps"), settings["limits"])),
        **{"eval_every_seconds": 0.0, "max_seconds": 0.0, "checkpoint_every_seconds": 0.0},
        **{"log_every_steps": settings["log"]},
        **{"checkpoint_every_steps": settings["save"], "checkpoint_evaluations": False},
        **{"score": "hits@1", "score_direction": "auto", "patience": 0, "target_score": None},
        "callbacks": [],
    }
    checked = SimpleNamespace(interpolated={"training": {}})
    experiment = SimpleNamespace(
        training=training, checked=checked, optimizer=None, learner=Idle(), left_out=dict
    )
    experiment.runner = Scripted(sizes)
    n_examples = sum(sizes) + settings["unlabelled"] if is_held else None
    order = SimpleNamespace(origin="the data")
    teacher = SimpleNamespace(n_examples=n_examples, all_labels=lambda: iter(()), order=order)
    keeper, interruption = Noting(), Interruption()

    def log(progress, info):
        if info is not None:
            keeper.moments.append((info["is_evaluation"], info["step"], info["loss_per_example"]))

    loop = kind(experiment, teacher, teacher, log, keeper, interruption, lambda report: None)
    try:
        outcome = loop.run()
    except DataError as error:  # No batch of an epoch had a label.
        outcome = str(error)
    return outcome, keeper.moments


fractions = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.999, 1.0, 1.5])


@pytest.mark.slow
@hypothesis_settings(max_examples=300)
@example(  # The second epoch ends, with a batch without labels, after the evaluation at its end.
    sizes=[1, 1, 1, 1, 1, 0],
    is_held=False,
    settings={"every": (0.25, 2), "save": 0, "limits": (2.7, 0, 0), "unlabelled": 0, "log": 3},
)
@example(  # At its third step an epoch has more steps than at its second.
    sizes=[1, 2],
    is_held=True,
    settings={"every": (0.999, 0), "save": 0, "limits": (0.3, 0, 40), "unlabelled": 0, "log": 0},
)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    is_held=st.booleans(),
    settings=st.fixed_dictionaries(
        {
            "every": st.tuples(fractions, st.integers(0, 7)),
            "save": st.integers(0, 7),
            "limits": st.tuples(
                st.sampled_from([0.3, 1.0, 2.7]),
                st.sampled_from([0, 1, 17]),
                st.sampled_from([0, 5, 40, 90]),
            ),
            "unlabelled": st.integers(0, 5),
            "log": st.integers(0, 4),
        }
    ),
)
def test_loop_that_looks_ahead_misses_nothing(sizes, is_held, settings):
    """Tries batches of any sizes, data in memory and streamed data, and fractions of epochs."""
    ahead, asking = (moments(kind, sizes, is_held, settings) for kind in (TrainingLoop, Asking))
    assert ahead == asking
