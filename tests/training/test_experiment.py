"""Custom objects that are registered with ``--code`` are found by their names. If one does not do
what it must, a single error names it, without a traceback."""

import gc
import io
import re

import numpy as np
import pytest

from tests.training.examples import CLASSIFIER, RANKER, quietly_train
from thincdialog.api import (
    Batcher,
    ConfigError,
    DataError,
    DialogError,
    Experiment,
    Message,
    ProtocolError,
    Tokenizer,
    evaluate,
    load,
    registry,
)
from thincdialog.contract import CodeError
from thincdialog.examples import MemoryStore, split
from thincdialog.files.saved_model import BEST

CODE = '''
from thinc.api import Maxout, Model, chain, with_array
from thincdialog.api import IterableTeacher, registry
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed


@registry.layers("max_words.v1")
def max_words(width: int) -> Model:
    """The highest value of each feature over all words.

    width (int): Width of the output.
    """
    return chain(TokenEmbed(width), with_array(Maxout(width, nP=2)), pool("max"))


@registry.teachers("colours.v1")
def colours(n_times: int):
    rows = [("red", "stop"), ("green", "go"), ("amber", "wait")] * n_times
    return IterableTeacher({"train": rows, "dev": rows, "test": rows})
'''

BAG, OWN = '@models = "thincdialog.BagEncoder.v1"', '@layers = "max_words.v1"\nwidth = 8'
CONFIG = f"""
[tasks.colours]
@teachers = "colours.v1"
n_times = 4
{CLASSIFIER.replace(BAG, OWN)}
[training]
max_epochs = 40.0
target_score = 1.0

[training.optimizer]
learn_rate = 0.02
"""


@pytest.fixture()
def code(tmp_path_factory):
    # The path is the same for the whole session, because a file is imported once per process.
    path = tmp_path_factory.getbasetemp() / "mine.py"
    path.write_text(CODE)
    return path


def test_user_code_layer_and_teacher_train_and_load(tmp_path, code):
    result, _ = quietly_train(CONFIG, tmp_path, code=code)
    assert result.scores["test"]["accuracy"] == 1.0
    assert load(tmp_path / BEST, code=code).respond("green") == "go"
    assert evaluate(tmp_path / BEST, code=code)["accuracy"] == 1.0


def test_user_code_layer_is_used_in_a_ranker_and_shows_its_documentation(code):
    text = RANKER.replace(f"{BAG}\nwidth = 16\ndropout = 0.2", OWN)
    assert quietly_train(text, code=code, training__max_steps=3)[0].n_parameters > 0
    with pytest.raises(ConfigError, match="no argument 'widht' - did you mean 'width'"):
        quietly_train(CONFIG.replace("width = 8", "widht = 8"), code=code)


def test_user_code_that_is_missing_or_broken(tmp_path):
    with pytest.raises(DialogError, match="no such Python file"):
        quietly_train(CONFIG, code=tmp_path / "none.py")
    broken = tmp_path / "broken.py"
    broken.write_text("import thincdialog\nx = 1 / 0\n")
    with pytest.raises(DialogError, match="broken.py:2"):
        quietly_train(CONFIG, code=broken)


# --- contracts --------------------------------------------------------------------------

MUTATOR = """[tasks.coffee.mutators.*.own]
@mutators = "tests.contracts.mutator.v1"
kind = "{}"
"""
TOKENIZER = '"tests.contracts.tokenizer.v1"\nkind = "{}"'


class Forgetful(Batcher):
    needs_lengths = False

    def __init__(self):
        self.mine = 3

    def plan(self, lengths, limit, rng):
        return [np.arange(len(lengths.counts))]


@registry.batchers("tests.contracts.forgetful.v1")
def forgetful() -> Batcher:
    return Forgetful()


class Whole:
    """A mutator that sees a whole split."""

    def rewrite(self, episodes, split):
        return None


GIVEN = {
    "nothing": lambda episode: None,
    "an episode": lambda episode: episode,
    "texts": lambda episode: ["hi"],
    "dicts": lambda episode: [[dict(message) for message in episode]],
    "a good one": lambda episode: [[Message(message) for message in episode]],
    "whole": Whole(),
    "no mutator": None,
}


@registry.mutators("tests.contracts.mutator.v1")
def mutator(kind: str):
    return GIVEN[kind]


class Odd(Tokenizer):
    needs_texts = False
    n_ids = 20

    def __init__(self, kind):
        self.kind = kind

    def encode(self, text):
        return {
            "nothing": None,
            "list": [12, 13],
            "fractions": np.array([12.5]),
            "rows": np.array([[12]]),
            "too large": np.array([12, 20]),
            "negative": np.array([-1]),
            "good": np.array([12, 19]),
        }[self.kind]


@registry.tokenizers("tests.contracts.tokenizer.v1")
def tokenizer(kind: str) -> Tokenizer:
    return Odd(kind)


def two_steps(config):
    return quietly_train(config, training__max_steps=2)[0]


def test_a_batcher_that_does_not_call_super_is_an_error():
    config, n = re.subn(
        r"\[world.batcher\]\n(@.*\n)?(\w.*\n)*",
        '[world.batcher]\n@batchers = "tests.contracts.forgetful.v1"\n',
        RANKER,
    )
    assert n == 1
    with pytest.raises(DialogError, match=r"Forgetful has no \w+: call super\(\).__init__\(siz"):
        two_steps(config)
    assert not hasattr(Forgetful(), "other")


@pytest.mark.parametrize(
    "kind, said",
    [
        ("nothing", r"_experiment.py:\d+  <lambda>\(\) returned 'None' \(NoneType\) for the "),
        ("an episode", r"returned among others .* \(Message\) for the episode of '0/0'"),
        ("texts", r"returned among others 'hi' \(str\) for the episode of '0/0'"),
        ("dicts", r"returned among others .* \(list\) for the episode of '0/0'"),
        ("whole", r"\d  Whole.rewrite\(\) returned 'None' \(NoneType\) for the split 'train'"),
    ],
)
def test_a_mutator_that_gives_no_episodes(kind, said):
    with pytest.raises(DataError, match=said) as caught:
        two_steps(RANKER + MUTATOR.format(kind))
    expected = "expected a list of episodes, each a list of Message objects"
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_mutator_of_the_wrong_type_is_an_error():
    with pytest.raises(
        ConfigError, match=r"mutator\(\) returned None, but should return a function"
    ):
        two_steps(RANKER + MUTATOR.format("no mutator"))


@pytest.mark.parametrize(
    "kind, shown",
    [
        ("nothing", "None"), ("list", r"a list of 2 \(\[12, 13\]\)"),
        ("fractions", r"a ndarray of shape \(1,\), float64: \[12.5\]"),
        ("rows", r".*: \[\[12\]\]"), ("too large", r".*: \[12, 20\]"), ("negative", r".*: \[-1\]"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_gives_no_ids(kind, shown):
    config = RANKER.replace('"thincdialog.Words.v1"', TOKENIZER.format(kind))
    with pytest.raises(CodeError, match=rf"Odd.encode\(\) returned {shown} for '.*', but") as e:
        two_steps(config)
    assert "each 0 to 19 (n_ids is 20)" in str(e.value)


def test_valid_custom_objects_train():
    config = RANKER.replace('"thincdialog.Words.v1"', TOKENIZER.format("good"))
    result = two_steps(config + MUTATOR.format("a good one"))
    assert result.stopped_because == "max_steps = 2 reached"


def test_teachers_have_the_names_of_their_tasks():
    teacher = Experiment.from_config(RANKER).training_split()
    with pytest.raises(ProtocolError, match=r"coffee.batch_act\(\) was called before set_batches"):
        teacher.batch_act()


def test_a_stream_is_tokenized_while_it_is_read():
    experiment = Experiment.from_config(RANKER, {"tasks.coffee.streaming": True})
    with experiment.working():
        teacher = experiment.training_split()
        experiment.initialize(teacher, io.StringIO())
        world = experiment.make_world(teacher, experiment.agent)
        world.start_epoch(0, 0)
        assert teacher.batch_act().store.encoder_keys == [experiment.agent.text_encoder.key]


def test_a_stream_is_not_tokenized_to_be_counted_or_surveyed(monkeypatch):
    experiment = Experiment.from_config(RANKER, {"tasks.coffee.streaming": True})
    with experiment.working():
        teacher = experiment.training_split()
        experiment.initialize(teacher, io.StringIO())
        monkeypatch.setattr(MemoryStore, "tokenize", None)
        n_examples = teacher.order.data.lengths().sum()
        assert n_examples == len(list(teacher.examples())) > 0
        assert teacher.order.frequent_labels(3)
        assert any(teacher.texts())


def test_searches_for_garbage_leave_out_large_data_until_the_work_ends(monkeypatch):
    monkeypatch.setattr(split, "MANY", 5)
    experiment = Experiment.from_config(RANKER)
    with experiment.working():
        assert experiment.training_split().n_examples >= 5
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_objects_that_the_caller_froze_stay_frozen():
    gc.freeze()
    with Experiment.from_config(RANKER).working():
        pass
    assert gc.get_freeze_count() > 0


def test_a_model_with_two_spellings_of_a_class_can_be_evaluated(tmp_path):
    data, other = tmp_path / "data.csv", tmp_path / "other.csv"
    data.write_text("text,label\na,yes\nb,no\n")
    other.write_text("text,label\na,yes\nb,no\nc,Yes\n")
    read = '@teachers = "thincdialog.LabelledText.v1"'
    paths = "".join(f'{name} = "{data}"\n' for name in ("train", "dev", "test"))
    text = f"[tasks.answers]\n{read}\n{paths}{CLASSIFIER}[training]\nmax_steps = 2\n"
    text = text.replace('Classifier.v1"', 'Classifier.v1"\nclasses = ["yes", "Yes", "no"]', 1)
    quietly_train(text, tmp_path / "out")
    overrides = {"tasks.answers.test": str(other)}
    assert evaluate(tmp_path / "out" / BEST, overrides=overrides)["examples"] == 3
