"""Corpora of any JSON layout."""

import csv
import gzip
import json

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import convert
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout, find_layout, shipped_layouts
from thincdialog.messages import SILENCE
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.teachers.conversations import Conversations
from thincdialog.teachers.json_layout import JSONLayout

# What stands in a file of each layout, and its (id, text, labels).
SAMPLES = {
    "sharegpt": (
        [{"id": "q", "conversations": [
            {"from": "system", "value": "Be kind."}, {"from": "human", "value": "hi"},
            {"from": "gpt", "value": "hello"}, {"from": "human", "value": "bye"},
        ]}],
        [("q/0", "hi", ["hello"])],
    ),
    "messages": (
        [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                       {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}],
        [("0/0", "a", ["b"]), ("0/1", "c", ["d"])],
    ),
    "alpaca": (
        [{"instruction": "add", "input": "1 2", "output": "3"},
         {"instruction": "sing", "input": "", "output": "la"}],
        [("0/0", "add\n1 2", ["3"]), ("1/0", "sing", ["la"])],
    ),
    "dolly": (
        [{"context": "c", "instruction": "i", "response": "r", "category": "x"}],
        [("0/0", "c\ni", ["r"])],
    ),
    "prompt-completion": ([{"prompt": "p", "completion": "c"}], [("0/0", "p", ["c"])]),
    "dailydialog": (
        [{"dialog": ["a", "b", "c"], "act": [1, 2, 3]}],
        [("0#first/0", SILENCE, ["a"]), ("0#first/1", "b", ["c"]), ("0#second/0", "a", ["b"])],
    ),
    "personachat": (
        {"valid": [], "train": [{"personality": ["i ski", "i sew"], "utterances": [
            {"history": ["hi"], "candidates": ["no", "yes"]},
            {"history": ["hi", "yes", "ok"], "candidates": ["u", "v", "w"]},
        ]}]},
        [("0/0", "i ski\ni sew\nhi", ["yes"]), ("0/1", "ok", ["w"])],
    ),
    "multiwoz21": (
        {"SNG1.json": {"goal": {}, "log": [{"text": "a"}, {"text": "b"}]},
         "MUL2.json": {"log": [{"text": "c"}, {"text": "d"}]}},
        [("SNG1.json/0", "a", ["b"]), ("MUL2.json/0", "c", ["d"])],
    ),
    "sgd": (
        [{"dialogue_id": "1_0", "turns": [
            {"speaker": "USER", "utterance": "a", "frames": []},
            {"speaker": "SYSTEM", "utterance": "b"}]}],
        [("1_0/0", "a", ["b"])],
    ),
    "taskmaster": (
        [{"conversation_id": "d", "utterances": [
            {"speaker": "USER", "text": "a"}, {"speaker": "USER", "text": "b"},
            {"speaker": "ASSISTANT", "text": "c"}]}],
        [("d/0", "a\nb", ["c"])],
    ),
    "topicalchat": (
        {"t_1": {"content": [{"agent": "agent_1", "message": "a"},
                             {"agent": "agent_2", "message": "b"}]}},
        [("t_1#first/0", SILENCE, ["a"]), ("t_1#second/0", "a", ["b"])],
    ),
    "convokit": (
        [{"id": "L2", "conversation_id": "L1", "text": "b", "speaker": "u2", "reply-to": "L1"},
         {"id": "L1", "conversation_id": "L1", "text": "a", "speaker": "u1", "reply-to": None},
         {"id": "L3", "conversation_id": "L3", "text": "c", "speaker": "u1", "reply-to": None}],
        [("L1#first/0", SILENCE, ["a"]), ("L1#second/0", "a", ["b"]),
         ("L3#first/0", SILENCE, ["c"])],
    ),
}  # fmt: skip


def write(path, value, lines=False):
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value, indent=1)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def rows(teacher, split="train"):
    shown = teacher.for_split(split, training=True)
    return [(m["id"], m["text"], m["labels"]) for m in shown.examples()]


def test_layouts_have_a_sample_each():
    assert set(SAMPLES) == set(shipped_layouts())
    assert all(find_layout(name).about for name in SAMPLES)
    assert all(f"`{name}`" in JSONLayout.__doc__ for name in SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_layouts_read_their_samples(name, tmp_path):
    value, expected = SAMPLES[name]
    paths = [write(tmp_path / "a.json.gz", value)]
    if isinstance(value, list):  # The same as JSON lines, whatever the suffix.
        paths.append(write(tmp_path / "b.jsonl", value, lines=True))
    if isinstance(value, list) and len(value) > 1:
        paths.append(write(tmp_path / "c.json", value, lines=True))
    for path in paths:
        assert rows(JSONLayout(name, train=path)) == expected
        assert rows(JSONLayout(name, train=path, streaming=True)) == expected
    done = convert(paths[0], tmp_path / "a.txt", from_format=name, to_format="parlai")
    assert done.n_examples == len(expected)


def test_layout_gives_candidates_and_splits(tmp_path):
    value, _ = SAMPLES["personachat"]
    value = {**value, "valid": value["train"][:1]}
    path = write(tmp_path / "a.json", value)
    teacher = JSONLayout("personachat", train=path, dev=path)
    assert teacher.for_split("dev").n_examples == 2
    assert teacher.for_split("dev").act()["label_candidates"] == ["no", "yes"]
    flat = JSONLayout("personachat", train=path, mutators=[Flatten()]).for_split("train")
    assert [m["context"] for m in flat.examples()][1] == [(0, "i ski\ni sew\nhi"), (1, "yes")]


def with_system(layout, *speakers):
    """A conversation whose turns are named by their places, in a layout with system turns."""
    turns, who, text, names = {
        "messages": ("messages", "role", "content", {"S": "system", "U": "user", "A": "assistant"}),
        "sharegpt": ("conversations", "from", "value", {"S": "system", "U": "human", "A": "gpt"}),
    }[layout]
    return [{turns: [{who: names[s], text: f"{s}{n}"} for n, s in enumerate(speakers)]}]


@pytest.mark.parametrize("layout", ["messages", "sharegpt"])
@pytest.mark.parametrize("mode", ["context", "field", "drop"])
@pytest.mark.parametrize("flat", [False, True])
def test_layout_keeps_system_turns_apart(tmp_path, layout, mode, flat):
    path = write(tmp_path / "a.json", with_system(layout, *"SSUASUA"))
    mutators = [Flatten()] if flat else []
    teacher = JSONLayout(layout, train=path, system_turns=mode, mutators=mutators)
    shown = teacher.for_split("train", training=True)
    examples = list(shown.examples())
    assert [(m["text"], m["labels"]) for m in examples] == [("U2", ["A3"]), ("U5", ["A6"])]
    system = [(0, "S0"), (0, "S1")] if mode == "context" else []
    assert [list(m["context"]) for m in examples] == [system, [*system, (0, "U2"), (1, "A3")]]
    assert {m.get("system") for m in examples} == {None if mode == "drop" else "S0\nS1"}
    texts = ["U2", "A3", "U5", "A6"]
    assert list(shown.texts()) == (["S0\nS1", *texts] if mode == "context" else texts)
    default = JSONLayout(layout, train=path, mutators=mutators).for_split("train", training=True)
    assert (list(default.examples()) == examples) == (mode == "context")


@pytest.mark.parametrize("flat", [False, True])
def test_layout_with_a_system_has_openings_that_can_be_left_out(tmp_path, flat):
    path = write(tmp_path / "a.json", with_system("messages", *"SAUA"))
    mutators = [Flatten()] if flat else []
    opened = JSONLayout("messages", train=path, mutators=mutators)
    assert [text for _, text, _ in rows(opened)] == [SILENCE, "U2"]
    left = JSONLayout("messages", train=path, mutators=[*mutators, WithoutOpenings()])
    assert rows(left) == [("0/1", "U2", ["A3"])]
    (example,) = left.for_split("train").examples()
    assert example["context"] == [(0, "S0"), *([(1, "A1")] if flat else [])]


def test_layout_of_a_conversation_that_only_the_system_speaks_in(tmp_path):
    value = with_system("messages", *"SUA") + with_system("messages", "S")
    assert rows(JSONLayout("messages", train=write(tmp_path / "a.json", value))) == [
        ("0/0", "U1", ["A2"])
    ]


def test_convert_keeps_the_system_where_there_is_a_place(tmp_path):
    path = write(tmp_path / "a.json", with_system("messages", *"SUASUA"))
    done = convert(path, tmp_path / "a.txt", from_format="messages", to_format="parlai")
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert [sorted(line.split("\t")) for line in lines] == [
        ["labels:A2", "system:S0", "text:U1"],
        ["episode_done:True", "labels:A5", "system:S0", "text:U4"],
    ]
    assert done.left_out["turns of a system or tool within conversations"] == 1
    with pytest.raises(DataError, match="no place for the field 'system'; --drop system"):
        convert(path, tmp_path / "b", from_format="messages", to_format="conversations")


def test_layout_of_ones_own(tmp_path):
    (tmp_path / "my.yml").write_text(
        "records: data.all\ngroup: talk\nspeaker: who.name\ntext: [said.0, said.1]\n"
        "label_speaker: '2'\nreplace: {_comma_: ','}\n"
    )
    says = [("x", 1, ["a_comma_ b"]), ("x", 2, ["c", "d"]), ("y", 1, ["e"]), ("y", 2, [None, "f"])]
    value = {"data": {"all": [
        {"talk": talk, "who": {"name": who}, "said": said} for talk, who, said in says
    ]}}  # fmt: skip
    path = write(tmp_path / "a.json", value)
    teacher = JSONLayout(str(tmp_path / "my.yml"), train=path)
    assert rows(teacher) == [("x/0", "a, b", ["c\nd"]), ("y/0", "e", ["f"])]
    (tmp_path / "table.json").write_text('{"text": "Question", "label": "Answer", "id": "No"}')
    (tmp_path / "a.csv").write_text('No,Question,Answer\n7,"a, b",c\n8,d,e\n')
    table = JSONLayout(str(tmp_path / "table.json"), train=str(tmp_path / "a.csv"))
    assert rows(table) == [("7/0", "a, b", ["c"]), ("8/0", "d", ["e"])]
    (tmp_path / "TABLE.JSON").write_bytes((tmp_path / "table.json").read_bytes())
    for name in ("table.json", "TABLE.JSON"):
        said = {"from_format": str(tmp_path / name), "force": True}
        convert(tmp_path / "a.csv", tmp_path / "a.tsv", **said)
        assert (tmp_path / "a.tsv").read_text() == "text\tlabel\na, b\tc\nd\te\n"


TURN = {"from": "human", "value": "x"}


@pytest.mark.parametrize(
    "value, words",
    [
        ([{"conversation": []}], "a.json  0 has no 'conversations'; did you mean 'conversation'?"),
        ([{"conversations": 3}], "a.json  0.conversations is a number, not a list"),
        ([{"conversations": [TURN, {"from": "gpt"}]}], r"0.conversations.1 has no 'value' \(there"),
        ([{"conversations": [TURN, {"from": "gpt", "value": None}]}], "1.value is null, not a str"),
        (
            [{"conversations": [TURN, "no"]}],
            "0.conversations.1 is a string, so there is no 'value'",
        ),
        ({"a": 1}, "a.json  a is a number, so there is no 'conversations' in it"),
        (3, "a.json  the record is a number, not a list"),
        ([], "a.json  holds no examples"),
        (
            [{"conversations": [TURN]}],
            "label_speaker 'gpt' does not occur in this file; speakers here: 'human'",
        ),
    ],
)
def test_layout_names_the_place_of_what_is_wrong(tmp_path, value, words):
    teacher = JSONLayout("sharegpt", train=write(tmp_path / "a.json", value))
    with pytest.raises(DataError, match=words):
        teacher.for_split("train").n_examples  # noqa: B018


def test_layout_names_the_line_of_what_is_wrong(tmp_path):
    def error(path, layout="prompt-completion"):
        with pytest.raises(DataError) as caught:
            rows(JSONLayout(layout, train=str(path)))
        return str(caught.value).removeprefix(f"{tmp_path}/")

    path = write(tmp_path / "a.jsonl", [{"prompt": "a", "completion": "b"}, {"prompt": "c"}], True)
    assert error(path) == "a.jsonl:2  the record has no 'completion' (there is: 'prompt')"
    assert "a.jsonl  holds JSON lines: the layout's 'records'" in error(path, "personachat")
    (tmp_path / "b.json").write_text('[\n{"prompt": "a" 1}\n]')
    assert error(tmp_path / "b.json").startswith("b.json:2  not valid JSON at column 16")
    half = write(tmp_path / "d.json", [{"prompt": "\ud800", "completion": "b"}])
    assert error(half).startswith("d.json  \\ud800 is half of a character")
    (tmp_path / "e.json").write_text("[" * 100000)
    assert error(tmp_path / "e.json").startswith(
        "e.json  not readable as JSON: it is nested more than 200"
    )
    lone = write(tmp_path / "c.json", [{"prompt": "a", "completion": []}])
    assert "0.completion is an empty list: give the example a label" in error(lone)


@pytest.mark.parametrize(
    "replies, words",
    [
        (["1 a", "2 b", "3 a"], ":3  conversation_id is 'a' again"),
        (["1 a", "2 a 1", "3 a 1"], "a second answer to the same turn"),
        (["1 a", "2 a"], "a second beginning"),
        (["1 a 2", "2 a 1"], "leads back to itself"),
    ],
)
def test_layout_groups_must_be_together_and_no_trees(tmp_path, replies, words):
    given_rows = []
    for name, group, *reply in map(str.split, replies):
        row = {"id": name, "conversation_id": group, "text": name, "speaker": "u"}
        given_rows.append({**row, "reply-to": reply[0] if reply else None})
    path = write(tmp_path / "a.jsonl", given_rows, lines=True)
    with pytest.raises(DataError, match=words):
        rows(JSONLayout("convokit", train=path))


def test_layout_of_real_conversations(data, tmp_path):
    """Our own form, described as a layout, gives what its own teacher gives."""
    path = str(data / "star" / "test.jsonl.gz")
    layout = tmp_path / "ours.yml"
    layout.write_text("id: id\nturns: turns\nspeaker: speaker\ntext: text\n")
    found = JSONLayout(str(layout), test=path, label_speaker="system").for_split("test")
    own = Conversations(test=path, label_speaker="system").for_split("test")
    assert list(found.examples()) == list(own.examples())
    assert found.n_examples == sum(map(len, read_conversations(path, "system")))


def test_layout_of_a_table_without_a_header(written):
    path = written("hi;ho\nyou;me\n", "a.csv")
    layout = CorpusLayout(text="q", label="a")
    with pytest.raises(DataError, match=r"has no 'q' .*such as columns = \[\"text\", \"label\"\]"):
        list(read_layout_file(path, layout))
    episodes = read_layout_file(path, layout, columns=["q", "a"])
    assert [episode[0]["labels"] for episode in episodes] == [["ho"], ["me"]]


CALL = {"function": {"name": "weather", "arguments": "{}"}}
LOG = [
    {"intent": "later", "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Rain"}, {"type": "image_url"},
                                     {"type": "text", "text": "or sun?"}], "intent": "sky"},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "intent": "unread"},
        {"role": "tool", "content": "rain"},
        {"role": "assistant", "content": "Rain."},
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "Sun."}]},
    {"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hi.", "intent": "hello"},
        {"role": "user", "content": "Hm"}]},
]  # fmt: skip


def test_chat_messages_of_models_that_call_tools(tmp_path):
    """Content in parts is joined; a call of a tool, which has no text, and its result are left
    out."""
    path = write(tmp_path / "log.json", LOG)
    target = tmp_path / "a.jsonl"
    done = convert(path, target, from_format="messages", to_format="parlai", drop=["system"])
    assert rows(JSONLayout("messages", train=path, system_turns="drop")) == [
        ("0/0", "Rain\nor sun?", ["Rain."]), ("0/1", "And tomorrow?", ["Sun."]),
        ("1/0", "Hi", ["Hi."]),
    ]  # fmt: skip
    assert done.left_out["calls of tools without a text"] == 1
    assert done.left_out["turns of a system or tool within conversations"] == 1
    assert done.left_out["parts of texts that are no text, such as images"] == 1


@pytest.mark.parametrize(
    ("field", "pairs", "n_left"),
    [
        # In the turn, else in the answer; of the record for its last text alone.
        ("intent", [("Rain\nor sun?", "sky"), ("And tomorrow?", "later"), ("Hi", "hello")], 1),
        ("tool_calls.0.function.name", [("Rain\nor sun?", "weather")], 3),
    ],
)
def test_labelled_texts_of_chat_messages(tmp_path, field, pairs, n_left):
    path = write(tmp_path / "log.json", LOG)
    done = convert(path, tmp_path / "a.csv", from_format="messages", label_field=field)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["text", "label"], *map(list, pairs)]
    assert done.left_out[f"texts without '{field}'"] == n_left


def test_content_without_any_text_is_an_error(tmp_path):
    turns = [
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "assistant", "content": "A"},
    ]
    path = write(tmp_path / "log.json", [{"messages": turns}])
    with pytest.raises(DataError, match="0.messages.0.content has no part with a 'text'"):
        rows(JSONLayout("messages", train=path))
