"""Answers to unlabelled rows: each row is its own conversation. The order is that of the file."""

import csv
import gzip
import json
import zipfile

import pytest

from tests.agents.topics import CONFIG as MULTI_LABEL
from tests.agents.topics import topics as texts_with_topics
from tests.training.examples import CLASSIFIER, RANKER, quietly_train
from thincdialog.agents.repeat_label import RepeatLabelAgent
from thincdialog.api import (
    DataError,
    DialogError,
    IterableTeacher,
    TrainedModel,
    evaluate_in_detail,
    load,
    predict,
    registry,
)
from thincdialog.evaluation import predict as predicting

WORDS = "red green blue warm cold tall short".split()
INTENTS = f"""
[tasks.intents]
@teachers = "thincdialog.LabelledText.v1"
train = "train.jsonl"
test = "test.jsonl"
text_field = "said"
{CLASSIFIER}
[training]
max_steps = 10
"""
FEATURES = f"""
[tasks.pairs]
@teachers = "tests.predict_pairs.v1"

{CLASSIFIER[CLASSIFIER.index("[agent]") :]}
[training]
max_steps = 2
""".replace('@models = "thincdialog.BagEncoder.v1"', '@layers = "Relu.v1"\nnO = 4')
TASK = """
[tasks.talk]
@teachers = "thincdialog.Conversations.v1"
train = "talk.jsonl"
label_speaker = "b"

[tasks.talk.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"
"""


@registry.teachers("tests.predict_pairs.v1")
def pairs():
    rows = [{"features": [float(n % 2), 1.0], "labels": ["ab"[n % 2]]} for n in range(20)]
    return IterableTeacher({"train": rows})


def talk(n_turns):
    return {"turns": [{"speaker": "ab"[n % 2], "text": f"{WORDS[n % 7]} {WORDS[(n * n_turns) % 7]}"}
                      for n in range(n_turns)]}  # fmt: skip


def talk_until(n_turns, end):
    return {"turns": talk(n_turns)["turns"][:end]}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Make a folder with a classifier, a ranker, and their data."""
    folder = tmp_path_factory.mktemp("models")
    rows = [{"said": f"{a} {b}", "label": a} for a in WORDS for b in WORDS]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, rows[:9])))
    (folder / "talk.jsonl").write_text("\n".join(json.dumps(talk(n)) for n in range(2, 12)))
    task = RANKER.index("[tasks.coffee]"), RANKER.index("[tokenizer]")
    ranker = RANKER[: task[0]] + TASK + RANKER[task[1] :].replace('"inline"', '"batch"')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        quietly_train(INTENTS, folder / "intents")
        quietly_train(ranker, folder / "talk", training__max_steps=6, training__score="loss")
    return folder


@pytest.fixture(autouse=True)
def in_folder(models, monkeypatch):
    monkeypatch.chdir(models)


def test_predict_answers_as_evaluation_does():
    found = evaluate_in_detail("intents/model-last", n_resamples=0).predictions[""]
    answers = list(predict("intents/model-last", "test.jsonl", top=3))
    for row, prediction in zip(answers, found):
        assert (row["said"], row["label"]) == (prediction.text, prediction.labels[0])
        assert row["reply"] == prediction.reply["text"]
        assert [one["text"] for one in row["candidates"]] == prediction.reply["text_candidates"][:3]
        scores = prediction.reply["candidate_scores"][:3]
        assert [one["score"] for one in row["candidates"]] == pytest.approx(list(scores), rel=1e-6)
        assert row["score"] == row["candidates"][0]["score"]
    assert len(answers) == 9


@pytest.mark.parametrize("max_batch", [1, 7, 30])
def test_predict_in_any_batches_and_parts_gives_the_same(max_batch, monkeypatch):
    texts = [" ".join(WORDS[: n % 6 + 1]) + f" {n}" for n in range(50)]
    expected = list(predict("intents/model-last", texts))
    assert [row["said"] for row in expected] == texts
    monkeypatch.setattr(predicting, "N_ROWS", 11)
    model = TrainedModel("intents/model-last", max_batch=max_batch)
    assert list(predicting.Answers(model, texts)) == expected


def test_predict_answers_the_last_turn_of_conversations():
    conversations = [{"id": str(n), **talk(n)} for n in (1, 3, 5, 7)]
    answers = list(predict("talk/model-last", conversations))
    bot = load("talk/model-last")
    for conversation, row in zip(conversations, answers):
        bot.reset()
        bot._talker.use_reply = "label"
        *before, last = conversation["turns"]
        for partner, own in zip(before[::2], before[1::2]):
            message = {"text": partner["text"], "labels": [own["text"]], "episode_done": False}
            bot._talker.observe(message)
            bot._talker.self_observe({})
        assert row == {**conversation, "reply": bot.respond(last["text"]), "score": row["score"]}
    # A last turn of the model's side is a label, so it is not used.
    (row,) = predict("talk/model-last", [talk(4)])
    assert row["reply"] == next(iter(predict("talk/model-last", [talk_until(4, 3)])))["reply"]


def test_predict_reads_a_file_in_the_layout_of_the_models_data(tmp_path):
    layout = {"@teachers": "thincdialog.JSONLayout.v1", "layout": "messages"}
    changes = {f"tasks.talk.{name}": value for name, value in layout.items()}
    changes |= {"tasks.talk.system_turns": "drop", "tasks.talk.label_speaker": "b"}
    said = [{"role": turn["speaker"], "content": turn["text"]} for turn in talk(5)["turns"]]
    rows = [{"messages": [{"role": "system", "content": "cold"}, *said]}, {"messages": said}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (expected,) = predict("talk/model-last", [talk(5)])
    for source in (path, rows):
        found = list(predict("talk/model-last", source, overrides=changes))
        assert [row.pop("reply") for row in found] == [expected["reply"]] * 2
        assert [{"messages": row["messages"]} for row in found] == rows
    # A given format overrides the layout. A file of texts is not read with the layout.
    path.write_text('{"text": "red"}\n')
    (row,) = predict("talk/model-last", path, overrides=changes, format="jsonl")
    (tmp_path / "a.txt").write_text("red\n")
    (same,) = predict("talk/model-last", tmp_path / "a.txt", overrides=changes)
    assert row == same
    with pytest.raises(DialogError, match="text_field has no meaning with the layout 'alpaca'"):
        predict("talk/model-last", path, format="alpaca", text_field="said")
    with pytest.raises(DialogError, match="system_turns has a meaning only with a layout"):
        predict("talk/model-last", path, system_turns="drop")


def test_predict_gives_an_unknown_reply_below_the_threshold():
    texts = ["red", "tall warm", "blue short green"]
    whole = list(predict("intents/model-last", texts, top=9))
    least = sorted(row["score"] for row in whole)[1]
    for row, found in zip(whole, predict("intents/model-last", texts, top=9, threshold=least)):
        said = row["reply"] if row["score"] >= least else "unknown"
        assert found == {**row, "reply": said, "guess": row["reply"]}
    changes = {"agent.reject_class": "none", "agent.threshold": 1.0}
    # A given threshold replaces that of the model.
    (row,) = predict("intents/model-last", texts[:1], top=9, threshold=0.0, overrides=changes)
    assert row == whole[0]
    model = TrainedModel("intents/model-last")
    model.agent = RepeatLabelAgent()
    with pytest.raises(DialogError, match="repeat_label returns no probabilities, so it has no"):
        list(predicting.Answers(model, ["red"], threshold=0.1))


def test_predict_chooses_among_the_candidates_of_a_row():
    rows = [{"text": "red", "label_candidates": [f"blue {n}", "tall"]} for n in range(3)]
    answers = list(predict("talk/model-last", rows, top=5, prefix="my_"))
    for row, answer in zip(rows, answers):
        assert {one["text"] for one in answer["my_candidates"]} == set(row["label_candidates"])
        assert answer["my_reply"] == answer["my_candidates"][0]["text"]


def test_predict_chooses_among_classes_of_a_row():
    rows = [{"said": "red", "label_candidates": some} for some in (["blue", "tall", "no"], ["no"])]
    told = []
    (answer,) = predict("intents/model-last", rows, top=5, on_error=told.append)
    assert {one["text"] for one in answer["candidates"]} == {"blue", "tall"}
    assert answer["reply"] == answer["candidates"][0]["text"]
    assert str(told[0]) == "rows:2  none of 'label_candidates' is a class of the model: 'no'"


def test_predict_reports_rows_that_cannot_be_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"said": "red"}\n{\n{"said": 3}\n{"said": "blue", "n": 1}\n')
    with pytest.raises(DataError, match="a.jsonl:2  not valid JSON"):
        list(predict("intents/model-last", path))
    told = []
    answers = predict("intents/model-last", path, on_error=told.append)
    assert [(row["said"], row.get("n")) for row in answers] == [("red", None), ("blue", 1)]
    assert [error.line for error in told] == [2, 3]
    assert (answers.bad.n_answered, answers.bad.n_skipped) == (2, 2)
    path.write_text("{\n" * 100)
    with pytest.raises(DataError, match="none of the first 25 rows can be read"):
        list(predict("intents/model-last", path, on_error=told.append))
    assert len(told) == 27


def test_predict_gives_the_guess_that_the_model_rejects(tmp_path):
    changes = {"agent.reject_class": "none", "agent.threshold": 1.0}
    (row,) = predict("intents/model-last", ["red"], top=2, overrides=changes)
    best, other = row["candidates"]
    assert (row["reply"], row["guess"], row["score"]) == ("none", best["text"], best["score"])
    assert best["score"] > other["score"] > 0
    (tmp_path / "a.csv").write_text("said\nred\n")
    answers = predict("intents/model-last", tmp_path / "a.csv", overrides=changes)
    header, cells = csv.reader(answers.lines())
    assert header == ["said", "reply", "score", "guess"]
    assert (cells[1], float(cells[2]), cells[3]) == ("none", row["score"], row["guess"])


def test_predict_leaves_out_rows_that_the_model_does_not_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"said": "red"}\n{"features": [1.0]}\n{"said": "blue"}\n')
    told = []
    answers = list(predict("intents/model-last", path, on_error=told.append))
    assert [row["said"] for row in answers] == ["red", "blue"]
    assert [str(error) for error in told] == [
        f"{path}:2  has features, but this model reads text: leave them out"
    ]
    quietly_train(FEATURES, tmp_path / "run")
    path.write_text('{"features": [1, 1]}\n{"features": [1]}\n{"features": [NaN, 1]}\n'
                    '{"said": "red"}\n{"features": [0, 1]}\n')  # fmt: skip
    told = []
    for form in ("parlai", "csv", "text"):
        with pytest.raises(DataError, match=f"the format '{form}' holds text, but this model"):
            predict(tmp_path / "run" / "model-last", path, on_error=told.append, format=form)
    answers = list(predict(tmp_path / "run" / "model-last", path, on_error=told.append))
    assert [row["features"] for row in answers] == [[1, 1], [0, 1]]
    assert [error.line for error in told] == [2, 3, 4]


def test_predict_reads_one_part_at_a_time():
    n_read = 0

    def endless():
        nonlocal n_read
        while True:
            n_read += 1
            yield f"red {n_read}"

    answers = iter(predict("intents/model-last", endless()))
    assert next(answers)["said"] == "red 1" and n_read == predicting.N_ROWS
    for _ in range(predicting.N_ROWS):
        row = next(answers)
    assert row["said"] == f"red {predicting.N_ROWS + 1}" and n_read == 2 * predicting.N_ROWS


def test_predict_refuses_invalid_numbers():
    with pytest.raises(ValueError, match="top = 0"):
        predict("intents/model-last", [], top=0)
    with pytest.raises(ValueError, match="threshold = 1.5"):
        predict("intents/model-last", [], threshold=1.5)


def test_a_saved_model_does_not_need_its_file_of_candidates(tmp_path):
    path = tmp_path / "replies.txt"
    path.write_text("An Albatross of Tall Story with Moonlight, got it.\nno\n")
    changes = {"agent.fixed_candidates": str(path), "agent.candidates": "batch"}
    quietly_train(RANKER, tmp_path / "out", training__max_steps=2, **changes)
    model = tmp_path / "out" / "model-last"
    before = list(predict(model, ["hi", "so"])), evaluate_in_detail(model, split="dev").scores
    path.unlink()
    after = list(predict(model, ["hi", "so"])), evaluate_in_detail(model, split="dev").scores
    assert after == before


PICTURES = """
import numpy
from thincdialog.api import registry

SIDES = [[[1.0, 0.0]], [[0.0, 1.0]]]


@registry.datasets("tests.sides.v1")
def sides():
    return [{"picture": SIDES[n % 2], "label": ("left", "right")[n % 2]} for n in range(40)]


@registry.collates("tests.sides.v1")
def collate():
    return lambda batch, tokens: numpy.stack(batch.column("picture"))
"""
PICTURE_CONFIG = """
[tasks.sides]
@teachers = "thincdialog.Dataset.v1"

[tasks.sides.train]
@datasets = "tests.sides.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.collate]
@collates = "tests.sides.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@layers = "thincdialog.Flatten.v1"

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.1
"""


def test_predict_gives_a_model_the_fields_that_its_collate_function_reads(tmp_path):
    code, out = tmp_path / "sides.py", tmp_path / "out"
    code.write_text(PICTURES)
    result, _ = quietly_train(PICTURE_CONFIG, out, code=code, training__max_epochs=5)
    assert not result.can_chat
    rows = [{"picture": [[0.0, 2.0]], "n": 1}, {"picture": [[2.0, 0.0]], "n": 2}]
    answers = predict(out / "model-last", rows, code=code)
    assert [(each["n"], each["reply"]) for each in answers] == [(1, "right"), (2, "left")]


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """Train a model that predicts several labels. Return its folder."""
    folder = tmp_path_factory.mktemp("topics")
    rows = [f"{row['text']},{';'.join(row['intents'])}" for row in texts_with_topics(80)]
    (folder / "train.csv").write_text("\n".join(["text,label", *rows]))
    head = '@teachers = "thincdialog.LabelledText.v1"\nlabel_separator = ";"\n'
    tail = MULTI_LABEL[MULTI_LABEL.index("[tokenizer]") :]
    config = f'[tasks.topics]\n{head}train = "{folder}/train.csv"\n\n{tail}'
    quietly_train(config, folder / "out")
    return folder


def test_predict_gives_all_labels_with_their_scores(topics):
    both, none = predict(topics / "out", ["hello refund and parcel", "hello well"])
    assert sorted(both["reply"]) == ["parcel", "refund"] and (none["reply"], none["score"]) == (
        [],
        [],
    )
    assert both["score"] == sorted(both["score"], reverse=True) and both["score"][1] >= 0.5
    (row,) = predict(topics / "out", ["hello well"], top=4, threshold=1e-30)
    # A given threshold replaces those of the model.
    assert row["reply"] == [one["text"] for one in row["candidates"]] and len(row["reply"]) == 4


def test_predict_writes_labels_into_a_table_as_they_are_read(topics):
    (topics / "new.csv").write_text("text\nhello refund and parcel\nhello well\n")
    answers = predict(topics / "out", topics / "new.csv")
    header, both, none = csv.reader(answers.lines())
    assert header == ["text", "reply", "score"]
    assert sorted(both[1].split(";")) == ["parcel", "refund"] and len(both[2].split(";")) == 2
    assert none[1:] == ["", ""]


@pytest.mark.parametrize(
    "teacher, more, line",
    [
        ("ParlAIText", "", "text:{0} {1}\tlabels:{0}\tepisode_done:True"),
        ("NumberedText", "", "1 {0} {1}\t{0}\t1"),
        ("NumberedText", "supporting = false", "1 {0} {1}\t{0}\t0.5"),
        ("JSONLayout", 'layout = "fasttext"', "__label__{0} {0} {1}"),
        ("JSONLayout", 'layout = "iob"', "{0} {1}\tO O {0}"),
    ],
)
def test_predict_reads_the_file_that_the_model_was_trained_on(tmp_path, teacher, more, line):
    lines = [line.format(a, b) for a in WORDS for b in WORDS]
    (tmp_path / "data.txt").write_text("\n".join(lines))
    task = f"""
[tasks.words]
@teachers = "thincdialog.{teacher}.v1"
train = "{tmp_path}/data.txt"
{more}
"""
    quietly_train(f"{task}{CLASSIFIER}[training]\nmax_steps = 2\n", tmp_path / "run")
    rows = list(predict(tmp_path / "run" / "model-last", tmp_path / "data.txt"))
    assert [row["text"] for row in rows] == [f"{a} {b}" for a in WORDS for b in WORDS]
    # A file that does not look like this format is a file of texts.
    (tmp_path / "texts.txt").write_text("tall\n1 short\n")
    rows = list(predict(tmp_path / "run" / "model-last", tmp_path / "texts.txt"))
    assert [row["text"] for row in rows] == ["tall", "1 short"]
    (tmp_path / "texts.jsonl").write_text('{"text": "tall"}\n')
    (row,) = predict(tmp_path / "run" / "model-last", tmp_path / "texts.jsonl")
    assert row["text"] == "tall"


CHAT = "31/12/2023, 23:58 - Ann: tall\n01/01/2024, 00:01 - Ben: short\n"
RASA = "nlu:\n- intent: tall\n  examples: |\n    - tall one\n"
FASTTEXT = "__label__tall tall one\n__label__short short\n"
SPOKEN = "A: tall\nB: short\n\nA: warm\nB: cold\n"


@pytest.mark.parametrize(
    ("name", "content", "looks", "texts"),
    [
        ("a.txt", CHAT, "whatsapp", ["short"]),
        ("a.ft", FASTTEXT, "fasttext", ["tall one", "short"]),
        ("a.txt", SPOKEN, "speaker-lines", ["short", "cold"]),
        ("a.iob", "tall one\tO O size\nshort\tO size\n", "iob", ["tall one", "short"]),
        ("a.txt", "text:tall\tlabels:x\tepisode_done:True\n", "parlai", ["tall"]),
        ("a.yml", RASA, "rasa", ["- tall one"]),
        ("a.json", '{"intents": [{"tag": "x", "patterns": ["tall"]}]}', "intents", ["tall"]),
        ("a.jsonl", '{"prompt": "a", "completion": "b", "text": "a"}\n', "prompt-completion",
         ["a"]),
        ("a.yml", "own: [tall]\n", "YAML", None),
        ("a.yml", "own: [tall\n", "not valid YAML", None),
    ],
)  # fmt: skip
def test_predict_does_not_read_other_formats_as_lines_of_text(
    tmp_path, name, content, looks, texts
):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=looks) as caught:
        predict("intents/model-last", path)
    assert (f"looks like {looks}: use --format {looks}" in str(caught.value)) == bool(texts)
    if texts:
        rows = list(predict("intents/model-last", path, format=looks))
        found = [row.get("text", row.get("said", row.get("0"))) for row in rows if row["reply"]]
        assert found == texts
        assert all(row["reply"] in WORDS for row in rows if row["reply"] is not None)
    if path.suffix not in (".yml", ".json"):
        rows = list(predict("intents/model-last", path, format="text"))
        assert [row["said"] for row in rows] == content.splitlines()


def test_predict_takes_the_same_paths_as_teachers(tmp_path):
    rows = [{"said": f"{a} {b}", "n": n} for n, (a, b) in enumerate(zip(WORDS, WORDS[1:]))]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[:2]))
    packed = "".join(f"{json.dumps(row)}\n" for row in rows[2:4]).encode()
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(packed))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("c.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows[4:]))
    expected = list(predict("intents/model-last", rows))
    for source in (tmp_path, f"{tmp_path}/*", tmp_path / "[abc].*"):
        answers = predict("intents/model-last", source)
        assert list(answers) == expected and answers.form == "jsonl"
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(packed + b"3\n"))
    with pytest.raises(DataError, match="b.jsonl.gz:3  expected a JSON object"):
        list(predict("intents/model-last", tmp_path))
    (tmp_path / "d.csv").write_text("said\nred\n")
    with pytest.raises(DataError, match="c.zip  is in another format than .*d.csv"):
        predict("intents/model-last", tmp_path)
    with pytest.raises(DataError, match="file not found"):
        list(predict("intents/model-last", f"{tmp_path}/*.tsv"))


def test_predict_reads_yaml_that_the_model_was_trained_on(tmp_path):
    examples = "".join(f"    - {a} {b}\n" for a in WORDS for b in WORDS)
    entries = [f"- intent: {word}\n  examples: |\n{examples}" for word in WORDS]
    (tmp_path / "nlu.yml").write_text(f"nlu:\n{''.join(entries)}")
    task = f"""
[tasks.words]
@teachers = "thincdialog.JSONLayout.v1"
layout = "rasa"
train = "{tmp_path}/nlu.yml"
"""
    quietly_train(f"{task}{CLASSIFIER}[training]\nmax_steps = 2\n", tmp_path / "run")
    rows = list(predict(tmp_path / "run" / "model-last", tmp_path / "nlu.yml"))
    texts = [f"{a} {b}" for a in WORDS for b in WORDS]
    assert [row["text"].strip("- ") for row in rows] == texts * len(WORDS)
