"""Hints in error messages suggest similar names only."""

import pytest

from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout
from thincdialog.formats.wording import nearest


@pytest.mark.parametrize(
    "name, names, meant",
    [
        ("gpt", ["human", "GPT"], "GPT"),
        ("Utterence", ["id", "utterance"], "utterance"),
        ("text", ["intent", "utterance"], None),  # Three characters in common are not a typo.
        ("x" * 300, ["y"], None),
    ],
)
def test_nearest_suggests_a_similar_name(name, names, meant):
    assert nearest(name, names) == (f"; did you mean {meant!r}?" if meant else "")


def test_a_label_speaker_of_another_case_is_named(error):
    turns = '{"turns": [{"speaker": "BOT", "text": "a"}, {"speaker": "ann", "text": "b"}]}\n'
    text = error(lambda path: read_conversations(path, "bot"), turns)
    assert "the speaker 'BOT' differs from 'bot' only by case or blanks" in text
    assert "spell both the same ('bot' is the label_speaker)" in text


def test_a_layout_without_any_of_its_texts_names_the_existing_fields(error):
    layout = CorpusLayout(text=["question", "body"], label="answer")
    text = error(
        lambda path: read_layout_file(path, layout), '{"asked": "a", "answer": "b"}\n', "a.jsonl"
    )
    assert "has no 'question' or 'body'" in text and "(found: 'asked', 'answer')" in text
