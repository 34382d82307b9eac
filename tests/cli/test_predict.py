"""The command ``predict``, and replies to data without labels by other commands."""

import csv
import gzip
import io
import json
import os

import pytest

from tests.training.examples import CLASSIFIER, quietly_train

INTENTS = f"""
[paths]
train = "train.csv"
test = null

[tasks.intents]
@teachers = "thincdialog.LabelledText.v1"
train = ${{paths.train}}
test = ${{paths.test}}
{CLASSIFIER}
[training]
max_steps = 10
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a small classifier, ``model``."""
    folder = tmp_path_factory.mktemp("predict")
    rows = [(f"{word} {n}", word) for word in ("warm", "cold", "tall") for n in range(8)]
    with open(folder / "train.csv", "w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("text", "label"), *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        quietly_train(INTENTS, folder / "run")
    (folder / "run" / "model-last").rename(folder / "model")
    return folder


@pytest.fixture
def run(folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    return run


def packed(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_predict_keeps_a_table_a_table(folder, run):
    (folder / "in.csv").write_bytes(
        'n;text\r\n1;warm\r\n2;"cold\ntall; \u00e9"\r\n'.encode("cp1252")
    )
    code, out, err = run("predict model in.csv --encoding cp1252 --top 2")
    assert (code, err) == (0, "")
    header, *rows = csv.reader(out.splitlines(keepends=True), delimiter=";")
    assert header == ["n", "text", "reply", "score", "candidate_1", "score_1", "candidate_2",
                      "score_2"]  # fmt: skip
    assert [row[:2] for row in rows] == [["1", "warm"], ["2", "cold\ntall; \u00e9"]]
    for row in rows:
        assert row[2] == row[4] and float(row[3]) == float(row[5]) > float(row[7])
    (folder / "in.tsv").write_text("warm\t1\ncold\t2\n")
    code, out, _ = run("predict model in.tsv --columns text,n")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [row[:2] for row in rows] == [["warm", "1"], ["cold", "2"]]


def test_predict_writes_a_file_whole_and_says_what_is_left_out(folder, run):
    (folder / "in.jsonl").write_text('{"text": "warm", "n": [1]}\nno\n{"text": "cold"}\n')
    code, out, err = run("predict model in.jsonl -o out.jsonl.gz")
    assert (code, out) == (1, "")
    assert [line[2:] for line in err.splitlines()] == [
        "in.jsonl:2  not valid JSON at column 1: Expecting value; the line is 'no'",
        "Wrote out.jsonl.gz: 2 answers",
        "1 row left out",
    ]
    rows = packed(folder / "out.jsonl.gz")
    assert [(row["text"], row.get("n")) for row in rows] == [("warm", [1]), ("cold", None)]
    code, _, err = run("predict model in.jsonl -o out.jsonl.gz")
    assert code == 1 and "already exists" in err
    code, _, err = run("predict model in.jsonl --prefix my_ -o out.jsonl.gz --force")
    assert "my_reply" in packed(folder / "out.jsonl.gz")[0]
    code, _, err = run("predict model out.jsonl.gz --prefix my_")
    said = ":1  already has a field 'my_reply': rename the answer's field with --prefix NAME"
    assert code == 1 and said in err


def test_predict_keeps_the_lines_of_a_text(folder, run):
    (folder / "in.txt").write_text("\nwarm\n\n  \ncold\n\n")
    code, out, err = run("predict model in.txt --top 2")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [row["text"] for row in rows] == ["", "warm", "", "  ", "cold", ""]
    assert [row["reply"] is None for row in rows] == [not row["text"].strip() for row in rows]
    assert rows[0] == {"text": "", "reply": None, "score": None, "candidates": []}
    code, _, err = run("predict model in.txt -o out.jsonl")
    assert code == 0 and err.endswith("Wrote out.jsonl: 2 answers\n")


def test_predict_reads_layouts_and_has_a_threshold(folder, run):
    said = [{"from": "system", "value": "warm"}, {"from": "human", "value": "cold 1"}]
    (folder / "in.json").write_text(json.dumps([{"conversations": said, "n": 1}]))
    command = "predict model in.json --format sharegpt --system-turns drop"
    code, out, err = run(command)
    row = json.loads(out)
    assert (code, err) == (0, "") and row["n"] == 1 and row["reply"] in ("warm", "cold", "tall")
    code, out, _ = run(f"{command} --threshold 1 --top 2")
    found = json.loads(out)
    assert (found["reply"], found["guess"]) == ("unknown", row["reply"])
    assert found["candidates"][0] == {"text": row["reply"], "score": row["score"]}
    (folder / "own.yml").write_text("text: said\nlabel: class\n")
    (folder / "in.csv").write_text("said,n\ncold 1,7\n")
    code, out, _ = run("predict model in.csv --format own.yml")
    assert out.splitlines()[0] == "said,n,reply,score" and out.splitlines()[1].startswith(
        "cold 1,7,"
    )


def test_predict_never_replaces_what_it_reads(folder, run):
    (folder / "own.txt").write_text("warm\n")
    (folder / "own.py").write_text("A = 1\n")
    for name, more in (("own.txt", ""), ("./own.txt", ""), ("own.py", "--code own.py")):
        code, _, err = run(f"predict model own.txt {more} -o {name} --force")
        assert code == 1 and f"{name}  is read by this command" in err
    code, _, err = run("predict model ow*.txt -o own.txt --force")
    assert code == 1 and "own.txt  is read by this command" in err
    assert (folder / "own.txt").read_text() == "warm\n"
    assert (folder / "own.py").read_text() == "A = 1\n"


def test_predict_reads_a_file_as_the_models_own(folder, run):
    changes = {"columns": ["n", "text", "label"], "delimiter": "|", "encoding": "cp1252"}
    own = {f"--tasks.intents.{name}": value for name, value in changes.items()}
    words = " ".join(f"{name} '{json.dumps(value)}'" for name, value in own.items())
    words = words.replace(", ", ",")
    for header, line in (("", "1|warm, caf\u00e9|x"), ("m|text", "1|warm, caf\u00e9")):
        lines = [header, line] if header else [line]
        (folder / "own.csv").write_bytes("\n".join([*lines, ""]).encode("cp1252"))
        code, out, err = run(f"predict model own.csv {words}")
        rows = list(csv.reader(out.splitlines(), delimiter="|"))
        assert (code, err) == (0, "") and rows[-1][:-2] == line.split("|")
        assert len(rows) == len(lines)
        assert (rows[0][-2:] == ["reply", "score"]) == bool(header)
    code, out, err = run(f"predict model own.csv {words} --encoding ascii --columns text,b")
    assert code == 1 and "check that --encoding fits the file" in err


@pytest.mark.parametrize("name", ["-", "/dev/fd/{}"])
def test_predict_reads_a_pipe(run, name):
    end, begin = os.pipe()
    os.write(begin, "warm \u00e9\n\ncold\n".encode())
    os.close(begin)
    stdin = os.dup(0)
    try:
        os.dup2(end, 0)
        code, out, err = run(f"predict model {name.format(end)}")
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(end)
    assert (code, err) == (0, "")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["warm \u00e9", "", "cold"]


@pytest.mark.parametrize("words, code, text", [
    ("nowhere.csv", 1, "nowhere.csv  file not found"),
    ("train.csv --format tvs", 1, "there is no format 'tvs'; did you mean 'tsv'?"),
    ("train.csv --encoding utf8000", 1, "there is no encoding 'utf8000'"),
    ("train.csv --delimiter ab", 2, "should be a single character, got 'ab'"),
    ("train.csv --text-field said", 1, "the column 'said' is missing"),
    ("train.csv --text-field said", 1, "see --text-field; if the file has no header"),
    ("train.csv --format sharegt", 1, "there is no format 'sharegt'; did you mean 'sharegpt'?"),
    ("train.csv --format nowhere.yml", 1, "nowhere.yml  file not found"),
    ("train.csv --threshold 2", 2, "should be a number from 0 to 1, got 2"),
    ("train.csv --threshold high", 2, "should be a number from 0 to 1, got high"),
    ("train.csv --top 0", 2, "should be an integer, 1 or more, got 0"),
    ("train.csv --top all", 2, "should be an integer, 1 or more, got all"),
])  # fmt: skip
def test_predict_explains_mistakes(run, words, code, text):
    found, out, err = run(f"predict model {words}")
    assert (found, out) == (code, "") and text in err and "Traceback" not in err


def test_replies_to_unlabelled_data_without_scores(folder, run):
    (folder / "un.csv").write_text("text\nwarm\ncold\n")
    code, out, err = run("evaluate model --paths.test un.csv --predictions un.jsonl")
    assert (code, out) == (0, "") and "No example of test has a label: nothing is scored" in err
    rows = [json.loads(line) for line in (folder / "un.jsonl").read_text().splitlines()]
    assert [(row["text"], row["labels"]) for row in rows] == [("warm", []), ("cold", [])]
    assert all(row["candidates"][0]["text"] == row["reply"] for row in rows)
    code, out, err = run("evaluate model --paths.test un.csv")
    assert code == 1 and "the column 'label' is missing" in err
    code, out, err = run("display-model model --paths.test un.csv")
    assert code == 0 and out.count("partner") == 2
    assert "No example has a label: nothing is compared" in err


def test_evaluate_scores_the_labelled_examples_alone(folder, run):
    rows = [("text", "label"), ("warm 1", "warm"), ("cold 1", ""), ("cold 2", "cold")]
    with open(folder / "some.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    command = "evaluate model --paths.test some.csv --predictions some.jsonl --json -"
    code, out, err = run(command)
    assert "test: 1 of 3 examples have no label, and are not scored" in err
    lines = [json.loads(line) for line in (folder / "some.jsonl").read_text().splitlines()]
    assert code == 0 and [row.get("right") is None for row in lines] == [False, True, False]
    right = sum(row["right"] for row in lines if row["labels"])
    assert json.loads(out)["accuracy"] == right / 2


def test_evaluate_says_what_it_left_out(folder, run):
    (folder / "bad.csv").write_text("text,label\nwarm 1,warm\na,b,c\ncold 1,cold\n")
    command = "evaluate model --paths.test bad.csv --tasks.intents.on_bad_data skip"
    code, out, err = run(f"{command} --tasks.intents.max_bad_share 0.5")
    assert code == 0 and "accuracy" in out
    assert "bad.csv  1 of 3 examples skipped (33.3 %):\n  bad.csv:3  expected 2 columns" in err
    code, _, err = run(command)
    assert code == 1 and "max_bad_share = 0.05 allows 5 %" in err


def test_predict_writes_what_the_name_of_the_output_says(folder, run):
    (folder / "in.csv").write_text('n;text\n1;warm\n2;"cold; no"\n')
    assert run("predict model in.csv -o a.jsonl.gz --top 2")[0] == 0
    rows = packed(folder / "a.jsonl.gz")
    assert [(row["n"], row["text"]) for row in rows] == [("1", "warm"), ("2", "cold; no")]
    assert [len(row["candidates"]) for row in rows] == [2, 2]
    (folder / "in.jsonl").write_text('{"text": "warm", "n": [1]}\n{"text": "cold, no"}\n')
    assert run("predict model in.jsonl -o b.csv --top 2")[0] == 0
    found = list(csv.DictReader((folder / "b.csv").read_text().splitlines()))
    assert [(row["text"], row["n"]) for row in found] == [("warm", "[1]"), ("cold, no", "")]
    assert found[0]["reply"] == found[0]["candidate_1"] and found[0]["score_2"]
    # If the table cannot hold a value, this is an error, and no file is written.
    (folder / "more.jsonl").write_text('{"text": "warm"}\n{"text": "cold", "n": 1}\n')
    code, _, err = run("predict model more.jsonl -o c.tsv")
    assert (code, (folder / "c.tsv").exists()) == (1, False)
    assert "have a field 'n' that the first row lacks" in err


@pytest.mark.parametrize("name, sign", [("in.csv", ","), ("in.tsv", "\t")])
def test_predict_of_a_table_without_rows_writes_its_header(folder, run, name, sign):
    (folder / name).write_text(f"n{sign}text\n")
    code, out, _ = run(f"predict model {name} --prefix my_")
    assert (code, out) == (0, sign.join(["n", "text", "my_reply", "my_score"]) + "\n")
    (folder / "in.jsonl").write_text("\n")
    assert run("predict model in.jsonl")[1] == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_predict_writes_json_whatever_the_encoding_of_stdout(folder, run, encoding, monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", stdout)
    (folder / "in.txt").write_text("warm \u00e9 \u4f60 \U0001f44d\n", encoding="utf-8")
    run("predict model in.txt")
    stdout.flush()
    shown = stdout.buffer.getvalue()
    assert json.loads(shown.decode("utf-8"))["text"] == "warm \u00e9 \u4f60 \U0001f44d"
    assert shown.isascii() == (encoding != "utf-8")
