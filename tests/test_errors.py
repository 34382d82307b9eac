"""Mistakes of users: one clear message, the right exit code, no traceback, nothing written."""

import json
import os
import subprocess
import sys

import pytest

from thincdialog.cli.main import main
from thincdialog.errors import ConfigError, DataError, MissingPackageError, Problem

CONFIG = """[paths]
train = null
dev = null

[tasks.dialogue]
@teachers = "thincdialog.Conversations.v1"
train = ${paths.train}
dev = ${paths.dev}
label_speaker = "both"

[tasks.dialogue.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tokenizer]
@tokenizers = "thincdialog.HashNgrams.v1"
n_rows = 100

[agent]
@agents = "thincdialog.Ranker.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8

[training]
max_steps = 2
"""
TALK = {"id": "1", "turns": [{"speaker": "a", "text": "hi"}, {"speaker": "b", "text": "hello"}]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a good config and good data, where commands run."""
    (tmp_path / "my.cfg").write_text(CONFIG)
    lines = [json.dumps({**TALK, "id": str(number)}) for number in range(5)]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THINCDIALOG_CONFIG_OVERRIDES", raising=False)
    return tmp_path


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def fails(capsys, folder, command, code):
    before = contents(folder)
    assert main(command.split()) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert contents(folder) == before
    return shown.err


TRAIN = "train my.cfg -o out --paths.train talk.jsonl "

# Of spaCy 3.8: what it does with the same mistake stands in ../shared/reference/ux.md 1.3.
COMMAND_LINES = [
    (TRAIN + "--max_steps 10", 2, "unrecognized argument --max_steps - did you mean --training.ma"),
    (
        TRAIN + "--training.max_stepz 10",
        1,
        "has no setting 'max_stepz' - did you mean 'max_steps'?",
    ),
    (TRAIN + "--trainin.max_steps 10", 1, "no section [trainin] - did you mean --training.max_ste"),
    (
        TRAIN + "--training.max_steps abc",
        1,
        "'max_steps' should be an integer, 0 or more, got \"abc\"",
    ),
    (TRAIN + "--training.max_steps -1", 1, "'max_steps' should be an integer, 0 or more, got -1"),
    (TRAIN + "--agent.@agents thincdialog.Rancer.v1", 1, "did you mean 'thincdialog.Ranker.v1'?"),
    (TRAIN + "--agent.model.encoder.widht 3", 1, "has no argument 'widht' - did you mean 'width'?"),
    (
        TRAIN + "--agent.model.encoder.width one",
        1,
        "of thincdialog.BagEncoder.v1 should be an inte",
    ),
    (
        TRAIN + "--agent.model.encoder.depth -1",
        1,
        "[agent.model.encoder] thincdialog.BagEncoder.v1: ",
    ),
    (
        TRAIN + "--tasks.dialogue.train ${paths.trian}",
        1,
        "which is not defined - did you mean ${pat",
    ),
    ("train none.cfg", 1, "there is no file 'none.cfg'"),
    ("train .", 1, "'.' cannot be read: is a directory"),
    ("train my.cfg", 1, "train"),
    ("train my.cfg --paths.train none.jsonl", 1, "none.jsonl"),
    (
        "train my.cfg --paths.train talk.jsonl --code none.py",
        1,
        "none.py  there is no such Python file",
    ),
    ("train", 2, "the following arguments are required: CONFIG"),
    ("train my.cfg --gpu-id x", 2, "argument -g/--gpu-id: invalid int value: 'x'"),
    ("trian my.cfg", 2, "there is no command 'trian' - did you mean 'train'?"),
    ("nonsense", 2, "there is no command 'nonsense' - see"),
    ("init", 2, "'init' needs one of: config, fill-config"),
    ("init konfig x.cfg", 2, "'init' needs one of: config, fill-config"),
    ("init config", 2, "init config needs OUT"),
    ("init config --from nothing x.cfg", 1, "no config 'nothing' comes along - there are: "),
    ("init config my.cfg", 1, "my.cfg  is there already. Choose another name, or add --force."),
    ("evaluate none", 1, "none  is not a folder. Give the folder of a saved model"),
    ("evaluate .", 1, ".  is not a saved model: it has no meta.json."),
    ("evaluate . --split tset", 2, "invalid choice: 'tset'"),
    ("chat .", 1, ".  is not a saved model"),
    ("display-data my.cfg", 1, "[tasks.dialogue]  has no train data"),
    ("display-data my.cfg --num-examples -3", 2, "should be 0 or more, got -3"),
    ("display-model .", 1, ".  is not a saved model"),
    ("find-function", 2, "find-function needs NAME, or --list REGISTRY"),
    (
        "find-function Ranker",
        1,
        "no registered function 'Ranker' - did you mean thincdialog.Ranker.v1",
    ),
    ("find-function --list agent", 2, "there is no registry 'agent' - did you mean 'agents'?"),
    ("info .", 1, ".  is not a saved model"),
    ("info --a.b 3", 2, "--a.b: this command changes no settings"),
]


@pytest.mark.parametrize("command, code, words", COMMAND_LINES, ids=lambda part: str(part)[:60])
def test_errors_of_the_command_line(capsys, folder, command, code, words):
    message = fails(capsys, folder, command, code)
    assert words in message
    if code == 1:
        assert message.startswith("✘ ")
        # One block: the message, then at most a note that nothing was written.
        assert message.count("✘") == 1 and message.count("\n") <= 4


CONFIGS = [
    ("[training]", "[training]\nmax_stepz = 3", "my.cfg:29  [training] has no setting 'max_stepz'"),
    (
        "[training]",
        "[trainin]",
        "my.cfg:28  there is no section [trainin] - did you mean 'training'",
    ),
    ("max_steps = 2", 'max_steps = "2"', "my.cfg:29  [training] 'max_steps' should be an integer"),
    (
        "max_steps = 2",
        "max_steps = .2",
        "my.cfg:29  [training] 'max_steps' is .2, which is not a num",
    ),
    (
        "max_steps = 2",
        "max_steps = 2 # few",
        "my.cfg:29  [training] 'max_steps' is 2 # few - a comm",
    ),
    ("width = 8", "width = 8\nwidth = 9", "my.cfg:27  [agent.model.encoder] 'width' is repeated"),
    (
        "[training]",
        "[tokenizer]\n\n[training]",
        "my.cfg:28  section [tokenizer] is repeated - it st",
    ),
    ("${paths.dev}", "${paths.dve}", "my.cfg:8  [tasks.dialogue] 'dev' refers to ${paths.dve}, wh"),
    (
        "Ranker.v1",
        "Rancer.v1",
        "my.cfg:19  [agent] 'thincdialog.Rancer.v1' is not in 'agents' - di",
    ),
    (
        '@models = "thincdialog.Bag',
        '@layers = "thincdialog.Bag',
        "my.cfg:25  [agent.model.encoder] '",
    ),
    (
        'label_speaker = "both"',
        "label_speaker = 3",
        "my.cfg:9  [tasks.dialogue] 'label_speaker' of t",
    ),
    (
        "n_rows = 100",
        "n_rows = -100",
        "my.cfg:14  [tokenizer] thincdialog.HashNgrams.v1: n_rows = -1",
    ),
    ("[paths]", "x = 1\n[paths]", "my.cfg:1  'x' stands before any [section]"),
    ("[paths]", "[paths\n", "my.cfg:1  '[paths' is not a section name"),
    ('@agents = "thincdialog.Ranker.v1"', "", "my.cfg:18  [agent] does not say what builds it"),
]


@pytest.mark.parametrize("old, new, words", CONFIGS, ids=lambda part: str(part)[:40])
def test_errors_of_configs(capsys, folder, old, new, words):
    text = CONFIG.replace(old, new, 1)
    assert text != CONFIG
    (folder / "my.cfg").write_text(text)
    message = fails(capsys, folder, TRAIN, 1)
    assert words in message
    # "debug config" says the same.
    assert message.replace("ℹ Nothing was written.\n", "") in fails(
        capsys, folder, "debug config my.cfg --paths.train talk.jsonl", 1
    )


def test_errors_all_at_once(capsys, folder):
    text = CONFIG.replace("max_steps", "max_stepz").replace("n_rows = 100", "n_rows = -100")
    (folder / "my.cfg").write_text(text.replace("width = 8", "width = eight"))
    message = fails(capsys, folder, TRAIN + "--system.sead 3 --agent.delimiter 3", 1)
    assert message.startswith("✘ 5 problems in my.cfg\n") and message.count("\n") == 7
    for words in ("max_stepz", "n_rows", "eight", "--system.sead", "--agent.delimiter"):
        assert words in message


def test_errors_no_data_is_read_before_the_config_is_good(capsys, folder):
    message = fails(capsys, folder, "train my.cfg --paths.train none.jsonl --system.seed x", 1)
    assert "none.jsonl" not in message and "'seed'" in message


def test_errors_with_verbose_show_the_traceback(capsys, folder):
    assert main(["train", "my.cfg", "-V", "--system.seed", "x"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "✘ 1 problem in my.cfg" in shown


def test_errors_environment(capsys, folder, monkeypatch):
    monkeypatch.setenv("THINCDIALOG_CONFIG_OVERRIDES", "--system.seed x --training.max_steps 3")
    message = fails(capsys, folder, "debug config my.cfg --training.max_steps 4", 1)
    assert "ℹ THINCDIALOG_CONFIG_OVERRIDES sets --system.seed x\n" in message
    assert "--system.seed  [system] 'seed' should be an integer" in message
    assert "sets --training" not in message
    assert main("debug config my.cfg --system.seed 4".split()) == 0
    monkeypatch.setenv("THINCDIALOG_CONFIG_OVERRIDES", "seed=3")
    assert "is not an option like --section.key" in fails(capsys, folder, "debug config my.cfg", 2)


def test_errors_code_that_fails(capsys, folder):
    (folder / "mine.py").write_text("x = 1\nx.y\n")
    message = fails(capsys, folder, TRAIN + "--code mine.py", 1)
    assert "mine.py:2  cannot be imported: AttributeError: 'int' object has no" in message


def test_errors_output_is_not_overwritten(capsys, folder):
    (folder / "out").mkdir()
    (folder / "out" / "thesis.txt").write_text("all of it")
    assert "out  is not empty." in fails(capsys, folder, TRAIN, 1)
    assert "talk.jsonl  is a file." in fails(capsys, folder, TRAIN + "-o talk.jsonl", 1)


def test_errors_interrupted(folder):
    code = "import os, signal; from thincdialog.cli import main, train\n"
    # A shell starts background jobs with this signal ignored; the tests may be in one.
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "train.run = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
    code += "raise SystemExit(main.main(['train', 'my.cfg']))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 130
    assert done.stderr.endswith("Interrupted\n") and "Traceback" not in done.stderr


def test_errors_reader_of_a_pipe_that_stops(folder):
    command = f"{sys.executable} -m thincdialog find-function --list layers | head -1"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("name ")


def test_errors_texts():
    one = ConfigError([Problem("a.cfg:3", "is bad", "mend it")], "a.cfg")
    assert str(one) == "1 problem in a.cfg\n  a.cfg:3  is bad - mend it"
    assert (
        str(ConfigError([Problem("", "x"), Problem("", "y")])) == "2 problems in config\n  x\n  y"
    )
    many = ConfigError([Problem("", f"problem {n}") for n in range(1000)], "talk.jsonl")
    assert str(many).count("\n") == 26 and str(many).endswith("... and 975 more")
    assert len(many.problems) == 1000
    assert str(DataError("a.txt", "is odd", 4)) == "a.txt:4  is odd"
    error = MissingPackageError("matplotlib", "plot", "A picture")
    assert "pip install 'thincdialog[plot]'" in str(error) and error.exit_code == 1
