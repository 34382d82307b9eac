"""Counts and warnings of `debug data`, on data small enough to count by hand."""

import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.topics import CONFIG as MULTI_LABEL
from tests.agents.topics import LAYOUT
from tests.examples.talk import write_spoken
from tests.training.examples import CLASSIFIER, REPLIES, TALKS
from thincdialog.api import IterableTeacher, debug_data, registry, train
from thincdialog.cli.main import main
from thincdialog.errors import DataError
from thincdialog.formats.context import BadDataError
from thincdialog.inspection.data_comparison import contradictions, repeats
from thincdialog.inspection.data_lengths import LengthSurvey, bin_of, bounds_of

INTENTS = """
[paths]
train = "train.jsonl"
dev = "dev.jsonl"

[tasks.intents]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
dev = ${paths.dev}
""" + CLASSIFIER.replace("[agent]", "[agent]\nmax_context = 3")
TRAIN = [
    ("hello there", "greet"),
    ("hello there", "greet"),  # a duplicate
    ("hello there", "leave"),  # a contradiction
    ("bye", "leave"),
    ("   ", "leave"),
    ("see you soon my friend", "leave"),  # 5 tokens, 2 too many
]
DEV = [
    ("hello there", "greet"),  # The same example is in the training data.
    ("bye", "greet"),  # Its text is.
    ("what is new", "ask"),  # 3 unknown words, a new class
    ("hello friend", "greet"),
]


def write(path, rows):
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def intents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.jsonl", TRAIN)
    write(tmp_path / "dev.jsonl", DEV)


def found(report):
    return [(warning.check, warning.split) for warning in report.warnings]


def test_debug_data_counts(intents):
    report = debug_data(INTENTS)
    train, dev = report.splits
    assert (train.task, train.split, dev.split) == ("intents", "train", "dev")
    assert (train.n_examples, train.n_episodes, dev.n_examples) == (6, 6, 4)
    # "hello there bye see you soon my friend", and the two words of the labels.
    assert report.vocabulary == 10 and report.has_classes
    assert train.lengths["text words"].histogram == [
        (0, 0, 1), (1, 1, 1), (2, 2, 3), (3, 4, 0), (5, 8, 1)
    ]  # fmt: skip
    assert train.lengths["text words"].longest == 5
    assert train.truncated == {"contexts": 1 / 6} and dev.truncated == {"contexts": 0.0}
    assert train.frequent_labels == [("leave", 4), ("greet", 2)]
    assert (train.empty_text.count, train.empty_text.ids) == (1, ["5/0"])
    assert (train.duplicates.count, train.duplicates.ids) == (1, ["2/0"])
    assert (train.contradictions.count, train.contradictions.ids) == (3, ["1/0", "2/0", "3/0"])
    assert (train.n_unknown, dev.n_unknown, dev.n_words) == (0, 3, 8)
    assert dev.unknown_words == [("is", 1), ("new", 1), ("what", 1)]
    assert (dev.in_train.count, dev.in_train.ids, dev.in_train.share) == (1, ["1/0"], 0.25)
    assert (dev.input_in_train.count, dev.text_in_train.count) == (2, 2)
    assert (dev.new_labels.count, dev.new_labels.ids) == (1, ["ask"])
    assert train.in_train.count == 0 and dev.duplicates.count == 0
    json.dumps(report.as_dict())


def test_debug_data_warns(intents):
    report = debug_data(INTENTS)
    assert found(report) == [
        ("size", "train"),
        ("texts", "train"),
        ("class sizes", "train"),
        ("new labels", "dev"),
        ("duplicates", "train"),
        ("contradictions", "train"),
        ("overlap", "dev"),
        ("unknown words", "dev"),
        ("truncation", "train"),
    ]
    assert report.passed == ["reading", "labels", "candidates", "balance", "ids"]
    texts = {warning.check: warning.text for warning in report.warnings}
    assert texts["size"] == "only 6 training examples (fewer than 100)"
    assert texts["unknown words"] == "37.5 % of the words are unknown: is, new, what"
    assert (
        texts["new labels"] == "1 example (25.0 %) has a class that the training data lacks: 'ask'"
    )
    assert "the fewest 'greet': 2" in texts["class sizes"]


def test_debug_data_of_some_splits(intents):
    report = debug_data(INTENTS, splits=["dev"])
    (dev,) = report.splits
    assert dev.split == "dev" and dev.in_train.count == 1 and dev.n_unknown == 3
    with pytest.raises(DataError, match="has no test data"):
        debug_data(INTENTS, splits=["test"])


@pytest.mark.parametrize(
    "tokenizer", ["thincdialog.Words.v1", "thincdialog.HashNgrams.v1", "thincdialog.Bytes.v1"]
)
def test_debug_data_streaming_gives_the_same_report(intents, tokenizer):
    changes = {"tokenizer.@tokenizers": tokenizer}
    reports = [
        debug_data(INTENTS, overrides={"tasks.intents.streaming": streaming, **changes}).as_dict()
        for streaming in (False, True)
    ]
    assert reports[0] == reports[1]
    # If the tokenizer has no vocabulary of words, the words of the texts are counted.
    assert reports[0]["vocabulary"] == (10 if "Words" in tokenizer else 8)
    assert reports[0]["splits"][1]["n_unknown"] == 3


@registry.teachers("tests.debug_data.v1")
def faulty(streaming: bool = False):
    def message(name, text, label, **fields):
        labels = {} if label is None else {"labels": [label]}
        text = {} if text is None else {"text": text}
        return {"id": name, **text, **labels, **fields}

    train = [
        [message("a/0", "one", "two"), message("a/1", "three", "four")],
        [message("b/0", "one", "two"), message("b/1", "five", " ")],
        [message("a/2", "x", "y"), message("a/1", "x", None)],
    ]
    features = [[message(None, None, "two", features=np.ones(3)) for _ in range(2)]]
    dev = [[message("c/0", "three", "four")], [message("c/0", "three", "four")]]
    for turn in features[0]:
        del turn["id"]
    return IterableTeacher({"train": train, "dev": dev, "test": features}, streaming=streaming)


EPISODES = """
[tasks.faulty]
@teachers = "tests.debug_data.v1"

[agent]
@agents = "thincdialog.Retrieval.v1"
history_size = -1
"""


def test_debug_data_of_conversations():
    report = debug_data(EPISODES)
    train, dev, test = report.splits
    assert (train.n_episodes, train.n_conversations, train.n_examples) == (3, 2, 6)
    assert train.lengths["turns"].histogram == [(0, 0, 0), (1, 1, 0), (2, 2, 3)]
    assert "context tokens" not in train.lengths and train.truncated == {}
    assert (train.empty_label.ids, train.without_label.ids) == (["b/1"], ["a/1"])
    # The first turns of a and b are equal; the next ones follow equal contexts.
    assert (train.duplicates.ids, train.contradictions.count) == (["b/0"], 0)
    assert train.repeated_ids.ids == ["a/1"] and train.shared_ids == 1
    assert dev.repeated_ids.ids == ["c/0"]
    # "three" is in the training data, but after other turns.
    assert (dev.in_train.count, dev.text_in_train.count) == (0, 2)
    assert test.n_with_features == 2 and test.without_text.count == 0
    assert (test.n_episodes, test.duplicates.count) == (1, 0)
    assert not report.has_classes
    assert found(report) == [
        ("size", "train"), ("labels", "train"), ("labels", "train"), ("duplicates", "train"),
        ("ids", "train"), ("ids", "dev"),
    ]  # fmt: skip


OUTSIDE = {
    # Labels a, b and x with the candidates a and b, in every format that has candidates.
    "ParlAIText": "text:1\tlabels:a\tlabel_candidates:a|b\tepisode_done:True\n"
    "text:2\tlabels:b\tlabel_candidates:a|b\n"
    "text:3\tlabels:x\tlabel_candidates:a|b\tepisode_done:True\n"
    "text:4\tlabels:x\tlabel_candidates:a|b\n",
    "NumberedText": "1 1\ta\t\ta|b\n1 2\tb\t\ta|b\n2 3\tx\t\ta|b\n1 4\tx\t\ta|b\n",
    "ParlAIText, fixed": "text:1\tlabels:a\tepisode_done:True\ntext:2\tlabels:b\n"
    "text:3\tlabels:x\tepisode_done:True\ntext:4\tlabels:x\n",
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("form", OUTSIDE)
def test_debug_data_counts_labels_outside_their_candidates(tmp_path, form, streaming):
    name, _, fixed = form.partition(", ")
    (tmp_path / "train.txt").write_text(OUTSIDE[form])
    (tmp_path / "fixed.txt").write_text("a\nb\n")
    task = f'[tasks.intents]\n@teachers = "thincdialog.{name}.v1"\n'
    task += f'train = "{tmp_path / "train.txt"}"\nstreaming = {json.dumps(streaming)}\n'
    task += f'candidates = "{tmp_path / "fixed.txt"}"\n' if fixed else ""
    task += '[tasks.intents.mutators.*.flatten]\n@mutators = "thincdialog.Flatten.v1"\n\n'
    config = task + INTENTS[INTENTS.index("[tokenizer]") :]
    (part,) = debug_data(config).splits
    assert part.n_examples == 4
    assert (part.outside.count, part.outside.ids, part.outside.share) == (2, ["x"], 0.5)
    assert part.outside_examples == ["1/1", "2/0"]
    (warning,) = [w for w in debug_data(config).warnings if w.check == "candidates"]
    expected = "2 examples (50.0 %) have a label that is not a candidate: 'x' (first in 1/1, 2/0)"
    assert warning.text == expected and warning.split == "train"
    # The report works although no model can be trained on the data.
    with pytest.raises(DataError, match="the label 'x' .*is not among the 2 "):
        train(config, stdout=io.StringIO(), stderr=io.StringIO())


def test_debug_data_reads_contexts_as_the_agent_does():
    report = debug_data(EPISODES + '[tokenizer]\n@tokenizers = "thincdialog.Words.v1"\n')
    # one | one, turn, two, turn, three | (the same twice) | x | x, turn, y, turn, x
    assert report.splits[0].lengths["context tokens"].histogram == [
        (0, 0, 0), (1, 1, 3), (2, 2, 0), (3, 4, 0), (5, 8, 3)
    ]  # fmt: skip


@given(st.lists(st.integers(0, 5)))
def test_debug_data_repeats(values):
    later = repeats(np.array(values, dtype=np.int64))
    assert later.tolist() == [i for i, v in enumerate(values) if v in values[:i]]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_debug_data_contradictions(rows):
    inputs = np.array([row[0] for row in rows], dtype=np.int64)
    pairs = np.array([10 * read + label for read, label in rows], dtype=np.int64)
    expected = [
        number
        for number, (read, label) in enumerate(rows)
        if any(other == read and label != another for other, another in rows)
    ]
    assert contradictions(inputs, pairs).tolist() == expected


@given(st.lists(st.integers(0, 300), min_size=1))
def test_debug_data_lengths(values):
    summary = LengthSurvey.of(Counter(values))
    assert summary.mean == pytest.approx(np.mean(values)) and summary.longest == max(values)
    assert summary.median == np.quantile(values, 0.5, method="inverted_cdf")
    assert summary.most_95 == np.quantile(values, 0.95, method="inverted_cdf")
    expected = [sum(low <= v <= high for v in values) for low, high, _ in summary.histogram]
    assert [count for *_, count in summary.histogram] == expected and sum(expected) == len(values)
    for value in values:
        low, high = bounds_of(bin_of(value))
        assert low <= value <= high


def test_debug_data_lists_all_that_cannot_be_read(intents, tmp_path):
    rows = [json.dumps({"text": "hi", "label": "x"})] * 40
    for line in range(3, 40):
        rows[line] = ['{"text": 3, "label": "x"}', "{", '{"text": "a"}'][line % 3]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    (tmp_path / "dev.jsonl").write_text(rows[0] + "\nno\n")
    with pytest.raises(BadDataError) as caught:
        debug_data(INTENTS)
    train, dev = caught.value.found
    assert (train.n_problems, train.n_read) == (37, 3) and [e.line for e in dev.first] == [2]
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[26]) == ("train.jsonl  37 problems", "  ... and 12 more")
    assert [line.split()[0] for line in lines[1:26]] == [f"train.jsonl:{n}" for n in range(4, 29)]
    assert lines[27:] == ["dev.jsonl  1 problem",
                          "  dev.jsonl:2  not valid JSON at column 1: Expecting value; the line is "
                          "'no'"]  # fmt: skip


def test_debug_data_warns_of_what_is_skipped_and_says_what_is_held_out(intents, tmp_path):
    rows = [json.dumps({"text": f"hi {n}", "label": f"x{n % 2}"}) for n in range(60)]
    rows[7] = "{"
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    changes = {
        "tasks.intents.dev": None,
        "tasks.intents.dev_share": 0.25,
        "tasks.intents.on_bad_data": "skip",
    }
    report = debug_data(INTENTS, overrides=changes)
    (warning,) = [warning for warning in report.warnings if warning.check == "reading"]
    assert warning.split == "train"
    assert warning.text.startswith(
        "1 of 60 examples of train.jsonl cannot be read and are skipped: train.jsonl:8  not valid"
    )
    train, dev = report.splits
    assert train.n_examples + dev.n_examples == 59
    assert dev.held_out == "25 % of the training conversations, drawn with dev_seed 0"
    assert json.loads(json.dumps(report.as_dict()))["splits"][0]["skipped"][0]["n_skipped"] == 1
    with pytest.raises(BadDataError, match="train.jsonl  1 problem"):
        debug_data(INTENTS, overrides={**changes, "tasks.intents.max_bad_share": 0.0})


def test_debug_data_names_the_teacher_of_another_format(intents, tmp_path):
    turns = [{"speaker": who, "text": "hi"} for who in "ab"]
    (tmp_path / "train.jsonl").write_text(json.dumps({"turns": turns}) + "\n")
    with pytest.raises(DataError) as caught:
        debug_data(INTENTS)
    override = "--tasks.intents.@teachers thincdialog.Conversations.v1"
    assert str(caught.value).endswith(override)
    report = debug_data(INTENTS, overrides={override.split()[0][2:]: override.split()[1],
                                            "tasks.intents.dev": None})  # fmt: skip
    assert report.splits[0].n_examples == 1


PICTURES = """
from thincdialog.api import registry


@registry.datasets("tests.pictures.v1")
def pictures():
    shown = [([[0.0], [1.0]], "b"), ([[1.0], [0.0]], "a"), ([[0.0], [1.0]], "b"), ([[2.0]], "a")]
    return [{"text": "which?", "image": image, "label": label} for image, label in shown]


@registry.collates("tests.pictures.v1")
def collate():
    return lambda batch, tokens: tokens
"""
PICTURE_TASK = """
[tasks.pictures]
@teachers = "thincdialog.Dataset.v1"

[tasks.pictures.train]
@datasets = "tests.pictures.v1"

[agent.collate]
@collates = "tests.pictures.v1"
"""


def test_debug_data_compares_examples_by_the_fields_of_a_collate_function(tmp_path):
    (tmp_path / "pictures.py").write_text(PICTURES)
    (train,) = debug_data(CLASSIFIER + PICTURE_TASK, code=tmp_path / "pictures.py").splits
    assert (train.duplicates.ids, train.contradictions.count) == (["2/0"], 0)


def test_debug_data_counts_conversations_without_the_label_speaker(tmp_path):
    path = write_spoken(tmp_path / "train.jsonl", *["bot", "agent", "agent"] * 9)
    changes = {"paths.train": path, "paths.dev": None, "paths.test": None}
    report = debug_data(TALKS + REPLIES, overrides={**changes, "tasks.talk.label_speaker": "agent"})
    (warning,) = [warning for warning in report.warnings if warning.check == "reading"]
    assert warning.text == (
        f"9 of 27 conversations of {path} are left out: the label_speaker does not reply in them"
    )
    assert report.as_dict()["splits"][0]["skipped"][0]["n_without"] == 9


def test_debug_data_needs_no_training_examples_that_are_out_of_scope(intents):
    config = INTENTS.replace("[agent]", '[agent]\nreject_class = "ask"')
    assert ("new labels", "dev") in found(debug_data(config))  # It rejects no text.
    report = debug_data(config.replace("[agent]", "[agent]\nthreshold = 0.5"))
    assert ("new labels", "dev") not in found(report)
    assert report.splits[1].new_labels.count == 0


def test_debug_data_of_sets_of_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.yml").write_text(LAYOUT)
    train = [("a", ["x", "y"]), ("b", ["y", "x"]), ("c", ["x"]), ("d", []), ("d", ["x"])]
    for name, rows in (("train", train), ("dev", [("e", ["x", "z"])])):
        rows = [{"text": text, "intents": labels} for text, labels in rows]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    report = debug_data(MULTI_LABEL)
    part, dev = report.splits
    assert part.lengths["labels of a text"].histogram == [(0, 0, 1), (1, 1, 2), (2, 2, 2)]
    assert part.pairs == [("x", "y", 2)]
    assert (part.n_labels, part.frequent_labels) == (2, [("x", 4), ("y", 2)])
    assert part.without_label.count == 0  # It is known whether a text has labels.
    texts = {warning.check: warning.text for warning in report.warnings}
    assert texts["class sizes"].startswith(
        "2 of 2 labels have fewer than 10 examples, the fewest 'y': 2"
    )
    assert texts["contradictions"].startswith("2 examples")  # "d"
    assert "a label that the training data lacks: 'z'" in texts["new labels"]
    assert (dev.new_labels.count, dev.pairs) == (1, [("x", "z", 1)])


def test_texts_with_different_labels_and_near_duplicates_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    track = [("Where is my parcel now?", "track"), ("where is my parcel now?", "other")]
    train_rows = [
        *track,
        ("stop", "cancel"),
        ("stop", "end"),
        ("stop", "cancel"),
        ("a b c d", "track"),
        ("STOP !", "track"),
    ]
    dev_rows = [
        ("is my parcel where now", "track"),
        ("stop", "end"),
        ("a b c x", "track"),
        ("!", "end"),
    ]
    write(tmp_path / "train.jsonl", train_rows)
    write(tmp_path / "dev.jsonl", dev_rows)
    report = debug_data(INTENTS, stderr=io.StringIO())
    learned, dev = report.splits
    # Texts that differ only in case and punctuation follow each other.
    assert learned.differing_texts == [
        ("Where is my parcel now?", ["track"]), ("where is my parcel now?", ["other"]),
        ("stop", ["cancel", "end"]), ("STOP !", ["track"]),
    ]  # fmt: skip
    assert learned.contradictions.count == 3
    assert (dev.near_train.count, dev.near_train.ids) == (1, ["1/0"])
    near = [("is my parcel where now", "Where is my parcel now?"), ("stop", "stop")]
    assert (learned.near_texts, dev.near_texts) == ([], near)
    assert report.regime.startswith("Very small data: 2 training examples per class.")
    (tmp_path / "a.cfg").write_text(INTENTS)
    assert main(["debug", "data", "a.cfg"]) == 0
    shown = capsys.readouterr().out
    assert "cancel | end" in shown and "same or similar training text\n" in shown
    assert "is my parcel where now  Where is my parcel now?" in shown
    assert re.search("\nstop +stop\n", shown)


def test_near_duplicates_are_all_in_json_and_the_first_10_in_the_table(intents, capsys):
    Path("a.cfg").write_text(INTENTS)
    write(Path("dev.jsonl"), [("you see my soon friend", "leave")] * 12)
    (_, dev) = debug_data(INTENTS, stderr=io.StringIO()).splits
    assert len(dev.near_texts) == 12
    assert main(["debug", "data", "a.cfg"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("you see my soon friend") == 10 and "... and 2 more" in shown


def test_labels_that_may_be_missing_values_are_counted_and_shown(intents):
    rows = [*TRAIN, ("a", "NaN"), ("b", "NaN"), ("c", "None"), ("d", "n/a"), ("e", "nay")]
    write(Path("train.jsonl"), rows)
    (warning,) = [w for w in debug_data(INTENTS, splits=["train"]).warnings if w.check == "labels"]
    assert warning.text == "labels that may be missing values: 'NaN' (2), 'None' (1), 'n/a' (1)"
    stderr = io.StringIO()
    train(INTENTS, overrides={"training.max_steps": 1}, stderr=stderr)
    expected = "4 training labels may be missing values, and become classes: 'NaN', 'None'"
    assert expected in stderr.getvalue()


def test_a_file_of_parlais_text_without_ends_of_episodes_is_warned_of(intents):
    Path("a.txt").write_text("text:a\tlabels:x\ntext:b\tlabels:y\n")
    config = INTENTS.replace("LabelledText", "ParlAIText")
    overrides = {"paths.train": "a.txt", "paths.dev": None}
    (found,) = [w for w in debug_data(config, overrides=overrides).warnings if w.check == "reading"]
    assert found.text.startswith("a.txt: no line has episode_done:True")
    stderr = io.StringIO()
    result = train(config, overrides={**overrides, "training.max_steps": 1}, stderr=stderr)
    assert "a.txt  no line has episode_done:True" in stderr.getvalue() and not result.left_out
