"""ParlAI's text format, read strictly."""

import pytest

from thincdialog.formats.parlai_text import read_parlai_text
from thincdialog.teachers.text_formats import ParlAIText


def test_parlai_text_reads_the_whole_grammar(written):
    path = written(
        "id:babi\ttext:one\\ntwo\\tthree: x__PIPE__y\tlabels:a\\nb|c__PIPE__d|e\t"
        "label_candidates:e|c__PIPE__d|a\\nb|z\treward:2\tmood:fine\n"
        "\n"
        "text:more\tlabels:last\treward:-0.5\tepisode_done:True\n"
        "text:again\tlabels:x\n"
    )
    assert list(read_parlai_text(path)) == [
        [
            {
                "id": "0/0", "source_id": "babi", "text": "one\ntwo\tthree: x|y",
                "labels": ["a\nb", "c|d", "e"], "label_candidates": ["e", "c|d", "a\nb", "z"],
                "reward": 2, "mood": "fine",
            },
            {"id": "0/1", "text": "more", "labels": ["last"], "reward": -0.5},
        ],
        [{"id": "1/0", "text": "again", "labels": ["x"]}],
    ]  # fmt: skip


def test_parlai_text_keeps_fields_of_other_names(written):
    names = "context episode_id label_type text2 topic title full_text idx answers emotion".split()
    more = "".join(f"\t{name}:x" for name in names)
    (((message,)),) = read_parlai_text(written(f"text:a\tlabels:x{more}\n"))
    assert set(names) < set(message)


@pytest.mark.parametrize(
    "end, n_turns", [("", 3), ("\tepisode_done:False", 3), ("\tepisode_done:1", 0)]
)
@pytest.mark.parametrize("streaming", [False, True])
def test_parlai_text_without_the_end_of_an_episode_is_noted(written, end, n_turns, streaming):
    path = written("".join(f"text:{n}\tlabels:x{end}\n" for n in range(3)))
    teacher = ParlAIText(train=path, streaming=streaming)
    assert len(list(teacher.for_split("train").examples())) == 3
    notes = [bad.summary() for bad in teacher.data["train"].bad_data()]
    text = f"{path}  no line has episode_done:True, so all lines are one episode of 3 turns"
    assert notes == ([text] if n_turns else [])
    # A single line is an episode in any case.
    teacher = ParlAIText(train=written("text:a\tlabels:x\n"))
    assert list(teacher.for_split("train").examples()) and not teacher.data["train"].bad_data()


@pytest.mark.parametrize(
    "word, n_episodes", [("False", 1), ("0", 1), ("True", 2), ("1", 2), ("true ", 2)]
)
def test_parlai_text_splits_episodes_at_episode_done(written, word, n_episodes):
    path = written(f"text:a\tlabels:x\tepisode_done:{word}\ntext:b\tlabels:y\n")
    assert len(list(read_parlai_text(path))) == n_episodes


@pytest.mark.parametrize(
    "line, message",
    [
        ("text:a\tlabels:x\tepisode_done:yes", "'episode_done' is 'yes': write True or False"),
        ("text:a\tlabels:x\tnonsense", "expected key:value between tabs, found 'nonsense'"),
        ("text:a\tlabels:x\treward:much", "'reward' is 'much': write a number"),
        ("text:a\tlabels:x\ttext:b", "'text' occurs twice"),
        ("text:a\teval_labels:x", "has 'eval_labels': write 'labels'"),
        ("labels:x", "'text' is missing; add text:..."),
        ("text:a    labels:x", "'labels' is missing; put a tab, not spaces, before labels:"),
        ("text:a\tlabel:x", "'label' is unknown; did you mean 'labels'?"),
        ("Text:a\tlabels:x", "'Text' is unknown; did you mean 'text'?"),
        ("text:a\tlabels:x\tcandidates:x|y", "unknown; did you mean 'label_candidates'?"),
        ("text:a\tlabels:x\tlabel_candidate:x|y", "unknown; did you mean 'label_candidates'?"),
        ("text:a\tlabels:x\tLabelCandidates:x|y", "unknown; did you mean 'label_candidates'?"),
        ("text:a\tlabels:x\tepisode_end:True", "unknown; did you mean 'episode_done'?"),
        ("text:a\tlabels:x\tepisode-done:True", "unknown; did you mean 'episode_done'?"),
        ("text:a\tlabels:x\tlables:y", "unknown; did you mean 'labels'?"),
        ("text:a\tlabels:x\trewards:1", "unknown; did you mean 'reward'?"),
        ("text:a\tlabels:x\tID:7", "unknown; did you mean 'id'?"),
        ("text:a\tlabels:x\tlabel_candidates:y|z", "label 'x' is not among the 2 label_candidates"),
    ],
)
def test_parlai_text_names_the_line_of_a_mistake(error, line, message):
    text = error(read_parlai_text, f"text:fine\tlabels:x\n{line}\n")
    assert text.startswith(":2  ") and message in text


def test_parlai_text_reads_gzip_and_several_files(written):
    first = written("text:a\tlabels:x\n")
    second = written("text:b\tlabels:y\tepisode_done:True\ntext:c\tlabels:z\n", "second.gz")
    candidates = written("x\ny\nz\n\nx\n", "candidates.txt")
    teacher = ParlAIText(train=[first, second], candidates=candidates)
    assert teacher.splits == ["train"]
    messages = list(teacher.for_split("train", training=True).examples())
    assert [message["id"] for message in messages] == ["0/0", "1:0/0", "1:1/0"]
    assert messages[2]["label_candidates"] == ["x", "y", "z"]
