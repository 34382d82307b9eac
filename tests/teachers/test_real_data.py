"""Real data sets give exactly as many examples as their own statistics say."""

import json
import re
import tarfile

import pytest

from tests.examples.talk import whole_batches
from thincdialog.batchers import Fixed
from thincdialog.messages import SILENCE
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.teachers.text_formats import Conversations, LabelledText, NumberedText

pytestmark = pytest.mark.slow


def counts(data, name, split):
    return json.loads((data / name / "stats.json").read_text())[split]


def unpacked(archive, wanted, folder):
    """Unpack the files of an archive whose names match a pattern. Return their paths by name."""
    found = {}
    with tarfile.open(archive) as files:
        for member in files:
            if re.search(wanted, member.name):
                path = folder / member.name.rpartition("/")[2]
                path.write_bytes(files.extractfile(member).read())
                found[path.name] = str(path)
    return found


def conversations(data, corpus, split="test", side="both", shown=None, **choices):
    path = str(data / corpus / f"{split}.jsonl.gz")
    return Conversations(test=path, label_speaker=side, **choices).for_split("test", **shown or {})


@pytest.mark.parametrize("streaming", [False, True])
def test_self_dialogue_every_turn_except_the_openings_is_a_reply(data, streaming):
    mutators = [Flatten(4), WithoutOpenings()]
    teacher = conversations(data, "self_dialogue", mutators=mutators, streaming=streaming)
    teacher.set_batches(Fixed(256))
    n_examples = 0
    for batch in whole_batches(teacher):
        n_examples += len(batch)
        assert all(len(context) <= 6 for context in batch.column("context"))
    # This is the number of pairs according to the data's README.
    counted = counts(data, "self_dialogue", "test")
    assert n_examples == 19463 == counted["turns"] - counted["dialogues"]


def test_self_dialogue_both_sides_make_every_turn_a_label(data):
    counted = counts(data, "self_dialogue", "valid")
    teacher = conversations(data, "self_dialogue", "valid")
    assert teacher.n_examples == counted["turns"] == 21548
    assert sum(1 for _ in teacher.texts()) == counted["turns"]
    openings = sum(message["text"] == SILENCE for message in teacher.examples())
    assert openings == counted["dialogues"] == 1373


def test_sgd_system_turns_are_ranked_among_a_hundred(data):
    by_name, by_place = (conversations(data, "sgd", side=side) for side in ("system", "second"))
    assert by_name.n_examples == by_place.n_examples == 24863  # Number of pairs in its README.
    assert by_name.n_episodes == counts(data, "sgd", "test")["dialogues"]
    assert list(by_name.texts()) == list(by_place.texts())
    shown = {"max_examples": 2000, "n_candidates": 100, "seed": 0}
    flat = conversations(data, "sgd", side="system", mutators=[Flatten(3)], shown=shown)
    rows = list(flat.examples())
    assert len(rows) == 2000 == len({row["id"] for row in rows})
    for row in rows:
        assert len(set(row["label_candidates"])) == 100
        assert row["eval_labels"][0] in row["label_candidates"]


@pytest.mark.parametrize("streaming", [False, True])
def test_kdconv_chinese_turns(data, streaming):
    counted = counts(data, "kdconv_zh_devtest", "test")
    rows = list(conversations(data, "kdconv_zh_devtest", streaming=streaming).examples())
    assert len(rows) == counted["turns"] and len({row["id"] for row in rows}) == len(rows)
    is_chinese = [any("\u4e00" <= sign <= "\u9fff" for sign in row["text"]) for row in rows]
    assert sum(is_chinese) > 0.9 * (len(rows) - counted["dialogues"])


def test_babi_questions(data, tmp_path):
    archive = data / "babi_qa" / "babi_tasks_1-20_v1-2_en.tar.gz"
    paths = unpacked(archive, "v1-2/en/qa[14]_.*_train", tmp_path)
    for path, n_episodes in zip((paths[name] for name in sorted(paths)), (200, 1000)):
        teacher = NumberedText(train=path).for_split("train")
        assert teacher.n_examples == 1000 and teacher.n_episodes == n_episodes
        assert all(message["supporting"] for message in teacher.examples())


def test_babi_dialog_over_its_official_candidates(data, tmp_path):
    archive = data / "babi_dialog" / "dialog-bAbI-tasks.tar.gz"
    paths = unpacked(archive, "task1tst.txt|dialog-babi-candidates.txt", tmp_path)
    candidates = paths["dialog-babi-candidates.txt"]
    teacher = NumberedText(test=paths["dialog-babi-task1tst.txt"], candidates=candidates)
    teacher = teacher.for_split("test")
    assert teacher.n_episodes == 1000
    assert len(teacher.act()["label_candidates"]) == 4212


def test_babi_dialog_every_task_answers_from_its_candidates(data, tmp_path):
    paths = unpacked(data / "babi_dialog" / "dialog-bAbI-tasks.tar.gz", ".txt$", tmp_path)
    counted = counts(data, "babi_dialog", "without_kb")
    for split, part in {"train": "trn", "test": "tst", "test_oov": "tst-OOV"}.items():
        n_examples = 0
        for name in (name for name in paths if re.fullmatch(rf".*task.{part}.txt", name)):
            candidates = "task6-dstc2-candidates" if "task6" in name else "candidates"
            teacher = NumberedText(
                test=paths[name],
                supporting=False,
                candidates=paths[f"dialog-babi-{candidates}.txt"],
                streaming=True,
            ).for_split("test")
            # Reading fails if a label is not among the candidates.
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
