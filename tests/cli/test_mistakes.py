"""Common mistakes in configs and command lines. For each, one message says where it is and what to
do, and nothing is written."""

import re

import pytest

from tests.cli.mistakes import CODE, CONFIG, MISTAKES, OTHER, OVERRIDES, PARLAIS, TALK, TWICE


@pytest.fixture
def folder(tmp_path, tmp_path_factory, monkeypatch):
    """Return the user's current folder, with a config, data and code."""
    for name, content in {
        "my.cfg": CONFIG,
        "talk.jsonl": (TALK + OTHER) * 2,
        "bad.jsonl": TALK + TALK.replace('"hi"', "3"),
        "twice.py": TWICE,
        "broken.py": "x = 1\nx.y\n",
    }.items():
        (tmp_path / name).write_text(content)
    # All tests share one file, because it is imported once per process.
    for name, text in {"code.py": CODE, "parlais.py": PARLAIS}.items():
        code = tmp_path_factory.getbasetemp() / name
        code.write_text(text)
        (tmp_path / name).symlink_to(code)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fails(run, folder):
    """Return a function that runs a command line that fails. It returns the exit code and the
    message."""

    def contents():
        files = (path for path in folder.rglob("*") if "__pycache__" not in str(path))
        return {path: path.read_bytes() if path.is_file() else None for path in files}

    def run_command(line):
        before = contents()
        code, out, err = run(line)
        assert out == "" and "Traceback" not in err and contents() == before
        return code, err

    return run_command


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_config_has_one_message_that_says_where(fails, folder, name):
    old, new, where, words = MISTAKES[name]
    assert CONFIG.count(old) == 1
    text = CONFIG.replace(old, new)
    (folder / "my.cfg").write_text(text)
    code, err = fails("train my.cfg -o out --code code.py")
    message = err.strip().splitlines()
    if "my.cfg" in message[0]:
        assert message[0] == "✘ 1 problem in my.cfg" and len(message) == 3
        assert message[2] == "ℹ Nothing was written."
        message = message[1:2]
    said = " ".join(message).removeprefix("✘ ").strip()
    for start in where.split("|"):
        if start.startswith("="):
            places = [n for n, row in enumerate(text.splitlines(), 1) if row.startswith(start[1:])]
            start = f"my.cfg:{places[0] if places else '?'}  "
        elif not where:
            line = text[: text.index(new) + len(new)].count("\n") + 1
            start = f"my.cfg:{line}  "
        if said.startswith(start):
            break
    else:
        pytest.fail(f"points elsewhere than {where}: {said}")
    assert code == 1
    for word in words:
        assert any(part in said for part in word.split("|")), said


@pytest.mark.parametrize("options", OVERRIDES)
def test_mistake_in_an_option_has_one_message_that_says_which(fails, options):
    first, *words = OVERRIDES[options]
    code, err = fails(f"train my.cfg -o out {options}")
    said = err.removeprefix("✘ 1 problem in my.cfg\n").removeprefix("✘ ").strip()
    assert code == 1 and said.startswith(first) and all(word in said for word in words)


# A command line, its exit code, and words in stderr.
COMMAND_LINES = {
    "train none.cfg": (1, "there is no file 'none.cfg'"),
    "train .": (1, "'.' cannot be read: is a directory"),
    # No data is read before the config is valid.
    "train my.cfg --paths.train none.jsonl --system.seed x": (1, "'seed' should be an integer"),
    "train my.cfg --code broken.py": (1, "broken.py:2  cannot be imported: AttributeError: 'int'"),
    "train my.cfg -o .": (1, ".  is not empty."),
    "train my.cfg -o talk.jsonl": (1, "talk.jsonl  is a file."),
    "train": (2, "the following arguments are required: CONFIG"),
    "train my.cfg --gpu-id x": (2, "argument -g/--gpu-id: invalid int value: 'x'"),
    "train my.cfg --max_steps 10": (2, "--max_steps - did you mean --training.max_steps?"),
    "train my.cfg --epochs 10": (2, "--epochs - did you mean --training.max_epochs?"),
    "train -t tasks -m ranker -mf out": (
        2, "argument -t - this option of ParlAI is a section [tasks.NAME] of the config here"
    ),
    "train my.cfg --dict-file=x": (2, "--dict-file=x - this option of ParlAI is the section [tok"),
    "sweep my.cfg -o out --over learn_rate=0.1,0.2": (
        1, "--over learn_rate  'learn_rate' is not a setting in a section - did you mean "
        "training.optimizer.learn_rate?"
    ),
    "sweep my.cfg -o out --over rate=0.1,0.2": (1, "name its section too, as in training.max_s"),
    "evaluate out test.jsonl": (
        2, "test.jsonl - give data as --paths.train FILE or --paths.test FILE"
    ),
    "train my.cfg --forse": (2, "--forse - did you mean --force?"),
    "trian my.cfg": (2, "there is no command 'trian' - did you mean 'train'?"),
    "nonsense": (2, "there is no command 'nonsense' - see"),
    "export out": (2, "there is no command 'export' - see python -m thincdialog --help"),
    "init konfig x.cfg": (2, "'init' needs one of: config, fill-config"),
    "init config": (2, "init config needs OUT"),
    "init config --from nothing x.cfg": (1, "there is no shipped config 'nothing' - choose from: "),
    "init config x.cfg": (2, "there is no shipped config 'x' (choose from: babi, "),
    "init config rankr.cfg": (2, "init config --from ranker rankr.cfg"),
    "init config -": (2, "name one with --from (choose from: babi, "),
    "init config --from ranker my.cfg": (
        1, "my.cfg  already exists. Choose another name, or add --force."
    ),
    "init config --from ranker talk.jsonl/my.cfg": (1, "talk.jsonl/my.cfg  cannot be written: "),
    "debug data my.cfg --paths.train null": (1, "Give it with --paths.train FILE"),
    "debug data my.cfg --paths.train none.jsonl": (1, "none.jsonl  file not found"),
    "evaluate none": (1, "none  is not a folder. Give the folder of a saved model"),
    "evaluate .": (1, ".  is not a saved model: it has no meta.json."),
    "evaluate . --split tset": (2, "invalid choice: 'tset'"),
    "compare a b --resamples 0": (2, "should be an integer, 1 or more"),
    "chat .": (1, ".  is not a saved model"),
    "display-data my.cfg --split dev": (1, "[tasks.talk]  has no dev data"),
    "display-data my.cfg --num-examples -3": (2, "should be an integer, 0 or more, got -3"),
    "display-model .": (1, ".  is not a saved model"),
    "find-function": (2, "find-function needs NAME, or --list REGISTRY"),
    "find-function Ranker": (1, "function 'Ranker' - did you mean thincdialog.Ranker.v1"),
    "find-function --list agent": (2, "there is no registry 'agent' - did you mean 'agents'?"),
    "info .": (1, ".  is not a saved model"),
    "results . --csv --json": (2, "--json: not allowed with argument --csv"),
    "info --a.b 3": (2, "--a.b: this command does not accept settings"),
    "completion powershell": (2, "invalid choice: 'powershell'"),
}  # fmt: skip


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_mistakes_of_the_command_line(fails, line):
    code, words = COMMAND_LINES[line]
    found, message = fails(line)
    assert found == code and words in message
    if code == 1:
        # There is one block: the message, then at most a note that nothing was written.
        assert message.startswith("✘ ") and message.count("✘") == 1 and message.count("\n") <= 4
    assert "none.jsonl" not in message or "seed" not in line


def test_many_mistakes_are_shown_at_once(fails, folder):
    text = CONFIG.replace("max_steps", "max_stepz").replace("min_freq", "min_frek")
    (folder / "my.cfg").write_text(text.replace("width = 16", "width = .5"))
    code, train = fails("train my.cfg -o out --training.patience x --agent.delimiter 3")
    assert (code, train.splitlines()[0]) == (1, "✘ 5 problems in my.cfg")
    found = re.findall(r"^  (my.cfg|--\S+)", train, re.MULTILINE)
    assert found == ["my.cfg"] * 3 + ["--agent.delimiter", "--training.patience"]
    debug = fails("debug config my.cfg --training.patience x --agent.delimiter 3")
    assert debug == (1, train)


def test_what_looks_like_a_mistake_and_is_none(run, folder):
    """Dashes in a setting's name, and settings before the config."""
    code, out, _ = run("train --training.max-steps 3 my.cfg -o out")
    assert code == 0 and "Ended: max_steps = 3 reached." in out


def test_mistakes_with_traceback_show_the_traceback(run, folder):
    code, _, err = run("train my.cfg --traceback --system.seed x")
    assert code == 1 and "Traceback" in err and "✘ 1 problem in my.cfg" in err
