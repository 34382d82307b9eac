"""Shares of the training files that are held out as dev and test: they are drawn by conversation,
and are the same for every reader."""

import json

import pytest

from thincdialog.api import registry
from thincdialog.errors import ConfigError, DataError
from thincdialog.teachers.held_out import HeldOut

NAMES = ("Conversations", "JSONLayout", "LabelledText", "NumberedText", "ParlAIText")
SPLITS = ("train", "dev", "test")


def lines(name, number):
    turns = [{"speaker": who, "text": f"{who}{number}"} for who in "abab"]
    return {
        "Conversations": [json.dumps({"id": f"talk {number}", "turns": turns})],
        "JSONLayout": [json.dumps({"dialogue_id": f"talk {number}", "turns": [
            {"speaker": turn["speaker"], "utterance": turn["text"]} for turn in turns]})],
        "LabelledText": [json.dumps({"text": f"a{number}", "label": "x"})],
        "NumberedText": [f"1 a{number}\tx", f"2 b{number}\ty"],
        "ParlAIText": [f"text:a{number}\tlabels:x", f"text:b{number}\tlabels:y\tepisode_done:True"],
    }[name]  # fmt: skip


@pytest.fixture
def teacher(tmp_path):
    def build(name, **options):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(line for number in range(400) for line in lines(name, number)))
        if name in ("Conversations", "JSONLayout"):
            options.setdefault("label_speaker", "both")
        if name == "JSONLayout":
            options["layout"] = "sgd"
        build = registry.get("teachers", f"thincdialog.{name}.v1")
        return build(train=str(path), **options)

    return build


def parts(teacher):
    """Return the numbers of the conversations and the texts of the examples of each split."""
    found = {}
    for split in teacher.splits:
        texts = [m["text"] for m in teacher.for_split(split).examples()]
        found[split] = {text[1:] for text in texts if text != "__SILENCE__"}, texts
    return found


@pytest.mark.parametrize("name", NAMES)
def test_held_out_shares_are_cut_by_conversation(name, teacher):
    whole = [m["text"] for m in teacher(name).for_split("train").examples()]
    shares = {"dev_share": 0.2, "test_share": 0.1}
    found = parts(teacher(name, **shares))
    assert sorted(found) == sorted(SPLITS)
    numbers = {split: found[split][0] for split in SPLITS}
    # Every example is in one split, together with all of its conversation.
    assert sorted(sum((found[split][1] for split in SPLITS), [])) == sorted(whole)
    assert sum(map(len, numbers.values())) == len(set().union(*numbers.values())) == 400
    assert 50 < len(numbers["dev"]) < 110 and 20 < len(numbers["test"]) < 65
    # A stream is split in the same way, and another seed draws other conversations.
    assert parts(teacher(name, streaming=True, **shares)) == found
    assert parts(teacher(name, dev_seed=1, **shares))["dev"] != found["dev"]
    # The dev split does not depend on whether there is a test split.
    assert parts(teacher(name, dev_share=0.2))["dev"] == found["dev"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options, text", [
    ({"dev_share": 1.0}, "'dev_share' of thincdialog"),
    ({"test_share": -0.1}, "'test_share' of thincdialog"),
    ({"dev_share": 0.5, "test_share": 0.5}, "nothing is left to train on"),
    ({"test_share": 0.1, "test": "b.jsonl"},
     "is given together with 'test' - set test_share = 0.0, or test = null"),
    ({"max_bad_share": 2.0}, "'max_bad_share' of thincdialog"),
    ({"encoding": "utf8000"}, "'encoding' of thincdialog"),
])  # fmt: skip
def test_held_out_and_other_options_of_files_are_checked(name, options, text, teacher):
    with pytest.raises(ConfigError, match=text):
        teacher(name, **options)


def test_held_out_split_without_examples_is_an_error_that_names_the_share(teacher):
    made = teacher("LabelledText", dev_share=0.0001)
    about = "0.01 % of the training conversations, drawn with dev_seed 0"
    with pytest.raises(DataError, match=rf"'dev' has no examples \({about}\): set a larger share"):
        list(made.for_split("dev").examples())


def test_held_out_splits_are_described(teacher):
    made = teacher("LabelledText", dev_share=0.125)
    assert made.data["dev"].about() == "12.5 % of the training conversations, drawn with dev_seed 0"
    assert made.data["train"].about().startswith("87.5 %")
    assert teacher("LabelledText").data["train"].about() == "" and HeldOut().splits == []
