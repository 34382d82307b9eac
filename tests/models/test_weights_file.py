"""Damaged and foreign files of a saved model: one clear error, and nothing is unpickled."""

import io
import json
import os
import random
import shutil

import numpy
import pytest

from thincdialog.api import DialogError, ModelError, load, train
from thincdialog.files.saved_model import BEST

from ..training.examples import RANKER

RETRIEVAL = (
    RANKER[: RANKER.index("[tokenizer]")]
    + '[agent]\n@agents = "thincdialog.Retrieval.v1"\n\n[training]\nscore = "hits@1"\n'
)
SUBWORDS = RANKER.replace("thincdialog.Words.v1", "thincdialog.Subwords.v1").replace(
    "[agent]\n", "size = 400\n\n[agent]\n", 1
)
SPECIAL = ("subwords", "retrieval")
CONFIGS = {"ranker": RANKER, "subwords": SUBWORDS, "retrieval": RETRIEVAL}
MARK = "THINCDIALOG_UNPICKLED"
# Files with checksums, in addition to arrays and subwords.
CHECKED = ("vocabulary.jsonl", "agent.json", "layout.json")


class Payload:
    """Sets an environment variable if it is unpickled."""

    def __reduce__(self):
        return exec, (f"import os; os.environ['{MARK}'] = '1'",)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, config in CONFIGS.items():
        silent = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        train(config, output=folder / name, overrides={"training.max_steps": 1}, **silent)
    return folder


@pytest.fixture(params=["ranker", *(pytest.param(n, marks=pytest.mark.slow) for n in SPECIAL)])
def model(request, models, tmp_path):
    return shutil.copytree(models / request.param / BEST, tmp_path / "model")


def foreign(data: bytes):
    """Yield contents that do not belong to the file."""
    pickled, zipped = io.BytesIO(), io.BytesIO()
    numpy.save(pickled, numpy.array([Payload()], dtype=object), allow_pickle=True)
    numpy.savez(zipped, a=numpy.array([Payload()], dtype=object))
    yield from (b"", data[: len(data) // 2], data[:-1], bytes(len(data)), b"hello\n", b"[]", b"{}")
    yield from (pickled.getvalue(), zipped.getvalue())
    rng = random.Random(0)
    for number in range(8):
        changed = bytearray(data)
        place = rng.randrange(min(len(data), 200) if number % 2 else len(data))
        changed[place] ^= rng.randrange(1, 256)
        yield bytes(changed)


def is_error(model) -> bool:
    try:
        load(model).respond("Good morning!")
    except DialogError as error:
        assert str(error)
        return True
    return False


def test_saved_model_damaged_or_foreign_files_are_clear_errors(model):
    for path in sorted(path for path in model.rglob("*") if path.is_file()):
        if path.name == "README.md":  # For people; no code reads it.
            continue
        data = path.read_bytes()
        # A changed config or description may still be a valid file; other changed bytes never are.
        is_checked = path.suffix in (".npy", ".model") or path.name in CHECKED
        for content in foreign(data):
            path.write_bytes(content)
            assert is_error(model) or not is_checked, path.name
        path.unlink()
        assert is_error(model), path.name
        path.write_bytes(data)
    assert not is_error(model)
    assert MARK not in os.environ


def test_weights_of_another_model_are_refused(models, tmp_path):
    model = shutil.copytree(models / "ranker" / BEST, tmp_path / "model")
    for name in ("weights.npy", "layout.json"):
        shutil.copy(models / "subwords" / BEST / name, model / name)
    with pytest.raises(ModelError, match="layout.json has .* bytes, expected|another checksum"):
        load(model)
    # Models used to be saved without checksums in meta.json.
    meta = json.loads((model / "meta.json").read_text())
    del meta["files"]
    (model / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ModelError, match="belong|other parameters|another model"):
        load(model)
