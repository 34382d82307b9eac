"""Logs of chats: lines stay complete, and the longest line of each conversation is kept for
training."""

import json
import os
from multiprocessing import get_context
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.examples import REPLIES, quietly_train
from thincdialog.api import DataError, OutputError
from thincdialog.cli.main import main
from thincdialog.formats import chat_log
from thincdialog.formats.chat_log import ChatLog, keep_longest
from thincdialog.messages import PARTNER, SELF

TASK = """
[tasks.talk]
@teachers = "thincdialog.JSONLayout.v1"
layout = "messages"
train = "kept.jsonl"
dev_share = 0.3
"""
TALKS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), min_size=1, max_size=9)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def say(log, texts):
    """Log a conversation as a server does: after each of its replies."""
    for n in range(len(texts)):
        turns = [(role, text) for text in texts[:n] for role in (PARTNER, SELF)]
        log.add([*turns, (PARTNER, texts[n])], texts[n])


@given(TALKS)
def test_the_longest_of_each_conversation_is_kept(tmp_path_factory, talks):
    folder = tmp_path_factory.mktemp("log")
    log = ChatLog(folder / "log.jsonl")
    for talk in talks:
        say(log, talk)
    n_read, n_kept, n_bad = keep_longest(str(folder / "log.jsonl"), str(folder / "kept.jsonl"))
    rows = lines_of(folder / "kept.jsonl")
    kept = [tuple(each["content"] for each in row["messages"][::2]) for row in rows]
    distinct = set(map(tuple, talks))
    expected = {a for a in distinct if not any(a == b[: len(a)] and a != b for b in distinct)}
    assert set(kept) == expected and len(kept) == len(expected) == n_kept
    assert (n_read, n_bad) == (sum(map(len, talks)), 0)


def test_a_long_conversation_is_read_in_linear_time(tmp_path, monkeypatch):
    path, encoded = tmp_path / "log.jsonl", []

    def dumps(value):
        encoded.append(json.dumps(value))
        return encoded[-1]

    ChatLog(path).add([(place % 2, f"turn {place}") for place in range(999)], "the end")
    monkeypatch.setattr(chat_log, "json", SimpleNamespace(dumps=dumps))
    assert keep_longest(str(path), str(tmp_path / "kept.jsonl")) == (1, 1, 0)
    assert sum(map(len, encoded)) < 3 * path.stat().st_size


def write_lines(path, number):
    log = ChatLog(path)
    for n in range(200):
        log.add([(PARTNER, f"{number} {n} " + "x" * 5000)], "y")


def test_lines_of_several_processes_stay_whole(tmp_path):
    path = tmp_path / "log.jsonl"
    workers = [get_context("fork").Process(target=write_lines, args=(path, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(lines_of(path)) == 600
    assert path.stat().st_mode & 0o077 == 0


def test_train_reads_the_kept_conversations(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = ChatLog("log.jsonl")
    for n in range(12):
        say(log, [f"hello {n}", f"so {n % 3}"])
    assert main(["chats", "log.jsonl", "kept.jsonl"]) == 0
    assert "Wrote kept.jsonl: 12 conversations, of 24 lines" in capsys.readouterr().err
    result, _ = quietly_train(TASK + REPLIES, tmp_path / "out", training__max_steps=2)
    assert result.scores["dev"]["examples"] > 0


def test_a_truncated_line_damages_no_other_line(tmp_path, monkeypatch, capsys):
    path = tmp_path / "log.jsonl"
    log, write = ChatLog(path), os.write
    log.add([(PARTNER, "a")], "b")
    with (
        monkeypatch.context() as patch,
        pytest.raises(OutputError, match="only a part of the line was written"),
    ):
        patch.setattr(os, "write", lambda file, data: write(file, data[:9]))
        log.add([(PARTNER, "c")], "d")
    log.add([(PARTNER, "e")], "f")
    assert main(["chats", str(path), str(tmp_path / "kept.jsonl")]) == 0
    found = capsys.readouterr().err
    assert "2 conversations, of 2 lines" in found and f"1 line of {path} left out" in found


def test_files_that_are_not_logs_are_errors(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "hi"}\n')
    with pytest.raises(DataError, match="is not a log of conversations"):
        keep_longest(str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    (tmp_path / "a.csv").write_text("text,label\nhi,hello\n")
    with pytest.raises(DataError, match="a.csv:1  not valid JSON"):
        keep_longest(str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl"))
    with pytest.raises(OutputError, match="No such file or directory"):
        ChatLog(tmp_path / "nowhere" / "log.jsonl")
