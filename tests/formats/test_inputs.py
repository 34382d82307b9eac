"""Rows of every format, with the messages that are made from them."""

import json
from datetime import date, time

import pytest

from thincdialog.errors import DataError, DialogError
from thincdialog.formats.context import BadData, Bookmark
from thincdialog.formats.inputs import InputReading, given_inputs, layout_of, read_inputs
from thincdialog.messages import PARTNER, SELF


def inputs(path, **reading):
    return list(read_inputs(path, InputReading(**reading), Bookmark()))


def talk(speakers, **more):
    return {"turns": [{"speaker": who, "text": f"{who}{n}"} for n, who in enumerate(speakers)],
            **more}  # fmt: skip


@pytest.mark.parametrize(
    "name, text, reading, row, message",
    [
        ("a.txt", "2 pizzas\n", {}, {"text": "2 pizzas"}, "2 pizzas"),
        ("a.csv", "n;q\n1;a, b\n", {"text_field": "q"}, {"n": "1", "q": "a, b"}, "a, b"),
        ("a", "1,a\n", {"format": "csv", "columns": ["n", "text"]}, {"n": "1", "text": "a"}, "a"),
        ("a.tsv", 'text\tn\n"a\t1\n', {}, {"text": '"a', "n": "1"}, '"a'),
        ("a.log", '\n{"text": "a", "n": [1]}\n', {}, {"text": "a", "n": [1]}, "a"),
        ("a.log", '{"q": "a"}\n', {"text_field": "q"}, {"q": "a"}, "a"),
        (
            "a.txt",
            '{"text": "a"}\n',
            {"format": "text"},
            {"text": '{"text": "a"}'},
            '{"text": "a"}',
        ),
    ],
)
def test_inputs_keep_all_of_a_row(written, name, text, reading, row, message):
    assert inputs(written(text, name), **reading) == [(row, {"text": message})]


@pytest.mark.parametrize(
    "speakers, label_speaker, context, text",
    [
        ("a", None, [], "a0"),
        ("aba", None, [(PARTNER, "a0"), (SELF, "b1")], "a2"),
        ("abbaa", "second", [(PARTNER, "a0"), (SELF, "b1\nb2")], "a3\na4"),
        ("cba", "b", [(PARTNER, "c0"), (SELF, "b1")], "a2"),
        ("abc", "b", [(PARTNER, "a0"), (SELF, "b1")], "c2"),
        ("cab", None, [(SELF, "c0\na1")], "b2"),
        # If the last turns are those of the model's side, they are labels and are left out.
        ("abab", "second", [(PARTNER, "a0"), (SELF, "b1")], "a2"),
        ("abba", "first", [(SELF, "a0")], "b1\nb2"),
        ("aba", "both", [(PARTNER, "a0"), (SELF, "b1")], "a2"),
        ("abab", "both", [(SELF, "a0"), (PARTNER, "b1"), (SELF, "a2")], "b3"),
        ("abab", "b", [(PARTNER, "a0"), (SELF, "b1")], "a2"),
        ("abb", "b", [], "a0"),
    ],
)
def test_inputs_of_conversations_end_in_the_last_turn_of_the_partner(
    written, speakers, label_speaker, context, text
):
    row = talk(speakers, id="x", topic=3)
    ((found, message),) = inputs(written([row], "a.jsonl"), label_speaker=label_speaker)
    assert found == row and message == {"text": text, "context": context}
    dialog = [[{"id": turn["speaker"], "text": turn["text"]} for turn in row["turns"]]]
    ((_, same),) = inputs(written([{"dialog": dialog}], "b.jsonl"), label_speaker=label_speaker)
    assert same == message


def test_inputs_of_parlais_formats_have_earlier_turns_as_context(written):
    path = written("id:7\ttext:a\tlabels:x\nid:8\ttext:b\tmood:good\tepisode_done:True\n")
    first, second = inputs(path, format="parlai")
    assert first.row == {"id": "7", "text": "a", "labels": ["x"]}
    assert second.row == {"id": "8", "text": "b", "mood": "good"}
    assert second.message == {"text": "b", "context": [(PARTNER, "a"), (SELF, "x")]}


def test_inputs_with_candidates_and_features(written):
    rows = [{"text": "a", "label_candidates": ["x", "y"]}, {"features": [1, 2.5]}]
    found = [message for _, message in inputs(written(rows, "a.jsonl"))]
    assert found == [rows[0], {"text": "", "features": [1, 2.5]}]


def test_inputs_of_a_text_keep_every_line(written):
    at = Bookmark()
    at.bad = BadData("a")
    path = written(b"\n \na\n\xff?\n\nb\n", "a.txt")
    found = list(read_inputs(path, InputReading(), at))
    assert [row["text"] for row, _ in found] == ["", " ", "a", "\ufffd?", "", "b"]
    assert [message and message["text"] for _, message in found] == [
        None, None, "a", None, None, "b"
    ]  # fmt: skip
    assert [error.line for error in at.bad.first] == [4]


CHAT = [("system", "be kind"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")]


@pytest.mark.parametrize(
    "system_turns, before, more",
    [
        ("context", [(PARTNER, "be kind")], {"system": "be kind"}),
        ("field", [], {"system": "be kind"}),
        ("drop", [], {}),
    ],
)
@pytest.mark.parametrize(
    "layout, turns, who, text",
    [
        ("messages", "messages", "role", "content"),
        ("sharegpt", "conversations", "from", "value"),
    ],
)
def test_inputs_of_layouts_end_in_the_last_turn_of_a_partner(
    written, layout, turns, who, text, system_turns, before, more
):
    named = {"assistant": "gpt"} if layout == "sharegpt" else {}
    said = [{who: named.get(speaker, speaker), text: words} for speaker, words in CHAT]
    row = {turns: said, "n": 1}
    reading = {"layout": layout_of(layout), "system_turns": system_turns}
    context = [*before, (PARTNER, "a"), (SELF, "b")]
    expected = [(row, {"text": "c", "context": context, **more})]
    assert inputs(written([row], "a.jsonl"), **reading) == expected
    assert inputs(written(json.dumps([row]), "b.json"), **reading) == expected
    assert list(given_inputs([row], InputReading(**reading), Bookmark())) == expected
    # Labels are not used, so they may be missing.
    unlabelled = {**row, turns: said[:-1]}
    assert inputs(written([unlabelled], "c.jsonl"), **reading) == [(unlabelled, expected[0][1])]


def test_inputs_of_layouts_with_a_row_a_turn_keep_all_rows(written):
    rows = "talk,id,to,who,text\n1,3,2,x,c\n1,1,,x,a\n1,2,1,y,b\n2,4,,x,d\n"
    layout = written("group: talk\nturn_id: id\nreply_to: to\nspeaker: who\nlabel_speaker: both\n",
                     "own.yml")  # fmt: skip
    found = inputs(written(rows, "a.csv"), layout=layout_of(layout))
    assert [row["id"] for row, _ in found] == ["3", "1", "2", "4"]
    assert [message for _, message in found] == [
        {"text": "c", "context": [(PARTNER, "a"), (SELF, "b")]}, None, None,
        {"text": "d", "context": []},
    ]  # fmt: skip


def test_inputs_of_layouts_of_examples_need_no_labels(written):
    rows = [{"instruction": "add", "input": "1 2", "output": "3"}, {"instruction": "go"}]
    found = inputs(written(rows, "a.jsonl"), layout=layout_of("alpaca"))
    assert found == [(rows[0], {"text": "add\n1 2", "context": []}),
                     (rows[1], {"text": "go", "context": []})]  # fmt: skip
    turns = [{"history": [text], "candidates": ["no", label]} for text, label in ("ab", "cd")]
    whole = {"personality": ["I."], "utterances": turns}
    path = written(json.dumps({"train": [], "valid": [whole]}), "b.json")
    ((row, message),) = inputs(path, layout=layout_of("personachat"))
    assert row == whole and message == {
        "text": "c", "context": [(PARTNER, "I.\na"), (SELF, "b")], "label_candidates": ["no", "d"],
    }  # fmt: skip


def test_inputs_of_layouts_name_what_is_wrong(written):
    turns = [[{"role": "user", "content": "a"}], [], [{"role": "user"}]]
    rows = [*({"messages": one} for one in turns), {"reply": 1, "messages": turns[0]}]
    at = Bookmark()
    at.bad = BadData("a")
    path = written(rows, "a.jsonl")
    reading = InputReading(layout=layout_of("messages"), taken=["reply"])
    assert [one.row for one in read_inputs(path, reading, at)] == rows[:1]
    assert list(map(str, at.bad.first)) == [
        f"{path}:2  has no turn to answer",
        f"{path}:3  messages.0 has no 'content' (found: 'role')",
        f"{path}:4  already has a field 'reply': rename the answer's field with --prefix NAME",
    ]


@pytest.mark.parametrize("form", ["text", "csv", "parlai", "babi"])
def test_inputs_of_a_format_without_features_are_refused_at_once(written, form):
    at = Bookmark()
    at.bad = BadData("a")
    path = written("text:a\n1 a\tb\n", "a")
    with pytest.raises(DataError, match=f"the format '{form}' holds text, but this model reads 3"):
        list(read_inputs(path, InputReading(format=form, n_features=3), at))
    with pytest.raises(DataError, match="the format 'text' holds text"):
        list(read_inputs(path, InputReading(n_features=3), at))
    with pytest.raises(DataError, match="a layout holds text"):
        list(read_inputs(path, InputReading(layout=layout_of("alpaca"), n_features=3), at))


@pytest.mark.parametrize(
    "row, text",
    [
        ({"txt": "a"}, "'text' is missing; did you mean 'txt'?"),
        ({"text": None}, "'text' is null, not a string"),
        (
            {"text": "a", "reply": "b"},
            "already has a field 'reply': rename the answer's field with --prefix",
        ),
        ({"turns": []}, "has no turn to answer"),
        (talk("bb"), "has no turn to answer"),
        ({"messages": []}, "'text' is missing (found: 'messages'); set text_field"),
        ({"text": "a", "label_candidates": []}, "'label_candidates' must be"),
        ({"features": "abc"}, "'features' must be a list of numbers"),
        (
            {"features": [1.0, float("nan")]},
            "'features' must be finite 32-bit numbers, got nan",
        ),
        ({"features": [1e39]}, "'features' must be finite 32-bit numbers, got 1e+39"),
    ],
)
def test_inputs_name_the_line_of_a_row_that_cannot_be_answered(written, row, text):
    path = written([{"text": "good"}, row], "a.jsonl")
    with pytest.raises(DataError) as caught:
        inputs(path, taken=["reply"], label_speaker="b")
    assert str(caught.value).startswith(f"{path}:2  ") and text in str(caught.value)
    with pytest.raises(DataError, match="rows:2  ") as caught:
        reading = InputReading(taken=["reply"], label_speaker="b")
        list(given_inputs(["good", row], reading, Bookmark()))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "n_features, row, text",
    [
        (2, {"features": [1, 2, 3]}, "has 3 features, but this model reads 2"),
        (2, {"features": []}, "has 0 features, but this model reads 2"),
        (2, {"n": 1}, "has no features, but this model reads 2"),
        (2, {"text": "a"}, "has a text ('a'), but this model reads 2 features"),
        (2, {"text": "a", "features": [1, 2]}, "has a text ('a'), but this model reads 2"),
        (2, talk("ab"), "has a text ('b1'), but this model reads 2 features"),
        (0, {"turns": [], "dialog": []}, "has no turn to answer"),
        (0, {"features": [1, 2]}, "has features, but this model reads text"),
        (0, {"text": "a", "features": [1, 2]}, "has features, but this model reads text"),
    ],
)
def test_inputs_refuse_a_row_that_the_model_does_not_read(written, n_features, row, text):
    good = {"features": [1, 2.5]} if n_features else {"text": "a"}
    at = Bookmark()
    at.bad = BadData("a")
    path = written([good, row, good], "a.jsonl")
    found = list(read_inputs(path, InputReading(n_features=n_features), at))
    assert [one.row for one in found] == [good, good]
    assert [str(error).startswith(f"{path}:2  {text}") for error in at.bad.first] == [True]


def test_inputs_refuse_equal_columns_unknown_formats_and_other_types(written):
    with pytest.raises(DataError, match="2 columns are called 'n'"):
        inputs(written("text,n,n\na,1,2\n", "a.csv"))
    with pytest.raises(DialogError, match="no format 'tvs'; did you mean 'tsv'?"):
        layout_of("tvs")
    with pytest.raises(TypeError, match="row 1 should be"):
        list(given_inputs([3], InputReading(), Bookmark()))


def test_inputs_never_put_an_answer_into_a_row_of_the_model(written):
    rows = "talk,who,text\n1,x,a\n1,bot,b\n1,x,c\n1,bot,d\n1,bot,e\n2,x,f\n"
    layout = layout_of(written("group: talk\nspeaker: who\nlabel_speaker: bot\n", "own.yml"))
    found = inputs(written(rows, "a.csv"), layout=layout)
    assert [row["text"] for row, _ in found] == list("abcdef")
    assert [message and message["text"] for _, message in found] == [
        None, None, "c", None, None, "f"
    ]  # fmt: skip
    assert found[2].message["context"] == [(PARTNER, "a"), (SELF, "b")]


def test_inputs_whose_speaker_is_spelled_unlike_the_models_are_errors(written):
    layout = layout_of("speaker-lines")
    text = written("A: hi\n\nA: a\nbot: b\nA: c\n", "a.txt")
    says = "a.txt:3  the speaker 'bot' differs from 'Bot' only by case or blanks"
    with pytest.raises(DataError, match=says):
        inputs(text, layout=layout, label_speaker="Bot")
    turns = written([talk(["A", "B ot"])], "a.jsonl")
    with pytest.raises(DataError, match="a.jsonl:1  the speaker 'B ot' differs"):
        inputs(turns, label_speaker="Bot")
    # Other names of partners are not compared.
    assert len(inputs(written("a: hi\nA: ho\n", "b.txt"), layout=layout, label_speaker="Bot")) == 2


def test_inputs_that_a_layout_leaves_out_completely_are_an_error(written):
    layout = layout_of(written("text: text\nlabel: y\nonly: {y: '*'}\n", "own.yml"))
    with pytest.raises(DataError, match="a.jsonl  holds no record that fits the data's layout"):
        inputs(written([{"text": "a"}], "a.jsonl"), layout=layout)


def test_inputs_from_records_that_are_lists_or_texts_are_complete(written):
    lists = layout_of(written('text: "0"\nlabel: "1"\n', "lists.yml"))
    found = inputs(written('[["warm", "x", 3], ["cold", "y"]]', "a.json"), layout=lists)
    assert found[0] == ({"0": "warm", "1": "x", "2": 3}, {"text": "warm", "context": []})
    assert [row for row, _ in found[1:]] == [{"0": "cold", "1": "y"}]
    texts = layout_of(written('text: ""\nlabel: "0"\n', "texts.yml"))
    ((row, message),) = inputs(written('["warm"]', "b.json"), layout=texts)
    assert (row, message["text"]) == ({"text": "warm"}, "warm")


@pytest.mark.parametrize("turns", [{"turns": None}, {"dialog": None}])
def test_inputs_of_speakers_that_are_whole_numbers(written, turns):
    (name,) = turns
    said = [{"speaker" if name == "turns" else "id": who, "text": f"{who}!"} for who in (7, 3, 7)]
    row = {name: said if name == "turns" else [said]}
    ((found, message),) = inputs(written([row], "a.jsonl"), label_speaker="3")
    assert found == row  # As in the file.
    assert message == {"text": "7!", "context": [(PARTNER, "7!"), (SELF, "3!")]}


def test_inputs_of_parquet_are_its_rows(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet

    rows = [{"q": "a", "n": 1, "features": [0.1, 2.0]}, {"q": "b", "n": 2, "features": [1.0, 1e9]}]
    path = str(tmp_path / "a.parquet")
    parquet.write_table(Table.from_pylist(rows), path)
    found = inputs(path, text_field="q")
    assert [row for row, _ in found] == rows
    assert [message["text"] for _, message in found] == ["a", "b"]
    assert json.loads(json.dumps([row for row, _ in found])) == rows
    dated = {"q": "a", "n": 1, "when": date(2024, 5, 31), "in": [{"turn": time(10, 15)}]}
    parquet.write_table(Table.from_pylist([dated]), path)
    ((row, _),) = inputs(path, text_field="q")
    assert row == {"q": "a", "n": 1, "when": "2024-05-31", "in": [{"turn": "10:15:00"}]}
    with pytest.raises(DataError, match=r"a.parquet:1  the field 'text' is missing \(found: 'q'"):
        inputs(path)


def test_inputs_of_parquet_may_have_features_and_no_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text": None, "features": [1.0, 2.0]}, {"text": "a", "features": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    at = Bookmark()
    at.bad = BadData("a.parquet")
    found = list(read_inputs(str(tmp_path / "a.parquet"), InputReading(n_features=2), at))
    assert found == [(rows[0], {"text": "", "features": [1.0, 2.0]})]
    assert [error.line for error in at.bad.first] == [2]
