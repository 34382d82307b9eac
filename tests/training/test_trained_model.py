"""A saved model answers with its folder alone: no data, no layout, no code of its teacher."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.examples import CLASSIFIER, REPLIES, TALKS, quietly_train, write_talks
from thincdialog.api import Message, ModelError, TrainedModel, load, predict, registry
from thincdialog.cli.main import main
from thincdialog.files.json_file import read_json, write_json

PAIRS = [("hello there", "hi"), ("so what", "tea please"), ("good night", "bye"), ("why", "no")]
TURNS = [text for pair in PAIRS for text in pair]
CODE = """
from thincdialog.api import IterableTeacher, registry

@registry.teachers("own.v1")
def own():
    return IterableTeacher({"train": [("hello there", "hi"), ("why", "no")] * 4})

@registry.datasets("own.v1")
def data():
    return [{"text": "hello there", "label": "hi"}, {"text": "why", "label": "no"}] * 4
"""
TASK = "[tasks.talk]\n@teachers = "
FILE = 'train = "data/train.{}"\n'
# For each shipped teacher and a custom one: its task, and the rest of the config.
CONFIGS = {
    "CoffeeOrder": (f'{TASK}"thincdialog.CoffeeOrder.v1"\nn_train = 20\n', REPLIES),
    "Conversations": (TALKS.replace('"train', '"data/train').replace('"dev.jsonl"', "null")
                      .replace('"test.jsonl"', "null") + 'label_speaker = "b"\n', REPLIES),
    "Dataset": (f'{TASK}"thincdialog.Dataset.v1"\n[tasks.talk.train]\n@datasets = "own.v1"\n',
                CLASSIFIER),
    "JSONLayout": (f'{TASK}"thincdialog.JSONLayout.v1"\n{FILE.format("json")}'
                   'layout = "layouts/mine.yml"\n', REPLIES),
    "LabelledText": (f'{TASK}"thincdialog.LabelledText.v1"\n{FILE.format("csv")}'
                     'text_field = "said"\ncandidates = "data/labels.txt"\n', CLASSIFIER),
    "MLDatasets": (f'{TASK}"thincdialog.MLDatasets.v1"\nloader = "quora_questions"\n'
                   'arguments = {"loc": "data/quora.tsv"}\n', CLASSIFIER),
    "NumberedText": (f'{TASK}"thincdialog.NumberedText.v1"\n{FILE.format("txt")}', REPLIES),
    "ParlAIText": (f'{TASK}"thincdialog.ParlAIText.v1"\n{FILE.format("parlai")}', REPLIES),
    "own": (f'{TASK}"own.v1"\n', REPLIES),
}  # fmt: skip
ROWS = [{"text": "hello there"}, {"text": "why, so"}]
# Files to answer, for teachers whose settings say how they are read.
FILES = {
    "JSONLayout": {"said": [{"who": "a", "what": "why"}]},
    "LabelledText": {"said": "why"},
}
# Answers with each model of a folder, in a separate process.
ANSWER = """
import json, sys
from pathlib import Path
import thincdialog
for name, source in json.loads(sys.argv[2]).items():
    model = Path(sys.argv[1]) / name
    said = thincdialog.load(model).respond("hello there", top=9)
    print(json.dumps([said, list(thincdialog.api.predict(model, source))]))
"""


def train(folder, names=CONFIGS):
    """Train a model with each teacher, and delete its data, layout and code.

    RETURNS: The folder of the models, the input for each, and the answers before the deletion.
    """
    work, moved = folder / "work", folder / "moved"
    for path in (work / "data", work / "layouts", moved):
        path.mkdir(parents=True)
    (work / "own.py").write_text(CODE)
    write_talks(work / "data" / "train.jsonl", PAIRS * 3)
    rows = [{"said": [{"who": who, "what": text} for who, text in zip("ab", pair)]}
            for pair in PAIRS]  # fmt: skip
    (work / "data" / "train.json").write_text(json.dumps(rows))
    (work / "layouts" / "mine.yml").write_text(
        "turns: said\nspeaker: who\ntext: what\nlabel_speaker: b\n"
    )
    lines = {
        "csv": ["said,label", *(f"{text},{label}" for text, label in PAIRS * 2)],
        "txt": [f"{n} {text}\t{label}" for text, label in PAIRS for n in (1,)],
        "parlai": [f"text:{t}\tlabels:{label}\tepisode_done:True" for t, label in PAIRS],
    }
    for name, text in lines.items():
        (work / "data" / f"train.{name}").write_text("\n".join(text) + "\n")
    (work / "data" / "labels.txt").write_text("".join(f"{label}\n" for _, label in PAIRS))
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    pairs = (f"{n}\t1\t2\t{PAIRS[n % 4][0]}?\twhy?\t{n % 2}\n" for n in range(40))
    (work / "data" / "quora.tsv").write_text(head + "".join(pairs))
    sources = dict.fromkeys(names, ROWS)
    for name, row in FILES.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
        sources[name] = str(folder / f"{name}.jsonl")
    before = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        for name in names:
            code = "own.py" if name in ("Dataset", "own") else None
            quietly_train(
                "\n".join(CONFIGS[name]), moved / "runs" / name, code=code, training__max_steps=2
            )
            (moved / "runs" / name / "model-last").rename(moved / name)
            said = load(moved / name).respond("hello there", top=9)
            before[name] = [said, list(predict(moved / name, sources[name]))]
    work.rename(folder / "gone")
    return moved, sources, json.loads(json.dumps(before))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return the folder of a ranker and of a classifier."""
    return train(tmp_path_factory.mktemp("models"), ["Conversations", "LabelledText"])[0]


@pytest.mark.slow
def test_models_of_all_teachers_answer_in_an_empty_folder(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("empty")
    known = {f"thincdialog.{name}.v1" for name in CONFIGS if name != "own"}
    assert known == {name for name in registry.teachers.get_all() if name.startswith("thincd")}
    moved, sources, before = train(tmp_path_factory.mktemp("travel"))
    command = [sys.executable, "-c", ANSWER, str(moved), json.dumps(sources)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = dict(zip(CONFIGS, map(json.loads, done.stdout.splitlines())))
    assert found == before
    assert found["JSONLayout"][1][0]["reply"] in TURNS
    assert not list(tmp_path.iterdir())


def test_a_model_of_a_newer_format_is_refused_in_one_line(models, tmp_path, capsys):
    meta = read_json(models / "LabelledText" / "meta.json")
    (tmp_path / "model").mkdir()
    write_json(tmp_path / "model" / "meta.json", {**meta, "format": 2, "thincdialog": "9.1.0"})
    with pytest.raises(ModelError, match="Install thincdialog 9.1.0 or newer") as refused:
        TrainedModel(tmp_path / "model")
    assert main(["chat", str(tmp_path / "model")]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"✘ {refused.value}\n") and "has format 2" in shown.err


def test_a_model_needs_the_code_of_its_agent(models, capsys):
    assert main(["chat", str(models / "LabelledText"), "--agent.@agents", "mine.v1"]) == 1
    err = capsys.readouterr().err
    assert "'mine.v1' is not in 'agents'" in err and "--code FILE" in err


def test_a_model_names_the_file_of_the_code_that_it_was_trained_with(models, capsys):
    meta = models / "LabelledText" / "meta.json"
    kept = meta.read_text()
    try:
        meta.write_text(json.dumps({**json.loads(kept), "code": ["own.py", "more.py"]}))
        assert main(["evaluate", str(models / "LabelledText"), "--agent.@agents", "mine.v1"]) == 1
    finally:
        meta.write_text(kept)
    said = "needs --code own.py --code more.py (code=['own.py', 'more.py'] in Python)"
    assert said in capsys.readouterr().err


TRAINED = {}  # Models by name.
TALK = st.lists(st.sampled_from(TURNS), min_size=1, max_size=5)


@given(st.lists(TALK, min_size=1, max_size=12), st.integers(1, 60))
def test_a_batch_gives_each_message_its_answer_alone(models, talks, max_batch):
    for name in ("Conversations", "LabelledText"):
        model = TRAINED.setdefault(name, TrainedModel(models / name))
        model.max_batch = max_batch
        messages = [
            Message(text=talk[-1], context=[(n % 2, text) for n, text in enumerate(talk[:-1])])
            for talk in talks
        ]
        alone = [model.answer([message], 9)[0] for message in messages]
        assert model.answer(messages, 9) == alone
