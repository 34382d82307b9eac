"""Runs on files that are streamed go on to the bit, and where they were in the files."""

import json

import pytest

from tests.runners.resuming import FIXED, LIVE, NOTES, WORDS, Crash, config, remains, run, same
from thincdialog.api import Teacher, registry
from thincdialog.teachers.conversations import Conversations
from thincdialog.teachers.parlai_text import ParlAIText

COLOURS = ["red", "green", "blue", "amber", "pink"]
LENGTHS = [1, 3, 2, 1, 1, 4, 2, 1, 2, 2]


@registry.teachers("tests.streamed.v1")
def streamed(form: str, path: str, mutators=None) -> Teacher:
    """Of a small window, so that small files are several blocks."""
    make = {"parlai": ParlAIText, "conversations": Conversations}[form]
    made = make(train=path, dev=path, mutators=mutators, streaming=True)
    made._data["train"].window = 3
    return made


def parlai(episode):
    ends = ["\tepisode_done:True" if turn == len(episode) else "" for turn in range(1, 99)]
    return "".join(f"text:{x}\tlabels:{y}{end}\n" for (x, y), end in zip(episode, ends))


def conversation(episode):
    turns = [{"speaker": "ab"[n % 2], "text": text} for n, text in enumerate(sum(episode, ()))]
    return json.dumps({"turns": turns}) + "\n"


FORMS = {"parlai": (parlai, ".txt"), "conversations": (conversation, ".jsonl")}


@pytest.fixture(autouse=True)
def fresh_notes():
    NOTES.clear()
    yield
    NOTES.clear()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "world, flat",
    [(FIXED, False), (LIVE, False), (WORDS, True)],
    ids=["conversations", "dynamic", "columns"],
)
def test_resumed_streams_of_files_give_the_same_bits(tmp_path, form, world, flat):
    line, suffix = FORMS[form]
    path = tmp_path / f"data{suffix}"
    episodes = [
        [(f"say {number} {COLOURS[(number + turn) % 5]}", COLOURS[(number + turn) % 5])
         for turn in range(size)]
        for number, size in enumerate(LENGTHS)
    ]  # fmt: skip
    path.write_text("".join(map(line, episodes)))
    text = config(world, flat=flat, tasks=1)
    start = text.index("@teachers")
    task = f'@teachers = "tests.streamed.v1"\nform = "{form}"\npath = "{path}"\n'
    text = text[:start] + task + text[text.index("\n[", start) :]
    run(text, tmp_path / "whole")
    expected, seen = remains(tmp_path / "whole"), dict(NOTES.seen)
    n_steps = max(int(name.split("/")[0]) for name in seen)
    NOTES.clear()
    places = set()
    for step in range(1, n_steps + 1, 3):
        NOTES.crash_at(step)
        with pytest.raises(Crash):
            run(text, tmp_path / "out", resume=True)
        for saved in (tmp_path / "out").glob("checkpoint-*/state.json"):
            teacher = json.loads(saved.read_text())["loop"]["runner"]
            places |= {start["byte"] for start in starts_in(teacher)}
    NOTES.before = lambda step: None
    run(text, tmp_path / "out", resume=True)
    same(remains(tmp_path / "out"), expected)
    assert NOTES.seen == seen
    # Blocks begin at lines of their own; a checkpoint may lie in each of them.
    begins = [sum(len(line(each)) for each in episodes[:number]) for number in range(0, 10, 3)]
    assert {0} < places and (flat or places <= set(begins))


def starts_in(state):
    """All places in a file that a world's state names."""
    if isinstance(state, dict):
        if "byte" in state:
            yield state
        for inner in state.values():
            yield from starts_in(inner)
    elif isinstance(state, list):
        for inner in state:
            yield from starts_in(inner)
