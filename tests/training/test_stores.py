"""Training from stores is the same as from the data itself, and never uses stale stores."""

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.examples.talk import write_spoken
from tests.processes import limited, slow
from tests.training.examples import (
    CLASSIFIER,
    RANKER,
    REPLIES,
    TALKS,
    Terminal,
    quietly_train,
    weights,
)
from tests.training.two_tasks import TWO_TASKS
from thincdialog.api import DialogError, Experiment, build, dry_run, find_lr
from thincdialog.data import token_writer
from thincdialog.examples import split
from thincdialog.examples.store_writer import StoreWriter
from thincdialog.files import shard_folder
from thincdialog.loader import readers
from thincdialog.ops.compiled import load_kernels

COFFEE = RANKER[: RANKER.index("[tokenizer]")]
IN_BATCH = RANKER.replace('candidates = "inline"', 'candidates = "batch"\nspeaker_tokens = true')
STAR = """
[tokenizer]
@tokenizers = "thincdialog.HashNgrams.v1"
n_rows = 500

[agent]
@agents = "thincdialog.StarSpace.v1"
candidates = "CANDIDATES"
history_size = 3

[agent.model]
@models = "thincdialog.StarSpace.v1"
width = 8

[training]
max_epochs = 2.0
score = "hits@1"
n_samples = 0

[evaluation]
n_candidates = 5

[training.optimizer]
@optimizers = "thincdialog.SparseAdagrad.v1"
learn_rate = 0.05
"""
CLASSES = (
    COFFEE.replace("flatten]", "last]").replace("Flatten", "LastTurn")
    + CLASSIFIER
    + "\n[training]\nmax_epochs = 2.0\n"
)
FAST_TEXT = (
    CLASSES[: CLASSES.index("[tokenizer]")]
    + """
[tokenizer]
@tokenizers = "thincdialog.WordNgrams.v1"
n_rows = 900

[agent]
@agents = "thincdialog.FastText.v1"

[agent.model]
@models = "thincdialog.FastText.v1"
width = 8

[training]
max_epochs = 2.0

[training.optimizer]
@optimizers = "thincdialog.SparseSGD.v1"
grad_clip = 0.0
learn_rate = 0.5
"""
)
WORDS = '@batchers = "thincdialog.Words.v1"\nbudget = 300\n'
LINES = RANKER.replace('@batchers = "thincdialog.Fixed.v1"\nsize = 16\n', WORDS).replace(
    'candidates = "inline"', 'candidates = "batch"\nhistory_size = 2'
)
CONFIGS = {
    "ranker, inline": RANKER,
    "ranker, words": LINES,
    "ranker, long episodes": RANKER.replace("Flatten.v1", "EpisodeReverse.v1"),
    "star space": COFFEE + STAR.replace("CANDIDATES", "batch"),
    "star space, fixed": COFFEE + STAR.replace("CANDIDATES", "fixed"),
    "classifier": CLASSES,
    "fast text": FAST_TEXT,
    "mixture": TWO_TASKS.replace("turns = [1, 3, 2, 1, 1, 4, 2, 1]", "turns = [1, 1, 1, 1, 1]")
    .replace('"tests.recorder.v1"', '"thincdialog.Ranker.v1"\ncandidates = "batch"')
    .replace("tea milk", "tea blue"),
}


# Slow tests, because other configs are of the same kinds.
ALIKE = {"ranker, words", "ranker, inline", "star space", "star space, fixed", "fast text"}


@pytest.mark.parametrize("name", [slow(name) if name in ALIKE else name for name in CONFIGS])
def test_training_from_a_store_gives_the_same_bits(name, tmp_path):
    config = CONFIGS[name]
    if "star" in name or "fast" in name:
        load_kernels("texts")
    held, _ = quietly_train(config, tmp_path / "held")
    changes = {"loader.store": str(tmp_path / "store")}
    first, _ = quietly_train(config, tmp_path / "first", **changes)
    again, _ = quietly_train(config, tmp_path / "again", **changes)
    for result, folder in ((first, "first"), (again, "again")):
        assert weights(tmp_path / folder) == weights(tmp_path / "held")
        assert result.scores == held.scores
    has_tokens = "long" not in name
    assert bool(list((tmp_path / "store").glob("*/train/tokens-*"))) == has_tokens


FILES = """
[paths]
train = "train.csv"
dev = "dev.csv"

[tasks.intent]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
dev = ${paths.dev}
""" + CLASSES[CLASSES.index("[tokenizer]") :]  # fmt: skip
STORED = {"loader.store": "stores", "training.max_epochs": 1}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a folder with two small files of labelled texts."""
    monkeypatch.chdir(tmp_path)
    for name in ("train", "dev"):
        rows = [f"{name} says {number},{number % 2}" for number in range(20)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows, ""]))
    return tmp_path


def made(config=FILES, code=None, **more):
    """Return what ``build`` made, and why."""
    found = build(config, overrides={**STORED, **more}, code=code, stderr=io.StringIO())
    return {each.name: each.reason for each in found}


def change_data(folder):
    text = (folder / "train.csv").read_text()
    (folder / "train.csv").write_text(text.replace("says 3,", "says x,"))
    return {}


def change_settings(folder):
    return {"tasks.intent.on_bad_data": "skip"}


def add_mutator(folder):
    return {"tasks.intent.mutators": {"*": {"m": {"@mutators": "thincdialog.WordReverse.v1"}}}}


@pytest.mark.parametrize(
    "change, reason",
    [
        (change_data, "its file train.csv has changed"),
        (change_settings, "'on_bad_data' was 'error', now it is 'skip'"),
        (add_mutator, "'mutators"),
    ],
)
def test_a_store_of_other_data_is_never_used(files, change, reason):
    new = {f"intent/{split}{part}" for split in ("train", "dev") for part in ("", " tokens")}
    assert set(made()) == new and all(made_of == "" for made_of in made().values())
    changes = {**STORED, **change(files)}
    before = {path: path.read_bytes() for path in files.rglob("*.*")}
    with pytest.raises(DialogError) as caught:
        quietly_train(FILES, **changes)
    assert reason in str(caught.value) and "Build it again" in str(caught.value)
    assert {path: path.read_bytes() for path in files.rglob("*.*")} == before
    again = made(**changes)
    assert reason in again["intent/train"] and again["intent/train tokens"]
    assert (again["intent/dev"] == "") == (change is change_data)
    assert set(made(**changes).values()) == {""}
    quietly_train(FILES, **changes)


def test_a_store_serves_runs_with_and_without_streaming(files):
    made()
    assert set(made(**{"tasks.intent.streaming": True}).values()) == {""}


@pytest.mark.parametrize("order", ["built", "opened"])
def test_labels_in_stores_that_differ_by_case_are_reported(files, order):
    """They are reported when a store is built for a classifier, or when a classifier opens a store
    that was built for a ranker, whose replies may differ only by case."""
    with open(files / "dev.csv", "a") as file:
        file.write("t,One\nt,one\n")
    where = "dev.csv:23  the label 'one'"
    if order == "opened":
        found = made(FILES[: FILES.index("[tokenizer]")] + REPLIES)
        assert found["intent/dev"] == "it did not exist"
        where = "dev.csv  .*the label '[oO]ne'"
    with pytest.raises(DialogError, match=f"{where} differs from '[oO]ne' .*only by case or blank"):
        quietly_train(FILES, **STORED)


def test_another_tokenizer_reads_the_examples_and_not_the_data(files):
    made()
    # Their content is not read again as long as they are not changed.
    for name in ("train", "dev"):
        os.chmod(files / f"{name}.csv", 0o400)
    again = made(**{"tokenizer.lower": False, "agent.max_context": 7})
    assert again["intent/train"] == "" and again["intent/train tokens"] == "they did not exist"
    assert len(list((files / "stores" / "intent" / "train").glob("tokens-*"))) == 2
    # Settings that only apply to tokens do not make new ones.
    assert set(made(**{"tokenizer.lower": False, "agent.max_context": 9}).values()) == {""}


COUNTED = """
import os
from thincdialog.api import registry
from thincdialog.data.tokenizers.word_tokenizer import WordTokenizer

@registry.tokenizers("tests.counted.v1")
class Counted(WordTokenizer):
    def build(self, texts, progress=None):
        texts = list(texts)
        with open(os.environ["BUILT"], "a") as file:
            file.write(f"{len(texts)}\\n")
        super().build(texts, progress)
"""


@pytest.mark.slow
def test_a_tokenizer_is_built_once_for_a_store(files, monkeypatch):
    monkeypatch.setenv("BUILT", str(files / "log"))
    (files / "counted.py").write_text(COUNTED)
    changes = {"tokenizer.@tokenizers": "tests.counted.v1", "code": "counted.py"}

    def n_built():
        return len((files / "log").read_text().split())

    quietly_train(FILES, files / "held", **{**changes, "training.max_epochs": 1})
    made(**changes)
    for number in range(2):
        quietly_train(FILES, files / f"stored{number}", **changes, **STORED)
        assert n_built() == 2
    assert weights(files / "held") == weights(files / "stored1")
    # Another tokenizer is built, and a damaged one is rebuilt.
    made(**changes, **{"tokenizer.lower": False})
    assert n_built() == 3
    for path in (files / "stores").glob("tokenizer-*/tokenizer/*"):
        path.write_bytes(path.read_bytes()[:-1])
    quietly_train(FILES, files / "stored2", **changes, **STORED)
    assert n_built() == 4 and weights(files / "stored2") == weights(files / "held")
    for path in (files / "stores").glob("tokenizer-*/manifest.json"):
        path.write_text("[")
    quietly_train(FILES, files / "stored3", **changes, **STORED)
    assert n_built() == 5 and weights(files / "stored3") == weights(files / "held")
    # Trial runs keep none.
    other = {**changes, **STORED, "tokenizer.min_freq": 2}
    dry_run(FILES, code=other.pop("code"), overrides=other, stderr=io.StringIO())
    assert len(list((files / "stores").glob("tokenizer-*"))) == 2


def test_a_stored_tokenizer_belongs_to_the_tasks_that_are_trained(tmp_path):
    changes = {"loader.store": str(tmp_path / "store"), "training.max_epochs": 1.0}
    for drinks in (0.0, 1.0):
        config = f"{CONFIGS['mixture']}\n[mixture.weights]\ncolours = 1\ndrinks = {drinks}\n"
        folder = tmp_path / f"{drinks}"
        quietly_train(config, folder, **changes)
        quietly_train(config, folder / "held", **{**changes, "loader.store": None})
        assert weights(folder) == weights(folder / "held")
    tokenizers = set((tmp_path / "store").glob("tokenizer-*"))
    assert len(tokenizers) == 2
    # A build from other data leaves those alone.
    made(CONFIGS["mixture"], **{**changes, "tasks.colours.words": "red green blue amber"})
    assert tokenizers < set((tmp_path / "store").glob("tokenizer-*"))


OPENING = """
from pathlib import Path
from thincdialog.api import IterableTeacher, registry

@registry.teachers("tests.opening.v1")
def opening(where):
    def rows():
        return [(text, text[-1]) for text in Path(where, "rows.txt").read_text().split()]

    return IterableTeacher({"train": rows})
"""


def test_files_that_a_custom_reader_opens_itself_are_checked(files):
    (files / "mine").mkdir()
    (files / "mine" / "rows.txt").write_text("xa yb za")
    (files / "opening.py").write_text(OPENING)
    task = FILES[FILES.index("[tasks.intent]") : FILES.index("[tokenizer]")]
    config = FILES.replace(task, '[tasks.intent]\n@teachers = "tests.opening.v1"\nwhere = "mine"\n')
    config = config.replace("[training]", "[training]\neval_every_epochs = 0")
    made(config, code="opening.py")
    (files / "mine" / "rows.txt").write_text("xa yb zb")
    with pytest.raises(DialogError, match="its file rows.txt has changed"):
        quietly_train(config, code="opening.py", **STORED)


def test_a_layout_that_changed_makes_another_store(files):
    (files / "my.yml").write_text("text: text\nlabel: label\n")
    config = FILES.replace('LabelledText.v1"', 'JSONLayout.v1"\nlayout = "my.yml"')
    made(config)
    (files / "my.yml").write_text("text: label\nlabel: text\n")
    assert made(config)["intent/train"] == "its file my.yml has changed"


def test_files_that_only_have_another_time_count_as_unchanged(files):
    made()
    os.utime(files / "train.csv", ns=(1, 1))
    assert set(made().values()) == {""}


def test_code_that_changed_makes_another_store(files):
    code = files / "own.py"
    text = (
        "from thincdialog.api import registry, Message\n"
        '@registry.mutators("tests.shout.v1")\n'
        "def shout():\n"
        '    return lambda episode: [[Message(m, text=m["text"] + "!") for m in episode]]\n'
    )
    code.write_text(text)
    config = FILES.replace(
        "[tokenizer]", '[tasks.intent.mutators.*.m]\n@mutators = "tests.shout.v1"\n\n[tokenizer]'
    )
    assert made(config, str(code))["intent/train"] == "it did not exist"
    code.write_text(text + "# Another one.\n")
    assert made(config, str(code))["intent/train"] == "the code own.py has changed"


def test_build_repairs_damaged_files(files):
    made()
    path = files / "stores" / "intent" / "train" / "examples" / "strings.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    assert made()["intent/train"] == "strings.npy has another checksum than it was written with"
    assert path.read_bytes() == content


def test_numbers_of_conversations_are_checked_before_training(tmp_path, monkeypatch):
    """They have no tokens, which is where the numbers of single turns are stored."""
    monkeypatch.chdir(tmp_path)
    say = [{"speaker": who, "text": f"{who} {n}"} for n in range(3) for who in "ab"]
    rows = [json.dumps({"id": str(n), "turns": say}) for n in range(4)]
    Path("train.jsonl").write_text("\n".join(rows))
    config = TALKS.replace("dev.", "train.").replace("test.", "train.") + REPLIES
    made(config)
    folder = Path("stores/talk/train")
    assert [path.name for path in folder.iterdir()] == ["examples"]
    path = folder / "examples" / "label_ids.npy"
    content = path.read_bytes()
    path.write_bytes(content[:128] + b"\x7f" * (len(content) - 128))
    with pytest.raises(DialogError, match="label_ids.npy  is damaged .a number out of range"):
        quietly_train(config, **STORED)
    made(config)
    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", [lambda path: path.write_text("[]"), os.mkfifo])
def test_build_replaces_an_invalid_manifest(files, damage):
    made()
    path = files / "stores" / "intent" / "train" / "examples" / "manifest.json"
    content = path.read_bytes()
    path.unlink()
    damage(path)
    with pytest.raises(DialogError, match="Build the store again"):
        quietly_train(FILES, **STORED)
    assert made()["intent/train"] == "its manifest is damaged"
    assert json.loads(path.read_text())["files"] == json.loads(content)["files"]


def test_a_store_in_the_folder_of_a_run_is_refused(files):
    for place in ("out", "out/stores", "./out/../out"):
        with pytest.raises(DialogError, match="in the folder of the run"):
            quietly_train(FILES, files / "out", **{**STORED, "loader.store": place})
    assert not (files / "out").exists()


class Stop(BaseException):
    """Ends a build like a kill: nothing is written afterwards."""


def test_a_build_that_is_stopped_continues_with_the_same_result(files, monkeypatch):
    monkeypatch.setattr(split, "SHARD_SIZE", 6)
    monkeypatch.setattr(token_writer, "CHUNK", 6)
    made()
    shutil.move("stores", "whole")
    add = shard_folder.ShardFolder.add

    def add_and_stop(folder, *given):
        add(folder, *given)
        (folder.shards / "new").write_bytes(b"not whole")  # As if the next shard was half written.
        raise Stop

    n_stopped = 0
    with monkeypatch.context() as patch:
        patch.setattr(shard_folder.ShardFolder, "add", add_and_stop)
        while True:
            try:
                made()
                break
            except Stop:
                n_stopped += 1
    # For 20 rows each: four shards, a piece of labels, four of rows.
    assert n_stopped == 2 * (4 + 1 + 4)
    assert_same_arrays(files)


def assert_same_arrays(files):
    wanted, found = (
        {
            path.relative_to(files / root): path.read_bytes()
            for path in (files / root).rglob("*.npy")
        }
        for root in ("whole", "stores")
    )
    assert found == wanted and not list((files / "stores").rglob("*.building"))


@pytest.mark.slow
def test_a_build_by_several_workers_has_the_same_result(files, monkeypatch):
    monkeypatch.setattr(split, "SHARD_SIZE", 700)
    monkeypatch.setattr(token_writer, "CHUNK", 700)
    rows = [f"train says {number} é,{number % 3}" for number in range(3000)]
    (files / "train.csv").write_text("\n".join(["text,label", *rows, ""]))
    made()
    shutil.move("stores", "whole")
    # Worker processes start at once.
    monkeypatch.setattr(readers, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(readers, "WORTH_SECONDS", -1.0)
    started = []
    start = readers.Readers._processes

    def noted(self, make_work, n, what):
        started.append((what, n))
        return start(self, make_work, n, what)

    monkeypatch.setattr(readers.Readers, "_processes", noted)
    assert made(**{"loader.workers": 2})["intent/train"] == "it did not exist"
    wanted = [f"reads '{split}' of {split}.csv" for split in ("train", "dev")]
    wanted += [f"tokenizes stores/intent/{split}" for split in ("train", "dev")]
    assert started == [(what, 2) for what in wanted]
    assert_same_arrays(files)


KILLED = """
import os, sys
import numpy
from thincdialog.api import build
from thincdialog.data import token_writer
from thincdialog.examples import split
from thincdialog.files import shard_folder, whole_file
split.SHARD_SIZE, token_writer.CHUNK = 6, 6
n_left = int(sys.argv[1])

def killing(write):
    def killed(*given, **more):
        global n_left
        n_left -= 1
        if not n_left:
            os.kill(os.getpid(), 9)
        return write(*given, **more)
    return killed

numpy.savez = killing(numpy.savez)
for module, names in (
    (shard_folder, ("append_rows", "write_array", "write_json", "remove_path")),
    (whole_file, ("sync", "replace")),
):
    for name in names:
        setattr(module, name, killing(getattr(module, name)))
build("own.cfg", overrides={"loader.store": sys.argv[2]})
"""


@pytest.mark.slow
def test_a_build_that_is_killed_anywhere_continues_with_the_same_result(files):
    (files / "own.cfg").write_text(FILES)

    def run(n_writes, root):
        command = [sys.executable, "-c", KILLED, str(n_writes), root]
        return subprocess.run(command, capture_output=True, text=True)

    assert run(0, "whole").returncode == 0
    codes, n_writes = [], 9
    while not codes or codes[-1]:
        done = run(n_writes, "stores")
        codes.append(done.returncode)
        assert done.returncode in (0, -9), done.stderr
        n_writes += 7
    assert len(codes) > 9
    assert_same_arrays(files)


def test_a_store_that_is_being_built_is_not_built_by_another_process(files):
    folder = files / "stores" / "intent" / "train" / "examples"
    with closing(shard_folder.ShardFolder(folder, None)):
        with pytest.raises(DialogError, match="being written by another process"):
            made()
    assert made()["intent/train"] == "it did not exist"


TOKENIZED = """
import multiprocessing, os
from thincdialog.data.tokenizers.tokenizer import Tokenizer

encode_many = Tokenizer.encode_many

def noted(self, texts):
    if len(texts):
        with open(os.environ["TOKENIZED"], "a") as file:
            file.write(f"{texts}\\n")
    return encode_many(self, texts)

if multiprocessing.parent_process() is not None:
    Tokenizer.encode_many = noted
"""


@pytest.mark.parametrize("config", [slow(FILES), slow(IN_BATCH)], ids=["classifier", "ranker"])
def test_workers_in_processes_tokenise_nothing_of_a_store(config, files, monkeypatch):
    log = files / "log"
    monkeypatch.setenv("TOKENIZED", str(log))
    (files / "noting.py").write_text(TOKENIZED)
    runner = {"runner.@runners": "thincdialog.Hogwild.v1", "runner.executor": "process"}
    changes = {"training.max_epochs": 1, "code": "noting.py", **runner, "runner.workers": 2}
    for _ in range(2):  # First the store is built, then it exists.
        result, _ = quietly_train(config, **changes, **{"loader.store": "stores"})
        assert result.scores["dev"]["examples"] > 9
        # The text that shapes the model is tokenized, but no text of the store.
        assert set(log.read_text().splitlines()) == {"['a']"}
    quietly_train(config, **changes)
    assert len(set(log.read_text().splitlines())) > 2  # Without a store, they are logged.


OWN = """
import numpy as np
from thincdialog.api import MemoryStore, Message, Teacher, registry

@registry.teachers("tests.of_stores.v1")
def of_stores():
    store = MemoryStore()
    for number in range(12):
        pixels = np.arange(4, dtype="f") * number
        message = Message(id=str(number), text="", features=pixels, labels=[str(number % 2)])
        store.append([message])
    return Teacher({"train": store})
"""
FEATURES = """
[tasks.own]
@teachers = "tests.of_stores.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@layers = "Linear.v1"

[training]
max_epochs = 2.0
"""


def test_features_and_custom_stores_are_stored_too(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    code = {"code": str(tmp_path / "own.py")}
    quietly_train(FEATURES, tmp_path / "held", **code)
    changes = {"loader.store": str(tmp_path / "store")}
    quietly_train(FEATURES, tmp_path / "stored", **code, **changes)
    assert weights(tmp_path / "held") == weights(tmp_path / "stored")


def test_trial_runs_read_an_existing_store_and_build_none(files):
    for _ in range(2):
        overrides = {**STORED, "loader.shuffle_window": 0, "tasks.intent.streaming": True}
        losses = find_lr(FILES, overrides=overrides, steps=10, stderr=io.StringIO()).losses
        found = dry_run(FILES, overrides=overrides, stderr=io.StringIO())
        if not (files / "stores").exists():
            made(**overrides)
            with_none = losses
    assert found.examples["intent"] == {"train": 20, "dev": 20} and len(with_none) == len(losses)


def test_a_stream_without_an_end_is_refused(tmp_path):
    config = TWO_TASKS.replace("turns = [1, 3,", "endless = true\nturns = [1, 3,")
    with pytest.raises(DialogError, match="endless data, which cannot be stored"):
        made(config, **{"loader.store": str(tmp_path)})


def test_progress_is_shown_on_a_terminal(files):
    stderr = Terminal()
    build(FILES, overrides=STORED, stderr=stderr)
    assert "Building intent/train" in stderr.getvalue()
    assert "Tokenizing intent/dev" in stderr.getvalue()


@pytest.mark.parametrize("streaming", [False, True])
def test_all_episodes_are_shuffled_together_if_wanted(streaming, files):
    changes = {"loader.shuffle_window": 0, "tasks.intent.streaming": streaming}
    if streaming:
        with pytest.raises(DialogError, match="cannot be shuffled as a whole"):
            Experiment.from_config(FILES, changes)
        changes["loader.store"] = "stores"
    experiment = Experiment.from_config(FILES, changes)
    experiment.use_examples(io.StringIO())
    teacher = experiment.training_split()
    orders = []
    for epoch in (0, 1):
        teacher.start_epoch(epoch, 0)
        orders.append(teacher.order.read(50).ids())
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
    assert len(set(orders[0])) == 20


LIMITED = """
import io, random, resource, sys
from thincdialog.api import Experiment, Message, Teacher, registry, train

N_LETTERS, MEGABYTE = 12_000, 1 << 20

@registry.teachers("tests.long.v1")
def long(n: int, streaming: bool = False):
    def episodes():
        rng = random.Random(0)
        letters = [rng.choice("abcdefgh") for _ in range(4 * N_LETTERS)]
        for number in range(n):
            at = rng.randrange(3 * N_LETTERS)
            text = " ".join(letters[at : at + N_LETTERS])
            yield [Message(id=str(number), text=text, labels=[f"{number % 50} a"])]

    return Teacher({"train": episodes}, streaming=streaming, single_turn=True)

def kilobytes(name):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])

def learn(n, **changes):
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    overrides = {"tasks.long.n": n, "training.max_epochs": 2, **changes}
    train(CONFIG, overrides=overrides, stdout=io.StringIO(), stderr=io.StringIO())

CONFIG, N = open("long.cfg").read(), 5_600
if sys.argv[1] == "build":
    learn(N, loader__store="stores", training__max_steps=1, tasks__long__streaming=True)
    raise SystemExit
learn(100, loader__store="warm")
data = kilobytes("VmData:")
resource.setrlimit(resource.RLIMIT_DATA, (1024 * data + 12 * MEGABYTE,) * 2)
try:
    learn(N, loader__store=None, tasks__long__streaming=False, training__max_steps=1)
    print("held")
except MemoryError:
    pass
window = int(sys.argv[2])
learn(N, loader__store="stores", loader__shuffle_window=window, tasks__long__streaming=True)
"""


@pytest.mark.slow
def test_a_store_20_times_the_memory_is_trained_on_for_two_epochs(tmp_path):
    config = IN_BATCH[IN_BATCH.index("[tokenizer]") :].replace("Words.v1", "Whitespace.v1", 1)
    task = '[tasks.long]\n@teachers = "tests.long.v1"\nn = 1\n\n'
    (tmp_path / "long.cfg").write_text(task + config)
    (tmp_path / "limited.py").write_text(LIMITED)
    for words in (["build"], ["train", "65536"], ["train", "0"]):
        command = [sys.executable, "limited.py", *words]
        env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        # Held in memory, the data is too large.
        assert not done.stdout
    size = sum(path.stat().st_size for path in (tmp_path / "stores").rglob("*.npy"))
    assert size > 20 * 12 << 20


def test_a_run_resumes_with_its_first_source_or_with_a_store(tmp_path):
    store = {"loader.store": str(tmp_path / "store"), "training.checkpoint_every_steps": 2}
    quietly_train(IN_BATCH, tmp_path / "whole", training__max_steps=9)
    for name, first, second in (("a", {}, store), ("b", store, store)):
        quietly_train(IN_BATCH, tmp_path / name, training__max_steps=5, **first)
        quietly_train(IN_BATCH, tmp_path / name, resume=True, training__max_steps=9, **second)
        assert weights(tmp_path / name) == weights(tmp_path / "whole")


def test_a_full_disk_is_one_clear_error_and_the_build_continues(files):
    with limited("RLIMIT_FSIZE", 700):
        with pytest.raises(DialogError, match="could not be written: .*start again to continue"):
            made()
    assert made()["intent/train"] == "it did not exist"
    assert set(made().values()) == {""}


def test_a_store_knows_what_was_left_out_as_it_was_built(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(split, "SHARD_SIZE", 10)
    paths = [write_spoken(tmp_path / f"{name}.jsonl", *["bot", "agent"] * 20) for name in "ab"]
    changes = {"tasks.talk.train": paths, "paths.dev": None, "paths.test": None, **STORED}
    changes |= {"tasks.talk.label_speaker": "agent", "tasks.talk.dev_share": 0.3}
    config = TALKS + REPLIES
    n_left, add = [3], StoreWriter.add

    def add_and_stop(self, *arguments):
        add(self, *arguments)
        n_left[0] -= 1
        if not n_left[0]:
            raise Stop

    monkeypatch.setattr(StoreWriter, "add", add_and_stop)
    with pytest.raises(Stop):
        build(config, overrides=changes, stderr=io.StringIO())
    for overrides in (changes, {**changes, "loader.workers": 2}):
        # The second run finds everything built, and reads no data.
        said = io.StringIO()
        build(config, overrides=overrides, stderr=said)
        for path in paths:
            line = f"{path}  20 of 40 conversations left out: the label_speaker"
            assert said.getvalue().count(line) == 1
    result, said = quietly_train(config, **changes)
    assert result.left_out == dict.fromkeys(paths, 20)
    assert said.count("  20 of 40 conversations left out: ") == 2


def test_a_store_is_not_built_of_a_file_without_the_label_speaker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [write_spoken(tmp_path / f"{who}.jsonl", *[who] * 20) for who in ("agent", "bot")]
    changes = {"tasks.talk.train": paths, "paths.dev": None, "paths.test": None, **STORED}
    with pytest.raises(DialogError, match="bot.jsonl  label_speaker 'agent' does not occur in"):
        build(
            TALKS + REPLIES,
            overrides={**changes, "tasks.talk.label_speaker": "agent"},
            stderr=io.StringIO(),
        )


def test_a_store_is_not_built_of_examples_with_the_same_id(tmp_path, monkeypatch):
    """They are found in different shards, also if a build continues another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(split, "SHARD_SIZE", 10)
    path = tmp_path / "a.jsonl"
    said = [
        [{"speaker": who, "text": f"{who} {n}"} for who in ("user", "agent")] for n in range(35)
    ]
    rows = [{"id": str(number % 32), "turns": turns} for number, turns in enumerate(said)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"tasks.talk.train": [str(path)], "paths.dev": None, "paths.test": None, **STORED}
    changes["tasks.talk.label_speaker"] = "agent"
    add = StoreWriter.add

    def add_and_stop(self, *arguments):
        add(self, *arguments)
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "add", add_and_stop)
        with pytest.raises(Stop):
            build(TALKS + REPLIES, overrides=changes, stderr=io.StringIO())
    for _ in range(2):
        with pytest.raises(
            DialogError, match="a.jsonl:33  this line has the same id as line 1, '0/0'"
        ):
            build(TALKS + REPLIES, overrides=changes, stderr=io.StringIO())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:32]))
    build(TALKS + REPLIES, overrides=changes, stderr=io.StringIO())
