"""Configs and agents for runs that are interrupted and resumed, and their results to compare."""

import json
import random
from pathlib import Path
from typing import Any, Dict, List

import numpy
from thinc.api import Model

from tests.training.two_tasks import TWO_TASKS
from thincdialog.agents.classifier import ClassifierAgent
from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import PartnerWorld, World, registry
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.messages import column

TIMES = ("seconds", "examples_per_second", "tokens_per_second")
HOLD_TIMES = ("checkpoint.json", "state.json", "README.md")


class Crash(BaseException):
    """As close as a test can come to the death of a process."""


class Notes:
    """The examples that agents were trained on, and the step at which they should crash.

    seen (Dict[str, List[str]]): Maps "step/microbatch" to the ids of its examples.
    before (Callable): Called with the step before each microbatch.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.seen: Dict[str, List[str]] = {}
        self.before: Any = lambda step: None

    def crash_at(self, step: int) -> None:
        """Make runs crash before that step from now on."""

        def before(at: int) -> None:
            if at == step:
                raise Crash

        self.before = before


NOTES = Notes()


class Noting:
    """A mixin for agents that notes the examples they are trained on."""

    def begin_microbatch(self, seed, step, number):
        self.tally.place = (step, number)
        super().begin_microbatch(seed, step, number)

    def learn(self, observations):
        step, microbatch = self.tally.place
        NOTES.before(step)
        ids = list(column(observations, "id"))
        before = NOTES.seen.setdefault(f"{step}/{microbatch}", ids)
        assert before == ids, "repeated a microbatch with other examples"
        super().learn(observations)


class NotingRanker(Noting, RankerAgent):
    pass


class NotingClassifier(Noting, ClassifierAgent):
    pass


@registry.agents("tests.noting_ranker.v1")
def noting_ranker(
    model: Model, candidates: str = "batch", use_reply: str = "label", max_context: int = 256
) -> NotingRanker:
    options = {"candidates": candidates, "use_reply": use_reply, "max_context": max_context}
    return NotingRanker(model, loss=RankingSoftmax(), **options)


@registry.agents("tests.noting_classifier.v1")
def noting_classifier(model: Model) -> NotingClassifier:
    return NotingClassifier(model, loss=ClassSoftmax())


@registry.callbacks("tests.counting.v1")
def counting():
    return Counting()


@registry.worlds("tests.unsaved.v1")
def build_unsaved():
    return Unsaved


class Unsaved(PartnerWorld):
    """A custom world whose position cannot be saved."""

    def _state(self):
        return World._state(self)


@registry.optimizers("tests.momentum.v1")
def build_momentum(learn_rate: float):
    return Momentum(learn_rate)


class Momentum:
    """A custom optimizer."""

    def __init__(self, learn_rate):
        self.learn_rate, self.averages = learn_rate, None
        self.speed = numpy.zeros(1, dtype="f")

    def __call__(self, key, weights, gradient):
        self.speed = 0.9 * self.speed + gradient
        weights -= self.learn_rate * self.speed
        return weights, gradient

    def step_schedules(self):
        self.learn_rate *= 0.9

    def state(self):
        return {"learn_rate": self.learn_rate}, {"speed": self.speed}

    def restore(self, state, arrays):
        self.learn_rate, self.speed = state["learn_rate"], arrays["speed"]


class Counting:
    """A callback with a state, which stops the run at its sixth evaluation. It draws from the
    global random generators."""

    def __init__(self):
        self.draws = []

    def __call__(self, info, agent):
        self.draws += [random.random(), random.gauss(0, 1), numpy.random.normal()]
        return len(self.draws) == 18

    def state(self):
        return {"draws": self.draws}

    def restore(self, state):
        self.draws = state["draws"]


BASE = TWO_TASKS.replace("tests.recorder.v1", "tests.noting_ranker.v1").replace(
    "max_epochs = 2.0", "max_epochs = 2.0\neval_every_epochs = 0.5\ncheckpoint_every_steps = 2"
)
FIXED = """@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 4
"""
WORDS = FIXED.replace("Fixed.v1", "Words.v1").replace("size = 4", "budget = 16\nbuffer = 4")
LIVE = WORDS.replace("BatchWorld", "DynamicBatchWorld")
SORTED = LIVE.replace("Words.v1", "Batchsort.v1").replace("budget = 16", "size = 4")
# Batches of one example have no other replies to rank against.
AMONG_ALL = ('"tests.noting_ranker.v1"\n', '"tests.noting_ranker.v1"\ncandidates = "fixed"\n')
UNSAVED = '@worlds = "tests.unsaved.v1"\n'
PARTNER = '@worlds = "thincdialog.PartnerWorld.v1"\n'
SCHEDULE = """
[training.optimizer.learn_rate]
@schedules = "thincdialog.WarmupLinear.v1"
initial_rate = 0.02
warmup_steps = 3
total_steps = 30
"""
FLATTEN = '[tasks.{}.mutators.*.flatten]\n@mutators = "thincdialog.Flatten.v1"\n\n'


def config(world: str, *changes, flat: bool = False, tasks: int = 2) -> str:
    text = BASE
    if tasks == 1:
        start, end = text.index("[tasks.drinks]"), text.index("[tokenizer]")
        text = text[:start] + text[end:]
        text = text.replace("macro/hits@1", "hits@1")
    names = ["colours", "drinks"][:tasks]
    if flat:
        blocks = "".join(FLATTEN.format(name) for name in names)
        text = text.replace("[tokenizer]", blocks + "[tokenizer]")
    text = text.replace("[evaluation]", f"[world]\n{world}\n[evaluation]")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text.replace(*AMONG_ALL) if world in (PARTNER, UNSAVED) else text


STREAM = ("turns = [1, 3", "streaming = true\nturns = [1, 3")
ADAM = '"Adam.v1"\nlearn_rate = 0.02\n'
LAZY = (
    ADAM,
    '"thincdialog.LazyAdam.v1"\nlearn_rate = 0.02\nuse_averages = true\naverage_every = 3\n',
)
LAZY_SCHEDULE = (ADAM, '"thincdialog.LazyAdam.v1"\nL2 = 0.01\n' + SCHEDULE)
RADAM = (ADAM, '"RAdam.v1"\n' + SCHEDULE)
SGD = (ADAM, '"SGD.v1"\nuse_averages = true\n' + SCHEDULE)
MOMENTUM = (ADAM, '"tests.momentum.v1"\nlearn_rate = 0.02\n')
ACCUMULATE = ("max_epochs", "accumulate_gradient = 3\nmax_epochs")
COUNTING = (
    "n_samples = 3\n",
    'n_samples = 1\n\n[training.callbacks.count]\n@callbacks = "tests.counting.v1"\n',
)
REPEAT = (
    "[evaluation]",
    '[mixture]\nrepeat = true\nunit = "words"\n\n'
    "[mixture.weights]\ncolours = 3\ndrinks = 1\n\n[evaluation]",
)
MODEL_REPLIES = (
    '"tests.noting_ranker.v1"\n',
    '"tests.noting_ranker.v1"\nuse_reply = "model"\nmax_context = 4\n',
)
CLASSIFY = [
    ('"tests.noting_ranker.v1"', '"tests.noting_classifier.v1"'),
    ("thincdialog.BiEncoder.v1", "thincdialog.Classifier.v1"),
    ("n_candidates = 4", ""),
    ('score = "hits@1"', 'score = "accuracy"'),
]  # fmt: skip

CONFIGS = {
    "columns, Fixed, Adam, accumulated": config(FIXED, ACCUMULATE, flat=True, tasks=1),
    "columns, Words, LazyAdam, averages": config(WORDS, LAZY, COUNTING, flat=True, tasks=1),
    "columns of a stream, Words": config(WORDS, STREAM, LAZY_SCHEDULE, flat=True, tasks=1),
    "conversations, Fixed": config(FIXED, SGD, MODEL_REPLIES, tasks=1),
    "dynamic, Words, RAdam": config(LIVE, RADAM, tasks=1),
    "dynamic, Batchsort, a stream": config(SORTED, STREAM, LAZY, tasks=1),
    "partner": config(PARTNER, SGD, ACCUMULATE, tasks=1),
    "mixture, dynamic": config(LIVE, REPEAT),
    "mixture, columns": config(WORDS, REPEAT, LAZY_SCHEDULE, ACCUMULATE, flat=True),
    "a world without a state": config(UNSAVED, LAZY, tasks=1),
    "another optimizer": config(FIXED, MOMENTUM, tasks=1),
    "classifier": config(FIXED, *CLASSIFY, flat=True, tasks=1),
}  # fmt: skip


def remains(folder: Path) -> Dict[str, Any]:
    """Return the results of a run without times: the rows of its log, its scores, and the bytes of
    its models and of its newest checkpoint."""
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    found: Dict[str, Any] = {
        "rows": [{key: row[key] for key in row if key not in TIMES} for row in rows],
        "scores": without_times(json.loads((folder / "scores.json").read_text())),
    }
    steps = sorted(int(path.name.rpartition("-")[2]) for path in folder.glob("checkpoint-*"))
    found["checkpoints"] = steps[-1:]
    for name in ("model-best", "model-last", f"checkpoint-{steps[-1]}"):
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and path.name not in HOLD_TIMES:
                found[str(path.relative_to(folder))] = path.read_bytes()
    state = json.loads((folder / f"checkpoint-{steps[-1]}" / "state.json").read_text())
    found["state"] = without_times(state)
    return found


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return value


def same(found: Dict[str, Any], expected: Dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == value, name
