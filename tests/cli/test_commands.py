"""Commands as a user runs them, with a small model that was really trained."""

import importlib
import io
import json
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.examples.talk import write_spoken
from tests.training.examples import CLASSIFIER, REPLIES, TALKS, with_agent, write_talks
from thincdialog.cli import chat
from thincdialog.cli.main import COMMANDS, main
from thincdialog.config import load_code, load_config, shipped_configs
from thincdialog.runs.chatbot import Answer

UNREAD = re.sub(r'"\w+.jsonl"', "null", TALKS)
CONFIG = f"""# Answers about drinks.{UNREAD}label_speaker = "second"
{with_agent(REPLIES, "# Replies with anything it was trained with.", "history_size = 1")}
[training]
max_epochs = 30
score = "hits@1"
n_samples = 1

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.05
""".replace("tasks.talk", "tasks.drinks")
DRINKS = ("tea", "coffee", "juice", "water", "milk", "cocoa")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with a config, data, and the model that `train` made of them."""
    folder = tmp_path_factory.mktemp("trained")
    pairs = [(f"i want {drink}", f"one {drink} then") for drink in DRINKS * 5]
    write_talks(folder / "talk.jsonl", pairs)
    (folder / "drinks.cfg").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.chdir(folder)
        train = "train --paths.dev talk.jsonl drinks.cfg --paths.train=talk.jsonl"
        assert main(f"{train} -o out".split()) == 0
        (folder / "shown.txt").write_text(out.getvalue())
        assert main(f"{train} -o out_weak --training.max_steps 1".split()) == 0
    return folder


@pytest.fixture(autouse=True)
def in_folder(trained, monkeypatch):
    monkeypatch.chdir(trained)


MODEL, WEAK = "out/model-best", "out_weak/model-best"
DATA = "--paths.test talk.jsonl --evaluation.n_candidates 6"


def test_train_shows_table_results_and_samples(trained):
    shown = (trained / "shown.txt").read_text()
    assert "Ended: max_epochs = 30 reached." in shown
    rows = [line.split() for line in shown.split("\n")]
    header = next(row for row in rows if row[:2] == ["agent", "hits@1"])
    scores = next(row for row in rows if row[:3] == ["dev", "this", "model"])
    assert float(scores[3]) == 1.0 and int(scores[-1]) == 30 and header[-1] == "examples"
    assert "  partner  i want tea\n= model    one tea then\n" in shown
    assert "\x1b" not in shown


def test_train_shows_how_much_was_left_out_before_training_and_at_its_end(run, tmp_path):
    path = write_spoken(tmp_path / "some.jsonl", *["bot", "agent"] * 9)
    options = f"--paths.train {path} --tasks.drinks.label_speaker agent --no-output"
    options += " --training.max_steps 1"
    code, out, err = run(f"train drinks.cfg {options}")
    line = f"{path}  9 of 18 conversations left out: the label_speaker does not reply in them\n"
    assert code == 0 and err.count(line) == 1
    assert f"\nConversations or examples left out: 9 of {path}.\n" in out
    assert json.loads(run(f"train drinks.cfg {options} --json")[1])["left_out"] == {path: 9}


def test_evaluate_prints_and_writes_scores(run, tmp_path):
    code, out, err = run(f"evaluate {MODEL} --paths.test talk.jsonl --json {tmp_path}/s.json")
    assert code == 0 and err == f"✔ Wrote {tmp_path}/s.json\n"
    scores = json.loads((tmp_path / "s.json").read_text())
    assert scores["hits@1"] == 1.0 and scores["examples"] == 30
    assert ["hits@1", "1.0000"] in [line.split() for line in out.split("\n")]
    code, out, _ = run(f"evaluate --split dev --json - {MODEL}")
    assert code == 0 and json.loads(out) == scores


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_evaluate_writes_to_files_that_are_not_regular(tmp_path):
    script = f"evaluate {WEAK} {DATA} --resamples 0 --predictions /dev/stdout"
    with open(tmp_path / "out", "w") as out:
        out.write("first\n")
        out.flush()
        done = subprocess.run([sys.executable, "-m", "thincdialog", *shlex.split(script)],
                              stdout=out, stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *lines = (tmp_path / "out").read_text().splitlines()
    found = [line for line in lines if line.startswith("{")]
    assert first == "first" and [set(json.loads(line)) >= {"id", "reply"} for line in found] == (
        [True] * 30
    )


def test_evaluate_writes_only_predictions_to_stdout(tmp_path, capfd):
    command = f"evaluate {WEAK} {DATA} --resamples 0 --predictions"
    assert main(shlex.split(f"{command} {tmp_path}/weak.jsonl")) == 0
    scores = capfd.readouterr().out
    assert main(shlex.split(f"{command} -")) == 0
    expected = (tmp_path / "weak.jsonl").read_text(), scores
    assert capfd.readouterr() == expected and not Path("-").exists()
    assert main(shlex.split(f"{command} - --json -")) == 1
    assert "-  is named twice" in capfd.readouterr().err


def test_evaluate_shows_intervals_and_writes_predictions(run, tmp_path):
    files = f"--predictions {tmp_path}/weak.jsonl --json {tmp_path}/s"
    code, out, err = run(f"evaluate {WEAK} {DATA} {files}")
    assert code == 0
    assert err == (
        f"✔ Wrote {tmp_path}/weak.jsonl\n"
        "ℹ 95 % intervals: bootstrap, 30 examples drawn 1,000 times\n"
        f"✔ Wrote {tmp_path}/s\n"
    )
    assert out.splitlines()[0].split() == ["metric", "test", "95", "%", "interval"]
    found = json.loads((tmp_path / "s").read_text())
    low, high = found["intervals"]["hits@1"]
    assert low < found["hits@1"] < high and found["drawn"] == "examples"
    shown = next(line.split() for line in out.splitlines() if line.startswith("hits@1"))
    assert shown == ["hits@1", f"{found['hits@1']:.4f}", f"{low:.4f}", "to", f"{high:.4f}"]
    rows = rows_of(tmp_path / "weak.jsonl")
    assert sum(row["right"] for row in rows) / 30 == found["accuracy"]
    for option, name in (("--json", "s"), ("--predictions", "weak.jsonl")):
        before = (tmp_path / name).read_bytes()
        code, out, err = run(f"evaluate {WEAK} {DATA} {option} {tmp_path}/{name}")
        assert (code, out) == (1, "")
        said = "already exists. Choose another name, or add --force."
        assert err == f"✘ {tmp_path}/{name}  {said}\n"
        assert (tmp_path / name).read_bytes() == before
    assert run(f"evaluate {WEAK} {DATA} {files} --force")[0] == 0
    assert rows_of(tmp_path / "weak.jsonl") == rows
    code, out, err = run(f"evaluate {WEAK} {DATA} --resamples 0")
    assert (code, err) == (0, "") and "interval" not in out
    code, _, err = run(f"evaluate {WEAK} {DATA} --predictions {tmp_path}")
    assert code == 1 and "cannot be written: Is a directory" in err


def test_compare_says_which_model_is_better(run, tmp_path):
    code, out, err = run(f"compare {WEAK} {MODEL} {DATA} --json {tmp_path}/d.json")
    assert code == 0 and "30 examples, answered by both" in err
    assert "B is better in hits@1 by " in out
    code, _, err = run(f"compare {WEAK} {MODEL} {DATA} --json {tmp_path}/d.json")
    assert code == 1 and "d.json  already exists. Choose another name, or add --force." in err
    found = json.loads((tmp_path / "d.json").read_text())
    row = next(row for row in found["differences"] if row["metric"] == "hits@1")
    assert row["winner"] == "B" and 0 < row["low"] < row["difference"] < row["high"]
    for model, file in ((WEAK, "a"), (MODEL, "b")):
        assert run(f"evaluate {model} {DATA} --predictions {tmp_path}/{file}.jsonl")[0] == 0
    code, out, _ = run(f"compare {tmp_path}/a.jsonl {tmp_path}/b.jsonl --json -")
    by_files = {row["metric"]: row for row in json.loads(out)["differences"]}
    assert code == 0 and by_files["hits@1"] == row
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    code, _, err = run(f"compare {a} {b} --json {b} --force")
    assert code == 1 and "b.jsonl  is read by this command" in err


def of_moods(folder, labels, agent):
    """Write a config for labelled text into a folder."""
    rows = [json.dumps({"text": f"{x} {n}", "label": x}) for n, x in enumerate(labels)]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    splits = "\n".join(f'{split} = "{folder}/rows.jsonl"' for split in ("train", "dev", "test"))
    (folder / "mood.cfg").write_text(
        f'[tasks.mood]\n@teachers = "thincdialog.LabelledText.v1"\n{splits}\n\n{agent}'
    )
    return f"train {folder}/mood.cfg -o {folder}/out"


def test_evaluate_shows_classes(run, tmp_path):
    agent = '[agent]\n@agents = "thincdialog.MostFrequent.v1"\n'
    command = of_moods(tmp_path, ["good", "bad"] * 6, agent)
    assert run(command)[0] == 0
    evaluate = f"evaluate {tmp_path}/out/model-best"
    code, out, err = run(f"{evaluate} --per-class --confusion")
    assert code == 1 and "2 different labels in 12 examples" in err
    of_moods(tmp_path, ["good", "bad"] * 24, agent)
    code, out, err = run(f"{evaluate} --per-class --confusion")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["bad", "0.500", "1.000", "0.667", "24"] in lines
    assert ["good", "0.000", "0.000", "0.000", "24"] in lines
    assert lines[-2:] == [["1", "bad", "24", "."], ["2", "good", "24", "."]]
    code, out, err = run(f"{evaluate} --per-class --confusion --json -")
    found = json.loads(out)
    assert found["confusion"] == [["bad", "bad", 24], ["good", "bad", 24]]
    assert found["classes"]["bad"]["recall"] == 1.0 and "0.500" in err
    pytest.importorskip("matplotlib")
    code, _, err = run(f"{evaluate} --confusion-png {tmp_path}/m.png")
    assert code == 0 and (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"
    code, _, err = run(f"{evaluate} --confusion-png {tmp_path}/m.abc")
    assert code == 1 and "m.abc  cannot be written: Format 'abc' is not supported" in err


def test_evaluate_writes_no_predictions_if_it_refuses_a_confusion_matrix(run, tmp_path):
    several = CLASSIFIER.replace("thincdialog.Classifier.v1", "thincdialog.MultiLabel.v1", 1)
    command = of_moods(tmp_path, ["good", "bad"] * 12, several)
    code, _, err = run(f"{command} --training.score micro_f1")
    assert code == 0, err
    command = f"evaluate {tmp_path}/out/model-best --confusion --predictions {tmp_path}/new.jsonl"
    code, out, err = run(command)
    assert code == 1 and "a confusion matrix needs one class per text" in err and not out
    assert not (tmp_path / "new.jsonl").exists()


def test_evaluate_shows_what_thresholds_do(run, tmp_path):
    of_moods(tmp_path, ["good", "bad", "oos"] * 12, CLASSIFIER)
    rejecting = '--agent.reject_class oos --agent.threshold "precision:0.99"'
    assert run(f"train {tmp_path}/mood.cfg -o {tmp_path}/out {rejecting}")[0] == 0
    evaluate = f"evaluate {tmp_path}/out --coverage"
    code, out, err = run(f"{evaluate} --agent.threshold 0.0")
    assert "(not calibrated: only model-best is, with enough" in err
    rows = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    # It has learned to distinguish them, and answers "oos" for examples with this label.
    assert code == 0 and rows["99%"][2] == rows["model"][2] == "0.6667"
    assert rows["in-scope accuracy"][2] == rows["out-of-scope recall"][2] == "1.0000"
    assert rows["AUROC"][1] == "1.0000"
    code, out, err = run(f"{evaluate} --json - --coverage-png {tmp_path}/c.png")
    found = json.loads(out)["coverage"]
    assert (
        found["99%"]["answered"]
        == found["model"]["answered"]
        == pytest.approx([2 / 3, 0.5, 0.8], abs=0.1)
    )
    assert rows["99%"][1] == f"{found['99%']['threshold']:.6g}"
    assert "model" in err and (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    replies = tmp_path / "replies.jsonl"
    code, _, err = run(f"evaluate {MODEL} --split dev --coverage --predictions {replies}")
    assert code == 1 and "thresholds need a classifier with one class per text" in err
    assert replies.read_text().count("\n") > 1


def test_evaluate_of_a_classifier_shows_scores_of_classes(run, tmp_path):
    agent = (
        '[tokenizer]\n@tokenizers = "thincdialog.Words.v1"\n\n'
        '[agent]\n@agents = "thincdialog.Classifier.v1"\n\n'
        '[agent.model]\n@models = "thincdialog.LinearClassifier.v1"\n'
    )
    command = of_moods(tmp_path, ["very good", "very bad", "fair"] * 20, agent)
    code, out, _ = run(f"{command} --training.max_steps 1")
    header = out.splitlines()[0].split()
    assert code == 0 and "macro_f1" in header and "f1" not in header
    best, last = f"{tmp_path}/out/model-best", f"{tmp_path}/out/model-last"
    code, out, err = run(f"evaluate {best} --json {tmp_path}/scores.json")
    assert code == 0 and "Expected calibration error: 0." in err
    shown = [line.split()[0] for line in out.splitlines()[2:]]
    assert shown[:5] == ["examples", "accuracy", "macro_f1", "weighted_f1", "loss"]
    assert not {"f1", "precision", "recall"} & set(shown)
    found = json.loads((tmp_path / "scores.json").read_text())
    assert {"f1", "macro_f1", "weighted_f1"} < set(found) and set(shown) < set(found)
    # The classes have equal numbers of examples.
    assert found["macro_f1"] == found["weighted_f1"] and f"{found['macro_f1']:.4f}" in out
    code, out, _ = run(f"compare {best} {last} --json {tmp_path}/differences.json")
    shown = {line.split()[0] for line in out.splitlines()[2:] if line}
    assert code == 0 and "macro_f1" in shown and " f1" not in out and " precision" not in out
    assert not {"f1", "precision", "recall"} & shown
    assert '"precision"' in (tmp_path / "differences.json").read_text()


def test_evaluate_names_the_option_for_missing_data(run):
    code, out, err = run(f"evaluate {MODEL}")
    assert (code, out) == (1, "")
    said = "has no test data (it has: train, dev). Give it with --paths.test FILE, or use"
    assert f"{said} --split dev." in err


def test_display_data(run):
    code, out, err = run("dd drinks.cfg --paths.train talk.jsonl -n 2 --tokens")
    assert code == 0 and err == "ℹ 2 examples shown\n"
    lines = [line.split(maxsplit=1) for line in out.split("\n")]
    assert ["text", "i want tea"] in lines and ["tokens", "i | want | tea"] in lines
    assert ["tokens", "one | coffee | then"] in lines
    code, out, _ = run("display-data drinks.cfg --paths.dev talk.jsonl --split dev --jsonl -n 0")
    messages = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(messages) == 30
    assert messages[2]["eval_labels"] == ["one juice then"]
    code, shuffled, _ = run("dd drinks.cfg --paths.train talk.jsonl --shuffle --jsonl -n 0")
    found = [json.loads(line)["text"] for line in shuffled.splitlines()]
    texts = [message["text"] for message in messages]
    assert sorted(found) == sorted(texts) and found != texts


def test_chat_answers_each_line(run, monkeypatch):
    lines = ["i want milk", "", "/history", "[DONE]", "/history", "/hstory", "i want tea", "[EXIT]"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines, "not read"])))
    code, out, err = run(f"chat {MODEL}")
    assert code == 0
    assert out == "one milk then\nyou    i want milk\nmodel  one milk then\none tea then\n"
    assert err == "ℹ New conversation\n⚠ there is no command /hstory - did you mean /history?\n"


def test_chat_refuses_a_line_without_an_end(run, monkeypatch):
    monkeypatch.setattr("thincdialog.formats.text_file.MAX_LINE", 20)
    monkeypatch.setattr("sys.stdin", io.StringIO("i want milk\n" + "\0" * 1000))
    exit_code, out, err = run(f"chat {MODEL}")
    assert exit_code == 1 and len(out.splitlines()) == 1
    assert "stdin:2  has more than 20 characters: split it" in err


def test_chat_takes_lines_that_are_no_utf8(run, monkeypatch):
    given = io.TextIOWrapper(io.BytesIO(b"i want milk \xff\xfe\ni want tea\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", given)
    assert run(f"chat {MODEL}") == (0, "one milk then\none tea then\n", "")


def test_chat_ends_with_its_input_and_takes_candidates(run, monkeypatch, tmp_path):
    (tmp_path / "replies.txt").write_text("no\nmilk then\n\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("i want milk"))
    code, out, err = run(f"i {MODEL} --candidates {tmp_path}/replies.txt")
    assert (code, out, err) == (0, "milk then\n", "")
    (tmp_path / "none.txt").write_text("\n")
    code, _, err = run(f"i {MODEL} --candidates {tmp_path}/none.txt")
    assert code == 1 and "none.txt  has only blank lines" in err
    monkeypatch.setattr(sys, "stdin", None)
    assert run(f"chat {MODEL}") == (0, "", "")


def test_chat_shows_the_best_replies_and_says_that_it_does_not_know(run, monkeypatch, tmp_path):
    def chat(options):
        monkeypatch.setattr(sys, "stdin", io.StringIO("i want milk\nhm\n"))
        return run(f"chat {MODEL} {options}")

    code, out, err = chat("--top 2")
    assert (code, err) == (0, "")
    shown = [[line.split("\t") for line in part.split("\n")] for part in out.split("\n\n")[:2]]
    assert [len(part) for part in shown] == [2, 2] and out.endswith("\n\n")
    assert shown[0][0][1] == chat("")[1].splitlines()[0]
    assert all(1 >= float(first) >= float(second) > 0 for (first, _), (second, _) in shown)
    # Its answers become part of the conversation, so the second answers may differ.
    p, best = shown[0][0]
    first, second = chat("--threshold 1")[1].splitlines()
    assert first == f"I don't know. ({best} {p})" and second.startswith("I don't know. (")
    unsure, *others = chat("--threshold 1 --top 2")[1].split("\n\n")[0].splitlines()
    assert unsure == "      \tI don't know."
    assert others == ["\t".join(cells) for cells in shown[0]]
    for wrong in ("--top 0", "--threshold 1.5", "--threshold much", "--top some"):
        code, out, err = chat(wrong)
        assert (code, out) == (2, "") and wrong.split()[0] in err


def test_chat_lines(capsys):
    heard = []
    echo = SimpleNamespace(
        respond=lambda text, *_, **__: heard.append(text) or [Answer(text.upper(), None)],
        reset=lambda: heard.append("(reset)"),
    )
    chat.talk(echo, iter(["a\\nb\n", "/reset\n", "/help\n", "/ is a slash\n", "/quit\n", "no\n"]))
    assert heard == ["a\nb", "(reset)", "/ is a slash"]
    shown = capsys.readouterr()
    assert shown.out == "A\\nB\n/ IS A SLASH\n"
    assert all(command in shown.err for command in chat.COMMANDS)


def test_init_config_copies_a_shipped_config(run, tmp_path):
    name, path = next(iter(shipped_configs().items()))
    # The copy differs only in the config's name.
    known = path.read_text()
    code, out, err = run(f"init config --from {name} '{tmp_path}/sub/my own.cfg'")
    assert (code, out) == (0, "")
    copy = (tmp_path / "sub" / "my own.cfg").read_text()
    assert copy == known.replace(f"configs/{name}.cfg", f"'{tmp_path}/sub/my own.cfg'") != known
    assert f"python -m thincdialog train '{tmp_path}/sub/my own.cfg'" in err
    code, out, _ = run(f"init config - --from {name}.cfg")
    assert out == known.replace(f"configs/{name}.cfg", f"{name}.cfg")
    code, out, _ = run("init config --list")
    assert all(line.split()[0] in shipped_configs() for line in out.splitlines()[2:])


@pytest.mark.parametrize("name", shipped_configs())
def test_init_config_writes_what_the_name_says(run, tmp_path, name):
    for spelling in (f"{tmp_path}/{name}.cfg", f"{tmp_path}/{name}"):
        assert run(f"init config {spelling} --force")[0] == 0
        if shipped_configs()[name].with_suffix(".py").is_file():
            if "torch" in name:
                pytest.importorskip("torch")
            load_code(tmp_path / f"{name}.py")
        assert load_config(spelling).config == load_config(shipped_configs()[name]).config
    code, _, err = run(f"init config {tmp_path}/my_{name}s.cfg")
    assert code == 2 and all(known in err for known in shipped_configs())
    assert not (tmp_path / f"my_{name}s.cfg").exists()
    command = err.strip().rpartition("python -m thincdialog ")[2]
    assert command.startswith("init config --from ") and run(command)[0] == 0


def test_init_fill_config_writes_everything(run, tmp_path):
    code, out, err = run(f"init fill-config drinks.cfg {tmp_path}/full.cfg")
    assert (code, out) == (0, "") and err.startswith("✔ Wrote")
    text = (tmp_path / "full.cfg").read_text()
    assert load_config(text).config == load_config(CONFIG).config
    assert text.startswith("# Answers about drinks.\n[paths]\n")
    assert "# Replies with anything it was trained with.\nhistory_size = 1\n" in text
    assert run(f"init fill-config drinks.cfg {tmp_path}/full.cfg")[0] == 1
    assert run(f"init fill-config {tmp_path}/full.cfg {tmp_path}/full.cfg --force")[0] == 0
    assert (tmp_path / "full.cfg").read_text() == text


def test_init_fill_config_shows_what_it_adds(run):
    code, out, _ = run("init fill-config drinks.cfg --diff --training.patience 2")
    lines = out.splitlines()
    assert code == 0
    assert "+ patience = 2" in lines and "+ gpu_id = -1" in lines and "  max_epochs = 30" in lines
    assert not [line for line in lines if line.startswith("-")]


# A command line, and parts of its output: of stdout, or, after "!", of stderr.
SHOWN = {
    f"dm {MODEL} --split dev -n 3": ["= model    one juice then", "!ℹ 3 of 3 replies equal a la"],
    "debug config drinks.cfg": ["!✔ drinks.cfg: no problems found\n"],
    "debug data drinks.cfg --paths.train talk.jsonl": [
        r"^drinks +train$", "⚠ train: only 30 training examples", " checks passed\n",
    ],
    # This name is in two registries.
    "find-function thincdialog.Words.v1": [
        '\\A@batchers = "thincdialog.Words.v1"\nthincdialog/batchers/words.py:',
        '\n@tokenizers = "thincdialog.Words.v1"\nthincdialog/data/tokenizers/',
    ],
    "find-function thincdialog.Words.v1 -r tokenizers": [r"\A@tokenizers", "    min_freq: int = "],
    "find-function --list batchers": [r"^thincdialog\.Fixed\.v1 +thincdialog/batchers/fixed\.py:"],
    "find-function --list agents": [
        r"  Ranks the candidates by the similarity of their words to those of the context\.\n",
    ],
    "find-function --list": ["^layers ", "^agents "],
    "info": ["^thinc +8", "^Python "],
    "dd drinks.cfg --paths.train talk.jsonl -n 1 --max-len 6": [r" i w\.\.\.\n"],
    f"info {MODEL}": [
        r"^agent +thincdialog\.Ranker\.v1\n", r"^dev\.hits@1 +1\.0000\n",
        r"^dev\.examples +\d+\n",
    ],
}  # fmt: skip


@pytest.mark.parametrize("line", SHOWN)
def test_what_commands_show(run, line):
    code, out, err = run(line)
    assert code == 0
    for part in SHOWN[line]:
        assert re.search(part.lstrip("!"), err if part[0] == "!" else out, re.MULTILINE), part
    assert "agent.json" not in out


def test_every_example_of_the_help_can_be_parsed(monkeypatch):
    """Commands are really looked up and parsed, but not run."""
    for name in COMMANDS:
        module = importlib.import_module(f"thincdialog.cli.{re.sub('[ -]', '_', name)}")
        ran = []
        monkeypatch.setattr(module, "run", lambda arguments, ran=ran: ran.append(1))
        for example in module.EXAMPLES:
            words = re.split(" [<>]+ ", example)[0].split()
            assert main(words) == 0, example
        assert len(ran) == len(module.EXAMPLES) > 0, name
