"""Data of the loaders of ml_datasets is converted to messages."""

import json
import random

import numpy as np
import pytest

from thincdialog.errors import ConfigError, DataError
from thincdialog.teachers.ml_datasets import MLDatasets

CLASSES = np.eye(3, dtype="float32")


def one(teacher, split="train"):
    return next(teacher.for_split(split, training=True).examples())


@pytest.fixture
def loader():
    """Return a function that registers a loader with ml_datasets for one test, as a third package
    would."""
    import catalogue
    from ml_datasets._registry import register_loader

    def register(function):
        register_loader("made_up", func=function)
        return "made_up"

    yield register
    catalogue._remove(("ml-datasets", "made_up"))


@pytest.mark.slow
def test_ml_datasets_reads_mnist_without_network(data, tmp_path, monkeypatch):
    folder = tmp_path / ".keras" / "datasets"
    folder.mkdir(parents=True)
    (folder / "mnist.pkl.gz").symlink_to(data / "mnist" / "mnist.pkl.gz")
    monkeypatch.setenv("HOME", str(tmp_path))
    teacher = MLDatasets("mnist")
    with pytest.raises(DataError, match="ml_datasets.mnist  .*unpickles.*--allow-pickle"):
        one(teacher)
    monkeypatch.setenv("THINCDIALOG_ALLOW_PICKLE", "1")
    train = teacher.for_split("train", training=True)
    assert train.is_single_turn and train.n_examples == 60000
    assert teacher.for_split("dev").n_examples == 10000
    message = next(train.examples())
    assert message["features"].shape == (784,) and message["features"].dtype == "float32"
    assert 0.0 <= message["features"].min() and message["features"].max() == 1.0
    assert message["labels"] == ["5"]  # The first digit of MNIST.
    assert message["text"] == "" and message["label_candidates"] == list("0123456789")
    assert MLDatasets("mnist", limit=7).for_split("dev").n_examples == 7


# For each kind of loader: data in its documented shapes and types, and the expected text, labels
# and classes.
WORDS = [np.asarray([4, 9], dtype="uint64")]
SHAPES = {
    "text and class (imdb, dbpedia)": (
        ([("good film", "pos"), ("bad film", "neg")], [("fine", "pos")]),
        ("good film", ["pos"], ["neg", "pos"]),
    ),
    "text and several classes (cmu)": (
        ([("A title\nplot", ["Drama", "Comedy"])], [("B", ["Horror"])]),
        ("A title\nplot", ["Comedy", "Drama"], ["Comedy", "Drama", "Horror"]),
    ),
    "pairs (quora_questions, snli, stack_exchange)": (
        ([(("is it?", "really?"), 1), (("a", "b"), 0)], [(("c", "d"), 10)]),
        ("is it?\nreally?", ["1"], ["0", "1", "10"]),
    ),
    "word numbers (reuters)": (
        (([[1, 27, 3], [1, 5]], np.asarray([3, 4])), ([[1]], np.asarray([3]))),
        ("1 27 3", ["3"], ["3", "4"]),
    ),
    "images (cifar, mnist)": (
        ((np.zeros((2, 3, 2, 2), "f"), CLASSES[[2, 0]]), (np.ones((1, 3, 2, 2)), CLASSES[:1])),
        ("", ["2"], ["0", "2"]),
    ),
    "tagged words (ud_*, words)": (
        (([["a", "dog"], ["b"]], [CLASSES[[0, 2]], CLASSES[[1]]]), ([["c"]], [CLASSES[[1]]])),
        ("a dog", ["0 2"], None),
    ),
    "tagged words (ud_*, numbers)": (
        ((WORDS, [CLASSES[[0, 2]]]), (WORDS, [CLASSES[[0, 1]]])),
        ("4 9", ["0 2"], None),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ml_datasets_makes_messages_of_every_shape(loader, shape):
    parts, (text, labels, classes) = SHAPES[shape]
    teacher = MLDatasets(loader(lambda: parts))
    message = one(teacher)
    features = message.pop("features", None)
    expected = {"id": "0/0", "episode_done": True, "text": text, "labels": labels}
    assert message == {**expected, **({"label_candidates": classes} if classes else {})}
    if "images" in shape:
        assert features.shape == (12,) and features.dtype == "float32"
    assert one(teacher, "dev")["labels"]


def test_ml_datasets_reads_the_files_of_its_loaders(tmp_path):
    for split, gold in (("train", "entailment"), ("dev", "neutral")):
        line = {"sentence1": "a man sleeps", "sentence2": "he rests", "gold_label": gold}
        (tmp_path / f"snli_1.0_{split}.jsonl").write_text(json.dumps(line) + "\n")
    teacher = MLDatasets("snli", {"loc": str(tmp_path), "ternary": True})
    assert one(teacher)["text"] == "a man sleeps\nhe rests" and one(teacher)["labels"] == ["2"]

    path = tmp_path / "stack.jsonl"
    rows = [{"text1": str(n), "text2": "b", "label": n % 2} for n in range(10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    teacher = MLDatasets("stack_exchange", {"loc": str(path)})
    assert [teacher.for_split(split).n_examples for split in teacher.splits] == [7, 3]

    path = tmp_path / "wiki.txt"
    path.write_text("The|DT|O dog|NN|O\n\nRome|NNP|I-LOC\n")
    teacher = MLDatasets("wikiner", {"file_": str(path)})
    assert teacher.splits == ["train"]
    assert one(teacher)["text"] == "The dog" and one(teacher)["labels"] == ["O O"]

    rows = "\n".join(f"{n}\tw{n}\t_\tNOUN\tN\t_\t0\troot\t_\t_" for n in (1, 2))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conllu").write_text(f"# text\n{rows}\n\n")
    places = {f"{split}_loc": str(tmp_path / f"{split}.conllu") for split in ("train", "dev")}
    message = one(MLDatasets("ud_pos_tags", {**places, "encode_words": False}))
    assert message["text"] == "w1 w2" and message["labels"] == ["0 0"]


def test_ml_datasets_seeds_the_draws_of_loaders_and_restores_the_state(loader):
    def shuffled():
        rows = [(str(number), "x") for number in range(50)]
        random.shuffle(rows)
        np.random.shuffle(rows)
        return rows[:40], rows[40:]

    name = loader(shuffled)

    def texts(seed):
        return [m["text"] for m in MLDatasets(name, seed=seed).for_split("train").examples()]

    state = random.getstate(), np.random.get_state()[1].tolist()
    assert texts(1) == texts(1) != texts(2)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state


def test_ml_datasets_unreachable_download_is_a_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".keras").mkdir()
    for scheme in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(scheme, "http://127.0.0.1:9")  # There is no server at this port.
    with pytest.raises(DataError, match=r"ml_datasets\.imdb.*not be downloaded.*'arguments'"):
        one(MLDatasets("imdb"))


def test_ml_datasets_refuses_unknown_loaders_and_arguments():
    with pytest.raises(ConfigError, match="'loader'.*is 'mnits'.*did you mean 'mnist'"):
        MLDatasets("mnits")
    with pytest.raises(ConfigError, match="it has .*cmu.*quora_questions.*wikiner"):
        MLDatasets("nothing like it")
    with pytest.raises(ConfigError, match="do not fit the loader 'mnist'.*it takes variant"):
        MLDatasets("mnist", {"variety": "fashion"})


@pytest.mark.parametrize(
    "given, message",
    [
        ((([1, 2], [3]), ([], [])), "2 inputs, but 1 labels"),
        (([(object(), "x")], []), "cannot make a message from '<object"),
    ],
)
def test_ml_datasets_refuses_unusable_data(loader, given, message):
    with pytest.raises(DataError, match=message):
        one(MLDatasets(loader(lambda: given)))


def test_ml_datasets_reports_a_failing_loader(tmp_path):
    with pytest.raises(DataError, match="the loader failed with FileNotFoundError"):
        one(MLDatasets("snli", {"loc": str(tmp_path)}))
