"""The formats by name: what each holds, and how the tests of conversion read and write it."""

import pytest

from thincdialog.formats.formats import CONVERSATIONS, FORMATS, why_not_held
from thincdialog.messages import Message

NAMES = {
    name: f"data.{name}" if name in ("csv", "tsv", "jsonl") else "data.txt" for name in FORMATS
}


def read(name, path):
    """The examples of a file, without what is no part of an example."""
    form = FORMATS[name]
    speaker = {"label_speaker": "B"} if "label_speaker" in form.takes else {}
    found = [[dict(message) for message in episode] for episode in form.read(str(path), **speaker)]
    for row in (row for rows in found for row in rows):
        number = row.pop("id")
        if form.has_ids:
            row["source_id"] = number
    return found


def write(path, episodes, name):
    """A file of episodes."""
    form = FORMATS[name]
    lines = [form.header] if form.header else []
    for number, episode in enumerate(episodes, start=1):
        lines += form.lines(episode, str(number))
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def held(episodes, name):
    """Those episodes that a format can hold, each with the least that it must hold."""
    form = FORMATS[name]
    kept = []
    for episode in episodes:
        episode = [Message(m, labels=m["labels"][: 1 if form.one_label else 9]) for m in episode]
        for message in episode:
            for field in set(message) - set(form.fields or message):
                del message[field]
            if name in CONVERSATIONS:
                message.pop("source_id", None)
        is_one = len(episode) == 1 and all(episode[0]["labels"])
        if (is_one or not form.one_turn) and not why_not_held(
            episode, form.lines(episode, "1"), name
        ):
            kept.append(episode)
    return kept


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", ["plain", "two\nlines", "a|b", 'say "a, b"', "語 😀", "é\u2028."])
def test_formats_hold_what_they_should(name, text):
    # The line end in TSV is the one thing of these that a format has no place for.
    label = "x" if text == "a|b" and name in ("fbdialog", "babi") else text
    episode = [Message(text=text, labels=[label])]
    is_held = not (name == "tsv" and "\n" in text)
    assert (held([episode], name) == [episode]) == is_held
