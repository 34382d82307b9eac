"""Data that is cut into tasks for reader processes is the same as data that is read in one go:
every field, order, state and error."""

import gzip
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples.talk import rounds, through_json, write_spoken
from tests.examples.test_split import BAD_LINES, FORMATS, Files, sizes, slowly
from thincdialog.batchers import Fixed
from thincdialog.contract import CodeError
from thincdialog.data import TextEncoder
from thincdialog.data.tokenizers import HashNgramTokenizer
from thincdialog.errors import DataError
from thincdialog.examples import reading
from thincdialog.examples.batch import Batch
from thincdialog.examples.reading import BEGIN
from thincdialog.loader.readers import Readers
from thincdialog.messages import Message
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.limit import Limit
from thincdialog.teachers import IterableTeacher, Teacher
from thincdialog.teachers.text_formats import Conversations, LabelledText


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Make tasks so small that each is one line or a few."""
    monkeypatch.setattr(reading, "FIRST_BYTES", 1)
    monkeypatch.setattr(reading, "MOST_BYTES", 90)
    monkeypatch.setattr(reading, "MOST_EPISODES", 3)


def ahead(teacher, encoding=lambda: None):
    """Cut the source of a teacher into tasks, which this process carries out. Return the
    teacher."""
    for task in teacher.by_task().values():
        task.read_with(Readers(0), encoding)
    return teacher


def everything(teacher):
    """Return all messages of an epoch of conversations."""
    said = []
    while not teacher.epoch_done():
        message = teacher.act()
        said.append(dict(message))
        teacher.observe(Message(text="reply"))
    return said


ODD = ["", " ", "a\0b", "é", "\ud800", "x" * 300, "a\nb", "日本"]
CELLS = {
    "labels": st.lists(st.sampled_from(ODD), max_size=3),
    "label_candidates": st.lists(st.sampled_from(ODD), max_size=3),
    "context": st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ODD)), max_size=3),
    "features": st.lists(st.floats(allow_nan=False), max_size=3).map(np.array),
    "other": st.one_of(st.none(), st.integers(), st.text(), st.dictionaries(st.text(), st.text())),
}
MESSAGES = st.fixed_dictionaries({"text": st.sampled_from(ODD)}, optional=CELLS)


@given(episodes=st.lists(st.lists(MESSAGES, min_size=1, max_size=3), min_size=1, max_size=9))
@slowly
def test_reading_returns_any_field_unchanged(episodes):
    def source():
        return [[Message(message) for message in episode] for episode in episodes]

    for streaming in (True, False):
        made = [Teacher({"train": source}, streaming=streaming) for _ in range(2)]
        shown = [each.for_split("train") for each in (made[0], ahead(made[1]))]
        expected, found = (list(each.episodes()) for each in shown)
        assert repr(found) == repr([[{**m} for m in episode] for episode in expected])


def test_reading_does_not_send_shared_candidates(tmp_path):
    table, choices = tmp_path / "a.csv", tmp_path / "choices.txt"
    table.write_text("text,label\n" + "".join(f"so {n},{n % 3}\n" for n in range(20)))
    choices.write_text("".join(f"{n}\n" for n in range(500)))
    teacher = LabelledText(str(table), candidates=str(choices), streaming=True).for_split("train")
    expected = [dict(message) for message in teacher.examples()]
    assert all(len(message["label_candidates"]) == 500 for message in expected)
    tasks, stores = reading.Tasks(teacher.data["train"], BEGIN), []
    read = tasks.reading(None)()
    for task in tasks:
        found = read(task)
        tasks.note(found)
        stores.append(found.store)
    assert sum(each.n_episodes for each in stores) == 20
    assert not any("label_candidates" in each.names for each in stores)
    assert [dict(message) for message in ahead(teacher).examples()] == expected


def rows_of(n):
    return [
        {"id": str(n), "turns": [{"speaker": "ab"[t % 2], "text": f"{w} {t} {n % 5}\n {n % 3}"}
         for t, w in enumerate("these are some few words of a conversation".split())]}
        for n in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize("speakers, segments", [(False, "turn"), (True, "turn"), (True, "line")])
@pytest.mark.parametrize("history_size", [1, 2, -1])
@pytest.mark.parametrize("readers", [None, Readers(0)])
def test_reading_makes_the_same_tokens_as_the_encoder(
    tmp_path, write, speakers, segments, history_size, readers
):
    path = write(rows_of(20))
    encoders = [
        TextEncoder(
            HashNgramTokenizer(n_rows=64, ngrams=1),
            history_size=history_size,
            speaker_tokens=speakers,
            segments=segments,
        )
        for _ in range(2)
    ]

    def make():
        made = Conversations(
            path, label_speaker="both", streaming=True, mutators=[Flatten(context_length=3)]
        )
        made.set_shuffle_window(30)
        return made.for_split("train", training=True)

    alone, helped = make(), make()
    helped.read_with(readers, lambda: encoders[1].encoding)
    pairs = []
    for teacher in (alone, helped):
        teacher.set_batches(Fixed(7))
        teacher.start_epoch(0, 3)
    while not alone.epoch_done():
        batches = [teacher.batch_act() for teacher in (alone, helped)]
        assert encoders[1].key in batches[1].store.encoder_keys
        pairs = [encoder.pairs(batch) for encoder, batch in zip(encoders, batches)]
        for expected, found in zip(pairs[0][:2], pairs[1][:2]):
            for ours, theirs in zip(expected, found):
                np.testing.assert_array_equal(ours, theirs)
        assert pairs[0][2].tolist() == pairs[1][2].tolist()
        for teacher, batch in zip((alone, helped), batches):
            teacher.batch_observe([{}] * len(batch))
    assert helped.epoch_done()
    assert not encoders[1]._passing.rows  # Nothing was tokenised a second time.


def test_reading_makes_no_tokens_of_turns_that_are_shown_one_by_one(write):
    encoder = TextEncoder(HashNgramTokenizer(n_rows=64, ngrams=1))
    path = write(rows_of(20))
    for mutators, keys in (([Flatten()], [encoder.key]), ([], [])):
        made = Conversations(path, streaming=True, mutators=mutators)
        made.read_with(None, lambda: encoder.encoding)
        stores = [block.store for block in made.data["train"].blocks(None, is_encoded=True)]
        assert [store.encoder_keys for store in stores] == [keys]


def test_reading_without_readers_takes_one_task_for_a_block():
    source = lambda: [[Message(text=str(n), labels=["x"])] for n in range(20)]  # noqa: E731
    tasks = reading.Tasks(Teacher({"train": source}, streaming=True).data["train"], BEGIN, True)
    tasks.room = 8
    found = reading.reads(tasks, None, None)
    assert [read.store.n_episodes for read in found] == [8, 8, 4]


@pytest.fixture
def write(tmp_path):
    import json

    def write(rows, name="data.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


@pytest.mark.parametrize("name, line, problem", BAD_LINES)
def test_reading_errors_of_bad_lines_are_the_same_with_tasks(tmp_path, name, line, problem):
    files = Files(tmp_path, name, [[1, 2] * 20])
    files.write([files.parts[0] + line + b"\n"])
    messages = []
    for prepare in (lambda teacher: teacher, ahead):
        with pytest.raises(DataError) as caught:
            rounds([prepare(files.teacher())])
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and problem in messages[0]


def test_reading_counts_what_was_left_out(tmp_path):
    path = tmp_path / "data.jsonl"
    lines = list(FORMATS["jsonl"][1]([1] * 40))
    path.write_text("".join([*lines[:20], "{}\n", *lines[20:]]))
    found = []
    for prepare in (lambda teacher: teacher, ahead):
        made = LabelledText(str(path), streaming=True, on_bad_data="skip")
        shown = prepare(made.for_split("train"))
        assert len(rounds([shown])) == 40
        found.append([(bad.n_skipped, bad.n_read) for bad in shown.data["train"].bad_data()])
    assert found == [[(1, 40)]] * 2


def test_reading_mutators_that_need_the_whole_split_get_it(tmp_path, write):
    path = write(rows_of(20))
    shown = []
    for prepare in (lambda teacher: teacher, ahead):
        mutators = [Flatten(), Limit(n_examples=23), Flatten()]
        made = Conversations(path, streaming=True, mutators=mutators)
        shown.append(everything(prepare(made.for_split("train", training=True))))
    assert shown[0] == shown[1] and len(shown[0]) == 23


class Numbers:
    """A dataset of episodes by number. It notes the numbers that it is asked for."""

    def __init__(self, n):
        self.n, self.asked = n, []

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        self.asked.append(number)
        return [Message(text=f"question {number}", labels=[f"answer {number}"])]


class Parts:
    """A dataset of parts of different sizes, one of them empty."""

    n_parts = 5

    def read_part(self, number):
        for place in range(number):
            yield [Message(text=f"question {number} {place}", labels=["yes"])]


def test_reading_names_the_code_of_a_part_that_is_none():
    class Nothing(Parts):
        def read_part(self, number):
            return None

    teacher = Teacher({"train": Nothing()}).for_split("train")
    with pytest.raises(CodeError, match=r"read_part\(\) returned None, .* an iterable of episodes"):
        list(teacher.episodes())


@pytest.mark.parametrize("make, first", [(partial(Numbers, 10), "0/0"), (Parts, "1.0/0")])
@pytest.mark.parametrize("streaming", [True, False])
def test_reading_by_number_and_by_part(make, first, streaming):
    shown = []
    for prepare in (lambda teacher: teacher, ahead):
        made = Teacher({"train": make()}, streaming=streaming, shuffle_window=4)
        teacher = prepare(made.for_split("train", training=True))
        assert next(iter(teacher.episodes()))[0]["id"] == first
        teacher.start_epoch(2, 3)
        rounds([teacher], 5)
        state = through_json(teacher.state())
        shown.append(everything(teacher))
        again = prepare(
            Teacher({"train": make()}, streaming=streaming, shuffle_window=4).for_split(
                "train", training=True
            )
        )
        again.restore(state)
        shown.append(everything(again))
    assert len(shown[0]) == 5 and shown.count(shown[0]) == 4


def test_reading_by_number_resumes_without_earlier_episodes():
    source = Numbers(1000)
    made = Teacher({"train": source}, streaming=True, single_turn=True, shuffle_window=10)
    teacher = ahead(made.for_split("train", training=True))
    rounds([teacher], 905)
    state = through_json(teacher.state())
    source.asked.clear()
    again = ahead(made.for_split("train", training=True))
    again.restore(state)
    assert len(rounds([again])) == 95 and min(source.asked) >= 890


@given(
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
def test_reading_processes_read_their_own_sections(n, n_workers, window, n_before, help, is_flat):
    """Each number is asked for once, and every process continues where its state was taken."""
    source = Numbers(n)

    def shares():
        mutators = [Flatten()] if is_flat else None
        options = {"streaming": True, "shuffle_window": window, "mutators": mutators}
        teacher = Teacher({"train": source}, **options).for_split("train", training=True)
        made = [teacher.share_of(worker, n_workers, True) for worker in range(n_workers)]
        return list(map(ahead, made)) if help else made

    said = []
    for share, again in zip(shares(), shares()):
        source.asked.clear()
        first = rounds([share], n_before)
        state = through_json(share.state())
        rest = rounds([share])
        if n >= n_workers:
            assert sorted(source.asked) == sorted(int(id.split("/")[0]) for id in first + rest)
        again.restore(state)
        assert rounds([again]) == rest
        said += first + rest
    assert sorted(said) == sorted(f"{number}/0" for number in range(n))


LINES = ["conversations", "named side", "jsonl, a part"]


@pytest.mark.parametrize("name", LINES)
@slowly
@given(
    st.lists(sizes, min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(0, 5),
    st.booleans(),
    st.booleans(),
)
@example([[1, 4]], 3, 0, False, False)
def test_reading_processes_parse_each_line_of_files_once(
    tmp_path, name, parts, n_workers, n_before, help, pack
):
    """Every process continues where its state was taken, and reads no lines of another process."""
    files = Files(tmp_path, name, parts, pack)
    whole = rounds([files.teacher()])
    parsed = []

    def shares():
        for worker in range(n_workers):
            teacher = files.teacher()
            source = teacher.data["train"].source
            source.reader = partial(noting, parsed, source.reader)
            share = teacher.share_of(worker, n_workers, reads_apart=True)
            yield ahead(share) if help else share

    said = []
    for share, again in zip(shares(), shares()):
        n_parsed = len(parsed)
        first = rounds([share], n_before)
        state = through_json(share.state())
        rest = rounds([share])
        if first + rest:  # A share without examples is read again, to be sure that it has none.
            n_parsed = len(parsed)
        again.restore(state)
        assert rounds([again]) == rest
        del parsed[n_parsed:]
        said += first + rest
    assert sorted(said) == sorted(whole)
    assert len(parsed) == len(set(parsed))


@pytest.mark.parametrize("n_workers", [2, 3])
def test_reading_processes_get_even_sections_of_uneven_files(tmp_path, n_workers):
    paths = [
        write_spoken(tmp_path / f"{number:02}.jsonl", *["agent"] * (1 if number % 2 else 100))
        for number in range(40)
    ]
    teacher = Conversations(paths, label_speaker="agent", streaming=True).for_split("train")
    shares = [teacher.share_of(n, n_workers, reads_apart=True) for n in range(n_workers)]
    sizes = [len(rounds([share])) for share in shares]
    assert sum(sizes) == 20 * 101 and max(sizes) < 1.3 * min(sizes)


def test_reading_processes_name_a_file_that_is_gone(tmp_path):
    paths = [write_spoken(tmp_path / f"{name}.jsonl", *["agent"] * 50) for name in "ab"]
    teacher = Conversations(paths, label_speaker="agent", streaming=True).for_split("train")
    shares = [teacher.share_of(n, 2, reads_apart=True) for n in range(2)]
    (tmp_path / "b.jsonl").unlink()
    for share in shares:
        with pytest.raises(DataError, match="b.jsonl  file not found"):
            rounds([share])


@pytest.mark.parametrize("speakers", [["bot"] * 50, ["bot"] * 49 + ["agent"], []])
def test_reading_processes_name_a_file_without_examples_once(tmp_path, speakers):
    """As in a single process. An example in another process's section is enough."""
    paths = [write_spoken(tmp_path / f"{n}.jsonl", *["agent"] * 50) for n in range(3)]
    write_spoken(tmp_path / "1.jsonl", *speakers)
    teacher = Conversations(paths, label_speaker="agent", streaming=True).for_split("train")
    said, errors = [], []
    for share in (teacher.share_of(n, 3, reads_apart=True) for n in range(3)):
        try:
            said += rounds([share])
        except DataError as error:
            errors.append(str(error))
    if speakers[-1:] == ["agent"]:
        assert not errors and len(said) == 101
    else:
        with pytest.raises(DataError) as error:
            rounds([teacher])
        assert errors == [str(error.value)] and "1.jsonl" in errors[0]


def noting(parsed, read, path, at):
    for episode in read(path, at=at):
        parsed.append((path, at.end))
        yield episode


def test_reading_processes_share_what_cannot_be_read_in_sections():
    """Cases: two parts for three processes, a sample, and a mutator that sees everything."""
    for source, options, settings in (
        (Numbers(2), {}, {}),
        (Parts(), {"mutators": [Limit(n_examples=7)]}, {}),
        (Numbers(20), {}, {"max_examples": 7}),
    ):
        made = Teacher({"train": source}, streaming=True, shuffle_window=4, **options)
        teacher = made.for_split("train", training=True, **settings)
        whole = rounds([teacher])
        shares = [teacher.share_of(worker, 3, reads_apart=True) for worker in range(3)]
        said = [rounds([share]) for share in shares]
        assert sorted(sum(said, [])) == sorted(whole)
        assert max(map(len, said)) <= 4


def test_reading_by_number_checks_the_returned_type():
    class Broken(Numbers):
        def __getitem__(self, number):
            return {"text": "no list"}

    for prepare in (lambda teacher: teacher, ahead):
        with pytest.raises(CodeError, match="returned a dict"):
            list(prepare(Teacher({"train": Broken(3)}).for_split("train")).episodes())


def test_reading_uses_the_current_state_of_a_reader():
    """A first pass builds the vocabulary of a reader, and the next pass uses it."""

    class Reader:
        known = None

        def __call__(self):
            for word in ("a", "b", "c"):
                text = word if self.known is None else str(self.known.index(word))
                yield [Message(text=text, labels=[word])]

    reader = Reader()
    teacher = ahead(Teacher({"train": reader}, streaming=True).for_split("train"))
    words = sorted(set(teacher.texts()), reverse=True)
    reader.known = words
    assert [message["text"] for message in everything(teacher)] == ["2", "1", "0"]


def test_reading_with_tasks_gives_batches_and_candidates():
    made = IterableTeacher(
        {"dev": [[(f"q{n}", f"a{n % 3}")] for n in range(9)]},
        streaming=True,
        candidates=["a0", "a1", "a2"],
        mutators=[Flatten()],
    )
    teacher = ahead(made.for_split("dev"))
    teacher.set_batches(Fixed(4))
    batch = teacher.batch_act()
    assert isinstance(batch, Batch)
    assert batch.column("label_candidates") == [["a0", "a1", "a2"]] * 4
    wrong = IterableTeacher({"dev": [[("q", "b")]]}, streaming=True, candidates=["a"])
    with pytest.raises(DataError, match="is not among the 1 fixed candidates"):
        rounds([ahead(wrong.for_split("dev"))])


def test_reading_gzipped_lines_longer_than_a_task(tmp_path):
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress("".join(FORMATS["conversations"][1]([3, 1] * 20)).encode()))
    shown = [
        everything(prepare(Conversations(str(path), streaming=True).for_split("train")))
        for prepare in (lambda teacher: teacher, ahead)
    ]
    assert shown[0] == shown[1] and len(shown[0]) == 80


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("on_bad_data", ["error", "skip"])
def test_reading_refuses_a_file_without_the_label_speaker(tmp_path, streaming, on_bad_data):
    paths = [write_spoken(tmp_path / "a.jsonl", *["agent"] * 9)]
    paths.append(write_spoken(tmp_path / "b.jsonl", *["bot"] * 9))
    choices = {"label_speaker": "agent", "streaming": streaming, "on_bad_data": on_bad_data}
    messages = []
    for prepare in (lambda teacher: teacher, ahead):
        for order in (paths, paths[::-1]):
            with pytest.raises(DataError) as caught:
                rounds([prepare(Conversations(order, **choices).for_split("train"))])
            messages.append(str(caught.value))
    assert set(messages) == {
        f"{paths[1]}  label_speaker 'agent' does not occur in this file; speakers here: 'user', "
        "'bot'"
    }


@pytest.mark.parametrize("content", ["", "\n\n", '{"turns": []}\n'])
def test_reading_refuses_a_later_file_without_examples(tmp_path, content):
    paths = [write_spoken(tmp_path / "a.jsonl", "agent"), str(tmp_path / "b.jsonl")]
    (tmp_path / "b.jsonl").write_text(content)
    messages = []
    for prepare in (lambda teacher: teacher, ahead):
        with pytest.raises(DataError, match="b.jsonl") as caught:
            rounds([prepare(Conversations(paths, streaming=True).for_split("train"))])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@given(
    parts=st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=3),
    n_rounds=st.integers(0, 20),
    on_bad_data=st.sampled_from(["error", "skip"]),
    readers=st.tuples(st.booleans(), st.booleans()),
)
@slowly
def test_reading_counts_conversations_without_the_label_speaker(
    tmp_path, parts, n_rounds, on_bad_data, readers
):
    """The count is right also if reading is resumed within a file, by tasks or not."""
    files = [
        write_spoken(
            tmp_path / f"{number}.jsonl", *("agent" if each else "bot" for each in [*part, True])
        )
        for number, part in enumerate(parts)
    ]
    made = [
        Conversations(files, label_speaker="agent", streaming=True, on_bad_data=on_bad_data)
        for _ in readers
    ]
    begun, resumed = (
        (ahead if helped else lambda each: each)(each.for_split("train", training=True))
        for helped, each in zip(readers, made)
    )
    begun.set_shuffle_window(3)
    resumed.set_shuffle_window(3)
    n_examples = sum(part.count(True) + 1 for part in parts)
    rounds([begun], n_rounds % n_examples)
    state = through_json(begun.state())
    rounds([begun])
    wanted = [(path, len(part) + 1, part.count(False)) for path, part in zip(files, parts)]
    resumed.restore(state)
    shown = []
    for teacher in (begun, resumed):
        rounds([teacher])
        shown.append(
            [(bad.path, bad.n_read, bad.n_without) for bad in teacher.data["train"].bad_data()]
        )
    assert shown[0] == [each for each in wanted if each[2]]
    # The resumed teacher does not know files before its position.
    assert shown[1] == shown[0][len(shown[0]) - len(shown[1]) :]
    assert wanted[-1] in shown[1] or not wanted[-1][2]


@pytest.mark.parametrize("streaming", [True, False])
def test_reading_an_example_whose_labels_are_none(streaming):
    def read():
        yield [Message(text="a", labels=None, context=None)]
        yield [Message(text="b", labels=["yes"])]

    for prepare in (lambda teacher: teacher, ahead):
        made = Teacher({"train": read}, streaming=streaming, single_turn=True)
        teacher = prepare(made.for_split("train", training=True))
        (shard,) = teacher.data["train"].shards()
        assert shard.store.n_examples == 2
        teacher.set_batches(Fixed(2))
        rows = sorted(teacher.batch_act(), key=lambda row: row["text"])
        assert [row.get("labels") for row in rows] == [None, ["yes"]]


@pytest.mark.parametrize("streaming", [True, False])
def test_reading_refuses_two_examples_with_the_same_id(tmp_path, streaming):
    path = tmp_path / "data.jsonl"
    turns = '"turns": [{"speaker": "A", "text": "hi"}, {"speaker": "B", "text": "ho"}]'
    path.write_text("".join(f'{{"id": "{name}", {turns}}}\n' for name in "abcbd"))
    row = {"text": "a", "labels": ["x"]}
    of_code = [[{**row, "id": name}] for name in "pqrq"]
    hint = "give each example a unique id"
    for prepare in (lambda teacher: teacher, ahead):
        for teacher, message in (
            (
                Conversations(str(path), streaming=streaming),
                f"{path}:4  this line has the same id as line 2, 'b/0': {hint}",
            ),
            (
                IterableTeacher({"train": lambda: of_code}, streaming=streaming, task="t"),
                f"t/train  episode 3 has the same id as episode 1, 'q': {hint}",
            ),
            (
                Teacher(
                    {"train": lambda: [[Message(row)]]},
                    mutators=[lambda episode: [episode, episode]],
                    streaming=streaming,
                    origin="t",
                ),
                f"t  two examples have the id '0/0': {hint}",
            ),
        ):
            with pytest.raises(DataError) as caught:
                rounds([prepare(teacher.for_split("train"))])
            assert str(caught.value) == message
