"""A resumed stream reads its files from its position on, and no earlier byte."""

import copy
import gzip
import json
import os
import threading
import weakref
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples.talk import batches_left, check_resumes, rounds, through_json
from tests.processes import slow
from thincdialog.batchers import Fixed, Words
from thincdialog.errors import DataError
from thincdialog.examples import split as split_module
from thincdialog.examples.split import Split
from thincdialog.messages import Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.limit import Limit
from thincdialog.teachers import MultiTask, Teacher
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import Conversations, LabelledText, NumberedText, ParlAIText

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=14)
slowly = settings(
    max_examples=min(25, settings.default.max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def turns(number, size):
    """Make the questions and answers of an episode. Some characters take two bytes."""
    return [(f"é{number}.{turn}", f"ü{turn}") for turn in range(size)]


def parlai(sizes):
    for number, size in enumerate(sizes):
        for turn, (text, label) in enumerate(turns(number, size)):
            end = "\tepisode_done:True" if turn == size - 1 else ""
            yield f"text:{text}\tlabels:{label}{end}\n" + "\n" * (number % 3 == 1)


def numbered(sizes):
    for number, size in enumerate(sizes):
        for turn, (text, label) in enumerate(turns(number, size)):
            yield f"{2 * turn + 1} said\n{2 * turn + 2} {text}\t{label}\t{turn}\n"
        if number % 3 == 1:  # An episode without questions, which is left out.
            yield "1 nothing is asked\n"


def as_lines(rows):
    for number, row in enumerate(rows):
        yield json.dumps(row, ensure_ascii=False) + ("\r\n\n" if number % 3 == 1 else "\n")


def said(sizes, speaker, text):
    for number, size in enumerate(sizes):
        yield [
            {speaker: who, text: what}
            for pair in turns(number, size)
            for who, what in zip("AB", pair)
        ]


def conversations(sizes):
    return as_lines({"turns": each} for each in said(sizes, "speaker", "text"))


def labelled(sizes):
    rows = (pair for number, size in enumerate(sizes) for pair in turns(number, size))
    return as_lines({"text": text, "label": label} for text, label in rows)


def table(sizes, divider=",", inner="\n"):
    yield f"id{divider}text{divider}label\n"
    for number, size in enumerate(sizes):
        for turn, (text, label) in enumerate(turns(number, size)):
            many = f'"{inner.join([text] * (1 + turn))}"' if divider == "," else text
            yield f"{turn}{divider}{many}{divider}{label}\n" + "\n" * (number % 3 == 1)


def unnamed_table(sizes):
    lines = table(sizes, "\t")
    next(lines)
    return lines


def sharegpt(sizes):
    return as_lines(
        {"conversations": [{"from": "system", "value": "Be kind."}, *each]}
        for each in said(sizes, "from", "value")
    )


def more_sharegpt(sizes):
    """Make at least two lines, because one line would be a JSON file of a single object."""
    return sharegpt([1, *sizes])


def utterances(sizes):
    rows = (
        {"conversation_id": f"c{number}", "id": f"{number}.{place}", "speaker": "ab"[place % 2],
         "text": text, "reply-to": f"{number}.{place - 1}" if place else None}
        for number, size in enumerate(sizes)
        for place, text in enumerate(text for pair in turns(number, size) for text in pair)
    )  # fmt: skip
    return as_lines(rows)


def prompts(sizes):
    yield "prompt,completion\n"
    for number, size in enumerate(sizes):
        for text, label in turns(number, size):
            yield f'"{text}\n",{label}\n'


layout = partial(partial, JSONLayout)
# Formats that quick tests try, too.
QUICK = {"parlai", "jsonl, a part", "csv", "layout of groups"}
# For each format: suffix of a file, function that makes its lines, teacher.
FORMATS = {
    "parlai": (".txt", parlai, ParlAIText),
    "babi": (".txt", numbered, NumberedText),
    "fbdialog": (".txt", numbered, partial(NumberedText, supporting=False)),
    "conversations": (".jsonl", conversations, Conversations),
    "both sides": (".jsonl", conversations, partial(Conversations, label_speaker="both")),
    "named side": (".jsonl", conversations, partial(Conversations, label_speaker="A")),
    "jsonl": (".jsonl", labelled, LabelledText),
    "jsonl, a part": (".jsonl", labelled, partial(LabelledText, dev_share=0.3)),
    "csv": (".csv", table, LabelledText),
    "tsv": (".tsv", partial(table, divider="\t"), LabelledText),
    "tsv without header": (
        ".tsv", unnamed_table, partial(LabelledText, columns=["id", "text", "label"])
    ),
    "layout of conversations": (".jsonl", sharegpt, layout("sharegpt", label_speaker="B")),
    "layout in .json of lines": (".json", more_sharegpt, layout("sharegpt", label_speaker="B")),
    "layout of groups": (".jsonl", utterances, layout("convokit")),
    "layout of a table": (".csv", prompts, layout("prompt-completion")),
}  # fmt: skip
CASES = [name if name in QUICK else slow(name) for name in FORMATS]


class Files:
    """The files of a stream, one or several.

    garbage (bytes): A byte that is not valid text, to fill places that must not be read.
    """

    garbage = b"\xff"

    def __init__(self, folder, name, parts, pack=False):
        suffix, self.lines, self.make = FORMATS[name]
        self.paths = [folder / f"{number}{suffix}" for number in range(len(parts))]
        self.parts = ["".join(self.lines(part)).encode() for part in parts]
        self.pack = gzip.compress if pack else bytes
        self.write(self.parts)

    def write(self, parts):
        for path, content in zip(self.paths, parts):
            path.write_bytes(self.pack(content))

    def teacher(self, flat=False, window=3):
        made = self.make(
            train=[str(path) for path in self.paths],
            streaming=True,
            mutators=[Flatten()] if flat else None,
        )
        made.data["train"].window = window
        return made.for_split("train", training=True)

    def spoil(self, *places):
        """Replace all lines before the first of some places by garbage."""
        starts = [place["start"] for place in places if place and place["start"]]
        first = min(((start["file"], start["line"]) for start in starts), default=(0, 0))
        self.write(
            b"".join(
                self.garbage + b"\n" if (number, place) < first else line
                for place, line in enumerate(part.splitlines(keepends=True))
            )
            for number, part in enumerate(self.parts)
        )


@pytest.mark.parametrize("name", CASES)
@given(
    parts=st.lists(sizes, min_size=1, max_size=3),
    n_copies=st.integers(1, 4),
    window=st.integers(1, 5),
    n_rounds=st.integers(0, 25),
    flat=st.booleans(),
    pack=st.booleans(),
)
@slowly
def test_seeking_copies_resume_without_parsing_earlier_lines(
    tmp_path, name, parts, n_copies, window, n_rounds, flat, pack
):
    if name == "jsonl, a part":
        parts = [[4] * 12] * len(parts)
    files = Files(tmp_path, name, parts, pack)
    original = files.teacher(flat, window)
    original.start_epoch(1, 5)
    copies = [original.clone() for _ in range(n_copies)]
    rounds(copies, n_rounds)
    state, places = through_json([original.state(), [copy.place() for copy in copies]])
    expected = rounds(copies)
    files.spoil(state["shown"], *places)
    resumed = files.teacher(flat, window)
    again = resumed.restore(state, places)
    assert rounds(again) == expected
    files.write(files.parts)
    original.start_epoch(2, 5)
    resumed.start_epoch(2, 5)
    assert rounds(again) == rounds(copies)


@pytest.mark.parametrize("name", CASES)
@given(sizes=sizes, n_batches=st.integers(0, 9), budget=st.integers(0, 12))
@slowly
def test_seeking_batches_resume_without_parsing_earlier_lines(
    tmp_path, name, sizes, n_batches, budget
):
    if name == "jsonl, a part":
        sizes = [4] * 12
    files = Files(tmp_path, name, [sizes])

    def make():
        teacher = files.teacher(flat=True)
        teacher.set_batches(Words(budget + 20, buffer=2) if budget else Fixed(3))
        return teacher

    original = make()
    original.start_epoch(1, 5)
    while n_batches and not original.epoch_done():
        original.batch_observe([{}] * len(original.batch_act()))
        n_batches -= 1
    state = through_json(original.state())
    expected = batches_left(original)
    files.spoil(state["shown"])
    resumed = make()
    resumed.restore(state)
    assert batches_left(resumed) == expected


@pytest.mark.parametrize("name", CASES)
def test_seeking_starts_at_the_line_of_the_block(tmp_path, name):
    parts = [[1] * 10, [1] * 30]
    files = Files(tmp_path, name, parts)
    original = files.teacher()
    n_taken = 0
    seen = set()
    while not original.epoch_done():
        original.observe(original.act() and {})
        n_taken += 1
        start = original.state()["shown"]["start"]
        seen.add((start["file"], start["line"], start["skip"]))
        # The place is the start of the current block of three episodes.
        assert start["episode"] == (n_taken - 1) // 3 * 3
    assert {file for file, *_ in seen} == {0, 1}
    assert len(seen) == -(-n_taken // 3)
    # If a record gives several episodes, the ones already shown are skipped.
    skips = {skip for *_, skip in seen}
    assert skips == ({0, 1} if name in ("both sides", "layout of groups") else {0})


MALFORMED = {
    "parlai": ("text:x", "the field 'labels' is missing"),
    "babi": ("x", "expected a number, a space and a text"),
    "conversations": ('{"turn": []}', "has neither 'turns' nor 'dialog'"),
    "jsonl": ('{"text": "x"}', "the field 'label' is missing"),
    "csv": ("x", "expected 3 columns, found 1"),
    "tsv": ("x", "expected 3 columns, found 1"),
    "layout of conversations": ("{}", "the record has no 'conversations'"),
    "layout of a table": ('"', "not readable as csv: unexpected end of data"),
}
# No UTF-8 text contains this byte. (A .json file is first read as a whole, so its message has other
# words.)
BAD_BYTES = [
    (name, b"\xfe", "not UTF-8: byte 1 is 0xfe")
    for name in sorted(FORMATS.keys() - {"layout in .json of lines"})
]
BAD_LINES = [(name, line.encode(), text) for name, (line, text) in MALFORMED.items()]


@pytest.mark.parametrize("name, line, problem", [*BAD_LINES, *BAD_BYTES])
def test_seeking_errors_of_bad_lines_are_the_same_as_in_a_full_reading(
    tmp_path, name, line, problem
):
    files = Files(tmp_path, name, [[1, 2] * 20])
    original = files.teacher()
    rounds([original], 20)
    state = through_json(original.state())
    files.parts = [files.parts[0] + line + b"\n"]
    files.write(files.parts)
    n_lines = files.parts[0].count(b"\n")
    messages = []
    for has_place in (False, True):
        teacher = files.teacher()
        if has_place:
            files.spoil(state["shown"])
            teacher.restore(state)
        with pytest.raises(DataError) as caught:
            rounds([teacher])
        messages.append(str(caught.value))
    assert f"{files.paths[0]}:{n_lines}  " in messages[0] and problem in messages[0]
    assert messages[0] == messages[1]


def whole_file(folder, window):
    path = folder / "all.json"
    path.write_text(json.dumps([json.loads(line) for line in sharegpt([2, 1, 3] * 5) if line]))
    made = JSONLayout("sharegpt", str(path), label_speaker="B", streaming=True)
    made.data["train"].window = window
    return made.for_split("train", training=True)


def after_mutators_that_count(folder, window):
    path = folder / "data.jsonl"
    path.write_text("".join(conversations([2, 1, 3] * 5)))
    mutators = [Flatten(), Limit(n_examples=23), Flatten()]
    made = Conversations(str(path), streaming=True, mutators=mutators)
    made.data["train"].window = window
    shown = made.for_split("train", training=True)
    assert len(list(shown.examples())) == 23
    return shown


def endless_tasks(folder, window):
    parts = {}
    for name in ("parlai", "csv"):
        (folder / name).mkdir(exist_ok=True)
        parts[name] = Files(folder / name, name, [[1, 2, 1, 3], [2, 2]]).teacher(window=window)
        parts[name].order.data.endless = parts[name].order.is_endless = True
    return MultiTask(parts)


@pytest.mark.parametrize("make", [whole_file, after_mutators_that_count, slow(endless_tasks)])
@given(st.integers(0, 30) | st.integers(1, 200), st.integers(1, 4), st.integers(1, 4))
@slowly
def test_seeking_in_whole_files_and_after_mutators_and_in_endless_tasks(
    tmp_path, make, n_rounds, n_copies, window
):
    n_more = 20 if make is endless_tasks else None
    check_resumes(lambda: make(tmp_path, window), n_rounds, n_copies, n_more)


def test_seeking_a_pipe_is_read_up_to_the_place(tmp_path):
    files = Files(tmp_path, "parlai", [[1, 2] * 20])
    original = files.teacher()
    rounds([original], 30)
    state = through_json(original.state())
    expected = rounds([original])
    files.paths[0].unlink()
    os.mkfifo(files.paths[0])
    writer = threading.Thread(target=files.paths[0].write_bytes, args=(files.parts[0],))
    writer.start()
    resumed = files.teacher()
    resumed.restore(state)
    assert rounds([resumed]) == expected
    writer.join()


@pytest.mark.parametrize("n_left", [0, 1])
def test_seeking_in_a_shorter_file_is_an_error(tmp_path, n_left):
    files = Files(tmp_path, "jsonl", [[1] * 20])
    original = files.teacher()
    rounds([original], 17)
    state = through_json(original.state())
    line = state["shown"]["start"]["line"]
    files.write([b"".join(files.parts[0].splitlines(True)[: line - 1]) + b"\n" * n_left])
    with pytest.raises(DataError, match="0.jsonl .*not the same as when the state was saved"):
        files.teacher().restore(state)


def test_seeking_in_a_custom_source():
    class Source:
        """Makes episodes by number, and notes which ones it made."""

        def __init__(self):
            self.made = []

        def __call__(self):
            raise AssertionError("asked for all")

        def read_from(self, at):
            for number in range(at.spot, 12):
                at.begin = number
                at.before(number)
                self.made.append(number)
                yield [{"id": f"{number}/0", "text": "x", "labels": ["y"]}]

    source = Source()
    split = Split("train", source, streaming=True, window=3, origin="mine")
    parts = list(split.blocks(None))
    assert source.made == list(range(12))
    source.made.clear()
    (last,) = split.blocks(None, through_json(parts[3].start))
    assert source.made == [9, 10, 11]
    assert last.number == 3
    for name in ("id", "text", "labels"):
        assert [*last.store.all_cells(name)] == [*parts[3].store.all_cells(name)]


@pytest.mark.parametrize("streaming", [False, True])
def test_split_frees_reference_cycles_of_a_custom_reader(monkeypatch, streaming):
    monkeypatch.setattr(split_module, "N_BETWEEN", 10)
    alive, most = weakref.WeakSet(), []

    class Cycle:
        def __init__(self):
            self.itself = self

    def read():
        for number in range(500):
            alive.add(Cycle())
            most.append(len(alive))
            yield [Message(text=str(number), labels=["x"])]

    made = Teacher({"train": read}, streaming=streaming, shuffle_window=500)
    assert sum(1 for _ in made.for_split("train").episodes()) == 500
    assert max(most) < 50


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("is_mutator", [False, True])
def test_split_takes_custom_code_that_fills_one_list_again_and_again(is_mutator, streaming):
    def read():
        episode = []
        for number in range(20):
            episode += [Message(text=f"{number} {turn}", labels=["x"]) for turn in range(2)]
            yield [*episode] if is_mutator else episode
            episode.clear()

    filled = []

    def fill(episode):
        filled[:] = episode
        yield filled
        filled.clear()

    mutators = [fill] if is_mutator else []
    split = Split("train", read, mutators=mutators, streaming=streaming, window=50, origin="mine")
    (block,) = split.blocks(None)
    wanted = [f"{number} {turn}" for number in range(20) for turn in range(2)]
    assert list(block.store.all_cells("text")) == wanted
    assert list(block.store.starts) == list(range(0, 41, 2))


@pytest.mark.parametrize("streaming", [False, True])
def test_split_leaves_the_messages_of_custom_code_as_they_are(streaming):
    given = [[Message(text=text, eval_labels=["x"], episode_done=True)] for text in "ab"]
    before = copy.deepcopy(given)
    split = Split("dev", lambda: iter(2 * given), streaming=streaming, window=50, origin="mine")
    (block,) = split.blocks(None)
    assert list(block.store.all_cells("id")) == ["0/0", "1/0", "2/0", "3/0"]
    assert given == before
