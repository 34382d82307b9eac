"""Corpora of all layouts, shipped and custom ones."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from thincdialog.errors import DataError
from thincdialog.formats.context import Bookmark
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.convert import convert
from thincdialog.formats.json_layout import read_layout_file
from thincdialog.formats.layout_file import CorpusLayout, find_layout, read_layout, shipped_layouts
from thincdialog.messages import SILENCE
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.teachers.json_layout import JSONLayout
from thincdialog.teachers.text_formats import Conversations

# For each layout: the value in a JSON file, and the (id, text, labels) of its examples.
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
    "prompt-completion": (
        [{"prompt": "p", "completion": "c"}, {"question": "q", "answer": "a"},
         {"context": ["h", "i"], "response": "r"}],
        [("0/0", "p", ["c"]), ("1/0", "q", ["a"]), ("2/0", "h\ni", ["r"])],
    ),
    "labelled": (
        [{"text": "a", "label": "x"}, {"utterance": "b", "intent": "y"},
         {"sentence": "c", "category": 1}],
        [("0/0", "a", ["x"]), ("1/0", "b", ["y"]), ("2/0", "c", ["1"])],
    ),
    "gemini": (
        [{"systemInstruction": {"parts": [{"text": "Be kind."}]}, "contents": [
            {"role": "user", "parts": [{"text": "a "}, {"text": "b"}]},
            {"role": "model", "parts": [{"text": "c"}]}]}],
        [("0/0", "Be kind.\na b", ["c"])],
    ),
    "messenger": (
        {"participants": [], "messages": [
            {"sender_name": "Flo", "timestamp_ms": 3, "content": "b\u00c3\u00a9"},
            {"sender_name": "Flo", "timestamp_ms": 2, "photos": []},
            {"sender_name": "Ed", "timestamp_ms": 1, "content": "a\u00e9"}]},
        [("0#first/0", SILENCE, ["a\u00e9"]), ("0#second/0", "a\u00e9", ["b\u00e9"])],
    ),
    "discord": (
        {"guild": {"id": "1"}, "channel": {"id": "2"}, "messages": [
            {"id": "3", "type": "Default", "content": "a", "author": {"id": "5", "name": "ed"}},
            {"id": "4", "type": "Default", "content": "b", "author": {"id": "6", "name": "flo"}}]},
        [("2#first/0", SILENCE, ["a"]), ("2#second/0", "a", ["b"])],
    ),
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
    "metalwoz": (
        [{"id": "m", "bot_id": "b", "turns": ["what can I do?", "a kite", "done", "ta"]}],
        [("m/0", SILENCE, ["what can I do?"]), ("m/1", "a kite", ["done"])],
    ),
    "clinc": (
        {"oos_train": [["x", "oos"]], "val": [], "train": [["a b", "c"], ["d", "e"]]},
        [("0/0", "a b", ["c"]), ("1/0", "d", ["e"])],
    ),
    "blended-skill-talk": (
        [{"personas": [["I ski."], ["I sew.", "I sit."]],
          "dialog": [[0, "hi"], [1, "oh"], [0, "so"], [1, "ah"]]}],
        [("0/0", "I sew.\nI sit.\nhi", ["oh"]), ("0/1", "so", ["ah"])],
    ),
    "intents": (
        {"intents": [
            {"tag": "greet", "patterns": ["hi", "hello"], "responses": ["hey"]},
            {"intent": "none", "text": []}, {"intent": "bye", "text": ["so long"]},
        ]},
        [("0/0", "hi", ["greet"]), ("1/0", "hello", ["greet"]), ("2/0", "so long", ["bye"])],
    ),
    "snips": (
        {"Play": [{"data": [{"text": "play "}, {"text": "jazz", "entity": "genre"}]}], "Book": [
            {"data": [{"text": "a table"}]}]},
        [("0/0", "play jazz", ["Play"]), ("1/0", "a table", ["Book"])],
    ),
    "rasa-json": (
        {"rasa_nlu_data": {"regex_features": [], "common_examples": [
            {"text": "hi", "intent": "greet", "entities": []}, {"text": "ta", "intent": "thank"},
        ]}},
        [("0/0", "hi", ["greet"]), ("1/0", "ta", ["thank"])],
    ),
    "telegram": (
        {"chats": {"list": [
            {"id": 7, "type": "personal_chat", "messages": [
                {"type": "service", "actor": "Ed", "action": "phone_call", "text": ""},
                {"type": "message", "from": "Ed", "text": "a"},
                {"type": "message", "from": "Flo", "from_id": "user2", "photo": "p", "text": ""},
                {"type": "message", "from": None, "from_id": "user2",
                 "text": ["b ", {"type": "bold", "text": "c"}, "."]},
            ]},
            {"id": 8, "messages": []},
        ]}},
        [("7#first/0", SILENCE, ["a"]), ("7#second/0", "a", ["b c."])],
    ),
}  # fmt: skip
# For each layout of text files: suffix, text, and the (id, text, labels) of its examples.
TEXTS = {
    "dailydialog-text": (
        ".txt", "a b __eou__ c ? __eou__ d __eou__\n\ne __eou__\n",
        [("0#first/0", SILENCE, ["a b"]), ("0#first/1", "c ?", ["d"]),
         ("0#second/0", "a b", ["c ?"]), ("1#first/0", SILENCE, ["e"])],
    ),
    "tabs": (
        ".txt", "a\tb c\nd\te\t\n",
        [("0#first/0", SILENCE, ["a"]), ("0#second/0", "a", ["b c"]),
         ("1#first/0", SILENCE, ["d"]), ("1#second/0", "d", ["e"])],
    ),
    "speaker-lines": (
        ".txt", "Ed: a: b\n  and more\nFlo:  c\n\n\nEd: d\nEd: e\nFlo : f\n",
        [("1#first/0", SILENCE, ["a: b\n  and more"]), ("1#second/0", "a: b\n  and more", ["c"]),
         ("6#first/0", SILENCE, ["d\ne"]), ("6#second/0", "d\ne", ["f"])],
    ),
    "chatml": (
        ".txt",
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\na\n  b<|im_end|>\n"
        "<|im_start|>assistant\nc<|im_end|>\n\n<|im_start|>user d <|im_end|>\n"
        "<|im_start|>assistant\ne\n",
        [("1/0", "a\n  b", ["c"]), ("9/0", "d", ["e"])],
    ),
    "rows": (
        ".csv", "Dialogue_ID,Speaker,Utterance\n1,Ed,a\n2,Ed,c\n1,Flo,b\n",
        [("1#first/0", SILENCE, ["a"]), ("1#second/0", "a", ["b"]), ("2#first/0", SILENCE, ["c"])],
    ),
    "dialogflow": (
        "_usersays_en.json",
        '[{"id": "1", "isTemplate": false, "data": [{"text": "to "}, {"text": "Ulm"}]}]',
        [("0/0", "to Ulm", ["a"])],
    ),
    "whatsapp": (
        ".txt",
        "31.12.23, 23:59 - Messages are end-to-end encrypted. Tap to learn more.\n"
        "31.12.23, 23:59 - Ed: a\n1/1/24, 12:00\u202fAM - Flo: b: c\n\nd\n"
        "2024-01-01, 0:01 - Flo: <Media omitted>\n01.01.24, 00:02 - Ed added Flo\n"
        "[01.01.24, 00:03:04] Ed: e <This message was edited>\n"
        "\u200e[1/1/24, 12:04:00 a.m.] Flo: \u200eimage omitted\n01/01/2024 00:05 - Flo: f\n",
        [("a.txt#first/0", SILENCE, ["a"]), ("a.txt#first/1", "b: c\n\nd", ["e"]),
         ("a.txt#second/0", "a", ["b: c\n\nd"]), ("a.txt#second/1", "e", ["f"])],
    ),
    "fasttext": (
        ".txt",
        "__label__a text, with __marks\n__label__b __label__c , d\n__label__b,__label__c-1, e\n"
        "__label__x,y\tz\nf g __label__a __label__b\n",
        [("0/0", "text, with __marks", ["a"]), ("1/0", "d", ["b", "c"]), ("2/0", "e", ["b", "c-1"]),
         ("3/0", "z", ["x,y"]), ("4/0", "f g", ["a", "b"])],
    ),
    "iob": (
        ".iob", "BOS a b c EOS\tO O B-x I-x O atis_flight#atis_fare\nd e\tO B-x greet\n",
        [("0/0", "a b c", ["atis_flight#atis_fare"]), ("1/0", "d e", ["greet"])],
    ),
    "conll": (
        ".conll",
        "# id: 1\n# intent = greet\na\tO\n#b\tB-x\n\n\n# intent: bye\n# text: so long!\n"
        "1 so O\n2 long O\n3 ! O\n\nc O\nd I-x\nask\n",
        [("0/0", "a #b", ["greet"]), ("1/0", "so long!", ["bye"]), ("2/0", "c d", ["ask"])],
    ),
    "rasa": (
        ".yml",
        "version: '3.1'\nnlu:\n- intent: greet\n  examples: |\n    - hi  \n    - to [Ulm](city:b) "
        "[x](n)\n- synonym: y\n  examples: |\n    - z\n- lookup: city\n  examples: |\n    - Ulm\n"
        "- regex: r\n  examples: |\n    - \\d+\n- intent: faq/why\n  examples:\n  - text: |\n"
        "      - why [not]{\"entity\": \"n\", \"role\": \"r\"}?\n    metadata: {a: b}\n"
        "rules:\n- rule: x\n",
        [("0/0", "hi", ["greet"]), ("1/0", "to Ulm x", ["greet"]),
         ("2/0", "why not?", ["faq/why"])],
    ),
    "chatterbot": (
        ".yml", "categories:\n- c\nconversations:\n- - a\n  - b\n- - c\n  - 'yes: d'\n",
        [("0#first/0", SILENCE, ["a"]), ("0#second/0", "a", ["b"]),
         ("1#first/0", SILENCE, ["c"]), ("1#second/0", "c", ["yes: d"])],
    ),
    "slack": (
        ".json",
        '[{"type": "message", "user": "U1", "text": "a", "ts": "1.1"},\n'
        '{"type": "message", "username": "bot", "text": "b", "ts": "1.2"},\n'
        '{"type": "message", "user": "U2", "text": "<@U2> has joined the channel", "ts": "1.3"},\n'
        '{"type": "message", "user": "U1", "text": "", "ts": "1.3"}]',
        [("a.json#first/0", SILENCE, ["a"]), ("a.json#second/0", "a", ["b"])],
    ),
    "empathetic": (
        ".csv",
        "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
        'hit:0_conv:1,1,sad,p,5,"a_comma_ b" c,5|5,\nhit:0_conv:1,2,sad,p,6,d,5|5,,x|y\n',
        [("hit:0_conv:1/0", '"a, b" c', ["d"])],
    ),
}  # fmt: skip


def write(path, value, lines=False):
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value, indent=1)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def rows(teacher, split="train"):
    shown = teacher.for_split(split, training=True)
    return [(m["id"], m["text"], m["labels"]) for m in shown.examples()]


def test_every_layout_has_a_sample():
    assert {*SAMPLES, *TEXTS} == set(shipped_layouts())
    assert all(find_layout(name).about for name in shipped_layouts())
    assert all(f"`{name}`" in JSONLayout.__doc__ for name in shipped_layouts())


@pytest.mark.parametrize("name", SAMPLES)
def test_layouts_read_their_samples(name, tmp_path):
    value, expected = SAMPLES[name]
    paths = [write(tmp_path / "a.json.gz", value)]
    if isinstance(value, list):  # JSON lines give the same, with any suffix.
        paths.append(write(tmp_path / "b.jsonl", value, lines=True))
    if isinstance(value, list) and len(value) > 1:
        paths.append(write(tmp_path / "c.json", value, lines=True))
    for path in paths:
        assert rows(JSONLayout(name, train=path)) == expected
        assert rows(JSONLayout(name, train=path, streaming=True)) == expected
    done = convert(paths[0], tmp_path / "a.txt", from_format=name, to_format="parlai")
    assert done.n_examples == len(expected)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_layouts_of_text_read_their_samples(name, end, tmp_path):
    suffix, text, expected = TEXTS[name]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", end).encode())
    assert rows(JSONLayout(name, train=str(path))) == expected
    assert rows(JSONLayout(name, train=str(path), streaming=True)) == expected
    done = convert(path, tmp_path / "b.txt", from_format=name, to_format="parlai")
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
    """Make a conversation in a layout with system turns. The text of a turn is its speaker and its
    place, such as "U2"."""
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


def test_layout_of_sharegpt_leaves_out_tools(tmp_path):
    """The names of their turns are those of LLaMA-Factory."""
    said = [("human", "weather?"), ("function_call", "f()"), ("observation", "42"), ("gpt", "cold")]
    value = [{"conversations": [{"from": who, "value": text} for who, text in said]}]
    layout = JSONLayout("sharegpt", train=write(tmp_path / "a.json", value))
    assert rows(layout) == [("0/0", "weather?", ["cold"])]


@pytest.mark.parametrize("flat", [False, True])
def test_layout_with_system_turns_allows_leaving_out_openings(tmp_path, flat):
    path = write(tmp_path / "a.json", with_system("messages", *"SAUA"))
    mutators = [Flatten()] if flat else []
    opened = JSONLayout("messages", train=path, mutators=mutators)
    assert [text for _, text, _ in rows(opened)] == [SILENCE, "U2"]
    left = JSONLayout("messages", train=path, mutators=[*mutators, WithoutOpenings()])
    assert rows(left) == [("0/1", "U2", ["A3"])]
    (example,) = left.for_split("train").examples()
    assert example["context"] == [(0, "S0"), *([(1, "A1")] if flat else [])]


def test_layout_leaves_out_a_conversation_of_the_system_only(tmp_path):
    value = with_system("messages", *"SUA") + with_system("messages", "S")
    assert rows(JSONLayout("messages", train=write(tmp_path / "a.json", value))) == [
        ("0/0", "U1", ["A2"])
    ]


def test_convert_keeps_system_turns_at_the_start(tmp_path):
    path = write(tmp_path / "a.json", with_system("messages", *"SUASUA"))
    done = convert(path, tmp_path / "a.txt", from_format="messages", to_format="parlai")
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert [sorted(line.split("\t")) for line in lines] == [
        ["labels:A2", "system:S0", "text:U1"],
        ["episode_done:True", "labels:A5", "system:S0", "text:U4"],
    ]
    assert done.left_out["turns of a system or tool within conversations"] == 1
    convert(path, tmp_path / "b", from_format="messages", to_format="conversations")
    assert json.loads((tmp_path / "b").read_text())["system"] == "S0"


def test_custom_layout(tmp_path):
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
        said = {"from_format": str(tmp_path / name), "to_format": "jsonl", "force": True}
        convert(tmp_path / "a.csv", tmp_path / "a.jsonl", **said)
        found = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
        assert [(row["text"], row["label"]) for row in found] == [("a, b", "c"), ("d", "e")]


def of_layout(written, layout, content, name="a.csv", **choices):
    """Return the (id, text, labels) that a layout reads from a file."""
    path = written(content, name)
    episodes = read_layout_file(path, read_layout(Path(written(layout, "my.yml"))), **choices)
    return [(m["id"], m["text"], m["labels"]) for episode in episodes for m in episode]


CHATS = [
    ("x", "10:00", "Ann", "a"),
    ("y", "10:01", "Ed", "b"),
    ("x", "10:02", "Bot 2", "c"),
    ("y", "10:03", "agent Flo", "d"),
    ("x", "10:02", "ann", "e"),
    ("x", "10:04", "bot", "f"),
]
ROLES = 'speaker: who\ntext: said\nspeakers: {staff: ["bot*", "Agent *"], user: ["*"]}\n'
BY_TIME = f"group: talk\norder: time\nlabel_speaker: staff\n{ROLES}"
TALKS = [("x/0", "a", ["c"]), ("x/1", "e", ["f"]), ("y/0", "b", ["d"])]


def as_table(chats, time="2024-05-31 {}"):
    rows = (f"{talk},{time.format(at)},{who},{said}\n" for talk, at, who, said in chats)
    return "talk,time,who,said\n" + "".join(rows)


@pytest.mark.parametrize("time, format", [
    ("2024-05-31 {}", ""), ("2024-05-31T{}:00Z", ""), ("2024-05-31T{}:00+02:00", ""),
    ("31.05.24 {}", "date_format: '%d.%m.%y %H:%M'\n"),
])  # fmt: skip
def test_layout_sorts_mixed_rows_by_a_date(written, time, format):
    for chats in (CHATS, CHATS[::-1]):
        found = of_layout(written, BY_TIME + format, as_table(chats, time))
        assert sorted(found) == TALKS


def test_layout_sorts_mixed_rows_by_a_number(written):
    said = [(1, "bot", "c", 9.5), (2, "x", "d", 3), (1, "x", "b", 8), (1, "x", "a", "-3")]
    rows = [dict(zip(("talk", "who", "said", "time"), row)) for row in said]
    found = of_layout(written, BY_TIME, rows, "a.jsonl")
    assert found == [("1/0", "a\nb", ["c"])]
    rows[0]["time"] = "noon"
    with pytest.raises(DataError) as caught:
        of_layout(written, BY_TIME, rows, "a.jsonl")
    text = "time is 'noon': expected a number, or a date such as 2024-05-31 10:15 (for other dates"
    assert str(caught.value).startswith(f"{written(rows, 'a.jsonl')}:1  {text}")


def test_layout_takes_mixed_rows_in_the_order_of_the_file_or_reversed(written):
    layout = BY_TIME.replace("order: time", "order: $file")
    assert of_layout(written, layout, as_table(CHATS)) == TALKS
    layout = layout.replace("$file", "$reversed")
    assert sorted(of_layout(written, layout, as_table(CHATS[::-1]))) == TALKS
    with pytest.raises(DataError, match="must be consecutive, unless the layout has an 'order'"):
        of_layout(written, layout.replace("order: $reversed\n", ""), as_table(CHATS))


@pytest.mark.parametrize("name, value, expected", [
    ("snips", {"intents": {"Play": {"utterances": [{"data": [{"text": "a"}]}]}}}, ("a", ["Play"])),
    ("intents", {"greet": {"patterns": ["hi"]}}, ("hi", ["greet"])),
    ("intents", [{"intent": "greet", "examples": ["hi"]}], ("hi", ["greet"])),
    ("telegram", {"id": 1, "messages": [{"type": "message", "from": who, "text": text}
                                        for who, text in ("xa", "yb")]}, ("a", ["b"])),
    ("taskmaster", [{"conversationId": "x", "utterances": [
        {"speaker": "user", "text": "a"}, {"speaker": "assistant", "text": "b"}]}], ("a", ["b"])),
])  # fmt: skip
def test_layouts_read_other_forms_of_their_files(written, name, value, expected):
    path = written(json.dumps(value), "a.json")
    (*_, (message,)) = read_layout_file(path, find_layout(name))
    assert (message["text"], message["labels"]) == expected


@pytest.mark.parametrize("line, expected", [
    ("A: a", ("A", "a")), ("Ann Lee :  a: b", ("Ann Lee", "a: b")), ("甲：你好", ("甲", "你好")),
    ("A:a", ("A", "a")), ("see http://x.org", None), ("at 10:15", None), ("10:15 is late", None),
    ('"a": 1', None), ("**Bot**: a", ("**Bot**", "a")), ("a" * 50 + ": b", None), ("A:", None),
])  # fmt: skip
def test_layout_of_speaker_lines_recognises_names(line, expected):
    found = re.match(find_layout("speaker-lines").pattern, line)
    assert (found and found.groups()) == expected


@pytest.mark.parametrize("line, expected", [
    ("01.02.24, 10:15 - Bo: a: b", ("Bo", "a: b")), ("1/2/24, 9:05 PM - Bo: a", ("Bo", "a")),
    ("1/2/24, 9:05\u202fPM - ~ Bo: a", ("~ Bo", "a")), ("[01.02.24, 10:15:30] Bo: a", ("Bo", "a")),
    ("\u200e[1/2/2024, 9:05:11 p. m.] Bo: a", ("Bo", "a")), ("2024-02-01 10.15 - Bo: ", ("Bo", "")),
    ("01.02.24, 10:15 - +49 151 23: a", ("+49 151 23", "a")), ("24/2/1, 9:15 - B: a", ("B", "a")),
    ('01.02.24, 10:15 - Bo named it "x: y"', (None, None)), ("10:15 - Bo: a", None),
    ("01.02.24, 10:15 - Bo left", (None, None)), ("On 01.02.24, 10:15 - Bo: a", None),
])  # fmt: skip
def test_layout_of_whatsapp_recognises_dates(line, expected):
    found = re.match(find_layout("whatsapp").pattern, line)
    assert (found and found.groups()) == expected


def test_layout_sorts_the_turns_of_a_list_too(written):
    turns = [{"from": "b", "said": "ho", "at": 12.5}, {"from": "a", "said": "hi", "at": 12}]
    layout = "turns: log\nspeaker: from\ntext: said\norder: at\n"
    found = of_layout(written, layout, [{"log": turns}, {"log": turns[::-1]}], "a.jsonl")
    assert found == [("0/0", "hi", ["ho"]), ("1/0", "hi", ["ho"])]
    at = Bookmark()
    found = of_layout(written, layout, [{"log": []}, {"log": turns}], "a.jsonl", at=at)
    assert found == [("1/0", "hi", ["ho"])] and at.counts.n_without == 1


@pytest.mark.parametrize("order", ["", "order: at\n"])
@pytest.mark.parametrize("row, says", [
    (",2,bot,b", "chat is empty, so the conversation or"),
    ("7,2,,b", "who is empty, so the speaker is unknown"),
])  # fmt: skip
def test_layout_of_rows_needs_conversation_and_speaker(written, order, row, says):
    layout = f"group: chat\n{order}speaker: who\ntext: text\nlabel_speaker: bot\n"
    path = written(f"chat,at,who,text\n7,1,x,a\n{row}\n", "a.csv")
    teacher = JSONLayout(written(layout, "rows.yml"), train=path)
    with pytest.raises(DataError, match=f"a.csv:3  {says}"):
        rows(teacher)


def test_layout_of_a_file_that_is_one_conversation(written):
    table = "time,who,said\n10:02,x,c\n10:01,y,b\n10:00,x,a\n"
    layout = "group: $file\nspeaker: who\ntext: said\norder: $reversed\nlabel_speaker: x\n"
    found = of_layout(written, layout, table)
    assert found == [("a.csv/0", SILENCE, ["a"]), ("a.csv/1", "b", ["c"])]
    rows = json.dumps([{"who": "y", "said": "d"}, {"who": "x", "said": "e"}])
    found = of_layout(written, layout.replace("order: $reversed\n", ""), rows, "b.json")
    assert found == [("b.json/0", "d", ["e"])]


def test_layout_with_an_order_resumes_at_a_mark(written, tmp_path):
    path, layout = written(as_table(CHATS), "a.csv"), Path(written(BY_TIME, "my.yml"))
    at = Bookmark()
    next(read_layout_file(path, read_layout(layout), at=at))
    again = read_layout_file(path, read_layout(layout), at=Bookmark(at.mark()))
    assert [m["id"] for episode in again for m in episode] == ["x/0", "x/1", "y/0"]


def test_layout_makes_plain_text_of_html(written):
    rows = [{"q": "<p>a &amp; b<br/>c</p>\n<p>1 < 2 <b class='x'>d</b></p>", "y": "&lt;i&gt;"}]
    found = of_layout(written, "text: q\nlabel: y\nhtml: true\n", rows, "a.jsonl")
    assert found == [("0/0", "a & b\nc\n1 < 2 d", ["<i>"])]
    assert of_layout(written, "text: q\nlabel: y\n", rows, "a.jsonl")[0][1] == rows[0]["q"]


def test_layout_refuses_a_list_of_texts_as_a_turn(written):
    with pytest.raises(DataError, match="turns.0 is a list, not a string"):
        of_layout(written, "turns: turns\ntext: ''\n", [{"turns": [["A", "hi"]]}], "a.jsonl")


def test_layout_leaves_out_turns_by_skip_and_only(written):
    turns = [("a", "msg"), ("joined", "event"), ("[file] x", "msg"), ("b", "msg"), ("c", None)]
    rows = [{"log": [{"t": text, **({"k": kind} if kind else {})} for text, kind in turns]}]
    layout = "turns: log\ntext: t\nonly: {k: msg}\nskip: '^.file. '\n"
    assert of_layout(written, layout, rows, "a.jsonl") == [("0/0", "a", ["b"])]
    layout = "turns: log\ntext: t\nonly: {k: '*'}\nlabel_speaker: first\n"
    at = Bookmark(left_out=Counter())
    found = of_layout(written, layout + "skip: x$\n", rows, "a.jsonl", at=at)
    assert found == [("0/0", SILENCE, ["a"]), ("0/1", "joined", ["b"])]
    assert at.left_out["turns that the layout skips"] == 1


def test_layout_places_with_all_elements_and_with_alternatives(written):
    rows = [{"so_far": [{"u": "a"}, {"u": "b"}], "right": {"u": "c"},
             "options": [{"u": "c"}, {"u": "d"}]},
            {"question": "e", "right": {"u": "f"}, "options": []}]  # fmt: skip
    layout = "text: so_far.*.u | question\nlabel: right.u\nlabel_candidates: options.*.u\n"
    path = written(rows[:1], "a.jsonl")
    ((message,),) = read_layout_file(path, read_layout(Path(written(layout, "my.yml"))))
    assert (message["text"], message["labels"]) == ("a\nb", ["c"])
    assert message["label_candidates"] == ["c", "d"]
    wrong = layout.replace("options.*.u", "options")
    with pytest.raises(DataError, match="options.0 is an object, not a string.*'\\*.u' takes"):
        of_layout(written, wrong, rows[:1], "a.jsonl")
    layout = layout.replace("label_candidates: options.*.u\n", "id: no | $key\n")
    found = of_layout(written, layout, json.dumps(dict(zip("xy", rows))), "a.json")
    assert found == [("x/0", "a\nb", ["c"]), ("y/0", "e", ["f"])]


def test_layout_of_an_object_of_lists_takes_keys_for_labels(written):
    value = json.dumps({"greet": ["hi", "hello"], "bye": ["so long"]})
    found = of_layout(written, "each: '*'\ntext: ''\nlabel: $record.$key\n", value, "a.json")
    assert [labels for _, _, labels in found] == [["greet"], ["greet"], ["bye"]]


TURN = {"from": "human", "value": "x"}


@pytest.mark.parametrize(
    "value, words",
    [
        ([{"conversation": []}], "a.json  0 has no 'conversations'; did you mean 'conversation'?"),
        ([{"conversations": 3}], "a.json  0.conversations is a number, not a list"),
        ([{"conversations": [TURN, {"from": "gpt"}]}], r"0.conversations.1 has no 'value' \(found"),
        ([{"conversations": [TURN, {"from": "gpt", "value": None}]}], "1.value is null, not a str"),
        (
            [{"conversations": [TURN, "no"]}],
            "0.conversations.1 is a string, so it has no 'value'",
        ),
        ({"a": 1}, "a.json  a is a number, so it has no 'conversations'"),
        (3, "a.json  the record is a number, not a list"),
        ([], "a.json  holds no examples"),
        (
            [{"conversations": [TURN]}],
            "label_speaker 'gpt' does not occur in this file; speakers here: 'human'",
        ),
    ],
)
def test_layout_names_the_place_of_a_mistake(tmp_path, value, words):
    teacher = JSONLayout("sharegpt", train=write(tmp_path / "a.json", value))
    with pytest.raises(DataError, match=words):
        teacher.for_split("train").n_examples  # noqa: B018


def test_layout_names_the_line_of_a_mistake(tmp_path):
    def error(path, layout="prompt-completion"):
        with pytest.raises(DataError) as caught:
            rows(JSONLayout(layout, train=str(path)))
        return str(caught.value).removeprefix(f"{tmp_path}/")

    path = write(tmp_path / "a.jsonl", [{"prompt": "a", "completion": "b"}, {"prompt": "c"}], True)
    assert error(path) == "a.jsonl:2  the record has no 'completion' (found: 'prompt')"
    assert "a.jsonl  holds JSON lines, but the layout's 'records'" in error(path, "personachat")
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
        (["1 a 2", "2 a 1"], "is part of a cycle, so no turn is the first"),
    ],
)
def test_layout_groups_must_be_consecutive_and_linear(tmp_path, replies, words):
    given_rows = []
    for name, group, *reply in map(str.split, replies):
        row = {"id": name, "conversation_id": group, "text": name, "speaker": "u"}
        given_rows.append({**row, "reply-to": reply[0] if reply else None})
    path = write(tmp_path / "a.jsonl", given_rows, lines=True)
    with pytest.raises(DataError, match=words):
        rows(JSONLayout("convokit", train=path))


def test_layout_of_real_conversations(data, tmp_path):
    """A layout that describes this project's own form gives the same examples as its teacher."""
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
    """Content that comes in parts is joined. A call of a tool, which has no text, and its result
    are left out."""
    path = write(tmp_path / "log.json", LOG)
    target = tmp_path / "a.jsonl"
    done = convert(path, target, from_format="messages", to_format="parlai", drop=["system"])
    assert rows(JSONLayout("messages", train=path, system_turns="drop")) == [
        ("0/0", "Rain\nor sun?", ["Rain."]), ("0/1", "And tomorrow?", ["Sun."]),
        ("1/0", "Hi", ["Hi."]),
    ]  # fmt: skip
    assert done.left_out["tool calls without a text"] == 1
    assert done.left_out["turns of a system or tool within conversations"] == 1
    assert done.left_out["parts of turns that are not text, such as images"] == 1


@pytest.mark.parametrize("mutators", [[], [Flatten()]])
def test_replies_of_weight_0_are_context_and_no_labels(tmp_path, mutators):
    value = with_system("messages", *"SAUAUAAUA") + with_system("messages", *"UA")
    turns = value[0]["messages"]
    for number, weight in ((1, 0), (3, 1), (6, 0), (8, None)):
        turns[number]["weight"] = weight
    value[1]["messages"][1]["weight"] = 0
    path = write(tmp_path / "log.json", value)
    teacher = JSONLayout("messages", train=path, mutators=mutators)
    assert rows(teacher) == [("0/1", "U2", ["A3"]), ("0/3", "U7", ["A8"])]
    before = [(0, "S0"), (1, "A1")]
    more = [(0, "U2"), (1, "A3"), (0, "U4"), (1, "A5\nA6")]
    shown = teacher.for_split("train", training=True).examples()
    assert [list(m["context"]) for m in shown] == [before, before + more]
    (bad,) = teacher.data["train"].bad_data()
    assert (bad.n_read, bad.n_without) == (2, 1) and "weight 0 are context only" in bad.summary()
    asks = JSONLayout("messages", train=path, label_speaker="user")
    assert [labels for *_, labels in rows(asks)] == [["U2"], ["U4"], ["U7"], ["U0"]]
    for to_format, kind in (("parlai", "labels of weight 0"), ("conversations", "weights of 0")):
        target = tmp_path / to_format
        drop = ["history", "system"]
        done = convert(path, target, from_format="messages", to_format=to_format, drop=drop)
        assert done.left_out[kind] == 3


@pytest.mark.parametrize(
    ("field", "pairs", "n_left"),
    [
        # The label is in the turn, or else in the answer. The record's label is only used for the
        # last text.
        ("intent", [("Rain\nor sun?", "sky"), ("And tomorrow?", "later"), ("Hi", "hello")], 1),
        ("tool_calls.0.function.name", [("Rain\nor sun?", "weather")], 3),
    ],
)
def test_labelled_texts_of_chat_messages(tmp_path, field, pairs, n_left):
    path = write(tmp_path / "log.json", LOG)
    said = {"from_format": "messages", "to_format": "jsonl", "label_field": field}
    done = convert(path, tmp_path / "a.jsonl", **said)
    found = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert [(row["text"], row["label"]) for row in found] == pairs
    assert done.left_out[f"texts without '{field}'"] == n_left


@pytest.mark.parametrize(
    ("layout", "value", "n_left"),
    [
        ("intents", {"intents": [{"tag": "hi", "patterns": ["Hey", "", " ", "Hello"]},
                                 {"tag": "none", "patterns": []}, {"tag": "", "patterns": ["Eh"]}]},
         3),
        ("rasa-json", {"rasa_nlu_data": {"common_examples": [
            {"text": "Hey", "intent": "hi"}, {"text": "", "intent": "hi"},
            {"text": "Eh", "intent": ""}, {"text": "Hello", "intent": "hi"}]}}, 2),
    ],
)  # fmt: skip
def test_examples_without_a_text_or_label_are_left_out_and_counted(tmp_path, layout, value, n_left):
    path = write(tmp_path / "a.json", value)
    teacher = JSONLayout(layout, train=path)
    assert [row[1:] for row in rows(teacher)] == [("Hey", ["hi"]), ("Hello", ["hi"])]
    (bad,) = teacher.data["train"].bad_data()
    assert (bad.n_read, bad.n_without, bad.n_skipped) == (2 + n_left, n_left, 0)
    said = f"{n_left} of {2 + n_left} examples left out: they lack a text or a label"
    assert said in bad.summary()
    done = convert(path, tmp_path / "a.jsonl", from_format=layout, to_format="jsonl")
    assert (done.n_examples, done.left_out["examples without a text or a label"]) == (2, n_left)


def test_content_without_any_text_is_an_error(tmp_path):
    turns = [
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "assistant", "content": "A"},
    ]
    path = write(tmp_path / "log.json", [{"messages": turns}])
    with pytest.raises(DataError, match="0.messages.0.content has no part with a 'text'"):
        rows(JSONLayout("messages", train=path))


def test_convert_names_what_was_left_out_if_nothing_remains(tmp_path):
    said = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "Yes."}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": said}))
    with pytest.raises(
        DataError, match="holds nothing to write .left out: .*texts without 'topic'"
    ):
        convert(
            tmp_path / "log.jsonl",
            tmp_path / "out.jsonl",
            from_format="messages",
            to_format="jsonl",
            label_field="topic",
        )
