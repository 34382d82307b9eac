"""A run that begins with a saved model: what it takes over, adds, and refuses."""

import json
import shutil

import numpy as np
import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.agents import beginnings
from thincdialog.api import ConfigError, ModelError, evaluate, load
from thincdialog.files.whole_file import written_whole

TASK = """
[paths]
train = null

[tasks.words]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
dev = ${paths.train}

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Classifier.v1"
"""
ENCODER = """
@models = "thincdialog.BagEncoder.v1"
width = 8
segments = "merge"
"""
NET = f'\n[agent.model]\n@models = "thincdialog.Classifier.v1"\n\n[agent.model.encoder]{ENCODER}'
# Classes are in the columns of a table, and in the rows of a layer.
COMMITTEE = f"""
[agent.model]
@models = "thincdialog.Committee.v1"

[agent.model.members.*.linear]
@models = "thincdialog.LinearClassifier.v1"

[agent.model.members.*.net]
@models = "thincdialog.Classifier.v1"

[agent.model.members.*.net.encoder]{ENCODER}"""
TRAINING = """
[training]
max_epochs = 15.0
n_samples = 0

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.05
use_averages = false
"""
WORDS = {
    "colour": "red green blue pink grey",
    "number": "one two three four five",
    "fruit": "apple pear plum grape lemon",
}


def write(path, *classes):
    rows = [{"text": word, "label": name} for name in classes for word in WORDS[name].split()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def firsts(tmp_path_factory):
    """Train on the first two classes. Return the runs' folders by their models."""
    folder = tmp_path_factory.mktemp("first")
    path = write(folder / "first.jsonl", "colour", "number")
    for name, text in (("net", NET), ("committee", COMMITTEE)):
        quietly_train(TASK + text + TRAINING, folder / name, paths__train=path)
    return {NET: folder / "net", COMMITTEE: folder / "committee"}


@pytest.fixture
def begin(firsts, tmp_path):
    """Return a function that begins with a copy of one of them, and trains on one old and one new
    class."""

    def begin(text=NET, **changes):
        shutil.copytree(firsts[text], tmp_path / "first")
        model, path = tmp_path / "first" / "model-best", tmp_path / "second.jsonl"
        options = {"paths__train": write(path, "colour", "fruit"), **changes}
        options.setdefault("training.init_from", str(model))
        return quietly_train(TASK + text + TRAINING, tmp_path / "second", **options)

    return begin


@pytest.mark.parametrize("text", [NET, COMMITTEE], ids=["net", "committee"])
def test_init_from_keeps_classes_and_adds_new_ones(begin, tmp_path, text):
    _, shown = begin(text, training__max_steps=1, training__optimizer__learn_rate=0.0)
    assert "classes: its 2 (1 without an example here), and 1 new: 'fruit'" in shown
    assert "extended by new classes, which have initial weights: " in shown
    before, after = (load(tmp_path / name / "model-best") for name in ("first", "second"))
    assert before.agent.classes == ["colour", "number"]
    assert after.agent.classes == ["colour", "number", "fruit"]
    # Nothing that was trained is lost: the new class has zero weights, and the others are
    # unchanged.
    for name in ("colour", "number"):
        for word in WORDS[name].split():
            assert before.respond(word) == after.respond(word) == name
    assert after.agent.tokenizer.n_ids == before.agent.tokenizer.n_ids


def test_init_from_a_run_begins_with_its_best_model(begin, tmp_path):
    run = tmp_path / "first"
    _, shown = begin(NET, training__max_steps=1, **{"training.init_from": str(run)})
    assert f"Starting from {run / 'model-best'} (" in shown


def test_init_from_continues_training_and_no_longer_needs_the_model(begin, tmp_path):
    result, _ = begin(NET)
    assert result.scores["dev"]["accuracy"] > 0.5
    shutil.rmtree(tmp_path / "first")
    model = tmp_path / "second" / "model-best"
    assert evaluate(model, split="train") == evaluate(model, split="dev")
    assert load(model).agent.classes == ["colour", "number", "fruit"]
    # A checkpoint, too, is enough to resume.
    config = (tmp_path / "second" / "config.cfg").read_text()
    resumed, shown = quietly_train(
        config, tmp_path / "second", resume=True, training__max_epochs=16.0
    )
    assert "Resuming from" in shown and "Starting from" not in shown
    assert resumed.stopped_because == "max_epochs = 16 reached"


def test_init_from_with_the_same_data_begins_where_the_other_ended(firsts, tmp_path):
    model = firsts[NET] / "model-last"
    _, shown = quietly_train(
        TASK + NET + TRAINING,
        tmp_path / "two",
        paths__train=write(tmp_path / "first.jsonl", "colour", "number"),
        training__init_from=str(model),
        training__optimizer__learn_rate=0.0,
        training__max_steps=1,
    )
    weights = [(path / "weights.npy").read_bytes() for path in (model, tmp_path / "two/model-last")]
    assert weights[0] == weights[1]
    n = len(np.load(model / "weights.npy"))
    (head, *lines, warning, place, ops, unimproved, uncalibrated) = shown.splitlines()
    assert head == f"Starting from {model} (thincdialog.Classifier.v1):"
    assert "first.jsonl is the train data, too" in warning
    assert unimproved.startswith("no step has improved accuracy on dev, so the best weights")
    assert place == f"Saving to {tmp_path / 'two'}" and ops.startswith("Computing with ops = ")
    assert "are not calibrated" in uncalibrated
    assert lines[0] == "  classes: its 2" and lines[1].startswith("  tokenizer: its ")
    assert "come from the saved model (5 of 5 parameters)" in lines[2] and len(lines) == 3 and n


def test_init_from_gives_an_encoder_to_an_agent_of_another_kind(begin, tmp_path):
    """A ranker's encoder is used in a classifier with other classes."""
    ranker = RANKER.replace("width = 16\n", 'width = 8\nsegments = "merge"\n')
    quietly_train(ranker, tmp_path / "ranker", training__max_steps=3)
    model = tmp_path / "ranker" / "model-best"
    still = {"training__max_steps": 1, "training__optimizer__learn_rate": 0.0}
    _, shown = begin(**still, **{"training.init_from": str(model)})
    assert (
        "classes: its" not in shown
        and "initialised, because no saved parameter fits: linear.W 2x8, linear.b 2" in shown
    )
    there, here = (load(each).agent.model for each in (model, tmp_path / "second" / "model-best"))
    for name, param in (("bag_embed", "E"), ("linear", "W"), ("linear", "b")):
        one, two = (
            next(node for node in each.walk() if node.name == name).get_param(param)
            for each in (there, here)
        )
        assert one.tobytes() == two.tobytes()
    assert not [node for node in here.walk() if node.name == "linear"][-1].get_param("W").any()


def test_init_from_keeps_the_replies_of_a_ranker(tmp_path):
    model = tmp_path / "one" / "model-best"
    quietly_train(RANKER, tmp_path / "one", training__max_steps=1)
    few = {"tasks__coffee__n_train": 4, "training__max_steps": 1}
    quietly_train(RANKER, tmp_path / "few", **few)
    found = {}
    for most in (50000, 30):
        options = {"training__init_from": str(model), "agent__max_fixed_candidates": most, **few}
        _, shown = quietly_train(RANKER, tmp_path / str(most), **options)
        found[most] = load(tmp_path / str(most) / "model-best").agent.fixed
        own = load(tmp_path / "few" / "model-best").agent.fixed
        n_more = len(found[most]) - len(own)
        assert f"candidates: {len(own)} replies from the data, {n_more:,} from the model" in shown
        assert found[most][: len(own)] == own and n_more > 0
    assert set(found[50000]) == set(load(model).agent.fixed) and len(found[30]) == 30


@pytest.mark.parametrize(
    "changes, error, expected",
    [
        ({"tokenizer.lower": False}, ConfigError, r"\[tokenizer\] lower = False, but True in"),
        ({"agent.classes": ["colour", "fruit"]}, ConfigError, "lacks 1 that .*: 'number'"),
        ({"training.init_from": "nowhere"}, ModelError, "nowhere  is not a folder"),
        ({"training.init_from": 3}, ConfigError, "'init_from' should be a string or null, got 3"),
    ],
)
def test_init_from_what_does_not_fit_is_refused_by_name(begin, tmp_path, changes, error, expected):
    with pytest.raises(error, match=expected):
        begin(NET, **changes)
    assert not (tmp_path / "second" / "model-best").exists()


COUNTING = """
import numpy as np
from thincdialog.api import Learner, Message, StepReport, registry

@registry.agents("tests.counting_of_letters.v1")
class Letters(Learner):
    weights = np.zeros(2, dtype="f")
    n_gathered = 0

    def initialize(self, train, *, tokenizer=None, seed=0, progress=None):
        pass

    def learn(self, batch):
        self.n_gathered += len(batch)

    def update(self, optimizer):
        n, self.n_gathered = self.n_gathered, 0
        return StepReport(n, loss=1.0, weight=n)

    def answer(self, batch):
        return [Message(text="colour") for _ in batch]

    def to_disk(self, folder):
        (folder / "letters.json").write_text("[1]")

    def from_disk(self, folder, *, tokenizer=None):
        (folder / "letters.json").read_text()
"""


def test_init_from_a_custom_agent_says_what_fits(firsts, tmp_path):
    code = tmp_path / "mine.py"
    head = (
        "import numpy as np\nfrom thincdialog.api import Learner, Message, StepReport, registry\n"
    )
    code.write_text(head + COUNTING)
    own = TASK.replace("thincdialog.Classifier.v1", "tests.counting_of_letters.v1")
    options = {"paths__train": write(tmp_path / "a.jsonl", "colour", "number"), "code": code}
    quietly_train(own + TRAINING, tmp_path / "own", **options)
    model = tmp_path / "own" / "model-best"
    for text, start, said in (
        # An agent of the same kind can continue with it. One of another kind has no use for it, and
        # vice versa.
        (own, model, None),
        (TASK + NET, model,
         f"{model}  has no weights that classifier can start from: tests.counting_of_letters.v1 "
         "saved it without layout.json (found: README.md, config.cfg, letters.json, meta.json). "
         "Start from a model of classifier"),
        (own, firsts[NET] / "model-best",
         f"{firsts[NET] / 'model-best'}  is a model of thincdialog.Classifier.v1, which tests."
         "counting_of_letters.v1 cannot read (FileNotFoundError: "),
    ):  # fmt: skip
        settings = {**options, "training__init_from": str(start), "training__max_steps": 1}
        out = tmp_path / f"to_{len(list(tmp_path.iterdir()))}"
        if said is None:
            assert "the whole saved model" in quietly_train(text + TRAINING, out, **settings)[1]
            continue
        with pytest.raises(ModelError) as caught:
            quietly_train(text + TRAINING, out, **settings)
        assert str(caught.value).startswith(said) and not out.exists()


def test_init_from_a_model_without_a_tokenizer_builds_one(begin, firsts, tmp_path):
    model = shutil.copytree(firsts[NET] / "model-best", tmp_path / "model")
    shutil.rmtree(model / "tokenizer")
    meta = json.loads((model / "meta.json").read_text())
    meta["files"] = {name: of for name, of in meta["files"].items() if "tokenizer" not in name}
    (model / "meta.json").write_text(json.dumps(meta))
    _, shown = begin(training__max_steps=1, **{"training.init_from": str(model)})
    assert "tokenizer: new, as the model has none" in shown


def test_init_from_is_in_the_model_card(begin, tmp_path):
    begin(training__max_steps=1)
    card = (tmp_path / "second" / "model-best" / "README.md").read_text()
    assert "- initialised from the saved model `first/model-best`\n" in card
    assert str(tmp_path) not in card


def test_init_from_a_damaged_model_is_refused_before_data_is_read(firsts, tmp_path):
    path = shutil.copytree(firsts[NET] / "model-best", tmp_path / "model")
    layout = json.loads((path / "layout.json").read_text())
    layout["parameters"][0]["offset"] = 10**9
    (path / "layout.json").write_text(json.dumps(layout))
    (tmp_path / "bad.jsonl").write_text("{")
    options = {"paths__train": str(tmp_path / "bad.jsonl"), "training__init_from": str(path)}
    with pytest.raises(ModelError, match="is damaged: layout.json"):
        quietly_train(TASK + NET + TRAINING, tmp_path / "other", **options)
    assert not (tmp_path / "other").exists()
    # Without checksums (of an earlier version), the values are checked all the same.
    meta = json.loads((path / "meta.json").read_text())
    del meta["files"]
    (path / "meta.json").write_text(json.dumps(meta))
    options["paths__train"] = write(tmp_path / "good.jsonl", *WORDS)
    for _ in range(2):
        with pytest.raises(ModelError, match="lies outside of the weights"):
            quietly_train(TASK + NET + TRAINING, tmp_path / "other", **options)
        assert not (tmp_path / "other").exists()


def test_init_from_another_width_is_reported(begin):
    _, shown = begin(training__max_steps=1, **{"agent.model.encoder.width": 16})
    assert (
        "initialised, because no saved parameter fits: bag_embed.E " in shown
        and "not used: bag_embed.E " in shown
    )


def replaced(monkeypatch, place, *models):
    """Replace a model's folder by others, one after the other, each when half of the model before
    it has been read."""
    real, waiting = beginnings.load_tokenizer, list(models)

    def replacing(tokenizer, folder):
        if waiting:
            with written_whole(place) as building:
                shutil.copytree(waiting.pop(0), building, dirs_exist_ok=True)
        real(tokenizer, folder)

    monkeypatch.setattr(beginnings, "load_tokenizer", replacing)


@pytest.mark.slow
def test_init_from_a_model_that_is_replaced_meanwhile_reads_it_again(firsts, tmp_path, monkeypatch):
    """As if a training run saves it: no half of one model is combined with a half of another."""
    data = {"paths__train": write(tmp_path / "first.jsonl", "colour", "number")}
    still = {**data, "training__max_steps": 1, "training__optimizer__learn_rate": 0.0}
    other, place = tmp_path / "other" / "model-best", tmp_path / "run" / "model-best"
    quietly_train(TASK + NET + TRAINING, tmp_path / "other", **data, system__seed=7)
    shutil.copytree(firsts[NET] / "model-best", place)
    replaced(monkeypatch, place, firsts[NET] / "model-last", other)
    options = {"training__init_from": str(place.parent), **still}
    _, shown = quietly_train(TASK + NET + TRAINING, tmp_path / "new", **options)
    assert shown.count("Starting from") == 1
    weights = [(path / "weights.npy").read_bytes() for path in (other, tmp_path / "new/model-last")]
    assert weights[0] == weights[1] != (firsts[NET] / "model-best" / "weights.npy").read_bytes()


def test_init_from_a_model_that_another_size_replaces_says_so(firsts, tmp_path, monkeypatch):
    data = {"paths__train": write(tmp_path / "first.jsonl", "colour", "number")}
    wider, place = {"agent.model.encoder.width": 16}, tmp_path / "model"
    quietly_train(TASK + NET + TRAINING, tmp_path / "other", **data, **wider)
    shutil.copytree(firsts[NET] / "model-best", place)
    replaced(monkeypatch, place, tmp_path / "other" / "model-best")
    with pytest.raises(ModelError, match="model  was replaced by a model of other sizes while it"):
        quietly_train(TASK + NET + TRAINING, training__init_from=str(place), **data)
