"""Tests the promises of docs/security.md: if a file of a model or a run is damaged or replaced, it
is used as intended, or one line says what is wrong. Nothing hangs or fills the memory."""

import hashlib
import itertools
import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.fuzzing import SEED, TIMES
from tests.processes import little_memory, no_longer_than, slow
from tests.training.examples import CLASSIFIER, RANKER, quietly_train
from thincdialog.api import Chatbot
from thincdialog.cli.main import main
from thincdialog.errors import DialogError, ModelError
from thincdialog.files.fingerprint import checksums
from thincdialog.files.saved_model import find_changes, read_meta
from thincdialog.training import trained_model

SUBWORDS = RANKER.replace('"thincdialog.Words.v1"', '"thincdialog.Subwords.v1"\nsize = 300')
HEAD = RANKER.partition("[tokenizer]")[0]
RETRIEVAL = HEAD + '[agent]\n@agents = "thincdialog.Retrieval.v1"\n'
MODELS = {"ranker": RANKER, "subwords": SUBWORDS, "retrieval": RETRIEVAL}
SECONDS = 60
# Files that only people read.
UNREAD = ("README.md",)


# --- replacements of a file --------------------------------------------------------------


def nothing(path):
    """The file is missing."""


def empty(path):
    path.touch()


def garbage(path):
    path.write_bytes(random.Random(path.name).randbytes(300))


def pipe(path):
    os.mkfifo(path)


def link_out(path):
    other = path.parent.parent.parent / f"other-{path.name}"
    other.write_text("somebody else's")
    path.symlink_to(other)


def device(path):
    path.symlink_to("/dev/zero")


def hollow(path):
    with path.open("wb") as file:
        file.truncate(4 << 30)


def folder(path):
    path.mkdir()


def brackets(path):
    path.write_text("[" * 199 + "]" * 199)


FAULTS = (nothing, empty, garbage, pipe, link_out, device, hollow, folder, brackets)


def put(fault, path):
    """Replace a file by a fault."""
    path.unlink()
    fault(path)


def files_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return saved models of several kinds, by name."""
    folder = tmp_path_factory.mktemp("models")
    for name, config in MODELS.items():
        if name == "subwords":
            pytest.importorskip("sentencepiece")
        quietly_train(config, output=folder / name, training__max_epochs=0.2)
    return {name: folder / name / "model-best" for name in MODELS}


def answer(model):
    with no_longer_than(SECONDS), little_memory():
        return Chatbot(model).respond("a large coffee please")


@pytest.mark.parametrize("n", [40, slow(10_000)])
def test_strangers_no_file_of_a_model_is_taken_for_what_it_is_not(models, tmp_path, n):
    cases = [
        (good, file, fault)
        for good in models.values()
        for file in files_in(good)
        for fault in FAULTS
    ]
    assert len(cases) > 150
    for number, (good, file, fault) in enumerate(
        random.Random(0).sample(cases, min(n, len(cases)))
    ):
        copy = shutil.copytree(good, tmp_path / "in" / f"{number}")
        put(fault, copy / file)
        if file in UNREAD:
            answer(copy)
        else:
            with pytest.raises(DialogError) as caught:
                answer(copy)
            text = str(caught.value)
            assert Path(file).name in text and len(text) < 2000, (file, fault.__name__)
        shutil.rmtree(copy)


@pytest.mark.parametrize("fault", [nothing, garbage, pipe, hollow])
def test_strangers_models_in_commands_end_in_one_line(models, tmp_path, capsys, fault):
    copy = shutil.copytree(models["ranker"], tmp_path / "model")
    put(fault, copy / "agent.json")
    for words in (["evaluate", str(copy)], ["predict", str(copy), __file__]):
        with no_longer_than(SECONDS), little_memory():
            assert main(words) == 1
        shown = capsys.readouterr().err
        assert "agent.json" in shown and "Traceback" not in shown and shown.count("✘") == 1


@pytest.mark.parametrize("inside", ["", "model-best"])
def test_strangers_a_pipe_for_meta_json_is_reported_as_one(models, tmp_path, inside):
    copy = shutil.copytree(models["retrieval"], tmp_path / "given" / inside)
    put(pipe, copy / "meta.json")
    with pytest.raises(ModelError, match="meta.json  cannot be read: it is a pipe, expected a"):
        answer(tmp_path / "given")


# --- the right form with wrong types ------------------------------------------------------

ODD = (
    None, True, -1, 0, 1.5, 2**63 - 1, 2**70, 1e308, float("nan"), "", "x", "../../x",
    "/etc/passwd", "/proc/self/mem", "\ud800", "\0", [], [None], ["a"], [[]], {}, {"a": 1}, [1e999],
)  # fmt: skip


def places(value, *path):
    """Yield the path to each value within another one."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inner in list(items):
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, *path, key)


def resign(model):
    """Write checksums that match the changed files, as an attacker would."""
    layout, weights = model / "layout.json", model / "weights.npy"
    if weights.is_file() and layout.is_file():
        facts = json.loads(layout.read_text())
        if isinstance(facts, dict) and "sha256" in facts:
            facts["sha256"] = hashlib.sha256(np.load(weights).tobytes()).hexdigest()
            layout.write_text(json.dumps(facts))
    meta = json.loads((model / "meta.json").read_text())
    if isinstance(meta.get("files"), dict):
        meta["files"] = checksums(model, [model / name for name in meta["files"]])
        (model / "meta.json").write_text(json.dumps(meta))


def try_types(models, tmp_path, chance, n):
    """RETURNS how many of n models with one wrong value were refused."""
    n_refused = 0
    for number in range(n):
        good = models[chance.choice(list(models))]
        copy = shutil.copytree(good, tmp_path / f"{number}")
        name = chance.choice([file for file in files_in(copy) if file.endswith(".json")])
        value = json.loads((copy / name).read_text())
        *way, last = chance.choice(list(places(value)))
        node = value
        for key in way:
            node = node[key]
        node[last] = chance.choice(ODD)
        (copy / name).write_text(json.dumps(value))
        if name != "meta.json":
            resign(copy)
        try:
            assert isinstance(answer(copy), str)
        except DialogError as error:
            n_refused += 1
            assert str(copy) in str(error) and len(str(error)) < 2000
        except BaseException as error:
            raise AssertionError(f"{name} {way} {last} = {node[last]!r}: {error!r}") from error
        shutil.rmtree(copy)
    return n_refused


@pytest.mark.parametrize("seed, n", [(0, 30), slow(SEED, 700 * TIMES)])
def test_strangers_wrong_types_are_refused_or_harmless(models, tmp_path, seed, n):
    assert try_types(models, tmp_path, random.Random(seed), n) > n / 3


def changed(model, name, change):
    """Change a file of a model, with matching checksums."""
    value = json.loads((model / name).read_text())
    change(value)
    (model / name).write_text(json.dumps(value))
    resign(model)


def test_strangers_sizes_that_need_too_much_memory_are_refused(models, tmp_path, capsys):
    copy = shutil.copytree(models["ranker"], tmp_path / "model")
    config = (copy / "config.cfg").read_text()
    (copy / "config.cfg").write_text(config.replace("width = 16", "width = 800000000"))
    with pytest.raises(ModelError, match="has nO = 16 there, and 800,000,000 here"):
        answer(copy)

    def widen(layout):
        for node in layout["nodes"]:
            for name, size in node["dims"].items():
                node["dims"][name] = size * 50_000_000 if size in (16, 32) else size

    changed(copy, "layout.json", widen)
    with pytest.raises(ModelError, match=r"ask for more memory than is free: Unable to alloc"):
        answer(copy)
    with no_longer_than(SECONDS), little_memory():
        assert main(["evaluate", str(copy)]) == 1
    shown = capsys.readouterr().err
    assert str(copy) in shown and "Traceback" not in shown and shown.count("✘") == 1


def test_strangers_nan_and_values_of_wrong_types_are_refused(models, tmp_path):
    for value in (np.nan, np.inf):
        copy = shutil.copytree(models["ranker"], tmp_path / str(value))
        weights = np.load(copy / "weights.npy")
        weights[5] = value
        np.save(copy / "weights.npy", weights)
        resign(copy)
        with pytest.raises(ModelError, match="weights.npy  holds numbers that are not finite"):
            answer(copy)
    for texts in ([1], [None], "abc", [["a"]]):
        changed(copy, "agent.json", lambda state, texts=texts: state.update(fixed_candidates=texts))
        with pytest.raises(
            ModelError, match="agent.json  is not this agent's state .*not a list of"
        ):
            answer(copy)


def test_strangers_meta_names_no_file_outside(models, tmp_path):
    for name in ("/etc/passwd", "../../x", "/proc/self/mem", "tokenizer/../../x", "", ".."):
        copy = shutil.copytree(models["ranker"], tmp_path / hashlib.md5(name.encode()).hexdigest())
        meta = json.loads((copy / "meta.json").read_text())
        meta["files"][name] = [0, ""]
        (copy / "meta.json").write_text(json.dumps(meta))
        with pytest.raises(ModelError, match="is not a file in it"):
            answer(copy)
    copy = shutil.copytree(models["ranker"], tmp_path / "linked")
    shutil.move(copy / "tokenizer", tmp_path / "elsewhere")
    (copy / "tokenizer").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="leads out of its folder"):
        answer(copy)


def test_strangers_subwords_are_texts(models, tmp_path):
    import zlib

    copy = shutil.copytree(models["subwords"], tmp_path / "model")
    path = copy / "tokenizer" / "subwords.model"
    content = path.read_bytes()
    piece = "\u2581".encode()
    assert content.count(piece) > 1
    path.write_bytes(content.replace(piece, b"\xff\xfe\xfd"))
    check = {"bytes": len(content), "crc32": zlib.crc32(path.read_bytes())}
    (copy / "tokenizer" / "subwords.json").write_text(json.dumps(check))
    resign(copy)
    with pytest.raises(ModelError, match="subwords.model: not a model of sentencepiece"):
        answer(copy)


def test_strangers_a_model_that_is_replaced_meanwhile_is_read_again(models, tmp_path, monkeypatch):
    """As in training: a rename replaces the model while it is being read."""
    old, new = models["ranker"], tmp_path / "new"
    run = tmp_path / "run"
    shutil.copytree(old, run / "model-best")
    shutil.copytree(models["retrieval"], new)
    real, n_calls = trained_model.build_sections, []

    def replacing(*given):
        n_calls.append(1)
        if len(n_calls) == 1:  # Half of the model has been read.
            (run / "model-best").rename(run / ".model-best.old.00000000")
            new.rename(run / "model-best")
        return real(*given)

    monkeypatch.setattr(trained_model, "build_sections", replacing)
    assert Chatbot(run).agent.id == "retrieval" and len(n_calls) == 2


# --- files of a run ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a finished run and of its config."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "a.cfg").write_text(RANKER)
    ends = ["--training.max_steps", "4", "--training.checkpoint_every_steps", "2"]
    assert main(["train", str(folder / "a.cfg"), "-o", str(folder / "run"), *ends]) == 0
    return folder


def try_run(trained, copy, file, fault, capsys):
    """Whatever is damaged, the result is right, or one line says what is wrong."""
    shutil.rmtree(copy, ignore_errors=True)
    run = shutil.copytree(trained / "run", copy / "run")
    put(fault, run / file)
    ends = ["--training.max_steps", "4", "--training.checkpoint_every_steps", "2"]
    resumed = ["train", str(trained / "a.cfg"), "-o", str(run), "--resume", *ends]
    for words in (["results", str(run)], resumed):
        with no_longer_than(SECONDS):
            code = main(words)
        shown = capsys.readouterr().err
        assert code in (0, 1) and "Traceback" not in shown, (file, fault.__name__, shown)
        if code == 1:
            assert shown.count("✘") == 1 and str(run) in shown, (file, fault.__name__, shown)
    if code == 0:
        assert find_changes(run / "model-best", read_meta(run / "model-best")) == ""
        first, second = (folder / "run" / "scores.json" for folder in (trained, copy))
        scores = [json.loads(path.read_text())["scores"] for path in (first, second)]
        assert scores[0] == scores[1]
    outside = copy.parent / f"other-{Path(file).name}"
    assert not outside.exists() or outside.read_text() == "somebody else's"
    return code


def cases(trained):
    return [(file, fault) for file in files_in(trained / "run") for fault in FAULTS]


def test_strangers_some_damage_to_a_run_is_repaired_or_reported(trained, tmp_path, capsys):
    for file, fault in random.Random(0).sample(cases(trained), 4):
        try_run(trained, tmp_path / "in" / "copy", file, fault, capsys)


@pytest.mark.slow
def test_strangers_more_damage_to_a_run_is_repaired_or_reported(trained, tmp_path, capsys):
    assert len(cases(trained)) > 200
    chosen = random.Random(SEED).sample(cases(trained), 80 * TIMES)
    codes = [try_run(trained, tmp_path / "in" / "copy", *each, capsys) for each in chosen]
    assert {0, 1} == set(codes)


@pytest.mark.parametrize("name", ["agent.json", "layout.json", "config.cfg", "weights.npy",
                                  "tokenizer/vocabulary.jsonl", "meta.json"])  # fmt: skip
def test_strangers_a_resumed_run_repairs_its_best_model(trained, tmp_path, capsys, name):
    assert try_run(trained, tmp_path / "in" / "copy", f"model-best/{name}", garbage, capsys) == 0


# --- files of a store ----------------------------------------------------------------------

STORED = (
    """
[paths]
train = null

[tasks.intent]
@teachers = "thincdialog.LabelledText.v1"
train = ${paths.train}
dev = ${paths.train}
"""
    + CLASSIFIER
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a folder with data and with a store that was built from the data."""
    folder = tmp_path_factory.mktemp("stored")
    rows = [json.dumps({"text": f"text {n}", "label": "ab"[n % 2]}) for n in range(20)]
    (folder / "rows.jsonl").write_text("\n".join(rows))
    (folder / "a.cfg").write_text(STORED)
    assert main(["build", *words_of_store(folder, folder / "store")]) == 0
    return folder


def words_of_store(folder, store):
    paths = [f"--paths.train={folder / 'rows.jsonl'}", f"--loader.store={store}"]
    return [str(folder / "a.cfg"), *paths]


def other_numbers(path):
    """Write an array in the right format whose numbers are out of range."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:128] + b"\x7f" * (len(content) - 128))


def try_store(stored, place, file, fault, capsys):
    """Training names the file, or does not depend on it. ``build`` repairs the store."""
    store = shutil.copytree(stored / "store", place / "store")
    content = (store / file).read_bytes()
    put(fault, store / file) if fault is not other_numbers else other_numbers(store / file)
    train = ["train", *words_of_store(stored, store), "--training.max_steps", "1", "--no-output"]
    codes = []
    for words in (train, ["build", *words_of_store(stored, store)], train):
        with no_longer_than(SECONDS), little_memory():
            codes.append(main(words))
        shown = capsys.readouterr().err
        assert "Traceback" not in shown, (file, fault.__name__, shown)
        if codes[-1]:
            assert shown.count("✘") == 1 and str(store) in shown, (file, fault.__name__, shown)
    assert codes[1:] == [0, 0], (file, fault.__name__)
    repaired = store / file
    assert not repaired.is_symlink() and file.endswith("json") or repaired.read_bytes() == content
    assert not list(store.rglob("*.building")) and not list(store.rglob(".*"))
    shutil.rmtree(place)
    return codes[0]


def store_cases(stored):
    files = files_in(stored / "store")
    # Wrong bytes of strings are just other texts.
    numbers = [file for file in files if file.endswith(".npy") and "strings.npy" not in file]
    arrays = [(file, other_numbers) for file in numbers]
    return arrays + [(file, fault) for file in files for fault in FAULTS]


@pytest.mark.parametrize("n", [8, slow(80 * TIMES)])
def test_strangers_damage_to_a_store_is_reported_and_repaired(stored, tmp_path, capsys, n):
    cases = store_cases(stored)
    assert len(cases) > 250
    chosen = random.Random(0).sample(cases, min(n, len(cases)))
    codes = [try_store(stored, tmp_path / "in" / "copy", *each, capsys) for each in chosen]
    assert 1 in codes


# --- what a config or a command names -------------------------------------------------------

PLACES = {
    "t.jsonl": ("train a.cfg", "debug data a.cfg", "build a.cfg --loader.store st",
                "convert t.jsonl o.csv", "display-data a.cfg"),
    "replies.txt": ("train a.cfg", "debug config a.cfg"),
    "mine.yml": ("convert t.jsonl o.txt --from mine.yml --to parlai",),
    "a.cfg": ("train a.cfg", "init fill-config a.cfg o.cfg", "debug diff-config a.cfg"),
    "mine.py": ("debug config a.cfg --code mine.py",),
    "st": ("train a.cfg --loader.store st", "build a.cfg --loader.store st"),
    "run": ("train a.cfg -o run", "results run", "plot run", "chat run"),
    "o.csv": ("convert t.jsonl o.csv", "convert t.jsonl o.csv --force"),
    "o.cfg": ("init fill-config a.cfg o.cfg --force",
              "init config o.cfg --from quickstart --force"),
}  # fmt: skip
NAMED = (
    """
[tasks.t]
@teachers = "thincdialog.LabelledText.v1"
train = "t.jsonl"
dev = "t.jsonl"
candidates = "replies.txt"

[training]
max_steps = 1
n_samples = 0

"""
    + CLASSIFIER
    + "width = 8\n"
)


def link_to_itself(path):
    path.symlink_to(path.name)


def full(path):
    path.symlink_to("/dev/full")


@pytest.mark.parametrize("n", [25, slow(10_000)])
def test_strangers_any_place_may_hold_anything(tmp_path, monkeypatch, capsys, n):
    """The only exception is a pipe, because reading it waits."""
    kinds = [each for each in FAULTS if each is not pipe] + [link_to_itself, full]
    cases = [
        (place, line, fault)
        for place, lines in PLACES.items()
        for line, fault in itertools.product(lines, kinds)
    ]
    assert len(cases) > 200
    for number, (place, line, fault) in enumerate(
        random.Random(2).sample(cases, min(n, len(cases)))
    ):
        inside = tmp_path / f"{number}" / "in"
        inside.mkdir(parents=True)
        rows = [{"text": f"w{row}", "label": "ab"[row % 2]} for row in range(4)]
        (inside / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (inside / "replies.txt").write_text("a\nb\n")
        (inside / "mine.py").touch()
        (inside / "mine.yml").write_text("turns: talk\nspeaker: who\ntext: [what]\n")
        (inside / "a.cfg").write_text(NAMED)
        (inside / place).unlink(missing_ok=True)
        fault(inside / place)
        monkeypatch.chdir(inside)
        with no_longer_than(SECONDS), little_memory(3 << 30):
            code = main(line.split())
        shown = capsys.readouterr().err
        assert code in (0, 1) and "Traceback" not in shown, (place, fault.__name__, line, shown)
        assert code == 0 or shown.count("✘") == 1, (place, fault.__name__, line, shown)
        assert not [path for path in inside.rglob(".*") if path.name != place]
        shutil.rmtree(inside)
