"""Real data sets give exactly the examples that their own statistics count."""

import json
import tarfile

import pytest

from thincdialog.batchers import Fixed
from thincdialog.messages import SILENCE
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.teachers.conversations import Conversations
from thincdialog.teachers.labelled_text import LabelledText
from thincdialog.teachers.numbered_text import NumberedText


def counts(data, name, split):
    return json.loads((data / name / "stats.json").read_text())[split]


@pytest.mark.parametrize("streaming", [False, True])
def test_self_dialogue_every_turn_but_the_openings_is_a_reply(data, streaming):
    path = str(data / "self_dialogue" / "test.jsonl.gz")
    counted = counts(data, "self_dialogue", "test")
    teacher = Conversations(
        test=path,
        label_speaker="both",
        mutators=[Flatten(4), WithoutOpenings()],
        streaming=streaming,
    ).for_split("test")
    teacher.set_batches(Fixed(256))
    n_examples = 0
    while not teacher.epoch_done():
        batch = teacher.batch_act()
        n_examples += len(batch)
        assert all(len(context) <= 6 for context in batch.columns["context"])
        teacher.batch_observe(batch)
    # The number of pairs in the data's README.
    assert n_examples == 19463 == counted["turns"] - counted["dialogues"]


def test_self_dialogue_both_sides_make_every_turn_a_label(data):
    counted = counts(data, "self_dialogue", "valid")
    path = str(data / "self_dialogue" / "valid.jsonl.gz")
    teacher = Conversations(dev=path, label_speaker="both").for_split("dev")
    assert teacher.n_examples == counted["turns"] == 21548
    assert sum(1 for _ in teacher.texts()) == counted["turns"]
    openings = sum(message["text"] == SILENCE for message in teacher.examples())
    assert openings == counted["dialogues"] == 1373


def test_sgd_system_turns(data):
    path = str(data / "sgd" / "test.jsonl.gz")
    by_name = Conversations(test=path, label_speaker="system").for_split("test")
    by_place = Conversations(test=path, label_speaker="second").for_split("test")
    assert by_name.n_examples == by_place.n_examples == 24863  # README's number of pairs.
    assert by_name.n_episodes == counts(data, "sgd", "test")["dialogues"]
    assert list(by_name.texts()) == list(by_place.texts())


def test_sgd_protocol_of_one_of_a_hundred(data):
    teacher = Conversations(
        test=str(data / "sgd" / "test.jsonl.gz"), label_speaker="system", mutators=[Flatten(3)]
    ).for_split("test", max_examples=2000, n_candidates=100, seed=0)
    rows = list(teacher.examples())
    assert len(rows) == 2000 == len({row["id"] for row in rows})
    for row in rows:
        assert len(set(row["label_candidates"])) == 100
        assert row["eval_labels"][0] in row["label_candidates"]


@pytest.mark.parametrize(
    "task, n_episodes", [("qa1_single-supporting-fact", 200), ("qa4_two-arg-relations", 1000)]
)
def test_babi_questions(data, tmp_path, task, n_episodes):
    name = f"tasks_1-20_v1-2/en/{task}_train.txt"
    with tarfile.open(data / "babi_qa" / "babi_tasks_1-20_v1-2_en.tar.gz") as archive:
        content = archive.extractfile(name).read()
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    teacher = NumberedText(train=str(path)).for_split("train")
    assert teacher.n_examples == 1000 and teacher.n_episodes == n_episodes
    assert all(message["supporting"] for message in teacher.examples())


def test_babi_dialog_over_its_official_candidates(data, tmp_path):
    with tarfile.open(data / "babi_dialog" / "dialog-bAbI-tasks.tar.gz") as archive:
        for member in archive:
            if member.name.endswith(("task1tst.txt", "dialog-babi-candidates.txt")):
                content = archive.extractfile(member).read()
                (tmp_path / member.name.rpartition("/")[2]).write_bytes(content)
    teacher = NumberedText(
        test=str(tmp_path / "dialog-babi-task1tst.txt"),
        candidates=str(tmp_path / "dialog-babi-candidates.txt"),
    ).for_split("test")
    assert teacher.n_episodes == 1000
    assert len(teacher.act()["label_candidates"]) == 4212


def test_babi_dialog_every_task_answers_from_its_candidates(data, tmp_path):
    with tarfile.open(data / "babi_dialog" / "dialog-bAbI-tasks.tar.gz") as archive:
        for member in archive:
            if member.name.endswith(".txt"):
                content = archive.extractfile(member).read()
                (tmp_path / member.name.rpartition("/")[2]).write_bytes(content)
    counted = counts(data, "babi_dialog", "without_kb")
    for split, part in {"train": "trn", "test": "tst", "test_oov": "tst-OOV"}.items():
        n_examples = 0
        for path in tmp_path.glob(f"dialog-babi-task?{part}.txt"):
            name = "task6-dstc2-candidates" if "task6" in path.name else "candidates"
            teacher = NumberedText(
                test=str(path),
                supporting=False,
                candidates=str(tmp_path / f"dialog-babi-{name}.txt"),
                streaming=True,
            ).for_split("test")
            # Reading sees to it that every label is among the candidates.
            n_examples += sum(1 for _ in teacher.examples())
        assert n_examples == counted[split]["turns"] / 2


def test_clinc150_intents(data):
    folder = data / "clinc150" / "full"
    teacher = LabelledText(
        train=[str(folder / "train.jsonl.gz"), str(folder / "oos_train.jsonl.gz")],
        dev=str(folder / "valid.jsonl.gz"),
        test=str(folder / "test.jsonl.gz"),
    )
    shown = {split: teacher.for_split(split, training=True) for split in teacher.splits}
    assert [shown[split].n_examples for split in shown] == [15100, 3000, 4500]
    rows = list(shown["train"].examples())
    assert len({row["labels"][0] for row in rows}) == 151 and len({m["id"] for m in rows}) == 15100
    # The lists of 151 labels are held once each.
    assert len({id(row["labels"]) for row in rows}) == 151


def test_kdconv_chinese_turns(data):
    counted = counts(data, "kdconv_zh_devtest", "test")
    path = str(data / "kdconv_zh_devtest" / "test.jsonl.gz")
    for streaming in (False, True):
        teacher = Conversations(test=path, label_speaker="both", streaming=streaming)
        rows = list(teacher.for_split("test").examples())
        assert len(rows) == counted["turns"] and len({row["id"] for row in rows}) == len(rows)
        is_chinese = [any("\u4e00" <= sign <= "\u9fff" for sign in row["text"]) for row in rows]
        assert sum(is_chinese) > 0.9 * (len(rows) - counted["dialogues"])
