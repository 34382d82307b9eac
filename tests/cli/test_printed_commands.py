"""Every command that is printed works as it is printed."""

import glob
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pretrained.tiny_encoder import tiny_encoder
from tests.processes import slow, start
from tests.test_docs import smaller
from thincdialog.cli.main import COMMANDS, main
from thincdialog.config import load_config, shipped_configs

WRITTEN = r"(?:>|-o|--output|--json|--log|--png|--svg|--predictions|--errors) (?=(\S+))"
# Two configs whose data is neither conversations nor labelled texts.
QUICK = ("babi", "dialog_memory")
PROGRAM = "python -m thincdialog "
# Files in the examples of help texts, and the commands that make them, in this order.
MADE = {
    "quickstart.cfg": "init config quickstart.cfg",
    "ranker.cfg": "init config ranker.cfg",
    "intent.cfg": "init config intent.cfg",
    "output/quickstart": "train quickstart.cfg --output output/quickstart",
    "output/small": "train quickstart.cfg --output output/small --agent.model.encoder.width 32",
    "output/ranker": "train ranker.cfg --output output/ranker "
    "--paths.train train.jsonl --paths.dev dev.jsonl --paths.test test.jsonl",
    "output/intent": "train intent.cfg --paths.train intents.csv --paths.test intents.csv",
    "best.jsonl": "evaluate output/quickstart/model-best --predictions best.jsonl",
    "small.jsonl": "evaluate output/small/model-best --predictions small.jsonl",
}
# Files of the package that contain commands, and the tests that run these.
PRINTED = {
    "__main__.py": "(says what it is)",
    "cli/arguments.py": "test_what_train_prints and others: command_line()",
    "cli/main.py": "test_examples_run, test_helps_name_helps",
    "config/check.py": "test_hints_of_configs",
    "config/given.py": "test_hints_of_configs",
    "config/shipped.py": "test_what_init_config_prints",
    "runs/model_card.py": "test_what_the_card_says",
}


def of_help(name):
    module = name.replace(" ", "_").replace("-", "_")
    return importlib.import_module(f"thincdialog.cli.{module}").EXAMPLES


def commands_in(text):
    return re.findall(f"{PROGRAM}(.*)", text)


def needed(examples):
    """Return the commands that make the files that examples read, in the order to run them."""
    lines = []
    for file, line in reversed(MADE.items()):
        read = re.sub(rf"{WRITTEN}\S+", "", "\n".join([*lines, *examples]))
        if line not in examples and re.search(rf"(?<!\S){re.escape(file)}(?![\w.-])", read):
            lines.insert(0, line)
    return lines


def write_data(folder):
    """Write the user's data that the examples of help texts read."""
    colours, places = ("red", "green", "blue"), ("garden", "kitchen")
    talks, labelled = [], ["text,label"]
    for number in range(12):
        colour, place = colours[number % 3], places[number % 2]
        texts = (f"what is in the {place}?", f"a {colour} lamp", "its colour?", f"it is {colour}")
        turns = [{"speaker": "AB"[n % 2], "text": text} for n, text in enumerate(texts)]
        talks.append(json.dumps({"turns": turns}))
        labelled.append(f"the {colour} one number {number},{colour}")
    for split in ("train", "dev", "test"):
        (folder / f"{split}.jsonl").write_text("\n".join(talks) + "\n")
    (folder / "intents.csv").write_text("\n".join(labelled) + "\n")
    (folder / "tickets.csv").write_text("\n".join(["body,label", *labelled[1:]]) + "\n")
    shutil.copy(folder / "tickets.csv", folder / "tickets-1.csv")
    (folder / "chats").mkdir()
    said = ("Ann: hi", "Bob: hello", "Ann: how are you?", "Bob: fine")
    lines = [f"[01/02/2024, 10:0{minute}:00] {text}" for minute, text in enumerate(said)]
    (folder / "chats" / "1.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "lines.txt").write_text("hi\nthere\n")
    chat = [{"from": who, "value": who} for who in ("human", "gpt")]
    (folder / "chats.json").write_text(json.dumps([{"id": "1", "conversations": chat}]))
    said = {"role": "user", "content": "hi", "intent": "greeting"}
    (folder / "log.jsonl").write_text(json.dumps({"messages": [said]}) + "\n")


def run_line(line, monkeypatch):
    """Run a command line as a shell does, but in this process, and with a very short training."""
    words, rest, stdin = shlex.split(line), [], os.dup(0)
    while words:
        word = words.pop(0)
        if word in (">", ">>"):
            assert Path(os.path.expanduser(words.pop(0))).parent.is_dir()
        elif word == "<":
            path = words.pop(0)
            monkeypatch.setattr("sys.stdin", io.StringIO(Path(path).read_text()))
            with open(path, "rb") as piped:
                os.dup2(piped.fileno(), 0)
        else:
            rest += sorted(glob.glob(word)) or [word]
    try:
        code = main(rest)
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
    if rest[:2] == ["init", "config"]:
        for config in Path().glob("*.cfg"):
            config.write_text(smaller(config.read_text()))
    return code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a user's data. The user has only installed the package."""
    write_data(tmp_path)
    tiny_encoder(tmp_path / "minilm")
    (tmp_path / ".config" / "fish" / "completions").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", None)
    return tmp_path


def test_every_place_that_prints_a_command_is_known():
    package = ROOT / "thincdialog"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "python -m thincdialog" in path.read_text(encoding="utf8")
    }
    assert found == set(PRINTED)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_name_files_that_are_there_and_settings_that_exist(name, tmp_path, capsys):
    write_data(tmp_path)
    examples = of_help(name)
    assert main([*name.split(), "--help"]) == 0
    shown = commands_in(capsys.readouterr().out)
    assert examples and set(examples) <= set(shown)
    known = {*MADE, *os.listdir(tmp_path), "output"}
    for line in examples:
        made = set(re.findall(WRITTEN, line))
        for word in shlex.split(line)[len(name.split()) + 1 :]:
            top = "/".join(word.split("/")[:2])
            if re.search(r"^[\w/]+\.(cfg|jsonl|csv|json)$|^output/\w+", word) and word not in made:
                is_target = name in ("convert", "chats", "init config", "init fill-config")
                assert is_target or top in known, (line, word)
    configs = {f"{stem}.cfg": path for stem, path in shipped_configs().items()}
    for line in shown:
        words = shlex.split(line)
        config = next((configs[word] for word in words if word in configs), None)
        settings = dict(re.findall(r"--([a-z]\w*\.[\w.@]+)[ =](\S+)", line))
        settings.update({key: value.split(",")[0] for key, value in
                         re.findall(r"--over ([\w.]+)=([^\s:]+)(?=\s)", line)})  # fmt: skip
        if config is not None and name != "init config":
            load_config(config, settings)


# The examples of serve and chats are commands of docs/serving.md, which tests/test_docs.py runs.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("serve", "chats")])
def test_examples_run(name, folder, monkeypatch, capsys):
    examples = of_help(name)
    for line in [*needed(examples), *examples]:
        small = line.replace("--random 20", "--random 2").replace("=64,128", "=64")
        if line.startswith("cross-validate"):
            small = small.replace(" --folds 10", "") + " --folds 2 --training.max_steps 8"
        assert run_line(small, monkeypatch) == 0, (line, capsys.readouterr().err)


def test_helps_name_helps(capsys):
    assert main(["--help"]) == 0
    [line] = commands_in(capsys.readouterr().out)[1:]
    assert main(line.split()) == 0
    assert main(["no such command"]) == 2
    [line] = commands_in(capsys.readouterr().err)
    assert main(line.split()) == 0


# (mnist_ray does not read a user's files: tests/test_configs.py trains it.)
NAMES = [name for name in shipped_configs() if name != "mnist_ray"]


@pytest.mark.parametrize("name", [n if n in QUICK else slow(n) for n in NAMES])
def test_what_init_config_prints(name, folder, capsys):
    if name == "torch_intent":
        pytest.importorskip("torch")
    assert main(["init", "config", "--from", name, f"my {name}.cfg"]) == 0
    [line] = commands_in(capsys.readouterr().err)
    words = shlex.split(line)
    (folder / words[1]).write_text(smaller((folder / words[1]).read_text()))
    yours = "train.jsonl"
    if name in ("intent", "intent_pretrained", "fasttext", "multi_label", "torch_intent"):
        yours = "intents.csv"
    if name in QUICK:
        yours = "story.txt"
        story = "1 Mary moved to the {0}.\n2 Where is Mary?\t{0}\t1\n"
        (folder / yours).write_text("".join(map(story.format, ("garden", "kitchen") * 8)))
        (folder / "places.txt").write_text("garden\nkitchen\nhall\n")
    given = {"--paths.encoder": "minilm", "--paths.candidates": "places.txt"}
    words = [
        given.get(before, yours) if before.startswith("--paths.") else word
        for before, word in zip(["", *words], words)
    ]
    if name.endswith("_ray"):  # The same run without Ray, which is not installed everywhere.
        words += ["--runner.num_workers", "0"]
    assert main(words) == 0, capsys.readouterr().err
    (folder / "hello.txt").write_text("Hello!\n")
    lines = commands_in(capsys.readouterr().err)
    assert len(lines) == 2
    for line in lines:  # A file replaces the pipe.
        assert main(["hello.txt" if word == "-" else word for word in shlex.split(line)]) == 0


TWO_FILES = {
    "a file.py": "from thincdialog.api import registry\n\n"
    '@registry.mutators("printed.same.v1")\ndef same():\n    return lambda episode: [episode]\n',
    "b.py": "from thinc.api import Model\nfrom thincdialog.api import registry\n"
    "from thincdialog.models.bag_encoder import BagEncoder\n\n"
    '@registry.models("printed.bag.v1")\ndef bag() -> Model:\n    return BagEncoder(width=8)\n',
}
TALK = """
[tasks.talk]
@teachers = "thincdialog.Conversations.v1"
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"

[tasks.talk.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tasks.talk.mutators.*.same]
@mutators = "printed.same.v1"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
candidates = "batch"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "printed.bag.v1"

[training]
max_epochs = 1
"""


@pytest.fixture(scope="module")
def code_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")
    write_data(folder)
    for name, text in TWO_FILES.items():
        (folder / name).write_text(text)
    (folder / "two parts.cfg").write_text(TALK)
    return folder


@pytest.fixture
def with_code(code_folder, monkeypatch):
    """Write data and a config that needs two files of code, which can be imported only once."""
    monkeypatch.chdir(code_folder)
    return code_folder


def run_fresh(line, folder):
    """Run in a separate process, which has not imported the code yet."""
    process = start(folder, *shlex.split(line), stdin=subprocess.DEVNULL)
    _, err = process.communicate()
    return process.returncode, err


BOTH = "--code 'a file.py' --code b.py"


@pytest.mark.slow
def test_what_train_prints(with_code, capsys):
    line = f"train 'two parts.cfg' --output 'out put/run' {BOTH}"
    assert main(shlex.split(line)) == 0
    talk, measure = commands_in(capsys.readouterr().err)
    assert talk == f"chat 'out put/run/model-best' {BOTH}"
    assert measure == f"evaluate 'out put/run/model-best' --split test {BOTH}"
    code, err = run_fresh(talk, with_code)
    assert code == 0, err
    code, err = run_fresh(talk.replace(" --code b.py", ""), with_code)
    assert code == 1 and "printed.bag.v1" in err


@pytest.mark.slow
def test_what_the_card_says(with_code):
    assert main(shlex.split(f"train 'two parts.cfg' -o run {BOTH}")) == 0
    model = with_code / "run" / "model-best"
    assert json.loads((model / "meta.json").read_text())["code"] == ["a file.py", "b.py"]
    text = (model / "README.md").read_text()
    for file in TWO_FILES:
        shutil.copy(with_code / file, with_code / "run")
    lines = commands_in(text)
    assert lines == [f"{command} model-best {BOTH}" for command in ("chat", "evaluate")]
    for name in ("train", "dev", "test"):  # The config's paths are those of the training.
        shutil.copy(with_code / f"{name}.jsonl", with_code / "run")
    code, err = run_fresh(lines[1], with_code / "run")
    assert code == 0, err
    [python] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    command = [sys.executable, "-c", python]
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, cwd=with_code / "run", env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_what_sweep_prints(with_code, capsys):
    over = "--over training.optimizer.learn_rate=0.01,0.1"
    assert main(shlex.split(f"sweep 'two parts.cfg' {over} -o 'all runs' {BOTH}")) == 0
    [line] = commands_in(capsys.readouterr().out)
    assert BOTH in line
    code, err = run_fresh(line, with_code)
    assert code == 0, err


def test_hints_of_configs(folder, capsys):
    assert main(["train", "none.cfg"]) == 1
    (folder / "bad.cfg").write_text(TALK.replace("thincdialog.Words.v1", "none.v1"))
    assert main(["debug", "config", "bad.cfg"]) == 1
    lines = commands_in(capsys.readouterr().err)
    assert {line.split()[0] for line in lines} == {"init", "find-function"}
    for line in lines:
        assert main(shlex.split(line)) == 0
