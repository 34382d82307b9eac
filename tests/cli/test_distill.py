"""The command ``distill``, and the line that it prints."""

import re
import shlex

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

from tests.cli.test_printed_commands import write_data
from tests.pretrained.tiny_encoder import tiny_encoder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    tiny_encoder(tmp_path / "minilm")
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_distilled_words_begin_a_ranker_with_the_line_that_is_printed(folder, run):
    code, out, err = run("distill minilm --texts train.jsonl -o words --width 4")
    assert (code, out) == (0, "")
    assert "words: vectors of 15 words, 4 wide, " in err
    line = re.search("python -m thincdialog (train.*)", err)[1]
    assert run("init config ranker.cfg")[0] == 0
    short = "--paths.train train.jsonl --paths.dev dev.jsonl --training.max_steps 1 --no-output"
    code, _, err = run(f"{line} {short} --agent.model.encoder.width 4 --tokenizer.n_rows 999")
    assert code == 0 and re.search(r"words: vectors of (\d+) of \1 words \(100.0 %\)", err)


def test_distilled_words_begin_an_intent_classifier(folder, run):
    assert run("distill minilm --texts intents.csv -o words")[0] == 0
    assert run("init config intent.cfg")[0] == 0
    table = '{"@initializers": "thincdialog.WordVectors.v1", "path": "words"}'
    line = f"train intent.cfg --agent.model.members.*.net.encoder.init_E {shlex.quote(table)}"
    short = "--paths.train intents.csv --training.max_steps 1 --no-output --tokenizer.n_rows 999"
    # A wider table gets these values in its first columns; a narrower one is an error.
    code, _, err = run(f"{line} {short} --agent.model.members.*.net.encoder.width 6")
    assert code == 0 and re.search(r"words: vectors of \d+ of \d+ words \(100.0 %\)", err)
    code, _, err = run(f"{line} {short}")
    assert code == 1 and "vectors of width 8, but the table has width 128: set embed_w" in err


def test_distill_is_refused_in_one_line(folder, run):
    for line, said in (
        ("distill maxilm --texts lines.txt -o words", "maxilm  is not a folder"),
        ("distill minilm --texts none.txt -o words", "none.txt"),
        ("distill minilm --texts tickets.csv -o words", "--text-field"),
        ("distill minilm --texts lines.txt -o minilm", "minilm  already exists"),
        ("distill minilm --texts lines.txt -o words --width 0", "width = 0, expected 1 or more"),
    ):
        code, out, err = run(line)
        assert code == 1 and out == "" and said in err and err.count("\n") == 1, err
    assert run("distill minilm --texts lines.txt")[0] == 2
    assert not (folder / "words").exists()
